//! Debian's collectd tells a run about its host.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};

use crate::process::{Peer, Running};
use crate::{Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let peers = [Peer::Collectd];
    trials.push(trial("collectd_in_percent_is_understood".to_owned(), &peers, || {
        shown("ValuesPercentage true")
    }));
    trials.push(trial("collectd_in_jiffies_is_understood".to_owned(), &peers, || {
        shown("ValuesPercentage false")
    }));
    trials.push(trial("collectd_tells_a_run_about_its_host".to_owned(), &peers, in_a_run));
}

/// A port for datagrams that was free a moment ago.
fn free_udp_port() -> Result<u16, Failed> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Starts collectd, which sends once a second.
fn collectd(folder: &Path, port: u16, cpu: &str) -> Result<Running, Failed> {
    let base = folder.display();
    let plugins = ["cpu", "memory", "load", "interface", "contextswitch", "processes", "network"];
    let load: String = plugins.iter().map(|name| format!("LoadPlugin {name}\n")).collect();
    let text = format!(
        "Hostname \"broker-9\"\nInterval 1\nBaseDir \"{base}\"\nPIDFile \"{base}/pid\"\n\
         TypesDB \"/usr/share/collectd/types.db\"\n{load}\
         <Plugin cpu>\n{cpu}\n</Plugin>\n\
         <Plugin processes>\nProcess \"collectd\"\n</Plugin>\n\
         <Plugin network>\nServer \"127.0.0.1\" \"{port}\"\n</Plugin>\n"
    );
    let config = folder.join("collectd.conf");
    fs::write(&config, text)?;
    let mut command = Peer::Collectd.command()?;
    command.arg("-f").arg("-C").arg(&config);
    Running::start(command)
}

fn tacho(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn shown(cpu: &str) -> Verdict {
    let folder = tempfile::tempdir()?;
    let port = free_udp_port()?;
    let source = format!("collectd://127.0.0.1:{port}");
    // The first round has no rates yet.
    let watching = Running::start(tacho(&["monitor", &source, "--json", "--count", "3"]))?;
    let _collectd = collectd(folder.path(), port, cpu)?;
    let said = watching.succeed()?;
    let row = said.last().ok_or("no rows")?;
    let row: serde_json::Value =
        serde_json::from_str(row).map_err(|error| format!("{error}: {said:?}"))?;
    let state = |name: &str| row["cpu"][name].as_f64().unwrap_or(f64::NAN);
    let states = ["user", "nice", "system", "irq", "softirq", "iowait", "steal", "idle"];
    let sum: f64 = states.iter().map(|name| state(name)).sum();
    let complete = (sum - 100.0).abs() < 0.01
        && row["host"] == "broker-9"
        && row["cores"].as_array().is_some_and(|cores| !cores.is_empty())
        && row["load"].is_array()
        && row["memory"]["used"].as_u64() > Some(0)
        && row["memory"]["slab_reclaimable"].is_u64()
        && row["interfaces"].to_string().contains("\"lo\"")
        && row["context_switches_per_s"].as_f64() > Some(0.0)
        && row["processes"][0]["name"] == "collectd"
        && row["processes"][0]["rss_bytes"].as_u64() > Some(0);
    if complete { Ok(()) } else { Err(format!("not complete: {row:#}").into()) }
}

fn in_a_run() -> Verdict {
    let folder = tempfile::tempdir()?;
    let port = free_udp_port()?;
    let _collectd = collectd(folder.path(), port, "ValuesPercentage true")?;
    let directory = folder.path().join("run");
    let source = format!("collectd://127.0.0.1:{port}?host=broker-9");
    let mut command = tacho(&["run", "symmetric", "--quiet", "--monitor", &source]);
    command.arg("--dir").arg(&directory);
    let variables = [
        "publishers=5",
        "subscribers=5",
        "target_throughput=50",
        "ramp_up=200ms",
        "warmup=2s",
        "duration=5s",
    ];
    for variable in variables {
        command.args(["--var", variable]);
    }
    let (status, said) = Running::start(command)?.finish()?;
    let text = fs::read_to_string(directory.join("summary.json"))
        .map_err(|error| format!("no summary ({error}); {status}: {said:#?}"))?;
    let summary: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Failed::from(error.to_string()))?;
    let hosts = summary["steps"][0]["hosts"].as_array().ok_or("no hosts")?;
    let host = hosts.iter().find(|host| host["host"] == "broker-9").ok_or("no broker-9")?;
    let metrics = host["metrics"].to_string();
    for metric in ["cpu_not_idle_percent", "memory_used_bytes", "load_1m", "net_rx_bytes_per_s"] {
        if !metrics.contains(metric) {
            return Err(format!("no {metric} in {metrics}").into());
        }
    }
    let csv = fs::read_to_string(directory.join("resources.csv"))?;
    if csv.lines().filter(|line| line.contains(",broker-9,")).count() < 50 {
        return Err(format!("too little in resources.csv:\n{csv}").into());
    }
    Ok(())
}
