//! Keeping freed memory in the process, and returning it.

/// Keeps freed memory for the next allocation and does not return it to the system. Call this first in `main`.
///
/// Every training step allocates and frees the same large buffers. glibc maps each buffer anew, and the system clears
/// all its pages, which takes a fifth of a step's time. After this call all threads allocate from one heap that does
/// not shrink, so the resident memory stays at its peak. On systems other than Linux with glibc nothing changes.
pub fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::keep_freed();
}

/// Returns freed memory to the system, so that the resident memory is what the process holds. On systems other than Linux with
/// glibc nothing changes.
pub fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::release();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    #[allow(unsafe_code)] // a call of the allocator
    pub(super) fn release() {
        // SAFETY: `malloc_trim` takes a number and may be called at any time from any thread.
        unsafe { libc::malloc_trim(0) };
    }

    #[allow(unsafe_code)] // settings of the allocator
    pub(super) fn keep_freed() {
        // One heap, because the heaps of other threads hold at most 64 MiB and are unmapped when empty. Larger
        // buffers are mapped.
        let settings = [
            (libc::M_ARENA_MAX, 1),
            (libc::M_MMAP_THRESHOLD, 1 << 30),
            (libc::M_TRIM_THRESHOLD, libc::c_int::MAX),
        ];
        for (name, value) in settings {
            // SAFETY: `mallopt` takes two numbers and may be called at any time from any thread. For a setting that
            // it does not know, it returns 0 and changes nothing.
            unsafe { libc::mallopt(name, value) };
        }
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

    /// Page faults of the allocations after the first, in a separate process, because the settings are permanent.
    fn faults_of_a_process(keeps: &str) -> u64 {
        let name = "memory::tests::child";
        let output = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture", "--test-threads", "1"])
            .env(CHILD, keeps)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|l| l.split_once("faults ")).expect(&text);
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
        println!("faults {}", faults() - before);
    }

    #[test]
    fn freed_memory_is_returned() {
        let resident = || -> usize {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            pages.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let pieces: Vec<Vec<u8>> = (0..64).map(|k| vec![k; 64 << 10]).collect(); // below the size that is mapped alone
        std::hint::black_box(&pieces);
        let held = resident();
        drop(pieces);
        super::release();
        assert!(resident() + 512 < held, "{} pages of {held} stay", resident());
    }

    #[test]
    fn freed_memory_is_used_again() {
        let (kept, plain) = (faults_of_a_process("yes"), faults_of_a_process("no"));
        let pages = (2 * TIMES * BYTES / 4096) as u64;
        assert!(kept < pages / 20, "{kept} faults for {pages} pages");
        assert!(plain > kept, "{plain} faults without, {kept} with: nothing was compared");
    }
}
