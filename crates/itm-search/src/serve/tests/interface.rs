//! JSON under `/api/v1`.

use serde_json::{Value, json};

use super::*;
use crate::fakes::Numbers;
use crate::{Filter, Query};

fn paths(answer: &Value) -> Vec<&str> {
    answer["hits"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap()).collect()
}

/// The interface adds nothing to a score and takes nothing from it.
#[test]
fn an_answer_is_the_searchers_to_the_digit() {
    let site = Site::new();
    let searcher = site.world.searcher();
    for (q, corrected) in [
        ("red", true),
        ("red", false),
        ("2:green - blue + a/red.jpg", true),
        ("a sentence of no colour", false),
    ] {
        same(&site, &searcher, q, corrected);
    }
}

/// In an index with hubs, the corrected answer is another one than the uncorrected.
#[test]
fn a_correction_is_asked_for() {
    let world = World::new();
    for number in 0..80 {
        world.write(&format!("n/{number}.png"), &Numbers::png(number));
    }
    world.update(&Numbers).unwrap();
    let site = Site::serve(world, Box::new(Numbers), Limits::default(), None);
    let searcher = Searcher::new(site.world.index(), Box::new(Numbers)).unwrap();
    assert_ne!(searcher.index().correction(), "none");
    let [corrected, plain] =
        [true, false].map(|corrected| same(&site, &searcher, "a sentence", corrected));
    assert_ne!(corrected, plain);
}

/// Compares an answer of the interface with the searcher's, and returns number, score and cosine of its hits.
fn same(site: &Site, searcher: &Searcher, q: &str, corrected: bool) -> Vec<(u64, f32, f32)> {
    let query = Query::parse(q, searcher.index()).unwrap();
    let options = crate::Options { top: 6, corrected, threshold: None, filter: Filter::default() };
    let want = searcher.search(&query, &options).unwrap();
    let q = q.replace(' ', "%20").replace('+', "%2B");
    let got = site.json(&format!("/api/v1/search?q={q}&top=6&corrected={corrected}"));
    let found = (&got["found"], &got["candidates"]);
    assert_eq!(found, (&json!(want.found), &json!(want.candidates)));
    let hits: Vec<_> =
        want.hits.iter().map(|hit| (hit.picture as u64, hit.score, hit.cosine)).collect();
    let number = |hit: &Value, key: &str| hit[key].to_string().parse::<f32>().unwrap();
    let hit = |hit: &Value| {
        (hit["picture"].as_u64().unwrap(), number(hit, "score"), number(hit, "cosine"))
    };
    assert_eq!(got["level"].to_string(), want.level.to_string());
    let got: Vec<_> = got["hits"].as_array().unwrap().iter().map(hit).collect();
    assert_eq!(got, hits);
    got
}

#[test]
fn filters_and_the_number_of_hits() {
    let site = Site::new();
    let all = site.json("/api/v1/search?q=red");
    assert_eq!((paths(&all)[0], paths(&all).len()), ("a/red.jpg", 6));
    let some = site.json("/api/v1/search?q=red&folder=b&top=2");
    assert!(paths(&some).iter().all(|path| path.starts_with("b/")) && paths(&some).len() == 2);
    assert_eq!(some["candidates"], 3);
    assert_eq!(
        paths(&site.json("/api/v1/search?q=red&after=2024")).len(),
        0,
        "no picture has a date"
    );
    let best = all["hits"][0]["score"].as_f64().unwrap();
    assert_eq!(
        paths(&site.json(&format!("/api/v1/search?q=red&threshold={}", best - 1e-4))),
        ["a/red.jpg"]
    );
    let red = site.number("a/red.jpg");
    let like = site.json(&format!("/api/v1/similar?picture={red}&top=5"));
    assert!(!paths(&like).contains(&"a/red.jpg") && paths(&like).len() == 5);
}

#[test]
fn pictures_hubs_and_why() {
    let site = Site::new();
    let about = site.json("/api/v1");
    assert_eq!(
        (&about["version"], &about["pictures"], &about["queries"]),
        (&json!(1), &json!(6), &json!(300))
    );
    let levels = [false, true].map(|corrected| site.world.index().level(corrected));
    assert_eq!(about["levels"].to_string(), format!("[{},{}]", levels[0], levels[1]));
    let (index, picture) = (site.world.index(), site.json("/api/v1/pictures/2"));
    assert_eq!(picture["path"], index.pictures()[2].path);
    assert_eq!(picture["answers"], json!([index.answers()[0][2], index.answers()[1][2]]));
    assert_eq!(site.json("/api/v1/pictures?top=4")["pictures"].as_array().unwrap().len(), 4);
    let hubs = site.json("/api/v1/hubs");
    assert_eq!(hubs["all"], about["hubs"]);
    let why =
        site.json(&format!("/api/v1/why?q=a%20red%20square&picture={}", site.number("a/red.jpg")));
    assert_eq!(why["grid"], json!([2, 2]));
    let words: Vec<_> =
        why["words"].as_array().unwrap().iter().map(|word| word["word"].clone()).collect();
    assert_eq!(words, ["a", "red", "square"]);
    assert!(
        why["words"][1]["cosines"]
            .as_array()
            .unwrap()
            .iter()
            .all(|cosine| cosine.as_f64().unwrap() > 0.9)
    );
}

#[test]
fn mistakes_are_400_with_one_line() {
    let site = Site::new();
    for (path, line) in [
        ("search", "q: expected words or a picture, got nothing"),
        ("search?q=red&top=0", "top: expected a number from 1 to 1000, got 0"),
        ("search?q=red&top=1001", "top: expected a number from 1 to 1000, got 1001"),
        ("search?q=red&threshold=NaN", "threshold: expected a number, got NaN"),
        ("search?q=red&corrected=yes", "corrected: expected true or false, got yes"),
        (
            "search?q=red&after=May",
            "after: expected a date as 2024, 2024-05 or 2024-05-01T12:30, got May",
        ),
        ("similar", "picture: expected the number of a picture, got nothing"),
        ("similar?picture=abc", "picture: expected the number of a picture, got abc"),
        ("why?q=red&picture=x", "picture: expected the number of a picture, got x"),
        ("search?q=dog&q=cat", "Failed to deserialize query string: duplicate field `q`"),
    ] {
        let reply = site.get(&format!("/api/v1/{path}"));
        assert_eq!(
            (reply.status, reply.text()),
            (400, json!({ "error": line }).to_string()),
            "{path}"
        );
    }
    assert_eq!(site.get("/api/v1/similar?picture=6").status, 404);
    assert_eq!(site.get("/api/v1/pictures/6").status, 404);
    assert_eq!(site.get("/api/v1/similar?picture=99999999999999999999999").status, 404);
}

/// Whoever refuses, and however: a program reads JSON, and a person a page.
#[test]
fn every_refusal_is_json_for_programs() {
    let site = Site::new();
    let get = |path: &str, header: &[&str]| site.request("GET", path, header, b"");
    for (reply, status) in [
        (get("/api/v1/nothing", &[]), 404),
        (get("/api/v1/pictures/6", &[]), 404),
        (get("/api/v1/search?q=a&q=b", &[]), 400),
        (get("/api/v1/pictures/%ff", &[]), 400),
        (get("/api/v1", &["Host: evil.example"]), 403),
        (get("/knn-service", &[]), 405),
    ] {
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (status, Some("application/json")),
            "{}",
            reply.head
        );
        let json: Value = serde_json::from_slice(&reply.body).unwrap();
        assert!(json["error"].as_str().is_some_and(|line| !line.is_empty()), "{json}");
        assert!(reply.header("content-security-policy").is_some(), "{}", reply.head);
    }
    let page = get("/?q=a&q=b", &[]);
    let html = Some("text/html; charset=utf-8");
    assert_eq!((page.status, page.header("content-type")), (400, html));
}
