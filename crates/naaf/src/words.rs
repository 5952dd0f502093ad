//! What the words of captions add to scores and take from them.

use burn::module::Module;
use itm_core::encoders::{InputDropout, Places};
use itm_core::learn::{ImageItems, Images, WordMaps, WordPairs};
use itm_core::{Error, Result, host};

use crate::config::Score;
use crate::effects::effects;
use crate::model::{NaafEncoders, RegionEncoder};
use crate::step::Naaf;

impl Naaf {
    /// The effects of the words of each pair in inference. `None` if words have no effects of their own, because regions attend to
    /// words or the score compares means.
    pub(crate) fn maps(
        &self,
        WordPairs { items, pairs, words }: WordPairs,
    ) -> Result<Option<Vec<WordMaps>>> {
        if self.config.model.score == Score::Global {
            return Ok(None);
        }
        self.check_items(items.images)?;
        let texts = self.cut(items.texts);
        self.encoders().check_texts(&texts)?;
        let (model, config) = (self.encoders().valid(), &self.config);
        let boundary = self.boundary.inference(&config.mining) as f32;
        let mut maps = Vec::with_capacity(pairs.len());
        for &(image, text) in pairs {
            let (v, places) = places(&model, items.images, image)?;
            let u = model.words(&texts[text..=text], InputDropout::Off);
            let d = config.model.embed_dim;
            let u = &host(u.rows)[..u.counts[0] * d];
            let found = effects(&v, u, d, boundary, &config.attention)?;
            let Some(effects) = found else { return Ok(None) };
            maps.push(effects.maps(places, &words(text)?));
        }
        Ok(Some(maps))
    }
}

/// The rows of an image, `[regions, d]`, and where they are.
fn places(model: &NaafEncoders, images: ImageItems, image: usize) -> Result<(Vec<f32>, Places)> {
    let rows = |images| host(model.regions(images, InputDropout::Off).rows);
    match (images, &model.image) {
        (ImageItems::Pictures(pictures), RegionEncoder::Patches(encoder)) => {
            let missing = || Error::invalid(format!("picture {image}"), "pixels", "none");
            let batch = pictures.some(&[image]).next().ok_or_else(missing)??;
            let grid = encoder.grid().ok_or_else(missing)?;
            Ok((rows(Images::from(&batch)), Places::Patches(grid)))
        }
        (ImageItems::Regions(regions), _) => {
            let boxes = regions.boxes(image).unwrap_or_default().to_vec();
            Ok((rows(Images::from(&regions.rows(&[image])?)), Places::Boxes(boxes)))
        }
        (images, _) => Err(Error::invalid("images", "regions or pictures", images.kind())),
    }
}
