//! The machine and software of a table: processor, threads, versions.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::table::{Kind, Row};

/// Two lines, without a date and without the name of a machine.
pub(super) fn describe(root: &Path, threads: usize, rows: &[Row]) -> String {
    let said = |kinds: &[Kind], key: &str| {
        let lines = rows.iter().flat_map(|row| &row.measured).filter(|m| kinds.contains(&m.kind()));
        let mut found =
            lines.filter_map(|m| m.line.as_ref().ok()?[key].as_str().map(str::to_owned));
        found.next().unwrap_or_else(|| "unknown".to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap_or_default();
    let version = |name| locked(&lock, name).unwrap_or("unknown");
    let theirs = [Kind::Eager, Kind::Compiled];
    format!(
        "{}, {cores} cores, {threads} threads; our kernels chose {}.\n\
         {}, burn {}, gemm {}; torch {} ({}), transformers {}, Python {}.\n",
        processor(),
        said(&[Kind::Ours], "isa"),
        first_line("rustc", "--version"),
        version("burn"),
        version("gemm"),
        said(&theirs, "torch"),
        said(&theirs, "blas"),
        said(&theirs, "transformers"),
        said(&theirs, "python"),
    )
}

fn processor() -> String {
    let Ok(text) = fs::read_to_string("/proc/cpuinfo") else {
        return first_line("sysctl", "-nmachdep.cpu.brand_string");
    };
    named(&text)
}

/// The first processor of Linux' list, with family and model, because a virtual machine may hide the end of the name.
fn named(cpuinfo: &str) -> String {
    let field = |key: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(name, _)| name.trim() == key);
        found.map_or("unknown", |(_, value)| value.trim())
    };
    format!("{} (family {}, model {})", field("model name"), field("cpu family"), field("model"))
}

/// The version of a package in a lock file.
fn locked<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    after.split('"').next()
}

fn first_line(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output().ok().filter(|o| o.status.success());
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_named_with_family_and_model() {
        let text = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\n";
        assert_eq!(named(text), "AMD EPYC (family 25, model 17)");
        assert_eq!(named(""), "unknown (family unknown, model unknown)");
    }

    #[test]
    fn a_version_is_that_of_the_package_itself() {
        let lock =
            "name = \"gemm-f32\"\nversion = \"0.1\"\n\nname = \"gemm\"\nversion = \"0.19.0\"\n";
        assert_eq!(locked(lock, "gemm"), Some("0.19.0"));
        assert_eq!(locked(lock, "burn"), None);
    }
}
