//! The page of a run while it runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use tacho_http::{Peer, is_same};
use tacho_record::{ActionState, PartRow, ResourceRow, RunKind, RunRecord, SeriesRow, StepAgent};
use tokio::sync::mpsc;

use crate::address::Listen;
use crate::error::ConsoleError;
use crate::files;
use crate::hub::Hub;
use crate::news::{ActionNews, EndNews, News, PhaseNews, RunAbout, RunNews, SecondNews, StepNews};
use crate::page;
use crate::server::Server;
use crate::stop::Stop;

/// News that may be on their way to the server's thread.
const QUEUE_MAX: usize = 1024;
/// Header in which a page proves that it was served by this run.
const TOKEN_HEADER: &str = "x-tacho-token";

/// Subject and address of a live page.
#[derive(Debug)]
pub struct LiveSettings<'a> {
    /// Where to listen.
    pub listen: Listen,
    /// Does the page stay when everything has ended?
    pub outlook: Outlook,
    /// Name of the scenario, suite or campaign.
    pub name: &'a str,
    /// One run, or several of some kind.
    pub kind: RunKind,
    /// Where results go; its files are served.
    pub directory: &'a Path,
    /// Stops the run.
    pub stop: Stop,
    /// Cores for the server; empty for any.
    pub cpus: Vec<usize>,
    /// With one there is no page: events are sent, to those that bring it.
    pub token: Option<String>,
}

/// The fate of a page after the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// It ends too.
    Ends,
    /// It stays until the process is asked to stop, or its button is pressed once more.
    Stays,
}

/// The page of a run while it runs. Dropping it ends its server.
#[derive(Debug)]
pub struct Live {
    /// Gone once everything was told.
    feed: Option<mpsc::Sender<News>>,
    overflow: Arc<AtomicU64>,
    runs: AtomicU64,
    started: Instant,
    stop: Stop,
    outlook: Outlook,
    /// Was it told how everything ended?
    concluded: AtomicBool,
    directory: PathBuf,
    hub: Hub,
    server: Server,
}

/// Shared state of request handlers.
#[derive(Clone, Debug)]
struct Shared {
    hub: Hub,
    token: Arc<str>,
    stop: Stop,
    directory: Arc<Path>,
}

impl Live {
    /// Serves the page.
    ///
    /// # Errors
    /// When the address cannot be taken or no thread be started.
    pub fn start(settings: LiveSettings<'_>) -> Result<Self, ConsoleError> {
        let LiveSettings { listen, outlook, name, kind, directory, stop, cpus, token: only } =
            settings;
        let (_, token) = tacho_monitor::Token::generate().map_err(ConsoleError::Token)?;
        let listener = listen.bind()?;
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
        let router = match only {
            None => router(shared),
            Some(only) => router_of_events(shared, only.into()),
        };
        let server = Server::start(listener, router, cpus, pump)?;
        Ok(Self {
            feed: Some(feed),
            overflow,
            runs: AtomicU64::new(0),
            started: Instant::now(),
            stop,
            outlook,
            concluded: AtomicBool::new(false),
            directory: directory.to_owned(),
            hub,
            server,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL to open in a browser.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// A run begins; it gets its number here.
    pub fn run(self: &Arc<Self>, about: RunAbout) -> LiveRun {
        let number = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let at_s = self.started.elapsed().as_secs_f64();
        let label = about.title.clone().unwrap_or_else(|| about.scenario.clone());
        let clients = about.clients;
        self.tell(News::Run(RunNews { number, about, at_s }));
        LiveRun { live: Arc::clone(self), number, label, clients, at_s }
    }

    /// Everything has ended. Says whether the page stays; [`Live::wait`] then waits for its end.
    pub fn end(&self, verdict: Option<&'static str>, reasons: &[String]) -> Outlook {
        let by_page = self.stop.take_by_page();
        let outlook = match self.outlook {
            Outlook::Stays if !self.stop.is_raised() || by_page => Outlook::Stays,
            _ => Outlook::Ends,
        };
        self.concluded.store(true, Ordering::Relaxed);
        self.tell(News::End(EndNews {
            verdict,
            reasons: reasons.to_vec(),
            directory: self.directory.display().to_string(),
            files: files::to_open(&self.directory),
            stays: outlook == Outlook::Stays,
        }));
        outlook
    }

    /// Serves the page until the process is asked to stop. A button that was pressed before was
    /// about the run, from now on it is about the page.
    pub fn wait(&self) {
        self.stop.wait_for_next();
    }

    /// Ends the server. Returns how many rows browsers were not shown since they, or this machine,
    /// were too slow.
    pub fn close(mut self) -> u64 {
        self.end_server();
        self.hub.missed() + self.overflow.load(Ordering::Relaxed)
    }

    /// Never waits.
    fn tell(&self, news: News) {
        if let Some(feed) = &self.feed
            && feed.try_send(news).is_err()
        {
            self.overflow.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn end_server(&mut self) {
        if !self.concluded.swap(true, Ordering::Relaxed) {
            let directory = self.directory.display().to_string();
            self.tell(News::End(EndNews { directory, ..EndNews::default() }));
        }
        // The server's thread sends the queued events and ends.
        self.feed = None;
        self.server.join();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end_server();
    }
}

/// One run on the page.
#[derive(Debug)]
pub struct LiveRun {
    live: Arc<Live>,
    number: u64,
    label: String,
    clients: u64,
    /// When it began on the page's time axis.
    at_s: f64,
}

impl LiveRun {
    /// A phase began: one of `of`, planned to take so long unless that depends on the broker.
    pub fn phase(&self, name: &str, planned: Option<Duration>, (number, of): (usize, usize)) {
        self.live.tell(News::Phase(PhaseNews {
            name: name.to_owned(),
            planned_s: planned.map(|planned| planned.as_secs_f64()),
            number,
            of,
            at_s: self.live.started.elapsed().as_secs_f64(),
        }));
    }

    /// A second passed.
    pub fn second(&self, row: &SeriesRow, parts: &[PartRow]) {
        let mut row = row.clone();
        row.start_s += self.at_s;
        let (clients, parts) = (self.clients, parts.to_vec());
        self.live.tell(News::Second(Box::new(SecondNews { clients, parts, row })));
    }

    /// The agents' parts of the second that has just passed; nothing without agents.
    pub fn agents(&self, parts: &[StepAgent]) {
        if !parts.is_empty() {
            self.live.tell(News::Agents(parts.to_vec()));
        }
    }

    /// A host was sampled.
    pub fn host(&self, row: &ResourceRow) {
        let mut row = Box::new(row.clone());
        row.at_s += self.at_s;
        self.live.tell(News::Host(row));
    }

    /// A client failed.
    pub fn failed(&self, sentence: &str) {
        self.live.tell(News::Failed(sentence.to_owned()));
    }

    /// A timed action has begun, or changed.
    pub fn action(&self, mut state: ActionState) {
        state.at_s += self.at_s;
        self.live.tell(News::Action(ActionNews::new(self.number, state)));
    }

    /// The run has ended.
    pub fn end(&self, record: &RunRecord) {
        self.live.tell(News::Step(StepNews::new(self.number, &self.label, record)));
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

/// Events for those that bring the token, and nothing else: other users of this machine reach the
/// address, too.
fn router_of_events(shared: Shared, only: Arc<str>) -> Router {
    let check = move |request: Request, next: Next| {
        let only = Arc::clone(&only);
        async move {
            let given = request.headers().get(header::AUTHORIZATION);
            let given = given.map_or(&[][..], |value| value.as_bytes());
            match is_same(given, format!("Bearer {only}").as_bytes()) {
                true => next.run(request).await,
                false => {
                    (StatusCode::UNAUTHORIZED, "Watch this run in its console.\n").into_response()
                }
            }
        }
    };
    let nothing = async || (StatusCode::NOT_FOUND, "There are only events.\n");
    Router::new()
        .route("/events", get(events))
        .fallback(nothing)
        .with_state(shared)
        .layer(from_fn(check))
}

async fn live_page(State(shared): State<Shared>) -> Response {
    page::live(&shared.token)
}

async fn events(State(shared): State<Shared>, Extension(peer): Extension<Peer>) -> Response {
    Sse::new(shared.hub.subscribe(peer.0)).keep_alive(KeepAlive::default()).into_response()
}

async fn stop(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let given = headers.get(TOKEN_HEADER).map_or(&[][..], |value| value.as_bytes());
    if !is_same(given, shared.token.as_bytes()) {
        let sentence = "Only the page that this run serves can stop it: reload it.\n";
        return (StatusCode::FORBIDDEN, sentence).into_response();
    }
    shared.stop.raise_by_page();
    (StatusCode::ACCEPTED, "stopping\n").into_response()
}

async fn file(
    State(shared): State<Shared>,
    axum::extract::Path(file): axum::extract::Path<String>,
) -> Response {
    files::serve(shared.directory.to_path_buf(), file).await
}
