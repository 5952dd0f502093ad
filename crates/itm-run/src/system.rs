//! What the machine reports about a run: memory, threads, commit.

use std::fs;
use std::path::Path;

pub(crate) use itm_report::command::bytes_of;

/// Largest resident memory of this process in bytes, since [`forget_peak`]; `None` if the system does not report it.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    status("VmHWM:")
}

/// Resident memory of this process; `None` if the system does not report it.
pub(crate) fn resident_memory_bytes() -> Option<u64> {
    status("VmRSS:")
}

/// The same after the process has returned freed memory to the system.
pub(crate) fn settled_memory_bytes() -> Option<u64> {
    itm_kernels::memory::release();
    resident_memory_bytes()
}

/// Lets the largest resident memory begin anew. A system that cannot do this keeps the old one, so that it is too large, never too small.
pub(crate) fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn status(field: &str) -> Option<u64> {
    bytes_of(Path::new("/proc/self/status"), field)
}

/// The commit that the program was built from, as `cargo xtask` says; `unknown` without it. The folder in which the program runs may be
/// anybody's repository, whose configuration can start programs: nothing is asked there.
pub(crate) fn commit() -> String {
    let said = std::env::var("ITM_COMMIT").unwrap_or_default();
    let hash = said.strip_suffix("+dirty").unwrap_or(&said);
    let is_hash = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { said } else { "unknown".into() }
}
