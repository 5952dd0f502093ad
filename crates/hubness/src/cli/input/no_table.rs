//! In the place of `table`, in a build without the feature `parquet`.

use std::path::Path;

use itm_core::{Error, Result};

use super::safetensors::Tensor;

fn refused<T>(place: &str) -> Result<T> {
    let expected = "a build with the feature `parquet`: cargo install --features cli,parquet";
    Err(Error::invalid(place, expected, "a Parquet table (.parquet) and a build without it"))
}

pub(super) fn matrix(place: &str, _: Option<&str>, _: &Path) -> Result<Tensor> {
    refused(place)
}

pub(super) fn names(place: &str, _: Option<&str>, _: &Path) -> Result<Vec<String>> {
    refused(place)
}
