//! Load on a server of 25,000 pictures with rows of width 512: 20 clients, each of which asks again as soon as it is answered.
//! Times of answers, memory, and what comes beyond the queue.
//!
//! ```text
//! cargo bench -p itm-search --features serve --bench load -- DIR [SECONDS]
//! ```
//! `DIR` keeps the pictures and their index for the next call. The clients run in a process of their own, on the same cores.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program that measures: it ends where something is wrong, and prints

use std::fs;
use std::io::{Cursor, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use itm_core::Result;
use itm_search::serve::{Options, Server};
use itm_search::{Encoder, Index, Model, Searcher, Sources, ordinary_queries, update};

const PICTURES: u32 = 25_000;
const WIDTH: usize = 512;
const CLIENTS: usize = 20;
const ADDRESS: &str = "127.0.0.1:7993";

/// Rows of noise: as much work for a search as rows of a model, and none for an encoder.
struct Noise;

fn row(mut seed: u64) -> Vec<f32> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let row: Vec<f32> = (0..WIDTH).map(|_| next()).collect();
    let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
    row.iter().map(|x| x / length).collect()
}

fn seed(bytes: &[u8]) -> u64 {
    bytes.iter().fold(17, |seed, &byte| (seed ^ u64::from(byte)).wrapping_mul(1_099_511_628_211))
}

impl Encoder for Noise {
    fn model(&self) -> Model {
        Model { name: "noise".into(), identity: "noise".into(), width: WIDTH }
    }

    fn texts(&self, texts: &[&str]) -> Result<Vec<f32>> {
        Ok(texts.iter().flat_map(|text| row(seed(text.as_bytes()))).collect())
    }

    fn pictures(&self, pictures: &[DynamicImage]) -> Result<Vec<f32>> {
        Ok(pictures.iter().flat_map(|picture| row(seed(picture.as_bytes()))).collect())
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let dir = Path::new(arguments.first().map_or("target/load", String::as_str));
    if arguments.get(1).map(String::as_str) == Some("serve") {
        let searcher = Searcher::new(Index::open(&dir.join("index"))?, Box::new(Noise))?;
        return Server::bind(searcher, &Options { listen: ADDRESS.parse().unwrap(), token: None })?
            .run();
    }
    let seconds = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(120);
    make(dir)?;
    let mut server = start(dir);
    println!("memory before: {}", memory(&server));
    for (clients, seconds) in [(1, 5), (CLIENTS, seconds), (200, 10)] {
        let begin = Instant::now();
        let threads: Vec<_> =
            (0..clients).map(|client| thread::spawn(move || ask(client, begin, seconds))).collect();
        let answers: Vec<(u16, f64)> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let count = |status: u16| answers.iter().filter(|answer| answer.0 == status).count();
        let mut times: Vec<f64> =
            answers.iter().filter(|answer| answer.0 == 200).map(|answer| answer.1).collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            times.get((share * times.len() as f64) as usize).copied().unwrap_or(f64::NAN)
        };
        println!(
            "{clients} clients, {seconds} s: {} answers, {:.0} a second; p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms; 503: {}; other: {}; memory {}",
            count(200),
            count(200) as f64 / seconds as f64,
            at(0.5),
            at(0.99),
            times.last().copied().unwrap_or(f64::NAN),
            count(503),
            answers.len() - count(200) - count(503),
            memory(&server),
        );
    }
    _ = server.kill();
    _ = server.wait();
    Ok(())
}

fn make(dir: &Path) -> Result<()> {
    let (images, out) = (dir.join("pictures"), dir.join("index"));
    if out.join("index").exists() {
        return Ok(());
    }
    for number in 0..PICTURES {
        let folder = images.join(format!("{:03}", number / 250));
        fs::create_dir_all(&folder).unwrap();
        let [a, b, c, _] = number.wrapping_mul(2_654_435_761).to_le_bytes();
        let mut file = Cursor::new(vec![]);
        RgbImage::from_fn(8, 8, |x, y| Rgb([a ^ (31 * x) as u8, b ^ (31 * y) as u8, c]))
            .write_to(&mut file, ImageFormat::Png)
            .unwrap();
        fs::write(folder.join(format!("{number}.png")), file.into_inner()).unwrap();
    }
    let (about, bank) = (&serde_json::Value::Null, &ordinary_queries());
    update(
        &Sources { images: &images, out: &out, about, bank, progress: &|_, _| (), stop: &|| false },
        &Noise,
    )
    .map(drop)
}

fn start(dir: &Path) -> Child {
    let child =
        Command::new(std::env::current_exe().unwrap()).arg(dir).arg("serve").spawn().unwrap();
    while TcpStream::connect(ADDRESS).is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    child
}

/// Status and milliseconds of each answer, over one connection.
fn ask(client: usize, begin: Instant, seconds: u64) -> Vec<(u16, f64)> {
    let mut answers = vec![];
    let mut stream = TcpStream::connect(ADDRESS).unwrap();
    let mut buffer = vec![0; 1 << 16];
    while begin.elapsed() < Duration::from_secs(seconds) {
        let (sent, number) = (Instant::now(), answers.len());
        let request = format!(
            "GET /api/v1/search?q=client%20{client}%20asks%20{number} HTTP/1.1\r\nHost: {ADDRESS}\r\n\r\n"
        );
        if stream.write_all(request.as_bytes()).is_err() {
            stream = TcpStream::connect(ADDRESS).unwrap(); // after five minutes a connection ends
            continue;
        }
        let mut got = 0;
        let status = loop {
            let read = stream.read(&mut buffer[got..]).unwrap_or(0);
            got += read;
            let text = String::from_utf8_lossy(&buffer[..got]);
            if read == 0 {
                break None;
            }
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                if length.is_some_and(|length| body.len() >= length) {
                    break head[9..12].parse().ok();
                }
            }
        };
        match status {
            Some(status) => answers.push((status, sent.elapsed().as_secs_f64() * 1e3)),
            None => stream = TcpStream::connect(ADDRESS).unwrap(),
        }
    }
    answers
}

/// Resident memory of a process, as Linux says.
fn memory(child: &Child) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("unknown");
    line.trim().to_owned()
}
