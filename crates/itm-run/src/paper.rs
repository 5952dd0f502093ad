//! The papers' printed numbers: facts to stand beside what was measured.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::report::{PaperNumbers, PaperRecalls, PaperReference, PaperRow};

/// One printed line of FNE's Tables 1 to 5.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Printed {
    /// Number of the table.
    pub table: u32,
    /// The line's name.
    pub row: String,
    /// `flickr30k` or `mscoco`.
    pub dataset: String,
    /// `test_1k`, `test_1k_5fold` or `test_5k`.
    pub protocol: String,
    /// `single` or `ensemble`, of the paper's own method only.
    pub model: Option<String>,
    /// `baseline`, `ablation` or `method`.
    pub kind: String,
    /// The parameter an ablation varies.
    pub param: Option<String>,
    i2t_r1: Option<f64>,
    i2t_r5: Option<f64>,
    i2t_r10: Option<f64>,
    t2i_r1: Option<f64>,
    t2i_r5: Option<f64>,
    t2i_r10: Option<f64>,
}

impl Printed {
    /// The line's recalls, and their sum where all six are printed.
    pub fn numbers(&self) -> PaperNumbers {
        let i2t = PaperRecalls { r1: self.i2t_r1, r5: self.i2t_r5, r10: self.i2t_r10 };
        let t2i = PaperRecalls { r1: self.t2i_r1, r5: self.t2i_r5, r10: self.t2i_r10 };
        let rsum = i2t.values().into_iter().chain(t2i.values()).sum();
        PaperNumbers { table: self.table, i2t, t2i, rsum }
    }
}

/// Every line of FNE's result tables.
pub fn fne() -> &'static [Printed] {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        row: Vec<Printed>,
    }
    static ROWS: OnceLock<Vec<Printed>> = OnceLock::new();
    ROWS.get_or_init(|| {
        // The file is compiled in and a test reads it: it cannot fail in a user's hands.
        toml::from_str::<File>(include_str!("paper/fne.toml")).expect("paper/fne.toml").row
    })
}

/// The line `row` of table `table`, for a run on the paper's own data.
pub fn fne_row(table: u32, dataset: &str, row: &str) -> Option<&'static Printed> {
    fne().iter().find(|r| r.table == table && r.dataset == dataset && r.row == row)
}

/// The block "Flickr30K (paper)" of a run on other data: the lines of `table` named in `rows`, in
/// that order. Names the table does not have are left out.
pub fn fne_reference(table: u32, rows: &[&str]) -> PaperReference {
    let printed = |name: &&str| fne_row(table, "flickr30k", name);
    PaperReference {
        dataset: "Flickr30K".into(),
        protocol: "test_1k".into(),
        table,
        rows: (rows.iter().filter_map(printed))
            .map(|r| PaperRow { name: r.row.clone(), numbers: r.numbers() })
            .collect(),
    }
}

/// One line of the hubs paper's Table 3: an inference over a model of its earlier tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inference {
    /// Number of the table.
    pub table: u32,
    /// The line's number.
    pub row: String,
    /// `flickr30k` or `mscoco`.
    pub dataset: String,
    /// `test_1k` or `test_1k_5fold`.
    pub protocol: String,
    /// The line of Table 1 or 2 that trained the model.
    pub model: String,
    /// `NNS`, `GM`, `CSLS+RGM`, …
    pub inference: String,
    /// Sum of the six recalls, in percent.
    pub rsum: f64,
}

/// Every line of the hubs paper's Table 3.
pub fn inferences() -> &'static [Inference] {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        row: Vec<Inference>,
    }
    static ROWS: OnceLock<Vec<Inference>> = OnceLock::new();
    ROWS.get_or_init(|| {
        // As above: compiled in, and a test reads it.
        toml::from_str::<File>(include_str!("paper/hubness.toml")).expect("paper/hubness.toml").row
    })
}

/// The rSum of an inference on Flickr30K, by the name it has here (`csls+rgm`).
pub fn inference_rsum(method: &str) -> Option<f64> {
    let named = |r: &&Inference| r.inference.eq_ignore_ascii_case(method);
    inferences().iter().filter(|r| r.dataset == "flickr30k").find(named).map(|r| r.rsum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_there() {
        let count = |table| fne().iter().filter(|r| r.table == table).count();
        assert_eq!([1, 2, 3, 4, 5].map(count), [36, 14, 4, 5, 4]);
        for r in fne() {
            let numbers = r.numbers();
            for (i, v) in numbers.i2t.values().iter().chain(&numbers.t2i.values()).enumerate() {
                assert!(v.is_none_or(|v| (30.0..=100.0).contains(&v)), "{} column {i}", r.row);
            }
        }
    }

    /// Table 3 read off the page: 84.7 97.1 99.1 68.1 90.0 94.0, and w/o FNE 83.8 … 93.1.
    #[test]
    fn the_ablation_rows() {
        let full = fne_row(3, "flickr30k", "Full").unwrap().numbers();
        assert_eq!(full.i2t.values(), [Some(84.7), Some(97.1), Some(99.1)]);
        assert_eq!(full.t2i.values(), [Some(68.1), Some(90.0), Some(94.0)]);
        assert!((full.rsum.unwrap() - 533.0).abs() < 1e-9);
        let without = fne_row(3, "flickr30k", "w/o FNE").unwrap().numbers();
        assert!((without.rsum.unwrap() - 528.8).abs() < 1e-9);
    }

    #[test]
    fn tables_of_one_method_are_told_apart() {
        let r1 = |table| fne_row(table, "mscoco", "SCAN").unwrap().numbers().i2t.r1;
        assert_eq!((r1(1), r1(2)), (Some(72.7), Some(50.4)));
    }

    #[test]
    fn a_missing_number_is_no_zero() {
        let r = fne_row(5, "flickr30k", "lambda = 0.5").unwrap().numbers();
        assert_eq!((r.i2t.r10, r.t2i.r10, r.rsum), (None, None, None));
    }

    #[test]
    fn reference_keeps_the_order_asked() {
        let names = ["Full", "chance", "w/o MMM"];
        let got = fne_reference(3, &names);
        assert_eq!(
            got.rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(),
            ["Full", "w/o MMM"]
        );
    }

    /// Table 3 read off the page: 303.2 298.8 307.1 308.2 307.3 308.5 309.6 on Flickr30K.
    #[test]
    fn inferences_of_the_hubs_paper() {
        let names = ["nns", "gm", "rgm", "is", "csls", "is+rgm", "csls+rgm"];
        let want = [303.2, 298.8, 307.1, 308.2, 307.3, 308.5, 309.6].map(Some);
        assert_eq!(names.map(inference_rsum), want);
        assert_eq!(inference_rsum("sinkhorn"), None);
        let models = |model: &str| inferences().iter().filter(|r| r.model == model).count();
        assert_eq!(["1.3", "2.1", "2.12"].map(models), [7, 7, 7]);
        assert!(inferences().iter().all(|r| r.table == 3));
    }
}
