//! What a training loop calls: [`Method`] for [`Naaf`].

use std::path::Path;

use burn::module::Module;
use itm_core::Result;
use itm_core::learn::{Batch, Items, Method, Observe, Step, WordMaps, WordPairs, first_non_finite};
use itm_core::scored::{EmbeddingRows, Scored, Similarity};

use crate::all_pairs::CrossScores;
use crate::config::Score;
use crate::rows;
use crate::step::Naaf;

impl Method for Naaf {
    /// # Errors
    /// If the images are not regions, or are regions of another width.
    fn begin_epoch(&mut self, epoch: usize, train: Items) -> Result<()> {
        train.images.regions(self.region_dim())?;
        self.learner.begin_epoch(epoch);
        Ok(())
    }

    /// One update of the encoders and of the boundary. The boundary moves by the scores before the update.
    ///
    /// # Errors
    /// If the parts of the batch do not have one row per pair; if the images are not regions of the right width, or an image has no
    /// region; if a value of a region, a score, the loss or the norm of its gradients is not finite; if a caption has no word, or a
    /// word's number is outside the vocabulary. A step that fails changes nothing.
    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        self.step_by(batch, seed, observe)
    }

    /// Uses the boundary of inference, and intra-text propagation if the config has it.
    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>> {
        let regions = items.images.regions(self.region_dim())?;
        self.encoders().check_texts(items.texts)?;
        let (model, config, dim) =
            (self.encoders().valid(), &self.config, self.config.model.embed_dim);
        if config.model.score == Score::Global {
            let (images, texts) =
                (rows::of_images(&model, regions)?, rows::of_texts(&model, items.texts));
            let similarity = Similarity::Cosine;
            return Ok(Box::new(EmbeddingRows { dim, images, texts, similarity }));
        }
        let lengths: Vec<usize> = items.texts.iter().map(Vec::len).collect();
        let images = (rows::of_regions(&model, regions)?, regions.counts());
        let texts = (rows::of_words(&model, items.texts, dim), &lengths[..]);
        let boundary = self.boundary.inference(&config.mining) as f32;
        Ok(Box::new(CrossScores::new(images, texts, dim, boundary, &config.attention)?))
    }

    fn non_finite(&self) -> Option<String> {
        first_non_finite("encoders", self.encoders())
    }

    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        self.write(write)
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        *self = self.read(folder)?;
        Ok(())
    }

    /// Takes over the boundary too, because scores depend on it.
    fn start_from(&mut self, folder: &Path) -> Result<()> {
        *self = self.begun_from(folder)?;
        Ok(())
    }

    fn word_maps(&self, pairs: WordPairs) -> Result<Option<Vec<WordMaps>>> {
        self.maps(pairs)
    }
}
