//! `itm scenes`: the built-in world as files, and as a sheet to look at.

use itm_core::scenes::{self, Scenes, Sizes};
use itm_core::{Error, Result};

use crate::checkpoint::write_atomically;
use crate::cli::ScenesArgs;
use crate::progress;

pub(crate) fn scenes(args: &ScenesArgs) -> Result<()> {
    if args.out.is_none() && args.sheet.is_none() {
        return Err(Error::invalid("scenes", "--out DIR or --sheet [FILE]", "neither"));
    }
    let ScenesArgs { seed, train, val, test, pixels, .. } = *args;
    let world = Scenes::generate(seed, Sizes { train, val, test, pixels });
    if let Some(path) = &args.sheet {
        write_atomically(path, &scenes::sheet(&world.test))?;
        progress::say(format!("Contact sheet: {}", path.display()));
    }
    if let Some(folder) = &args.out {
        if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Error::invalid(
                folder.display(),
                "a new or empty folder",
                "a folder with files",
            ));
        }
        let spinner = progress::spinner("writing Scenes");
        scenes::export(&world, folder)?;
        spinner.finish_and_clear();
        progress::say(format!(
            "{train} + {val} + {test} images with captions: {}",
            folder.display()
        ));
    }
    Ok(())
}
