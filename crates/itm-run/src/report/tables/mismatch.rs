//! Whether a row separates words that do not match an image from words that match.

use itm_report::format::{count, decimals, share};
use itm_report::table::Table;

use super::of_rows;
use crate::report::json::{Auc, Detected, Mismatch, Report};

/// AUC by the negative effect and by the best region, for each kind of image; `None` if no row has a truth and words
/// with effects.
pub(in crate::report) fn mismatch(report: &Report) -> Option<Table> {
    let found = || report.rows.iter().map(|row| row.truth.as_ref()?.mismatch.as_ref());
    found().find_map(|m| m)?;
    let mut t = of_rows(report, "Mismatched words against matched words").noted(
        "AUC over the words of the test split that say something about an image: mismatched words against words that match an \
         object or the background; 0.5 is chance. By effect: by what a word takes from the score; by cosine: by the word's best \
         region alone. Losing: share of the words that take something from the score. A wrong image is one that the caption is \
         false of: the highest-scoring one, or a random one. In the caption's own image every word matches. Mean over seeds; \
         interval: bootstrap over images and seeds.",
    );
    type Of = fn(&Mismatch) -> &Detected;
    type Area = fn(&Detected) -> Option<&Auc>;
    type Share = fn(&Detected) -> Option<f64>;
    let kinds: [(_, _, Of); 3] = [
        ("hardest wrong image", "hardest: ", |m| &m.hardest),
        ("random wrong image", "random: ", |m| &m.random),
        ("own image", "own: ", |m| &m.own),
    ];
    let ends = |[lo, hi]: [f64; 2]| format!("{} to {}", decimals(lo, 3), decimals(hi, 3));
    for (group, short, of) in kinds {
        let each = || found().map(|m| Some(of(m?)));
        let areas: [(_, Area); 2] = [
            ("AUC by effect", |d| d.by_negative_effect.as_ref()),
            ("AUC by cosine", |d| d.by_best_region.as_ref()),
        ];
        for (head, auc) in areas {
            let each = || each().map(|d| auc(d?));
            if each().flatten().next().is_some() {
                let value = |x| decimals(x, 3);
                t.best(head, each().map(|a| Some(a?.value)), value).under(group, short);
                t.numbers("95 % interval", each().map(|a| Some(a?.ci95)), ends).under(group, short);
            }
        }
        let losing: [(_, Share); 2] = [
            ("mismatched losing", |d| d.mismatched_losing),
            ("matched losing", |d| d.matched_losing),
        ];
        for (head, of) in losing {
            let each = || each().map(|d| of(d?));
            if each().flatten().next().is_some() {
                t.numbers(head, each(), share).under(group, short);
            }
        }
        let words = each().map(|d| d.map(|d| [d.mismatched, d.matched]));
        t.numbers("words", words, |both| both.map(count).join(" / ")).under(group, short);
    }
    Some(t)
}

#[cfg(test)]
mod tests {
    use itm_report::format::NONE;

    use super::super::super::tests::sample;
    use super::super::texts;
    use super::*;

    #[test]
    fn areas_stand_under_the_kind_of_image() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        assert!(mismatch(&report).is_none());
        let auc = |value: f64| Some(Auc { value, ci95: [value - 0.01, value + 0.02] });
        let of = |by_negative_effect, value| Detected {
            by_negative_effect,
            by_best_region: auc(value),
            mismatched_losing: Some(0.8),
            matched_losing: Some(0.05),
            mismatched: 1234,
            matched: 56,
        };
        let missing = Detected {
            by_best_region: None,
            mismatched_losing: None,
            mismatched: 0,
            ..of(None, 0.5)
        };
        let all = |own, hardest, random| Some(Mismatch { own, hardest, random });
        let full = all(missing.clone(), of(auc(0.91), 0.88), of(auc(0.95), 0.9));
        report.rows[2].truth.as_mut().unwrap().mismatch = full;
        let scan = Detected { mismatched_losing: None, matched_losing: None, ..of(None, 0.7) };
        report.rows[3].truth.as_mut().unwrap().mismatch = all(scan.clone(), scan.clone(), scan);
        let table = mismatch(&report).unwrap();
        let full = texts(&table, "Full");
        let hardest =
            ["0.910", "0.900 to 0.930", "0.880", "0.870 to 0.900", "80.0 %", "5.0 %", "1,234 / 56"];
        assert_eq!(full[..7], hardest);
        assert_eq!(full[7], "0.950");
        assert_eq!(
            full[14..],
            [NONE, NONE, "5.0 %", "0 / 56"],
            "no area of an effect in the own image"
        );
        let without = texts(&table, "w/o FNE");
        assert_eq!(without[..4], [NONE, NONE, "0.700", "0.690 to 0.720"]);
        assert!(texts(&table, "w/o MMM").iter().all(|cell| *cell == NONE));
    }
}
