//! The course of the trainings: loss and validation over epochs, and what each seed reached.

use std::collections::BTreeMap;

use itm_core::Result;
use itm_report::figure::{self, Figure, Key, Shape, courses};
use itm_report::format::{duration, points};
use itm_report::plot::{Ink, Point, finite};
use itm_report::table::Table;

use super::{BySeed, Measure, Trial};
use crate::log::Line;
use crate::report::{Report, Row, Section, coloured, of_rows};

/// The course of every training.
#[derive(Debug, Default)]
pub(crate) struct Courses(BySeed<Curve>);

/// The course of one training.
#[derive(Debug, Clone, Default)]
struct Curve {
    /// Mean training loss: `(epochs done, loss)`.
    loss: Vec<Point>,
    /// rSum on the validation split: `(epochs done, rSum)`.
    validation_rsum: Vec<Point>,
    /// [`Line::Validation`]'s `among`: the rSum is not that of a row without epochs, which ranks all images.
    among: Option<usize>,
}

impl Measure for Courses {
    fn look(&self, trial: &Trial) -> Result<()> {
        if let Some(trained) = trial.trained {
            self.0.put(trial, Curve::new(trained.log, trained.model.plan.epoch_steps()));
        }
        Ok(())
    }

    fn section(&self, report: &mut Report) -> Result<Section> {
        let all = |seeds: &[&Curve]| Some(seeds.iter().map(|curve| (*curve).clone()).collect());
        let curves = self.0.rows(report, all);
        let trained = report.rows.iter().any(|row| !row.measured.per_seed.is_empty());
        let among = curves.iter().flatten().flatten().find_map(|curve: &Curve| curve.among);
        Ok(Section {
            figures: course(report, &curves, among),
            tables: trained.then(|| seeds(report, among)).into_iter().collect(),
            ..Section::new("Training")
        })
    }
}

impl Curve {
    fn new(log: &[Line], epoch_steps: usize) -> Self {
        let epochs = |step: usize| step as f64 / epoch_steps as f64;
        let mut curve = Self::default();
        for line in log {
            match *line {
                Line::Train { step, loss, .. } => curve.loss.push((epochs(step), loss)),
                Line::Validation { step, rsum, among, .. } => {
                    curve.validation_rsum.push((epochs(step), rsum));
                    curve.among = among;
                }
                Line::Draws { .. } => {}
            }
        }
        curve
    }
}

/// Further numbers of a method over its training, by name: `(epochs done, value)`.
pub(crate) fn numbers(log: &[Line], epoch_steps: usize) -> BTreeMap<String, Vec<Point>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in log {
        let Line::Train { step, numbers, .. } = line else { continue };
        let at = *step as f64 / epoch_steps as f64;
        for (name, &value) in numbers {
            all.entry(name.clone()).or_default().push((at, value));
        }
    }
    all
}

/// Loss and recall over epochs: a thin line per seed, a thick one for their mean, a level for a row without epochs. With `among`, such a
/// row has no level, because its validation is another measure.
fn course(report: &Report, curves: &[Option<Vec<Curve>>], among: Option<usize>) -> Vec<Figure> {
    let rows: Vec<_> = coloured(report)
        .into_iter()
        .zip(curves)
        .map(|((row, series), curves)| (row, Ink::dashed(series), curves.as_deref().unwrap_or(&[])))
        .collect();
    let seeds = if report.seeds.len() > 1 { " (thin: one seed; thick: their mean)" } else { "" };
    let lines = |of: fn(&Curve) -> &Vec<Point>| -> Vec<figure::Course> {
        let trained = rows.iter().filter(|(_, _, curves)| !curves.is_empty());
        let line = |(row, ink, curves): &(&Row, Ink, &[Curve])| {
            over_seeds(&row.name, *ink, curves.iter().map(|curve| of(curve).clone()).collect())
        };
        trained.map(line).collect()
    };
    let untrained = rows.iter().filter(|(_, _, curves)| curves.is_empty());
    let levels: Vec<_> = untrained
        .filter(|_| among.is_none())
        .filter_map(|(row, ink, _)| Some((*row, *ink, row.measured.validation_rsum?)))
        .collect();
    let at: Vec<_> = levels.iter().map(|&(_, ink, at)| (ink, at)).collect();
    let loss =
        courses(format!("Training loss{seeds}"), ["epochs", "mean loss"], &lines(|c| &c.loss), &[]);
    let rsum = validation(among);
    let title = format!("Recall on the validation split{seeds}");
    let mut recall = courses(title, ["epochs", &rsum], &lines(|c| &c.validation_rsum), &at);
    let keys = levels.iter().map(|(row, ink, _)| Key::new(row.name.as_str(), Shape::Line, *ink));
    recall.iter_mut().for_each(|figure| figure.legend.extend(keys.clone()));
    loss.into_iter().chain(recall).collect()
}

/// The mean of curves, and each of them as a thin line if there are several.
pub(crate) fn over_seeds(row: &str, ink: Ink, curves: Vec<Vec<Point>>) -> figure::Course {
    let line = figure::Course::new(row, ink, mean(&curves));
    figure::Course { thin: if curves.len() > 1 { curves } else { vec![] }, ..line }
}

/// Mean over the curves at every x that all of them have.
fn mean(curves: &[Vec<Point>]) -> Vec<Point> {
    let mut at: BTreeMap<u64, (f64, f64, usize)> = BTreeMap::new();
    for (x, y) in curves.iter().flat_map(|c| finite(c)) {
        // Epochs are not negative, so the bits of x sort as x does.
        let sum = at.entry(x.max(0.0).to_bits()).or_insert((x, 0.0, 0));
        *sum = (x, sum.1 + y, sum.2 + 1);
    }
    let full = |(x, sum, n): (f64, f64, usize)| (n == curves.len()).then_some((x, sum / n as f64));
    at.into_values().filter_map(full).collect()
}

/// What validation measures.
fn validation(among: Option<usize>) -> String {
    among.map_or("validation rSum".into(), |n| {
        format!("validation: R@1 + R@5 + R@10, each text among {n} images")
    })
}

/// Every seed's rSum, and the checkpoint that validation chose.
fn seeds(report: &Report, among: Option<usize>) -> Table {
    let measured = || report.rows.iter().map(|r| &r.measured);
    let mut t = of_rows(report, "Seeds").noted(
        "Test rSum of the checkpoint with the best validation rSum; the test split chooses nothing. \
         A best epoch counts the epochs that were done then; 0: the first was not over. Rows without seeds show none.",
    );
    for seed in &report.seeds {
        let of = measured().map(|m| Some(m.per_seed.iter().find(|s| s.seed == *seed)?.rsum));
        t.numbers(format!("seed {seed}"), of, points);
    }
    let trained =
        measured().map(|m| m.validation_rsum.filter(|_| among.is_none() || !m.per_seed.is_empty()));
    t.numbers(validation(among), trained, points);
    let epochs = measured().map(|m| {
        let all: Vec<_> =
            m.per_seed.iter().filter_map(|s| Some(s.best_epoch?.to_string())).collect();
        (!all.is_empty()).then(|| all.join(", "))
    });
    t.numbers("best epochs", epochs, |epochs| epochs);
    t.numbers("time", measured().map(|m| m.seconds), duration);
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::RowKind;
    use crate::report::tests::sample;

    /// A curve of each seed of a trained row.
    fn sample_curves(k: usize, row: &Row) -> Option<Vec<Curve>> {
        let wobble = |e: f64, seed: f64| ((e * 1.7 + seed) * (1.3 + k as f64)).sin();
        let epochs = || (1..=16).map(f64::from);
        let of = |seed: &crate::report::SeedResult| Curve {
            loss: epochs().map(|e| (e, 0.4 + 0.006 * wobble(e, seed.seed as f64))).collect(),
            validation_rsum: epochs().map(|e| (e, 300.0 + wobble(e, seed.seed as f64))).collect(),
            among: None,
        };
        (row.kind == RowKind::Trained).then(|| row.measured.per_seed.iter().map(of).collect())
    }

    /// One line per seed and one for their mean. Rows without epochs are levels in the recall figure only.
    #[test]
    fn courses_have_their_seeds_and_levels() {
        let report = sample::report(24.3, -5.5, &[1, 2]);
        let curves: Vec<_> =
            report.rows.iter().enumerate().map(|(k, row)| sample_curves(k, row)).collect();
        let [loss, recall] = &course(&report, &curves, None)[..] else { panic!("two figures") };
        let lines = |figure: &Figure, of: &str| {
            let svg = figure.svg.clone().into_string();
            let lines = svg.split('<').filter(|e| e.starts_with("polyline")).map(str::to_owned);
            lines.filter(|line| line.contains(of)).count()
        };
        assert_eq!([lines(loss, "--s0"), lines(recall, "--s0")], [3, 3]);
        assert_eq!([lines(loss, "--s7"), lines(recall, "--s7")], [0, 1], "CCA");
        assert_eq!((loss.legend.len(), recall.legend.len()), (4, 5));
        assert!(loss.svg.clone().into_string().contains(">\nmean loss\n"));
        let [_, recall] = &course(&report, &curves, Some(50))[..] else { panic!("two figures") };
        assert_eq!(
            [lines(recall, "--s0"), lines(recall, "--s7")],
            [3, 0],
            "CCA has another measure"
        );
        assert_eq!(recall.legend.len(), 4);
    }

    #[test]
    fn the_mean_is_taken_where_all_seeds_are() {
        let a = vec![(1.0, 1.0), (2.0, 4.0), (3.0, 9.0), (4.0, f64::NAN)];
        let b = vec![(2.0, 2.0), (1.0, 2.0), (4.0, 1.0)];
        assert_eq!(mean(&[a, b]), [(1.0, 1.5), (2.0, 3.0)]);
    }

    #[test]
    fn curves_count_in_epochs() {
        let log = [
            Line::Train {
                epoch: 0,
                step: 5,
                loss: 2.0,
                grad_norm: 1.0,
                active: 0.5,
                numbers: [("t".to_owned(), 0.3)].into(),
            },
            Line::Validation { epoch: 0, step: 10, rsum: 123.0, among: None },
            Line::Draws {
                epoch: 0,
                drawn_true: 0.1,
                uniform_true: 0.2,
                hardest_true: 0.3,
                others_true: Default::default(),
                detection: vec![],
            },
        ];
        let curve = Curve::new(&log, 10);
        assert_eq!((curve.loss, curve.validation_rsum), (vec![(0.5, 2.0)], vec![(1.0, 123.0)]));
        assert_eq!(numbers(&log, 10), BTreeMap::from([("t".to_owned(), vec![(0.5, 0.3)])]));
    }
}
