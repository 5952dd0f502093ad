//! What the words of captions add to scores and take from them.

use burn::module::Module;
use itm_core::encoders::{InputDropout, Places};
use itm_core::learn::{ImageItems, WordMaps, WordPairs};
use itm_core::{Result, host};

use crate::config::Score;
use crate::effects::effects;
use crate::model::{NaafEncoders, RegionEncoder};
use crate::rows::of_regions;
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
            let (v, _) = of_regions(&model, items.images, Some(&[image]))?;
            let u = model.words(&texts[text..=text], InputDropout::OFF);
            let d = config.model.embed_dim;
            let u = &host(u.rows)[..u.counts[0] * d];
            let found = effects(&v, u, d, boundary, &config.attention)?;
            let Some(effects) = found else { return Ok(None) };
            // The last piece of a cut text is its mark.
            let (kept, all, mut words) = (texts[text].len(), items.texts[text].len(), words(text)?);
            let end = if kept < all { kept - 1 } else { all };
            words.iter_mut().for_each(|word| word.pieces.end = word.pieces.end.min(end));
            maps.push(effects.maps(places(&model, items.images, image), &words));
        }
        Ok(Some(maps))
    }
}

/// Where the rows of an image are.
fn places(model: &NaafEncoders, images: ImageItems, image: usize) -> Places {
    let grid = if let RegionEncoder::Patches(map) = &model.image { map.grid() } else { None };
    let boxes = if let ImageItems::Regions(regions) = images { regions.boxes(image) } else { None };
    grid.map_or_else(|| Places::Boxes(boxes.unwrap_or_default().to_vec()), Places::Patches)
}
