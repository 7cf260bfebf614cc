//! The pages themselves, and the scripts and style that are built into the program.

use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;

const STYLE: &str = include_str!("../../../../web/dist/live.css");
const SCRIPT: &str = include_str!("../../../../web/dist/live.js");
const LIVE: &str = include_str!("live.html");

/// Makes any text safe inside elements and quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// The page of a run; `token` lets it stop the run.
pub(super) fn live(token: &str) -> Response {
    Html(LIVE.replace("{token}", &escape(token))).into_response()
}

/// What pages load.
pub(super) fn assets<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let asset = |content_type: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, content_type)], text) })
    };
    Router::new()
        .route("/live.js", asset("text/javascript; charset=utf-8", SCRIPT))
        .route("/live.css", asset("text/css; charset=utf-8", STYLE))
}
