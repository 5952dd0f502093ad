use serde_json::{Value, json};

use super::*;
use crate::Setting;
use crate::page::tests::sample;

#[test]
fn reports_read_back_as_they_were_written() {
    for report in [
        sample::report(),
        sample::one_direction(Direction::I2t),
        sample::one_direction(Direction::T2i),
        sample::empty(),
    ] {
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}

/// The promised keys, by name.
#[test]
fn the_promised_keys_are_there() {
    let json = serde_json::to_value(sample::report()).unwrap();
    for key in ["rows", "hubs", "seconds", "peak_memory_bytes"] {
        assert!(!json[key].is_null(), "{key}");
    }
    let row = &json["rows"][1];
    assert_eq!(row["method"], "csls");
    assert_eq!(row["params"], json!({"i2t": {"k": 10}, "t2i": {"k": 10}}));
    assert_eq!(row["transductive"], true);
    assert_eq!(row["setting"], "transductive");
    assert_eq!(row["rsum"], 470.4);
    assert_eq!(row["p_value"], 0.0002);
    assert!(row["ci95"][0].as_f64() < row["ci95"][1].as_f64());
    for direction in ["i2t", "t2i"] {
        for key in ["r1", "r5", "r10"] {
            assert!(row[direction][key].is_f64(), "{direction} {key}");
        }
        assert!(json["hubs"][direction]["measures"][2]["skewness"].is_f64());
        assert!(json["hubs"][direction]["histograms"][0]["counts"][0][1].is_u64());
    }
}

#[test]
fn what_a_row_has_seen_is_a_word() {
    let words = [Setting::Plain, Setting::HeldOut, Setting::Transductive];
    let words = words.map(|setting| serde_json::to_value(setting).unwrap());
    assert_eq!(words, ["plain", "held_out", "transductive"]);
}

#[test]
fn who_chose_is_a_word() {
    use ChoiceOrigin::{CrossFitted, Default, Given, Validation};
    let words = [Default, Given, CrossFitted, Validation];
    let words = words.map(|c| serde_json::to_value(c).unwrap());
    assert_eq!(words, ["default", "given", "cross-fitted", "validation"]);
}

#[test]
fn a_direction_that_was_not_measured_is_null() {
    let json = serde_json::to_value(sample::one_direction(Direction::T2i)).unwrap();
    for row in json["rows"].as_array().unwrap() {
        for part in [row, &row["params"], &row["ci95_recalls"], &row["hubs_after"]] {
            assert_eq!(part.get("i2t"), Some(&Value::Null));
            assert!(!part["t2i"].is_null());
        }
    }
    assert_eq!(json["hubs"].get("i2t"), Some(&Value::Null));
}

#[test]
fn parameters_are_numbers_where_they_can_be() {
    let of = |v: f64| serde_json::to_string(&Param::from(v)).unwrap();
    assert_eq!([10.0, 0.5, -2.0].map(of), ["10", "0.5", "-2.0"]);
    assert_eq!(of(f64::INFINITY), "\"inf\"");
    for v in [10.0, 0.5, -2.0, 1e-3, f64::INFINITY] {
        let folds = Param::Each(vec![v.into(), Param::Each(vec![v.into()])]);
        let text = serde_json::to_string(&folds).unwrap();
        assert_eq!(serde_json::from_str::<Param>(&text).unwrap(), folds);
    }
}

#[test]
fn directions_are_those_with_recalls() {
    let of = |report: Report| report.directions().collect::<Vec<_>>();
    assert_eq!(of(sample::report()), Direction::BOTH);
    assert_eq!(of(sample::one_direction(Direction::T2i)), [Direction::T2i]);
    assert!(of(sample::empty()).is_empty());
}
