//! How fluent sentences are: perplexity by a trigram model of captions, where no large language model is available.

use std::collections::{HashMap, HashSet};

/// A word that occurs in the captions once or never.
const UNKNOWN: u32 = 0;
/// The mark before a sentence, which occurs twice.
const START: u32 = 1;
/// The mark after a sentence.
const END: u32 = 2;

/// A trigram model of captions with interpolated Kneser-Ney smoothing.
///
/// ```text
/// p₃(w | u v) = max(c(uvw) − D₃, 0) / c(uv·)          + D₃ N(uv·)/c(uv·)  p₂(w | v)
/// p₂(w | v)   = max(N(·vw) − D₂, 0) / Σ_w N(·vw)      + D₂ N(v·)/Σ_w N(·vw)  p₁(w)
/// p₁(w)       = max(N(·w) − D₁, 0) / Σ_w N(·w)        + D₁ N(·)/Σ_w N(·w) / V
/// D           = n₁ / (n₁ + 2 n₂)
/// ```
///
/// | symbol | meaning |
/// |---|---|
/// | c(uvw) | how often the three words occur in this order |
/// | N(·vw), N(·w) | how many different words occur before these |
/// | N(uv·), N(v·), N(·) | how many different words follow with a count of their order above 0 |
/// | n₁, n₂ | how many entries of an order have count 1 and count 2 |
/// | V | number of words, with the unknown word and the end of a sentence |
///
/// Words are compared in lower case. Punctuation marks are words. Words that occur once in the captions count as one unknown word. After a
/// context that was never seen, the probability comes from the shorter context.
///
/// The paper measures fluency with GPT-2. This model replaces GPT-2: compare its perplexities with each other, never with the paper's.
///
/// ```
/// use tags_dc::fluency::{Fluency, Trigrams};
///
/// let captions = ["A dog runs.", "A cat runs.", "A dog sleeps.", "A cat sleeps.", "A dog runs fast."];
/// let model = Trigrams::fit(captions);
/// let read = Fluency::of(&model, ["A dog runs."]).unwrap();
/// let shuffled = Fluency::of(&model, ["runs A. dog"]).unwrap();
/// assert!(read.mean_perplexity < shuffled.mean_perplexity);
/// ```
///
/// Source: Kneser and Ney, Improved backing-off for m-gram language modeling, ICASSP 1995; the interpolated form is Chen and Goodman's (1999).
#[derive(Debug, Clone)]
pub struct Trigrams {
    numbers: HashMap<String, u32>,
    three: HashMap<(u32, u32), Followers>,
    two: HashMap<u32, Followers>,
    one: Followers,
    /// D of the orders 1, 2 and 3.
    discounts: [f64; 3],
}

/// Counts of what follows a context.
#[derive(Debug, Clone, Default)]
struct Followers {
    counts: HashMap<u32, u64>,
    sum: u64,
}

impl Followers {
    fn add(&mut self, word: u32) {
        *self.counts.entry(word).or_default() += 1;
        self.sum += 1;
    }

    /// The probability of `word`, where `shorter` is its probability after the shorter context.
    fn probability(&self, word: u32, discount: f64, shorter: f64) -> f64 {
        if self.sum == 0 {
            return shorter;
        }
        let count = self.counts.get(&word).map_or(0.0, |&count| count as f64);
        let rest = discount * self.counts.len() as f64;
        ((count - discount).max(0.0) + rest * shorter) / self.sum as f64
    }
}

impl Trigrams {
    /// Fits the model to training captions.
    pub fn fit<'a>(captions: impl IntoIterator<Item = &'a str>) -> Self {
        let captions: Vec<Vec<String>> = captions.into_iter().map(words).collect();
        let mut often: HashMap<&str, u64> = HashMap::new();
        captions.iter().flatten().for_each(|word| *often.entry(word).or_default() += 1);
        let mut known: Vec<&str> =
            often.iter().filter(|(_, count)| **count > 1).map(|(word, _)| *word).collect();
        known.sort_unstable();
        let numbers = known.into_iter().map(str::to_owned).zip(END + 1..).collect();
        let mut one = Followers::default();
        let mut two: HashMap<u32, Followers> = HashMap::new();
        let mut three: HashMap<(u32, u32), Followers> = HashMap::new();
        let (mut pairs, mut triples) = (HashSet::new(), HashSet::new());
        for caption in &captions {
            for words in numbered(&numbers, caption).windows(3) {
                let [u, v, w] = [words[0], words[1], words[2]];
                three.entry((u, v)).or_default().add(w);
                if triples.insert((u, v, w)) {
                    two.entry(v).or_default().add(w);
                }
                if pairs.insert((v, w)) {
                    one.add(w);
                }
            }
        }
        let discounts =
            [discount([&one].into_iter()), discount(two.values()), discount(three.values())];
        Self { numbers, three, two, one, discounts }
    }

    fn probability(&self, u: u32, v: u32, w: u32) -> f64 {
        let [one, two, three] = self.discounts;
        let words = (self.numbers.len() + 2) as f64; // START is not predicted
        let of_one = self.one.probability(w, one, 1.0 / words);
        let of_two = self.two.get(&v).map_or(of_one, |f| f.probability(w, two, of_one));
        self.three.get(&(u, v)).map_or(of_two, |f| f.probability(w, three, of_two))
    }

    /// −Σ ln p over the words of a sentence and its end, and the number of these terms.
    pub(crate) fn surprise(&self, sentence: &str) -> (f64, usize) {
        let numbers = numbered(&self.numbers, &words(sentence));
        let each =
            numbers.windows(3).map(|three| -self.probability(three[0], three[1], three[2]).ln());
        (each.sum(), numbers.len() - 2)
    }
}

/// Words and signs in lower case.
fn words(text: &str) -> Vec<String> {
    crate::phrases::parse(text).words.into_iter().map(|word| word.text.to_lowercase()).collect()
}

/// The numbers of the words, with two marks before and one mark after them.
fn numbered(numbers: &HashMap<String, u32>, words: &[String]) -> Vec<u32> {
    let number = |word: &String| numbers.get(word).copied().unwrap_or(UNKNOWN);
    [START, START].into_iter().chain(words.iter().map(number)).chain([END]).collect()
}

/// `n₁ / (n₁ + 2 n₂)`; one half where no entry has count 1.
fn discount<'a>(all: impl Iterator<Item = &'a Followers>) -> f64 {
    let (mut once, mut twice) = (0u64, 0u64);
    for &count in all.flat_map(|followers| followers.counts.values()) {
        once += u64::from(count == 1);
        twice += u64::from(count == 2);
    }
    if once == 0 { 0.5 } else { once as f64 / (once + 2 * twice) as f64 }
}

/// Perplexity of some sentences, averaged in three ways. The released program prints all three; the paper does not say which one it uses.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fluency {
    /// Mean over sentences of `exp(mean −ln p of a sentence)`.
    pub mean_perplexity: f64,
    /// `exp` of the mean over sentences of the mean −ln p of a sentence.
    pub of_mean_sentence: f64,
    /// `exp` of the mean −ln p of all words.
    pub of_mean_word: f64,
    /// Number of sentences.
    pub sentences: u64,
}

impl Fluency {
    /// The perplexity of these sentences; `None` without sentences.
    pub fn of<'a>(model: &Trigrams, sentences: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let read = sentences.into_iter().map(|sentence| model.surprise(sentence));
        let (surprises, lengths): (Vec<f64>, Vec<usize>) = read.unzip();
        let n = lengths.len() as f64;
        let means = || surprises.iter().zip(&lengths).map(|(sum, &words)| sum / words as f64);
        let of_mean_word = surprises.iter().sum::<f64>() / lengths.iter().sum::<usize>() as f64;
        (!lengths.is_empty()).then(|| Self {
            mean_perplexity: means().map(f64::exp).sum::<f64>() / n,
            of_mean_sentence: (means().sum::<f64>() / n).exp(),
            of_mean_word: of_mean_word.exp(),
            sentences: lengths.len() as u64,
        })
    }

    /// The mean over several models that made sentences, with all their sentences; `None` without any.
    pub fn mean(of: impl IntoIterator<Item = Self>) -> Option<Self> {
        let all: Vec<Self> = of.into_iter().collect();
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        (!all.is_empty()).then(|| Self {
            mean_perplexity: mean(|f| f.mean_perplexity),
            of_mean_sentence: mean(|f| f.of_mean_sentence),
            of_mean_word: mean(|f| f.of_mean_word),
            sentences: all.iter().map(|f| f.sentences).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTIONS: [&str; 6] = [
        "a dog runs",
        "a dog sleeps",
        "a cat runs",
        "the cat sleeps",
        "the dog runs",
        "a bird sings",
    ];

    /// After every context, seen or not, the probabilities of all words and of the end sum to 1.
    #[test]
    fn probabilities_sum_to_one() {
        let model = Trigrams::fit(CAPTIONS);
        assert_eq!(model.numbers.len(), 6, "bird and sings come once");
        let all = || [UNKNOWN, END].into_iter().chain(END + 1..END + 7);
        for u in [START, UNKNOWN, 3, 5, 8] {
            for v in [START, UNKNOWN, 4, 6] {
                let sum: f64 = all().map(|w| model.probability(u, v, w)).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{u} {v}: {sum}");
                assert!(all().all(|w| model.probability(u, v, w) > 0.0), "{u} {v}");
            }
        }
    }

    /// By hand. Captions `x y`, `x y`, `x x`: V = 4 (x, y, unknown, end).
    ///
    /// After two marks always x: count 3. After (mark, x): y twice, x once. After (x, y): end twice; after (x, x): end once.
    /// Distinct triples by their last two: mark x; x y, x x; y end; x end — each once, so D₂ = 1, and p₂ is p₁ throughout.
    /// Distinct pairs by their last: x after mark and x: 2; y 1; end after y and x: 2. n₁ = 1, n₂ = 2: D₁ = 1/5.
    /// p₁(y) = (1 − 1/5)/5 + 1/5 · 3/5 · 1/4 = 0.16 + 0.03 = 0.19, and p₁(x) = 0.36 + 0.03 = 0.39.
    /// Counts of triples 3, 2, 1, 2, 1: n₁ = 2, n₂ = 2, D₃ = 1/3.
    #[test]
    fn golden_probabilities() {
        let model = Trigrams::fit(["x y", "x y", "x x"]);
        let [x, y] = ["x", "y"].map(|word| model.numbers[word]);
        let near = |got: f64, want: f64| assert!((got - want).abs() < 1e-12, "{got}, not {want}");
        near(
            model.probability(START, x, y),
            (2.0 - 1.0 / 3.0) / 3.0 + (1.0 / 3.0) * (2.0 / 3.0) * 0.19,
        );
        near(model.probability(START, START, x), (3.0 - 1.0 / 3.0) / 3.0 + (1.0 / 9.0) * 0.39);
        near(model.probability(y, y, x), 0.39); // an unseen context; after y, D₂ takes all
        let end = (2.0 - 1.0 / 3.0) / 2.0 + (1.0 / 6.0) * 0.39;
        let want =
            -(model.probability(START, START, x) * model.probability(START, x, y) * end).ln();
        let (surprise, words) = model.surprise("X y");
        near(surprise, want);
        assert_eq!(words, 3);
    }

    /// By hand: sentences of two and of one word.
    #[test]
    fn golden_averages() {
        let model = Trigrams::fit(CAPTIONS);
        let (long, short) = (model.surprise("a dog"), model.surprise("sleeps"));
        let [a, b] = [long.0 / 3.0, short.0 / 2.0];
        let got = Fluency::of(&model, ["a dog", "sleeps"]).unwrap();
        assert!((got.mean_perplexity - (a.exp() + b.exp()) / 2.0).abs() < 1e-9);
        assert!((got.of_mean_sentence - ((a + b) / 2.0).exp()).abs() < 1e-9);
        assert!((got.of_mean_word - ((long.0 + short.0) / 5.0).exp()).abs() < 1e-9);
        assert_eq!(got.sentences, 2);
        assert_eq!(Fluency::of(&model, []), None);
    }

    #[test]
    fn words_of_no_caption_are_one_unknown_word() {
        let model = Trigrams::fit(CAPTIONS);
        assert_eq!(model.surprise("a zebra runs"), model.surprise("a bird runs"));
        assert!(model.surprise("a dog runs").0 < model.surprise("a zebra runs").0);
    }

    /// Without captions the two entries, unknown and end, are equally probable.
    #[test]
    fn without_captions_everything_is_equally_probable() {
        let model = Trigrams::fit([]);
        let (surprise, words) = model.surprise("a dog");
        assert!((surprise - 3.0 * 2f64.ln()).abs() < 1e-12);
        assert_eq!(words, 3);
    }
}
