//! Where a target's data come from: a folder, or the built-in world.

use std::path::Path;

use itm_core::data::{Dataset, ImageFolder, LoadOptions, load_precomp};
use itm_core::scenes::{Scenes, Sizes};
use itm_core::{Error, Relevance, Result};

use crate::config::{Config, DatasetName, ScenesConfig};
use crate::progress;
use crate::report::Picture;

/// A data set, the truth where it is known, and its pictures for the report.
pub(crate) struct Source {
    pub(crate) dataset: Dataset,
    pub(crate) truth: Option<Truth>,
    /// What was missing and how to get it, if this stands in for the data asked for.
    pub(crate) substitution: Option<String>,
    /// What a reader must know and the numbers do not say.
    pub(crate) notes: Vec<String>,
    name: DatasetName,
    pictures: Pictures,
}

/// All true pairs; for measuring only, never for training.
pub(crate) struct Truth {
    pub(crate) train: Relevance,
    pub(crate) test: Relevance,
}

enum Pictures {
    Scenes(Box<Scenes>),
    Files(ImageFolder),
}

impl Source {
    /// Opens the data of a target; where they are missing and it names a substitute, that target and its data.
    pub(crate) fn open(
        asked: &Config,
        data: Option<&Path>,
        configs: &Path,
    ) -> Result<(Config, Self)> {
        let name = asked.target.dataset;
        if let (DatasetName::Scenes, Some(folder)) = (name, data) {
            let expected = "no folder: Scenes are generated";
            return Err(Error::invalid("--data", expected, format!("`{}`", folder.display())));
        }
        if name == DatasetName::Scenes {
            return Ok((asked.clone(), Self::scenes(asked)?));
        }
        let folder = data.map_or_else(|| Path::new("data").join(name.folder()), Path::to_path_buf);
        if data.is_some() || folder.is_dir() {
            return Ok((asked.clone(), Self::folder(name, &folder)?));
        }
        let missing = format!(
            "{} is not in `{}`: `cargo xtask data` says how to get it",
            name.title(),
            folder.display()
        );
        let Some(substitute) = &asked.target.substitute else {
            let expected = format!("the folder of {} (`--data DIR`)", name.title());
            return Err(Error::invalid(
                folder.display(),
                expected,
                "nothing; `cargo xtask data` says how to get it",
            ));
        };
        let used = Config::load(configs, substitute)?;
        let mut source = Self::scenes(&used)?;
        source.substitution = Some(format!("{missing}. The same rows run on Scenes instead."));
        Ok((used, source))
    }

    fn scenes(config: &Config) -> Result<Self> {
        let Some(sizes) = config.target.scenes else {
            let place = format!("{}, target", config.path.display());
            return Err(Error::invalid(place, "a section [target.scenes]", "none"));
        };
        let spinner = progress::spinner("generating Scenes");
        let ScenesConfig { seed, train, val, test, pixels } = sizes;
        let scenes = Scenes::generate(seed, Sizes { train, val, test, pixels });
        let dataset = scenes.dataset();
        let truth = Truth { train: scenes.train.relevance(), test: scenes.test.relevance() };
        spinner.finish_and_clear();
        Ok(Self {
            dataset,
            truth: Some(truth),
            substitution: None,
            notes: vec![],
            name: DatasetName::Scenes,
            pictures: Pictures::Scenes(Box::new(scenes)),
        })
    }

    fn folder(name: DatasetName, folder: &Path) -> Result<Self> {
        let loaded = load_precomp(folder, &LoadOptions::default())?;
        Ok(Self {
            dataset: loaded.dataset,
            truth: None,
            substitution: None,
            notes: loaded.notes,
            name,
            pictures: Pictures::Files(loaded.images),
        })
    }

    pub(crate) fn substituted(&self) -> bool {
        self.substitution.is_some()
    }

    /// As a reader would call it.
    pub(crate) fn title(&self) -> String {
        self.name.title().into()
    }

    /// A test image as a report shows it; without bytes where the file is not at hand.
    pub(crate) fn picture(&self, image: usize) -> Picture {
        let name = self.dataset.test.images[image].clone();
        match &self.pictures {
            Pictures::Scenes(scenes) => {
                Picture { name, mime: "image/png", bytes: scenes.test.png(image) }
            }
            Pictures::Files(folder) => {
                let bytes = folder
                    .image_path(&name)
                    .and_then(|path| std::fs::read(path).ok())
                    .unwrap_or_default();
                let mime = if name.ends_with(".png") { "image/png" } else { "image/jpeg" };
                Picture { name, mime, bytes }
            }
        }
    }
}
