//! The operations of the API: one table from which the server and its description are made.

use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post};
use axum::{Json, Router};
use tacho_http::{ApiDescription, ApiError, Operation, RequestBody, Role};

use super::{
    Api, alarms, backup, bans, bridges, clients, configuration, drain, events, explain, gate,
    groups, history, keys, listeners, publish, retained, status, subscribers, top, topics, trace,
    users,
};

/// Where all of them are.
const BASE: &str = "/api/v1";
/// Bytes of a request beside the payload of a message, which grows in base64 and in JSON.
const BODY_BYTES_MIN: usize = 64 << 10;

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
    (method, path): (&'static str, &'static str),
    id: &'static str,
    summary: &'static str,
    body: RequestBody,
    query: &'static [&'static str],
    answer: (u16, &'static str),
) -> Operation {
    Operation { method, path, id, summary, role: Role::Operator, body, query, answer }
}

const fn operate(operation: Operation) -> Operation {
    Operation { role: Role::Operator, ..operation }
}

const fn administer(operation: Operation) -> Operation {
    Operation { role: Role::Administrator, ..operation }
}

const NONE: RequestBody = RequestBody::None;
const PAGE: [&str; 2] = ["limit", "cursor"];
const CLIENTS: [&str; 7] = ["client_id", "prefix", "user", "address", "state", "limit", "cursor"];
const EXPLAIN: [&str; 6] = ["!action", "topic", "qos", "retain", "client_id", "user"];
const EVENTS: [&str; 4] = ["events", "client_id", "prefix", "user"];
const TOP: [&str; 1] = ["limit"];
const TRACE: [&str; 8] =
    ["client_id", "user", "address", "topic", "payload", "payload_bytes", "seconds", "bytes"];

/// All operations.
const OPERATIONS: [Operation; 54] = [
    view("/status", "status", "State of the broker in a few figures", &[], "Status"),
    view("/history", "history", "The last hour or day, a value per point", &["span"], "History"),
    view("/session", "session", "Rights of the caller", &[], "Caller"),
    view("/clients", "clients", "Clients, filtered, page by page", &CLIENTS, "ClientPage"),
    view(
        "/clients/{client_id}",
        "client",
        "A client with its session, queues and counters",
        &[],
        "Client",
    ),
    view(
        "/clients/{client_id}/subscriptions",
        "subscriptions",
        "Subscriptions of a client",
        &["cursor"],
        "SubscriptionPage",
    ),
    act(
        ("delete", "/clients/{client_id}"),
        "kick",
        "Disconnect a client; with session=end its session ends, too",
        NONE,
        &["session"],
        (200, "Kicked"),
    ),
    view(
        "/subscribers",
        "subscribers",
        "Subscribers of exactly this filter",
        &["!filter", "limit", "cursor"],
        "SubscriberPage",
    ),
    view(
        "/receivers",
        "receivers",
        "Receivers of a message to this topic, and the filter of each",
        &["!topic", "limit", "cursor"],
        "ReceiverPage",
    ),
    view("/groups", "groups", "Shared groups and their queues", &PAGE, "GroupPage"),
    view("/group", "group", "A shared group with its members", &["!filter"], "Group"),
    view(
        "/retained",
        "retained",
        "Topics with retained messages that match a filter",
        &["filter", "limit", "cursor"],
        "RetainedPage",
    ),
    view("/retained/message", "retained_message", "A retained message", &["!topic"], "Retained"),
    act(
        ("delete", "/retained"),
        "delete_retained",
        "Delete the retained message of a topic, or those of a filter, up to 1000",
        NONE,
        &["topic", "filter", "cursor"],
        (200, "Deleted"),
    ),
    act(
        ("post", "/publish"),
        "publish",
        "Publish a message",
        RequestBody::Json("Publication"),
        &[],
        (200, "Published"),
    ),
    view("/bans", "bans", "Bans in force, with the source of each", &[], "BanList"),
    act(
        ("post", "/bans"),
        "ban",
        "Ban an address, a range, a client identifier or a user",
        RequestBody::Json("Ban"),
        &[],
        (204, ""),
    ),
    act(
        ("delete", "/bans"),
        "unban",
        "Lift a ban of an operator or for an offence",
        NONE,
        &["address", "client_id", "user"],
        (204, ""),
    ),
    view("/users", "users", "Users of the password files, with their roles", &PAGE, "UserPage"),
    view("/roles", "roles", "Roles of the rules file", &[], "RoleList"),
    view(
        "/explain",
        "explain",
        "Whether the rules in force allow a client something, and why",
        &EXPLAIN,
        "AccessAnswer",
    ),
    view("/listeners", "listeners", "Listeners and their connections", &[], "ListenerList"),
    act(
        ("post", "/listeners/{address}/stop"),
        "stop_listener",
        "Stop a listener; its connections stay",
        NONE,
        &[],
        (200, "Listener"),
    ),
    act(
        ("post", "/listeners/{address}/start"),
        "start_listener",
        "Start a stopped listener",
        NONE,
        &[],
        (200, "Listener"),
    ),
    view("/limits", "limits", "Limits, and how much of each is used", &[], "LimitList"),
    view("/bridges", "bridges", "Bridges and their connections", &[], "BridgeList"),
    administer(act(
        ("post", "/bridges"),
        "add_bridge",
        "Create a bridge; with replace=true instead of one created here",
        RequestBody::Json("BridgeConfiguration"),
        &["replace", "discard"],
        (201, "BridgeMade"),
    )),
    administer(act(
        ("delete", "/bridges/{name}"),
        "remove_bridge",
        "Remove a bridge created here",
        NONE,
        &["discard"],
        (204, ""),
    )),
    act(
        ("post", "/bridges/{name}"),
        "change_bridge",
        "Run, pause, drain or stop a bridge until the broker exits",
        RequestBody::Json("BridgeChange"),
        &[],
        (200, "BridgeChanged"),
    ),
    act(
        ("post", "/bridges/{name}/test"),
        "test_bridge",
        "Connect once as a bridge would; nothing is forwarded",
        NONE,
        &[],
        (200, "BridgeTrial"),
    ),
    administer(act(
        ("post", "/bridge-test"),
        "test_new_bridge",
        "The same for a bridge that does not exist",
        RequestBody::Json("BridgeConfiguration"),
        &[],
        (200, "BridgeTrial"),
    )),
    view("/alarms", "alarms", "Alarms, current and past", &[], "AlarmList"),
    view("/journal", "journal", "Size, garbage and condition of the journal", &[], "Journal"),
    view(
        "/config",
        "config",
        "The configuration in force, with the source of each value",
        &[],
        "Configuration",
    ),
    act(
        ("post", "/reload"),
        "reload",
        "Read configuration, certificates, users, rules and bans again, as SIGHUP does",
        NONE,
        &[],
        (200, "Reloaded"),
    ),
    view("/backup", "backup", "The last backup of the journal", &[], "Backup"),
    administer(act(
        ("post", "/backup"),
        "begin_backup",
        "Back up the journal into a directory on the broker's host",
        RequestBody::Json("BackupRequest"),
        &[],
        (200, "Backup"),
    )),
    view("/drain", "drain", "Progress of a drain", &[], "Drain"),
    act(
        ("post", "/drain"),
        "begin_drain",
        "Accept no more clients, disconnect the others, and exit",
        RequestBody::Json("DrainRequest"),
        &[],
        (200, "Drain"),
    ),
    act(("delete", "/drain"), "end_drain", "Accept clients again", NONE, &[], (200, "Drain")),
    view("/metrics", "metrics", "The metrics in the format of Prometheus", &[], "text/plain"),
    view("/events", "events", "Events of clients and bridges", &EVENTS, "text/event-stream"),
    view("/slow", "slow", "Slow clients, also of the past", &TOP, "SlowList"),
    view("/top/queues", "top_queues", "Clients with the largest queues", &TOP, "QueueList"),
    view("/top/retained", "top_retained", "The largest retained messages", &TOP, "LargestRetained"),
    view(
        "/top/publishers",
        "top_publishers",
        "Clients that publish most, counted for a few seconds",
        &["limit", "seconds"],
        "PublisherList",
    ),
    view("/topic-metrics", "topic_metrics", "Counted topic filters", &[], "TopicMetricList"),
    act(
        ("post", "/topic-metrics"),
        "count_topic",
        "Count the messages of a topic filter until the broker exits",
        RequestBody::Json("TopicMetricRequest"),
        &[],
        (204, ""),
    ),
    act(
        ("delete", "/topic-metrics"),
        "count_topic_no_more",
        "Stop counting the messages of a topic filter",
        NONE,
        &["!filter"],
        (204, ""),
    ),
    operate(view(
        "/trace",
        "trace",
        "Packets of clients and topics, with the decisions about them",
        &TRACE,
        "text/event-stream",
    )),
    administer(view("/keys", "keys", "Keys of this API", &[], "KeyList")),
    administer(act(
        ("post", "/keys"),
        "add_key",
        "Create a key, which is shown once",
        RequestBody::Json("KeyRequest"),
        &[],
        (201, "MadeKey"),
    )),
    administer(act(("delete", "/keys/{name}"), "remove_key", "Remove a key", NONE, &[], (204, ""))),
    view("/openapi.json", "openapi", "This description", &[], "Document"),
];

const DESCRIPTION: ApiDescription = ApiDescription {
    title: "Tacho broker",
    summary: "Inspect and operate a running broker.",
    version: env!("CARGO_PKG_VERSION"),
    base: BASE,
    security: "key",
    components: include_str!("components.json"),
    operations: &OPERATIONS,
};

/// Bytes of the body of a request.
pub(super) fn body_bytes_max(api: &Api) -> usize {
    BODY_BYTES_MIN + 2 * api.broker().config.limits.packet_size_max as usize
}

/// The server of all operations.
pub(super) fn router(api: Api) -> Router {
    let body_bytes_max = body_bytes_max(&api);
    let add = |router: Router<Api>, operation: &Operation| match handler(operation.id) {
        Some(handler) => {
            let handler = handler.layer(from_fn_with_state(operation.role, gate::require));
            router.route(&format!("{BASE}{}", operation.path), handler)
        }
        None => router,
    };
    let router = OPERATIONS.iter().fold(Router::new(), add);
    router.fallback(no_operation).layer(DefaultBodyLimit::max(body_bytes_max)).with_state(api)
}

async fn no_operation() -> ApiError {
    ApiError::not_found(format!("there is no such operation; {BASE}/openapi.json lists them"))
}

/// What answers an operation.
fn handler(id: &str) -> Option<MethodRouter<Api>> {
    Some(match id {
        "status" => get(status::status),
        "history" => get(history::history),
        "session" => get(keys::caller),
        "clients" => get(clients::list),
        "client" => get(clients::client),
        "subscriptions" => get(clients::subscriptions),
        "kick" => delete(clients::kick),
        "subscribers" => get(subscribers::of_filter),
        "receivers" => get(subscribers::of_topic),
        "groups" => get(groups::list),
        "group" => get(groups::group),
        "retained" => get(retained::list),
        "retained_message" => get(retained::read),
        "delete_retained" => delete(retained::delete),
        "publish" => post(publish::publish),
        "bans" => get(bans::list),
        "ban" => post(bans::ban),
        "unban" => delete(bans::unban),
        "users" => get(users::users),
        "roles" => get(users::roles),
        "explain" => get(explain::explain),
        "listeners" => get(listeners::list),
        "stop_listener" => post(listeners::stop),
        "start_listener" => post(listeners::start),
        "limits" => get(status::limits),
        "bridges" => get(bridges::list),
        "change_bridge" => post(bridges::change),
        "test_bridge" => post(bridges::test),
        "test_new_bridge" => post(bridges::test_new),
        "add_bridge" => post(bridges::add),
        "remove_bridge" => delete(bridges::remove),
        "alarms" => get(alarms::list),
        "journal" => get(status::journal),
        "config" => get(configuration::effective),
        "reload" => post(configuration::reload),
        "backup" => get(backup::status),
        "begin_backup" => post(backup::begin),
        "drain" => get(drain::status),
        "begin_drain" => post(drain::begin),
        "end_drain" => delete(drain::end),
        "metrics" => get(status::metrics),
        "events" => get(events::events),
        "trace" => get(trace::trace),
        "slow" => get(top::slow),
        "top_queues" => get(top::queues),
        "top_retained" => get(top::retained),
        "top_publishers" => get(top::publishers),
        "topic_metrics" => get(topics::list),
        "count_topic" => post(topics::add),
        "count_topic_no_more" => delete(topics::remove),
        "keys" => get(keys::list),
        "add_key" => post(keys::add),
        "remove_key" => delete(keys::remove),
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
        assert!(handler("nothing").is_none());
        for operation in &OPERATIONS {
            let is_viewers = operation.role == Role::Viewer;
            let looks = operation.method == "get" && !matches!(operation.id, "keys" | "trace");
            assert_eq!(is_viewers, looks, "{}", operation.id);
        }
    }
}
