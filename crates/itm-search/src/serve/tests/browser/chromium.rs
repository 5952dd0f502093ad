//! Chromium's DevTools over a WebSocket: pages, keys, expressions, and what the console says.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

/// Where Debian, Fedora and others put it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

pub(super) struct Chromium {
    child: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    session: String,
    calls: u64,
    events: Vec<Value>,
    _profile: TempDir,
}

impl Chromium {
    /// `None` if there is no Chromium; a line says so.
    pub(super) fn start(width: u32, height: u32) -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let data = format!("--user-data-dir={}", profile.path().display());
        let start = |name: &&str| {
            let mut command = Command::new(name);
            command.args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-port=0",
                "--hide-scrollbars",
            ]);
            command.args([
                "--disable-background-networking",
                "--no-first-run",
                &data,
                "about:blank",
            ]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()
        };
        let Some(mut child) = NAMES.iter().find_map(start) else {
            eprintln!("no Chromium: the page was not opened in a browser");
            return None;
        };
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut lines = lines.skip_while(|line| !line.starts_with("DevTools listening on "));
        let address = lines.next().expect("Chromium says its address");
        thread::spawn(move || lines.for_each(drop)); // its pipe must not fill
        let (mut socket, _) =
            tungstenite::connect(address.trim_start_matches("DevTools listening on ")).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_mut() {
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        }
        let mut it = Self {
            child,
            socket,
            session: String::new(),
            calls: 0,
            events: vec![],
            _profile: profile,
        };
        let target =
            it.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached =
            it.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        it.session = attached["sessionId"].as_str().unwrap().into();
        for domain in ["Page", "Runtime", "Log"] {
            it.call(&format!("{domain}.enable"), json!({}));
        }
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        it.call("Emulation.setDeviceMetricsOverride", screen);
        Some(it)
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method, "params": parameters });
        if !self.session.is_empty() {
            call["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(call.to_string())).unwrap();
        loop {
            let said = self.hear();
            if said["id"] == self.calls {
                assert!(said.get("error").is_none(), "{method}: {said}");
                return said["result"].clone();
            }
        }
    }

    /// The next message; events are kept.
    fn hear(&mut self) -> Value {
        let said: Value =
            serde_json::from_str(self.socket.read().unwrap().to_text().unwrap()).unwrap();
        if said.get("method").is_some() {
            self.events.push(said.clone());
        }
        said
    }

    /// Does something that loads a page, and waits for the page.
    pub(super) fn load(&mut self, act: impl FnOnce(&mut Self)) {
        let before = self.events.len();
        act(self);
        while !self.events[before..].iter().any(|event| event["method"] == "Page.loadEventFired") {
            self.hear();
        }
    }

    pub(super) fn visit(&mut self, address: &str) {
        let address = address.to_owned();
        self.load(|it| _ = it.call("Page.navigate", json!({ "url": address })));
        // The empty page before it may have said only now that it is loaded.
        let loaded = "location.protocol === 'http:' && document.readyState === 'complete'";
        self.until(loaded, Duration::from_secs(60));
    }

    /// Presses and releases a key.
    pub(super) fn key(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 191, // the slash
        };
        let mut event =
            json!({ "key": key, "code": key, "windowsVirtualKeyCode": code, "type": "rawKeyDown" });
        if key == "Enter" {
            event["type"] = json!("keyDown");
            event["text"] = json!("\r");
        }
        self.call("Input.dispatchKeyEvent", event.clone());
        event["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", event);
    }

    /// Types into what has the focus.
    pub(super) fn text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    fn value(&mut self, expression: &str) -> Value {
        let said = self
            .call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }));
        assert!(said.get("exceptionDetails").is_none(), "{expression}: {said}");
        said["result"]["value"].clone()
    }

    /// Runs statements, in a scope of their own.
    pub(super) fn run(&mut self, statements: &str) {
        self.value(&format!("(() => {{ {statements} }})()"));
    }

    pub(super) fn is(&mut self, expression: &str) -> bool {
        self.value(expression) == json!(true)
    }

    pub(super) fn number(&mut self, expression: &str) -> f64 {
        self.value(expression).as_f64().unwrap()
    }

    pub(super) fn string(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true.
    pub(super) fn until(&mut self, expression: &str, wait: Duration) {
        let end = Instant::now() + wait;
        while !self.is(expression) {
            assert!(Instant::now() < end, "never: {expression}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Errors and warnings of the console so far.
    pub(super) fn complaints(&mut self) -> Vec<String> {
        self.value("0"); // whatever was said before comes before this answer
        let of = |event: &Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => Some(event["params"].to_string()),
            Some("Log.entryAdded") if event["params"]["entry"]["level"] != "info" => {
                Some(event["params"]["entry"]["text"].to_string())
            }
            Some("Runtime.consoleAPICalled") => Some(event["params"]["args"].to_string()),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
