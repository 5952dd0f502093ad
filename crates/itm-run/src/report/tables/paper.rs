//! What the paper printed, and its differences beside ours.

use super::{Line, NONE, Role, Table, column, number, plain, recall_columns, role};
use crate::report::format::{interval, signed};
use crate::report::json::{Kind, PaperNumbers, Report};

/// The paper's printed lines; `None` if the run has none.
pub(in crate::report) fn paper(report: &Report) -> Option<Table> {
    let own: Vec<_> = (report.rows.iter())
        .filter_map(|r| r.paper.as_ref().map(|p| (r.name.as_str(), p)))
        .collect();
    let (dataset, protocol, lines) = match &report.paper_reference {
        Some(p) => {
            let lines = p.rows.iter().map(|r| (r.name.as_str(), &r.numbers)).collect();
            (p.dataset.as_str(), Some(p.protocol.as_str()), lines)
        }
        None => (report.dataset.as_str(), None, own),
    };
    let table = lines.first()?.1.table;
    let mut columns = recall_columns();
    columns.push(column("rSum"));
    let line = |(name, numbers): &(&str, &PaperNumbers)| Line {
        name: (*name).to_owned(),
        role: role(report, name, Kind::Trained),
        cells: (numbers.i2t.values().into_iter())
            .chain(numbers.t2i.values())
            .chain([numbers.rsum])
            .map(|x| plain(number(x)))
            .collect(),
    };
    let protocol = protocol.map_or(String::new(), |p| format!(", protocol {p}"));
    let apart = if report.paper_reference.is_some() {
        format!(" Not comparable with recalls on {}.", report.dataset)
    } else {
        String::new()
    };
    Some(Table {
        title: format!("{dataset} (paper)"),
        note: format!("Table {table} as printed{protocol}; rSum is our sum.{apart}"),
        stub: "row",
        columns,
        lines: lines.iter().map(line).collect(),
    })
}

/// Differences of rSum between the claim's row and the others, paper beside here; `None` when the
/// paper's data was measured itself, or fewer than two of its rows were run.
pub(in crate::report) fn paper_differences(report: &Report) -> Option<Table> {
    let reference = report.paper_reference.as_ref()?;
    let printed = |name: &str| reference.rows.iter().find(|r| r.name == name)?.numbers.rsum;
    let method = &report.claim.row;
    let (paper, here) = (printed(method)?, report.row(method)?.measured.rsum);
    let lines: Vec<_> = (reference.rows.iter())
        .filter(|r| r.name != *method)
        .filter_map(|r| {
            let in_paper = paper - r.numbers.rsum?;
            let paired = report.comparison(method, &r.name);
            let here = paired.map_or(here - report.row(&r.name)?.measured.rsum, |c| c.rsum);
            let ci = paired.and_then(|c| c.ci95);
            let agrees = match ci {
                Some([lo, hi]) if lo <= 0.0 && hi >= 0.0 => "unsure",
                _ if here * in_paper > 0.0 => "yes",
                _ => "no",
            };
            let cells = [signed(in_paper), signed(here), ci.map_or(NONE.into(), interval)];
            let cells = cells.into_iter().chain([agrees.to_owned()]).map(plain).collect();
            Some(Line { name: format!("{method} − {}", r.name), role: Role::Other, cells })
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    Some(Table {
        title: "The same differences, paper and here".into(),
        note: "Differences of rSum between rows, each on its own data: the sign and the order can \
               be compared, the sizes cannot. \"unsure\": the interval here includes zero."
            .into(),
        stub: "difference",
        columns: vec![
            column(&format!("{} (paper)", reference.dataset)),
            column(&format!("{} (here)", report.dataset)),
            column("95 % interval here"),
            column("same sign"),
        ],
        lines,
    })
}
