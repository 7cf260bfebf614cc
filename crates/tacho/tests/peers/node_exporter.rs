//! Debian's node_exporter tells about its host.

use std::process::{Command, Stdio};

use libtest_mimic::Trial;

use crate::process::{Peer, Running, free_port, wait_for_port};
use crate::{Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let name = "node_exporter_is_understood".to_owned();
    trials.push(trial(name, &[Peer::NodeExporter], node_exporter));
}

fn node_exporter() -> Verdict {
    let port = free_port()?;
    let mut command = Peer::NodeExporter.command()?;
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let _running = Running::start(command)?;
    wait_for_port(port)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    let source = format!("prometheus+http://127.0.0.1:{port}/metrics");
    command.args(["monitor", &source, "--json", "--count", "1"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let said = Running::start(command)?.succeed()?;
    let row = said.last().ok_or("no rows")?;
    let row: serde_json::Value =
        serde_json::from_str(row).map_err(|error| format!("{error}: {said:?}"))?;
    let complete = row["cpu"]["idle"].is_number()
        && row["cores"].as_array().is_some_and(|cores| !cores.is_empty())
        && row["load"].is_array()
        && row["memory"]["available"].as_u64() > Some(0)
        && row["tcp"]["retransmits_per_s"].is_number()
        && row["tcp"]["listen_overflows_per_s"].is_number()
        && row["descriptors"].as_u64() > Some(0)
        && row["context_switches_per_s"].as_f64() > Some(0.0)
        && row["processes"].as_array().is_some_and(Vec::is_empty)
        && row["clock_error_ns"].as_u64() > Some(0);
    if complete { Ok(()) } else { Err(format!("not complete: {row:#}").into()) }
}
