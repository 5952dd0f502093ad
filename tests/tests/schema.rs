//! `docs/schema/<name>.json`: JSON schemas of the keys of configurations, for editors and for `docs/options.md`. They come from the
//! configurations' types and comments, and must agree with them. Only a build with the feature `schema` makes this test: `cargo xtask options`.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::path::Path;

use fne::FneConfig;
use hubness::study::Settings;
use hubness::training::HalConfig;
use itm_run::config::Target;
use naaf::NaafConfig;
use schemars::{JsonSchema, SchemaGenerator, schema_for};
use serde_json::{Map, Value, json};
use tags_dc::config::TagsDcConfig;

/// If this variable is set, the test writes the files instead of comparing them.
const WRITE: &str = "ITM_WRITE_OPTIONS";

/// The schema of a target's file: the sections of a method, which say only what differs from a preset, beside the runner's.
fn target<Sections: JsonSchema>(method: &str) -> Value {
    let mut generator = SchemaGenerator::default();
    let target = generator.subschema_for::<Target>().to_value();
    let mut all = generator.into_root_schema_for::<Sections>().to_value();
    partial(&mut all);
    let sections = all["properties"].as_object().unwrap().clone();
    let with = |more: Value| -> Map<String, Value> {
        sections.clone().into_iter().chain(more.as_object().unwrap().clone()).collect()
    };
    let row = with(json!({"extends": {"type": "string"}, "from": {"type": "string"}}));
    let preset = json!({"enum": ["paper", "official", "default"]});
    let any = json!({"type": "object"});
    let rows = json!({"type": "object", "additionalProperties": {"$ref": "#/$defs/row"}});
    all["properties"] = Value::Object(with(json!({
        "preset": preset, "extends": {"type": "string"},
        "target": target, "table": any, "figure": any, "row": rows,
    })));
    all["$defs"]["row"] = json!({
        "anyOf": [{"type": "object", "properties": row, "additionalProperties": false}, {"const": false}],
    });
    all["title"] = format!("A target of {method}").into();
    all
}

/// Every key may be missing, and `false` leaves an optional key out.
fn partial(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            keys.remove("required");
            if let Some(types) = keys.get_mut("type").and_then(Value::as_array_mut)
                && types.iter().any(|of| of == "null")
            {
                types.retain(|of| of != "null");
                let only = (types.len() == 1).then(|| types[0].clone());
                keys.extend(only.map(|only| ("type".to_owned(), only)));
                let description = keys.remove("description");
                let either = json!([Value::Object(keys.clone()), {"const": false}]);
                *keys = description.into_iter().map(|text| ("description".into(), text)).collect();
                keys.insert("anyOf".into(), either);
            } else if keys.get("type").is_some_and(|of| of == "null") {
                *keys = json!({"const": false}).as_object().unwrap().clone();
            } else {
                keys.values_mut().for_each(partial);
            }
        }
        Value::Array(all) => all.iter_mut().for_each(partial),
        _ => (),
    }
}

#[test]
fn the_schemas_are_what_the_types_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/schema");
    for (name, schema) in [
        ("corrections", schema_for!(Settings).to_value()),
        ("fne", target::<FneConfig>("fne")),
        ("hal", target::<HalConfig>("hal")),
        ("naaf", target::<NaafConfig>("naaf")),
        ("tags-dc", target::<TagsDcConfig>("tags-dc")),
    ] {
        let path = folder.join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os(WRITE).is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, text).unwrap();
        } else {
            let there = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(there == text, "{}: `cargo xtask options` writes it anew", path.display());
        }
    }
}
