//! What every request shares.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State as Extract;
use itm_core::files::sha256_hex;
use tokio::sync::Semaphore;

use super::desk::Desk;
use super::refusal::{Refusal, bad};
use super::{Limits, Options};
use crate::{Picture, Query, Searcher, Why};

/// Searches that run at a time. They wait for each other and then share one pass over the rows, so there are more of them than cores.
pub(crate) const SEARCHES: usize = 32;
/// Heat maps that are kept: the page asks for one word after another of the same query and picture.
const KEPT: usize = 16;
/// Folders that the page offers as a filter.
const MOST_FOLDERS: usize = 500;
/// Spreads of the number of first answers above their mean from where a picture is a hub.
const SPREADS: f64 = 2.0;

/// The searcher, what was counted of its index at the start, and the queues.
pub(crate) struct State {
    pub(crate) searcher: Searcher,
    /// Numbers of all pictures, the newest first.
    pub(crate) newest: Vec<usize>,
    /// All folders, at most 500.
    pub(crate) folders: Vec<String>,
    /// Pictures that answer far more ordinary queries than others, most first.
    pub(crate) hubs: Vec<usize>,
    pub(crate) loopback: bool,
    pub(crate) token: Option<String>,
    pub(crate) searches: Desk,
    pub(crate) pictures: Desk,
    pub(crate) uploads: Semaphore,
    whys: Mutex<VecDeque<Kept>>,
}

/// The state that every request shares.
pub(crate) type SharedState = Extract<Arc<State>>;

/// Why a query finds a picture.
struct Kept {
    query: String,
    picture: usize,
    why: Arc<Option<Why>>,
}

impl State {
    pub(crate) fn new(searcher: Searcher, options: &Options, limits: Limits, cores: usize) -> Self {
        let pictures = searcher.index().pictures();
        let mut newest: Vec<usize> = (0..pictures.len()).collect();
        newest.sort_by_cached_key(|&at| Reverse(when(&pictures[at])));
        Self {
            newest,
            folders: folders(pictures),
            hubs: hubs(&searcher.index().answers()[0]),
            loopback: options.listen.ip().is_loopback(),
            token: options.token.clone(),
            searches: Desk::new(limits.searches, SEARCHES),
            pictures: Desk::new(limits.pictures, cores),
            uploads: Semaphore::new(limits.uploads),
            whys: Mutex::default(),
            searcher,
        }
    }

    /// The picture with a number, as an address has it.
    pub(crate) fn number(&self, text: &str) -> Result<usize, Refusal> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad("picture", "the number of a picture", text));
        }
        let all = self.searcher.index().pictures().len();
        text.parse().ok().filter(|&at| at < all).ok_or_else(Refusal::missing)
    }

    /// What an address of a picture's image holds as `v`: another photograph and another model have other addresses, so that a browser
    /// may keep the image.
    pub(crate) fn version(&self, picture: usize) -> String {
        let index = self.searcher.index();
        let shown = format!("{} {}", index.pictures()[picture].sha256, index.manifest.identity);
        sha256_hex(shown.as_bytes())[..12].to_owned()
    }

    /// How many ordinary queries have a picture first: by the cosine, by the corrected score.
    pub(crate) fn answers(&self, picture: usize) -> [u32; 2] {
        self.searcher.index().answers().each_ref().map(|all| all[picture])
    }

    /// Whether the index has a correction.
    pub(crate) fn corrects(&self) -> bool {
        self.searcher.index().correction() != "none"
    }

    pub(crate) fn is_hub(&self, picture: usize) -> bool {
        let [answers, _] = self.searcher.index().answers();
        self.hubs.last().is_some_and(|&last| answers[picture] >= answers[last])
    }

    /// [`Searcher::why`] of a query as it was typed.
    pub(crate) fn why(&self, text: &str, picture: usize) -> Result<Arc<Option<Why>>, Refusal> {
        let kept = || self.whys.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |kept: &&Kept| (&*kept.query, kept.picture) == (text, picture);
        if let Some(kept) = kept().iter().find(same) {
            return Ok(kept.why.clone());
        }
        let query = Query::parse(text, self.searcher.index())?;
        let why = self.searcher.why(&query, picture);
        let why = why.map_err(|error| match self.searcher.index().photograph(picture) {
            Ok(_) => error.into(),
            Err(_) => Refusal::gone(),
        })?;
        let why = Arc::new(why);
        let mut kept = kept();
        kept.truncate(KEPT - 1);
        kept.push_front(Kept { query: text.to_owned(), picture, why: why.clone() });
        Ok(why)
    }
}

/// When a picture was taken, or else when its file was written: an ISO date, which sorts as time does.
pub(crate) fn when(picture: &Picture) -> String {
    picture.taken.clone().unwrap_or_else(|| iso(picture.modified.div_euclid(1_000_000_000)))
}

/// Seconds since 1970 as `2024-05-01T12:30:00`, by the days of the Gregorian calendar in eras of 400 years that begin in March.
fn iso(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // from March
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + 400 * era + later;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

fn folders(pictures: &[Picture]) -> Vec<String> {
    let above = |picture: &Picture| -> Vec<String> {
        picture.path.match_indices('/').map(|(at, _)| picture.path[..at].to_owned()).collect()
    };
    let all: BTreeSet<String> = pictures.iter().flat_map(above).collect();
    all.into_iter().take(MOST_FOLDERS).collect()
}

/// Pictures whose number of first answers is more than two standard deviations above the mean, and more than one answer: the usual definition of a hub.
fn hubs(answers: &[u32]) -> Vec<usize> {
    let count = answers.len().max(1) as f64;
    let mean = answers.iter().map(|&n| f64::from(n)).sum::<f64>() / count;
    let variance = answers.iter().map(|&n| (f64::from(n) - mean).powi(2)).sum::<f64>() / count;
    let least = (mean + SPREADS * variance.sqrt()).max(1.0);
    let mut hubs: Vec<usize> =
        (0..answers.len()).filter(|&at| f64::from(answers[at]) > least).collect();
    hubs.sort_by_key(|&at| Reverse(answers[at]));
    hubs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `date -u -d @SECONDS` says.
    #[test]
    fn seconds_are_dates() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_199, "2024-02-29T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
            (-1, "1969-12-31T23:59:59"),
        ] {
            assert_eq!(iso(seconds), date);
        }
    }

    /// Mean 10, variance 900: above 70.
    #[test]
    fn hubs_are_two_deviations_above_the_mean() {
        assert_eq!(hubs(&[0, 0, 0, 0, 100, 0, 0, 0, 0, 0]), [4]);
        assert_eq!(hubs(&[5, 5, 5, 5]), [0; 0]);
        assert_eq!(hubs(&[]), [0; 0]);
        assert_eq!(hubs(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), [0; 0]);
    }
}
