//! In the place of `table`, in a build without the feature `parquet`.

use std::path::Path;

use itm_core::{Error, Result};

use super::array::Array;

fn refused<T>(place: &str) -> Result<T> {
    let got = "a Parquet table (.parquet) and a build without it";
    Err(Error::invalid(place, super::BUILD_WITH_TABLES, got))
}

pub(super) fn matrix(place: &str, _: Option<&str>, _: &Path) -> Result<Array> {
    refused(place)
}

pub(super) fn names(place: &str, _: Option<&str>, _: &Path) -> Result<Vec<String>> {
    refused(place)
}
