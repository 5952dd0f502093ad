//! Hubs of the rows: how unequally their nearest neighbours find items.

use itm_report::format::{decimals, interval_to, share, signed_to};
use itm_report::table::Table;

use super::{HubCounts, HubDifference, RowHubs, Spread};
use crate::report::{Report, role};

/// Skewnesses of every row.
pub(super) fn hubs(report: &Report, hubs: &[RowHubs]) -> Table {
    let rows = || hubs.iter();
    let lines = rows().map(|row| (row.row.as_str(), role(report, &row.row)));
    let mut t = Table::new("Hubs: skewness", "row", lines).noted(
        "N_k of an item: how many queries have it among their k nearest, 0 included. A larger skewness \
         means stronger hubs. hs-sum: the sum over N_1, N_5, N_10 and both directions. Mean over seeds \
         (and folds) ± standard deviation over seeds. Lower is better.",
    );
    t.column("hs-sum", rows().map(|row| spread(row.hs_sum, 2)));
    t.numbers("paper hs-sum", rows().map(|row| row.paper_hs_sum), |sum| decimals(sum, 2));
    for (k, c) in hubs.first().into_iter().flat_map(|row| &row.counts).enumerate() {
        let group = c.direction.queries("image → text", "text → image");
        t.column(format!("N_{}", c.k), rows().map(|row| spread(row.counts[k].skewness, 2)))
            .under(group, c.direction.queries("i2t ", "t2i "));
    }
    t
}

/// Further measures of N_1 and N_10, one line per row, direction and k.
pub(super) fn hub_counts(report: &Report, hubs: &[RowHubs]) -> Table {
    let all = || hubs.iter().flat_map(|row| row.counts.iter().map(move |c| (row, c)));
    let name = |row: &RowHubs, c: &HubCounts| format!("{}, N_{} {}", row.row, c.k, c.direction);
    let lines = all().map(|(row, c)| (name(row, c), role(report, &row.row)));
    let mut t = Table::new("Hubs: counts", "row", lines).noted(
        "Robin Hood: the share of all answers that would have to move so that all counts are equal. \
         In no list: items that no query has among its k nearest. Largest: the largest N_k.",
    );
    t.column("skewness", all().map(|(_, c)| spread(c.skewness, 2)));
    t.column("Robin Hood", all().map(|(_, c)| spread(c.robin_hood, 3)));
    t.column("in no list", all().map(|(_, c)| share(c.never.mean)));
    t.column("largest", all().map(|(_, c)| spread(c.largest, 1)));
    t
}

/// Whether the claim's row has fewer hubs than the others.
pub(super) fn hub_differences(report: &Report, differences: &[HubDifference]) -> Table {
    let all = || differences.iter();
    let lines = all().map(|d| (format!("{} − {}", d.row, d.minus), role(report, &d.row)));
    let mut t = Table::new("Differences of hubs", "difference", lines).noted(
        "Below 0: fewer hubs. Interval: 95 % percentile bootstrap over seeds and test images, 2,000 \
         draws, the same for both rows.",
    );
    t.column("hs-sum", all().map(|d| signed_to(d.hs_sum, 2)));
    t.column("95 % interval", all().map(|d| interval_to(d.hs_sum_ci95, 2)));
    let what = all().next().map(|d| format!("skewness of N_{} {}", d.k, d.direction));
    t.column(what.unwrap_or_default(), all().map(|d| signed_to(d.skewness, 2)));
    t.column("95 % interval", all().map(|d| interval_to(d.skewness_ci95, 2)));
    t
}

/// A mean with its standard deviation over seeds, if there are several: `9.03 ± 0.31`.
fn spread(x: Spread, places: usize) -> String {
    let mean = decimals(x.mean, places);
    x.sd.map_or_else(|| mean.clone(), |sd| format!("{mean} ± {}", decimals(sd, places)))
}

#[cfg(test)]
mod tests {
    use hubness::Direction;
    use itm_report::table::Role;

    use super::*;
    use crate::report::tests::sample;
    use crate::tests::texts;

    fn heads(table: &Table) -> Vec<String> {
        table.columns.iter().map(|c| c.head()).collect()
    }

    #[test]
    fn cells_stand_under_their_heads() {
        let report = sample::report(24.3, -5.5, &[1]);
        let none = [hubs(&report, &[]), hub_counts(&report, &[]), hub_differences(&report, &[])];
        assert!(none.iter().all(|table| table.lines.is_empty()));
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
        let mut all = vec![row("Full", 9.0, None), row("w/o FNE", 12.0, None)];
        let table = hubs(&report, &all).filled();
        assert_eq!(heads(&table), ["hs-sum", "i2t N_1", "t2i N_10"]);
        assert_eq!(texts(&table, "w/o FNE"), ["12.00 ± 0.25", "1.50 ± 0.25", "3.00 ± 0.25"]);
        assert_eq!([table.lines[0].1, table.lines[1].1], [Role::Method, Role::Other]);
        all[0].paper_hs_sum = Some(9.03);
        let table = hubs(&report, &all);
        assert_eq!(heads(&table)[..2], ["hs-sum", "paper hs-sum"]);
        assert_eq!((texts(&table, "Full")[1], texts(&table, "w/o FNE")[1]), ("9.03", "–"));
        let table = hub_counts(&report, &all);
        assert_eq!(
            texts(&table, "Full, N_10 t2i"),
            ["2.25 ± 0.25", "0.500 ± 0.250", "12.5 %", "31.0"]
        );

        let differences = vec![HubDifference {
            row: "Full".into(),
            minus: "w/o FNE".into(),
            hs_sum: -3.0,
            hs_sum_ci95: [-4.5, 0.25],
            direction: Direction::T2i,
            k: 1,
            skewness: 0.75,
            skewness_ci95: [0.5, 1.0],
        }];
        let table = hub_differences(&report, &differences);
        assert_eq!(table.columns[2].label, "skewness of N_1 t2i");
        let want = ["−3.00", "−4.50 to 0.25", "+0.75", "0.50 to 1.00"];
        assert_eq!(texts(&table, "Full − w/o FNE"), want);
    }
}
