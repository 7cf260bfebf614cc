//! The pages themselves, and the scripts and style that are built into the program.

use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use tacho_report::{UPLOT, escape};

const STYLE: &str = include_str!("../../../web/dist/live.css");
const SCRIPT: &str = include_str!("../../../web/dist/live.js");
const LIVE: &str = include_str!("live.html");

/// The page of a run; `token` lets it stop the run.
pub(crate) fn live(token: &str) -> Response {
    Html(LIVE.replace("{token}", &escape(token))).into_response()
}

/// Files that pages load.
pub(crate) fn assets<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let asset = |content_type: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, content_type)], text) })
    };
    Router::new()
        .route("/uplot.js", asset("text/javascript; charset=utf-8", UPLOT))
        .route("/live.js", asset("text/javascript; charset=utf-8", SCRIPT))
        .route("/live.css", asset("text/css; charset=utf-8", STYLE))
}
