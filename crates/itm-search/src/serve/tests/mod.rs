//! A server on a free port, and a client of plain sockets.

mod bad;
mod browser;
mod clip;
mod interface;
mod pages;
mod safety;
mod uploads;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use image::DynamicImage;
use itm_core::Result;
use tokio::sync::oneshot;

use super::{Limits, Options, Server};
use crate::fakes::{Colours, World};
use crate::{Encoder, Model, Patches, Searcher};

/// A server of six photographs of one colour each.
struct Site {
    world: World,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Site {
    fn new() -> Self {
        Self::with(World::new(), Box::new(Colours::default()), Limits::default(), None)
    }

    fn with(world: World, encoder: Box<dyn Encoder>, limits: Limits, token: Option<&str>) -> Self {
        world.update(&Colours::default()).unwrap();
        Self::serve(world, encoder, limits, token)
    }

    /// The index as it is.
    fn serve(world: World, encoder: Box<dyn Encoder>, limits: Limits, token: Option<&str>) -> Self {
        let searcher = Searcher::new(world.index(), encoder).unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = Options { listen, token: token.map(str::to_owned) };
        let server = Server { limits, ..Server::bind(searcher, &options).unwrap() };
        let address = server.address;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(|| server.run_until(async { _ = stopped.await }));
        Self { world, address, stop: Some(stop), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes as they are and reads until the server closes.
    fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect();
        _ = stream.write_all(bytes); // a server that refuses need not read all
        let mut reply = vec![];
        _ = stream.read_to_end(&mut reply);
        Reply::read(&reply)
    }

    fn request(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Reply {
        let host = format!("Host: {}", self.address);
        let length = format!("Content-Length: {}", body.len());
        let mut lines = vec![format!("{method} {path} HTTP/1.1"), "Connection: close".into()];
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            lines.push(host);
        }
        if !body.is_empty() {
            lines.push(length);
        }
        lines.extend(headers.iter().map(|&header| header.to_owned()));
        let head = lines.join("\r\n") + "\r\n\r\n";
        self.raw(&[head.as_bytes(), body].concat())
    }

    fn get(&self, path: &str) -> Reply {
        self.request("GET", path, &[], b"")
    }

    /// The JSON of an address.
    fn json(&self, path: &str) -> serde_json::Value {
        let reply = self.get(path);
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some("application/json")),
            "{path}: {}",
            reply.text()
        );
        serde_json::from_slice(&reply.body).unwrap()
    }

    /// The number of a picture.
    fn number(&self, path: &str) -> usize {
        self.world.index().pictures().iter().position(|picture| picture.path == path).unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        _ = self.stop.take().unwrap().send(());
        let ended = self.thread.take().unwrap().join();
        if !thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// The first `count` replies of streams that the server then closes; the other streams stay in `open`.
fn first_replies(open: &mut Vec<TcpStream>, count: usize) -> std::vec::IntoIter<Reply> {
    let mut replies = vec![];
    while replies.len() < count {
        open.retain_mut(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            if stream.peek(&mut [0]).is_err() {
                return true;
            }
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap(); // for the rest of a reply
            let mut reply = vec![];
            stream.read_to_end(&mut reply).unwrap();
            replies.push(Reply::read(&reply));
            false
        });
    }
    replies.into_iter()
}

struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    /// Status 0: no reply.
    fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let (head, body) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 4..]));
        let head = String::from_utf8(head.to_vec()).unwrap();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head, body: body.to_vec() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// An encoder whose sentences wait for [`Gate::open`].
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    waiting: Mutex<usize>,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

struct Slow(Arc<Gate>);

impl Encoder for Slow {
    fn model(&self) -> Model {
        Colours::default().model()
    }

    fn texts(&self, texts: &[&str]) -> Result<Vec<f32>> {
        *self.0.waiting.lock().unwrap() += 1;
        let mut open = self.0.open.lock().unwrap();
        while !*open {
            open = self.0.changed.wait(open).unwrap();
        }
        drop(open);
        assert!(!texts[0].contains("panic"), "the model broke");
        Colours::default().texts(texts)
    }

    fn pictures(&self, pictures: &[DynamicImage]) -> Result<Vec<f32>> {
        Colours::default().pictures(pictures)
    }

    fn patches(&self, picture: &DynamicImage) -> Result<Option<Patches>> {
        Colours::default().patches(picture)
    }
}
