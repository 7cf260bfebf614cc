//! The page of a run while it runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tacho_lab::run::{Outcome, Progress};
use tacho_record::RunKind;
use tokio::sync::mpsc;

use super::arguments::UiArguments;
use super::files;
use super::hub::{Hub, SUBSCRIBERS_MAX};
use super::news::{DeedNews, EndNews, News, PhaseNews, RunNews, SecondNews, StepNews};
use super::page;
use super::server::{self, Server};
use crate::exit::{self, Failure};

/// News that may be on their way to the server's thread.
const QUEUE_MAX: usize = 1024;
/// Header in which a page proves that it was served by this run.
const TOKEN_HEADER: &str = "x-tacho-token";
/// How often a page that stays looks whether it should still.
const NAP: Duration = Duration::from_millis(50);

/// The stop flag of the process, and whether it was the page that raised it.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    pub(crate) flag: Arc<AtomicBool>,
    by_page: Arc<AtomicBool>,
}

impl Stop {
    /// Around the flag that signals raise.
    pub(crate) fn new(flag: Arc<AtomicBool>) -> Self {
        Self { flag, by_page: Arc::default() }
    }
}

/// A live page: what it is told, and its server. Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct Live {
    /// Gone once everything was told.
    feed: Option<mpsc::Sender<News>>,
    overflow: Arc<AtomicU64>,
    runs: AtomicU64,
    started: Instant,
    stop: Stop,
    waits: bool,
    /// Was it told how everything ended?
    concluded: AtomicBool,
    directory: PathBuf,
    hub: Hub,
    server: Server,
}

/// What requests need.
#[derive(Clone, Debug)]
struct Shared {
    hub: Hub,
    token: Arc<str>,
    stop: Stop,
    directory: Arc<Path>,
}

impl Live {
    /// Serves the page where it is wanted, and says where. `cpus` are the cores for it, empty for
    /// any; files are served from `directory`.
    pub(crate) fn start(
        arguments: &UiArguments,
        (name, kind): (&str, RunKind),
        directory: &Path,
        stop: Stop,
        cpus: Vec<usize>,
    ) -> Result<Option<Self>, Failure> {
        let Some(listen) = arguments.listen() else { return Ok(None) };
        let unexpected = |error: &dyn std::fmt::Display| {
            Failure::new(exit::UNEXPECTED, format!("cannot serve the live page: {error}"))
        };
        let (_, token) = tacho_monitor::Token::generate().map_err(|error| unexpected(&error))?;
        let listener = server::bind(listen)?;
        let hub = Hub::new(name, kind.name());
        let shared = Shared {
            hub: hub.clone(),
            token: token.into(),
            stop: stop.clone(),
            directory: directory.into(),
        };
        let (feed, news) = mpsc::channel(QUEUE_MAX);
        let overflow = Arc::<AtomicU64>::default();
        let pump = hub.clone().pump(news, Arc::clone(&overflow));
        let server = Server::start(listener, router(shared), cpus, pump)
            .map_err(|error: io::Error| unexpected(&error))?;
        eprintln!("live page: {}", server.url());
        if !server.address().ip().is_loopback() {
            eprintln!("warning: whoever reaches {} can watch and stop the run", server.address());
        }
        Ok(Some(Self {
            feed: Some(feed),
            overflow,
            runs: AtomicU64::new(0),
            started: Instant::now(),
            stop,
            waits: arguments.ui_wait,
            concluded: AtomicBool::new(false),
            directory: directory.to_owned(),
            hub,
            server,
        }))
    }

    /// What to open in a browser.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// A run begins; it gets its number here.
    pub(crate) fn run(self: &Arc<Self>, run: RunNews) -> LiveRun {
        let number = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let at_s = self.started.elapsed().as_secs_f64();
        let label = run.title.clone().unwrap_or_else(|| run.scenario.clone());
        let clients = run.clients;
        self.tell(News::Run(RunNews { number, at_s, ..run }));
        LiveRun { live: Arc::clone(self), number, label, clients, at_s }
    }

    /// Everything has ended. With `--ui-wait` the page stays until somebody ends it.
    pub(crate) fn end(&self, verdict: Option<&'static str>, reasons: &[String]) {
        let stopped = self.stop.flag.load(Ordering::Relaxed);
        let by_page = self.stop.by_page.swap(false, Ordering::Relaxed);
        let stays = self.waits && (!stopped || by_page);
        self.concluded.store(true, Ordering::Relaxed);
        self.tell(News::End(EndNews {
            verdict,
            reasons: reasons.to_vec(),
            directory: self.directory.display().to_string(),
            files: files::to_open(&self.directory),
            stays,
        }));
        if !stays {
            return;
        }
        eprintln!("the page stays at {} until Ctrl-C", self.server.url());
        // The page's button was about the run; from now on it is about the page.
        self.stop.flag.store(false, Ordering::Relaxed);
        while !self.stop.flag.load(Ordering::Relaxed) {
            std::thread::sleep(NAP);
        }
    }

    /// Never waits.
    fn tell(&self, news: News) {
        if let Some(feed) = &self.feed
            && feed.try_send(news).is_err()
        {
            self.overflow.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.concluded.load(Ordering::Relaxed) {
            let directory = self.directory.display().to_string();
            self.tell(News::End(EndNews { directory, ..EndNews::default() }));
        }
        // The server's thread tells browsers what is left and ends.
        self.feed = None;
        self.server.join();
        let missed = self.hub.missed() + self.overflow.load(Ordering::Relaxed);
        if missed > 0 {
            eprintln!("live page: {missed} rows were not shown to slow browsers");
        }
    }
}

/// One run on the page.
#[derive(Debug)]
pub(crate) struct LiveRun {
    live: Arc<Live>,
    number: u64,
    label: String,
    clients: u64,
    /// When it began on the page's time axis.
    at_s: f64,
}

impl LiveRun {
    /// Passes progress on.
    pub(crate) fn show(&self, progress: &Progress) {
        let news = match progress {
            Progress::Phase { kind, planned, number, of } => News::Phase(PhaseNews {
                name: kind.name().to_owned(),
                planned_s: planned.map(|planned| planned.as_secs_f64()),
                number: *number,
                of: *of,
                at_s: self.live.started.elapsed().as_secs_f64(),
            }),
            Progress::Second { row, parts, .. } => {
                let mut row = row.as_ref().clone();
                row.start_s += self.at_s;
                let (clients, parts) = (self.clients, parts.clone());
                News::Second(Box::new(SecondNews { clients, parts, row }))
            }
            Progress::Host(row) => {
                let mut row = row.clone();
                row.at_s += self.at_s;
                News::Host(row)
            }
            Progress::Failed(sentence) => News::Failed(sentence.clone()),
            Progress::Deed(deed) => {
                let mut deed = deed.as_ref().clone();
                deed.at_s += self.at_s;
                News::Deed(DeedNews { run: self.number, deed })
            }
            // It is told as a deed as well.
            Progress::Acted { .. } => return,
        };
        self.live.tell(news);
    }

    /// The run has ended.
    pub(crate) fn end(&self, outcome: &Outcome) {
        let step = StepNews::of(self.number, &self.label, &outcome.data.record);
        self.live.tell(News::Step(step));
    }
}

fn router(shared: Shared) -> Router {
    Router::new()
        .route("/", get(live_page))
        .route("/events", get(events))
        .route("/stop", post(stop))
        .route("/run/{*file}", get(file))
        .merge(page::assets())
        .with_state(shared)
}

async fn live_page(State(shared): State<Shared>) -> Response {
    page::live(&shared.token)
}

async fn events(State(shared): State<Shared>) -> Response {
    match shared.hub.subscribe() {
        Some(events) => Sse::new(events).keep_alive(KeepAlive::default()).into_response(),
        None => {
            let sentence = format!("{SUBSCRIBERS_MAX} browsers watch already.\n");
            (StatusCode::SERVICE_UNAVAILABLE, sentence).into_response()
        }
    }
}

async fn stop(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let given = headers.get(TOKEN_HEADER).map_or(&[][..], |value| value.as_bytes());
    if !same(given, shared.token.as_bytes()) {
        let sentence = "Only the page that this run serves can stop it: reload it.\n";
        return (StatusCode::FORBIDDEN, sentence).into_response();
    }
    shared.stop.by_page.store(true, Ordering::Relaxed);
    shared.stop.flag.store(true, Ordering::Relaxed);
    (StatusCode::ACCEPTED, "stopping\n").into_response()
}

async fn file(
    State(shared): State<Shared>,
    axum::extract::Path(file): axum::extract::Path<String>,
) -> Response {
    files::serve(shared.directory.to_path_buf(), file).await
}

/// Compares in a time that does not tell where they differ.
fn same(given: &[u8], token: &[u8]) -> bool {
    let differ = given.iter().zip(token).fold(0, |differ, (given, token)| differ | (given ^ token));
    given.len() == token.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn tokens_are_compared_whole() {
        assert!(same(b"abc", b"abc"));
        for other in [&b""[..], b"ab", b"abd", b"abcd"] {
            assert!(!same(other, b"abc"));
        }
    }
}
