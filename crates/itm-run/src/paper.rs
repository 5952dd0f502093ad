//! The papers' printed numbers: facts to stand beside what was measured.

use std::sync::OnceLock;

use itm_core::eval::Protocol;
use serde::Deserialize;

use crate::config::{DatasetName, Method};
use crate::report::{PaperNumbers, PaperRecalls, PaperReference, PaperRow};

/// The papers whose tables are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// False Negative Elimination: Tables 1 to 5.
    Fne,
    /// Mitigating Visual Semantic Hubs: Tables 1, 2 and 4; a line is named by its number, `1.3`.
    Hal,
}

impl Paper {
    /// The paper of a method.
    pub fn of(method: Method) -> Self {
        match method {
            Method::Fne => Self::Fne,
            Method::Hal => Self::Hal,
        }
    }

    /// Every line of its tables of recalls.
    pub fn lines(self) -> &'static [Printed] {
        match self {
            Self::Fne => fne(),
            Self::Hal => hal(),
        }
    }

    /// A line of a table, as it was measured on a data set under a protocol.
    pub fn line(self, table: u32, on: Measured, row: &str) -> Option<&'static Printed> {
        let same = |r: &&Printed| r.table == table && on.is(r) && r.row == row;
        self.lines().iter().find(same)
    }

    /// The lines of a table, on the data that its paper measured: those of `rows` (our name, the printed one) first, then
    /// the other methods'. `None` if the paper prints none of the rows.
    pub fn reference(
        self,
        table: u32,
        on: Option<Measured>,
        rows: &[(&str, &str)],
    ) -> Option<PaperReference> {
        let first = || {
            let named = |r: &&Printed| r.table == table && rows.iter().any(|(_, n)| r.row == *n);
            self.lines().iter().find(named).map(Measured::of)
        };
        let printed = |on: Measured| rows.iter().any(|(_, n)| self.line(table, on, n).is_some());
        let on = on.filter(|&on| printed(on)).or_else(first)?;
        let ours = rows.iter().filter_map(|(name, n)| Some((*name, self.line(table, on, n)?)));
        let others = self.lines().iter().filter(|r| r.table == table && on.is(r));
        let others = others.filter(|r| r.kind.as_deref() == Some("baseline"));
        let row =
            |(name, r): (&str, &Printed)| PaperRow { name: name.into(), numbers: r.numbers() };
        Some(PaperReference {
            dataset: on.title().into(),
            protocol: on.protocol.into(),
            table,
            rows: ours.chain(others.map(|r| (r.row.as_str(), r))).map(row).collect(),
        })
    }
}

/// Data and protocol of a printed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    dataset: &'static str,
    protocol: &'static str,
}

impl Measured {
    /// As the papers have it; `None` for data that neither measured.
    pub fn new(dataset: DatasetName, protocol: Protocol) -> Option<Self> {
        let (dataset, protocol) = match (dataset, protocol) {
            (DatasetName::Flickr30k, Protocol::Flickr1k) => ("flickr30k", "test_1k"),
            (DatasetName::Coco, Protocol::Coco1kFolds) => ("mscoco", "test_1k_5fold"),
            (DatasetName::Coco, Protocol::CocoFirst1k) => ("mscoco", "test_first_1k"),
            (DatasetName::Coco, Protocol::Coco5k) => ("mscoco", "test_5k"),
            _ => return None,
        };
        Some(Self { dataset, protocol })
    }

    fn of(line: &'static Printed) -> Self {
        Self { dataset: &line.dataset, protocol: &line.protocol }
    }

    fn is(self, line: &Printed) -> bool {
        line.dataset == self.dataset && line.protocol == self.protocol
    }

    fn title(self) -> &'static str {
        if self.dataset == "mscoco" { "MS-COCO" } else { "Flickr30K" }
    }
}

/// One printed line of a table of recalls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Printed {
    /// Number of the table.
    pub table: u32,
    /// The line's name, or its number.
    pub row: String,
    /// `flickr30k` or `mscoco`.
    pub dataset: String,
    /// `test_1k`, `test_first_1k`, `test_1k_5fold` or `test_5k`.
    pub protocol: String,
    /// FNE: `single` or `ensemble`, of the paper's own method only.
    pub model: Option<String>,
    /// FNE: `baseline`, `ablation` or `method`.
    pub kind: Option<String>,
    /// FNE: the parameter an ablation varies.
    pub param: Option<String>,
    /// HAL: encoders.
    pub architecture: Option<String>,
    /// HAL: `SUM`, `MAX`, `HAL`, `MAX+HAL`.
    pub loss: Option<String>,
    /// HAL: `NNS`, `RGM`, ….
    pub inference: Option<String>,
    /// HAL: what the line says besides.
    pub label: Option<String>,
    /// HAL: the line that trained the model of an inference.
    pub model_row: Option<String>,
    /// HAL: neighbours of its weights.
    pub hal_k: Option<u32>,
    /// HAL: `ours` or `reported`.
    pub origin: Option<String>,
    i2t_r1: Option<f64>,
    i2t_r5: Option<f64>,
    i2t_r10: Option<f64>,
    t2i_r1: Option<f64>,
    t2i_r5: Option<f64>,
    t2i_r10: Option<f64>,
    /// HAL: median rank of the first right text.
    pub i2t_medr: Option<f64>,
    /// HAL: its mean rank.
    pub i2t_meanr: Option<f64>,
    /// HAL: median rank of the right image.
    pub t2i_medr: Option<f64>,
    /// HAL: its mean rank.
    pub t2i_meanr: Option<f64>,
    /// HAL: sum of the recalls as printed, which can differ by 0.1 from that of the rounded recalls.
    pub rsum: Option<f64>,
    /// HAL: skewness of N_1, N_5 and N_10, both directions, summed.
    pub hs_sum: Option<f64>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    row: Vec<Printed>,
}

/// Every line of FNE's result tables.
pub fn fne() -> &'static [Printed] {
    static ROWS: OnceLock<Vec<Printed>> = OnceLock::new();
    ROWS.get_or_init(|| {
        // The file is compiled in and a test reads it: it cannot fail in a user's hands.
        toml::from_str::<File>(include_str!("paper/fne.toml")).expect("paper/fne.toml").row
    })
}

/// Every line of the hubs paper's Tables 1, 2 and 4.
pub fn hal() -> &'static [Printed] {
    static ROWS: OnceLock<Vec<Printed>> = OnceLock::new();
    ROWS.get_or_init(|| {
        // As above: compiled in, and a test reads it.
        toml::from_str::<File>(include_str!("paper/hal.toml")).expect("paper/hal.toml").row
    })
}

/// The line `row` of FNE's table `table` on Flickr30K or MS-COCO.
pub fn fne_row(table: u32, dataset: &str, row: &str) -> Option<&'static Printed> {
    fne().iter().find(|r| r.table == table && r.dataset == dataset && r.row == row)
}

/// The block "Flickr30K (paper)" of a run on other data: the lines of `table` named in `rows`, in
/// that order. Names the table does not have are left out.
pub fn fne_reference(table: u32, rows: &[&str]) -> Option<PaperReference> {
    let on = Measured::new(DatasetName::Flickr30k, Protocol::Flickr1k);
    Paper::Fne.reference(table, on, &rows.iter().map(|row| (*row, *row)).collect::<Vec<_>>())
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

/// An inference, by the name it has here (`csls+rgm`), over the model of a line of Table 1 or 2.
pub fn inference(model: &str, method: &str) -> Option<&'static Inference> {
    let named = |r: &&Inference| r.inference.eq_ignore_ascii_case(method);
    inferences().iter().filter(|r| r.model == model).find(named)
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
        let got = fne_reference(3, &names).unwrap();
        assert_eq!(
            got.rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(),
            ["Full", "w/o MMM"]
        );
    }

    /// Table 1: the ensemble's line under our row's name, then what others reached; Table 2 is of COCO alone.
    #[test]
    fn reference_of_main_results_has_the_other_methods() {
        let full = [("Full", "FNE (ours)")];
        let flickr = Measured::new(DatasetName::Flickr30k, Protocol::Flickr1k);
        let got = Paper::Fne.reference(1, flickr, &full).unwrap();
        assert_eq!((got.rows.len(), got.rows[0].name.as_str()), (18, "Full"));
        assert_eq!(got.rows[0].numbers.i2t.r1, Some(85.4));
        assert_eq!((got.rows[1].name.as_str(), got.dataset.as_str()), ("SCAN", "Flickr30K"));
        let folds = Measured::new(DatasetName::Coco, Protocol::Coco1kFolds);
        let of_coco = Paper::Fne.reference(1, folds, &full).unwrap();
        assert_eq!(
            (of_coco.rows[0].numbers.i2t.r1, of_coco.protocol.as_str()),
            (Some(82.5), "test_1k_5fold")
        );
        // Data that the paper did not measure: its own, said so.
        let elsewhere = Paper::Fne.reference(2, flickr, &full).unwrap();
        assert_eq!(
            (elsewhere.dataset.as_str(), elsewhere.rows[0].numbers.i2t.r1),
            ("MS-COCO", Some(64.3))
        );
        assert_eq!(Paper::Fne.reference(3, None, &full), None);
        assert_eq!(Measured::new(DatasetName::Flickr8k, Protocol::Flickr1k), None);
    }

    /// Tables read off the page: 1.3 is GRU with HAL, 303.2 and 9.03; 2.12 follows on COCO.
    #[test]
    fn lines_of_the_hubs_paper() {
        let count = |table| hal().iter().filter(|r| r.table == table).count();
        assert_eq!([1, 2, 3, 4].map(count), [6, 23, 0, 21]);
        let flickr = Measured::new(DatasetName::Flickr30k, Protocol::Flickr1k).unwrap();
        let line = Paper::Hal.line(1, flickr, "1.3").unwrap();
        assert_eq!(
            (line.loss.as_deref(), line.rsum, line.hs_sum),
            (Some("HAL"), Some(303.2), Some(9.03))
        );
        assert_eq!(line.numbers().t2i.values(), [Some(24.8), Some(50.6), Some(62.8)]);
        let folds = Measured::new(DatasetName::Coco, Protocol::Coco1kFolds).unwrap();
        assert!(
            Paper::Hal.line(2, folds, "2.1").is_some()
                && Paper::Hal.line(2, flickr, "2.1").is_none()
        );
        for line in hal() {
            if let (Some(ours), Some(theirs)) = (line.numbers().rsum, line.rsum) {
                assert!((ours - theirs).abs() < 0.25, "{}: {ours} {theirs}", line.row);
            }
        }
    }

    /// Table 3 read off the page: 303.2 298.8 307.1 308.2 307.3 308.5 309.6 on Flickr30K.
    #[test]
    fn inferences_of_the_hubs_paper() {
        let names = ["nns", "gm", "rgm", "is", "csls", "is+rgm", "csls+rgm"];
        let want = [303.2, 298.8, 307.1, 308.2, 307.3, 308.5, 309.6].map(Some);
        let rsum = |model, method| inference(model, method).map(|r| r.rsum);
        assert_eq!(names.map(|name| rsum("1.3", name)), want);
        assert_eq!((rsum("1.3", "sinkhorn"), rsum("2.2", "nns")), (None, None));
        assert_eq!((rsum("2.1", "csls"), rsum("2.12", "nns")), (Some(427.6), Some(460.2)));
        let models = |model: &str| inferences().iter().filter(|r| r.model == model).count();
        assert_eq!(["1.3", "2.1", "2.12"].map(models), [7, 7, 7]);
        assert!(inferences().iter().all(|r| r.table == 3));
    }
}
