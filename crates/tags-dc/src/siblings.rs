//! Which words name the same thing, learnt from captions of one image.

use std::collections::HashSet;

use crate::words::distinct;

/// How many times more often than by chance a word must occur beside another word.
const TIMES_CHANCE: f64 = 3.0;
/// In how many sibling captions the word must occur at least.
const AT_LEAST: usize = 5;

/// Pairs of words: a caption stays true if one word of the pair replaces the other.
///
/// Siblings are the captions of one image. They name the same object by synonyms, or by wider words. A caption is *beside* `w` if it lacks
/// `w` and one of its siblings holds `w`. Then `x` is excluded for `w` if
///
/// ```text
/// #{beside w, holds x} ≥ 5   and   #{beside w, holds x} / #{beside w}  >  3 · #{lacks w, holds x} / #{lacks w}
/// ```
///
/// Words are given as numbers of word pieces or of lemmas. Learn the pairs from training captions only.
///
/// ```
/// use tags_dc::SiblingStatistics;
///
/// let [tiny, small, ball, cup] = [1, 2, 3, 4];
/// let mut images = vec![vec![vec![tiny, ball], vec![small, ball]]; 5];
/// images.extend(vec![vec![vec![cup], vec![cup]]; 40]);
/// let siblings = SiblingStatistics::fit(&images);
/// assert!(siblings.excludes(small, tiny)); // siblings use one for the other
/// assert!(!siblings.excludes(small, cup));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiblingStatistics {
    excluded: HashSet<(u32, u32)>,
}

impl SiblingStatistics {
    /// Learns the pairs from captions grouped by image.
    pub fn fit(images: &[Vec<Vec<u32>>]) -> Self {
        // Counts stand at the place of a word among all words: a word's number may be any.
        let all = distinct(images.iter().flatten().flatten().copied().collect());
        let place = |word: u32| all.binary_search(&word).expect("a word of a caption") as u32;
        let caption = |words: &Vec<u32>| distinct(words.iter().map(|&word| place(word)).collect());
        let images: Vec<Vec<Vec<u32>>> =
            images.iter().map(|captions| captions.iter().map(caption).collect()).collect();
        let captions = images.iter().map(Vec::len).sum::<usize>();
        let words = all.len();
        let mut holding = vec![0usize; words];
        let mut images_with: Vec<Vec<usize>> = vec![Vec::new(); words];
        for (image, of_image) in images.iter().enumerate() {
            for &word in of_image.iter().flatten() {
                holding[word as usize] += 1;
                let list = &mut images_with[word as usize];
                if list.last() != Some(&image) {
                    list.push(image);
                }
            }
        }
        let mut excluded = HashSet::new();
        // Of each word: the captions of these images that hold it and lack `w`, and those that hold both.
        let mut counts = vec![[0usize; 2]; words];
        let mut touched = vec![]; // the words with a count
        for w in 0..words {
            let mut beside = 0;
            for caption in images_with[w].iter().flat_map(|&image| &images[image]) {
                let holds = caption.binary_search(&(w as u32)).is_ok();
                beside += usize::from(!holds);
                for &x in caption {
                    if counts[x as usize] == [0, 0] {
                        touched.push(x);
                    }
                    counts[x as usize][usize::from(holds)] += 1;
                }
            }
            let lacking = captions - holding[w];
            for x in touched.drain(..) {
                let [near, with] = std::mem::take(&mut counts[x as usize]);
                let chance = (holding[x as usize] - with) as f64 / lacking.max(1) as f64;
                if near >= AT_LEAST && near as f64 / beside as f64 > TIMES_CHANCE * chance {
                    excluded.insert((all[w], all[x as usize]));
                }
            }
        }
        Self { excluded }
    }

    /// Whether `x` in the place of `w` may leave a caption true.
    pub fn excludes(&self, w: u32, x: u32) -> bool {
        self.excluded.contains(&(w, x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: u32 = 0;
    const X: u32 = 1;
    const OTHER: u32 = 2;

    /// `beside` images with a caption of `w` and one of `x`, and 2 captions without both in each of `rest` images.
    fn world(beside: usize, rest: usize) -> Vec<Vec<Vec<u32>>> {
        let mut images = vec![vec![vec![W], vec![X]]; beside];
        images.extend(vec![vec![vec![OTHER], vec![OTHER]]; rest]);
        images
    }

    #[test]
    fn five_captions_beside_are_needed() {
        assert!(!SiblingStatistics::fit(&world(4, 100)).excludes(W, X));
        assert!(SiblingStatistics::fit(&world(5, 100)).excludes(W, X));
    }

    /// By hand, 10 images with w: all 10 captions beside it hold x. Without w there are 10 + 2·rest captions, 10 of them with x: chance is
    /// 10 / (10 + 2·rest), a third of 1 at rest = 10. At rest = 10 the share is not *more* than three times chance.
    #[test]
    fn more_than_three_times_chance_is_needed() {
        assert!(!SiblingStatistics::fit(&world(10, 10)).excludes(W, X));
        assert!(SiblingStatistics::fit(&world(10, 11)).excludes(W, X));
    }

    /// `a dog and a cat`: two words in one caption name two things.
    #[test]
    fn captions_with_both_words_do_not_count() {
        let mut images = vec![vec![vec![W, X], vec![W]]; 50];
        images.extend(world(0, 100));
        assert!(!SiblingStatistics::fit(&images).excludes(W, X));
    }

    #[test]
    fn a_word_twice_in_a_caption_counts_once() {
        let mut images = vec![vec![vec![W, W], vec![X, X]]; 4];
        images.extend(world(0, 100));
        assert!(SiblingStatistics::fit(&images).excluded.is_empty());
    }

    #[test]
    fn a_word_may_have_any_number() {
        let mut images = world(5, 100);
        images.iter_mut().flatten().flatten().for_each(|word| *word = u32::MAX - *word);
        let siblings = SiblingStatistics::fit(&images);
        assert!(siblings.excludes(u32::MAX - W, u32::MAX - X) && !siblings.excludes(W, X));
    }

    #[test]
    fn no_caption_gives_no_pair() {
        assert!(SiblingStatistics::fit(&[]).excluded.is_empty());
        assert!(SiblingStatistics::fit(&[vec![], vec![vec![]]]).excluded.is_empty());
    }
}
