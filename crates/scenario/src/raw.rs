//! A scenario file as typed: shapes and types only, no judgement.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::quantity::{PerSecond, TimeSpan, Whole};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a scenario")]
pub(super) struct RawScenario {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) description_zh: String,
    pub(super) seed: Option<Spanned<Whole>>,
    pub(super) machines: Option<Spanned<Whole>>,
    #[serde(default)]
    pub(super) target: RawTarget,
    #[serde(default)]
    pub(super) targets: BTreeMap<Spanned<String>, RawTarget>,
    #[serde(default)]
    pub(super) bridges: Vec<RawBridge>,
    #[serde(default)]
    pub(super) load: RawLoad,
    #[serde(default)]
    pub(super) phases: RawPhases,
    #[serde(default)]
    pub(super) thresholds: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    pub(super) headlines: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) actions: Vec<Spanned<RawAction>>,
    pub(super) groups: Spanned<BTreeMap<Spanned<String>, RawGroup>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes a timed action")]
pub(super) struct RawAction {
    pub(super) at: Spanned<TimeSpan>,
    pub(super) every: Option<Spanned<TimeSpan>>,
    pub(super) times: Option<Spanned<Whole>>,
    pub(super) over: Option<Spanned<TimeSpan>>,
    pub(super) timeout: Option<Spanned<TimeSpan>>,
    pub(super) disconnect: Option<RawDrop>,
    pub(super) pause: Option<RawPause>,
    pub(super) takeover: Option<RawClients>,
    pub(super) subscribe: Option<RawClients>,
    pub(super) kill: Option<RawKill>,
    pub(super) run: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { group = \"sub\", share = 0.5 }")]
pub(super) struct RawClients {
    pub(super) group: Spanned<String>,
    pub(super) share: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { group = \"sub\", cleanly = false }")]
pub(super) struct RawDrop {
    group: Spanned<String>,
    share: Option<Spanned<f64>>,
    #[serde(default = "yes")]
    pub(super) cleanly: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { group = \"sub\", for = \"5s\" }")]
pub(super) struct RawPause {
    group: Spanned<String>,
    share: Option<Spanned<f64>>,
    #[serde(rename = "for")]
    pub(super) length: Spanned<TimeSpan>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { target = \"node1\" }, or {}")]
pub(super) struct RawKill {
    pub(super) target: Option<Spanned<String>>,
}

const fn yes() -> bool {
    true
}

impl RawDrop {
    pub(super) fn clients(&self) -> RawClients {
        RawClients { group: self.group.clone(), share: self.share.clone() }
    }
}

impl RawPause {
    pub(super) fn clients(&self) -> RawClients {
        RawClients { group: self.group.clone(), share: self.share.clone() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table of target settings")]
pub(super) struct RawTarget {
    pub(super) broker: Option<Spanned<String>>,
    pub(super) version: Option<Spanned<String>>,
    pub(super) tls: Option<Spanned<RawTls>>,
    pub(super) kills: Option<Spanned<Whole>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table of TLS settings")]
pub(super) struct RawTls {
    pub(super) ca: Option<Spanned<PathBuf>>,
    pub(super) cert: Option<Spanned<String>>,
    pub(super) key: Option<Spanned<String>>,
    pub(super) test_ca: Option<Spanned<RawTestCa>>,
    #[serde(default)]
    pub(super) insecure: bool,
    pub(super) server_name: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) alpn: Vec<Spanned<String>>,
    pub(super) resume: Option<Spanned<bool>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { cert = \"ca.pem\", key = \"ca.key\" }")]
pub(super) struct RawTestCa {
    pub(super) cert: Spanned<PathBuf>,
    pub(super) key: Spanned<PathBuf>,
    pub(super) common_name: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes a bridge between two brokers")]
pub(super) struct RawBridge {
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<String>,
    pub(super) filter: Spanned<String>,
    #[serde(default)]
    pub(super) strip: String,
    #[serde(default)]
    pub(super) prefix: String,
    pub(super) connections: Option<Spanned<Whole>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table of load settings")]
pub(super) struct RawLoad {
    pub(super) threads: Option<Spanned<Whole>>,
    pub(super) timing: Option<Spanned<String>>,
    pub(super) source_addresses: Option<Spanned<Vec<String>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table of phases")]
pub(super) struct RawPhases {
    pub(super) connect_timeout: Option<Spanned<TimeSpan>>,
    pub(super) ready_probe: Option<bool>,
    pub(super) warmup: Option<Spanned<TimeSpan>>,
    pub(super) measure: Option<Spanned<TimeSpan>>,
    pub(super) messages: Option<Spanned<Whole>>,
    pub(super) drain: Option<Spanned<TimeSpan>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes a group of clients")]
pub(super) struct RawGroup {
    pub(super) clients: Spanned<Whole>,
    pub(super) client_id: Option<Spanned<String>>,
    pub(super) target: Option<Spanned<String>>,
    pub(super) version: Option<Spanned<String>>,
    pub(super) credentials: Option<Spanned<PathBuf>>,
    pub(super) rows: Option<Spanned<RawRows>>,
    pub(super) losses: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) connect: RawConnect,
    #[serde(default)]
    pub(super) disconnect: RawDisconnect,
    pub(super) will: Option<RawWill>,
    pub(super) offline: Option<RawOffline>,
    #[serde(default)]
    pub(super) absent: Option<Spanned<bool>>,
    pub(super) answers: Option<Spanned<bool>>,
    pub(super) reconnect: Option<RawReconnect>,
    pub(super) login: Option<Spanned<RawLogin>>,
    #[serde(default)]
    pub(super) publish: Vec<RawPublish>,
    #[serde(default)]
    pub(super) subscribe: Vec<RawSubscribe>,
    pub(super) inflight: Option<Spanned<Whole>>,
    pub(super) waiting: Option<Spanned<Whole>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table of connect settings")]
pub(super) struct RawConnect {
    pub(super) ramp: Option<Spanned<TimeSpan>>,
    pub(super) rate: Option<Spanned<PerSecond>>,
    pub(super) clean_start: Option<bool>,
    pub(super) session_expiry: Option<Spanned<TimeSpan>>,
    pub(super) keep_alive: Option<Spanned<TimeSpan>>,
    pub(super) maximum_packet_size: Option<Spanned<Whole>>,
    pub(super) username: Option<Spanned<String>>,
    pub(super) password: Option<Spanned<String>>,
    pub(super) password_file: Option<Spanned<PathBuf>>,
    pub(super) password_env: Option<Spanned<String>>,
    pub(super) scram: Option<Spanned<String>>,
    pub(super) token: Option<Spanned<RawToken>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { key_file = \"token.key\" }")]
pub(super) struct RawToken {
    pub(super) key_file: Spanned<PathBuf>,
    pub(super) algorithm: Option<String>,
    pub(super) key_id: Option<String>,
    #[serde(default)]
    pub(super) claims: BTreeMap<Spanned<String>, Spanned<RawClaim>>,
    pub(super) lifetime: Option<Spanned<TimeSpan>>,
    pub(super) place: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a text, a number, true or false")]
pub(super) enum RawClaim {
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes publications")]
pub(super) struct RawPublish {
    pub(super) topic: Spanned<String>,
    pub(super) response_topic: Option<Spanned<String>>,
    pub(super) qos: Option<Spanned<Whole>>,
    #[serde(default)]
    pub(super) retain: bool,
    pub(super) rate: Option<Spanned<RawRate>>,
    pub(super) burst: Option<Spanned<Whole>>,
    pub(super) trace: Option<Spanned<RawTrace>>,
    pub(super) wait: Option<bool>,
    pub(super) model: Option<Spanned<String>>,
    pub(super) window: Option<Spanned<Whole>>,
    pub(super) phase: Option<Spanned<String>>,
    pub(super) catch_up: Option<bool>,
    #[serde(default)]
    pub(super) payload: RawPayload,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { total = 100 } or { per_client = 10 }")]
pub(super) struct RawRate {
    pub(super) total: Option<Spanned<PerSecond>>,
    pub(super) per_client: Option<Spanned<PerSecond>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes a trace")]
pub(super) struct RawTrace {
    pub(super) at: Option<Spanned<Vec<TimeSpan>>>,
    pub(super) rates: Option<Spanned<Vec<RawRateFrom>>>,
    pub(super) file: Option<Spanned<PathBuf>>,
    pub(super) repeat: Option<Spanned<TimeSpan>>,
    #[serde(default)]
    pub(super) each: bool,
    pub(super) speed: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { from = \"10s\", rate = 100 }")]
pub(super) struct RawRateFrom {
    pub(super) from: TimeSpan,
    pub(super) rate: PerSecond,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { size = 128 }")]
pub(super) struct RawPayload {
    pub(super) kind: Option<Spanned<String>>,
    pub(super) size: Option<Spanned<Whole>>,
    pub(super) timestamp: Option<Spanned<bool>>,
    pub(super) text: Option<Spanned<String>>,
    pub(super) file: Option<Spanned<PathBuf>>,
    pub(super) csv: Option<Spanned<PathBuf>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes a subscription")]
pub(super) struct RawSubscribe {
    pub(super) filter: Spanned<String>,
    pub(super) share: Option<Spanned<String>>,
    pub(super) qos: Option<Spanned<Whole>>,
    pub(super) no_local: Option<Spanned<bool>>,
    pub(super) retain_handling: Option<Spanned<Whole>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { ramp = \"2s\" }")]
pub(super) struct RawDisconnect {
    pub(super) rate: Option<Spanned<PerSecond>>,
    pub(super) ramp: Option<Spanned<TimeSpan>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that describes a will")]
pub(super) struct RawWill {
    pub(super) topic: Spanned<String>,
    #[serde(default)]
    pub(super) payload: String,
    pub(super) qos: Option<Spanned<Whole>>,
    #[serde(default)]
    pub(super) retain: bool,
    pub(super) delay: Option<TimeSpan>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table that describes the rows of a file")]
pub(super) struct RawRows {
    pub(super) columns: Option<Spanned<Vec<String>>>,
    pub(super) delimiter: Option<Spanned<String>>,
    pub(super) skip: Option<Spanned<Whole>>,
    pub(super) first: Option<Spanned<Whole>>,
    pub(super) every: Option<Spanned<Whole>>,
    pub(super) per_machine: Option<Spanned<Whole>>,
    pub(super) recycle: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { after = \"5s\", for = \"10s\" }")]
pub(super) struct RawOffline {
    pub(super) after: TimeSpan,
    #[serde(rename = "for")]
    pub(super) length: Spanned<TimeSpan>,
    pub(super) clean: Option<bool>,
    #[serde(default)]
    pub(super) queues_qos0: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { rate = \"100/s\" }")]
pub(super) struct RawLogin {
    pub(super) rate: Spanned<PerSecond>,
    pub(super) stay: Option<TimeSpan>,
    pub(super) wrong_share: Option<Spanned<f64>>,
    pub(super) unknown_share: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { attempts = 10 }")]
pub(super) struct RawReconnect {
    pub(super) attempts: Spanned<Whole>,
    pub(super) first: Option<Spanned<TimeSpan>>,
    pub(super) longest: Option<Spanned<TimeSpan>>,
}
