//! Keeping freed memory in the process, and returning it.

/// Keeps freed memory for the next allocation and does not return it to the system. Call this first in `main`.
///
/// Every training step allocates and frees the same large buffers. glibc maps each buffer anew, and the system clears
/// all its pages, which takes a fifth of a step's time. After this call all threads allocate from one heap that does
/// not shrink, so the resident memory stays at its peak. On systems other than Linux with glibc nothing changes.
#[allow(unsafe_code)] // settings of the allocator
pub fn keep_freed() {
    // One heap, because the heaps of other threads hold at most 64 MiB and are unmapped when empty. Larger buffers are
    // mapped.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (name, value) in [
        (libc::M_ARENA_MAX, 1),
        (libc::M_MMAP_THRESHOLD, 32 << 20), // the most that glibc before 2.35 takes; it refuses the next
        (libc::M_MMAP_THRESHOLD, 1 << 30),
        (libc::M_TRIM_THRESHOLD, libc::c_int::MAX),
    ] {
        // SAFETY: `mallopt` takes two numbers and may be called at any time from any thread. For a setting that it does
        // not know, it returns 0 and changes nothing.
        unsafe { libc::mallopt(name, value) };
    }
}

/// Returns freed memory to the system, so that the resident memory is what the process holds. On systems other than Linux with
/// glibc nothing changes.
#[allow(unsafe_code)] // a call of the allocator
pub fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` takes a number and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::process::Command;

    /// 16 MiB, 40 times: each time some 4,096 pages if they are returned to the system.
    const BYTES: usize = 16 << 20;
    const TIMES: usize = 40;
    const CHILD: &str = "ITM_KERNELS_KEEP_FREED";

    fn faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let rest = stat.rsplit_once(')').unwrap().1;
        rest.split_whitespace().nth(7).unwrap().parse().unwrap() // minflt, the tenth field
    }

    /// What the test `name` prints after `result`, in a process of its own: settings are permanent, and other tests use memory too.
    fn result_of_a_process(name: &str, task: &str) -> u64 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                &format!("memory::tests::{name}"),
                "--exact",
                "--nocapture",
                "--test-threads",
                "1",
            ])
            .env(CHILD, task)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|l| l.split_once("result ")).expect(&text);
        line.1.trim().parse().unwrap()
    }

    #[test]
    fn child() {
        let Ok(keeps) = std::env::var(CHILD) else { return };
        if keeps == "yes" {
            super::keep_freed();
        }
        let touch = || std::hint::black_box(vec![1u8; BYTES + 8192]);
        drop((touch(), touch())); // two at once, so that the upper buffer does not keep the lower
        let before = faults();
        for _ in 0..TIMES {
            drop((touch(), touch()));
        }
        println!("result {}", faults() - before);
    }

    #[test]
    fn child_that_frees() {
        if std::env::var(CHILD).is_err() {
            return;
        }
        super::keep_freed(); // so that only `release` returns it
        let resident = || -> u64 {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            pages.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let pieces: Vec<Vec<u8>> = (0..=255).map(|k| vec![k; 64 << 10]).collect(); // below the size that is mapped alone
        std::hint::black_box(&pieces);
        let held = resident();
        drop(pieces);
        super::release();
        println!("result {}", held.saturating_sub(resident()));
    }

    #[test]
    fn freed_memory_is_returned() {
        let pages = result_of_a_process("child_that_frees", "yes");
        assert!(pages > 2048, "{pages} pages of 4096 came back");
    }

    #[test]
    fn freed_memory_is_used_again() {
        let [kept, plain] = ["yes", "no"].map(|keeps| result_of_a_process("child", keeps));
        let pages = (2 * TIMES * BYTES / 4096) as u64;
        assert!(kept < pages / 20, "{kept} faults for {pages} pages");
        assert!(plain > kept, "{plain} faults without, {kept} with: nothing was compared");
    }
}
