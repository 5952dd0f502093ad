//! Where the weights of an encoder come from.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Result;
use crate::weights::Hub;

/// Where weights come from. In a config, a string is a folder or `org/name@revision`, and a table has the sizes of a random model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Weights<S> {
    /// Published weights.
    Pretrained(String),
    /// Random weights of these sizes, a function of the seed.
    Random(S),
}

impl<S> Weights<S> {
    /// The name of published weights.
    pub(in crate::towers) fn name(&self) -> Option<&str> {
        match self {
            Self::Pretrained(name) => Some(name),
            Self::Random(_) => None,
        }
    }

    /// The folder of published weights, which may be downloaded first; `None` for random weights.
    ///
    /// # Errors
    /// The errors of [`Hub::folder`].
    pub fn folder(&self) -> Result<Option<PathBuf>> {
        self.name().map(|name| Hub::from_env().folder(name)).transpose()
    }
}

impl<S: Clone> Weights<S> {
    /// The sizes of the weights. `read` reads them from a folder.
    pub(super) fn shape(&self, read: impl FnOnce(PathBuf) -> Result<S>) -> Result<S> {
        match self {
            Self::Pretrained(name) => read(Hub::from_env().folder(name)?),
            Self::Random(shape) => Ok(shape.clone()),
        }
    }
}

impl<'de, S: Deserialize<'de>> Deserialize<'de> for Weights<S> {
    /// Written by hand, because an untagged enum would name neither the missing nor the unknown key of a table.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Either<S>(PhantomData<S>);
        impl<'de, S: Deserialize<'de>> Visitor<'de> for Either<S> {
            type Value = Weights<S>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a folder, org/name@revision, or a table of sizes")
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
                Ok(Weights::Pretrained(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                S::deserialize(MapAccessDeserializer::new(map)).map(Weights::Random)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}
