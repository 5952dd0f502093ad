//! Hubs of the rows: how unequally their nearest neighbours find items.

use super::{Column, Line, NONE, Role, Table, column, plain, role};
use crate::report::format::{interval_to, share, signed_to, spread};
use crate::report::json::{HubCounts, HubDifference, Kind, Report, RowHubs};

/// Skewnesses of every row; `None` where nothing was counted.
pub(in crate::report) fn hubs(report: &Report) -> Option<Table> {
    let first = report.hubs.first()?;
    let printed = report.hubs.iter().any(|row| row.paper_hs_sum.is_some());
    let of_counts = |c: &HubCounts| Column {
        group: c.direction.queries("image → text", "text → image"),
        short: c.direction.queries("i2t ", "t2i "),
        label: format!("N_{}", c.k),
    };
    let mut columns = vec![column("hs-sum")];
    columns.extend(printed.then(|| column("paper hs-sum")));
    columns.extend(first.counts.iter().map(of_counts));
    let line = |row: &RowHubs| {
        let mut cells = vec![spread(row.hs_sum, 2)];
        if printed {
            cells.push(row.paper_hs_sum.map_or(NONE.into(), |sum| format!("{sum:.2}")));
        }
        cells.extend(row.counts.iter().map(|c| spread(c.skewness, 2)));
        let cells = cells.into_iter().map(plain).collect();
        Line { name: row.row.clone(), role: of(report, row), cells }
    };
    Some(Table {
        title: "Hubs: skewness".into(),
        note:
            "N_k of an item: how many queries have it among their k nearest, 0 included; the more \
               skewed, the more of a hub. hs-sum: N_1, N_5 and N_10, both directions, summed. Mean \
               over seeds (and folds) ± standard deviation over seeds. Lower is better."
                .into(),
        stub: "row",
        columns,
        lines: report.hubs.iter().map(line).collect(),
    })
}

/// What else there is to say of N_1 and N_10, a line for each row, direction and k.
pub(in crate::report) fn hub_counts(report: &Report) -> Option<Table> {
    report.hubs.first()?;
    let line = |row: &RowHubs, c: &HubCounts| Line {
        name: format!("{}, N_{} {}", row.row, c.k, c.direction),
        role: of(report, row),
        cells: [
            spread(c.skewness, 2),
            spread(c.robin_hood, 3),
            share(c.never.mean),
            spread(c.largest, 1),
        ]
        .map(plain)
        .into(),
    };
    let lines = report.hubs.iter().flat_map(|row| row.counts.iter().map(move |c| line(row, c)));
    Some(Table {
        title: "Hubs: counts".into(),
        note: "Robin Hood: the share of all answers that would have to move for every item to have as \
               many. In no list: items that no query has among its k nearest. Largest: the largest N_k."
            .into(),
        stub: "row",
        columns: ["skewness", "Robin Hood", "in no list", "largest"].map(column).into(),
        lines: lines.collect(),
    })
}

/// Whether the claim's row has fewer hubs than the others; `None` where nothing was compared.
pub(in crate::report) fn hub_differences(report: &Report) -> Option<Table> {
    let first = report.hub_differences.first()?;
    let line = |d: &HubDifference| Line {
        name: format!("{} − {}", d.row, d.minus),
        role: if d.row == report.claim.row { Role::Method } else { Role::Other },
        cells: [
            signed_to(d.hs_sum, 2),
            interval_to(d.hs_sum_ci95, 2),
            signed_to(d.skewness, 2),
            interval_to(d.skewness_ci95, 2),
        ]
        .map(plain)
        .into(),
    };
    let skewness = format!("skewness of N_{} {}", first.k, first.direction);
    Some(Table {
        title: "Differences of hubs".into(),
        note:
            "Below 0: fewer hubs. Interval: 95 % percentile bootstrap over seeds and test images, \
               2,000 draws, the same for both rows."
                .into(),
        stub: "difference",
        columns: ["hs-sum", "95 % interval", &skewness, "95 % interval"].map(column).into(),
        lines: report.hub_differences.iter().map(line).collect(),
    })
}

fn of(report: &Report, row: &RowHubs) -> Role {
    let kind = report.row(&row.row).map_or(Kind::Trained, |row| row.kind);
    role(report, &row.row, kind)
}

#[cfg(test)]
mod tests {
    use hubness::Direction;

    use super::super::super::sample;
    use super::*;
    use crate::report::json::Spread;

    fn texts(table: &Table, line: usize) -> Vec<&str> {
        table.lines[line].cells.iter().map(|c| c.text.as_str()).collect()
    }

    fn heads(table: &Table) -> Vec<String> {
        table.columns.iter().map(|c| format!("{}{}", c.short, c.label)).collect()
    }

    #[test]
    fn cells_stand_under_their_heads() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        assert!(hubs(&report).is_none() && hub_counts(&report).is_none());
        assert!(hub_differences(&report).is_none());
        let at = |mean| Spread { mean, sd: Some(0.25) };
        let counts = |direction, k, skewness| HubCounts {
            direction,
            k,
            skewness: at(skewness),
            robin_hood: at(0.5),
            never: at(0.125),
            largest: Spread { mean: 31.0, sd: None },
        };
        let row = |name: &str, sum, paper| RowHubs {
            row: name.into(),
            hs_sum: at(sum),
            paper_hs_sum: paper,
            counts: vec![counts(Direction::I2t, 1, 1.5), counts(Direction::T2i, 10, sum / 4.0)],
        };
        report.hubs = vec![row("Full", 9.0, None), row("w/o FNE", 12.0, None)];
        let table = hubs(&report).unwrap();
        assert_eq!(heads(&table), ["hs-sum", "i2t N_1", "t2i N_10"]);
        assert_eq!(texts(&table, 1), ["12.00 ± 0.25", "1.50 ± 0.25", "3.00 ± 0.25"]);
        assert_eq!([table.lines[0].role, table.lines[1].role], [Role::Method, Role::Other]);
        report.hubs[0].paper_hs_sum = Some(9.03);
        let table = hubs(&report).unwrap();
        assert_eq!(heads(&table)[..2], ["hs-sum", "paper hs-sum"]);
        assert_eq!((texts(&table, 0)[1], texts(&table, 1)[1]), ("9.03", "–"));
        let table = hub_counts(&report).unwrap();
        assert_eq!(table.lines[1].name, "Full, N_10 t2i");
        assert_eq!(texts(&table, 1), ["2.25 ± 0.25", "0.500 ± 0.250", "12.5 %", "31.0"]);

        report.hub_differences = vec![HubDifference {
            row: "Full".into(),
            minus: "w/o FNE".into(),
            hs_sum: -3.0,
            hs_sum_ci95: [-4.5, 0.25],
            direction: Direction::T2i,
            k: 1,
            skewness: 0.75,
            skewness_ci95: [0.5, 1.0],
        }];
        let table = hub_differences(&report).unwrap();
        assert_eq!(table.columns[2].label, "skewness of N_1 t2i");
        assert_eq!(texts(&table, 0), ["−3.00", "−4.50 to 0.25", "+0.75", "0.50 to 1.00"]);
        assert_eq!(table.lines[0].name, "Full − w/o FNE");
    }
}
