//! The paper's printed numbers, and the paper's differences beside ours.

use itm_report::format::{interval, points, signed};
use itm_report::table::{Role, Table};

use super::{SIX, trained};
use crate::report::json::{PaperNumbers, Report};

/// The paper's printed lines; `None` if the run has none.
pub(in crate::report) fn paper(report: &Report) -> Option<Table> {
    let reference = report.paper_reference.as_ref();
    let printed: Vec<(&str, &PaperNumbers)> = match reference {
        Some(p) => p.rows.iter().map(|r| (r.name.as_str(), &r.numbers)).collect(),
        None => {
            report.rows.iter().filter_map(|r| Some((r.name.as_str(), r.paper.as_ref()?))).collect()
        }
    };
    let table = printed.first()?.1.table;
    let dataset = reference.map_or(&report.dataset, |p| &p.dataset);
    let protocol = reference.map_or(String::new(), |p| format!(", protocol {}", p.protocol));
    let apart = reference
        .map_or(String::new(), |_| format!(" Not comparable with recalls on {}.", report.dataset));
    let lines = printed.iter().map(|(name, _)| (*name, trained(report, name)));
    let mut t = Table::new(format!("{dataset} (paper)"), "row", lines)
        .noted(format!("Table {table} as printed{protocol}; rSum is our sum.{apart}"));
    for (k, (group, short, head)) in SIX.into_iter().enumerate() {
        let of = |n: &PaperNumbers| [n.i2t, n.t2i][k / 3].values()[k % 3];
        t.numbers(head, printed.iter().map(|(_, n)| of(n)), points).under(group, short);
    }
    t.numbers("rSum", printed.iter().map(|(_, n)| n.rsum), points);
    Some(t)
}

/// Differences of rSum between the claim's row and the other rows, in the paper and here. `None` if
/// the run measured the paper's own data, or ran fewer than two of the paper's rows.
pub(in crate::report) fn paper_differences(report: &Report) -> Option<Table> {
    let reference = report.paper_reference.as_ref()?;
    let method = &report.claim.row;
    let paper = reference.rows.iter().find(|r| r.name == *method)?.numbers.rsum?;
    let here = report.row(method)?.measured.rsum;
    let others = reference.rows.iter().filter(|r| r.name != *method);
    let found: Vec<_> = others
        .filter_map(|r| {
            let paired = report.comparison(method, &r.name);
            let difference = match paired {
                Some(c) => c.rsum,
                None => here - report.row(&r.name)?.measured.rsum,
            };
            Some((&r.name, paper - r.numbers.rsum?, difference, paired.and_then(|c| c.ci95)))
        })
        .collect();
    let agrees = |&(_, paper, here, ci): &(&String, f64, f64, Option<[f64; 2]>)| match ci {
        Some([lo, hi]) if lo <= 0.0 && hi >= 0.0 => "unsure",
        _ if here * paper > 0.0 => "yes",
        _ => "no",
    };
    let lines = found.iter().map(|d| (format!("{method} − {}", d.0), Role::Other));
    let mut t = Table::new("The same differences, paper and here", "difference", lines).noted(
        "Differences of rSum between rows, each on its own data: the sign and the order can be \
         compared, the sizes cannot. \"unsure\": the interval here includes zero.",
    );
    t.column(format!("{} (paper)", reference.dataset), found.iter().map(|d| signed(d.1)));
    t.column(format!("{} (here)", report.dataset), found.iter().map(|d| signed(d.2)));
    t.numbers("95 % interval here", found.iter().map(|d| d.3), interval);
    t.column("same sign", found.iter().map(agrees));
    (!found.is_empty()).then_some(t)
}
