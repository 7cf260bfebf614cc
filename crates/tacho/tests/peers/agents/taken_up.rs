//! Runs whose controller is killed under load: another one takes them up, or their agents stop.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::Value;

use super::{
    Process, agent, agents, begin, nats, nats_that_keeps_nothing, record, small, start,
    wait_for_agents,
};
use crate::process::{free_port, wait_for_port, wait_until};
use crate::{TACHO, Verdict};

/// A broker that is not the run's, with its metrics; both addresses.
fn broker() -> Result<(Process, String, String), Failed> {
    let (port, metrics) = (free_port()?, free_port()?);
    let (listen, metrics) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{metrics}"));
    let mut command = Command::new(TACHO);
    let process = start(command.args(["broker", "--listen", &listen, "--metrics", &metrics]))?;
    wait_for_port(port)?;
    Ok((process, format!("mqtt://{listen}"), metrics))
}

fn kept(bus: &str, broker: &str, hold: &str, within: &str) -> Command {
    let mut command = small(bus, "2", hold);
    command.args(["--broker", broker, "--resume-within", within]);
    command
}

fn resuming(folder: &Path) -> Command {
    let mut command = Command::new(TACHO);
    command.args(["run", "--resume"]).arg(folder).stdin(Stdio::null());
    command
}

fn resume(folder: &Path) -> Result<Output, Failed> {
    Ok(resuming(folder).output()?)
}

/// Seconds of the measured phase that the run has rows of, and all rows.
fn measured_seconds(folder: &Path) -> Result<(usize, String), Failed> {
    let series = std::fs::read_to_string(folder.join("timeseries.csv"))?;
    Ok((series.lines().filter(|line| line.contains(",measure,")).count(), series))
}

/// Logs of runs that the server has.
fn logs(store: &Path) -> Result<usize, Failed> {
    let streams = std::fs::read_dir(store.join("jetstream/$G/streams"))?;
    let names = streams.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name.starts_with("tacho-log-run-")).count())
}

/// Waits until both agents say that they work, or that they are free.
fn wait_busy(bus: &str, wanted: bool) -> Verdict {
    wait_until("the agents do not change", || {
        agents(bus).is_ok_and(|all| {
            all.len() == 2 && all.iter().all(|agent| agent["run"].is_string() == wanted)
        })
    })
}

/// Messages that the broker has received so far.
fn received(metrics: &str) -> Result<f64, Failed> {
    let output =
        Command::new("curl").args(["-s", &format!("http://{metrics}/metrics")]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter(|line| line.starts_with("tacho_publishes_in_total{"));
    let counts: Vec<f64> = lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
    if counts.is_empty() { Err(text.into()) } else { Ok(counts.iter().sum()) }
}

/// The controller is killed twice, once so long that the agents go on alone: every message is in
/// the books once, and so is every second.
pub(super) fn counted() -> Verdict {
    let (_server, bus, store) = nats()?;
    let (_broker, broker, _) = broker()?;
    let _agents = [agent(&bus, "one", "loopback")?, agent(&bus, "two", "loopback")?];
    wait_for_agents(&bus, 2)?;
    let folder = tempfile::tempdir()?;
    let run = begin(kept(&bus, &broker, "25s", "120s"), folder.path(), "measure")?;
    thread::sleep(Duration::from_secs(2));
    run.kill()?;
    // Longer than a link waits for a sign.
    thread::sleep(Duration::from_secs(7));
    wait_busy(&bus, true)?;
    if logs(store.path())? != 1 {
        return Err("the run has no log".into());
    }
    let mut second = resuming(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    thread::sleep(Duration::from_secs(6));
    second.kill()?;
    second.wait()?;
    let output = resume(folder.path())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let record = record(folder.path()).map_err(|error| format!("{error:?}: {said}"))?;
    let step = &record["steps"][0];
    // 100 TPS of symmetric are 50 messages per second, in and out.
    let counts = [&step["sent"], &step["received"], &step["lost"], &step["window_s"]];
    if counts.map(Value::as_f64) != [2_500.0, 2_500.0, 0.0, 25.0].map(Some) {
        return Err(format!("{counts:?}: {said}").into());
    }
    let sent = step["agents"].as_array().into_iter().flatten();
    let sent: f64 = sent.filter_map(|agent| agent["sent_per_s"].as_f64()).sum();
    let is_lost = record["agents"].as_array().into_iter().flatten().any(|of| !of["lost"].is_null());
    let remarks = record["remarks"].to_string();
    if (sent - 100.0).abs() > 0.1 || is_lost || !remarks.contains("taken_up") {
        return Err(format!("{sent} per s, lost: {is_lost}, {remarks}: {said}").into());
    }
    let (measured, series) = measured_seconds(folder.path())?;
    if measured != 25 {
        return Err(format!("{measured} measured seconds: {series}").into());
    }
    // The run has its record: nothing is left of it.
    wait_busy(&bus, false)?;
    if logs(store.path())? != 0 {
        return Err("the log of the run is still there".into());
    }
    let again = resume(folder.path())?;
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    if again.status.code() != Some(104) || !said.contains("it has a record") {
        return Err(format!("{}: {said}", again.status).into());
    }
    Ok(())
}

/// Nothing takes the run up: the agents stop by themselves, and nothing is sent any more.
pub(super) fn abandoned() -> Verdict {
    let (_server, bus, _store) = nats()?;
    let (_broker, broker, metrics) = broker()?;
    let _agents = [agent(&bus, "one", "loopback")?, agent(&bus, "two", "loopback")?];
    wait_for_agents(&bus, 2)?;
    let folder = tempfile::tempdir()?;
    let run = begin(kept(&bus, &broker, "120s", "4s"), folder.path(), "measure")?;
    run.kill()?;
    wait_busy(&bus, true)?;
    let before = received(&metrics)?;
    wait_until("the load does not go on", || received(&metrics).is_ok_and(|now| now > before))?;
    wait_busy(&bus, false)?;
    let stopped = received(&metrics)?;
    thread::sleep(Duration::from_secs(2));
    if received(&metrics)? != stopped {
        return Err("something is sent although the agents are free".into());
    }
    // What they had reported until then is not lost: it becomes a record of a run that was cut.
    let output = resume(folder.path())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let record = record(folder.path()).map_err(|error| format!("{error:?}: {said}"))?;
    let (measured, _) = measured_seconds(folder.path())?;
    if record["verdict"] != "aborted" || measured < 3 || !said.contains("was lost") {
        return Err(format!("{}, {measured} seconds: {said}", record["verdict"]).into());
    }
    Ok(())
}

pub(super) fn refused() -> Verdict {
    let (_server, bus, store) = nats()?;
    let (_broker, broker, _) = broker()?;
    let _agents = [agent(&bus, "one", "loopback")?, agent(&bus, "two", "loopback")?];
    wait_for_agents(&bus, 2)?;
    let folder = tempfile::tempdir()?;
    let refuses = |what: &str| -> Verdict {
        let output = resume(folder.path())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() == Some(104) && said.contains(what) {
            true => Ok(()),
            false => Err(format!("'{what}', but {}: {said}", output.status).into()),
        }
    };
    refuses("has no run that can be taken up")?;
    // A run that does not begin leaves nothing, although it could have been taken up.
    let careful = agent(&bus, "a-careful", "192.0.2.1")?;
    wait_for_agents(&bus, 3)?;
    let elsewhere = tempfile::tempdir()?;
    let mut command = kept(&bus, &broker, "1s", "30s");
    let output = command.arg("--dir").arg(elsewhere.path()).output()?;
    let is_there = elsewhere.path().join("resume.json").exists();
    if output.status.success() || is_there || logs(store.path())? != 0 {
        return Err(format!("{}, {is_there}", output.status).into());
    }
    drop(careful);
    wait_for_agents(&bus, 2)?;
    // While the controller lives it has the run.
    let run = begin(kept(&bus, &broker, "60s", "30s"), folder.path(), "measure")?;
    refuses("another controller still has the run")?;
    run.kill()?;
    wait_busy(&bus, true)?;
    let text = std::fs::read_to_string(folder.path().join("resume.json"))?;
    let (_other_server, other_bus, _other_store) = nats()?;
    std::fs::write(folder.path().join("resume.json"), text.replace(&bus, &other_bus))?;
    refuses("the bus has no log of the run")?;
    let (_plain_server, plain_bus) = nats_that_keeps_nothing()?;
    std::fs::write(folder.path().join("resume.json"), text.replace(&bus, &plain_bus))?;
    let output = resume(folder.path())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() != Some(1) || !said.contains("start it with -js") {
        return Err(format!("{}: {said}", output.status).into());
    }
    std::fs::write(
        folder.path().join("resume.json"),
        text.replace("\"run_id\": ", "\"run_id\": 1"),
    )?;
    let output = resume(folder.path())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match said.contains("another part of the run") {
        true => Ok(()),
        false => Err(format!("{}: {said}", output.status).into()),
    }
}
