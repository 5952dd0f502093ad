//! Loads weights from files into a module.

use std::collections::{BTreeMap, BTreeSet};

use burn::module::Module;

use super::{LoadReport, ShapeInFile, TensorNames, Unknown, WeightFiles};
use crate::{Result, interrupt, parameters};

/// The module with the values of the files. Only one tensor at a time is in memory beside the module.
///
/// # Errors
/// If a file cannot be read, a tensor is missing or misshaped, or `names.unknown` refuses an unknown tensor. The error names such
/// tensors; of many missing or unknown ones it says the number.
///
/// # Panics
/// If a parameter of the module has no name in the table.
pub fn load<M: Module>(
    module: M,
    files: &WeightFiles,
    names: &TensorNames,
    reshaped: ShapeInFile<'_>,
) -> Result<(M, LoadReport)> {
    let theirs = names.canonical(files.names());
    let report = LoadReport { place: files.place(), ..LoadReport::default() };
    let mut load = Load { files, names, reshaped, theirs, taken: BTreeSet::new(), report };
    let module = parameters::replace("", module, |ours, shape| load.values(ours, shape))?;
    let Load { mut report, theirs, taken, .. } = load;
    let is_read = |block: &str| taken.iter().any(|name| name.starts_with(block));
    let mut refused = vec![];
    for (name, original) in theirs.iter().filter(|(name, _)| !taken.contains(*name)) {
        if names.is_unused(name) {
            report.unused.push(original.clone());
            continue;
        }
        report.unexpected.push(original.clone());
        let harms = match names.unknown {
            Unknown::Reported => false,
            Unknown::RefusedInBlocks => names.block(name).is_some_and(is_read),
            Unknown::Refused => true,
        };
        if harms {
            refused.push(original.clone());
        }
    }
    Ok((module, report.complete(names.asked_by, &refused)?))
}

struct Load<'a> {
    files: &'a WeightFiles,
    names: &'a TensorNames,
    reshaped: ShapeInFile<'a>,
    /// Canonical names → names in the file.
    theirs: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    report: LoadReport,
}

impl Load<'_> {
    /// The values of one of our parameters, `[rows, columns]`: tensors of the file side by side. `None` if a tensor is
    /// missing or has another shape or type; the report then names it.
    fn values(&mut self, ours: &str, dims: &[usize]) -> Result<Option<Vec<f32>>> {
        interrupt::check();
        let theirs = self.names.of(ours);
        let (rows, columns) =
            if let [rows, columns] = *dims { (rows, columns) } else { (1, dims[0]) };
        let part = columns / theirs.len();
        let expected = (self.reshaped)(ours).unwrap_or_else(|| match dims.len() {
            1 => vec![part],
            _ if self.names.is_transposed(ours) => vec![part, rows],
            _ => vec![rows, part],
        });
        // Every tensor is asked, so that the report has all that is missing.
        let fitting = theirs.iter().filter(|name| self.fits(name, &expected)).count();
        if fitting < theirs.len() {
            return Ok(None);
        }
        let turned = dims.len() == 2 && self.names.is_transposed(ours);
        if let [name] = theirs.as_slice()
            && !turned
        {
            return self.files.f32s(&self.theirs[name]).map(Some);
        }
        let mut out = vec![0.0; rows * columns];
        for (k, name) in theirs.iter().enumerate() {
            let values = self.files.f32s(&self.theirs[name])?;
            for (i, row) in out.chunks_exact_mut(columns).enumerate() {
                let row = &mut row[k * part..(k + 1) * part];
                if turned {
                    row.iter_mut().enumerate().for_each(|(o, w)| *w = values[o * rows + i]);
                } else {
                    row.copy_from_slice(&values[i * part..(i + 1) * part]);
                }
            }
        }
        Ok(Some(out))
    }

    /// Whether a tensor is there with the expected shape and a real type. If not, the report lists it.
    fn fits(&mut self, name: &str, expected: &[usize]) -> bool {
        let Some(original) = self.theirs.get(name) else {
            let optional = self.names.is_optional(name);
            let list = if optional { &mut self.report.absent } else { &mut self.report.missing };
            list.push(name.to_string());
            return false;
        };
        self.taken.insert(name.to_string());
        let fits = self.files.shape(original) == Some(expected) && self.files.is_real(original);
        if fits {
            self.report.loaded += 1;
        } else {
            let got = self.files.describe(original).unwrap_or_default();
            self.report.misshaped.push(format!("{original} of {got}, not {expected:?}"));
        }
        fits
    }
}
