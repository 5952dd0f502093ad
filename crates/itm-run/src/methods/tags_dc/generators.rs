//! How each model scores the sentences of each other model: Table 4, and the examples of Figure 4.

use std::collections::{BTreeMap, btree_map::Entry};
use std::sync::Mutex;

use itm_core::data::Split;
use itm_core::significance::{Share, per_image};
use itm_core::{Pairs, Result};
use itm_report::format::{clean, decimals, share};
use itm_report::table::{Role, Table};
use tags_dc::train::TagsDc;

use super::made::Made;
use super::{filler, logits, probability};
use crate::measures::Trial;
use crate::model::Model;
use crate::report::{Report, of_rows, percent};

/// Captions whose best sentence is an example.
const EXAMPLES: usize = 4;

/// Row and seed.
type Name = (String, u64);

/// Models that were looked at, and what each thinks of the sentences of the others. The models stay in memory without their optimiser.
#[derive(Debug, Default)]
pub(super) struct Generators(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    models: Vec<(Name, TagsDc)>,
    made: Vec<(Name, Vec<Made>)>,
    /// By generator and discriminator.
    scores: BTreeMap<(Name, Name), Scored>,
    captions: Vec<String>,
}

/// What a discriminator says about the sentences of a generator.
#[derive(Debug, Clone, Default)]
struct Scored {
    /// Sentences below their captions, and all sentences, of each image.
    below: Vec<[u64; 2]>,
    /// The probability of the caption and of the best sentence, for the first captions that have a sentence.
    examples: Vec<[f32; 2]>,
}

impl Generators {
    /// Compares a model with all models before it, in both roles. The result does not depend on the order of the models.
    ///
    /// # Errors
    /// If a sentence cannot be read, or an item cannot be read.
    pub(super) fn look(&self, trial: &Trial, model: &Model, made: Option<Vec<Made>>) -> Result<()> {
        let (Some(method), (_, Some(_))) = (filler(&*model.method), trial.source.part(Split::Test))
        else {
            return Ok(());
        };
        let (name, method) = ((trial.row.to_owned(), trial.seed), method.at_rest());
        let mut seen = self.0.lock().expect("no panic under this lock");
        let Seen { models, made: all, scores, captions } = &mut *seen;
        *captions = trial.source.dataset.test.captions.clone();
        models.push((name.clone(), method));
        all.extend(made.map(|made| (name, made)));
        for (generator, made) in all.iter() {
            for (judge, method) in models.iter() {
                if let Entry::Vacant(pair) = scores.entry((generator.clone(), judge.clone())) {
                    pair.insert(judged(trial, model, method, made)?);
                }
            }
        }
        Ok(())
    }

    /// Table 4 and the examples of Figure 4.
    pub(super) fn tables(&self, report: &Report) -> Vec<Table> {
        let seen = self.0.lock().expect("no panic under this lock");
        let rows: Vec<&str> = report.rows.iter().map(|row| row.name.as_str()).collect();
        [table(report, &seen, &rows)].into_iter().chain(examples(&seen, &rows)).collect()
    }
}

/// Scores sentences and their captions by a model; the split and its reading are those of another model of the same target.
fn judged(trial: &Trial, model: &Model, judge: &TagsDc, made: &[Made]) -> Result<Scored> {
    let pairs = &trial.source.dataset.test.pairs;
    let sentences = made.iter().map(|made| (made.text, made.sentence.text.as_str()));
    let logits = logits(judge, model, sentences)?;
    let both = logits.split_at(pairs.texts());
    Ok(Scored::of(pairs, made, both))
}

impl Scored {
    /// `own` are the logits of the captions, `theirs` of the sentences.
    fn of(pairs: &Pairs, made: &[Made], (own, theirs): (&[f32], &[f32])) -> Self {
        let below =
            |(made, &score): (&Made, &f32)| (pairs.image_of(made.text), score < own[made.text]);
        let example = |k: usize| [own[made[k].text], theirs[k]].map(probability);
        Self {
            below: per_image(pairs.images(), made.iter().zip(theirs).map(below)),
            examples: firsts(made).into_iter().map(example).collect(),
        }
    }
}

/// The first sentence of each of the first captions that have one.
fn firsts(made: &[Made]) -> Vec<usize> {
    let first = |&k: &usize| k == 0 || made[k - 1].text != made[k].text;
    (0..made.len()).filter(first).take(EXAMPLES).collect()
}

/// A line per discriminator; for each generator its sentences of the same seed, and of the other seeds.
fn table(report: &Report, seen: &Seen, rows: &[&str]) -> Table {
    let mut t = of_rows(report, "Generator and discriminator (Table 4)").noted(
        "Share of the sentences that the generator, above the column, makes from the test captions and the row scores below their captions; \
         a tie counts against the row. Other seed: the generator and the row had other seeds. VSE-C's edits are in the table of edited captions. \
         Interval: bootstrap over images and seeds.",
    );
    let of = |generator: &str, row: &str, same: bool| {
        let pair = |((g, d), _): &(&(Name, Name), &Scored)| {
            g.0 == generator && d.0 == row && (g.1 == d.1) == same
        };
        let runs = seen.scores.iter().filter(pair).map(|(_, found)| found.below.clone());
        Share::over(&runs.collect::<Vec<_>>())
    };
    for generator in generators(seen, rows) {
        for (same, head) in [(true, ""), (false, ", other seed")] {
            let found = || rows.iter().map(|row| of(generator, row, same));
            t.numbers(format!("{generator}{head}"), found().map(|s| Some(s?.value)), share);
            t.numbers("95 % interval", found().map(|s| Some(s?.ci95)), percent);
        }
    }
    t
}

/// The rows that made sentences, in the order of the report.
fn generators<'r>(seen: &Seen, rows: &[&'r str]) -> Vec<&'r str> {
    let makes =
        |row: &&str| seen.made.iter().any(|(name, made)| name.0 == *row && !made.is_empty());
    rows.iter().copied().filter(makes).collect()
}

/// Captions, a negative of the last generator and its correction, with the scores of all rows.
fn examples(seen: &Seen, rows: &[&str]) -> Option<Table> {
    let generator = *generators(seen, rows).last()?;
    let (name, made) =
        seen.made.iter().filter(|(name, _)| name.0 == generator).min_by_key(|m| m.0.1)?;
    let chosen = firsts(made);
    let lines = chosen.iter().flat_map(|&k| {
        let Made { text, sentence } = &made[k];
        let two = [("caption", &seen.captions[*text]), ("synthetic", &sentence.text)];
        two.into_iter().chain(sentence.corrected.as_ref().map(|text| ("corrected", text)))
    });
    let lines = lines.map(|(what, text)| (format!("{what}: {}", clean(text)), Role::Other));
    let mut t = Table::new(format!("Sentences of {generator} (Figure 4)"), "sentence", lines).noted(
        "The probability of a match by each row. Corrected: the generator's word heads replace the words that they call mismatched; rows \
         do not score it.",
    );
    for &row in rows {
        let of = |(judge, _): &&(Name, TagsDc)| judge.0 == row && judge.1 == name.1;
        let Some((judge, _)) = seen.models.iter().find(of) else { continue };
        let Some(found) = seen.scores.get(&(name.clone(), judge.clone())) else { continue };
        let cells = chosen.iter().zip(&found.examples).flat_map(|(&k, two)| {
            let corrected = made[k].sentence.corrected.is_some().then_some(None);
            two.map(Some).into_iter().chain(corrected)
        });
        t.numbers(row, cells, |p| decimals(f64::from(p), 3));
    }
    Some(t)
}

#[cfg(test)]
mod tests {
    use tags_dc::train::SentenceText;

    use itm_core::eval::Protocol;

    use super::*;
    use crate::methods::tags_dc::made::sentences;
    use crate::report::tests::sample;
    use crate::tests::{by_truth, small_run, texts};

    /// ITM makes no sentences and judges those of TAGS, whichever model comes first; each model judges its own.
    #[test]
    fn the_order_of_the_models_does_not_matter() {
        let run = small_run("tags-dc-scenes");
        let models =
            [("ITM", 0), ("TAGS", 0), ("TAGS", 1)].map(|of| run.model(of.0, of.1).unwrap());
        let scores = by_truth(models[0].source);
        let looked = |order: [usize; 3]| {
            let generators = Generators::default();
            for model in order.map(|k| &models[k]) {
                let (row, seed, source) = (&model.row[..], model.seed, model.source);
                let protocol = Protocol::Full;
                let trial = Trial { row, seed, source, protocol, scores: &scores, trained: None };
                generators.look(&trial, model, sentences(source, model).unwrap()).unwrap();
            }
            let seen = generators.0.into_inner().unwrap();
            seen.scores.into_iter().map(|(names, found)| (names, found.below)).collect::<Vec<_>>()
        };
        let found = looked([0, 1, 2]);
        assert_eq!(found.len(), 6, "two generators, three judges");
        assert!(found.iter().all(|(_, below)| below.iter().any(|counts| counts[1] > 0)));
        assert!(found.iter().any(|(_, below)| *below != found[0].1), "models differ");
        for order in [[2, 1, 0], [1, 0, 2]] {
            assert_eq!(looked(order), found);
        }
    }

    fn made(text: usize, words: &str) -> Made {
        let sentence = SentenceText {
            text: words.into(),
            score: 0.5,
            below: false,
            words: vec![],
            corrected: Some(format!("{words}!")),
        };
        Made { text, sentence }
    }

    /// By hand: captions 0 and 1 of images 0 and 1 with logits 1 and 0; sentences with logits 0.5, 1 (a tie), −1.
    #[test]
    fn golden_counts_of_a_discriminator() {
        let made = [made(0, "a"), made(0, "b"), made(1, "c")];
        let pairs = Pairs::uniform(2, 1);
        let scored = Scored::of(&pairs, &made, (&[1.0, 0.0], &[0.5, 1.0, -1.0]));
        assert_eq!(scored.below, [[1, 2], [1, 1]]);
        let half = 0.5f32;
        assert_eq!(scored.examples.len(), 2);
        assert_eq!(scored.examples[1][0], half);
        assert!((scored.examples[0][1] - 0.622_459_3).abs() < 1e-6, "σ(0.5)");
    }

    /// Two seeds of a generator: a column for the own seed and one for the other.
    #[test]
    fn seeds_are_apart() {
        let report = sample::report(24.3, -5.5, &[1]);
        let rows: Vec<&str> = report.rows.iter().map(|row| row.name.as_str()).collect();
        let name = |seed| ("Full".to_owned(), seed);
        let below = |right| Scored { below: vec![[right, 4]; 3], examples: vec![[0.9, 0.25]] };
        let mut seen = Seen { captions: vec!["caption".into()], ..Seen::default() };
        let none = table(&report, &seen, &rows);
        assert!(none.columns.is_empty() && examples(&seen, &rows).is_none());
        for (generator, judge, right) in [(0, 0, 4), (1, 1, 2), (0, 1, 1), (1, 0, 1)] {
            seen.scores.insert((name(generator), name(judge)), below(right));
        }
        seen.made = vec![(name(0), vec![made(0, "a")]), (name(1), vec![])];
        let table = table(&report, &seen, &rows);
        let heads: Vec<&str> = table.columns.iter().map(|column| column.label.as_str()).collect();
        assert_eq!(heads, ["Full", "95 % interval", "Full, other seed", "95 % interval"]);
        let cells = texts(&table, "Full");
        assert_eq!([cells[0], cells[2]], ["75.0 %", "25.0 %"]);
        let table = examples(&seen, &rows).unwrap();
        let lines: Vec<&str> = table.lines.iter().map(|line| line.0.as_str()).collect();
        assert_eq!(lines, ["caption: caption", "synthetic: a", "corrected: a!"]);
    }
}
