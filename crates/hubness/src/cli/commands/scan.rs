//! `hubness scan`: planted hubs among the items, or a gate for new ones.

use std::io::Write;

use itm_core::{Error, Result};
use serde_json::json;

use super::renamed;
use crate::cli::args::ScanArgs;
use crate::cli::input::{self, view};
use crate::scan::{Admission, Alert, Scan};

pub(super) fn run(args: &ScanArgs, out: &mut impl Write) -> Result<()> {
    let budget = args.budget();
    budget.check().map_err(named)?; // before any file is read
    let source = args.input();
    let arrays = input::arrays(&source, false)?.rows;
    let all = |array: &input::Array| input::some_rows(array, 0..array.rows(), source.length());
    let [images, texts] = [all(&arrays[0])?, all(&arrays[1])?];
    let new = args.admit.as_ref().map(|at| input::other(at, &arrays[0])).transpose()?;
    let new = new.as_ref().map(all).transpose()?;
    let (images, texts) = (view("images", &images)?, view("texts", &texts)?);
    let (queries, items) = args.direction.sides(images, texts);
    let scan = Scan::new(queries, items, args.top).map_err(named)?;
    let text = match new {
        Some(new) => {
            let judged = scan.admit(queries, view("new items", &new)?, budget).map_err(named)?;
            admissions(args, &scan, &judged)
        }
        None => alerts(args, &scan, &scan.alerts(budget).map_err(named)?),
    };
    out.write_all(text.as_bytes()).map_err(Error::io("standard output"))
}

/// Names the option in an error of the library.
fn named(error: Error) -> Error {
    renamed(error, |place| match place {
        "k" => Some("--top".into()),
        "alerts" | "false alarms" => Some(format!("--{}", place.replace(' ', "-"))),
        _ => None,
    })
}

fn alerts(args: &ScanArgs, scan: &Scan, alerts: &[Alert]) -> String {
    let of = scan.summary();
    if args.json {
        return format!("{:#}\n", json!({ "scan": of, "alerts": alerts }));
    }
    let mut text = format!(
        "{}: {} queries in {} clusters, {} items. N{}: median {}, 99.9th percentile {}, largest {}.\n",
        args.direction, of.queries, of.clusters, of.items, of.k, of.median, of.high, of.largest
    );
    if alerts.is_empty() {
        return text + "No alert.\n";
    }
    let count = format!("N{}", of.k);
    text += &format!(
        "\n{:>9} {count:>7} {:>7} {:>8} {:>9} {:>8} {:>8} {:>13}\n",
        "item", "first", "z", "clusters", "capture", "score", "false alarms"
    );
    for Alert { item, evidence: e } in alerts {
        let n = e.false_alarms;
        let n = if n < 0.01 { format!("{n:.2e}") } else { format!("{n:.2}") };
        text += &format!(
            "{item:>9} {:>7} {:>7} {:>8.1} {:>9.1} {:>8.2} {:>8.1} {n:>13}\n",
            e.count, e.first, e.z, e.clusters, e.capture, e.score
        );
    }
    text
}

fn admissions(args: &ScanArgs, scan: &Scan, judged: &[Admission]) -> String {
    if args.json {
        return format!("{:#}\n", json!({ "scan": scan.summary(), "items": judged }));
    }
    judged.iter().map(|admission| scan.sentence(admission) + "\n").collect()
}
