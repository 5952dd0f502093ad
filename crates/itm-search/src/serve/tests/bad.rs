//! Requests of nobody's good will.

use std::fs;
use std::time::Instant;

use super::*;

#[test]
fn no_spelling_leaves_the_folder() {
    let site = Site::new();
    let secret = b"the secret beside the photographs";
    fs::write(site.world.images.parent().unwrap().join("secret.jpg"), secret).unwrap();
    let spellings = [
        "../secret.jpg",
        "..%2fsecret.jpg",
        "..%2Fsecret.jpg",
        "%2e%2e/secret.jpg",
        "%2e%2e%2fsecret.jpg",
        "%252e%252e%252fsecret.jpg",
        "..\\secret.jpg",
        "..%5csecret.jpg",
        "....//secret.jpg",
        "..;/secret.jpg",
        "0/../../secret.jpg",
        "0/..%2f..%2fsecret.jpg",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "//etc/passwd",
        "file:///etc/passwd",
        "%c0%ae%c0%ae/secret.jpg",
        "..%00/secret.jpg",
        "secret.jpg",
        "a/red.jpg",
        "-1",
        "+1",
        "0x0",
        "1e0",
        "99999999999999999999",
        "0%00",
        "%",
        "%zz",
        "٣",
        "",
    ];
    assert!(spellings.len() >= 20);
    for spelling in spellings {
        for place in ["thumbnails", "previews", "picture", "heat", "api/v1/pictures"] {
            let reply = site.request("GET", &format!("/{place}/{spelling}"), &[], b"");
            assert!([400, 404].contains(&reply.status), "/{place}/{spelling}: {}", reply.head);
            assert!(
                !reply.text().contains("secret beside") && !reply.text().contains("root:"),
                "{spelling}"
            );
        }
    }
    for path in [
        "/../secret.jpg",
        "/..%2f..%2fsecret.jpg",
        "/photographs/a/red.jpg",
        "/page.css/../secret.jpg",
    ] {
        assert!([400, 404].contains(&site.get(path).status), "{path}");
    }
}

#[test]
fn a_link_out_of_the_folder_is_not_followed() {
    let site = Site::new();
    let (red, out) =
        (site.number("a/red.jpg"), site.world.images.parent().unwrap().join("elsewhere.jpg"));
    assert_eq!(site.get(&format!("/previews/{red}")).status, 200);
    let path = site.world.images.join("a/red.jpg");
    fs::rename(&path, &out).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&out, &path).unwrap();
    let reply = site.get(&format!("/previews/{red}"));
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (410, Some("text/html; charset=utf-8"))
    );
}

#[test]
fn a_folder_that_vanishes_leaves_thumbnails() {
    let site = Site::new();
    fs::remove_dir_all(&site.world.images).unwrap();
    assert_eq!(site.get("/thumbnails/0").status, 200);
    assert_eq!(site.get("/previews/0").status, 410);
    assert_eq!(site.get("/heat/0?q=red&word=0").status, 410);
    assert_eq!(site.get("/api/v1/why?q=red&picture=0").status, 410);
    assert_eq!(site.get("/picture/0?q=red").status, 200);
    assert_eq!(site.get("/?q=red").status, 200);
    fs::remove_dir_all(&site.world.out).unwrap();
    assert_eq!(site.get("/thumbnails/0").status, 410);
    assert_eq!(site.get("/?q=red").status, 200);
}

#[test]
fn what_is_sent_is_encoded_anew() {
    let site = Site::new();
    let red = site.number("a/red.jpg");
    let path = site.world.images.join("a/red.jpg");
    let mut file = fs::read(&path).unwrap();
    let end = file.len() - 2;
    file.splice(end..end, *b"");
    file.splice(2..2, *b"\xff\xfe\x00\x12<script>alert(1)"); // a comment of JPEG
    fs::write(&path, &file).unwrap();
    let reply = site.get(&format!("/previews/{red}"));
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("image/jpeg")));
    assert!(reply.body.starts_with(&[0xff, 0xd8]) && !reply.text().contains("script"));
}

/// As a service manager ends it. A server that answers listens to signals already.
#[cfg(unix)]
#[test]
fn sigterm_ends_the_server() {
    let site = Site::new();
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = Server::bind(site.world.searcher(), &Options { listen, token: None }).unwrap();
    let mut stream = TcpStream::connect(server.address).unwrap();
    let thread = thread::spawn(|| server.run());
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    assert!(stream.read_to_end(&mut vec![]).unwrap() > 0);
    let kill = format!("kill -TERM {}", std::process::id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    thread.join().unwrap().unwrap();
}

#[test]
fn methods_and_addresses_that_are_none() {
    let site = Site::new();
    for (method, path) in [
        ("POST", "/"),
        ("PUT", "/api/v1/search"),
        ("DELETE", "/api/v1/pictures/0"),
        ("PATCH", "/hubs"),
        ("TRACE", "/"),
        ("GET", "/knn-service"),
        ("GET", "/like"),
        ("POST", "/thumbnails/0"),
        ("BREW", "/"),
    ] {
        assert_eq!(site.request(method, path, &[], b"").status, 405, "{method} {path}");
    }
    assert_eq!(site.get("/admin").status, 404);
    let head = site.request("HEAD", "/", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn huge_and_many_headers_are_431() {
    let site = Site::new();
    let huge = format!("X-Huge: {}", "a".repeat(64 << 10));
    assert_eq!(site.request("GET", "/", &[&huge], b"").status, 431);
    let many: Vec<String> = (0..200).map(|k| format!("X-{k}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(site.request("GET", "/", &many, b"").status, 431);
    let long = site.get(&format!("/?q={}", "a".repeat(100 << 10))).status;
    assert!([414, 431].contains(&long), "{long}");
    assert_eq!(site.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").status, 400, "TLS");
    assert_eq!(
        site.raw(
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
        )
        .status,
        400
    );
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn queries_have_at_most_1000_characters() {
    let site = Site::new();
    assert_eq!(site.get(&format!("/api/v1/search?q={}", "a".repeat(1000))).status, 200);
    let reply = site.get(&format!("/api/v1/search?q={}", "a".repeat(1001)));
    assert_eq!(
        (reply.status, &*reply.text()),
        (400, r#"{"error":"query: expected at most 1000 characters, got 1001"}"#)
    );
    let long = format!(r#"{{"text": "{}"}}"#, "a".repeat(1001));
    assert_eq!(site.request("POST", "/knn-service", &[], long.as_bytes()).status, 400);
    assert_eq!(site.get(&format!("/?q={}", "a".repeat(1001))).status, 400);
}

/// A slow client loses its connection after the time for a head, or gets 408 after the time for a request; others are served meanwhile.
#[test]
fn slow_clients_are_cut_off() {
    let limits = Limits {
        head: Duration::from_secs(1),
        request: Duration::from_secs(3),
        ..Limits::default()
    };
    let site = Site::with(World::new(), Box::new(Colours::default()), limits, None);
    let mut slow: Vec<TcpStream> = (0..40).map(|_| site.connect()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET / HTTP/1.1\r\nHost: 127").unwrap());
    assert_eq!(site.get("/").status, 200);
    for mut stream in slow {
        let mut reply = vec![];
        _ = stream.read_to_end(&mut reply); // ends because the server closes
        assert!(
            reply.is_empty() || reply.starts_with(b"HTTP/1.1 408"),
            "{}",
            String::from_utf8_lossy(&reply)
        );
    }
    let body = site.raw(format!("POST /knn-service HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{{", site.address).as_bytes());
    assert_eq!(body.status, 408);
}

/// A client that does not read holds its connection only for a while.
#[test]
fn a_connection_ends() {
    let limits = Limits { connections: 1, connection: Duration::from_secs(2), ..Limits::default() };
    let site = Site::with(World::new(), Box::new(Colours::default()), limits, None);
    let _silent = site.connect();
    let begin = Instant::now();
    assert_eq!(site.get("/").status, 200, "after the first connection was ended");
    assert!(begin.elapsed() < Duration::from_secs(60));
}

#[test]
fn beyond_the_queue_is_503_and_a_panic_is_500() {
    let gate = Arc::new(Gate::default());
    let limits = Limits { searches: 3, ..Limits::default() };
    let site = Site::with(World::new(), Box::new(Slow(gate.clone())), limits, None);
    let request = format!(
        "GET /api/v1/search?q=red HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        site.address
    );
    let mut open: Vec<TcpStream> = (0..5).map(|_| site.connect()).collect();
    for stream in &mut open {
        stream.write_all(request.as_bytes()).unwrap();
    }
    for reply in first_replies(&mut open, 2) {
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    }
    assert_eq!(site.get("/?q=red").status, 503);
    assert_eq!(site.get("/thumbnails/0").status, 200, "pictures have a queue of their own");
    gate.open();
    for mut stream in open {
        stream.set_read_timeout(None).unwrap();
        let mut reply = vec![];
        stream.read_to_end(&mut reply).unwrap();
        assert!(reply.starts_with(b"HTTP/1.1 200"));
    }
    assert_eq!(site.get("/api/v1/search?q=panic").status, 500);
    assert_eq!(site.get("/api/v1/search?q=red").status, 200);
}

/// Requests that run may end; new ones find nobody.
#[test]
fn a_stop_is_clean() {
    let gate = Arc::new(Gate::default());
    let mut site = Site::with(World::new(), Box::new(Slow(gate.clone())), Limits::default(), None);
    let mut running = site.connect();
    let request = format!("GET /api/v1/search?q=red HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
    running.write_all(request.as_bytes()).unwrap();
    while *gate.waiting.lock().unwrap() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    let stop = site.stop.replace(oneshot::channel().0).unwrap();
    stop.send(()).unwrap();
    thread::sleep(Duration::from_millis(100));
    gate.open();
    let mut reply = vec![];
    running.read_to_end(&mut reply).unwrap();
    assert!(reply.starts_with(b"HTTP/1.1 200"));
    site.thread.take().unwrap().join().unwrap().unwrap();
    assert!(TcpStream::connect(site.address).is_err());
    site.thread = Some(thread::spawn(|| Ok(())));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it() {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    let server = Server::bind(
        world.searcher(),
        &Options { listen: "127.0.0.1:0".parse().unwrap(), token: None },
    )
    .unwrap();
    let address = server.address;
    assert_eq!(server.address(), format!("http://{address}/"));
    let running = thread::spawn(|| server.run());
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(
            format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
        )
        .unwrap();
    stream.read_to_end(&mut vec![]).unwrap();
    let kill = format!("kill -INT {}", std::process::id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    running.join().unwrap().unwrap();
    assert!(TcpStream::connect(address).is_err());
}
