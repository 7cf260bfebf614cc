//! Every key that a scenario file may have.

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: KeyKind,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// What stands behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyKind {
    Text,
    Flag,
    /// From, to.
    Whole(u64, u64),
    Number,
    /// A length of time.
    Span,
    /// A rate.
    PerSecond,
    Choice(&'static [&'static str]),
    Texts,
    Spans,
    /// Variables: any names, plain values.
    Values,
    /// Thresholds: any names, conditions.
    Conditions,
    Table(&'static [Key]),
    /// An array of tables.
    Tables(&'static [Key]),
    /// Tables by a name that the writer chooses.
    Named(&'static [Key]),
}

use KeyKind::*;

const fn key(name: &'static str, kind: KeyKind, about: &'static str) -> Key {
    Key { name, kind, required: false, about }
}

const fn required(name: &'static str, kind: KeyKind, about: &'static str) -> Key {
    Key { name, kind, required: true, about }
}

const QOS: KeyKind = Whole(0, 2);
const VERSION: KeyKind = Choice(&["3", "3.1", "4", "3.1.1", "5", "5.0"]);

/// The file as a whole.
pub(crate) const SCENARIO: &[Key] = &[
    required("name", Text, "Short name; part of the run directory's name."),
    key("description", Text, "One sentence."),
    key("seed", Whole(0, i64::MAX as u64), "Seed of payloads and random arrivals; 1."),
    key("machines", Whole(1, 1_000_000), "Virtual load machines, {{machine}} in strings; 1."),
    key(
        "headlines",
        Texts,
        "Figures on top: recovery, takeover, churn, retained, wills, isolation, cost, round-trip, drift, groups, restart.",
    ),
    key("vars", Values, "Variables and their defaults; --var name=value changes them."),
    key("target", Table(TARGET), "The broker of the groups that name none."),
    key("targets", Named(TARGET), "Further brokers by name; --broker NAME=URL."),
    key("bridges", Tables(BRIDGE), "How these brokers pass messages on to each other."),
    key("load", Table(LOAD), "How the generator works."),
    key("phases", Table(PHASES), "How long the phases are."),
    key("thresholds", Conditions, "What must hold, such as e2e_p99 = \"<10ms\"; exit code 99."),
    key(
        "actions",
        Tables(ACTION),
        "What happens to clients and brokers while the run is measured.",
    ),
    required("groups", Named(GROUP), "Groups of clients that do the same, by name."),
];

const ACTION: &[Key] = &[
    required("at", Span, "When, from the start of the measured phase."),
    key("every", Span, "Again and again after so long; once."),
    key("times", Whole(1, 1000), "With 'every': how often in all; until the phase ends."),
    key("over", Span, "One client after the other within this time; all at once."),
    key(
        "disconnect",
        Table(DISCONNECTED),
        "Clients lose their connections; 'reconnect' says how they come back.",
    ),
    key("pause", Table(PAUSED), "Clients stop reading their sockets for a time."),
    key("takeover", Table(CLIENTS), "Clients connect a second time with the same client id."),
    key("subscribe", Table(CLIENTS), "Clients subscribe that have not: the group waits for this."),
    key("kill", Table(KILLED), "SIGKILL for a broker that the run started; it is started again."),
    key(
        "run",
        Text,
        "A command for the shell; {dir} is the run directory, {port} and {pid} the broker's.",
    ),
    key("timeout", Span, "With 'run': the command is ended after this long; 30s."),
];

const CLIENTS: &[Key] = &[
    required("group", Text, "Name of the group in [groups]."),
    key(
        "share",
        Number,
        "Share of its clients, above 0 and at most 1; 1. Each repetition takes others.",
    ),
];

const DISCONNECTED: &[Key] = &[
    required("group", Text, "Name of the group in [groups]."),
    key(
        "share",
        Number,
        "Share of its clients, above 0 and at most 1; 1. Each repetition takes others.",
    ),
    key(
        "cleanly",
        Flag,
        "With DISCONNECT; false breaks connections, and wills are published; true.",
    ),
];

const PAUSED: &[Key] = &[
    required("group", Text, "Name of the group in [groups]."),
    key(
        "share",
        Number,
        "Share of its clients, above 0 and at most 1; 1. Each repetition takes others.",
    ),
    required("for", Span, "How long; less than the keep-alive."),
];

const KILLED: &[Key] = &[key("target", Text, "Name of the broker in [targets]; the default one.")];

const TARGET: &[Key] = &[
    key("broker", Text, "mqtt://, mqtts://, ws:// or wss://host:port; without it Tacho's own."),
    key("version", VERSION, "Protocol version of its clients; \"5\"."),
    key("tls", Table(TLS), "Certificates and how they are verified."),
    key("kills", Whole(0, 1000), "How often the run kills the broker that it started; 0."),
];

const TLS: &[Key] = &[
    key("ca", Text, "PEM file of the authorities to trust instead of the system's."),
    key("cert", Text, "PEM file of the clients' certificate."),
    key("key", Text, "PEM file of that certificate's key."),
    key("insecure", Flag, "Do not verify the broker's certificate; false."),
    key("server_name", Text, "Name to verify instead of the host of the address."),
    key("alpn", Texts, "Application protocols to offer."),
];

const BRIDGE: &[Key] = &[
    required("from", Text, "The broker that passes messages on: a name of [targets]."),
    required("to", Text, "The broker that they arrive at: a name of [targets]."),
    required("filter", Text, "Which topics are passed on."),
    key("strip", Text, "What is cut off in front of the topic."),
    key("prefix", Text, "What is then put in front of it."),
    key("connections", Whole(1, 1024), "Of the bridge between Tacho's own brokers; 64."),
];

const LOAD: &[Key] = &[
    key("threads", Whole(1, 1024), "Generator threads; one per generator core."),
    key(
        "timing",
        Choice(&["sleep", "spin", "batch"]),
        "How threads wait; spin takes whole cores, batch costs the least and is late by 0.5 ms.",
    ),
];

const PHASES: &[Key] = &[
    key("connect_timeout", Span, "Clients without CONNACK or SUBACK after this fail; 30s."),
    key("ready_probe", Flag, "One message over every path before the load; true."),
    key("warmup", Span, "Load that is not measured; 5s."),
    key("measure", Span, "Load that is measured; 30s."),
    key("messages", Whole(1, 1_000_000_000), "Or: until the slowest publisher has sent so many."),
    key("drain", Span, "Longest wait for outstanding messages afterwards; 5s."),
];

const GROUP: &[Key] = &[
    required("clients", Whole(0, i32::MAX as u64), "How many clients."),
    key("client_id", Text, "Their identifiers; NAME_{{machine}}_{{i}}."),
    key("target", Text, "Name of the broker in [targets] that they connect to."),
    key("version", VERSION, "Their protocol version; the broker's."),
    key("credentials", Text, "CSV file: client_id, username, password; a row per client."),
    key("rows", Table(ROWS), "How that file is read, and which row a client gets."),
    key("inflight", Whole(1, 65_535), "QoS 1 and 2 messages of a client unacknowledged; 65535."),
    key("waiting", Whole(1, u32::MAX as u64), "Messages that may wait for that window; 10000."),
    key("losses", Choice(&["offline_queue_full"]), "Losses that are no violation."),
    key("connect", Table(CONNECT), "How they connect."),
    key("disconnect", Table(DISCONNECT), "How they leave at the end; all at once."),
    key("will", Table(WILL), "The message that the broker publishes for a lost client."),
    key("offline", Table(OFFLINE), "They leave once during the load and come back."),
    key("absent", Flag, "They leave before the load and come back when it is over; false."),
    key("answers", Flag, "They answer requests with their own payload and QoS (MQTT 5); false."),
    key("reconnect", Table(RECONNECT), "What follows an unexpected end of a connection."),
    key("publish", Tables(PUBLISH), "What each of them publishes."),
    key("subscribe", Tables(SUBSCRIBE), "What each of them subscribes to."),
];

const ROWS: &[Key] = &[
    key("columns", Texts, "Names of the columns, where the first line of the file has none."),
    key("delimiter", Text, "The character between two cells; \",\"."),
    key("skip", Whole(0, u32::MAX as u64), "Lines in front that are no rows, with columns; 0."),
    key("first", Whole(0, u32::MAX as u64), "The row of the first client, from 0; 0."),
    key("every", Whole(0, u32::MAX as u64), "Rows from a client to the next, 0 for one row; 1."),
    key("per_machine", Whole(1, u32::MAX as u64), "Rows of each load machine; all share them."),
    key("recycle", Flag, "Begin again behind the last row; false."),
];

const CONNECT: &[Key] = &[
    key("ramp", Span, "All of the group connect within this time; 2s."),
    key("rate", PerSecond, "Or: connections per second of the group."),
    key("clean_start", Flag, "Clean start, before MQTT 5 clean session; true."),
    key("session_expiry", Span, "How long sessions outlive their connections; 0s."),
    key("keep_alive", Span, "Keep-alive; 0s turns it off; 300s."),
    key("username", Text, "User name; {{i}} and the like make one per client."),
    key("password", Text, "Password; {{i}} and the like make one per client."),
];

const DISCONNECT: &[Key] = &[
    key("ramp", Span, "All of the group leave within this time."),
    key("rate", PerSecond, "Or: connections closed per second."),
];

const WILL: &[Key] = &[
    required("topic", Text, "Topic of the will; may differ from client to client."),
    key("payload", Text, "Text of the will; empty."),
    key("qos", QOS, "QoS of the will; 0."),
    key("retain", Flag, "Retain flag of the will; false."),
    key("delay", Span, "How long the broker waits before it publishes (MQTT 5); 0s."),
];

const OFFLINE: &[Key] = &[
    required("after", Span, "From the start of the measured phase until they leave."),
    required("for", Span, "How long they stay away."),
    key("clean", Flag, "Leave with DISCONNECT (true) or break the connection; true."),
    key("queues_qos0", Flag, "The broker keeps QoS 0 messages for them too; false."),
];

const RECONNECT: &[Key] = &[
    required("attempts", Whole(1, u32::MAX as u64), "In a row, before the client has failed."),
    key("first", Span, "Pause before the first attempt, doubled each time; 100ms."),
    key("longest", Span, "Longest pause between two attempts; 10s."),
];

const PUBLISH: &[Key] = &[
    required("topic", Text, "Topic name; {{i}} and the like make one per client."),
    key(
        "response_topic",
        Text,
        "Messages are requests, answered to this topic by groups with 'answers' (MQTT 5).",
    ),
    key("qos", QOS, "QoS of the publications; 0."),
    key("retain", Flag, "Retain flag of the publications; false."),
    key("rate", Table(RATE), "How many per second."),
    key(
        "model",
        Choice(&["open", "poisson", "bursts", "trace", "jmeter", "closed"]),
        "When messages are due: even steps, random, bursts, as recorded, as JMeter, or at once.",
    ),
    key("burst", Whole(1, 1_000_000), "Messages in a burst."),
    key("trace", Table(TRACE), "When messages are due, spelled out."),
    key("wait", Flag, "model = \"jmeter\": wait for each acknowledgement; false."),
    key("window", Whole(1, 65_535), "model = \"closed\": messages under way; 1."),
    key(
        "phase",
        Choice(&["uniform", "random", "aligned"]),
        "Where in its period a stream starts; uniform.",
    ),
    key("catch_up", Flag, "Send late messages late (true) or skip them; true."),
    key("payload", Table(PAYLOAD), "What a message consists of; 128 random bytes."),
];

const RATE: &[Key] = &[
    key("total", PerSecond, "Messages per second over all clients of the group."),
    key("per_client", PerSecond, "Messages per second of each client."),
];

const TRACE: &[Key] = &[
    key("at", Spans, "When each message is due, from the start of the load."),
    key("rates", Tables(RATE_FROM), "Rates, each from some time on."),
    key("file", Text, "CSV file with a column 'at' and perhaps a column 'rate'."),
    key("repeat", Span, "Begin again after this long."),
    key("each", Flag, "Each client plays all of it; otherwise they share it; false."),
    key("speed", Number, "Play it that many times as fast; 1."),
];

const RATE_FROM: &[Key] = &[
    required("from", Span, "From when on, since the start of the trace."),
    required("rate", PerSecond, "Messages per second from then on; may be 0."),
];

const PAYLOAD: &[Key] = &[
    key(
        "kind",
        Choice(&["random", "zeros", "text", "file", "csv", "jmeter"]),
        "What it is; follows from the other keys.",
    ),
    key("size", Whole(24, 268_000_000), "Bytes, what verification needs included; 128."),
    key("timestamp", Flag, "kind = \"jmeter\": time and separator in front; true."),
    key("text", Text, "Text with fields such as {{seq}}, {{time_ms}}, {{random 1 6}}."),
    key("file", Text, "The same file in every message."),
    key("csv", Text, "CSV file: a row per message; its columns are fields of 'text'."),
];

const SUBSCRIBE: &[Key] = &[
    required("filter", Text, "Topic filter; {{i}} and the like make one per client."),
    key("share", Text, "Name of a shared group: the same as $share/NAME/ in the filter."),
    key("qos", QOS, "Maximum QoS asked for; 2."),
    key("no_local", Flag, "Do not send back the client's own messages (MQTT 5); false."),
    key("retain_handling", Whole(0, 2), "Retained messages: 0 all, 1 if new, 2 none (MQTT 5); 0."),
];
