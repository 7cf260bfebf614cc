//! Connections: as many as possible one after the other, and thousands that come back at once.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::certificates::ServerCertificates;
use super::figures::Sample;
use super::login::Programs;
use crate::brokers::{MOSQUITTO_FAST, on_chosen_port};

/// The scenario of storms.
pub(super) const STORM: &str = "reconnect-storm";
/// Where clients of a storm connect from: connections that have ended keep their local ports for a
/// minute, and one address has 28,000.
pub(super) const STORM_SOURCES: &str = "--source-address=127.0.0.2-127.0.0.5";

type Vars = Vec<(&'static str, String)>;

/// How clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Tcp,
    /// A key exchange and a signature each.
    TlsFull,
    /// TLS sessions are resumed.
    TlsResumed,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Tcp, Self::TlsFull, Self::TlsResumed];

    /// The last part of its cases' names.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::TlsFull => "tls_full",
            Self::TlsResumed => "tls_resumed",
        }
    }

    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::TlsFull => "TLS, P-256, full handshakes",
            Self::TlsResumed => "TLS, P-256, resumed sessions",
        }
    }

    /// Variables of the scenario `login`: 50 clients connect again as soon as they have left.
    pub(super) fn one_by_one() -> Vars {
        let vars = [("users", "50"), ("rate", "20000"), ("warmup", "2s"), ("drain", "2s")];
        vars.map(|(name, value)| (name, value.to_owned())).into()
    }

    /// Variables of the scenario of storms.
    pub(super) fn storm(self) -> Vars {
        let clients = self.storm_clients().to_string();
        let vars = [
            ("clients", &*clients),
            ("storms", "1"),
            ("first_storm", "3s"),
            ("bystanders", "50"),
            ("ramp_up", "8s"),
            ("warmup", "1s"),
            ("duration", "15s"),
        ];
        vars.map(|(name, value)| (name, value.to_owned())).into()
    }

    /// Clients that come back at once.
    pub(super) const fn storm_clients(self) -> u64 {
        match self {
            Self::Tcp => 18_000,
            Self::TlsFull | Self::TlsResumed => 5_000,
        }
    }
}

/// Arguments of `tacho run`: the command of mosquitto or Tacho, and how clients reach it. Files go
/// to `folder`.
pub(super) fn arguments(
    is_mosquitto: bool,
    way: Way,
    programs: Programs<'_>,
    folder: &Path,
) -> Result<Vec<String>> {
    fs::create_dir_all(folder).context("cannot create a folder")?;
    let tls = match way {
        Way::Tcp => None,
        _ => Some(ServerCertificates::make(folder)?),
    };
    let command = match is_mosquitto {
        true => mosquitto(tls.as_ref(), programs, folder)?,
        false => {
            let tacho = format!("{} broker --quiet --shards 1 --listen", programs.tacho.display());
            match &tls {
                None => format!("{tacho} 127.0.0.1:{{port}}"),
                Some(ServerCertificates { cert, key, .. }) => {
                    format!("{tacho} tls://127.0.0.1:{{port}} --tls-cert {cert} --tls-key {key}")
                }
            }
        }
    };
    let mut arguments = vec![format!("--broker-cmd={command}")];
    if let Some(ServerCertificates { ca, .. }) = tls {
        arguments.extend(["--transport", "tls", "--ca", &ca].map(str::to_owned));
    }
    if way == Way::TlsResumed {
        arguments.push("--tls-resume".to_owned());
    }
    Ok(arguments)
}

fn mosquitto(
    tls: Option<&ServerCertificates>,
    programs: Programs<'_>,
    folder: &Path,
) -> Result<String> {
    let program = programs.mosquitto.context("no mosquitto on this machine")?;
    // Started by root, it reads the key as another user otherwise.
    let mut text = format!("listener PORT 127.0.0.1\nuser root\n{MOSQUITTO_FAST}");
    if let Some(ServerCertificates { ca, cert, key, .. }) = tls {
        text.push_str(&format!("cafile {ca}\ncertfile {cert}\nkeyfile {key}\n"));
    }
    let [config, now] =
        ["connects.conf", "now.conf"].map(|name| folder.join(name).display().to_string());
    fs::write(&config, text).with_context(|| format!("cannot write {config:?}"))?;
    Ok(on_chosen_port(&config, &now, &format!("{} -c", program.display())))
}

/// The figures of a storm, from the run's summary; none where it did not come to one.
pub(super) fn figures(sample: &mut Sample, summary: &Value) {
    let Some(storm) = summary.pointer("/actions/0") else { return };
    let figure = |name: &str| storm.get(name).and_then(Value::as_f64);
    sample.set("storm_connected_ms_p99", figure("connected_99_ms"));
    sample.set("storm_served_ms_p99", figure("ready_99_ms"));
    sample.set("storm_attempts_failed", figure("retried"));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_of_a_storm_are_those_of_its_action() {
        let action = json!({ "connected_99_ms": 812.5, "ready_99_ms": 840, "retried": 3 });
        let mut sample = Sample::new("x", 1);
        figures(&mut sample, &json!({ "actions": [action] }));
        let figure = |name| sample.metrics.get(name).copied();
        assert_eq!(figure("storm_connected_ms_p99"), Some(812.5));
        assert_eq!(figure("storm_served_ms_p99"), Some(840.0));
        assert_eq!(figure("storm_attempts_failed"), Some(3.0));
        let mut other = Sample::new("y", 1);
        figures(&mut other, &json!({ "actions": [] }));
        assert!(other.metrics.is_empty());
    }

    #[test]
    fn each_way_has_its_command_and_flags() {
        let folder = tempfile::tempdir().expect("a folder");
        let programs = Programs { tacho: Path::new("tacho"), mosquitto: Some(Path::new("mosq")) };
        let of = |is_mosquitto| {
            arguments(is_mosquitto, Way::Tcp, programs, folder.path()).expect("prepares")
        };
        let command = "--broker-cmd=tacho broker --quiet --shards 1 --listen 127.0.0.1:{port}";
        assert_eq!(of(false), [command]);
        let mosquitto = of(true);
        assert!(mosquitto[0].contains("exec mosq -c"), "{mosquitto:?}");
    }
}
