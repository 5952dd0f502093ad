use super::super::Section;
use super::super::tests::sample;
use super::*;

#[test]
fn reads_back_what_it_wrote() {
    let report = sample::report(24.3, -5.5, &[1, 2, 3]);
    assert_eq!(serde_json::from_str::<Report>(&report.to_json().unwrap()).unwrap(), report);
}

/// Numbers of measures stand beside the keys of the report, of a row, and in a row's `truth`.
#[test]
fn numbers_of_sections_stand_in_their_places() {
    let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
    let section = Section::new("Hubs");
    let number = |key: &str, value: f64| BTreeMap::from([(key.to_owned(), value)]);
    report.more.extend(section.keys(&number("hubs", 9.5)).unwrap());
    let of_full = |key, value| [None, None, Some(number(key, value))];
    section.add_rows(&mut report, |row| &mut row.more, &of_full("edited", 0.5)).unwrap();
    for (key, value) in [("map_at_r", 0.25), ("base_rate", 0.125)] {
        let rows = of_full(key, value);
        section.add_rows(&mut report, |row| row.truth.get_or_insert_default(), &rows).unwrap();
    }
    let json: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    assert_eq!((&json["hubs"], &json["rows"][2]["edited"]), (&9.5.into(), &0.5.into()));
    let truth = &json["rows"][2]["truth"];
    assert_eq!((&truth["map_at_r"], &truth["base_rate"]), (&0.25.into(), &0.125.into()));
    assert!(json["rows"][3]["truth"].is_null());
    let back: Report = serde_json::from_value(json).unwrap();
    assert_eq!(back.more["hubs"], 9.5);
    let error = section.keys(&number("hubs", f64::NAN)).unwrap_err();
    assert!(error.to_string().starts_with("report.json, Hubs: expected finite"), "{error}");
}

/// The keys that other programs rely on, at their places.
#[test]
fn keys_of_the_schema() {
    let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
    report.rows[2].paper = report.paper_reference.as_ref().map(|p| p.rows[0].numbers.clone());
    let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    let has = |at: &str, keys: &str| {
        let object = json.pointer(at).unwrap().as_object().unwrap();
        for key in keys.split(' ') {
            assert!(object.contains_key(key), "{at} has no {key}");
        }
    };
    has(
        "",
        "schema_version target dataset substituted commit backend threads preset seeds rows \
         seconds peak_memory_bytes config_sha256 data_sha256 ci95_unit",
    );
    has("/rows/2", "name protocol paper measured truth");
    has("/rows/2/measured", "i2t t2i rsum ci95 per_seed");
    for at in ["/rows/2/measured/i2t", "/rows/2/measured/t2i", "/rows/2/paper/i2t"] {
        has(at, "r1 r5 r10");
    }
    assert!(json["substituted"].is_boolean() && json["rows"][0]["paper"].is_null());
    assert_eq!(json["rows"][2]["measured"]["ci95"].as_array().unwrap().len(), 2);
}

#[test]
fn nothing_that_is_not_a_number_gets_out() {
    type Break = fn(&mut Report);
    let breaks: [Break; 4] = [
        |r| r.seconds = f64::NAN,
        |r| r.rows[2].measured.i2t.r5 = f64::INFINITY,
        |r| r.rows[2].measured.ci95 = Some([f64::NAN, 1.0]),
        |r| r.rows[2].measured.validation_rsum = Some(f64::NAN),
    ];
    for (i, spoil) in breaks.into_iter().enumerate() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        spoil(&mut report);
        assert!(report.to_json().is_err(), "case {i}");
    }
}
