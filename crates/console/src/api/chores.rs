//! Scenarios, the machine, and events of lists and runs.

use std::path::{Component, Path as FilePath};

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::json;
use tacho_http::{Peer, Role};
use tacho_record::{RunKind, Verdict, read_record};
use tacho_scenario::Limits;
use tokio_stream::wrappers::BroadcastStream;

use super::answers::ApiError;
use super::state::{Api, blocking};
use crate::files::to_open;
use crate::launch::Launched;
use crate::past_course::PastCourse;
use crate::relay::{Watchable, event, page_address, relay, sse};
use crate::run_state::RunState;
use crate::running::Running;

pub(crate) async fn scenarios(State(api): State<Api>) -> Result<Response, ApiError> {
    Ok(Json(blocking(move || Ok(api.toolbox().scenarios())).await?).into_response())
}

pub(crate) async fn machine(
    State(api): State<Api>,
    Extension(role): Extension<Role>,
) -> Result<Response, ApiError> {
    let answer = blocking(move || {
        Ok(json!({
            "doctor": api.toolbox().examine(),
            "calibrated": api.toolbox().is_calibrated(),
            "directory": api.folder(),
            "role": role.name(),
            "cores": Limits::of_this_process().cores,
            "version": env!("CARGO_PKG_VERSION"),
            "broker": api.broker().map(ToString::to_string),
            "bus": api.toolbox().bus(),
        }))
    });
    Ok(Json(answer.await?).into_response())
}

/// The agents on the bus that is given; none without one.
pub(crate) async fn agents(State(api): State<Api>) -> Result<Response, ApiError> {
    let answer = blocking(move || {
        let bus = api.toolbox().bus();
        let agents = match bus {
            None => json!([]),
            Some(_) => api.toolbox().agents().map_err(|why| ApiError::about("bus", why))?,
        };
        Ok(json!({"bus": bus, "agents": agents}))
    });
    Ok(Json(answer.await?).into_response())
}

/// What the request's token allows.
pub(crate) async fn session(Extension(role): Extension<Role>) -> Response {
    Json(json!({"role": role.name(), "version": env!("CARGO_PKG_VERSION")})).into_response()
}

/// Changes of all runs and of the queue.
pub(crate) async fn list_events(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
) -> Response {
    let (place, displaced) = api.watchers().enter(peer.0);
    let news = BroadcastStream::new(api.news()).map(|item| match item {
        Ok(json) => format!("data: {json}\n\n"),
        // It reads the list again.
        Err(_) => "data: {\"type\":\"again\"}\n\n".to_owned(),
    });
    let first = stream::iter(["data: {\"type\":\"ready\"}\n\n".to_owned()]);
    let displaced = displaced.shared();
    let events = first.chain(news).take_until(displaced.clone());
    let farewell = stream::once(async move {
        matches!(displaced.now_or_never(), Some(Ok(())))
            .then(|| "data: {\"type\":\"displaced\"}\n\n".to_owned())
    });
    let events = events.chain(farewell.filter_map(std::future::ready));
    sse(events.map(move |text| {
        // Held for as long as the page is there.
        let _place = &place;
        Bytes::from(text)
    }))
}

/// The events of a run: those of its live page, history first.
pub(crate) async fn run_events(
    State(api): State<Api>,
    Path(id): Path<String>,
    Extension(peer): Extension<Peer>,
) -> Result<Response, ApiError> {
    api.directory(&id)?;
    let place = api.watchers().enter(peer.0);
    let look = move || {
        let (api, id) = (api.clone(), id.clone());
        async move {
            let seen = blocking(move || watchable(&api, &id)).await;
            seen.unwrap_or_else(|_| Watchable::Ended(event("end", "{\"verdict\":null}")))
        }
    };
    Ok(relay(place, look))
}

fn watchable(api: &Api, id: &str) -> Result<Watchable, ApiError> {
    let directory = api.directory(id)?;
    if let Some(running) = Running::read(&directory) {
        let page = running.page.as_deref().and_then(page_address);
        return Ok(match page {
            Some(address) => {
                // The page of any other run is for all.
                let is_own = Launched::read(&directory).is_some();
                Watchable::Page(address, is_own.then(|| api.page_token(id)))
            }
            None => Watchable::Without("{\"reason\":\"it has no live page (--ui)\"}".to_owned()),
        });
    }
    let row = api.row(id)?;
    Ok(match row.state {
        RunState::Queued => Watchable::Waiting(json!({"position": row.position}).to_string()),
        RunState::Running => Watchable::Starting,
        RunState::Finished | RunState::Canceled | RunState::Broken => {
            let (name, kind) = (row.name.as_str(), row.kind.as_str());
            let run = PastRun { name, kind, verdict: row.verdict, state: row.state };
            Watchable::Ended(past_events(&directory, &run))
        }
    })
}

/// What there is to say of a run, or of a step of one, at its end.
struct PastRun<'a> {
    name: &'a str,
    kind: &'a str,
    verdict: Option<Verdict>,
    state: RunState,
}

/// The events of a run that has ended: its course where it is a single one, and its end.
fn past_events(directory: &FilePath, run: &PastRun<'_>) -> String {
    let end = json!({
        "verdict": run.verdict, "reasons": [], "directory": directory,
        "files": to_open(directory), "stays": false, "state": run.state,
    });
    let past = PastCourse::read(directory);
    let past = past.as_ref();
    let hello = json!({
        "name": run.name, "kind": run.kind, "run": past.map(|past| &past.run), "phase": null,
        "failures": past.map_or(&[][..], |past| &past.failures),
        "failures_count": past.map_or(0, |past| past.failures_count),
        "actions": past.map_or(&[][..], |past| &past.actions), "steps": [], "end": end,
        "forgotten": 0, "overflow": 0, "every_s": past.map_or(1, |past| past.every_s),
    });
    let rows = past.map_or("", |past| &past.rows);
    let (hello, end) = (event("hello", &hello.to_string()), event("end", &end.to_string()));
    [hello.as_str(), rows, &event("ready", "{}"), &end].concat()
}

/// The events of a step of a run that has ended: its course as that of a single run.
pub(crate) async fn step_events(
    State(api): State<Api>,
    Path((id, number)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let events = blocking(move || {
        let directory = api.directory(&id)?;
        step_course(&directory, &number)
            .ok_or_else(|| ApiError::not_found(format!("the run '{id}' has no step {number}")))
    });
    Ok(sse(stream::iter([Bytes::from(events.await?)])))
}

/// The course of the step of that number, from 1; `None` where there is none.
fn step_course(directory: &FilePath, number: &str) -> Option<String> {
    let record = read_record(directory).ok()??;
    let step = record.steps.get(number.parse::<usize>().ok()?.checked_sub(1)?)?;
    let own = FilePath::new(&step.directory);
    let is_below = own.components().all(|part| matches!(part, Component::Normal(_)));
    if step.directory.is_empty() || !is_below {
        return None;
    }
    let run = PastRun {
        name: &step.label,
        kind: RunKind::Run.name(),
        verdict: Some(step.verdict),
        state: RunState::Finished,
    };
    Some(past_events(&directory.join(own), &run))
}
