//! All keys of a configuration, from its JSON schema.

use serde_json::Value;

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

/// Sections of a file that are the runner's, not a method's.
const RUNNER: [&str; 6] = ["extends", "figure", "preset", "row", "table", "target"];

/// All keys of a schema. `order` has the names of keys in the order of the configuration; keys that are not in it come last.
pub(crate) fn keys(schema: &Value, order: &[String]) -> Vec<Key> {
    let mut walk = Walk { schema, order, path: vec![], under: vec![], keys: vec![] };
    walk.section(schema);
    walk.keys
}

/// The keys of `[target]`, the same in the schema of each method; the keys of a section in it come last.
pub(crate) fn of_target(schema: &Value) -> Vec<Key> {
    let path = vec!["target".to_owned()];
    let mut walk = Walk { schema, order: &[], path, under: vec![], keys: vec![] };
    walk.key(&schema["properties"]["target"]);
    walk.keys.sort_by_key(|key| key.path.len());
    walk.keys
}

struct Walk<'a> {
    schema: &'a Value,
    order: &'a [String],
    path: Vec<String>,
    under: Vec<(Vec<String>, String)>,
    keys: Vec<Key>,
}

impl<'a> Walk<'a> {
    /// The schema behind a reference, or the other alternative of `false`.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let is_false = |one: &&Value| one["const"] == Value::Bool(false);
        match (schema["$ref"].as_str(), schema["anyOf"].as_array()) {
            (Some(name), _) => &self.schema["$defs"][name.rsplit('/').next().unwrap()],
            (None, Some(all)) if all.iter().any(|one| is_false(&one)) => {
                self.resolved(all.iter().find(|one| !is_false(one)).unwrap())
            }
            _ => schema,
        }
    }

    /// The keys of a section, in order.
    fn section(&mut self, section: &'a Value) {
        let Some(all) = section["properties"].as_object() else { return };
        let rank = |name: &str| {
            let own = [&self.path[..], &[name.to_owned()]].concat().join(".");
            let below = format!("{own}.");
            let found = self.order.iter().position(|at| *at == own || at.starts_with(&below));
            found.unwrap_or(usize::MAX)
        };
        let mut names: Vec<_> = all.keys().map(|name| (rank(name), name)).collect();
        names.sort();
        for (_, name) in names {
            let runner = self.path.is_empty() && RUNNER.contains(&name.as_str());
            // The tag of a section is a key of its own.
            if !runner && !self.under.iter().any(|(at, _)| at.last() == Some(name)) {
                self.path.push(name.clone());
                self.key(&all[name]);
                self.path.pop();
            }
        }
    }

    fn key(&mut self, property: &'a Value) {
        let of = self.resolved(property);
        let variants = of["oneOf"].as_array().map_or(&[][..], Vec::as_slice);
        let says = paragraph(property);
        match variants.first().and_then(tag) {
            Some(tag) => {
                let choices = variants.iter().map(|one| {
                    let value = one["properties"][tag]["const"].as_str().unwrap();
                    (value.to_owned(), first_sentence(&paragraph(one)))
                });
                let choices: Vec<_> = choices.collect();
                self.path.push(tag.clone());
                let at = self.path.clone();
                self.leaf(says, choices.clone());
                self.path.pop();
                for (one, (value, _)) in variants.iter().zip(choices) {
                    self.under.push((at.clone(), value));
                    if one.get("$ref").is_some() {
                        self.section(self.resolved(one));
                    }
                    self.section(one);
                    self.under.pop();
                }
            }
            None if of["properties"].is_object() => self.section(of),
            None => self.leaf(says, choices(of, variants)),
        }
    }

    fn leaf(&mut self, says: String, choices: Vec<(String, String)>) {
        self.keys.push(Key { path: self.path.clone(), under: self.under.clone(), says, choices });
    }
}

/// The key that says which variant of a section a file has.
fn tag(variant: &Value) -> Option<&String> {
    let all = variant["properties"].as_object()?;
    all.iter().find(|(_, value)| value["const"].is_string()).map(|(name, _)| name)
}

/// The values of a key that has few of them.
fn choices(of: &Value, variants: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let plain = |of: &Value| -> Vec<_> {
        let all = of["enum"].as_array().into_iter().flatten();
        all.map(|value| (text(value), String::new())).collect()
    };
    let one = |one: &Value| match (&one["const"], one["properties"].as_object()) {
        (Value::String(value), _) => vec![(value.clone(), first_sentence(&paragraph(one)))],
        (_, Some(keys)) => {
            keys.keys().map(|key| (key.clone(), first_sentence(&paragraph(one)))).collect()
        }
        _ => plain(one),
    };
    if variants.is_empty() { plain(of) } else { variants.iter().flat_map(one).collect() }
}

/// The first paragraph of a comment as one line, without links.
fn paragraph(of: &Value) -> String {
    let text = of["description"].as_str().unwrap_or_default();
    let lines: Vec<_> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    without_links(&lines.join(" "))
}

/// `` [`a`](b) `` and `` [`a`] `` become `` `a` ``.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((label, after)) = after.split_once("`]") else { break };
        out += &format!("{before}`{label}`");
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    out + rest
}

fn first_sentence(text: &str) -> String {
    let is_end =
        |before: &str| !before.ends_with("Eq") && before.matches('"').count().is_multiple_of(2);
    let ends = text.match_indices(". ").map(|(at, _)| at).find(|&at| is_end(&text[..at]));
    text[..ends.unwrap_or(text.len())].trim_end_matches('.').to_owned()
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
