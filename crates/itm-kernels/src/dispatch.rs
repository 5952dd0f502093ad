//! One function body, compiled once per instruction set. The copy is chosen at run time.

/// Defines a function whose body is compiled for AVX-512, for AVX2 with FMA, and for the target's baseline.
///
/// Inside the body the constant named in brackets says whether `f32::mul_add` is one instruction.
macro_rules! multiversion {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident[$fma:ident]($($arg:ident: $ty:ty),* $(,)?) $body:block
    ) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, unsafe_code)] // operands one by one; calls below a feature check
        $vis fn $name($($arg: $ty),*) {
            #[inline(always)]
            fn body<const $fma: bool>($($arg: $ty),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn avx512($($arg: $ty),*) {
                    body::<true>($($arg),*);
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) {
                    body::<true>($($arg),*);
                }
                match $crate::dispatch::level() {
                    // SAFETY: `level` returned this because the CPU has every feature the copy is compiled for.
                    $crate::dispatch::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::dispatch::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::dispatch::Level::Baseline => {}
                }
            }
            // Multiply-add is one instruction on every 64-bit Arm.
            body::<{ cfg!(target_arch = "aarch64") }>($($arg),*);
        }
    };
}
pub(crate) use multiversion;

/// Runs `work` compiled for the newest instruction set of this machine.
///
/// `work` and every function that it calls must be `#[inline(always)]`, because only inlined code is compiled for that
/// instruction set. Results do not change: Rust neither reorders nor fuses floating-point operations.
#[inline]
#[allow(unsafe_code)] // calls below a feature check
pub fn widest<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
        fn avx512<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        #[target_feature(enable = "avx2,fma")]
        fn avx2<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        match level() {
            // SAFETY: `level` returned this because the CPU has every feature the copy is compiled for.
            Level::Avx512 => return unsafe { avx512(work) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2(work) },
            Level::Baseline => {}
        }
    }
    work()
}

/// The instruction sets with a separate copy, the fastest first.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Avx512,
    Avx2,
    Baseline,
}

#[cfg(all(test, target_arch = "x86_64"))]
thread_local! {
    /// A test runs the slower copies with this; it can only lower the level.
    pub(crate) static FORCED: std::cell::Cell<Option<Level>> = const { std::cell::Cell::new(None) };
}

/// The best instruction set of this CPU; the detection is cached by the standard library.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn level() -> Level {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw");
    let best = match (avx512 && avx2, avx2) {
        (true, _) => Level::Avx512,
        (false, true) => Level::Avx2,
        (false, false) => Level::Baseline,
    };
    #[cfg(test)]
    let best = FORCED.get().map_or(best, |forced| best.max(forced));
    best
}
