use super::super::tests::sample;
use super::*;

#[test]
fn reads_back_what_it_wrote() {
    let report = sample::report(24.3, -5.5, &[1, 2, 3]);
    assert_eq!(Report::from_json(&report.to_json().unwrap()).unwrap(), report);
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
    has("/rows/2/truth", "map_at_r r_precision posterior_auc brier_skill drawn_true_share");
    for at in ["/rows/2/measured/i2t", "/rows/2/measured/t2i", "/rows/2/paper/i2t"] {
        has(at, "r1 r5 r10");
    }
    assert!(json["substituted"].is_boolean() && json["rows"][0]["paper"].is_null());
    assert_eq!(json["rows"][2]["measured"]["ci95"].as_array().unwrap().len(), 2);
}

#[test]
fn nothing_that_is_not_a_number_gets_out() {
    type Break = fn(&mut Report);
    let breaks: [Break; 5] = [
        |r| r.seconds = f64::NAN,
        |r| r.rows[2].measured.i2t.r5 = f64::INFINITY,
        |r| r.rows[2].measured.ci95 = Some([f64::NAN, 1.0]),
        |r| r.rows[2].measured.validation_rsum = Some(f64::NAN),
        |r| r.rows[2].truth.as_mut().unwrap().brier_skill = Some(f64::NEG_INFINITY),
    ];
    for (i, spoil) in breaks.into_iter().enumerate() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        spoil(&mut report);
        assert!(report.to_json().is_err(), "case {i}");
    }
}

#[test]
fn other_keys_and_versions_are_refused() {
    let text = sample::report(1.0, 1.0, &[1]).to_json().unwrap();
    let cases = [
        text.replace("\"threads\"", "\"cores\""),
        text.replacen("\"name\"", "\"extra\": 1, \"name\"", 1),
        text.replacen("\"schema_version\": 1", "\"schema_version\": 2", 1),
        text[..text.len() / 2].to_owned(),
    ];
    for case in cases {
        let error = Report::from_json(&case).unwrap_err().to_string();
        assert!(error.starts_with("report.json: expected") && !error.contains('\n'), "{error}");
    }
}
