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
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Map<A = Affine, L = Widths, G = Normals, E = SortedScores> {
    Affine(A),
    LocalScaling(L),
    GaussianProximity(G),
    EmpiricalProximity(E),
}

/// A borrowed [`Map`].
type MapRef<'a> = Map<&'a Affine, &'a Widths, &'a Normals, &'a SortedScores>;

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
    fn checked(self) -> Result<Box<dyn Rescore>> {
        let (checked, map): (_, Box<dyn Rescore>) = match self {
            Self::Affine(map) => (map.check(), Box::new(map)),
            Self::LocalScaling(map) => (map.check(), Box::new(map)),
            Self::GaussianProximity(map) => (map.check(), Box::new(map)),
            Self::EmpiricalProximity(map) => (map.check(), Box::new(map)),
        };
        checked?;
        Error::unless(map.items() > 0, "items of the correction", "at least one", 0)?;
        Ok(map)
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
        let place = "setting of the correction";
        Error::unless(setting == K::SETTING, place, K::SETTING, setting)
            .and_then(|()| Ok(Self::of_map(direction, map.checked()?)))
            .map_err(de::Error::custom)
    }
}
