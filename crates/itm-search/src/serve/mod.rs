//! The page and the HTTP interface of an index: `itm serve`.
//!
//! | module | what |
//! |---|---|
//! | `guard` | who may ask: `Host`, `Origin`, the token; the headers of every answer |
//! | `desk` | a bounded queue before the model |
//! | `ask` | the parameters of an address |
//! | `pages` | HTML |
//! | `api` | JSON under `/api/v1` |
//! | `clip` | `/knn-service`, the interface of clip-retrieval |
//! | `pictures` | thumbnails, previews, heat maps |
//! | `upload` | a picture that somebody sends |
//!
//! `docs/search.md` describes the interface, and what is defended.

mod api;
mod ask;
mod clip;
mod desk;
mod frame;
mod guard;
mod layout;
mod pages;
mod pictures;
mod refusal;
mod state;
#[cfg(test)]
mod tests;
mod upload;

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use itm_core::{Error, Result};
#[cfg(unix)]
use tokio::signal::unix;
use tokio::sync::Semaphore;
use tower_http::timeout::TimeoutLayer;

use crate::{Index, Searcher};
use state::State;

/// The shortest token.
const SHORTEST_TOKEN: usize = 16;

/// Where a server listens, and who may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// An address of this machine; port 0 is any free port.
    pub listen: SocketAddr,
    /// What every request must bring. An address beyond the loopback needs one: letters, digits, `-` and `_`, at least 16.
    pub token: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7878), token: None }
    }
}

/// Bounds on what clients can hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at a time; others wait in the system's queue.
    pub(crate) connections: usize,
    /// Searches that wait or run. One more is answered with 503.
    pub(crate) searches: usize,
    /// Pictures that wait or are read.
    pub(crate) pictures: usize,
    /// Uploads at a time, each held in memory.
    pub(crate) uploads: usize,
    /// From the first byte of a request, or the end of the one before, to the end of its head.
    pub(crate) head: Duration,
    /// From the end of the head to the answer: a body must come in it.
    pub(crate) request: Duration,
    /// Of a connection: a client that does not read its answer holds it no longer.
    pub(crate) connection: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            searches: 64,
            pictures: 256,
            uploads: 4,
            head: Duration::from_secs(10),
            request: Duration::from_secs(30),
            connection: Duration::from_secs(300),
        }
    }
}

/// Bytes of a request's head, and its headers: more is answered with 431.
const HEAD_BYTES: usize = 32 << 10;
const HEADERS: usize = 64;
/// How long requests may go on after Ctrl-C or SIGTERM.
const LAST: Duration = Duration::from_secs(3);

/// A server that listens and does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    options: Options,
    limits: Limits,
    searcher: Searcher,
}

impl Server {
    /// Takes the address.
    ///
    /// # Errors
    /// If the address is taken or not of this machine; if it is beyond the loopback and there is no token; if the token is short or has
    /// other characters.
    pub fn bind(searcher: Searcher, options: &Options) -> Result<Self> {
        check(options)?;
        let place = options.listen.to_string();
        let listener = TcpListener::bind(options.listen).map_err(Error::io(&place))?;
        listener.set_nonblocking(true).map_err(Error::io(&place))?;
        let address = listener.local_addr().map_err(Error::io(&place))?;
        let (options, limits) = (options.clone(), Limits::default());
        Ok(Self { listener, address, options, limits, searcher })
    }

    /// The address of the page, with the token.
    pub fn address(&self) -> String {
        let token = self.options.token.as_ref().map(|token| format!("?token={token}"));
        format!("http://{}/{}", self.address, token.unwrap_or_default())
    }

    /// Answers until Ctrl-C or SIGTERM. Requests that run then may end in three seconds.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn run(self) -> Result<()> {
        self.run_until(signal())
    }

    pub(crate) fn run_until(self, stop: impl Future<Output = ()>) -> Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(state::SEARCHES + cores + 2)
            .enable_all()
            .build()
            .map_err(Error::io("threads of the server"))?;
        let Self { listener, address, options, limits, searcher } = self;
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener);
            let listener = listener.map_err(Error::io(address.to_string()))?;
            let app = router(Arc::new(State::new(searcher, &options, limits, cores)), limits);
            accept(listener, app, limits, stop).await;
            Ok(())
        });
        runtime.shutdown_background(); // a search that still runs holds nothing that must be whole
        served
    }
}

/// Ends with Ctrl-C or SIGTERM, also if the program listens to them in its own way.
async fn signal() {
    let interrupt = async { _ = tokio::signal::ctrl_c().await };
    #[cfg(unix)]
    if let Ok(mut terminate) = unix::signal(unix::SignalKind::terminate()) {
        return either(async { _ = terminate.recv().await }, interrupt).await;
    }
    interrupt.await;
}

/// Waits until one of two ends; `one` is asked first.
async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    std::future::poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Pending => other.as_mut().poll(context),
        Poll::Ready(()) => Poll::Ready(()),
    })
    .await;
}

fn check(options: &Options) -> Result<()> {
    let Some(token) = &options.token else {
        let expected = "--token with an address that others reach";
        let alone = options.listen.ip().is_loopback();
        return Error::unless(alone, "--listen", expected, options.listen);
    };
    let good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let expected = format_args!("at least {SHORTEST_TOKEN} of a-z, A-Z, 0-9, - and _");
    let fits = token.len() >= SHORTEST_TOKEN && token.chars().all(good);
    let got = format_args!("{} characters", token.chars().count());
    Error::unless(fits, "--token", expected, got)
}

async fn accept(
    listener: tokio::net::TcpListener,
    app: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head);
    http.max_buf_size(HEAD_BYTES).max_headers(HEADERS);
    let (graceful, open) = (GracefulShutdown::new(), Arc::new(Semaphore::new(limits.connections)));
    let accepting = async {
        loop {
            let place = open.clone().acquire_owned().await;
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await; // no file handle is left
                continue;
            };
            _ = stream.set_nodelay(true);
            let app = TowerToHyperService::new(app.clone());
            let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), app));
            let connection = tokio::time::timeout(limits.connection, connection);
            tokio::spawn(async move {
                _ = connection.await; // a client that went away is no fault of ours
                drop(place);
            });
        }
    };
    either(stop, accepting).await; // Ctrl-C is heard before the first request is answered
    drop(listener); // whoever asks now finds nobody
    _ = tokio::time::timeout(LAST, graceful.shutdown()).await;
}

fn router(state: Arc<State>, limits: Limits) -> Router {
    let uploads = Router::new()
        .route("/like", post(upload::page))
        .route("/api/v1/similar", post(upload::api))
        .route("/knn-service", post(clip::knn))
        .layer(from_fn_with_state(state.clone(), upload::place))
        .layer(DefaultBodyLimit::max(upload::MOST_BODY));
    let thumbnail = |state, number, ask| pictures::small(state, number, ask, Index::thumbnail);
    let preview = |state, number, ask| pictures::small(state, number, ask, Index::preview);
    Router::new()
        .route("/", get(pages::home))
        .route("/hubs", get(pages::hubs))
        .route("/picture/{number}", get(pages::picture))
        .route("/thumbnails/{number}", get(thumbnail))
        .route("/previews/{number}", get(preview))
        .route("/heat/{number}", get(pictures::heat))
        .route("/api/v1", get(api::about))
        .route("/api/v1/search", get(api::search))
        .route("/api/v1/similar", get(api::similar))
        .route("/api/v1/hubs", get(api::hubs))
        .route("/api/v1/pictures", get(api::pictures))
        .route("/api/v1/pictures/{number}", get(api::picture))
        .route("/api/v1/why", get(api::why))
        .route("/indices-list", get(clip::indices))
        .route("/page.css", get(|| asset("text/css; charset=utf-8", include_str!("page.css"))))
        .route("/page.js", get(|| asset("text/javascript; charset=utf-8", include_str!("page.js"))))
        .route("/icon.svg", get(|| asset("image/svg+xml", include_str!("icon.svg"))))
        .merge(uploads)
        .fallback(|| async { refusal::Refusal::missing() })
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, limits.request))
        .layer(from_fn_with_state(state.clone(), guard::guard))
        .layer(from_fn(refusal::show))
        .with_state(state)
}

async fn asset(kind: &'static str, text: &'static str) -> Result<impl IntoResponse, Infallible> {
    Ok(([(header::CONTENT_TYPE, kind)], text))
}
