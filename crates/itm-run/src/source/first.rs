//! Validation and test cut to their first images: a model with one forward pass per pair cannot afford all pairs of a split.

use itm_core::data::SplitData;
use itm_core::eval::Fold;
use itm_core::{Error, Result};

use super::{Source, Truth};
use crate::config::Config;

impl Source {
    /// The data with only the validation and test images that a target evaluates.
    ///
    /// # Errors
    /// If a split has fewer images.
    pub(super) fn first(mut self, config: &Config) -> Result<Self> {
        let Some(images) = config.target.images else { return Ok(self) };
        let all = self.dataset.test.images.len();
        let check = |name: &str, part: &SplitData| {
            let got = part.images.len();
            let expected = format_args!("at most {got}, the images of the {name} split");
            Error::unless(images <= got, config.place("target.images"), expected, images)
        };
        check("validation", &self.dataset.val)?;
        check("test", &self.dataset.test)?;
        cut(&mut self.dataset.val, images)?;
        let fold = cut(&mut self.dataset.test, images)?;
        self.truth = self.truth.map(|Truth { train, test }| Truth {
            train,
            test: test.within(fold.images.clone(), &fold.texts),
        });
        for set in &mut self.judgements {
            set.i2t = set.i2t.within(fold.images.clone(), &fold.texts);
            set.t2i = set.t2i.within(fold.images.clone(), &fold.texts);
        }
        self.judgements.retain(|set| !set.i2t.is_empty() && !set.t2i.is_empty());
        self.first_of = Some(all);
        Ok(self)
    }
}

/// Keeps only the first images of a split, with all their texts.
fn cut(part: &mut SplitData, images: usize) -> Result<Fold> {
    let fold = Fold::new(&part.pairs, 0..images);
    part.keep(&(0..images).collect::<Vec<_>>())?;
    Ok(fold)
}

#[cfg(test)]
mod tests {
    use itm_core::Pairs;

    use super::*;
    use crate::tests;

    /// Only the first images and their texts are left, with everything the source knows about them. Training is unchanged.
    #[test]
    fn the_first_images_with_what_belongs_to_them() {
        let (mut config, whole) = tests::small_scenes([6, 4, 5]);
        config.target.images = Some(3);
        let part = tests::small_scenes([6, 4, 5]).1.first(&config).unwrap();
        let (test, all) = (&part.dataset.test, &whole.dataset.test);
        assert_eq!((test.images.len(), part.dataset.val.images.len()), (3, 3));
        assert_eq!(part.dataset.train.images, whole.dataset.train.images);
        assert_eq!(test.captions[..], all.captions[..15]);
        assert_eq!(test.features.values[..], all.features.values[..3 * all.features.dim]);
        assert_eq!(part.first_of, Some(5));
        let [few, many] = [&part, &whole].map(|source| &source.truth.as_ref().unwrap().test);
        assert_eq!((few.images(), few.texts()), (3, 15));
        let pairs = (0..3).flat_map(|i| (0..15).map(move |t| (i, t)));
        assert!(pairs.clone().all(|(i, t)| few.contains(i, t) == many.contains(i, t)));
        let [few, many] = [&part, &whole].map(|s| s.odds(itm_core::data::Split::Test).unwrap());
        assert_eq!((few.as_ref().unwrap().images(), few.as_ref().unwrap().texts()), (3, 15));
        assert_eq!(few.unwrap().row(2), &many.unwrap().row(2)[..15]);

        config.target.images = Some(5);
        let line = tests::small_scenes([6, 4, 5]).1.first(&config).err().unwrap().to_string();
        assert!(line.contains("target.images: expected at most 4"), "{line}");
    }

    /// The texts of the first images may be anywhere in the split.
    #[test]
    fn captions_need_no_order() {
        let (_, mut source) = tests::small_scenes([6, 1, 3]);
        let part = &mut source.dataset.test;
        part.captions = ["a", "b", "c", "d"].map(String::from).into();
        part.pairs = Pairs::new(3, vec![1, 2, 0, 1]).unwrap();
        cut(part, 2).unwrap();
        assert_eq!(part.captions, ["a", "c", "d"]);
        assert_eq!((0..3).map(|t| part.pairs.image_of(t)).collect::<Vec<_>>(), [1, 0, 1]);
    }
}
