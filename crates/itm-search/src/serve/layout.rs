//! What all pages share.

use axum::response::Html;
use maud::{Markup, html};

use super::frame::frame;
use crate::serve::ask::Ask;
use crate::serve::state::State;

/// A page with the search box on top.
pub(crate) fn page(
    state: &State,
    title: &str,
    ask: &Ask,
    below: Markup,
    body: Markup,
) -> Html<String> {
    let count = state.searcher.index().pictures().len();
    let page = html! {
        header {
            div.bar {
                a.home href="/" title="All pictures" { img src="/icon.svg" alt="All pictures" width="28" height="28"; }
                form #search action="/" role="search" {
                    input #q type="search" name="q" value=(ask.q) maxlength="1000" autocomplete="off" autocapitalize="off" spellcheck="false"
                        aria-label="Search" placeholder=(format!("Search {} pictures", number(count)));
                    @for (name, value) in [("folder", &ask.folder), ("after", &ask.after), ("before", &ask.before), ("scores", &ask.scores)] {
                        @if !value.is_empty() { input type="hidden" name=(name) value=(value); }
                    }
                    button { "Search" }
                }
            }
            (below)
        }
        main { (body) }
        footer {
            p { a href="/hubs" { "Hubs" } " · " (state.searcher.encoder().model().name) " · " (number(count)) " pictures" }
            p.keys {
                kbd { "/" } " search " kbd { "←" } kbd { "↑" } kbd { "↓" } kbd { "→" } " move " kbd { "enter" } " open " kbd { "esc" } " back"
            }
        }
    };
    frame(title, page)
}

/// An address with parameters; empty ones are left out.
pub(crate) fn address(path: &str, parameters: &[(&str, &str)]) -> String {
    let pairs = parameters.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={}", escape(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

fn escape(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~/".contains(&b);
    text.bytes()
        .map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

/// A number with commas between thousands.
pub(crate) fn number(n: usize) -> String {
    let digits = n.to_string();
    let comma = |(k, c): (usize, char)| {
        let lead = (k > 0 && (digits.len() - k).is_multiple_of(3)).then_some(',');
        lead.into_iter().chain([c])
    };
    digits.chars().enumerate().flat_map(comma).collect()
}

/// `/previews/7?v=…`: the address of an image of a picture.
pub(crate) fn image(
    state: &State,
    place: &str,
    picture: usize,
    parameters: &[(&str, &str)],
) -> String {
    let version = state.version(picture);
    let parameters = [parameters, &[("v", &*version)]].concat();
    address(&format!("{place}/{picture}"), &parameters)
}

/// What a picture is called: its file name.
pub(crate) fn name(state: &State, picture: usize) -> &str {
    let path = &state.searcher.index().pictures()[picture].path;
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses() {
        assert_eq!([0, 999, 1000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        let got = address("/", &[("q", "a & b+é"), ("folder", "")]);
        assert_eq!(got, "/?q=a%20%26%20b%2B%C3%A9");
    }
}
