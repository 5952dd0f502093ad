//! The report, from what was counted.

use std::time::Instant;

use itm_core::eval::TiePolicy;
use itm_core::significance::{
    Hits, ImageHits, Interval, Measures, bootstrap, bootstrap_difference, holm,
    paired_randomisation,
};
use itm_core::{Pairs, Relevance, Result};

use crate::cli::analysis::{Found, Row as Plan, Set, Side, Spec, chosen};
use crate::cli::args::Report as Args;
use crate::cli::input::{Loaded, LoadedScores};
use crate::cli::report::{
    Curve, Data, Difference, Directed, File, Histogram, Hub, HubMeasures, HubSide, Hubs,
    RecallIntervals, Report, Row, Seen, Settings, Victim,
};
use crate::hubs::{self, Counts, HubSize, Worst, complete_truth, worst_hubs};
use crate::{Direction, Scores};

/// All of a report but the time it took.
pub(super) struct Built {
    rows: Vec<Row>,
    hubs: Hubs,
    curves: Vec<Curve>,
}

/// What was asked for and what came of it.
pub(super) struct Asked<'a> {
    pub(super) rows: &'a [Plan],
    /// For each row a side for each direction.
    pub(super) sides: Vec<Vec<Side>>,
    pub(super) curves: Vec<Curve>,
    /// Whether open settings were chosen on another set.
    pub(super) validated: bool,
    /// What is true beyond the pairs.
    pub(super) truth: Option<&'a Relevance>,
}

/// Puts rows, tests and hubs together.
pub(super) fn build<S: Scores>(
    args: &Args,
    loaded: &Loaded,
    pairs: &Pairs,
    sets: &[Set<'_, S>],
    asked: Asked<'_>,
) -> Result<Built> {
    let Asked { rows: plans, sides, curves, validated, truth } = asked;
    let systems: Vec<[Hits; 1]> =
        sides.iter().map(|sides| Ok([system(sides, pairs)?])).collect::<Result<_>>()?;
    let mut rows = Vec::new();
    for ((plan, sides), system) in plans.iter().zip(&sides).zip(&systems) {
        let intervals = match args.resamples {
            0 => None,
            n => Some(bootstrap(system, n, args.seed)?),
        };
        let setting = sides.iter().map(|side| side.setting).max_by_key(|&s| s as u8);
        rows.push(Row {
            method: plan.name.clone(),
            params: directed(sides, |side| side.params.clone()),
            chosen: chosen(plan, validated),
            seen: Seen(setting.unwrap_or(crate::Setting::Plain)),
            recalls: directed(sides, |side| side.pooled.recalls),
            rsum: sides.iter().flat_map(|side| side.pooled.recalls.values()).sum(),
            ci95: intervals.map(|m| ends(m.rsum)),
            ci95_recalls: recall_intervals(sides, intervals),
            difference: None,
            p_value: None,
            hubs_after: directed(sides, |side| side.pooled.counts.iter().map(measures).collect()),
        });
    }
    compare(args, &mut rows, &systems)?;
    let mut hubs = Hubs { sides: Directed::default(), hs_sum: None };
    for set in sets {
        for &direction in &set.directions {
            let named: Vec<_> = plans.iter().map(|plan| &plan.name[..]).zip(&sides).collect();
            let side = hub_side(set, loaded, pairs, direction, &named, truth);
            match direction {
                Direction::I2t => hubs.sides.i2t = Some(side),
                Direction::T2i => hubs.sides.t2i = Some(side),
            }
        }
    }
    let skewness = |side: &Side| side.pooled.counts.iter().map(Counts::skewness).sum::<f64>();
    hubs.hs_sum = sides.first().map(|sides| sides.iter().map(skewness).sum());
    Ok(Built { rows, hubs, curves })
}

impl Built {
    /// Adds what is known at the end.
    pub(super) fn finish(self, args: &Args, loaded: &Loaded, start: Instant) -> Result<Report> {
        let dim = match &loaded.scores {
            LoadedScores::Embeddings { images, .. } => Some(images.dim as u64),
            _ => None,
        };
        let messages = &loaded.messages;
        let said = |note: &&String| note.contains("pairs");
        let pairs_note = messages.notes.iter().find(said).cloned();
        let file =
            |f: &itm_core::data::FileHash| File { name: f.name.clone(), sha256: f.sha256.clone() };
        Ok(Report {
            version: env!("CARGO_PKG_VERSION").into(),
            data: Data {
                images: loaded.images() as u64,
                texts: loaded.texts() as u64,
                dim,
                pairs_note: pairs_note.unwrap_or_else(|| "pairs as given".into()),
                files: messages.files.iter().map(file).collect(),
                notes: messages.notes.clone(),
                warnings: messages.warnings.clone(),
            },
            settings: Settings {
                seed: args.seed,
                resamples: args.resamples as u64,
                unit: "image with all its texts".into(),
                tie_policy: "the smaller index first".into(),
                hub_rule: "at least twice the mean count".into(),
                command: Some(std::env::args().collect::<Vec<_>>().join(" ")),
                more: Default::default(),
            },
            rows: self.rows,
            hubs: self.hubs,
            curves: self.curves,
            seconds: start.elapsed().as_secs_f64(),
            peak_memory_bytes: peak_memory(),
        })
    }
}

/// One thing of each direction that was measured.
fn directed<T>(sides: &[Side], of: impl Fn(&Side) -> T) -> Directed<T> {
    let one = |direction| sides.iter().find(|side| side.pooled.direction == direction).map(&of);
    Directed { i2t: one(Direction::I2t), t2i: one(Direction::T2i) }
}

/// Hits of the images that have texts. A direction that was not measured has none.
fn system(sides: &[Side], pairs: &Pairs) -> Result<Hits> {
    let of = |direction: Direction, image: usize| {
        let side = sides.iter().find(|side| side.pooled.direction == direction);
        side.map_or([0; 3], |side| side.pooled.hits[image])
    };
    let captions = |image: usize| pairs.texts_of(image).len() as u16;
    let block = |image: usize| ImageHits {
        i2t: of(Direction::I2t, image),
        t2i: of(Direction::T2i, image),
        captions: captions(image),
    };
    let images = (0..pairs.images()).filter(|&image| captions(image) > 0);
    Hits::from_folds(vec![images.map(block).collect()])
}

/// Every row against the first, nearest neighbours.
fn compare(args: &Args, rows: &mut [Row], systems: &[[Hits; 1]]) -> Result<()> {
    let (Some(plain), true) = (systems.first(), rows.len() > 1) else { return Ok(()) };
    let baseline = rows[0].rsum;
    let mut p_values = Vec::new();
    for (row, system) in rows.iter_mut().zip(systems).skip(1) {
        let mut difference = Difference { rsum: row.rsum - baseline, ci95: None, p_holm: None };
        if args.resamples > 0 {
            let interval = bootstrap_difference(system, plain, args.resamples, args.seed)?.rsum;
            let test = paired_randomisation(system, plain, args.resamples, args.seed)?;
            difference.ci95 = Some(ends(interval));
            row.p_value = Some(test.p);
            p_values.push(test.p);
        }
        row.difference = Some(difference);
    }
    let adjusted = holm(&p_values);
    for (row, p) in rows.iter_mut().skip(1).zip(adjusted) {
        if let Some(difference) = &mut row.difference {
            difference.p_holm = Some(p);
        }
    }
    Ok(())
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.lo, interval.hi]
}

fn recall_intervals(
    sides: &[Side],
    intervals: Option<Measures<Interval>>,
) -> Directed<RecallIntervals> {
    let Some(all) = intervals else { return Directed::default() };
    directed(sides, |side| {
        let [r1, r5, r10] = side.pooled.direction.queries(all.i2t, all.t2i).map(ends);
        RecallIntervals { r1, r5, r10 }
    })
}

fn measures(counts: &Counts) -> HubMeasures {
    let found = hubs::HubMeasures::new(counts, HubSize::default());
    HubMeasures {
        k: found.k as u64,
        skewness: found.skewness,
        robin_hood: found.robin_hood,
        gini: found.gini,
        atkinson: found.atkinson,
        anti_hub_share: found.anti_hubs,
        hub_occurrence: found.hub_occurrence,
        hubs: found.hubs as u64,
        max: found.maximum,
    }
}

fn hub_side<S: Scores>(
    set: &Set<'_, S>,
    loaded: &Loaded,
    pairs: &Pairs,
    direction: Direction,
    named: &[(&str, &Vec<Side>)],
    truth: Option<&Relevance>,
) -> HubSide {
    let measured =
        |sides: &'_ Vec<Side>| sides.iter().position(|s| s.pooled.direction == direction);
    let of_rows: Vec<(&str, &Side)> = named
        .iter()
        .filter_map(|&(name, sides)| measured(sides).map(|at| (name, &sides[at])))
        .collect();
    let histograms = of_rows.iter().flat_map(|(name, side)| {
        side.pooled.counts.iter().map(move |counts| histogram(name, counts))
    });
    HubSide {
        measures: of_rows[0].1.pooled.counts.iter().map(measures).collect(),
        worst: worst(set, loaded, pairs, direction, &of_rows, truth),
        histograms: histograms.collect(),
    }
}

fn histogram(method: &str, counts: &Counts) -> Histogram {
    let found = hubs::Histogram::new(counts);
    let never = (found.never > 0).then_some((0, found.never as u64));
    let bars = found.bars.iter().map(|bar| (u64::from(bar.count), bar.items as u64));
    Histogram {
        method: method.into(),
        k: counts.k() as u64,
        counts: never.into_iter().chain(bars).collect(),
    }
}

/// The items of the largest N_10 under nearest neighbours, by name.
fn worst<S: Scores>(
    set: &Set<'_, S>,
    loaded: &Loaded,
    pairs: &Pairs,
    direction: Direction,
    rows: &[(&str, &Side)],
    truth: Option<&Relevance>,
) -> Vec<Hub> {
    let plain = set.get(direction, Spec::PLAIN);
    let Found::Top(top) = &plain.answer.found else { return Vec::new() };
    let mut hubs = worst_hubs(top, pairs, direction, Worst::default());
    complete_truth(&mut hubs, pairs, direction, set.fit.test, &*plain.correction.rescore);
    let all =
        worst_hubs(top, pairs, direction, Worst { within: 10, victims: 0, ..Worst::default() });
    let items: Vec<_> = all.iter().map(|hub| hub.item).collect();
    let number = direction.items(pairs.images(), pairs.texts());
    let lists = hubs::Lists::top(direction, number, 10, top);
    let true_ones = truth.map(|truth| hubs::deserved(&lists, truth, &items, hubs::HALF));
    // Of the lists that hold the hub wrongly by the pairs, those where it is right by the truth.
    let deserved = |at: usize| {
        let (found, wrong) = (true_ones.as_ref()?[at], all[at].wrong);
        let paired = (found.count as usize).saturating_sub(wrong);
        let right = (found.relevant as usize).saturating_sub(paired);
        (wrong > 0).then(|| right as f64 / wrong as f64)
    };
    let name = |direction: Direction, index: usize| {
        let names = direction.queries(&loaded.names.images, &loaded.names.texts);
        names.as_ref().map(|names| names[index].clone())
    };
    let standings = plain.answer.standings.as_deref().unwrap_or_default();
    let victim = |victim: &hubs::Victim| {
        let truth = victim.truth?;
        let rank = standings.get(victim.query)?.rank(TiePolicy::Index) + 1.0;
        let known = truth.score.is_finite() && rank < f64::from(u32::MAX);
        known.then(|| Victim {
            query: victim.query as u64,
            name: name(direction, victim.query),
            hub_score: victim.score,
            true_score: truth.score,
            true_rank: rank as u64,
        })
    };
    let of_hub = |(at, (hub, all)): (usize, (&hubs::Hub, &hubs::Hub))| {
        let after = rows.iter().skip(1);
        let count = |(name, side): &(&str, &Side)| {
            ((*name).to_owned(), u64::from(side.pooled.counts[2].values()[hub.item]))
        };
        Hub {
            item: hub.item as u64,
            name: name(direction.reversed(), hub.item),
            count: u64::from(rows[0].1.pooled.counts[2].values()[hub.item]),
            first: u64::from(rows[0].1.pooled.counts[0].values()[hub.item]),
            wrong: all.wrong as u64,
            deserved: deserved(at),
            after: after.map(count).collect(),
            victims: hub.victims.iter().filter_map(victim).collect(),
        }
    };
    hubs.iter().zip(&all).enumerate().map(of_hub).collect()
}

/// The most memory this process held, where the system says so.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
}
