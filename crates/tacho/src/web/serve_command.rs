//! `tacho serve`: past runs in a browser.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use clap::Args;
use tokio::sync::oneshot;

use super::arguments::{Listen, parse_address};
use super::past::{PastRun, PastRuns};
use super::server::{self, Server};
use super::{files, list_page, page};
use crate::exit::{self, Failure};
use crate::run::stop_flag;

/// How long to wait before looking for signals again.
const NAP: Duration = Duration::from_millis(50);

/// Serve a page with past runs: their verdicts and figures, their reports and files.
///
/// Reads only, and only the files of run directories. Ends with Ctrl-C. A run that is under way is
/// listed as such, and has a page of its own with 'tacho run --ui'.
#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// The folder with the run directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    dir: PathBuf,

    /// Where to listen: a port, or an address with a port; port 0 takes a free one. By default
    /// 127.0.0.1:9740, or a free port where that one is taken
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    listen: Option<SocketAddr>,
}

/// Serves until a signal comes.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<u8, Failure> {
    let runs = PastRuns::new(&arguments.dir);
    let invalid = |sentence: String| Failure::new(exit::INVALID_CONFIG, sentence);
    let count = runs
        .list()
        .map_err(|sentence| invalid(format!("{sentence}: name the folder with --dir")))?
        .len();
    if arguments.dir.join("summary.json").is_file() {
        return Err(invalid(format!(
            "{} is a run itself: name the folder that it is in with --dir",
            arguments.dir.display()
        )));
    }
    let stop = stop_flag()?;
    let listener = server::bind(arguments.listen.map_or(Listen::Default, Listen::At))?;
    let (end, ended) = oneshot::channel::<()>();
    let mut server = Server::start(listener, router(runs), Vec::new(), async {
        let _ = ended.await;
    })
    .map_err(|error| Failure::new(exit::UNEXPECTED, format!("cannot serve pages: {error}")))?;
    eprintln!("{count} runs of {}: {}", arguments.dir.display(), server.url());
    if !server.address().ip().is_loopback() {
        eprintln!("warning: whoever reaches {} can read these runs", server.address());
    }
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(NAP);
    }
    drop(end);
    server.join();
    Ok(exit::OK)
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
    let list = list.unwrap_or_else(|error| Err(error.to_string()));
    list.map_err(|sentence| (StatusCode::INTERNAL_SERVER_ERROR, sentence + "\n").into_response())
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
