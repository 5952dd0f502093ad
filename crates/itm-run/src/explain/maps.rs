//! `word-patches.html` or `word-regions.html`: where the rows of a run find the words of a caption in a picture, and
//! what the words do to a score. The rows are beside each other.

use std::path::PathBuf;

use itm_core::encoders::Places;
use itm_core::{Error, Result};

use super::Explanation;
use super::word_maps::{ROWS, beside, numbers, shown};
use crate::progress;
use crate::report::{self, Pair, PairMaps};

impl Explanation<'_> {
    /// Writes the page; `None` if the row has neither patches nor regions. The page also shows the other rows of the run with the same seed.
    /// A row whose training is not finished is left out; a line says so.
    ///
    /// # Errors
    /// If no caption has one of the named words, or if the page cannot be written.
    pub(super) fn maps(&self, pairs: &[Pair]) -> Result<Option<PathBuf>> {
        let (run, seed, row, split) = (self.run, self.args.seed, &self.model.row[..], self.split);
        let (asked, words) = (numbers(pairs), self.args.words.as_deref());
        let Some(own) = self.model.word_maps(split, &asked)? else { return Ok(None) };
        let shown = |row, maps| shown((row, seed), &run.source, (split, pairs), maps, words);
        let mut all: Vec<PairMaps> = shown(row, own);
        let is_trained = |other: &&str| *other != row && run.dir().folder(other, seed).is_dir();
        for other in run.config.rows().filter(is_trained) {
            if all.first().is_some_and(|pair| pair.rows.len() == ROWS) {
                break;
            }
            match run.trained(other, seed).and_then(|model| model.word_maps(split, &asked)) {
                Ok(maps) => beside(&mut all, maps.map_or(vec![], |maps| shown(other, maps))),
                Err(error) => progress::say(format!("{other} is left out of the maps: {error}")),
            }
        }
        all.retain(|pair| !pair.words.is_empty());
        if let (true, Some(words)) = (all.is_empty(), words) {
            let expected = "words of the captions that are shown";
            return Err(Error::invalid("--words", expected, format!("`{}`", words.join(","))));
        }
        let places = match all.first().map(|pair| &pair.places) {
            Some(Places::Boxes(_)) => "regions",
            _ => "patches",
        };
        let title = format!("Words and {places}, seed {seed}");
        let page = report::maps_page(&title, &all);
        self.write(&format!("word-{places}.html"), &page).map(Some)
    }
}
