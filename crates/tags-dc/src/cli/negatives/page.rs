//! The HTML page of negatives.

use std::collections::BTreeMap;

use super::captions::CaptionSet;
use super::{Maker, OfKind, Summary};
use crate::record::{Kind, Record};
use itm_report::format::{count, interval_to, or_none, share};
use itm_report::html::{again, facts, page as whole, section, titled};
use itm_report::table::{Role, Table};
use maud::{Markup, html};
use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

/// A kind in words.
pub(super) fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Noun => "another noun",
        Kind::Numeral => "another number",
        Kind::Relation => "another relation",
        Kind::Order => "another order",
        Kind::Refill => "words of a model",
    }
}

/// One line per kind.
pub(super) fn table(summary: &Summary) -> Table {
    let lines = summary.kinds.keys().map(|&kind| (words(kind), Role::Other));
    let mut table = Table::new("Negatives by kind", "kind", lines);
    let of: Vec<&OfKind> = summary.kinds.values().collect();
    table.column("written", of.iter().map(|kind| count(kind.written as u64)));
    if of.iter().any(|kind| kind.truth.is_some()) {
        let judged = || of.iter().map(|kind| kind.truth.as_ref());
        table.numbers("truly false", judged().map(|j| j?.truly_false), share);
        let percent = |ends: [f64; 2]| interval_to(ends.map(|end| 100.0 * end), 1);
        table.numbers("95 %", judged().map(|j| j?.ci95), percent);
        table.numbers("no sentence", judged().map(|j| Some(j?.unparsed)), |n| count(n as u64));
        table = table.noted(
            "Truly false: share of the sentences that are false of the scene, among the sentences with a meaning. No sentence: the \
             world's grammar gives the text no meaning, so its truth is unknown. Intervals: bootstrap over images.",
        );
    }
    table
}

/// The whole page; `shown` captions are drawn from the captions with a negative.
pub(super) fn page(
    summary: &Summary,
    set: &CaptionSet,
    records: &[Record],
    shown: usize,
) -> String {
    let texts = set.by_id();
    let mut of_caption: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    records.iter().for_each(|r| of_caption.entry(&r.caption).or_default().push(r));
    let all: Vec<_> = of_caption.into_iter().collect();
    let mut rng = ChaCha8Rng::seed_from_u64(summary.seed);
    let mut drawn = index::sample(&mut rng, all.len(), shown.min(all.len())).into_vec();
    drawn.sort_unstable();
    let content = html! {
        header {
            h1 { "Negative captions" }
            p { "A negative is a caption that is false of its image, though it looks like a true one. Each was made from a true caption \
                 by exchanging words. Judge them: is the changed sentence false of the image, and is it a good sentence?" }
        }
        (facts("", known(summary)))
        (section("What was written", titled(&table(summary))))
        (section(&format!("{} captions, drawn at random", drawn.len()), html! {
            p.note { "In brackets: the old words, " del { "struck out" } ", and the new " ins { "words" } " that replace them." }
            div.examples { @for &at in &drawn { (one(all[at].0, texts.get(all[at].0), &all[at].1)) } }
        }))
        (section("Again", again(&summary.command)))
    };
    whole("Negative captions", content)
}

fn known(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut known = vec![
        ("captions", summary.captions.clone()),
        ("sha256", summary.sha256.clone()),
        ("images", count(summary.images as u64)),
        ("captions read", count(summary.read as u64)),
        ("captions without a variant", count(summary.without_a_variant as u64)),
        ("seed", summary.seed.to_string()),
    ];
    match &summary.maker {
        Maker::Rules(rules) => known.push(("rules", rules.clone())),
        #[cfg(feature = "burn")]
        Maker::Model(model) => known.extend([
            ("model", model.row.clone()),
            ("checkpoint's sha256", model.checkpoint_sha256.clone()),
            ("maskings and refills", format!("{} × {}", model.maskings, model.refills)),
            ("temperature", model.temperature.to_string()),
            ("images that the run does not have", count(model.images_not_in_the_run as u64)),
        ]),
    }
    known
}

fn one(name: &str, caption: Option<&(&str, &str)>, negatives: &[&Record]) -> Markup {
    html! {
        article {
            p.by { (name) }
            p { (or_none(caption, |(_, text)| (*text).to_owned())) }
            ul { @for record in negatives {
                li {
                    span.mark { (words(record.kind)) } " " (record.text) " "
                    span.note {
                        "(" del { (record.old.join(" ")) } " → " ins { (record.new.join(" ")) } ")"
                        @if let Some(score) = record.score { " score " (format!("{score:.3}")) }
                    }
                }
            } }
        }
    }
}
