//! The libtorch of a Python's torch.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The version of torch that the last `burn-tch` was written for.
const VERSION: &str = "2.9.0";
/// If this variable is set to any value, another version is accepted, as in `torch-sys`.
const BYPASS: &str = "LIBTORCH_BYPASS_VERSION_CHECK";
/// Where the loader looks for libraries.
const LOADER: &str = if cfg!(windows) {
    "PATH"
} else if cfg!(target_os = "macos") {
    "DYLD_FALLBACK_LIBRARY_PATH"
} else {
    "LD_LIBRARY_PATH"
};

/// Prints the fields of [`Torch`], one per line, then the folders of CUDA's own wheels.
const QUESTION: &str = "
import pathlib, torch
folder = pathlib.Path(torch.__file__).resolve().parent
print(torch.__version__)
print(folder)
print(int(torch._C._GLIBCXX_USE_CXX11_ABI))
print(int(torch.cuda.is_available()))
for wheel in sorted(folder.parent.glob('nvidia/*/lib')): print(wheel)
";

/// A Python's torch.
#[derive(Debug, PartialEq)]
pub(crate) struct Torch {
    version: String,
    folder: PathBuf,
    cxx11_abi: String,
    has_cuda: bool,
    /// Folders of CUDA's libraries.
    wheels: Vec<PathBuf>,
}

impl std::fmt::Display for Torch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cuda = if self.has_cuda { "with a CUDA device" } else { "on the CPU" };
        write!(f, "libtorch of torch {} in {}, {cuda}", self.version, self.folder.display())
    }
}

impl Torch {
    /// The torch that `python` imports.
    pub(crate) fn of(python: &Path) -> Result<Self> {
        let name = python.display();
        let output = Command::new(python).args(["-c", QUESTION]).output();
        let output = output.with_context(|| format!("tch: cannot run {name}"))?;
        let advice = format!(
            "tch: expected a Python with torch {VERSION} (`pip install torch=={VERSION}`; \
             `cargo xtask tch --python PATH …` names another one, LIBTORCH=DIR a libtorch without \
             Python)"
        );
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            bail!("{advice}, got from {name}: {}", told.lines().last().unwrap_or("no answer"));
        }
        let torch = Self::parse(&String::from_utf8_lossy(&output.stdout))
            .with_context(|| format!("{advice}, got another answer from {name}"))?;
        let fits = torch.version.split('+').next() == Some(VERSION);
        ensure!(
            fits || env::var_os(BYPASS).is_some(),
            "{advice}, got {} from {name}; {BYPASS}=1 tries it anyway",
            torch.version
        );
        Ok(torch)
    }

    fn parse(answer: &str) -> Option<Self> {
        let mut lines = answer.lines();
        Some(Self {
            version: lines.next()?.to_owned(),
            folder: lines.next()?.into(),
            cxx11_abi: lines.next().filter(|abi| matches!(*abi, "0" | "1"))?.to_owned(),
            has_cuda: lines.next()? == "1",
            wheels: lines.map(PathBuf::from).collect(),
        })
    }

    /// Fails if a backend needs a GPU that torch does not see.
    pub(crate) fn check(&self, backend: &str) -> Result<()> {
        let wanted = backend.starts_with("tch-cuda");
        let version = &self.version;
        ensure!(
            !wanted || self.has_cuda,
            "--backend {backend}: expected a torch built for CUDA and an NVIDIA driver, got torch \
             {version}, which finds no CUDA device here"
        );
        Ok(())
    }

    /// Sets the environment that building and running with this libtorch needs.
    pub(crate) fn apply(&self, command: &mut Command) -> Result<()> {
        let old = env::var_os(LOADER).unwrap_or_default();
        let ours = std::iter::once(self.folder.join("lib")).chain(self.wheels.iter().cloned());
        let path = env::join_paths(ours.chain(env::split_paths(&old))).context(LOADER)?;
        command
            .env_remove("LIBTORCH_USE_PYTORCH") // otherwise the build asks another Python
            .env("LIBTORCH", &self.folder)
            .env("LIBTORCH_CXX11_ABI", &self.cxx11_abi)
            .env(LOADER, path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "2.9.0+cu128\n/v/torch\n1\n0\n/v/nvidia/cublas/lib\n";

    #[test]
    fn an_answer_is_read() {
        let torch = Torch::parse(ANSWER).unwrap();
        assert_eq!((torch.version.as_str(), torch.has_cuda), ("2.9.0+cu128", false));
        assert_eq!(torch.wheels, [PathBuf::from("/v/nvidia/cublas/lib")]);
        assert_eq!(Torch::parse("2.9.0\n/v/torch\nTrue\n0\n"), None);
        assert_eq!(Torch::parse("2.9.0\n"), None);
    }

    #[test]
    fn the_loader_finds_torch_first() {
        let mut command = Command::new("cargo");
        Torch::parse(ANSWER).unwrap().apply(&mut command).unwrap();
        let set = |name: &str| {
            let found = command.get_envs().find(|(key, _)| *key == name);
            found.and_then(|(_, value)| value).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(set("LIBTORCH"), "/v/torch");
        let first: Vec<PathBuf> = env::split_paths(&set(LOADER)).take(2).collect();
        assert_eq!(first, ["/v/torch/lib", "/v/nvidia/cublas/lib"].map(PathBuf::from));
    }

    #[test]
    fn a_gpu_that_torch_does_not_see_is_refused() {
        let torch = Torch::parse(ANSWER).unwrap();
        assert!(torch.check("tch").is_ok());
        let line = torch.check("tch-cuda:1").unwrap_err().to_string();
        assert!(
            line.starts_with("--backend tch-cuda:1: expected a torch built for CUDA"),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1);
    }

    #[test]
    fn a_python_that_is_not_there_is_named() {
        let error = Torch::of(Path::new("no-such-python")).unwrap_err();
        assert!(format!("{error:#}").starts_with("tch: cannot run no-such-python: "), "{error:#}");
    }
}
