//! Compares the tensors of a checkpoint with the tensors that a model needs.

use std::fmt;

use crate::{Error, Result};

/// More missing or unknown names than these are counted: the file is of another program.
const SPELLED: usize = 8;

/// What happened to the tensors of a checkpoint; the text of a [complete](Self::complete) one is a few lines for a person.
///
/// ```
/// use itm_data::weights::LoadReport;
///
/// let report = LoadReport {
///     place: "bert".into(),
///     loaded: 37,
///     unused: vec!["pooler.dense.bias".into(), "pooler.dense.weight".into()],
///     ..LoadReport::default()
/// };
/// assert_eq!(
///     report.to_string(),
///     "bert: 37 tensors read\n  2 of other heads, not needed: pooler.dense.bias, pooler.dense.weight"
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// The folder or the file.
    pub place: String,
    /// Number of tensors of the file that went into the model.
    pub loaded: usize,
    /// Needed, but not in the file.
    pub missing: Vec<String>,
    /// Optional tensors that are not in the file: the model keeps its own values.
    pub absent: Vec<String>,
    /// In the file, but with another shape or with a type that cannot become f32: `pooler.bias of F16 [768], not [384]`.
    pub misshaped: Vec<String>,
    /// In the file, but known not to be needed: poolers, classifiers, language model heads.
    pub unused: Vec<String>,
    /// In the file, but unknown.
    pub unexpected: Vec<String>,
}

impl LoadReport {
    /// Returns the report if the model got all tensors that it needs. `asked_by` names the caller; `unknown` are tensors that are
    /// errors too.
    ///
    /// # Errors
    /// If a tensor is missing or misshaped, or `unknown` has one: one line that names them, of `unknown` the first few; if many are
    /// missing, their number and what the file has instead.
    pub fn complete(self, asked_by: &str, unknown: &[String]) -> Result<Self> {
        if self.missing.is_empty() && self.misshaped.is_empty() && unknown.is_empty() {
            return Ok(self);
        }
        let needed = self.loaded + self.missing.len() + self.misshaped.len();
        let expected = format!("the {needed} tensors that {asked_by} asks for");
        if self.missing.len() > SPELLED {
            return Err(self.foreign(&expected));
        }
        let missing = self.missing.iter().map(|name| format!("no {name}"));
        let more = unknown.len().saturating_sub(SPELLED);
        let more = (more > 0).then(|| format!("{more} more"));
        let unknown = unknown.iter().take(SPELLED).map(|name| format!("the unknown {name}"));
        let faults = missing.chain(self.misshaped.iter().cloned()).chain(unknown).chain(more);
        let faults: Vec<_> = faults.collect();
        Err(Error::invalid(&self.place, expected, faults.join("; ")))
    }

    /// The line for a file that lacks many tensors: how many, the first, and what the file has instead.
    fn foreign(&self, expected: &str) -> Error {
        let expected = format!("{expected}, such as {}", self.missing[0]);
        let has: Vec<_> = self.unexpected.iter().chain(&self.unused).collect();
        let prefix = has.first().and_then(|name| Some(format!("{}.", name.split_once('.')?.0)));
        let common =
            prefix.filter(|p| has.len() > 1 && has.iter().all(|name| name.starts_with(p.as_str())));
        let first: Vec<_> = has.iter().take(3).map(|name| name.as_str()).collect();
        let named = common.map_or(String::new(), |prefix| format!(", all named {prefix}…"));
        let instead = match has.len() {
            0 => "no other tensor".into(),
            n => format!("{n} others{named}, the first {}", first.join(", ")),
        };
        let got =
            format!("{} missing and {instead} (weights of another program?)", self.missing.len());
        Error::invalid(&self.place, expected, got)
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} tensors read", self.place, self.loaded)?;
        let mut line = |what: &str, names: &[String]| match names.len() {
            0 => Ok(()),
            n => write!(f, "\n  {n} {what}: {}", names.join(", ")),
        };
        line("not in the file, the model keeps its own", &self.absent)?;
        line("of other heads, not needed", &self.unused)?;
        line("unexpected", &self.unexpected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in the files of programs that put the encoder inside a larger model.
    #[test]
    fn weights_of_another_program_are_said_to_be() {
        let names = |prefix: &str| (0..40).map(|k| format!("{prefix}layer.{k}.weight")).collect();
        let report = LoadReport {
            place: "folder".into(),
            missing: names(""),
            unexpected: names("text_encoder."),
            ..LoadReport::default()
        };
        let line = report.clone().complete("its config.json", &[]).unwrap_err().to_string();
        assert_eq!(
            line,
            "folder: expected the 40 tensors that its config.json asks for, such as layer.0.weight, got 40 missing and 40 others, \
             all named text_encoder.…, the first text_encoder.layer.0.weight, text_encoder.layer.1.weight, \
             text_encoder.layer.2.weight (weights of another program?)"
        );
        let none = LoadReport { unexpected: vec![], ..report };
        assert!(
            none.complete("its config.json", &[])
                .unwrap_err()
                .to_string()
                .contains("40 missing and no other tensor")
        );
    }

    #[test]
    fn every_fault_is_named_in_one_line() {
        let report = LoadReport {
            place: "folder".into(),
            loaded: 4,
            missing: vec!["a".into(), "b".into()],
            absent: vec![],
            misshaped: vec!["c of F32 [3, 2], not [2, 3]".into()],
            unused: vec![],
            unexpected: vec!["d".into()],
        };
        assert_eq!(report.to_string(), "folder: 4 tensors read\n  1 unexpected: d");
        assert_eq!(
            report.clone().complete("its config.json", &[]).unwrap_err().to_string(),
            "folder: expected the 7 tensors that its config.json asks for, got no a; no b; \
             c of F32 [3, 2], not [2, 3]"
        );
        let unknown = &["d".to_owned()];
        let strict = report.clone().complete("the model", unknown).unwrap_err().to_string();
        let end = "c of F32 [3, 2], not [2, 3]; the unknown d";
        assert!(strict.contains("that the model asks for, got") && strict.ends_with(end));
        let fine = LoadReport { missing: vec![], misshaped: vec![], ..report };
        let many: Vec<String> = (0..30).map(|k| format!("ls.{k}")).collect();
        let many = fine.clone().complete("the model", &many).unwrap_err().to_string();
        assert!(many.ends_with("the unknown ls.6; the unknown ls.7; 22 more"), "{many}");
        assert_eq!(fine.clone().complete("its config.json", &[]).unwrap(), fine);
    }
}
