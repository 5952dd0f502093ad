//! Which texts belong to which image.

use crate::{Error, Result};

/// The true pairs of a test set.
///
/// In a data set every text is written for one image ([`new`](Self::new)). Judgements may call a text true of several
/// images, or of none ([`judged`](Self::judged)).
///
/// ```
/// use itm_data::Pairs;
///
/// let pairs = Pairs::new(2, vec![0, 0, 1])?; // texts 0 and 1 describe image 0, text 2 image 1
/// assert_eq!(pairs.texts_of(0), [0, 1]);
/// assert_eq!(pairs.image_of(2), 1);
/// assert_eq!(pairs.captions_per_image(), None);
///
/// let judged = Pairs::judged(3, vec![vec![2, 0], vec![]])?; // text 0 is true of two images, text 1 of none
/// assert_eq!((judged.images_of(0), judged.texts_of(2)), (&[0, 2][..], &[0][..]));
/// assert_eq!((judged.unit_of(0), judged.unit_of(1)), (Some(0), None));
/// # Ok::<(), itm_data::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    texts_of_image: Groups,
    images_of_text: Groups,
    judged: bool,
}

/// Groups of numbers, one after the other: group `g` is `members[first[g]..first[g + 1]]`, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Groups {
    first: Vec<usize>,
    members: Vec<usize>,
}

impl Default for Groups {
    fn default() -> Self {
        Self { first: vec![0], members: vec![] }
    }
}

impl Groups {
    /// Group `key` has the places of `keys` where it stands. Every key is below `groups`.
    fn inverse(groups: usize, keys: &[usize], value: impl Fn(usize) -> usize) -> Self {
        let mut first = vec![0; groups + 1];
        keys.iter().for_each(|&key| first[key + 1] += 1);
        (0..groups).for_each(|g| first[g + 1] += first[g]);
        let (mut next, mut members) = (first.clone(), vec![0; keys.len()]);
        for (place, &key) in keys.iter().enumerate() {
            members[next[key]] = value(place);
            next[key] += 1;
        }
        Self { first, members }
    }

    fn len(&self) -> usize {
        self.first.len() - 1
    }

    fn of(&self, group: usize) -> &[usize] {
        assert!(group < self.len(), "number {group} of {} images or texts", self.len());
        &self.members[self.first[group]..self.first[group + 1]]
    }

    /// The group of each member.
    fn owners(&self) -> Vec<usize> {
        (0..self.len()).flat_map(|g| std::iter::repeat_n(g, self.of(g).len())).collect()
    }
}

impl Pairs {
    /// Pairs from the image of each text.
    ///
    /// # Errors
    /// If a text names an image that does not exist, or there are 2³² images or more. Images without a text are allowed here, but protocols refuse them.
    pub fn new(images: usize, image_of_text: Vec<usize>) -> Result<Self> {
        let first = (0..=image_of_text.len()).collect();
        Self::of_groups(images, Groups { first, members: image_of_text }, false)
    }

    /// Pairs from all images that each text is true of, in any order.
    ///
    /// A query without a true item is no query: recalls leave it out. As an item it stays.
    ///
    /// # Errors
    /// If a text names an image that does not exist, or there are 2³² images or more.
    pub fn judged(images: usize, images_of_text: Vec<Vec<usize>>) -> Result<Self> {
        let mut groups = Groups::default();
        for mut of_text in images_of_text {
            of_text.sort_unstable();
            of_text.dedup();
            groups.members.extend(of_text);
            groups.first.push(groups.members.len());
        }
        Self::of_groups(images, groups, true)
    }

    fn of_groups(images: usize, images_of_text: Groups, judged: bool) -> Result<Self> {
        let fits = u32::try_from(images).is_ok();
        Error::unless(fits, "pairs", "fewer than 2³² images", images)?;
        let wrong = |text: &usize| images_of_text.of(*text).iter().any(|&i| i >= images);
        if let Some(text) = (0..images_of_text.len()).find(wrong) {
            let place = format!("pairs, text {text}");
            let largest = images_of_text.of(text).iter().max().expect("this text has an image");
            return Err(Error::invalid(place, format!("an image below {images}"), largest));
        }
        let text_of_place = images_of_text.owners();
        let texts_of_image =
            Groups::inverse(images, &images_of_text.members, |place| text_of_place[place]);
        Ok(Self { texts_of_image, images_of_text, judged })
    }

    /// Texts `c·i … c·i + c − 1` belong to image `i`: the usual layout, `c = 5`.
    ///
    /// # Panics
    /// If there are 2³² images or texts or more.
    pub fn uniform(images: usize, captions_per_image: usize) -> Self {
        let texts = images.checked_mul(captions_per_image).map(u32::try_from);
        let few = u32::try_from(images).is_ok() && matches!(texts, Some(Ok(_)));
        assert!(few, "{images} images with {captions_per_image} texts each");
        let image_of_text = (0..images * captions_per_image).map(|t| t / captions_per_image);
        Self::new(images, image_of_text.collect()).expect("images of the pairs")
    }

    /// Number of images.
    pub fn images(&self) -> usize {
        self.texts_of_image.len()
    }

    /// Number of texts.
    pub fn texts(&self) -> usize {
        self.images_of_text.len()
    }

    /// The texts that are true of an image, ascending.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn texts_of(&self, image: usize) -> &[usize] {
        self.texts_of_image.of(image)
    }

    /// The images that a text is true of, ascending; one, unless the pairs are judged.
    ///
    /// # Panics
    /// If there is no such text.
    pub fn images_of(&self, text: usize) -> &[usize] {
        self.images_of_text.of(text)
    }

    /// The image that a text is counted with where images are resampled or split: the first that it is true of.
    ///
    /// # Panics
    /// If there is no such text.
    pub fn unit_of(&self, text: usize) -> Option<usize> {
        self.images_of(text).first().copied()
    }

    /// The texts that are counted with an image, ascending.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn unit(&self, image: usize) -> impl Iterator<Item = usize> {
        self.texts_of(image).iter().copied().filter(move |&t| self.unit_of(t) == Some(image))
    }

    /// The image of a text.
    ///
    /// # Panics
    /// If there is no such text, or the pairs are judged, and the text is true of no image.
    pub fn image_of(&self, text: usize) -> usize {
        self.unit_of(text).unwrap_or_else(|| panic!("text {text} is true of no image"))
    }

    /// The image of every text.
    ///
    /// # Panics
    /// If the pairs are judged: a text may have any number of images then.
    pub fn image_of_text(&self) -> &[usize] {
        assert!(!self.judged, "one image for each text, not judged pairs");
        &self.images_of_text.members
    }

    /// Whether a text is true of an image.
    ///
    /// # Panics
    /// If there is no such image or text.
    pub fn contains(&self, image: usize, text: usize) -> bool {
        assert!(image < self.images(), "image {image} of {}", self.images());
        self.images_of(text).binary_search(&image).is_ok()
    }

    /// Whether these are [judgements](Self::judged): a text may be true of several images, or of none.
    pub fn is_judged(&self) -> bool {
        self.judged
    }

    /// Every true pair, text by text: the image and the text of each.
    pub fn list(&self) -> (&[usize], Vec<usize>) {
        (&self.images_of_text.members, self.images_of_text.owners())
    }

    /// `c` if every image has exactly `c` texts.
    pub fn captions_per_image(&self) -> Option<usize> {
        let mut counts = (0..self.images()).map(|image| self.texts_of(image).len());
        let count = counts.next()?;
        counts.all(|other| other == count).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_is_the_general_form() {
        let image_of_text = (0..15).map(|t| t / 5).collect();
        assert_eq!(Pairs::uniform(3, 5), Pairs::new(3, image_of_text).unwrap());
        assert_eq!(Pairs::uniform(3, 5).captions_per_image(), Some(5));
    }

    #[test]
    fn interleaved_texts_are_grouped_by_image() {
        let pairs = Pairs::new(3, vec![2, 0, 2, 0, 0]).unwrap();
        assert_eq!(pairs.texts_of(0), [1, 3, 4]);
        assert_eq!(pairs.texts_of(1), [] as [usize; 0]);
        assert_eq!(pairs.texts_of(2), [0, 2]);
        assert_eq!(pairs.captions_per_image(), None);
    }

    #[test]
    fn judged_pairs_go_both_ways() {
        let pairs = Pairs::judged(3, vec![vec![2, 0, 2], vec![], vec![2]]).unwrap();
        assert_eq!(pairs.texts_of(0), [0]);
        assert_eq!(pairs.texts_of(1), [] as [usize; 0]);
        assert_eq!(pairs.texts_of(2), [0, 2]);
        assert_eq!(pairs.list(), (&[0, 2, 2][..], vec![0, 0, 2]));
        assert_eq!(
            pairs.unit(0).collect::<Vec<_>>(),
            [0],
            "a text is counted with its first image"
        );
        assert_eq!(pairs.unit(2).collect::<Vec<_>>(), [2]);
        assert!(pairs.contains(2, 0) && !pairs.contains(1, 0) && !pairs.contains(0, 1));
        let error = Pairs::judged(2, vec![vec![], vec![0, 3]]).unwrap_err().to_string();
        assert_eq!(error, "pairs, text 1: expected an image below 2, got 3");
    }

    #[test]
    fn an_unknown_image_is_refused() {
        let error = Pairs::new(2, vec![0, 2]).unwrap_err().to_string();
        assert_eq!(error, "pairs, text 1: expected an image below 2, got 2");
    }
}
