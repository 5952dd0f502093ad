//! What the words of captions add to scores and take from them.

use burn::module::Module;
use itm_core::encoders::InputDropout;
use itm_core::learn::{WordMaps, WordPairs};
use itm_core::{Result, host};

use crate::config::Score;
use crate::effects::effects;
use crate::model::RegionBatch;
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
        let regions = items.images.regions(self.region_dim())?;
        self.encoders().check_texts(items.texts)?;
        let (model, config) = (self.encoders().valid(), &self.config);
        let boundary = self.boundary.inference(&config.mining) as f32;
        let mut maps = Vec::with_capacity(pairs.len());
        for &(image, text) in pairs {
            let rows = regions.rows(&[image])?;
            let v = host(model.regions(RegionBatch::from(&rows), InputDropout::Off).rows);
            let u = host(model.words(&items.texts[text..=text], InputDropout::Off).rows);
            let found = effects(&v, &u, config.model.embed_dim, boundary, &config.attention)?;
            let Some(effects) = found else { return Ok(None) };
            maps.push(effects.maps(regions.boxes(image), &words(text)?));
        }
        Ok(Some(maps))
    }
}
