//! The operations of the API: one table from which the server and its description are made.

use axum::extract::DefaultBodyLimit;
use axum::routing::{MethodRouter, delete, get, patch, post};
use axum::{Json, Router};
use tacho_http::{ApiDescription, Operation, RequestBody, Role};

use super::state::Api;
use super::{broker, chores, control, files, look, start, trash};
use crate::uploads;

/// Where all of them are.
pub(crate) const BASE: &str = "/api/v1";
/// Bytes of a request that is no upload.
const BODY_BYTES_MAX: usize = 256 << 10;
/// Bytes of a request for the broker: a message that is published.
const BROKER_BYTES_MAX: usize = 2 << 20;

/// Parameters of the list.
const LIST: [&str; 10] =
    ["q", "state", "verdict", "scenario", "tag", "starred", "baseline", "sort", "limit", "cursor"];

const fn view(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    query: &'static [&'static str],
    answer: &'static str,
) -> Operation {
    let (method, role, body) = ("get", Role::Viewer, RequestBody::None);
    Operation { method, path, id, summary, role, body, query, answer: (200, answer) }
}

const fn act(
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    body: RequestBody,
    answer: (u16, &'static str),
) -> Operation {
    Operation { method, path, id, summary, role: Role::Operator, body, query: &[], answer }
}

/// All operations.
pub(super) const OPERATIONS: [Operation; 34] = [
    view("/scenarios", "scenarios", "Scenarios with their variables, and suites", &[], "Scenarios"),
    UPLOAD,
    act("post", "/uploads/{id}/inspect", "inspect", "A plan with its data", INSPECT, UPLOADED),
    act("post", "/preview", "preview", "What a request would do", REQUEST, (200, "Preview")),
    act("post", "/runs", "start", "Start a run, or put it into the queue", REQUEST, (201, "Taken")),
    view("/runs", "list", "Runs, filtered, sorted, page by page", &LIST, "Page"),
    view("/runs/{id}", "run", "A run with its record", &[], "Run"),
    act("patch", "/runs/{id}", "change", "Change tags, star and note", NOTES, (200, "Row")),
    act("delete", "/runs/{id}", "delete", "Move a run to the trash", NONE, (204, "")),
    act("post", "/runs/{id}/restore", "restore", "Take a run out of the trash", NONE, (200, "Row")),
    view("/trash", "trash", "Deleted runs, the last deleted first", &[], "Trash"),
    act("delete", "/trash", "empty", "Remove all deleted runs permanently", NONE, (200, "Removed")),
    act(
        "delete",
        "/trash/{id}",
        "purge",
        "Remove a deleted run permanently",
        NONE,
        (200, "Removed"),
    ),
    act("post", "/runs/{id}/stop", "stop", "Stop a run, as Ctrl-C does", NONE, (202, "Stopping")),
    act("post", "/runs/{id}/cancel", "cancel", "Take a run out of the queue", NONE, (200, "Row")),
    act("post", "/runs/{id}/repeat", "repeat", "Start the same run again", NONE, (201, "Taken")),
    act("post", "/runs/{id}/draft", "draft", "A run as a request to change", NONE, (200, "Draft")),
    view("/runs/{id}/events", "run_events", "Events of a run, history first", &[], RUN_EVENTS),
    view(
        "/runs/{id}/steps/{number}/events",
        "step_events",
        "The course of a step of a run that has ended",
        &[],
        RUN_EVENTS,
    ),
    view("/runs/{id}/report.html", "report", "The report in English", &[], "text/html"),
    view("/runs/{id}/report.zh.html", "chinese_report", "The report in Chinese", &[], "text/html"),
    view("/runs/{id}/files/{*name}", "file", "A file of a run", &[], "application/octet-stream"),
    view("/queue", "queue", "What has this machine, and what waits", &[], "Queue"),
    view("/compare", "compare", "Two to five runs compared with the first", &["ids"], "Comparison"),
    view("/trends", "trends", "A figure over time", &["scenario", "figure", "target"], "Trend"),
    view("/machine", "machine", "What this machine's settings allow", &[], "Machine"),
    view("/agents", "agents", "The agents on the bus that is given", &[], "Agents"),
    view("/broker", "broker", "Whether a broker is given, and where it is", &[], "Broker"),
    view("/broker/{*path}", "broker_look", OF_BROKER, &[], "application/json"),
    act("post", "/broker/{*path}", "broker_act", OF_BROKER, OF_OPERATION, (200, "Document")),
    act("delete", "/broker/{*path}", "broker_delete", OF_BROKER, NONE, (200, "Document")),
    view("/events", "events", "Changes of runs and of the queue", &[], LIST_EVENTS),
    view("/session", "session", "What the token of the request allows", &[], "Session"),
    view("/openapi.json", "openapi", "This description", &[], "Document"),
];

const REQUEST: RequestBody = RequestBody::Json("Request");
const INSPECT: RequestBody = RequestBody::Json("Inspect");
const UPLOADED: (u16, &str) = (200, "Upload");
const NOTES: RequestBody = RequestBody::Json("Notes");
const NONE: RequestBody = RequestBody::None;
const OF_BROKER: &str =
    "An operation of the broker's management API, which broker/openapi.json has";
const OF_OPERATION: RequestBody = RequestBody::Json("Document");
const LIST_EVENTS: &str = "text/event-stream#ListEvent";
const RUN_EVENTS: &str = "text/event-stream#RunEvent";

const UPLOAD: Operation = Operation {
    method: "post",
    path: "/uploads",
    id: "upload",
    summary: "Upload a plan, a scenario file or data",
    role: Role::Operator,
    body: RequestBody::File,
    query: &["!name"],
    answer: (201, "Upload"),
};

const DESCRIPTION: ApiDescription = ApiDescription {
    title: "Tacho console",
    summary: "Configure, start, watch, stop, list and compare runs.",
    version: env!("CARGO_PKG_VERSION"),
    base: BASE,
    security: "token",
    components: include_str!("components.json"),
    operations: &OPERATIONS,
};

/// The server of all operations.
pub(crate) fn router() -> Router<Api> {
    let add = |router: Router<Api>, operation: &Operation| match handler(operation.id) {
        Some(handler) => router.route(&format!("{BASE}{}", operation.path), handler),
        None => router,
    };
    let router = OPERATIONS.iter().fold(Router::new(), add);
    router.layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

/// What answers an operation.
fn handler(id: &str) -> Option<MethodRouter<Api>> {
    Some(match id {
        "scenarios" => get(chores::scenarios),
        "upload" => post(start::upload).layer(DefaultBodyLimit::max(uploads::BYTES_MAX)),
        "inspect" => post(start::inspect),
        "preview" => post(start::preview),
        "start" => post(start::start),
        "list" => get(look::list),
        "run" => get(look::run),
        "change" => patch(control::change),
        "delete" => delete(trash::delete),
        "restore" => post(trash::restore),
        "trash" => get(trash::list),
        "empty" => delete(trash::empty),
        "purge" => delete(trash::purge),
        "stop" => post(control::stop),
        "cancel" => post(control::cancel),
        "repeat" => post(control::repeat),
        "draft" => post(control::draft),
        "run_events" => get(chores::run_events),
        "step_events" => get(chores::step_events),
        "report" => get(files::report),
        "chinese_report" => get(files::chinese_report),
        "file" => get(files::file),
        "queue" => get(look::queue),
        "compare" => get(look::compare),
        "trends" => get(look::trends),
        "machine" => get(chores::machine),
        "agents" => get(chores::agents),
        "broker" => get(broker::about),
        "broker_look" => get(broker::pass_on),
        "broker_act" => post(broker::pass_on).layer(DefaultBodyLimit::max(BROKER_BYTES_MAX)),
        "broker_delete" => delete(broker::pass_on),
        "events" => get(chores::list_events),
        "session" => get(chores::session),
        "openapi" => get(async || Json(DESCRIPTION.document())),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_served_and_every_schema_described_once() {
        let faults = DESCRIPTION.faults(|id| handler(id).is_some());
        assert!(faults.is_empty(), "{faults:#?}");
        let described = DESCRIPTION.document();
        let paths = described["paths"].as_object().expect("has paths");
        let count: usize =
            paths.values().map(|path| path.as_object().map_or(0, |path| path.len())).sum();
        assert_eq!(count, OPERATIONS.len());
        assert!(handler("nothing").is_none());
    }

    #[test]
    fn only_operators_change_anything() {
        for operation in &OPERATIONS {
            let changes = operation.method != "get";
            assert_eq!(operation.role == Role::Operator, changes, "{}", operation.id);
        }
    }
}
