//! The parameters of an address.

use axum::extract::Query as Parameters;
use serde::Deserialize;

use super::refusal::{Refusal, bad};
use super::state::State;
use crate::{Filter, Options, Query};

/// The most hits of an answer.
pub(crate) const MOST: usize = 1000;

/// What the form and the interface send. An empty parameter is a missing one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    pub(crate) q: String,
    pub(crate) like: String,
    pub(crate) picture: String,
    pub(crate) word: String,
    pub(crate) scores: String,
    pub(crate) corrected: String,
    pub(crate) top: String,
    pub(crate) threshold: String,
    pub(crate) folder: String,
    pub(crate) after: String,
    pub(crate) before: String,
    /// [`State::version`].
    pub(crate) v: String,
}

/// The parameters of a request.
pub(crate) type AskParameters = Parameters<Ask>;

impl Ask {
    /// What is searched for: `like`, or else `q`. `None` if neither is there.
    pub(crate) fn query(&self, state: &State) -> Result<Option<Query>, Refusal> {
        if !self.like.is_empty() {
            return Ok(Some(Query::like(state.number(&self.like)?)));
        }
        match self.q.trim().is_empty() {
            true => Ok(None),
            false => Ok(Some(Query::parse(&self.q, state.searcher.index())?)),
        }
    }

    pub(crate) fn options(&self, top: usize, corrected: bool) -> Result<Options, Refusal> {
        Ok(Options {
            top: self.top(top)?,
            corrected,
            threshold: self.threshold()?,
            filter: self.filter(),
        })
    }

    /// `corrected` of the interface.
    pub(crate) fn corrected(&self) -> Result<bool, Refusal> {
        match &*self.corrected {
            "" | "true" => Ok(true),
            "false" => Ok(false),
            other => Err(bad("corrected", "true or false", other)),
        }
    }

    pub(crate) fn top(&self, usual: usize) -> Result<usize, Refusal> {
        let top = if self.top.is_empty() { Ok(usual) } else { self.top.parse() };
        let top = top.ok().filter(|top| (1..=MOST).contains(top));
        top.ok_or_else(|| bad("top", &format!("a number from 1 to {MOST}"), &self.top))
    }

    fn threshold(&self) -> Result<Option<f32>, Refusal> {
        if self.threshold.is_empty() {
            return Ok(None);
        }
        let value = self.threshold.parse().ok().filter(|value: &f32| value.is_finite());
        value.map(Some).ok_or_else(|| bad("threshold", "a number", &self.threshold))
    }

    pub(crate) fn filter(&self) -> Filter {
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Filter { folder: some(&self.folder), after: some(&self.after), before: some(&self.before) }
    }

    /// The search, as a link keeps it.
    pub(crate) fn kept(&self) -> [(&'static str, &str); 8] {
        [
            ("q", &self.q),
            ("like", &self.like),
            ("folder", &self.folder),
            ("after", &self.after),
            ("before", &self.before),
            ("threshold", &self.threshold),
            ("scores", &self.scores),
            ("top", &self.top),
        ]
    }

    pub(crate) fn filters(&self) -> bool {
        self.filter() != Filter::default()
    }
}
