//! A correction in a file.

use std::any::Any;

use itm_core::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use crate::local_scaling::Widths;
use crate::mutual_proximity::{Normals, SortedScores};
use crate::{Affine, Correction, Direction, Knowledge, Rescore, Setting};

/// A saved correction: `M` is [`Map`], or [`MapRef`] while it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorrectionFile<M> {
    direction: Direction,
    setting: Setting,
    map: M,
}

/// Every map that can be saved.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Map {
    Affine(Affine),
    LocalScaling(Widths),
    GaussianProximity(Normals),
    EmpiricalProximity(SortedScores),
}

/// A borrowed [`Map`].
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum MapRef<'a> {
    Affine(&'a Affine),
    LocalScaling(&'a Widths),
    GaussianProximity(&'a Normals),
    EmpiricalProximity(&'a SortedScores),
}

impl<'a> MapRef<'a> {
    fn new(map: &'a dyn Rescore) -> Option<Self> {
        let any: &dyn Any = map;
        (any.downcast_ref().map(Self::Affine))
            .or_else(|| any.downcast_ref().map(Self::LocalScaling))
            .or_else(|| any.downcast_ref().map(Self::GaussianProximity))
            .or_else(|| any.downcast_ref().map(Self::EmpiricalProximity))
    }
}

impl Map {
    /// # Errors
    /// If parts of it do not fit each other, a value is not finite, or there is no item.
    fn check(&self) -> Result<()> {
        let (checked, items) = match self {
            Self::Affine(map) => (map.check(), map.items()),
            Self::LocalScaling(map) => (map.check(), map.items()),
            Self::GaussianProximity(map) => (map.check(), map.items()),
            Self::EmpiricalProximity(map) => (map.check(), map.items()),
        };
        checked?;
        if items == 0 {
            return Err(Error::invalid("items of the correction", "at least one", 0));
        }
        Ok(())
    }

    fn into_correction<K: Knowledge>(self, direction: Direction) -> Correction<K> {
        match self {
            Self::Affine(map) => Correction::new(direction, map),
            Self::LocalScaling(map) => Correction::new(direction, map),
            Self::GaussianProximity(map) => Correction::new(direction, map),
            Self::EmpiricalProximity(map) => Correction::new(direction, map),
        }
    }
}

impl<K> Serialize for Correction<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let map = MapRef::new(self.map()).ok_or_else(|| {
            let expected = "one that can be saved (not exclusive IS, or a map of your own)";
            ser::Error::custom(Error::invalid("correction", expected, "another"))
        })?;
        let saved = CorrectionFile { direction: self.direction(), setting: self.setting(), map };
        saved.serialize(serializer)
    }
}

impl<'de, K: Knowledge> Deserialize<'de> for Correction<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let CorrectionFile { direction, setting, map } =
            CorrectionFile::<Map>::deserialize(deserializer)?;
        if setting != K::SETTING {
            let error = Error::invalid("setting of the correction", K::SETTING, setting);
            return Err(de::Error::custom(error));
        }
        map.check().map_err(de::Error::custom)?;
        Ok(map.into_correction(direction))
    }
}
