//! What becomes of freed memory.

/// Keeps freed memory for the next allocation instead of handing it back to the system. To be called first in `main`.
///
/// A training step allocates and frees the same large buffers again and again. glibc maps each anew, and the system clears
/// every page of it: a fifth of a step's time. From here on memory is taken from one heap, by all threads, which does not
/// shrink: what is resident stays at its peak. Elsewhere than on Linux with glibc nothing changes.
pub fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::keep_freed();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    #[allow(unsafe_code)] // settings of the allocator
    pub(super) fn keep_freed() {
        // One heap: the heaps of other threads hold 64 MiB at the most, are unmapped when empty, and what is larger is mapped.
        let settings = [
            (libc::M_ARENA_MAX, 1),
            (libc::M_MMAP_THRESHOLD, 1 << 30),
            (libc::M_TRIM_THRESHOLD, libc::c_int::MAX),
        ];
        for (name, value) in settings {
            // SAFETY: `mallopt` takes two numbers, may be called at any time from any thread, and answers 0 for what it
            // does not know, which is then as it was.
            unsafe { libc::mallopt(name, value) };
        }
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::process::Command;

    /// 16 MiB, 40 times over, in a thread of its own: each time some 4,096 pages if they are handed back.
    const BYTES: usize = 16 << 20;
    const TIMES: usize = 40;
    const CHILD: &str = "ITM_KERNELS_KEEP_FREED";

    fn faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let rest = stat.rsplit_once(')').unwrap().1;
        rest.split_whitespace().nth(7).unwrap().parse().unwrap() // minflt, the tenth field
    }

    /// Faults of the allocations after the first, in a process of their own: settings stay for good.
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
        drop((touch(), touch())); // two at once, so that the one on top does not keep the other
        let before = faults();
        for _ in 0..TIMES {
            drop((touch(), touch()));
        }
        println!("faults {}", faults() - before);
    }

    #[test]
    fn freed_memory_is_used_again() {
        let (kept, plain) = (faults_of_a_process("yes"), faults_of_a_process("no"));
        let pages = (2 * TIMES * BYTES / 4096) as u64;
        assert!(kept < pages / 20, "{kept} faults for {pages} pages");
        assert!(plain > kept, "{plain} faults without, {kept} with: nothing was compared");
    }
}
