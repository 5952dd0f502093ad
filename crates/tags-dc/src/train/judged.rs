//! The negatives that a model makes of captions after training, and what its heads say of the words. Nothing is trained here.

use burn::module::Module;
use itm_core::data::Regions;
use itm_core::encoders::TokenBatch;
use itm_core::learn::Items;
use itm_core::{Error, Result, host};
use itm_kernels::{Noise, random};

use super::TagsDc;
use super::objective::word_logits;
use super::refused::{check_tokens, of_caption};
use super::synthetic::{Maker, MaskedText, Pool};
use crate::model::{RegionBatch, Uniter};
use crate::words::largest;
use crate::{Purpose, Streams};

/// A sentence beside an image, as a model sees both.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// With `[CLS]` and `[SEP]`.
    pub tokens: Vec<u32>,
    /// σ(s): how probable it is that sentence and image match.
    pub score: f32,
    /// What the heads of words say of each token; `None` where the model has none.
    pub words: Option<Vec<JudgedWord>>,
}

/// What the heads of words say of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedWord {
    /// How probable it is that the token matches the image.
    pub matches: f32,
    /// The token that should stand there.
    pub correction: u32,
}

/// A caption and the synthetic sentences that passed the filter, the best first.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedPool {
    /// The caption.
    pub caption: Judged,
    /// Its negatives.
    pub negatives: Vec<Judged>,
}

impl TagsDc {
    /// What the model says of sentences beside an image of a split. The sentences have `[CLS]` and `[SEP]`.
    ///
    /// # Errors
    /// If the images are no regions of the model's width, or a region cannot be read; names an image that is not there, and a sentence
    /// that is empty, has more tokens than the model has positions, or a token that the model does not have.
    pub fn judged(&self, items: &Items, image: usize, sentences: &[&[u32]]) -> Result<Vec<Judged>> {
        let regions = items.images.regions(self.model().shape.features)?;
        if image >= regions.len() {
            let expected = format!("a number below {}", regions.len());
            return Err(Error::invalid("image", expected, image));
        }
        check_tokens(self.model(), sentences, |k| format!("sentence {k}"))?;
        if sentences.is_empty() {
            return Ok(vec![]);
        }
        judge(&self.model().valid(), regions, image, sentences)
    }

    /// The negatives of a text of a split as training makes them, but without noise: masked as the configuration says, refilled, filtered,
    /// the best of them. `phrases` are positions of the text's words; without a phrase each word is one. With `filter = "siblings"` a model
    /// that was loaded and has made no step since then needs [`with_siblings_of`](Self::with_siblings_of).
    ///
    /// # Errors
    /// As [`judged`](Self::judged); if the text is not there, or a phrase names no word of it.
    pub fn negatives(
        &self,
        items: &Items,
        text: usize,
        phrases: &[Vec<usize>],
        seed: u64,
    ) -> Result<JudgedPool> {
        let regions = items.images.regions(self.model().shape.features)?;
        let Some(words) = items.texts.get(text) else {
            let expected = format!("a number below {}", items.texts.len());
            return Err(Error::invalid("text", expected, text));
        };
        let (model, seed) = (self.model().valid(), random::derive(seed, text as u64));
        let tokens = self.marks.around(words);
        check_tokens(self.model(), &[&tokens], |_| format!("text {text}"))?;
        let masking = &self.config.masking;
        let mut rng = Streams { seed, round: 0 }.of(Purpose::Masks, 0);
        let rows = self.masker.maskings(&tokens, phrases, masking.maskings, &mut rng);
        let image = items.pairs.image_of(text);
        let masked = [MaskedText { number: 0, image, text, rows: rows.map_err(of_caption(text))? }];
        let generator = self.generator.as_ref().unwrap_or(&model);
        let logits = host(word_logits(generator, &masked, regions, Noise::Off)?);
        let maker = Maker::new(&self.config.synthetic, self.marks, &self.siblings);
        let (pools, _) = maker.pools(&masked, &logits, &model, (items, regions), seed)?;
        let Pool { positive, negatives, .. } = &pools[0];
        let mut sentences: Vec<&[u32]> = vec![positive];
        sentences.extend(negatives.iter().map(|negative| &negative.tokens[..]));
        let mut judged = judge(&model, regions, image, &sentences)?.into_iter();
        let caption = judged.next().expect("the caption itself");
        Ok(JudgedPool { caption, negatives: judged.collect() })
    }
}

fn judge(
    model: &Uniter,
    regions: &Regions,
    image: usize,
    sentences: &[&[u32]],
) -> Result<Vec<Judged>> {
    let embedded = model.embed_regions(&RegionBatch::of(regions, &[image])?);
    let texts = TokenBatch::new(sentences);
    let joint = model.join(&texts, &embedded, &vec![0; sentences.len()], Noise::Off);
    let scores = host(model.match_scores(&joint));
    let words = model.discrimination.is_some().then(|| {
        let asked = joint.every_token();
        let discrimination = host(model.discrimination_logits(&joint, &asked));
        let correction = host(model.correction_logits(&joint, &asked));
        let of_token = |(two, all): (&[f32], &[f32])| JudgedWord {
            matches: (1.0 / (1.0 + f64::from(two[0] - two[1]).exp())) as f32,
            correction: largest(all) as u32,
        };
        let v = correction.len() / asked.len();
        discrimination.chunks_exact(2).zip(correction.chunks_exact(v)).map(of_token).collect()
    });
    let mut words = words.map(|words: Vec<JudgedWord>| words.into_iter());
    let sentence = |(tokens, score): (&&[u32], f32)| Judged {
        tokens: tokens.to_vec(),
        score,
        words: words.as_mut().map(|words| words.by_ref().take(tokens.len()).collect()),
    };
    Ok(sentences.iter().zip(scores).map(sentence).collect())
}
