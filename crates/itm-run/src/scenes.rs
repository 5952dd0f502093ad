//! `itm scenes`: the built-in world as files, and as a contact sheet.

use std::path::{Path, PathBuf};

use itm_core::cca::{Cca, CcaOptions};
use itm_core::data::npy_header;
use itm_core::output::{self, Existing, NewFolder, write_bytes};
use itm_core::{Error, Result};
use scenes::{CAPTIONS, ImageFeature, Scenes};

use crate::cli::ScenesArgs;
use crate::config::ScenesConfig;
use crate::progress;

pub(crate) fn scenes(args: &ScenesArgs) -> Result<()> {
    let any = args.out.is_some() || args.sheet.is_some() || args.embeddings.is_some();
    Error::unless(any, "scenes", "--out DIR, --sheet [FILE] or --embeddings DIR", "none")?;
    let ScenesArgs { seed, train, val, test, pixels, .. } = *args;
    let size = ScenesConfig { seed, train, val, test, pixels, ..ScenesConfig::default() };
    size.check(|key| format!("--{key}"))?;
    let begun = |folder: &Option<PathBuf>| {
        let begin = |folder| NewFolder::begin(folder, Existing::Nothing("a new or empty folder"));
        folder.as_deref().map(begin).transpose()
    };
    let (out, embedded) = (begun(&args.out)?, begun(&args.embeddings)?);
    args.sheet.as_deref().map_or(Ok(()), output::check)?;
    let world = Scenes::generate(seed, size.sizes());
    if let Some(path) = &args.sheet {
        write_bytes(path, &scenes::sheet(&world.test))?;
        progress::say(format!("Contact sheet: {}", path.display()));
    }
    if let Some(folder) = out {
        let _spinner = progress::spinner("writing Scenes");
        scenes::export(&world, folder.path())?;
        let place = folder.target().display().to_string();
        folder.commit()?;
        progress::say(format!(
            "Scenes in {place}: {train} train, {val} val and {test} test images, {CAPTIONS} captions each"
        ));
    }
    if let Some(folder) = embedded {
        embeddings(&world, &folder.path())?;
        let place = folder.target().display().to_string();
        folder.commit()?;
        progress::say(format!(
            "Embeddings in {place}: image.npy of {test} test images, text.npy of {CAPTIONS} captions each"
        ));
    }
    Ok(())
}

/// Writes closed-form CCA's embeddings of the test split, as rows of unit length.
fn embeddings(world: &Scenes, folder: &Path) -> Result<()> {
    let data = world.dataset(ImageFeature::Global);
    let cca = progress::during("solving CCA", || Cca::fit(&data, &CcaOptions::default()))?;
    let sides = [
        ("image.npy", cca.image_embeddings(&data.test)),
        ("text.npy", cca.text_embeddings(&data.test)),
    ];
    for (name, values) in sides {
        let shape = [values.len() / cca.dims(), cca.dims()];
        let header = npy_header("<f4", &shape).into_iter();
        let bytes: Vec<u8> = header.chain(values.iter().flat_map(|x| x.to_le_bytes())).collect();
        write_bytes(&folder.join(name), &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    /// Both files hold rows of unit length, and an image's own caption is nearer than most.
    #[test]
    fn embeddings_are_two_files_of_one_space() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("world");
        let line = "itm scenes --train 200 --val 40 --test 30 --embeddings".split(' ');
        let cli = Cli::parse_from(line.map(Into::into).chain([out.clone().into_os_string()]));
        let Command::Scenes(args) = cli.command else { panic!("scenes") };
        scenes(&args).unwrap();
        let rows = |name: &str, n: usize| {
            let bytes = std::fs::read(out.join(name)).unwrap();
            let values: Vec<f32> =
                bytes[128..].as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            let width = values.len() / n;
            values.chunks(width).map(<[f32]>::to_vec).collect::<Vec<_>>()
        };
        let (images, texts) = (rows("image.npy", 30), rows("text.npy", 150));
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
        for row in images.iter().chain(&texts) {
            assert!((dot(row, row) - 1.0).abs() < 1e-5, "{row:?}");
        }
        let better = |t: usize| {
            let own = dot(&images[t / 5], &texts[t]);
            images.iter().filter(|image| dot(image, &texts[t]) < own).count()
        };
        let mean = (0..150).map(better).sum::<usize>() as f64 / 150.0;
        assert!(mean > 20.0, "{mean} of 29 images are less like a caption than its own");
    }
}
