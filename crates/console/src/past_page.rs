//! The page of past runs.

use std::net::SocketAddr;
use std::path::Path as FilePath;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::sync::oneshot;

use crate::address::Listen;
use crate::error::ConsoleError;
use crate::past::{PastRun, PastRuns};
use crate::server::Server;
use crate::{files, list_page, page};

/// A server of the page and of the files of past runs; dropping it ends it.
#[derive(Debug)]
pub struct PastRunsPage {
    server: Server,
    count: usize,
    /// Gone once it is to end.
    end: Option<oneshot::Sender<()>>,
}

impl PastRunsPage {
    /// Serves the runs whose directories are in `folder`.
    ///
    /// # Errors
    /// When the folder cannot be read or is a run directory itself, or the address cannot be taken.
    pub fn start(folder: &FilePath, listen: Listen) -> Result<Self, ConsoleError> {
        let runs = PastRuns::new(folder);
        let count = runs.list()?.len();
        if folder.join("summary.json").is_file() {
            return Err(ConsoleError::IsRun(folder.to_owned()));
        }
        let listener = listen.bind()?;
        let (end, ended) = oneshot::channel::<()>();
        let server = Server::start(listener, router(runs), Vec::new(), async {
            let _ = ended.await;
        })?;
        Ok(Self { server, count, end: Some(end) })
    }

    /// Runs that there were at the start.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL to open in a browser.
    pub fn url(&self) -> String {
        self.server.url()
    }
}

impl Drop for PastRunsPage {
    fn drop(&mut self) {
        self.end = None;
        self.server.join();
    }
}

fn router(runs: PastRuns) -> Router {
    Router::new()
        .route("/", get(page_of_all))
        .route("/api/runs", get(all))
        .route("/runs/{*file}", get(file))
        .merge(page::assets())
        .with_state(runs)
}

/// Reads the folder where it may take time.
async fn read(runs: PastRuns) -> Result<Vec<PastRun>, Response> {
    let list = tokio::task::spawn_blocking(move || runs.list()).await;
    let failed =
        |sentence: String| (StatusCode::INTERNAL_SERVER_ERROR, sentence + "\n").into_response();
    match list {
        Ok(list) => list.map_err(|error| failed(error.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}

async fn page_of_all(State(runs): State<PastRuns>) -> Response {
    let folder = runs.folder();
    match read(runs).await {
        Ok(list) => list_page::html(&folder, &list).into_response(),
        Err(response) => response,
    }
}

async fn all(State(runs): State<PastRuns>) -> Response {
    match read(runs).await {
        Ok(list) => Json(list).into_response(),
        Err(response) => response,
    }
}

async fn file(State(runs): State<PastRuns>, Path(file): Path<String>) -> Response {
    files::serve(runs.folder(), file).await
}
