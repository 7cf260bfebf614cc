//! The pages of the console: one document, whose scripts show what its address names.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use tacho_report::UPLOT;

use crate::api::Api;
use crate::files;
use crate::guard::SOCKET_POLICY;

const DOCUMENT: &str = include_str!("shell.html");
const STYLE: &str = include_str!("../../../web/dist/console.css");
const SCRIPT: &str = include_str!("../../../web/dist/console.js");

/// Addresses of pages; a run is at `/runs/ID`.
const PAGES: [&str; 9] = [
    "/",
    "/new",
    "/runs",
    "/trash",
    "/compare",
    "/trends",
    "/agents",
    "/broker",
    "/broker/{*page}",
];

/// The page with connections to brokers: its scripts may open WebSockets. The console's scripts
/// load it as a document of its own, and leave it as one.
const SOCKET_PAGE: &str = "/broker/websocket";

/// Pages, their scripts and style, and files of runs at the addresses of reports.
pub(crate) fn router() -> Router<Api> {
    let asset = |content_type: &'static str, text: &'static str| {
        get(move || async move {
            // They say nothing about runs, and change only with the program.
            let head = [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-cache")];
            (head, text)
        })
    };
    let pages = PAGES.iter().fold(Router::new(), |router, path| router.route(path, get(page)));
    pages
        .route(SOCKET_PAGE, get(socket_page))
        .route("/runs/{*file}", get(run_or_file))
        .route("/assets/console.js", asset("text/javascript; charset=utf-8", SCRIPT))
        .route("/assets/uplot.js", asset("text/javascript; charset=utf-8", UPLOT))
        .route("/assets/console.css", asset("text/css; charset=utf-8", STYLE))
}

async fn page() -> Html<&'static str> {
    Html(DOCUMENT)
}

async fn socket_page() -> impl IntoResponse {
    ([(header::CONTENT_SECURITY_POLICY, SOCKET_POLICY)], page().await)
}

/// The page of a run, or a file of it.
async fn run_or_file(State(api): State<Api>, Path(file): Path<String>) -> Response {
    let of_run = file.strip_suffix('/').unwrap_or(&file);
    match of_run.contains('/') {
        // The page says that there is no such run where that is so.
        false if files::is_plain(of_run) => page().await.into_response(),
        _ => files::serve(api.folder().to_owned(), file).await,
    }
}
