//! `itm scenes`: the built-in world as files, and as a sheet to look at.

use std::path::Path;

use itm_core::scenes::{self, CAPTIONS, Scenes};
use itm_core::{Error, Result};

use crate::checkpoint::write_atomically;
use crate::cli::ScenesArgs;
use crate::config::ScenesConfig;
use crate::progress;

pub(crate) fn scenes(args: &ScenesArgs) -> Result<()> {
    if args.out.is_none() && args.sheet.is_none() {
        return Err(Error::invalid("scenes", "--out DIR or --sheet [FILE]", "neither"));
    }
    let ScenesArgs { seed, train, val, test, pixels, .. } = *args;
    let size = ScenesConfig { seed, train, val, test, pixels, ..ScenesConfig::default() };
    size.check(|key| format!("--{key}"))?;
    if let Some(folder) = &args.out {
        refuse_files(folder)?;
    }
    let world = Scenes::generate(seed, size.sizes());
    if let Some(path) = &args.sheet {
        write_atomically(path, &scenes::sheet(&world.test))?;
        progress::say(format!("Contact sheet: {}", path.display()));
    }
    if let Some(folder) = &args.out {
        let spinner = progress::spinner("writing Scenes");
        scenes::export(&world, folder)?;
        spinner.finish_and_clear();
        progress::say(format!(
            "Scenes in {}: {train} train, {val} val and {test} test images, {CAPTIONS} captions each",
            folder.display()
        ));
    }
    Ok(())
}

/// Refuses a folder with something in it, and what is no folder.
pub(crate) fn refuse_files(path: &Path) -> Result<()> {
    let got = match path.read_dir().map(Iterator::count) {
        Ok(1..) => "a folder with files",
        Err(_) if path.exists() => "a file",
        _ => return Ok(()),
    };
    Err(Error::invalid(path.display(), "a new or empty folder", got))
}
