//! Ctrl-C, SIGTERM and SIGHUP during a training: the step ends, everything is saved, the program ends. A second signal ends it at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use itm_core::{Error, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The first signal that came; 0 before.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Whether [`end`] was called.
static OVER: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

#[cfg(unix)]
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, signal_hook::consts::SIGHUP];
#[cfg(not(unix))]
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// From now on, the first of these signals only asks to stop.
///
/// # Errors
/// If the system does not allow it.
pub(crate) fn listen() -> Result<()> {
    let once = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    flag::register_conditional_default(signal_hook::consts::SIGHUP, OVER.clone())
        .map_err(Error::io("signals"))?;
    for signal in SIGNALS {
        // The second signal meets `once`, which the first has set: the order of these lines decides.
        flag::register_conditional_shutdown(signal, 128 + signal, once.clone())
            .and_then(|_| flag::register(signal, once.clone()))
            .and_then(|_| flag::register_usize(signal, SIGNAL.clone(), signal as usize))
            .map_err(Error::io("signals"))?;
    }
    Ok(())
}

/// Ends what [`listen`] began: from now on SIGHUP ends the program at once. A server waits for Ctrl-C and SIGTERM itself.
///
/// # Errors
/// If a signal came before.
pub(crate) fn end() -> Result<()> {
    OVER.store(true, Ordering::SeqCst);
    Error::unless(!is_asked(), "itm search", "a server", "a signal before it began")
}

/// Whether a signal asks to stop.
pub(crate) fn is_asked() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// The exit code of a program that a signal stopped: 130 after Ctrl-C, 143 after SIGTERM; `None` if none came.
pub fn exit_code() -> Option<u8> {
    let signal = SIGNAL.load(Ordering::Relaxed);
    (signal != 0).then_some(128 + signal as u8)
}
