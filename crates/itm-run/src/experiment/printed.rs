//! What the paper prints for the rows of an experiment, the claim about the rows, and how they are named and described.

use itm_kernels::Precision;

use super::Experiment;
use crate::config::{Claim, Exhibit};
use crate::paper::{self, PaperData, Printed};
use crate::report::CCA;

/// The name of a row that averages the scores of `size` models at a time.
pub(crate) fn together(row: &str, size: u64) -> String {
    format!("{row}, {size} together")
}

impl Experiment {
    /// The data and the protocol, if the paper measured the same. Then the paper's numbers are beside ours, otherwise in a block of
    /// their own.
    pub(crate) fn paper_data(&self) -> Option<PaperData> {
        paper::paper_data(self.run.source.known?, self.protocol)
    }

    /// The number of the paper's table; `None` for figures and for tables that no paper has: they have no printed numbers.
    pub(crate) fn paper_table(&self) -> Option<u32> {
        if let Exhibit::Table(n) = self.shown { Some(n) } else { None }
    }

    /// What the paper calls a row of ours. If the view has ensembles, the paper's name belongs to the ensemble of a row.
    pub(crate) fn printed_name<'a>(&'a self, name: &'a str) -> &'a str {
        let size = self.view.ensemble;
        if size < 2 {
            return self.view.printed(name);
        }
        let row = self.view.rows.iter().find(|row| together(row, size) == name);
        row.map_or(name, |row| self.view.printed(row))
    }

    /// The paper's line of a row, if the experiment has the paper's data and protocol.
    pub(crate) fn printed_line(&self, name: &str) -> Option<&Printed> {
        let (data, table) = self.paper_data().zip(self.paper_table())?;
        self.paper.line(table, data, self.printed_name(name))
    }

    /// The claim about the rows, or about their ensembles if there are any. If the claim names no other row, the claim is
    /// that its row is above the closed form.
    pub(crate) fn claim(&self) -> Claim {
        let Claim { row, mut against } = self.view.claim();
        if against.is_empty() {
            against.push(CCA.into());
        }
        let size = self.view.ensemble;
        let of = |row: String| if size < 2 || row == CCA { row } else { together(&row, size) };
        Claim { row: of(row), against: against.into_iter().map(of).collect() }
    }

    /// What is ranked: the protocol and its sizes.
    pub(crate) fn ranked(&self) -> String {
        let (test, protocol) = (&self.run.source.dataset.test.pairs, self.protocol);
        let images = match self.run.source.first_of {
            Some(all) => format!("the first {} of {all}", test.images()),
            None => test.images().to_string(),
        };
        format!("{protocol}: {images} images, {} captions", test.texts())
    }

    /// The precision that was used for a row of the report; `None` for f32.
    pub(crate) fn precision_of(&self, name: &str) -> Option<String> {
        let is_named = |row: &&String| *row == name || together(row, self.view.ensemble) == name;
        let is_bf16 = self.run.is_bf16(self.view.rows.iter().find(is_named)?);
        (is_bf16 && Precision::Bf16.here() == Precision::Bf16).then(|| "bf16".into())
    }

    /// One sentence about the rows whose configuration says bf16; `None` if there are no such rows.
    pub(crate) fn precision_note(&self) -> Option<String> {
        let rows = self.view.rows.iter().filter(|row| self.run.is_bf16(row));
        let rows: Vec<_> = rows.map(String::as_str).collect();
        let products = match Precision::Bf16.here() {
            Precision::Bf16 => "products in blocks have bf16 operands and f32 sums",
            Precision::F32 => {
                "products are in f32, although bf16 was set: this processor has no AVX512-BF16"
            }
        };
        (!rows.is_empty()).then(|| format!("{}: {products}.", rows.join(", ")))
    }
}
