//! Pictures for a model: separate threads prepare them while the model computes.

use std::sync::Arc;

use itm_core::Result;
use itm_core::data::Split;
use itm_core::learn::PictureItems;
use itm_core::vision::{
    Ahead, Augment, Fit, Picture, PictureBatch, PictureSource, Prefetch, Transform,
};
use itm_kernels::random;

use crate::source::Source;

/// Batches that are ready or in preparation.
pub(crate) const BATCHES_AHEAD: usize = 4;
/// Pictures per batch in evaluation.
const EVALUATION_BATCH: usize = 16;

/// How a model sees pictures.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// For training; `None` if training sees pictures as evaluation does.
    pub augment: Option<Augment>,
    /// For evaluation.
    pub transform: Transform,
}

/// The pictures of all splits, and the batches of the next steps.
pub(crate) struct Pictures {
    view: View,
    /// In the order of [`Split::ALL`].
    pub(crate) splits: [OfSplit; 3],
    next: Option<Prefetch<(Job, PictureBatch)>>,
}

/// The pictures of one split as evaluation sees them.
pub(crate) struct OfSplit {
    transform: Transform,
    all: Arc<Vec<PictureSource>>,
}

/// Numbers of the images of a step, and the seed of their augmentation.
type Job = (Vec<usize>, u64);

impl Pictures {
    /// Finds the pictures of every split.
    ///
    /// # Errors
    /// If a picture is missing.
    pub(crate) fn new(source: &Source, view: View) -> Result<Self> {
        let transform = view.transform;
        let of = |split| Ok(OfSplit { transform, all: Arc::new(source.pictures(split)?) });
        let [train, val, test] = Split::ALL.map(of);
        Ok(Self { view, splits: [train?, val?, test?], next: None })
    }

    /// The share of a picture's shorter side that evaluation sees, in the centre; `None`: the whole picture.
    pub(crate) fn crop(&self) -> Option<f32> {
        match self.view.transform {
            Transform { fit: Fit::Crop { shorter, .. }, size, .. } => {
                Some(size as f32 / shorter as f32)
            }
            _ => None,
        }
    }

    /// Begins to make the pictures of these steps.
    pub(crate) fn ahead(&mut self, steps: Vec<Job>) {
        let (view, train) = (self.view, self.splits[Split::Train as usize].all.clone());
        let prepare = move |job: Job| Ok((job.clone(), batch(&view, &train, &job)?));
        self.next = Some(Prefetch::new(steps, reach(), prepare));
    }

    /// The pictures of a step: the next pictures that were made ahead, or else pictures made now.
    ///
    /// # Errors
    /// If a picture cannot be read.
    ///
    /// # Panics
    /// If another step was made ahead.
    pub(crate) fn step(&mut self, images: &[usize], seed: u64) -> Result<PictureBatch> {
        match self.next.as_mut().and_then(Iterator::next) {
            Some(ready) => {
                let (job, pictures) = ready?;
                assert_eq!(job, (images.to_vec(), seed), "pictures of another step");
                Ok(pictures)
            }
            None => {
                batch(&self.view, &self.splits[Split::Train as usize].all, &(images.to_vec(), seed))
            }
        }
    }
}

impl PictureItems for OfSplit {
    fn len(&self) -> usize {
        self.all.len()
    }

    fn batch(&self) -> usize {
        EVALUATION_BATCH
    }

    fn some(&self, images: &[usize]) -> Box<dyn Iterator<Item = Result<PictureBatch>> + '_> {
        let plain = |&image: &usize| Picture { source: self.all[image].clone(), seed: 0 };
        let batches = images.chunks(EVALUATION_BATCH).map(|part| part.iter().map(plain).collect());
        let transform = self.transform;
        let evaluation = move |pictures: Vec<_>| PictureBatch::evaluation(&pictures, &transform);
        Box::new(Prefetch::new(batches.collect::<Vec<_>>(), reach(), evaluation))
    }
}

fn batch(view: &View, all: &[PictureSource], (images, seed): &Job) -> Result<PictureBatch> {
    let picture = |(k, &image): (usize, &usize)| Picture {
        source: all[image].clone(),
        seed: random::derive(*seed, k as u64),
    };
    let pictures: Vec<_> = images.iter().enumerate().map(picture).collect();
    match &view.augment {
        Some(augment) => PictureBatch::training(&pictures, augment),
        None => PictureBatch::evaluation(&pictures, &view.transform),
    }
}

fn reach() -> Ahead {
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    Ahead { workers, results: BATCHES_AHEAD }
}

#[cfg(test)]
mod tests {
    use itm_core::vision::CropRounding;

    use super::*;
    use crate::tests;

    fn source() -> Source {
        tests::small_scenes([7, 2, 20]).1
    }

    fn pictures(source: &Source) -> Pictures {
        let transform = Transform { size: 16, ..Transform::default() };
        let augment = Some(Augment { transform, ..Augment::default() });
        Pictures::new(source, View { augment, transform }).unwrap()
    }

    #[test]
    fn a_crop_is_a_share_of_the_shorter_side() {
        let source = source();
        assert_eq!(pictures(&source).crop(), None);
        let fit = Fit::Crop { shorter: 32, rounding: CropRounding::Down };
        let transform = Transform { size: 24, fit, ..Transform::default() };
        let of_centre = Pictures::new(&source, View { augment: None, transform }).unwrap();
        assert_eq!(of_centre.crop(), Some(0.75));
    }

    /// A step's pictures depend only on its images and its seed, not on when or where they are made.
    #[test]
    fn pictures_made_ahead_are_those_made_now() {
        let source = source();
        let jobs: Vec<Job> = (0..9).map(|k| (vec![k % 7, (k * 3) % 7], 100 + k as u64)).collect();
        let (mut ahead, mut now) = (pictures(&source), pictures(&source));
        ahead.ahead(jobs.clone());
        let mut all = vec![];
        for (images, seed) in &jobs {
            let batch = ahead.step(images, *seed).unwrap();
            assert_eq!(batch, now.step(images, *seed).unwrap());
            all.push(batch.values);
        }
        assert_eq!(all[0].len(), 2 * 3 * 16 * 16);
        assert_ne!(all[0], all[7], "the same images under another seed"); // images 0 and 0, twice
        assert_ne!(all[0][..768], all[0][768..], "each picture of a step has noise of its own");
        // A step after the last one is made at once.
        assert_eq!(ahead.step(&[1], 5).unwrap(), now.step(&[1], 5).unwrap());
    }

    #[test]
    fn a_split_is_whole_and_in_order() {
        let source = source();
        let pictures = pictures(&source);
        let test = &pictures.splits[Split::Test as usize];
        let in_order: Vec<usize> = (0..test.len()).collect();
        let all: Vec<_> = test.some(&in_order).map(|batch| batch.unwrap()).collect();
        assert_eq!(all.iter().map(|b| b.images).collect::<Vec<_>>(), [16, 4]);
        let last = Picture { source: test.all[19].clone(), seed: 9 };
        let want = PictureBatch::evaluation(&[last], &pictures.view.transform).unwrap();
        assert_eq!(all[1].values[3 * 768..], want.values);
        let some: Vec<_> = test.some(&[19, 3]).map(|b| b.unwrap()).collect();
        assert_eq!((some.len(), some[0].images, &some[0].values[..768]), (1, 2, &want.values[..]));
    }

    #[test]
    #[should_panic(expected = "pictures of another step")]
    fn another_step_than_the_next_is_a_mistake() {
        let source = source();
        let mut pictures = pictures(&source);
        pictures.ahead(vec![(vec![1], 1)]);
        _ = pictures.step(&[2], 1);
    }
}
