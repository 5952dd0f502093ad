//! Recalls and corrected scores from dense loops in f64, written only from the equations.

use super::common::{EACH, Folder, IMAGES, cosines, floats, recalls, row, transposed};

/// A correction as a function of all scores of a direction, `[query][item]`.
pub(crate) type Formula = fn(&[Vec<f64>]) -> Vec<Vec<f64>>;

pub(crate) fn plain(scores: &[Vec<f64>]) -> Vec<Vec<f64>> {
    scores.to_vec()
}

/// 2 s − mean of the five queries nearest to the item.
pub(crate) fn csls_5(scores: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let near: Vec<f64> = transposed(scores)
        .into_iter()
        .map(|mut column| {
            column.sort_by(|a, b| b.total_cmp(a));
            column[..5].iter().sum::<f64>() / 5.0
        })
        .collect();
    scores.iter().map(|row| row.iter().zip(&near).map(|(s, r)| 2.0 * s - r).collect()).collect()
}

/// β s − log Σ over queries of exp(β s), β = 20.
pub(crate) fn is_20(scores: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let sum = |column: Vec<f64>| column.iter().map(|s| (20.0 * s).exp()).sum::<f64>().ln();
    let sums: Vec<f64> = transposed(scores).into_iter().map(sum).collect();
    scores.iter().map(|row| row.iter().zip(&sums).map(|(s, z)| 20.0 * s - z).collect()).collect()
}

/// s − 3/4 of the mean of the five largest scores of the item.
pub(crate) fn nnn_5(scores: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let halved = csls_5(scores);
    // `halved` is 2 s − r, and s − 3/4 r = 3/4 (2 s − r) − s / 2.
    let one = |(row, s): (&Vec<f64>, &Vec<f64>)| {
        row.iter().zip(s).map(|(u, s)| 0.75 * u - 0.5 * s).collect()
    };
    halved.iter().zip(scores).map(one).collect()
}

/// Percentages at 1, 5, 10: a query hits if a true item is among the first K.
pub(crate) fn percent(scores: &[Vec<f64>], is_true: impl Fn(usize, usize) -> bool) -> [f64; 3] {
    [1, 5, 10].map(|k| {
        let hit = |(query, row): (usize, &Vec<f64>)| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
            order[..k].iter().any(|&item| is_true(query, item))
        };
        let hits = scores.iter().enumerate().filter(|&at| hit(at)).count();
        100.0 * hits as f64 / scores.len() as f64
    })
}

pub(crate) fn want(formula: Formula) -> Vec<f64> {
    let scores = cosines();
    let i2t = percent(&formula(&scores), |image, text| text / EACH == image);
    let t2i = percent(&formula(&transposed(&scores)), |text, image| text / EACH == image);
    [i2t, t2i].concat()
}

pub(crate) const ALL: [(&str, &str, Formula); 4] = [
    ("nns", "", plain),
    ("csls", "--csls-k 5", csls_5),
    ("is", "--is-beta 20", is_20),
    ("nnn", "--nnn-k 5", nnn_5),
];

#[test]
fn recalls_are_those_of_dense_loops() {
    let folder = Folder::made();
    let options: Vec<_> = ALL.iter().map(|(_, option, _)| *option).collect();
    let report = folder.report(&format!("--method nns,csls,is,nnn {}", options.join(" ")));
    let plain = want(plain);
    for (method, _, formula) in ALL {
        let (got, want) = (recalls(row(&report, method)), want(formula));
        let same = got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(same, "{method}: got {got:?}, want {want:?}");
        let rsum = row(&report, method)["rsum"].as_f64().unwrap();
        assert!((rsum - want.iter().sum::<f64>()).abs() < 1e-9, "{method}: {rsum}");
        assert!(method == "nns" || want != plain, "{method} changes the recalls");
    }
}

#[test]
fn corrected_scores_are_those_of_dense_loops() {
    let folder = Folder::made();
    for (method, option, formula) in ALL {
        for direction in ["i2t", "t2i"] {
            let line = format!(
                "rescore --images i.npy --texts t.npy --method {method} {option} \
                 --direction {direction} --out u.npy"
            );
            let ran = folder.run(&line);
            assert_eq!(ran.code, Some(0), "{}", ran.err);
            let (width, got) = floats(&folder.read("u.npy"));
            assert_eq!((width, got.len()), (IMAGES * EACH, IMAGES * IMAGES * EACH));
            let scores = cosines();
            let want = match direction {
                "i2t" => formula(&scores),
                _ => transposed(&formula(&transposed(&scores))),
            };
            for (at, (got, want)) in got.iter().zip(want.iter().flatten()).enumerate() {
                let close = (f64::from(*got) - want).abs() < 1e-5 * want.abs().max(1.0);
                assert!(close, "{method} {direction} {at}: got {got}, want {want}");
            }
        }
    }
}
