//! Published models as encoders of a search.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use image::{DynamicImage, RgbImage};
use itm_core::cca::Projection;
use itm_core::data::sha256_hex;
use itm_core::encoders::Embedder;
use itm_core::vision::{Fit, Transform};
use itm_core::weights::Hub;
use itm_core::{Error, Result};
use itm_kernels::Precision;
use itm_search::{Encoder, Model, Patches};
use serde_json::json;

use crate::devices::device;
use crate::embed::{hashes, opened};

/// A folder, opened, with what decides its rows.
pub(super) struct Tower {
    pub(super) embedder: Embedder,
    /// SHA-256 of its files and of what is done with them.
    pub(super) identity: String,
}

impl Tower {
    pub(super) fn open(model: &str, backend: &str) -> Result<Self> {
        let folder = Hub::from_env().folder(model)?;
        let embedder = opened(&folder, None, Precision::F32, &device(backend)?)?;
        let about = json!({ "files": hashes(&folder)?, "about": embedder.about, "upright": true });
        Ok(Self { embedder, identity: sha256_hex(about.to_string().as_bytes()) })
    }

    /// Refuses a model without captions.
    pub(super) fn check_texts(&self, option: &str) -> Result<()> {
        let expected = "a model that reads captions (or --text-model and --captions beside it)";
        let got = self.embedder.folder.display();
        Error::unless(self.embedder.text_width() > 0, option, expected, got)
    }

    /// Rows of pictures as the model gives them.
    pub(super) fn images(&self, pictures: &[RgbImage], transform: Transform) -> Vec<f32> {
        let mut values = vec![0.0; transform.len() * pictures.len()];
        for (picture, values) in pictures.iter().zip(values.chunks_exact_mut(transform.len())) {
            transform.apply(picture, values);
        }
        let [rows, _] = self.embedder.images(values, transform.size as usize, false);
        rows
    }

    pub(super) fn name(&self) -> String {
        let folder = &self.embedder.folder;
        folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
    }
}

/// CLIP or SigLIP, or a model of pictures and a model of sentences that maps join.
pub(super) struct Towers {
    /// The first reads pictures, the last sentences.
    pub(super) towers: Mutex<Vec<Tower>>,
    pub(super) transform: Transform,
    /// The maps of two towers into one space.
    pub(super) maps: Option<[Projection; 2]>,
    /// Rows of pictures that CCA has seen, before the map, by the SHA-256 of their pixels: the index needs them again.
    pub(super) seen: HashMap<String, Vec<f32>>,
    pub(super) model: Model,
}

impl Towers {
    /// Opens CLIP or SigLIP.
    pub(super) fn open(model: &str, backend: &str) -> Result<Self> {
        let tower = Tower::open(model, backend)?;
        let transform = tower.embedder.transform("--model")?;
        tower.check_texts("--model")?;
        let width = tower.embedder.image_width();
        let model = Model { name: tower.name(), identity: tower.identity.clone(), width };
        let (towers, seen) = (Mutex::new(vec![tower]), HashMap::new());
        Ok(Self { towers, transform, maps: None, seen, model })
    }

    /// A panic of the model leaves nothing behind in it, so the next search works.
    fn towers(&self) -> MutexGuard<'_, Vec<Tower>> {
        self.towers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Encoder for Towers {
    fn model(&self) -> Model {
        self.model.clone()
    }

    fn texts(&self, texts: &[&str]) -> Result<Vec<f32>> {
        let towers = self.towers();
        let rows = towers[towers.len() - 1].embedder.sentences(texts)?;
        Ok(match &self.maps {
            Some([_, map]) => map.unit_rows(&rows),
            None => rows,
        })
    }

    fn pictures(&self, pictures: &[DynamicImage]) -> Result<Vec<f32>> {
        let pictures: Vec<RgbImage> = pictures.iter().map(DynamicImage::to_rgb8).collect();
        let towers = self.towers();
        let Some([map, _]) = &self.maps else {
            return Ok(towers[0].images(&pictures, self.transform));
        };
        let mut rows = vec![];
        for picture in pictures {
            match self.seen.get(&sha256_hex(picture.as_raw())) {
                Some(row) => rows.extend(row),
                None => rows.extend(towers[0].images(&[picture], self.transform)),
            }
        }
        Ok(map.unit_rows(&rows))
    }

    fn patches(&self, picture: &DynamicImage) -> Result<Option<Patches>> {
        if self.maps.is_some() {
            return Ok(None); // they are of rows of whole pictures
        }
        // The map lies over the whole photograph, also where the model's rows are of its centre alone.
        let transform = Transform { fit: Fit::Squash, ..self.transform };
        let mut values = vec![0.0; transform.len()];
        transform.apply(&picture.to_rgb8(), &mut values);
        let rows = self.towers()[0].embedder.patch_rows(values, transform.size as usize);
        Ok(rows.map(|rows| {
            let side = (rows.len() / self.model.width).isqrt();
            Patches { grid: [side, side], rows }
        }))
    }
}
