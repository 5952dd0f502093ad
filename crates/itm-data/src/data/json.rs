//! JSON lists whose errors name the entry.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::files::excerpt;
pub(crate) use crate::files::parse_json as parse;

/// A list: an error in entry 17 begins with `entry 17:`.
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
                let mut list = Vec::new(); // grows with what was read: no size is trusted
                loop {
                    let entry = list.len();
                    let refused = |e| A::Error::custom(format_args!("entry {entry}: {e}"));
                    match seq.next_element().map_err(refused)? {
                        Some(entry) => list.push(entry),
                        None => return Ok(List(list)),
                    }
                }
            }
        }
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

/// A JSON object by name, in which no name occurs twice: a map would keep only the last value.
#[derive(Debug, Clone, PartialEq)]
pub struct ByName<T>(pub BTreeMap<String, T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByName<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = ByName<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ByName<T>, A::Error> {
                let mut all = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    if all.contains_key(&name) {
                        let again = format!("the name {} a second time", excerpt(&name));
                        return Err(A::Error::custom(again));
                    }
                    all.insert(name, value);
                }
                Ok(ByName(all))
            }
        }
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_name_is_refused() {
        let parsed = |json: &str| parse::<ByName<u8>>("p.json", "numbers by name", json.as_bytes());
        assert_eq!(parsed(r#"{"a": 1, "b": 2}"#).unwrap().0.len(), 2);
        let line = parsed(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap_err().to_string();
        let want = "p.json: expected numbers by name, got the name \"a\" a second time at line 1 column 24";
        assert_eq!(line, want);
    }
}
