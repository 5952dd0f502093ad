//! Pages as they come, without JavaScript.

use super::*;

fn tiles(page: &str) -> usize {
    page.matches("class=\"tile\"").count()
}

#[test]
fn the_first_screen_has_a_box_and_pictures() {
    let site = Site::new();
    let reply = site.get("/");
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
    let page = reply.text();
    assert!(page.contains("name=\"q\"") && page.contains("The newest of 6 pictures"));
    assert_eq!(tiles(&page), 6);
    assert_eq!(tiles(&site.get("/?folder=a").text()), 3);
    assert!(site.get("/?top=2").text().contains("href=\"/?top=4\""), "show more");
    assert_eq!(tiles(&site.get("/?top=2").text()), 2);
}

#[test]
fn an_answer_has_scores_and_a_switch() {
    let site = Site::new();
    let page = site.get("/?q=red").text();
    assert_eq!((tiles(&page), page.matches("class=\"score\"").count()), (6, 6));
    assert!(page.contains("href=\"/?q=red&amp;scores=both\""));
    let both = site.get("/?q=red&scores=both").text();
    assert_eq!(tiles(&both), 12);
    assert!(both.contains("Uncorrected</h2>"));
    let one = site.get("/?q=red&scores=both&top=1").text();
    assert_eq!(tiles(&one), 2);
    assert_eq!(site.get("/?q=red&scores=none").status, 400);
}

/// A field for whole dates shows neither a year nor a time, and the next filter would lose it.
#[test]
fn the_form_keeps_the_dates_of_the_filter() {
    let site = Site::new();
    for (before, kind) in [
        ("", "date"),
        ("2020-05-01", "date"),
        ("2020", "text"),
        ("2020-05", "text"),
        ("2020-05-01T12:30", "text"),
    ] {
        let page = site.get(&format!("/?q=red&before={before}")).text();
        let want = format!("type=\"{kind}\" name=\"before\" value=\"{before}\"");
        assert!(page.contains(&want), "{before}: {page}");
    }
}

/// A search stays the same from the box to a photograph and back.
#[test]
fn links_and_the_box_keep_the_search() {
    let site = Site::new();
    let red = site.number("a/red.jpg");
    let page = site.get("/?q=red&folder=a&scores=both").text();
    for (name, value) in [("folder", "a"), ("scores", "both")] {
        let field = format!("type=\"hidden\" name=\"{name}\" value=\"{value}\"");
        assert!(page.split("</form>").next().unwrap().contains(&field), "{name}: {page}");
    }
    for (search, label) in [
        ("q=red&folder=a&scores=both", "Results for “red”"),
        ("like=3&folder=a", "Similar pictures"),
        ("folder=a", "Filtered pictures"),
        ("q=red&threshold=-1&top=2", "Results for “red”"),
    ] {
        let shown = search.replace('&', "&amp;");
        let page = site.get(&format!("/?{search}")).text();
        assert!(page.contains(&format!("href=\"/picture/{red}?{shown}\"")), "{search}: {page}");
        let page = site.get(&format!("/picture/{red}?{search}")).text();
        let back = format!("href=\"/?{shown}\">← {label}</a>");
        assert!(page.contains(&back), "{search}: {page}");
    }
}

/// A number is another picture in another index, so a browser keeps only what has the picture's version in its address.
#[test]
fn a_browser_keeps_only_images_of_this_index() {
    let cache = |site: &Site, path: &str| {
        let reply = site.get(path);
        assert_eq!(reply.status, 200, "{path}");
        reply.header("cache-control").unwrap().to_owned()
    };
    let images = |site: &Site| -> Vec<String> {
        let page = site.get("/picture/0?q=blue&word=0").text();
        let sources = page.split(" src=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let of = |path: &&str| ["/previews/0?", "/heat/0?"].iter().any(|at| path.starts_with(at));
        let small = site.json("/api/v1/pictures/0")["thumbnail"].as_str().unwrap().to_owned();
        sources.filter(of).map(|path| path.replace("&amp;", "&")).chain([small]).collect()
    };
    let site = Site::new();
    let first = images(&site);
    assert_eq!(first.len(), 3);
    for path in &first {
        assert_eq!(cache(&site, path), "private, max-age=3600", "{path}");
    }
    for path in ["/previews/0", "/thumbnails/0?v=0", "/heat/0?q=blue&word=0"] {
        assert_eq!(cache(&site, path), "no-store", "{path}");
    }
    let world = World::new();
    world.write("a/a.jpg", &crate::fakes::jpeg([1, 90, 90], [20, 20])); // picture 0
    let other = Site::with(world, Box::new(Colours::default()), Limits::default(), None);
    let second = images(&other);
    assert!(first.iter().all(|path| !second.contains(path)));
    assert!(first.iter().all(|path| cache(&other, path) == "no-store"));
}

#[test]
fn every_page_has_one_name() {
    let site = Site::new();
    for (path, name) in [
        ("/", "All pictures"),
        ("/?folder=none", "All pictures"),
        ("/?q=red", "red"),
        ("/?q=red&scores=both&before=1900", "red"),
        ("/?like=0", "Similar pictures"),
        ("/hubs", "Hubs"),
    ] {
        let page = site.get(path).text();
        assert_eq!(page.matches("<h1").count(), 1, "{path}");
        assert!(page.contains(&format!(">{name}</h1>")), "{path}: {page}");
    }
}

/// The sentence names the cause: the filter, or an index of one picture.
#[test]
fn an_answer_without_pictures_says_why() {
    let site = Site::new();
    for (path, why) in [
        ("/?folder=none", "No picture passes this filter."),
        ("/?q=red&after=2024", "No picture passes this filter."),
        ("/?like=0&folder=none", "No other picture passes this filter."),
        ("/?q=red&threshold=9", "No picture reaches this threshold."),
        ("/?q=red&threshold=9&folder=none", "No picture passes this filter."),
    ] {
        let page = site.get(path).text();
        assert!(page.contains("No picture here.") && page.contains(why), "{path}: {page}");
    }
    let world = World::new();
    std::fs::remove_dir_all(&world.images).unwrap();
    world.write("one.jpg", &crate::fakes::jpeg([200, 1, 1], [20, 20]));
    let site = Site::with(world, Box::new(Colours::default()), Limits::default(), None);
    let page = site.get("/?like=0").text();
    assert!(page.contains("The index has no other picture."), "{page}");
}

/// Colours are found; nothing of them says what a sentence without a colour means, so its best score may lie below the level.
#[test]
fn nothing_matches_is_said_with_the_nearest_below() {
    let site = Site::new();
    let verdict = |q: &str| {
        let found = site.json(&format!("/api/v1/search?q={q}"))["found"].as_bool().unwrap();
        let page = site.get(&format!("/?q={q}")).text();
        assert_eq!(page.contains("Nothing here matches."), !found, "{q}");
        assert_eq!((page.contains("class=\"grid grey\""), tiles(&page)), (!found, 6), "{q}");
        found
    };
    let sentences: Vec<bool> = (1..40).map(|n| verdict(&"x".repeat(n))).collect();
    assert!(verdict("red") && sentences.contains(&false));
}

#[test]
fn a_photograph_shows_where_each_word_is_found() {
    let site = Site::new();
    let red = site.number("a/red.jpg");
    let page = site.get(&format!("/picture/{red}?q=red%20square&scores=both&word=1")).text();
    assert!(page.contains(&format!("src=\"/previews/{red}?v=")));
    assert!(page.contains(&format!("src=\"/heat/{red}?q=red%20square&amp;word=1&amp;v=")));
    assert!(page.contains("href=\"/?q=red%20square&amp;scores=both\""), "the way back");
    let heat = site.get(&format!("/heat/{red}?q=red%20square&word=1"));
    assert_eq!((heat.status, heat.header("content-type")), (200, Some("image/png")));
    let image = image::load_from_memory(&heat.body).unwrap();
    assert_eq!((image.width(), image.height()), (2, 2));
    assert_eq!(site.get(&format!("/heat/{red}?q=red&word=1")).status, 404);
    assert_eq!(site.get("/picture/6").status, 404);
    assert!(!site.get(&format!("/picture/{red}")).text().contains("/heat/"));
}

#[test]
fn what_people_type_and_name_is_text() {
    let world = World::new();
    world.write("c/<b onload=x>.jpg", &crate::fakes::jpeg([1, 200, 200], [20, 20]));
    let site = Site::with(world, Box::new(Colours::default()), Limits::default(), None);
    let page = site.get("/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E").text();
    assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"));
    let named = site.number("c/<b onload=x>.jpg");
    for page in [site.get("/"), site.get(&format!("/picture/{named}"))] {
        assert!(!page.text().contains("<b onload") && page.text().contains("&lt;b onload"));
    }
}

#[test]
fn hubs_have_a_mark_and_a_page() {
    let site = Site::new();
    let (page, hubs) = (site.get("/hubs").text(), site.json("/api/v1/hubs"));
    let all = hubs["hubs"].as_array().unwrap().len();
    assert_eq!(page.matches("<meter").count(), 2 * all);
    assert_eq!(site.get("/").text().matches("class=\"hub\"").count(), all);
    let answers: Vec<u32> = site.world.index().answers()[0].clone();
    let most = answers.iter().max().unwrap();
    if all > 0 {
        assert!(page.contains(&format!("{most} uncorrected")));
    }
}
