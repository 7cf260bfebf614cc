//! Every key that a scenario file may have.

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: KeyKind,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// The type of a key's value.
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
    key("description_zh", Text, "The same in Chinese, for reports in that language."),
    key("seed", Whole(0, i64::MAX as u64), "Seed of payloads and random arrivals; 1."),
    key("machines", Whole(1, 1_000_000), "Virtual load machines, {{machine}} in templates; 1."),
    key(
        "headlines",
        Texts,
        "Figures at the top of the report: recovery, takeover, churn, retained, wills, isolation, cost, round-trip, drift, groups, restart, logins.",
    ),
    key("vars", Values, "Variables and their defaults; --var name=value changes them."),
    key("target", Table(TARGET), "The broker of groups without 'target'."),
    key("targets", Named(TARGET), "Named brokers; --broker NAME=URL."),
    key("bridges", Tables(BRIDGE), "Bridges between these brokers."),
    key("load", Table(LOAD), "Settings of the load generator."),
    key("phases", Table(PHASES), "Lengths of the phases."),
    key(
        "thresholds",
        Conditions,
        "Conditions such as e2e_p99 = \"<10ms\"; exit code 99 if one fails.",
    ),
    key("actions", Tables(ACTION), "Timed actions on clients and brokers in the measured phase."),
    required("groups", Named(GROUP), "Groups of clients with the same behaviour, by name."),
];

const ACTION: &[Key] = &[
    required("at", Span, "Time of the action, from the start of the measured phase."),
    key("every", Span, "Interval of repetition; once."),
    key("times", Whole(1, 1000), "With 'every': number of occurrences; until the phase ends."),
    key("over", Span, "Spread the clients over this time; all at once."),
    key(
        "disconnect",
        Table(DISCONNECTED),
        "Clients lose their connections; 'reconnect' says how they come back.",
    ),
    key("pause", Table(PAUSED), "Clients stop reading their sockets for a time."),
    key("takeover", Table(CLIENTS), "Clients connect a second time with the same client id."),
    key(
        "subscribe",
        Table(CLIENTS),
        "Clients subscribe; the group does not subscribe when it connects.",
    ),
    key("kill", Table(KILLED), "SIGKILL for a broker that the run started; it is restarted."),
    key(
        "run",
        Text,
        "Shell command; {dir} is the run directory, {port} and {pid} are the broker's.",
    ),
    key("timeout", Span, "With 'run': time limit of the command; 30s."),
];

const CLIENTS: &[Key] = &[
    required("group", Text, "Name of the group in [groups]."),
    key(
        "share",
        Number,
        "Share of its clients, above 0 and at most 1; 1. Each repetition selects others.",
    ),
];

const DISCONNECTED: &[Key] = &[
    required("group", Text, "Name of the group in [groups]."),
    key(
        "share",
        Number,
        "Share of its clients, above 0 and at most 1; 1. Each repetition selects others.",
    ),
    key(
        "cleanly",
        Flag,
        "Send DISCONNECT; false breaks connections, so wills are published; true.",
    ),
];

const PAUSED: &[Key] = &[
    required("group", Text, "Name of the group in [groups]."),
    key(
        "share",
        Number,
        "Share of its clients, above 0 and at most 1; 1. Each repetition selects others.",
    ),
    required("for", Span, "Length of the pause; less than the keep-alive."),
];

const KILLED: &[Key] = &[key("target", Text, "Name of the broker in [targets]; the default one.")];

const TARGET: &[Key] = &[
    key(
        "broker",
        Text,
        "mqtt://, mqtts://, ws:// or wss://host:port; without it the built-in broker.",
    ),
    key("version", VERSION, "Protocol version of its clients; \"5\"."),
    key("tls", Table(TLS), "Certificates and their verification."),
    key("kills", Whole(0, 1000), "Number of times the run kills the broker that it started; 0."),
];

const TLS: &[Key] = &[
    key("ca", Text, "PEM file of the authorities to trust instead of the system's."),
    key("cert", Text, "PEM file of the clients' certificate; with {{i}} in it each has its own."),
    key("key", Text, "PEM file of that certificate's key."),
    key("test_ca", Table(TEST_CA), "A CA for tests, which signs a certificate for each client."),
    key("insecure", Flag, "Do not verify the broker's certificate; false."),
    key("server_name", Text, "Name to verify instead of the host of the address."),
    key("alpn", Texts, "Application protocols to offer."),
    key("resume", Flag, "Resume TLS sessions instead of a full handshake each; false."),
];

const TEST_CA: &[Key] = &[
    required("cert", Text, "PEM file of its certificate."),
    required("key", Text, "PEM file of its private key (PKCS#8)."),
    key("common_name", Text, "Common name of a client; its user name or client identifier."),
];

const BRIDGE: &[Key] = &[
    required("from", Text, "The forwarding broker: a name in [targets]."),
    required("to", Text, "The receiving broker: a name in [targets]."),
    required("filter", Text, "Filter of the topics to forward."),
    key("strip", Text, "Prefix to remove from the topic."),
    key("prefix", Text, "Prefix to add afterwards."),
    key("connections", Whole(1, 1024), "Connections of the bridge between built-in brokers; 64."),
];

const LOAD: &[Key] = &[
    key("threads", Whole(1, 1024), "Generator threads; one per generator core."),
    key(
        "timing",
        Choice(&["auto", "sleep", "spin", "batch"]),
        "How threads wait; auto: they spin for up to 95 % of cores of their own, else sleep.",
    ),
    key(
        "source_addresses",
        Texts,
        "Addresses of this machine, or ranges such as 10.0.0.2-10.0.0.9, that clients use in turn.",
    ),
];

const PHASES: &[Key] = &[
    key("connect_timeout", Span, "Clients without CONNACK or SUBACK after this fail; 30s."),
    key("ready_probe", Flag, "Send one message over every path before the load; true."),
    key("warmup", Span, "Load before the measured phase; 5s."),
    key("measure", Span, "Measured load; 30s."),
    key(
        "messages",
        Whole(1, 1_000_000_000),
        "Instead: messages that the slowest publisher sends in the measured phase.",
    ),
    key("drain", Span, "Longest wait for outstanding messages afterwards; 5s."),
];

const GROUP: &[Key] = &[
    required("clients", Whole(0, i32::MAX as u64), "Number of clients."),
    key("client_id", Text, "Client identifiers; NAME_{{machine}}_{{i}}."),
    key("target", Text, "Name in [targets] of the broker to connect to."),
    key("version", VERSION, "Protocol version; the target's."),
    key("credentials", Text, "CSV file: client_id, username, password; a row per client."),
    key(
        "rows",
        Table(ROWS),
        "Format of the credentials file, and the assignment of rows to clients.",
    ),
    key("inflight", Whole(1, 65_535), "Unacknowledged QoS 1 and 2 messages of a client; 65535."),
    key(
        "waiting",
        Whole(1, u32::MAX as u64),
        "Messages that may wait for the in-flight window; 10000.",
    ),
    key("losses", Choice(&["offline_queue_full"]), "Losses that do not count as violations."),
    key("connect", Table(CONNECT), "How clients connect."),
    key("disconnect", Table(DISCONNECT), "How clients disconnect at the end; all at once."),
    key("will", Table(WILL), "The message that the broker publishes for a lost client."),
    key("offline", Table(OFFLINE), "Clients disconnect once during the load and come back."),
    key("absent", Flag, "Clients disconnect before the load and come back after it; false."),
    key("answers", Flag, "Answer each request with its payload and QoS (MQTT 5); false."),
    key("reconnect", Table(RECONNECT), "Reconnection after an unexpected end of a connection."),
    key(
        "login",
        Table(LOGIN),
        "Clients log in again and again during the load, and do nothing else.",
    ),
    key("publish", Tables(PUBLISH), "Publications of each client."),
    key("subscribe", Tables(SUBSCRIBE), "Subscriptions of each client."),
];

const ROWS: &[Key] = &[
    key("columns", Texts, "Column names, for a file without a header line."),
    key("delimiter", Text, "Separator of cells; \",\"."),
    key(
        "skip",
        Whole(0, u32::MAX as u64),
        "With 'columns': lines to skip at the start of the file; 0.",
    ),
    key("first", Whole(0, u32::MAX as u64), "The row of the first client, from 0; 0."),
    key(
        "every",
        Whole(0, u32::MAX as u64),
        "Rows from one client to the next; 0 gives all the same row; 1.",
    ),
    key(
        "per_machine",
        Whole(0, u32::MAX as u64),
        "Rows of each load machine, or 0: each has all of them; all share them.",
    ),
    key("recycle", Flag, "Start over after the last row; false."),
];

const CONNECT: &[Key] = &[
    key("ramp", Span, "The whole group connects within this time; 2s."),
    key("rate", PerSecond, "Instead of 'ramp': connections of the group per second."),
    key("clean_start", Flag, "Clean start (clean session before MQTT 5); true."),
    key("session_expiry", Span, "Session expiry interval; 0s."),
    key("keep_alive", Span, "Keep-alive; 0s turns it off; 300s."),
    key(
        "maximum_packet_size",
        Whole(1, 268_435_460),
        "Largest packet in bytes that the clients accept, which MQTT 5 announces in CONNECT.",
    ),
    key("username", Text, "User name; templates such as {{i}} make it unique per client."),
    key("password", Text, "Password; templates such as {{i}} make it unique per client."),
    key("password_file", Text, "Instead: a file with one password."),
    key("password_env", Text, "Instead: an environment variable with the password."),
    key(
        "scram",
        Choice(&["sha256", "sha512"]),
        "Log in by SCRAM over AUTH, with user name and password (MQTT 5).",
    ),
    key("token", Table(TOKEN), "Log in by a JSON Web Token, signed anew for each connection."),
];

const TOKEN: &[Key] = &[
    required("key_file", Text, "Secret, or private key in PEM, that signs; never in results."),
    key("algorithm", Text, "HS256 and so on; by the key: HS256, RS256, ES256, ES384 or EdDSA."),
    key("key_id", Text, "The 'kid' in the header of the tokens."),
    key(
        "claims",
        Values,
        "Claims; texts are templates. 'sub' is the user name or client identifier unless given.",
    ),
    key("lifetime", Span, "From its signature to its end; 1h."),
    key(
        "place",
        Choice(&["password", "username", "auth"]),
        "Where the token is; auth: method JWT, renewed by re-authentication; \"password\".",
    ),
];

const DISCONNECT: &[Key] = &[
    key("ramp", Span, "The whole group disconnects within this time."),
    key("rate", PerSecond, "Instead of 'ramp': connections closed per second."),
];

const WILL: &[Key] = &[
    required("topic", Text, "Topic of the will; a template."),
    key("payload", Text, "Payload of the will, as text; empty."),
    key("qos", QOS, "QoS of the will; 0."),
    key("retain", Flag, "Retain flag of the will; false."),
    key("delay", Span, "Will delay interval (MQTT 5); 0s."),
];

const OFFLINE: &[Key] = &[
    required("after", Span, "Time of the disconnect, from the start of the measured phase."),
    required("for", Span, "Length of the absence."),
    key("clean", Flag, "Send DISCONNECT (true) or break the connection; true."),
    key("queues_qos0", Flag, "Expect the broker to queue QoS 0 messages too; false."),
];

const RECONNECT: &[Key] = &[
    required(
        "attempts",
        Whole(1, u32::MAX as u64),
        "Consecutive attempts before the client counts as failed.",
    ),
    key("first", Span, "Pause before the first attempt; it doubles with each attempt; 100ms."),
    key("longest", Span, "Longest pause between two attempts; 10s."),
];

const LOGIN: &[Key] = &[
    required("rate", PerSecond, "Logins of the group per second; its clients take turns."),
    key("stay", Span, "Length of each stay; then the client sends DISCONNECT; 0s."),
    key("wrong_share", Number, "Share of logins with a wrong password, 0 to 1; 0."),
    key("unknown_share", Number, "Share of logins with the name of no user, 0 to 1; 0."),
];

const PUBLISH: &[Key] = &[
    required("topic", Text, "Topic name; templates such as {{i}} make it unique per client."),
    key(
        "response_topic",
        Text,
        "Makes messages requests: groups with 'answers' respond on this topic (MQTT 5).",
    ),
    key("qos", QOS, "QoS of the publications; 0."),
    key("retain", Flag, "Retain flag of the publications; false."),
    key("rate", Table(RATE), "Publish rate."),
    key(
        "model",
        Choice(&["open", "poisson", "bursts", "trace", "jmeter", "closed"]),
        "Schedule: even, random, in bursts, recorded, as JMeter, or closed loop.",
    ),
    key("burst", Whole(1, 1_000_000), "Messages in a burst."),
    key("trace", Table(TRACE), "With model = \"trace\": the recorded schedule."),
    key("wait", Flag, "model = \"jmeter\": wait for each acknowledgement; false."),
    key("window", Whole(1, 65_535), "model = \"closed\": messages in flight; 1."),
    key(
        "phase",
        Choice(&["uniform", "random", "aligned"]),
        "Offset of a stream within its period; uniform.",
    ),
    key("catch_up", Flag, "Send late messages late (true) or skip them; true."),
    key("payload", Table(PAYLOAD), "Payload of the messages; 128 random bytes."),
];

const RATE: &[Key] = &[
    key("total", PerSecond, "Messages per second over all clients of the group."),
    key("per_client", PerSecond, "Messages per second of each client."),
];

const TRACE: &[Key] = &[
    key("at", Spans, "Intended time of each message, from the start of the load."),
    key("rates", Tables(RATE_FROM), "Rates, each from a given time on."),
    key("file", Text, "CSV file with a column 'at' and optionally a column 'rate'."),
    key("repeat", Span, "Start over after this time."),
    key("each", Flag, "Each client plays the whole trace; otherwise the clients share it; false."),
    key("speed", Number, "Speed factor; 1."),
];

const RATE_FROM: &[Key] = &[
    required("from", Span, "Start of this rate, from the start of the trace."),
    required("rate", PerSecond, "Messages per second from this time on; may be 0."),
];

const PAYLOAD: &[Key] = &[
    key(
        "kind",
        Choice(&["random", "zeros", "text", "file", "csv", "jmeter"]),
        "Kind of payload; follows from the other keys.",
    ),
    key("size", Whole(24, 268_000_000), "Size in bytes, including the verification header; 128."),
    key("timestamp", Flag, "kind = \"jmeter\": start with time stamp and separator; true."),
    key("text", Text, "Text with fields such as {{seq}}, {{time_ms}}, {{random 1 6}}."),
    key("file", Text, "File whose content every message carries."),
    key("csv", Text, "CSV file with a row per message; 'text' refers to its columns."),
];

const SUBSCRIBE: &[Key] = &[
    required("filter", Text, "Topic filter; templates such as {{i}} make it unique per client."),
    key("share", Text, "Name of a shared group; equals $share/NAME/ in the filter."),
    key("qos", QOS, "Requested maximum QoS; 2."),
    key("no_local", Flag, "Do not send back the client's own messages (MQTT 5); false."),
    key("retain_handling", Whole(0, 2), "Retained messages: 0 all, 1 if new, 2 none (MQTT 5); 0."),
];
