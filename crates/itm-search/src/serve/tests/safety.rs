//! Who may ask, and what a browser is allowed to do with the answer.

use super::*;

const TOKEN: &str = "correct-horse-battery";

#[test]
fn strangers_names_and_pages_are_refused() {
    let site = Site::new();
    let status = |headers: &[&str]| site.request("GET", "/api/v1", headers, b"").status;
    let own = format!("Origin: http://{}", site.address);
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[&own]), 200);
    assert_eq!(status(&["Host: localhost:9000"]), 200, "a tunnel has a port of its own");
    for host in [
        "Host: evil.example",
        "Host: evil.example:80",
        "Host: 192.168.1.7",
        "Host: 127.0.0.1.evil.example",
        "Host: ",
    ] {
        assert_eq!(status(&[host]), 403, "{host}");
    }
    for origin in [
        "http://evil.example",
        "null",
        "file://",
        "http://localhost:1",
        "http://127.0.0.1",
        "https://127.0.0.1:1",
    ] {
        assert_eq!(status(&[&format!("Origin: {origin}")]), 403, "{origin}");
        let sent = site.request(
            "POST",
            "/knn-service",
            &[&format!("Origin: {origin}")],
            br#"{"text": "red"}"#,
        );
        assert_eq!(sent.status, 403, "{origin}");
    }
    assert_eq!(status(&[&own, "Origin: http://evil.example"]), 403, "two origins");
    let foreign = "Sec-Fetch-Site: cross-site"; // a picture of another page has no origin
    assert_eq!(status(&[foreign, "Sec-Fetch-Mode: no-cors"]), 403);
    assert_eq!(status(&[foreign, "Sec-Fetch-Mode: navigate"]), 200, "a link on another page");
    assert_eq!(status(&["Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: no-cors"]), 200);
    assert_eq!(status(&["Host: 127.0.0.1", "Host: evil.example"]), 403, "two hosts");
    assert_eq!(site.raw(b"GET /api/v1 HTTP/1.0\r\n\r\n").status, 403, "no host");
    let proxied = site.raw(
        b"GET http://evil.example/api/v1 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(proxied.status, 403, "the address names another host");
}

#[test]
fn every_answer_tells_a_browser_to_be_careful() {
    let site = Site::new();
    let like = site.request("POST", "/knn-service", &[], br#"{"text": "red"}"#);
    let refused = site.request("GET", "/", &["Host: evil.example"], b"");
    let got = [
        "/",
        "/?q=red",
        "/hubs",
        "/picture/0",
        "/thumbnails/0",
        "/previews/0",
        "/api/v1",
        "/page.css",
        "/page.js",
        "/none",
    ];
    for reply in got.map(|path| site.get(path)).into_iter().chain([like, refused]) {
        let at = &reply.head;
        let policy = reply.header("content-security-policy").expect(at);
        assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("inline"), "{at}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{at}");
        assert_eq!(reply.header("referrer-policy"), Some("same-origin"), "{at}");
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"), "{at}");
        assert!(
            reply.header("content-type").is_some() && reply.header("cache-control").is_some(),
            "{at}"
        );
        assert!(!at.to_lowercase().contains("access-control"), "{at}");
    }
    for page in ["/", "/?q=red&scores=both", "/hubs", "/picture/0?q=red&word=0"] {
        let text = site.get(page).text();
        assert_eq!(
            text.matches("<script").count(),
            text.matches(r#"<script src="/page.js" defer></script>"#).count(),
            "{page}"
        );
        let name =
            |rest: &str| rest.trim_start_matches(|c: char| c.is_ascii_lowercase()).starts_with('=');
        let handler = text.split(" on").skip(1).any(name);
        assert!(
            !text.contains("<style") && !text.contains(" style=") && !handler,
            "{page}: {text}"
        );
    }
    assert_eq!(
        site.request("OPTIONS", "/api/v1", &["Access-Control-Request-Method: POST"], b"").status,
        405
    );
}

#[test]
fn only_the_loopback_needs_no_token() {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    let error = |listen: &str, token: Option<&str>| {
        let options = Options { listen: listen.parse().unwrap(), token: token.map(str::to_owned) };
        Server::bind(world.searcher(), &options).err().map(|error| error.to_string())
    };
    let want = "--listen: expected --token with an address that others reach, got 0.0.0.0:0";
    assert_eq!(error("0.0.0.0:0", None).as_deref(), Some(want));
    assert!(error("[::]:0", None).is_some());
    assert_eq!(error("0.0.0.0:0", Some(TOKEN)), None);
    for bad in
        ["short", "with spaces in it and long", "semi;colon;semi;colon", "päßwörter-are-none"]
    {
        assert!(
            error("127.0.0.1:0", Some(bad))
                .unwrap()
                .starts_with("--token: expected at least 16 of a-z"),
            "{bad}"
        );
    }
}

#[test]
fn a_token_opens() {
    let site =
        Site::with(World::new(), Box::new(Colours::default()), Limits::default(), Some(TOKEN));
    let status = |path: &str, headers: &[&str]| site.request("GET", path, headers, b"").status;
    for path in ["/", "/api/v1", "/thumbnails/0", "/previews/0", "/page.css", "/none"] {
        assert_eq!(status(path, &[]), 401, "{path}");
        assert_eq!(status(path, &["Authorization: Bearer wrong-horse-battery"]), 401, "{path}");
        assert_eq!(status(path, &["Cookie: itm-token=wrong"]), 401, "{path}");
    }
    assert_eq!(status("/api/v1", &[&format!("Authorization: Bearer {TOKEN}")]), 200);
    assert_eq!(status("/api/v1", &[&format!("Cookie: other=1; itm-token={TOKEN}")]), 200);
    assert_eq!(status(&format!("/api/v1?token={TOKEN}"), &[]), 200);
    assert_eq!(status(&format!("/api/v1?token={TOKEN}x"), &[]), 401);
    let knn =
        site.request("POST", &format!("/knn-service?token={TOKEN}"), &[], br#"{"text": "red"}"#);
    assert_eq!(knn.status, 200);
    let found: serde_json::Value = serde_json::from_slice(&knn.body).unwrap();
    let url = found[0]["url"].as_str().unwrap();
    assert_eq!(status(url.strip_prefix(&format!("http://{}", site.address)).unwrap(), &[]), 200);
    for (path, location) in [
        (format!("/?token={TOKEN}&q=a%20dog&folder=b"), "/?q=a%20dog&folder=b"),
        (format!("/?token={TOKEN}"), "/"),
    ] {
        let opened = site.get(&path);
        assert_eq!((opened.status, opened.header("location")), (303, Some(location)));
    }
    let opened = site.get(&format!("/?token={TOKEN}"));
    let cookie = format!("itm-token={TOKEN}; Path=/; HttpOnly; SameSite=Strict");
    assert_eq!(opened.header("set-cookie"), Some(&*cookie));
    assert_eq!(
        site.request(
            "GET",
            "/",
            &["Host: evil.example", &format!("Cookie: itm-token={TOKEN}")],
            b""
        )
        .status,
        403
    );
}
