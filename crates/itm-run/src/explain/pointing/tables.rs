//! Whether words point at what they name, and whether a row separates words that do not match an image from words that match.

use itm_report::format::{count, decimals, share};
use itm_report::table::Table;

use super::mismatch::{Auc, Detected, Mismatch};
use super::{PointedShare, WordNumbers, WordShares};
use crate::report::{Report, of_rows, percent};

/// Pointing of every row, in annotated pairs and in false negatives.
pub(super) fn pointing(report: &Report, words: &[Option<WordNumbers>]) -> Table {
    let note = "Share of words whose closest patch (cosine of last hidden states) has its centre in a box of \
                an object that the word is about, over words that have such a box, on the test split. By chance: \
                a patch drawn at random. False negatives: each caption with the next image that it is true of \
                but not annotated with. Interval: bootstrap over images and seeds.";
    let shares = words.iter().map(|words| words.as_ref()?.pointing.as_ref()).collect::<Vec<_>>();
    of_words(report, ["Words that point at what they name", note], &shares)
}

/// The same table for the regions that words attend to.
pub(super) fn grounding(report: &Report, words: &[Option<WordNumbers>]) -> Table {
    let note = "Share of words whose most attended region has an IoU of at least 0.5 with a box of an object \
                that the word is about, over words that have such a box, on the test split. Idle words attend to no region \
                and hit nothing. By chance: a region drawn at random. False negatives: each caption with the next image \
                that it is true of but not annotated with. Interval: bootstrap over images and seeds.";
    let shares = words.iter().map(|words| words.as_ref()?.grounding.as_ref()).collect::<Vec<_>>();
    of_words(report, ["Words that attend to what they name", note], &shares)
}

fn of_words(report: &Report, [title, note]: [&str; 2], shares: &[Option<&WordShares>]) -> Table {
    let found = || shares.iter().copied();
    let mut t = of_rows(report, title).noted(note);
    type SharesOf = fn(&WordShares) -> Option<&PointedShare>;
    let sides: [(_, _, SharesOf); 2] = [
        ("annotated pairs", "pairs: ", |p| Some(&p.annotated)),
        ("false negatives", "FN: ", |p| p.false_negatives.as_ref()),
    ];
    for (group, short, of) in sides {
        let each = || found().map(|p| of(p?));
        t.best("on target", each().map(|p| Some(p?.share)), share).under(group, short);
        t.numbers("95 % interval", each().map(|p| Some(p?.ci95)), percent).under(group, short);
        t.numbers("by chance", each().map(|p| Some(p?.chance)), share).under(group, short);
        if each().flatten().any(|p| p.idle > 0.0) {
            t.numbers("idle", each().map(|p| Some(p?.idle)), share).under(group, short);
        }
        t.numbers("words", each().map(|p| Some(p?.words)), count).under(group, short);
    }
    t
}

/// AUC by the negative effect and by the best region, for each kind of image.
pub(super) fn mismatch(report: &Report, words: &[Option<WordNumbers>]) -> Table {
    let found = || words.iter().map(|words| words.as_ref()?.mismatch.as_ref());
    let mut t = of_rows(report, "Mismatched words against matched words").noted(
        "AUC over the words of the test split that say something about an image: mismatched words against words that match an \
         object or the background; 0.5 is chance. By effect: by what a word takes from the score; by cosine: by the word's best \
         region alone. Losing: share of the words that take something from the score. A wrong image is one that the caption is \
         false of: the highest-scoring one, or a random one. In the caption's own image every word matches. Mean over seeds; \
         interval: bootstrap over images and seeds.",
    );
    type DetectedOf = fn(&Mismatch) -> &Detected;
    type Area = fn(&Detected) -> Option<&Auc>;
    let kinds: [(_, _, DetectedOf); 3] = [
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
            let value = |x| decimals(x, 3);
            t.best(head, each().map(|a| Some(a?.value)), value).under(group, short);
            t.numbers("95 % interval", each().map(|a| Some(a?.ci95)), ends).under(group, short);
        }
        let losing = each().map(|d| d?.mismatched_losing);
        t.numbers("mismatched losing", losing, share).under(group, short);
        let losing = each().map(|d| d?.matched_losing);
        t.numbers("matched losing", losing, share).under(group, short);
        let words = each().map(|d| d.map(|d| [d.mismatched, d.matched]));
        t.numbers("words", words, |both| both.map(count).join(" / ")).under(group, short);
    }
    t
}

#[cfg(test)]
mod tests {
    use itm_report::format::NONE;

    use super::*;
    use crate::report::tests::sample;
    use crate::tests::texts;

    fn pointed(share: f64, chance: f64) -> PointedShare {
        PointedShare { share, chance, ci95: [share - 0.02, share + 0.03], words: 17_345, idle: 0.0 }
    }

    /// Rows 2 and 4 of the sample point.
    fn pointing_rows(report: &Report) -> Vec<Option<WordNumbers>> {
        let shares = WordShares {
            annotated: pointed(0.412, 0.091),
            false_negatives: Some(pointed(0.387, 0.088)),
        };
        let of = |k: usize| WordNumbers {
            pointing: [2, 4].contains(&k).then(|| shares.clone()),
            ..WordNumbers::default()
        };
        (0..report.rows.len()).map(|k| Some(of(k))).collect()
    }

    #[test]
    fn pointing_stands_beside_chance() {
        let report = sample::report(24.3, -5.5, &[1]);
        let mut words = pointing_rows(&report);
        let table = pointing(&report, &words);
        let full = texts(&table, "Full");
        assert_eq!(full[0], "41.2 %");
        assert_eq!(full[1], "39.2 to 44.2 %");
        assert_eq!(full[2..4], ["9.1 %", "17,345"]);
        assert_eq!((full[4], full[6]), ("38.7 %", "8.8 %"));
        assert!(texts(&table, "w/o FNE").iter().all(|cell| *cell == NONE));
        assert_eq!((table.columns.len(), full.len()), (8, 8));
        words.iter_mut().flatten().for_each(|words| words.pointing = None);
        assert!(pointing(&report, &words).filled().lines.is_empty());
    }

    #[test]
    fn regions_have_a_table_of_their_own() {
        let report = sample::report(24.3, -5.5, &[1]);
        let mut words = pointing_rows(&report);
        assert!(grounding(&report, &words).filled().lines.is_empty());
        let truth = words[2].as_mut().unwrap();
        truth.grounding = truth.pointing.take();
        truth.grounding.as_mut().unwrap().annotated.idle = 0.125;
        words[4].as_mut().unwrap().pointing = None;
        assert!(pointing(&report, &words).filled().lines.is_empty());
        let table = grounding(&report, &words);
        assert!(table.title.contains("attend"));
        assert_eq!(
            texts(&table, "Full")[..5],
            ["41.2 %", "39.2 to 44.2 %", "9.1 %", "12.5 %", "17,345"]
        );
        assert_eq!(table.columns.len(), 9, "no idle word in false negatives");
    }

    #[test]
    fn areas_stand_under_the_kind_of_image() {
        let report = sample::report(24.3, -5.5, &[1]);
        let mut words = pointing_rows(&report);
        assert!(mismatch(&report, &words).filled().lines.is_empty());
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
        words[2].as_mut().unwrap().mismatch = full;
        let scan = Detected { mismatched_losing: None, matched_losing: None, ..of(None, 0.7) };
        words[3].as_mut().unwrap().mismatch = all(scan.clone(), scan.clone(), scan);
        let table = mismatch(&report, &words).filled();
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
        assert!(table.lines.iter().all(|line| line.0 != "w/o MMM"));
    }
}
