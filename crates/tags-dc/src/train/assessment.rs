//! The negatives that a model makes from captions after training, and the outputs of its word heads. Nothing is trained here.

use burn::module::Module;
use itm_core::data::Regions;
use itm_core::encoders::TokenBatch;
use itm_core::learn::Items;
use itm_core::{Error, Result, host};
use itm_kernels::{Noise, random};

use super::synthetic::TextMaskings;
use super::{Pool, TagsDc};
use crate::Purpose;
use crate::model::{RegionBatch, Uniter};
use crate::pool::among;
use crate::words::largest;

/// A sentence beside an image, as a model sees both.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// Tokens, with `[CLS]` and `[SEP]`.
    pub tokens: Vec<u32>,
    /// σ(s): the probability that sentence and image match.
    pub score: f32,
    /// What the word heads say about each token; `None` if the model has no word heads.
    pub words: Option<Vec<WordAssessment>>,
}

/// What the word heads say about a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WordAssessment {
    /// The probability that the token matches the image.
    pub matches: f32,
    /// The token that should be in its place.
    pub correction: u32,
}

impl TagsDc {
    /// What the model says about sentences beside an image of a split. The sentences have `[CLS]` and `[SEP]`.
    ///
    /// # Errors
    /// If the images are not regions of the model's width, a region cannot be read, or the image does not exist. Also if a sentence is empty,
    /// has more tokens than the model has positions, or has a token that the model does not have.
    pub fn assess(
        &self,
        items: &Items,
        image: usize,
        sentences: &[&[u32]],
    ) -> Result<Vec<Assessment>> {
        let regions = items.images.regions(self.model().shape.features)?;
        among("image", image, regions.len())?;
        self.model().shape.check_texts(sentences, |k| format!("sentence {k}"))?;
        if sentences.is_empty() {
            return Ok(vec![]);
        }
        judge(&self.model().valid(), regions, image, sentences)
    }

    /// A text of a split, and its negatives, the best first. They are made as in training, but without noise: the text is masked as the
    /// configuration says, refilled and filtered, and the best sentences stay. `phrases` are positions of the text's words; without phrases
    /// each word is its own phrase.
    /// With `filter = "siblings"` or `{ absent = … }` a loaded model that has made no step since needs
    /// [`learn_filter`](Self::learn_filter).
    ///
    /// # Errors
    /// As [`assess`](Self::assess); also if the text does not exist, or a phrase has a position outside the text.
    pub fn negatives(
        &self,
        items: &Items,
        text: usize,
        phrases: &[Vec<usize>],
        seed: u64,
    ) -> Result<(Assessment, Vec<Assessment>)> {
        let regions = items.images.regions(self.model().shape.features)?;
        among("text", text, items.texts.len())?;
        let (model, seed) = (self.model().valid(), random::derive(seed, text as u64));
        let tokens = self.marks.around(&items.texts[text]);
        self.model().shape.check_texts(&[&tokens], |_| format!("text {text}"))?;
        let masking = &self.config.masking;
        let mut rng = Purpose::Masks.stream(seed, 0);
        let phrases = masking.duplicates.of(phrases.to_vec());
        let rows = self.masker.maskings(&tokens, &phrases, masking.maskings, &mut rng);
        let image = items.pairs.image_of(text);
        let rows = rows.map_err(Error::inside(format!("caption {text}")))?;
        let masked = [TextMaskings { number: 0, image, text, rows }];
        let generator = self.generator().map_or_else(|| model.clone(), Module::valid);
        let logits = self.filled(&generator, &masked, regions, Noise::Off)?;
        let (pools, _) = self.pools(&masked, &logits, &model, (items, regions, None), seed)?;
        let Pool { positive, negatives, .. } = &pools[0];
        let mut sentences: Vec<&[u32]> = vec![positive];
        sentences.extend(negatives.iter().map(|negative| &negative.tokens[..]));
        let mut judged = judge(&model, regions, image, &sentences)?.into_iter();
        let caption = judged.next().expect("the caption itself");
        Ok((caption, judged.collect()))
    }
}

fn judge(
    model: &Uniter,
    regions: &Regions,
    image: usize,
    sentences: &[&[u32]],
) -> Result<Vec<Assessment>> {
    let embedded = model.embed_regions(&RegionBatch::of(regions, &[image])?);
    let texts = TokenBatch::new(sentences);
    let joint = model.join(&texts, &embedded, &vec![0; sentences.len()], Noise::Off);
    let scores = host(model.match_scores(&joint));
    let words = model.discrimination.is_some().then(|| {
        let asked = joint.every_token();
        let discrimination = host(model.discrimination_logits(&joint, &asked));
        let correction = host(model.correction_logits(&joint, &asked));
        let of_token = |(two, all): (&[f32], &[f32])| WordAssessment {
            matches: (1.0 / (1.0 + f64::from(two[0] - two[1]).exp())) as f32,
            correction: largest(all) as u32,
        };
        let v = correction.len() / asked.len();
        discrimination.chunks_exact(2).zip(correction.chunks_exact(v)).map(of_token).collect()
    });
    let mut words = words.map(|words: Vec<WordAssessment>| words.into_iter());
    let sentence = |(tokens, score): (&&[u32], f32)| Assessment {
        tokens: tokens.to_vec(),
        score,
        words: words.as_mut().map(|words| words.by_ref().take(tokens.len()).collect()),
    };
    Ok(sentences.iter().zip(scores).map(sentence).collect())
}
