//! Every option that sets a number changes the result.

use serde_json::Value;

use super::common::{Folder, WIDTH, made, names, recalls, row};

/// The results of a row: recalls, ranks, hubs.
fn found(report: &Value, method: &str) -> [Value; 3] {
    let row = row(report, method);
    ["i2t", "t2i", "hubs_after"].map(|key| row[key].clone())
}

#[test]
fn every_setting_changes_its_row() {
    let folder = Folder::made();
    for (method, option, key, value) in [
        ("csls", "--csls-k 2", "k", 2.0),
        ("is", "--is-beta 5", "beta", 5.0),
        ("nnn", "--nnn-alpha 0.25", "alpha", 0.25),
        ("nnn", "--nnn-k 2", "k", 2.0),
        ("qbnorm", "--qbnorm-beta 3", "beta", 3.0),
        ("sinkhorn", "--sinkhorn-eps 0.3", "epsilon", 0.3),
        ("sinkhorn", "--sinkhorn-iterations 1", "iterations", 1.0),
        ("ls", "--local-k 2", "k", 2.0),
        ("nicdm", "--local-k 2", "k", 2.0),
        ("rgm", "--rgm-lambda 1", "lambda", 1.0),
        ("rgm", "--rgm-lambda 2", "lambda", 2.0),
    ] {
        let usual = folder.report(&format!("--method {method}"));
        let other = folder.report(&format!("--method {method} {option}"));
        assert_ne!(found(&usual, method), found(&other, method), "{option}");
        let params = &row(&other, method)["params"]["t2i"];
        assert_eq!(params[key].as_f64(), Some(value), "{option}: {params}");
        assert_eq!(row(&other, method)["chosen"], "given", "{option}");
        assert_ne!(row(&usual, method)["chosen"], "given", "{option}");
        assert_eq!(found(&usual, "nns"), found(&other, "nns"), "{option}");
    }
}

#[test]
fn both_banks_have_their_beta() {
    let folder = banked();
    let of = |betas: &str| {
        let report = folder.report(&format!("{BANKS} --method dual-is,dual-dis {betas}"));
        [found(&report, "dual-is"), found(&report, "dual-dis")]
    };
    let [usual, query, item] = ["", "--dual-beta 5 10", "--dual-beta 20 40"].map(of);
    for form in [0, 1] {
        assert_ne!(usual[form], query[form]);
        assert_ne!(usual[form], item[form]);
    }
    assert_ne!(usual[0], usual[1], "the dynamic form differs");
}

/// If a test query is itself in the bank, its nearest item is active for every k.
#[test]
fn more_active_items_matter_to_a_bank() {
    let folder = banked();
    let of = |options: &str| folder.report(&format!("{BANKS} --method qbnorm {options}"));
    let (usual, other) = (of(""), of("--qbnorm-k 8"));
    assert_ne!(found(&usual, "qbnorm@bank"), found(&other, "qbnorm@bank"));
    assert_eq!(found(&usual, "qbnorm"), found(&other, "qbnorm"));
}

#[test]
fn matchings_have_two_readings() {
    let folder = Folder::made();
    for (option, key) in [
        ("--rgm-capacity literal", "capacity"),
        ("--rgm-stop literal", "stop"),
        ("--rgm-single-run", "runs"),
    ] {
        let usual = folder.report("--method gm");
        let other = folder.report(&format!("--method gm {option}"));
        assert_ne!(found(&usual, "gm"), found(&other, "gm"), "{option}");
        assert!(row(&usual, "gm")["params"]["t2i"][key].is_null());
        assert!(!row(&other, "gm")["params"]["t2i"][key].is_null());
    }
}

/// 24 images and 60 texts: the fair share of an image is 2.5 texts, which is not a whole number.
#[test]
fn a_chosen_lambda_is_the_one_that_is_run() {
    let folder = Folder::made();
    let (_, texts) = made();
    folder.npy("t.npy", WIDTH, &texts[..60 * WIDTH]);
    let pairs: Vec<_> = (0..60).map(|t: usize| (t * 24 / 60).to_string()).collect();
    folder.write("p.txt", pairs.join("\n"));
    let line = "--method rgm --pairs p.txt --val-images i.npy --val-texts t.npy --val-pairs p.txt";
    let report = folder.report(line);
    let chosen = row(&report, "rgm");
    let r = &chosen["t2i"];
    // On the validation set itself, no λ of a fine grid is better than the chosen λ.
    let grid: Vec<_> = (10..=100).map(|tenth| format!("{}", f64::from(tenth) / 10.0)).collect();
    let all = folder.report(&format!("--method rgm --pairs p.txt --rgm-lambda {}", grid.join(",")));
    for key in ["r1", "r5", "r10"] {
        for row in all["rows"].as_array().unwrap() {
            assert!(row["t2i"][key].as_f64() <= r[key].as_f64(), "{key}: {row} over {chosen}");
        }
    }
}

#[test]
fn no_bound_is_nearest_neighbours() {
    let folder = Folder::made();
    let report = folder.report("--method rgm --rgm-lambda inf,1");
    assert_eq!(names(&report), ["nns", "rgm(inf)", "rgm(1)"]);
    assert_eq!(row(&report, "rgm(inf)")["params"]["i2t"]["lambda"], "inf");
    assert_eq!(recalls(row(&report, "rgm(inf)")), recalls(row(&report, "nns")));
    assert_ne!(recalls(row(&report, "rgm(1)")), recalls(row(&report, "nns")));
}

/// If k is larger than the number of queries, all queries are neighbours.
#[test]
fn k_is_cut_to_the_set() {
    let folder = Folder::made();
    let all = folder.report("--method csls,nnn,ls --csls-k 72 --nnn-k 72 --local-k 72");
    let more = folder.report("--method csls,nnn,ls --csls-k 9999 --nnn-k 9999 --local-k 9999");
    for method in ["csls", "nnn", "ls"] {
        assert_eq!(found(&all, method), found(&more, method), "{method}");
    }
}

#[test]
fn rows_are_as_long_as_they_were_unless_raw() {
    let folder = Folder::made();
    let (usual, raw) = (folder.report("--method csls"), folder.report("--method csls --raw"));
    assert_ne!(found(&usual, "nns"), found(&raw, "nns"));
    assert!(!names(&folder.report("--raw")).contains(&"ls"), "local scaling needs cosines");
}

#[test]
fn seed_and_resamples_change_intervals_alone() {
    let folder = Folder::made();
    let of = |options: &str| folder.report(&format!("--method csls {options}"));
    let usual = of("--resamples 100");
    for other in [of("--resamples 100 --seed 1"), of("--resamples 200")] {
        assert_ne!(row(&usual, "csls")["ci95"], row(&other, "csls")["ci95"]);
        assert_eq!(found(&usual, "csls"), found(&other, "csls"));
    }
    let few = of("--resamples 10")["data"]["notes"].to_string();
    assert!(few.contains("with so few resamples no p over all rows can be below 0.09"), "{few}");
    let none = of("--resamples 0");
    assert!(row(&none, "csls")["ci95"].is_null() && row(&none, "csls")["p_value"].is_null());
}

pub(crate) const BANKS: &str = "--bank-images bi.npy --bank-texts bt.npy";

/// The made data, and held-out rows: the made data mirrored in one dimension.
pub(crate) fn banked() -> Folder {
    let (folder, (images, texts)) = (Folder::made(), made());
    let mirrored = |rows: &[f32]| -> Vec<f32> {
        rows.iter().enumerate().map(|(at, v)| if at % WIDTH == 3 { -v } else { *v }).collect()
    };
    folder.npy("bi.npy", WIDTH, &mirrored(&images));
    folder.npy("bt.npy", WIDTH, &mirrored(&texts[..30 * WIDTH]));
    folder
}

#[test]
fn banks_give_rows_of_their_own() {
    let folder = banked();
    let report = folder.report(BANKS);
    let rows = names(&report);
    for method in ["csls", "is", "nnn", "sinkhorn", "qbnorm", "mp", "mp-empirical", "ls", "nicdm"] {
        let bank = row(&report, &format!("{method}@bank"));
        assert_eq!((&bank["transductive"], &bank["setting"]), (&false.into(), &"held_out".into()));
        assert_ne!(found(&report, method), found(&report, &format!("{method}@bank")), "{method}");
        assert_eq!(row(&report, method)["transductive"], true);
    }
    for method in ["dual-is", "dual-dis"] {
        assert_eq!(row(&report, method)["setting"], "held_out");
    }
    // The queries of a matching compete, whatever its scores were fitted on.
    assert_eq!(row(&report, "csls+rgm@bank")["transductive"], true);
    assert!(!rows.contains(&"nns@bank") && !rows.contains(&"gm@bank"));
}
