//! Who may ask, and the headers of every answer.
//!
//! A page of a stranger in the same browser can send requests here. It cannot read answers (there are no CORS headers), and it is stopped
//! before it costs anything: a name that was bound to this address anew is no allowed `Host`, and a request from another page brings
//! that page's `Origin`.

use std::net::IpAddr;

use axum::extract::{Request, State as Extract};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use itm_core::files::sha256_hex;

use super::refusal::Refusal;
use super::state::{SharedState, State};

const COOKIE: &str = "itm-token";

const POLICY: &str = "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Refuses strangers, and adds the headers that tell a browser how little this page may do.
pub(crate) async fn guard(Extract(state): SharedState, request: Request, next: Next) -> Response {
    let mut answer = match refuse(&state, &request) {
        Some(refused) => refused,
        None => next.run(request).await,
    };
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With "no-referrer" a browser says "Origin: null" in a form's POST, also to its own server.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

fn refuse(state: &State, request: &Request) -> Option<Response> {
    let headers = request.headers();
    let refused = |status, line: &str| Some(Refusal::new(status, line).into_response());
    let forbidden = |line| refused(StatusCode::FORBIDDEN, line);
    let host = match host(headers) {
        Some(host) if allowed(host, state.loopback) => host,
        _ => return forbidden("This server answers to its own address alone."),
    };
    if request.uri().authority().is_some_and(|named| named.as_str() != host) {
        return forbidden("This server is no proxy.");
    }
    if !own_origin(headers, host) || is_embedded(headers) {
        return forbidden("Another page has sent this request.");
    }
    let token = state.token.as_ref()?;
    let given = token_of(request.uri());
    match given.as_deref().or_else(|| bearer(headers)).or_else(|| cookie(headers)) {
        Some(value) if same(value, token) => {}
        _ => return refused(StatusCode::UNAUTHORIZED, "This search needs its token."),
    }
    let page = request.method() == Method::GET && request.uri().path() == "/";
    (page && given.is_some()).then(|| remember(token, request.uri()))
}

/// Whether a browser says that another site's page loads this as a part of itself: a request for a picture has no `Origin`.
fn is_embedded(headers: &HeaderMap) -> bool {
    let says = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let foreign = matches!(says("sec-fetch-site"), Some("cross-site" | "same-site"));
    foreign && says("sec-fetch-mode") != Some("navigate")
}

/// The one `Host` of a request.
pub(super) fn host(headers: &HeaderMap) -> Option<&str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next()?.to_str().ok()?;
    hosts.next().is_none().then_some(host)
}

/// Whether a host is an address, not a name that a stranger can bind to this machine. The port may differ: an SSH tunnel has its own.
fn allowed(host: &str, loopback: bool) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let ip: Option<IpAddr> = match inner {
        Some(inner) => inner.parse().ok().filter(IpAddr::is_ipv6),
        None => name.parse().ok().filter(IpAddr::is_ipv4),
    };
    ip.is_some_and(|ip| !loopback || ip.is_loopback())
}

/// Whether a request comes from this server's own page, or from no page.
fn own_origin(headers: &HeaderMap, host: &str) -> bool {
    headers.get_all(header::ORIGIN).iter().all(|origin| {
        let origin = origin.to_str().unwrap_or_default();
        let at = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        at.is_some_and(|at| at.eq_ignore_ascii_case(host))
    })
}

fn token_of(uri: &Uri) -> Option<String> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == "token").map(|(_, value)| value.to_owned()).next()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

/// Compares hashes: how long it takes says nothing of the token.
fn same(given: &str, token: &str) -> bool {
    sha256_hex(given.as_bytes()) == sha256_hex(token.as_bytes())
}

/// The token moves from the address, which a browser keeps and shows, into a cookie of this page. The rest of the address stays.
fn remember(token: &str, uri: &Uri) -> Response {
    let pairs = uri.query().unwrap_or_default().split('&');
    let rest: Vec<&str> = pairs.filter(|pair| !pair.starts_with("token=")).collect();
    let to = if rest.is_empty() { "/".to_owned() } else { format!("/?{}", rest.join("&")) };
    let cookie = format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict");
    ([(header::SET_COOKIE, cookie)], Redirect::to(&to)).into_response()
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn a_host_is_an_address() {
        for host in ["127.0.0.1", "127.0.0.1:7878", "localhost", "LOCALHOST:1", "[::1]", "[::1]:80"]
        {
            assert!(allowed(host, true) && allowed(host, false), "{host}");
        }
        for host in ["192.168.1.7:7878", "[fe80::1]:80"] {
            assert!(!allowed(host, true) && allowed(host, false), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "evil.example:7878",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "2130706433",
            "0x7f.1",
            "::1",
            "[127.0.0.1]",
            "localhost:",
            "localhost:80:80",
            "127.0.0.1 ",
        ] {
            assert!(!allowed(host, true) && !allowed(host, false), "{host}");
        }
    }
}
