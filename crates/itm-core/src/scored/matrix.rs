//! Scores that are in memory, and the products of embeddings.

use std::ops::Range;

use super::{Scored, inside};
use crate::eval::Ranks;
use crate::tiles::{AnyConsumer, AnyState, Side, Tiles, TopK};
use crate::{Pairs, Result, ScoreMatrix};

impl Scored for ScoreMatrix {
    fn images(&self) -> usize {
        self.images()
    }

    fn texts(&self) -> usize {
        self.texts()
    }

    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        inside("images", &images, self.images());
        inside("texts", &texts, self.texts());
        let values = images.clone().flat_map(|i| &self.row(i)[texts.clone()]).copied().collect();
        Self::new(images.len(), texts.len(), values)
    }

    fn pairs(&self, images: &[usize], texts: &[usize]) -> Result<Vec<f32>> {
        assert_eq!(images.len(), texts.len(), "one image for each text");
        texts
            .iter()
            .for_each(|&text| assert!(text < self.texts(), "text {text} of {}", self.texts()));
        Ok(images.iter().zip(texts).map(|(&image, &text)| self.row(image)[text]).collect())
    }

    fn visit(&self, consumer: &AnyConsumer) -> Result<AnyState> {
        self.run(consumer)
    }

    fn ranks(&self, pairs: &Pairs) -> Result<Ranks> {
        Ranks::new(self, pairs)
    }
}

impl Scored for Tiles<'_> {
    fn images(&self) -> usize {
        self.images()
    }

    fn texts(&self) -> usize {
        self.texts()
    }

    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        Ok(self.block(images, texts))
    }

    fn pairs(&self, images: &[usize], texts: &[usize]) -> Result<Vec<f32>> {
        Ok(self.pair_scores(images, texts))
    }

    fn visit(&self, consumer: &AnyConsumer) -> Result<AnyState> {
        Ok(self.run(consumer))
    }

    fn top(&self, queries: Side, k: usize) -> Result<TopK> {
        Ok(self.top(queries, k))
    }

    fn scores_of(&self, queries: Side, some: &[usize]) -> Result<ScoreMatrix> {
        let tiles = match queries {
            // Low tiles, so that several threads share a few images.
            Side::Images => self.with_tile(1, self.tile.1),
            Side::Texts => *self,
        };
        Ok(tiles.with_queries(some, queries, |tiles| tiles.scores()))
    }

    fn ranks(&self, pairs: &Pairs) -> Result<Ranks> {
        self.ranks(pairs)
    }
}
