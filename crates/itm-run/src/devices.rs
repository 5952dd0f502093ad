//! The only place that names backends.

use burn::tensor::Device;
use itm_core::{Error, Result};

/// The device of a backend's name: `cpu`, `wgpu`, `tch`, `tch-cuda`.
///
/// # Errors
/// If the name is unknown or the backend is not in this build: the line says what to build.
#[allow(deprecated)] // libtorch is deprecated upstream and still the way to CUDA
pub fn device(name: &str) -> Result<Device> {
    match name {
        #[cfg(feature = "cpu")]
        "cpu" => Ok(Device::flex()),
        #[cfg(feature = "wgpu")]
        "wgpu" => Ok(Device::wgpu(Default::default())),
        #[cfg(feature = "tch")]
        "tch" => Ok(Device::libtorch()),
        #[cfg(feature = "tch")]
        "tch-cuda" => Ok(Device::libtorch_cuda(0)),
        #[allow(unreachable_patterns)] // those of this build are answered above
        "cpu" | "wgpu" | "tch" | "tch-cuda" => {
            let feature = name.trim_end_matches("-cuda");
            let expected = format!("a build with `--no-default-features --features {feature}`");
            Err(Error::invalid(format!("backend `{name}`"), expected, "a build without it"))
        }
        _ => Err(Error::invalid("backend", "cpu, wgpu, tch or tch-cuda", format!("`{name}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_unbuilt_backends_say_what_to_do() {
        let line = device("gpu").unwrap_err().to_string();
        assert_eq!(line, "backend: expected cpu, wgpu, tch or tch-cuda, got `gpu`");
        #[cfg(not(feature = "tch"))]
        assert!(device("tch-cuda").unwrap_err().to_string().contains("--features tch"));
    }
}
