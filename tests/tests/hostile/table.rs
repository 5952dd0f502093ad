//! Tables of hostile calls and what each must say.

use std::panic::catch_unwind;

/// The text of the call, a part of what it must say, and the call.
pub(crate) type Case = (&'static str, &'static str, fn() -> Result<(), String>);

/// Calls that return an error.
macro_rules! errors {
    ($($part:literal: $call:expr),* $(,)?) => {
        $crate::table::check("an error", &[$((stringify!($call), $part, || {
            $call.map(drop).map_err(|error| error.to_string())
        })),*])
    };
}

/// Calls that panic, as their documentation says.
macro_rules! panics {
    ($($part:literal: $call:expr),* $(,)?) => {
        $crate::table::check("a panic", &[$((stringify!($call), $part, || {
            let _ = $call;
            Ok(())
        })),*])
    };
}

/// Makes every call of a table, and names all that say something else.
pub(crate) fn check(kind: &str, cases: &[Case]) {
    let mut wrong = vec![];
    for &(call, part, run) in cases {
        let (got, said) = match catch_unwind(run) {
            Ok(Ok(())) => ("an answer", String::new()),
            Ok(Err(line)) => ("an error", line),
            Err(panic) => ("a panic", message(&*panic)),
        };
        if got != kind || !said.contains(part) {
            wrong.push(format!("{call}\n    expected {kind}: {part}\n    got {got}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no text").to_owned()
}
