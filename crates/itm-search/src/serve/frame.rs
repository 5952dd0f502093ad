//! The frame of every page, and pages of one line.

use axum::response::Html;
use maud::{DOCTYPE, Markup, html};

/// A page that says one line.
pub(crate) fn refused(line: &str) -> Html<String> {
    let body = html! { main.alone { h1 { (line) } p { a #back href="/" { "All pictures" } } } };
    frame("itm", body)
}

/// A page that asks for the token.
pub(crate) fn token() -> Html<String> {
    let body = html! {
        main.alone {
            h1 { "This search needs its token." }
            p { "The terminal that started it shows the token." }
            form action="/" { input type="password" name="token" aria-label="Token" autocomplete="off"; button { "Open" } }
        }
    };
    frame("itm", body)
}

/// A whole page of HTML.
pub(crate) fn frame(title: &str, body: Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href="/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/page.css";
                script src="/page.js" defer {}
            }
            body { (body) }
        }
    };
    Html(page.into_string())
}
