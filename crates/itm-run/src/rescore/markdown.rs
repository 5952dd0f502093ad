//! `summary.md`: first a verdict for each row, then tables.

use itm_report::format::{count, decimals, n_of, points, share, signed};
use itm_report::markdown::table;
use itm_report::table::{Role, Table};

use super::orderings::upper;
use super::summary::{CountsSummary, CurveSummary, HubsOfSide, Origin, RowSummary, Summary, unit};
use crate::run_dir::short;

/// Values of λ in the table of curves. The page of each seed draws the whole curves.
const LAMBDAS: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0];

/// Number of hubs per direction in the table.
const HUBS: usize = 5;

/// Maximum number of characters of a hub's name.
const NAME: usize = 48;

pub(super) fn render(summary: &Summary) -> String {
    let verdicts = summary.rows.iter().map(|row| format!("{}\n\n", row.verdict));
    let mut out = format!("{}# {}\n\n", verdicts.collect::<String>(), summary.target);
    if let Some(why) = &summary.substitution {
        out += &format!("> {why}\n\n");
    }
    for row in &summary.rows {
        tables(row, summary.resamples).iter().for_each(|t| out += &table(t));
    }
    out += "## Run\n\n";
    for (label, value) in [
        ("paper", format!("{}, table {}", summary.paper, summary.table)),
        ("data", format!("{} (sha256 {})", summary.dataset, short(&summary.data_sha256))),
        ("config", short(&summary.config_sha256).to_owned()),
        ("seconds", format!("{:.0}", summary.seconds)),
    ] {
        out += &format!("- {label}: {value}\n");
    }
    out + &format!("\n```sh\n{}\n```\n", summary.command)
}

fn tables(row: &RowSummary, resamples: usize) -> Vec<Table> {
    let mut tables = vec![inferences(row, resamples), orderings(row), counts(&row.counts)];
    tables.extend((!row.curves.is_empty()).then(|| curves(&row.curves)));
    tables.extend(row.hubs.iter().map(hubs));
    tables.iter_mut().for_each(|t| t.title = format!("{}: {}", row.row, t.title));
    tables
}

/// What a reader must know about the model before its inferences.
fn origin(origin: &Origin) -> String {
    let Some(rsum) = origin.rsum else { return String::new() };
    let model = format!("The models reach rSum {rsum:.1} on test");
    match origin.cca {
        Some(cca) if cca > rsum => format!(
            "{model}: below the closed-form CCA, {cca:.1}. These are results of weak models. "
        ),
        Some(cca) => format!("{model}; the closed-form CCA reaches {cca:.1}. "),
        None => format!("{model}. "),
    }
}

/// A table with a line for each name.
fn lines<'a>(title: &str, stub: &str, names: impl Iterator<Item = &'a String>) -> Table {
    Table::new(title, stub, names.map(|name| (upper(name), Role::Other)))
}

fn inferences(row: &RowSummary, resamples: usize) -> Table {
    let all = || row.methods.iter();
    let of_seeds = |n: usize| format!("{n} of {}", row.seeds * row.folds);
    let mut t = lines("inferences", "inference", all().map(|m| &m.method));
    t.column("rSum", all().map(|m| points(m.rsum)));
    t.numbers("to NNS", all().map(|m| m.difference), signed);
    t.numbers("above", all().map(|m| m.difference.and(Some(m.above))), of_seeds);
    t.numbers("below", all().map(|m| m.difference.and(Some(m.below))), of_seeds);
    t.numbers("skewness", all().map(|m| m.hs_sum), points);
    t.numbers("paper", all().map(|m| m.paper), points);
    t.numbers("to NNS", all().map(|m| m.paper_difference), signed);
    t.numbers("λ of seed 0", all().map(|m| m.lambda.clone()), |text| text);
    let seeds = if row.seeds == 1 { "one seed".into() } else { format!("{} seeds", row.seeds) };
    let (unit, folds) = (unit(row.folds), format!(" and {} folds", row.folds));
    let folds = if row.folds == 1 { "" } else { &folds };
    t.noted(format!(
        "{}Mean over {seeds}{folds}. Above, below: {unit} with a significant difference to NNS (randomisation test, {resamples} draws, \
         Holm's correction, 0.05). Skewness: the sum over N₁, N₅, N₁₀ and both directions.{} λ: chosen on the \
         validation split, for R@1/R@5/R@10. The page rescored/report.html of each seed shows N₁₀ before and after, \
         and all curves.",
        origin(&row.source),
        paper(row)
    ))
}

/// Which line of the paper is beside the numbers.
fn paper(row: &RowSummary) -> String {
    if row.printed.is_empty() {
        return String::new();
    }
    let on = if row.printed_on == "mscoco" { "MS-COCO, five folds" } else { "Flickr30K" };
    format!(" Paper: {on}, its model line {}.", row.printed)
}

fn orderings(row: &RowSummary) -> Table {
    let all = || row.orderings.iter();
    let names = all().map(|o| (o.text.clone(), Role::Other));
    let mut t = Table::new("the paper's orderings", "ordering", names).noted(
        "rSum of the greater minus the lesser, mean over seeds. Only differences to NNS are tested.",
    );
    t.column("holds", all().map(|o| if o.holds { "yes" } else { "no" }));
    t.column("difference", all().map(|o| signed(o.difference)));
    let of = row.seeds * row.folds;
    t.column(unit(row.folds), all().map(|o| format!("{} of {of}", o.seeds)));
    t.numbers("paper", all().map(|o| o.paper_difference), signed);
    t
}

/// Figure 3 in numbers.
fn counts(counts: &[CountsSummary]) -> Table {
    let all = || counts.iter();
    let title = format!("Figure 3, {} of the images, text → image", n_of(10));
    let mut t = lines(&title, "inference", all().map(|c| &c.method)).noted(
        "N₁₀: how many captions have an image among their ten nearest. Means over the seeds; summary.json has the \
         distributions, the page of each seed draws them.",
    );
    t.numbers("skewness", all().map(|c| c.skewness), |x| decimals(x, 2));
    t.numbers("largest", all().map(|c| c.largest), points);
    t.numbers("in no list", all().map(|c| c.never), share);
    t
}

fn curves(curves: &[CurveSummary]) -> Table {
    let all = || curves.iter();
    let mut t = lines("Figure 4, R@10 against λ", "inference", all().map(|c| &c.method))
        .noted("These curves are of the test split: λ was not chosen on them.");
    t.column("direction", all().map(|c| &c.direction[..]));
    for lambda in LAMBDAS {
        let at = |c: &CurveSummary| {
            let place = c.lambda.iter().position(|x| (x - lambda).abs() < 1e-9)?;
            Some(c.r10[place])
        };
        t.numbers(lambda.to_string(), all().map(at), points);
    }
    t.numbers("∞", all().map(|c| c.unconstrained), points);
    t.numbers("best λ", all().map(best), |(lambda, r10)| format!("{lambda} ({})", points(r10)));
    t
}

/// The smallest λ with the highest R@10.
fn best(curve: &CurveSummary) -> Option<(f64, f64)> {
    let points = curve.lambda.iter().copied().zip(curve.r10.iter().copied());
    points.reduce(|best, point| if point.1 > best.1 { point } else { best })
}

fn hubs(side: &HubsOfSide) -> Table {
    let all = || side.worst.iter().take(HUBS);
    let name = |hub: &hubness::report::Hub| match &hub.name {
        Some(name) => itm_report::terminal::fit(name, NAME),
        None => hub.item.to_string(),
    };
    let items = if side.direction == "i2t" { "texts" } else { "images" };
    let title = format!("worst hubs, {}: {items}", side.direction);
    let mut t = Table::new(title, "item", all().map(|hub| (name(hub), Role::Other)));
    t.column(n_of(10), all().map(|hub| count(hub.count)));
    t.column("wrong", all().map(|hub| count(hub.wrong)));
    t.numbers("deserved", all().map(|hub| hub.deserved), share);
    for method in side.worst.first().iter().flat_map(|hub| hub.after.keys()) {
        t.numbers(upper(method), all().map(|hub| hub.after.get(method).copied()), count);
    }
    let wrong = count(side.wrong);
    t.noted(match side.deserved {
        Some(deserved) => format!(
            "Over all seeds, the worst hubs have {wrong} wrong places; {} are true beyond the annotation: deserved.",
            share(deserved)
        ),
        None => format!("Nothing here says which of the {wrong} wrong places are deserved."),
    })
}
