//! The only place that names backends.

#![cfg_attr(feature = "tch", allow(deprecated))] // burn will drop burn-tch: docs/decisions/0028

use burn::tensor::Device;
use itm_core::{Error, Result};

#[cfg(any(feature = "wgpu", feature = "tch", feature = "cuda"))]
mod probe;

/// Backends of this build by name: each is an argument of [`device`].
pub const BUILT: &[&str] = &[
    #[cfg(feature = "cpu")]
    "cpu",
    #[cfg(feature = "wgpu")]
    "wgpu",
    #[cfg(feature = "tch")]
    "tch",
    #[cfg(feature = "tch")]
    "tch-cuda",
    #[cfg(feature = "cuda")]
    "cuda",
];

/// The values of `--backend`.
const NAMES: &str = "cpu, wgpu[:i], tch, tch-cuda[:i] or cuda[:i]";

/// The device of a backend's name: `cpu`, `wgpu[:i]`, `tch`, `tch-cuda[:i]`, `cuda[:i]`.
///
/// `i` counts the devices that the backend finds, from 0; without it the device is the driver's preference (`wgpu`) or the
/// first. A GPU must compute a small sum before it is returned, so that a missing driver or library fails here and not in a run.
///
/// # Errors
/// If the name is unknown, the backend is not in this build, it has no driver, or there is no such device: the line
/// says what to build or to install.
pub fn device(name: &str) -> Result<Device> {
    let (backend, index) = parsed(name)?;
    match backend {
        #[cfg(feature = "cpu")]
        "cpu" => Ok(Device::flex()),
        #[cfg(feature = "tch")]
        "tch" => Ok(Device::libtorch()),
        #[cfg(feature = "wgpu")]
        "wgpu" => probe::find(
            (backend, index),
            burn::tensor::DeviceType::Wgpu,
            || Device::wgpu(Default::default()),
            "a driver for Vulkan (Debian: `libvulkan1` and the card's, or `mesa-vulkan-drivers`, which \
             needs no card), Metal or DirectX 12",
        ),
        #[cfg(feature = "tch")]
        "tch-cuda" => probe::find(
            (backend, index),
            burn::tensor::DeviceType::LibTorch,
            || Device::libtorch_cuda(0),
            "an NVIDIA driver, and at build and run time a libtorch built for CUDA (README, Backends)",
        ),
        #[cfg(feature = "cuda")]
        "cuda" => probe::find(
            (backend, index),
            burn::tensor::DeviceType::Cuda,
            || Device::cuda(0),
            "an NVIDIA driver (`libcuda.so.1`), NVRTC on the loader's path and CUDA's headers in \
             `$CUDA_PATH/include`",
        ),
        unbuilt => {
            let _ = index; // a build with only `cpu` has no use for it
            let feature = if unbuilt == "tch-cuda" { "tch" } else { unbuilt };
            let expected = format!(
                "a build with it (`cargo xtask reproduce … --backend {unbuilt}`, or cargo's \
                 `--no-default-features --features {feature}`)"
            );
            Err(Error::invalid(format!("backend `{name}`"), expected, "a build without it"))
        }
    }
}

/// The devices of a list `cuda:0,cuda:1`; the first has the model. A single device is named as in [`device`].
///
/// # Errors
/// As [`device`]; if several are not of one backend and named by their numbers, or one is named twice.
pub(crate) fn devices(names: &str) -> Result<Vec<Device>> {
    let named = names.split(',').map(parsed).collect::<Result<Vec<_>>>()?;
    for (at, (backend, index)) in named.iter().enumerate().filter(|_| named.len() > 1) {
        let expected = "several devices of one backend by their numbers, as cuda:0,cuda:1";
        let fits = *backend == named[0].0 && index.is_some();
        Error::unless(fits, "backend", expected, format_args!("`{names}`"))?;
        let once = !named[..at].contains(&(*backend, *index));
        Error::unless(once, "backend", "each device once", format_args!("`{names}`"))?;
    }
    names.split(',').map(device).collect()
}

/// Backend and number of a device.
fn parsed(name: &str) -> Result<(&str, Option<usize>)> {
    let (backend, index) = name.split_once(':').map_or((name, None), |(name, at)| (name, Some(at)));
    match (backend, index.map(str::parse::<usize>)) {
        ("wgpu" | "tch-cuda" | "cuda", None) => Ok((backend, None)),
        ("wgpu" | "tch-cuda" | "cuda", Some(Ok(index))) => Ok((backend, Some(index))),
        ("cpu" | "tch", None) => Ok((backend, None)),
        _ => Err(Error::invalid("backend", NAMES, format!("`{name}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str) -> String {
        let line = device(name).unwrap_err().to_string();
        assert_eq!(line.lines().count(), 1, "{line}");
        line
    }

    #[test]
    fn an_unknown_backend_is_answered_by_the_names() {
        let names = "backend: expected cpu, wgpu[:i], tch, tch-cuda[:i] or cuda[:i], got";
        for name in ["gpu", "", "cuda:", "wgpu:first", "wgpu:-1", "cpu:0", "tch:0", "cuda:0:0"] {
            assert_eq!(line(name), format!("{names} `{name}`"));
        }
    }

    #[test]
    fn a_list_names_each_device_of_one_backend_once() {
        let line = |names| devices(names).unwrap_err().to_string();
        for names in ["cpu,cpu", "wgpu,wgpu:1", "wgpu:0,cuda:1", "tch,tch", "wgpu:0,cpu"] {
            let want = "backend: expected several devices of one backend by their numbers, as cuda:0,cuda:1, got";
            assert_eq!(line(names), format!("{want} `{names}`"));
        }
        for names in ["cuda:1,cuda:1", "wgpu:0,wgpu:1,wgpu:00"] {
            assert_eq!(line(names), format!("backend: expected each device once, got `{names}`"));
        }
        for (names, wrong) in
            [("wgpu:0,", ""), ("cuda:0,gpu", "gpu"), ("cuda:0 cuda:1", "cuda:0 cuda:1")]
        {
            assert!(
                line(names).ends_with(&format!("or cuda[:i], got `{wrong}`")),
                "{}",
                line(names)
            );
        }
        assert_eq!(
            devices("cpu").map(|found| found.len()).ok(),
            BUILT.contains(&"cpu").then_some(1)
        );
    }

    #[test]
    fn an_unbuilt_backend_says_what_to_build() {
        for (name, feature) in
            [("wgpu", "wgpu"), ("wgpu:3", "wgpu"), ("tch", "tch"), ("tch-cuda:1", "tch")]
        {
            let backend = name.split(':').next().unwrap();
            if BUILT.contains(&backend) {
                continue;
            }
            let line = line(name);
            assert!(line.starts_with(&format!("backend `{name}`: expected a build with it")));
            assert!(line.contains(&format!("--backend {backend}`")), "{line}");
            assert!(line.contains(&format!("--no-default-features --features {feature}`")));
        }
    }

    /// A backend of this build gives a device, or an error that says what is missing; no machine has index 999.
    #[test]
    fn a_missing_driver_or_device_is_one_line() {
        for name in BUILT {
            if let Err(error) = device(name) {
                let line = error.to_string();
                assert!(line.starts_with(&format!("backend `{name}`: expected ")), "{line}");
                assert_eq!(line.lines().count(), 1, "{line}");
            }
            if !matches!(*name, "cpu" | "tch") {
                let name = format!("{name}:999");
                assert!(line(&name).starts_with(&format!("backend `{name}`: expected ")));
            }
        }
    }
}
