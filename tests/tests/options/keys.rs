//! All keys of a configuration, from its types.

use serde_json::Value;

use crate::source::{Name, Source};

/// One key of a file.
#[derive(Debug)]
pub(crate) struct Key {
    /// Names, from the outermost section inwards.
    pub(crate) path: Vec<String>,
    /// This key exists only if these keys have these values.
    pub(crate) under: Vec<(Vec<String>, String)>,
    pub(crate) says: String,
    /// The allowed values, with the first sentence of each comment; empty if any number or text is allowed.
    pub(crate) choices: Vec<(String, String)>,
}

impl Key {
    /// The path, joined with dots.
    pub(crate) fn name(&self) -> String {
        self.path.join(".")
    }

    /// The value that a configuration has here; none if it has no such key.
    pub(crate) fn value(&self, config: &Value) -> Option<String> {
        let at =
            |path: &[String]| path.iter().try_fold(config, |value, key| value.get(key)).cloned();
        let holds = |(path, value): &(Vec<String>, String)| {
            at(path).is_some_and(|found| found.as_str() == Some(value))
        };
        if !self.under.iter().all(holds) {
            return None;
        }
        at(&self.path).filter(|value| !value.is_null()).map(|value| written(&value))
    }
}

/// All keys below a type, in the order of the fields.
pub(crate) fn keys(source: &Source, root: &Name) -> Vec<Key> {
    let mut keys = Vec::new();
    let (path, under) = (&mut Vec::new(), &mut Vec::new());
    walk(source, root, path, under, &mut keys);
    keys
}

fn walk(
    source: &Source,
    name: &Name,
    path: &mut Vec<String>,
    under: &mut Vec<(Vec<String>, String)>,
    keys: &mut Vec<Key>,
) {
    let found =
        source.get(name).unwrap_or_else(|| panic!("no type {} in {}", name.name, name.package));
    for field in &found.fields {
        assert!(!field.flat, "{}: this page knows no flattened field", field.key);
        path.push(field.key.clone());
        let of = field.of.as_ref().and_then(|name| Some((name, source.get(name)?)));
        let mut leaf = |path: &[String], says: &str| {
            let choices = of.map_or(&[][..], |(_, of)| &of.values).iter();
            let choices = choices.map(|value| (value.key.clone(), first_sentence(&value.says)));
            let (path, under) = (path.to_vec(), under.clone());
            keys.push(Key { path, under, says: says.to_owned(), choices: choices.collect() });
        };
        match of {
            Some((name, of)) if of.values.is_empty() && !of.fields.is_empty() => {
                walk(source, name, path, under, keys);
            }
            Some((_, of)) if of.tag.is_some() => {
                path.extend(of.tag.clone());
                leaf(path, &field.says);
                let tag = path.clone();
                path.pop();
                for value in &of.values {
                    let Some(holds) = &value.holds else { continue };
                    under.push((tag.clone(), value.key.clone()));
                    walk(source, holds, path, under, keys);
                    under.pop();
                }
            }
            _ => leaf(path, &field.says),
        }
        path.pop();
    }
}

fn first_sentence(text: &str) -> String {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').to_owned()
}

/// The value as a file has it, without the quotes.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.len() == 1 => written(&values[0]),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(", "))
        }
        Value::Object(one) => {
            let pair = |(key, value): (&String, &Value)| format!("{key} = {}", written(value));
            one.iter().map(pair).collect::<Vec<_>>().join(", ")
        }
        Value::Number(number) => match number.as_f64() {
            Some(small) if small != 0.0 && small.abs() < 1e-3 => format!("{small:e}"),
            Some(x) => x.to_string(),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// Expected texts written by hand.
#[test]
fn values_are_written_as_in_a_file() {
    use serde_json::json;

    for (value, want) in [
        (json!("paper"), "paper"),
        (json!(2e-5), "2e-5"),
        (json!(20.0), "20"),
        (json!([5, 15]), "[5, 15]"),
        (json!([10.0]), "10"),
        (json!({"from_epoch": 15}), "from_epoch = 15"),
        (json!(true), "true"),
    ] {
        assert_eq!(written(&value), want);
    }
    let key = |under: &[(&str, &str)]| {
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        let under = under.iter().map(|(at, value)| (path(at), value.to_string())).collect();
        Key { path: path("text.pool"), under, says: String::new(), choices: vec![] }
    };
    let config = json!({"text": {"kind": "gru", "pool": "mean"}});
    assert_eq!(key(&[("text.kind", "gru")]).value(&config).as_deref(), Some("mean"));
    assert_eq!(key(&[("text.kind", "bert")]).value(&config), None);
}
