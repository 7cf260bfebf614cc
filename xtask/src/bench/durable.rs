//! The durability cases: the cost of the disk, next to the same load in memory.

use super::case::{Case, Kind, Load, Subject};

/// Sessions of the restart case, and messages of each.
pub(super) const SESSIONS: u64 = 1000;
pub(super) const MESSAGES: u64 = 1000;

const CLOSED: &str = "bench/scenarios/durable-closed.toml";

/// Every case, in the order of the first round.
pub(super) fn all() -> Vec<Case> {
    let mut cases = vec![disk()];
    for subject in [Subject::Tacho { shards: 1 }, Subject::Durable] {
        for bytes in [32, 1024] {
            cases.push(pairs(subject, bytes));
        }
        for (qos, bytes) in [(1, 32), (1, 1024), (2, 32)] {
            cases.push(closed(subject, qos, bytes));
        }
        for qos in [0, 1, 2] {
            cases.push(shared(subject, qos));
        }
    }
    cases.push(Case {
        name: "durable_bytes".to_owned(),
        what: "QoS 1, 1 KiB, closed mode: bytes written per byte of payload".to_owned(),
        kind: Kind::WrittenBytes { load: closed_load(1, 1024) },
    });
    cases.push(Case {
        name: "durable_fanout".to_owned(),
        what: "messages of 1 KiB to 1,000 persistent sessions each, QoS 1: bytes written"
            .to_owned(),
        kind: Kind::FanOutBytes,
    });
    cases.push(Case {
        name: "durable_offline".to_owned(),
        what: format!(
            "{SESSIONS} sessions away, {MESSAGES} messages of 256 B for each, QoS 1; then the broker \
             is killed and started again, and the sessions drain"
        ),
        kind: Kind::Offline,
    });
    cases
}

fn disk() -> Case {
    Case {
        name: "disk".to_owned(),
        what: "4 KiB written and synced (fdatasync) repeatedly, without a broker".to_owned(),
        kind: Kind::Disk,
    }
}

fn name(subject: Subject) -> &'static str {
    if subject == Subject::Durable { "durable" } else { "memory" }
}

fn kept(subject: Subject) -> &'static str {
    if subject == Subject::Durable { "sessions fsynced" } else { "sessions in memory" }
}

/// The row of the BifroMQ report.
fn pairs(subject: Subject, bytes: u64) -> Case {
    let scenario = match bytes {
        32 => "false_300_300_qos1_p32_50mps",
        _ => "false_300_300_qos1_p1024_50mps",
    };
    let vars = vec![("ramp_up", "1s".to_owned()), ("warmup", "2s".to_owned())];
    Case {
        name: format!("{}_pairs_{bytes}", name(subject)),
        what: format!("{scenario}, {}", kept(subject)),
        kind: Kind::Load { subject, load: Load { scenario, vars } },
    }
}

fn closed(subject: Subject, qos: u8, bytes: u64) -> Case {
    Case {
        name: format!("{}_closed_qos{qos}_{bytes}", name(subject)),
        what: format!(
            "closed mode, window 16, 100 to 100 persistent sessions, QoS {qos}, {bytes} B, {}",
            kept(subject)
        ),
        kind: Kind::Load { subject, load: closed_load(qos, bytes) },
    }
}

fn closed_load(qos: u8, bytes: u64) -> Load {
    let vars = vec![("qos", qos.to_string()), ("payload_size", bytes.to_string())];
    Load { scenario: CLOSED, vars }
}

/// The rows of the BifroMQ report with a shared subscription.
fn shared(subject: Subject, qos: u8) -> Case {
    let scenario = match qos {
        0 => "false_share_5k_50_qos0_p1024_1mps",
        1 => "false_share_5k_50_qos1_p1024_1mps",
        _ => "false_share_5k_50_qos2_p1024_1mps",
    };
    Case {
        name: format!("{}_share_qos{qos}", name(subject)),
        what: format!("{scenario}, {}", kept(subject)),
        kind: Kind::Load {
            subject,
            load: Load { scenario, vars: vec![("warmup", "2s".to_owned())] },
        },
    }
}
