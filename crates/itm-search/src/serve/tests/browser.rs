//! Headless Chromium: what a person does, by keys alone. Without Chromium these tests print one line.

mod chromium;

use std::time::Duration;

use super::*;
use chromium::Chromium;

const WAIT: Duration = Duration::from_secs(30);

/// A browser on the first screen; `None` if there is no Chromium.
fn open(site: &Site, width: u32) -> Option<Chromium> {
    let mut chromium = Chromium::start(width, 900)?;
    chromium.visit(&format!("http://{}/", site.address));
    Some(chromium)
}

/// A browser says where a form comes from, or "null" if the page forbids it.
#[test]
fn a_sent_picture_is_answered() {
    let site = Site::new();
    let Some(mut page) = open(&site, 1200) else { return };
    page.load(|page| {
        page.run(
            "fetch('/thumbnails/0').then(r => r.blob()).then(b => {
                const data = new DataTransfer();
                data.items.add(new File([b], 'x.jpg'));
                sent.elements.picture.files = data.files;
                sent.requestSubmit();
            })",
        )
    });
    assert_eq!(page.number("document.querySelectorAll('a.tile').length"), 6.0);
}

#[test]
fn a_person_with_a_keyboard_finds_a_picture() {
    let site = Site::new();
    let Some(mut page) = open(&site, 1200) else { return };
    assert_eq!(page.number("document.querySelectorAll('a.tile').length"), 6.0);
    page.until(
        "[...document.querySelectorAll('a.tile img')].every(i => i.complete && i.naturalWidth > 0)",
        WAIT,
    );
    page.key("/");
    page.text("a red square");
    page.key("Escape");
    assert!(page.is("document.activeElement !== box && box.value === 'a red square'"));
    page.run("box.focus()");
    page.load(|page| page.key("Enter"));
    assert_eq!(page.string("location.search"), "?q=a+red+square");
    assert!(page.string("document.querySelector('a.tile').title").ends_with("a/red.jpg"));
    page.key("ArrowDown");
    assert!(page.string("document.activeElement.title").ends_with("a/red.jpg"));
    page.key("ArrowRight");
    assert!(page.is("document.activeElement === document.querySelectorAll('a.tile')[1]"));
    page.key("ArrowLeft");
    page.key("ArrowUp");
    assert_eq!(page.string("document.activeElement.id"), "q");
    page.key("ArrowDown");
    page.load(|page| page.key("Enter"));
    assert_eq!(page.string("document.querySelector('h1').textContent"), "red.jpg");
    page.run("document.querySelectorAll('.words a')[1].focus()");
    page.until("document.getElementById('heat').naturalWidth === 2", WAIT);
    page.run("document.activeElement.blur()");
    assert!(page.is("document.getElementById('heat').hidden"));
    page.run("document.querySelectorAll('.words a')[1].click()");
    assert!(page.is("!document.getElementById('heat').hidden"));
    page.load(|page| page.key("Escape"));
    assert_eq!(page.string("location.search"), "?q=a%20red%20square");
    page.run("document.activeElement.blur()");
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
fn the_switch_the_filter_and_the_hubs() {
    let site = Site::new();
    let Some(mut page) = open(&site, 1200) else { return };
    page.visit(&format!("http://{}/?q=red", site.address));
    page.load(|page| page.run("document.querySelectorAll('.switch a')[2].click()"));
    assert_eq!(page.number("document.querySelectorAll('section .grid').length"), 2.0);
    let beside = "[...document.querySelectorAll('section')].map(s => s.getBoundingClientRect().top).every((t, _, all) => t === all[0])";
    assert!(page.is(beside));
    page.run("document.querySelector('.filters summary').click(); document.querySelector('[name=folder]').value = 'b'");
    page.load(|page| page.run("document.querySelector('.panel button').click()"));
    assert_eq!(
        page.number(
            "document.querySelectorAll('section .grid')[0].querySelectorAll('a.tile').length"
        ),
        3.0
    );
    assert!(page.is("document.querySelector('.filters').open && new URL(location).searchParams.get('scores') === 'both'"));
    page.visit(&format!("http://{}/", site.address));
    assert!(page.is(
        "getComputedStyle(document.querySelector('footer a')).textDecorationLine === 'underline'"
    ));
    page.load(|page| page.run("document.querySelector('footer a').click()"));
    assert_eq!(page.string("document.querySelector('h1').textContent"), "Hubs");
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
fn a_phone_scrolls_down_and_never_aside() {
    let site = Site::new();
    let Some(mut page) = open(&site, 400) else { return };
    let long = "a%20photograph%20of%20".repeat(20) + &"w".repeat(120);
    for path in [
        "/",
        "/?q=red&scores=both",
        "/?folder=a",
        &format!("/?q={long}"),
        "/hubs",
        "/picture/0?q=red&word=0",
        &format!("/picture/0?q={long}"),
        "/none",
    ] {
        page.visit(&format!("http://{}{path}", site.address));
        let [inner, scroll] = ["innerWidth", "scrollWidth"].map(|name| {
            let of = if name == "innerWidth" { "window" } else { "document.documentElement" };
            page.number(&format!("{of}.{name}"))
        });
        assert_eq!((inner, scroll), (400.0, 400.0), "{path}");
    }
    let complaints = page.complaints();
    assert!(complaints.iter().all(|line| line.contains("404")), "{complaints:?}"); // the page that is none
}

/// The policy of the page stops what a picture's name or a query could smuggle in.
#[test]
fn the_policy_is_kept_by_the_browser() {
    let site = Site::new();
    let Some(mut page) = open(&site, 1200) else { return };
    page.run("const s = document.createElement('script'); s.textContent = 'window.broken = 1'; document.body.append(s)");
    page.run("const i = document.createElement('img'); i.src = 'http://127.0.0.1:1/x.png'; document.body.append(i)");
    assert!(page.is("window.broken === undefined"));
    page.until("true", WAIT);
    assert!(page.complaints().iter().any(|line| line.contains("Content Security Policy")));
}
