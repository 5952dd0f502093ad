//! What will be trained, and with which resources: the lines that are printed before the training.

use std::path::Path;

use itm_core::data::SplitData;
use itm_report::format;

use super::Experiment;
use crate::config::Config;
use crate::plan;

/// Begins another line of a value.
const BELOW: &str = "\n          ";

impl Experiment {
    /// The lines; `out` is the folder, `None` for a plan that trains nothing.
    pub(crate) fn lines(&self, out: Option<&Path>) -> String {
        let (source, target) = (&self.run.source, &self.target);
        let data = &source.dataset;
        let seeds: Vec<_> = self.seeds.iter().map(u64::to_string).collect();
        let size = |part: &SplitData| {
            format!("{} images, {} captions", part.pairs.images(), part.pairs.texts())
        };
        let threads = rayon::current_num_threads();
        let products = self.precision_note().map_or(String::new(), |line| format!("; {line}"));
        let regions = plan::regions(source).map_or(String::new(), |line| format!("; {line}"));
        let out = out.map_or("nothing: this is the plan".into(), |out| out.display().to_string());
        let lines = [
            ("target", format!("{} ({} of {})", target.name, self.shown, target.target.paper)),
            ("config", self.config_line()),
            ("data", format!("{} (sha256 {}){regions}", source.title, &data.sha256[..12])),
            ("train", size(&data.train)),
            ("val", size(&data.val)),
            ("test", format!("{}, protocol {}", size(&data.test), self.protocol)),
            ("backend", format!("{}, {threads} threads{products}", self.backend)),
            ("jobs", format!("{} at a time", self.jobs)),
            ("rows", self.rows_line()),
            ("seeds", seeds.join(" ")),
            ("steps", format!("{} in all", self.steps())),
            ("memory", self.memory_lines()),
            ("notes", source.notes.join(BELOW)),
            ("out", out),
        ];
        let substitution = source.substitution.iter().map(|line| format!("{line}\n"));
        let known = lines.iter().filter(|(_, value)| !value.is_empty());
        substitution.chain(known.map(|(key, value)| format!("{key:>8}  {value}\n"))).collect()
    }

    fn config_line(&self) -> String {
        let Config { path, set, .. } = &self.run.config;
        let with = if set.is_empty() { String::new() } else { format!(" with {}", set.join(", ")) };
        format!("{}{with}", path.display())
    }

    /// The rows, each with the row that it begins with, if any.
    fn rows_line(&self) -> String {
        let name = |row: &String| match self.run.config.from(row) {
            Some(from) => format!("{row} (from {from})"),
            None => row.clone(),
        };
        self.view.rows.iter().map(name).collect::<Vec<_>>().join(" | ")
    }

    /// The memory that there is, and a line for each measured row.
    fn memory_lines(&self) -> String {
        let (jobs, mut lines) = (self.jobs, vec![self.room.to_string()]);
        lines.extend(self.view.rows.iter().zip(&self.memory).filter_map(|(row, memory)| {
            let (memory, needed) = ((*memory)?, format::bytes((*memory)?.of(jobs)));
            let times = if jobs > 1 { format!(" for {jobs} at a time") } else { String::new() };
            Some(format!("{row}: {needed}{times}; {memory}"))
        }));
        let keeps = |row: &String| self.run.facts(row).keeps_states;
        if self.run.states > 0 && self.view.rows.iter().any(keeps) {
            let most = format::bytes(self.run.states);
            lines.push(format!(
                "pictures after blocks that do not learn: at most {most} a training"
            ));
        }
        lines.join(BELOW)
    }
}
