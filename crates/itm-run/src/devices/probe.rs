//! Devices behind a driver: finds them, counts them, and tries one once.

use std::panic::{catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, PoisonError};

use burn::tensor::{Device, DeviceType, Tensor};
use itm_core::files::panic_text;
use itm_core::{Error, Result};

/// The device of a backend whose devices may be missing, after a test sum on it. Without a number it is `preferred`. `needs` says what
/// a machine without such a device needs.
///
/// # Errors
/// If there is no device, no device with that index, or the sum fails.
pub(super) fn find(
    (backend, index): (&str, Option<usize>),
    kind: DeviceType,
    preferred: fn() -> Device,
    needs: &str,
) -> Result<Device> {
    let place = || match index {
        Some(index) => format!("backend `{backend}:{index}`"),
        None => format!("backend `{backend}`"),
    };
    // The enumeration and the first use of a device load foreign libraries, so a panic there is reported as an error.
    let found = quietly(|| Device::enumerate(kind))
        .map_err(|panic| Error::invalid(place(), needs, panic))?;
    let device = match index {
        _ if found.is_empty() => {
            return Err(Error::invalid(place(), needs, "a machine without it"));
        }
        None => preferred(),
        Some(index) => found.get(index).cloned().ok_or_else(|| {
            let last = format!("`{backend}:0`");
            let expected = match found.len() - 1 {
                0 => format!("{last}, the only device"),
                last_index => format!("{last} to `:{last_index}`"),
            };
            Error::invalid(place(), expected, format!("device {index}"))
        })?,
    };
    match quietly(|| sum(&device)) {
        Ok(Ok(3.0)) => Ok(device),
        Ok(Ok(other)) => Err(Error::invalid(place(), "1 + 2 = 3 on the device", other)),
        Ok(Err(failure)) | Err(failure) => Err(Error::invalid(place(), needs, failure)),
    }
}

/// 1 + 2, computed on the device.
fn sum(device: &Device) -> std::result::Result<f32, String> {
    let sum = Tensor::<1>::from_floats([1.0, 2.0], device).sum();
    let data = sum.try_into_data().map_err(|error| error.to_string())?;
    Ok(data.iter::<f32>().next().unwrap_or(f32::NAN))
}

/// Runs `f`; a panic in it becomes an error with its message instead of being printed.
fn quietly<T>(f: impl FnOnce() -> T) -> std::result::Result<T, String> {
    static HOOK: Mutex<()> = Mutex::new(()); // all threads share one hook
    let _alone = HOOK.lock().unwrap_or_else(PoisonError::into_inner);
    let printing = take_hook();
    set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(std::panic::AssertUnwindSafe(f));
    set_hook(printing);
    outcome.map_err(|panic| {
        let first = panic_text(&*panic).lines().next().unwrap_or_default();
        first.chars().take(200).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_and_not_passed_on() {
        assert_eq!(quietly(|| 7), Ok(7));
        assert_eq!(quietly(|| panic!("no driver\nmore")), Err::<(), _>("no driver".into()));
        let code = quietly(|| panic!("error {}", 5));
        assert_eq!(code, Err::<(), _>("error 5".into()));
    }
}
