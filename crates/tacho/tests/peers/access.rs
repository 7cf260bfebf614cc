//! Users made by `mosquitto_passwd`, and mosquitto's clients as those users.

use std::fs;
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};

use crate::broker::Broker;
use crate::process::{Peer, Running};
use crate::{Verdict, trial};

const PEERS: [Peer; 4] =
    [Peer::MosquittoPasswd, Peer::MosquittoPub, Peer::MosquittoSub, Peer::Stdbuf];

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for hash in ["sha512", "sha512-pbkdf2"] {
        for version in ["mqttv311", "mqttv5"] {
            let name = format!("mosquitto_{version}_logs_in_with_{hash}");
            trials.push(trial(name, &PEERS, move || logs_in(hash, version)));
        }
    }
    let peers = [Peer::MosquittoPasswd];
    trials.push(trial("mosquitto_passwd_edits_files_of_tacho".into(), &peers, edits));
}

const RULES: &str = "user ann\ntopic write rooms/#\nuser bob\ntopic read rooms/+\n";

/// Adds a user as mosquitto's own tool does.
fn add(file: &str, hash: Option<&str>, create: bool, user: &str) -> Verdict {
    let mut command = Peer::MosquittoPasswd.command()?;
    if let Some(hash) = hash {
        command.args(["-H", hash]);
    }
    if create {
        command.arg("-c");
    }
    let output = command.args(["-b", file, user, "a pass:word"]).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

fn as_user(mut command: Command, broker: &Broker, version: &str, user: &str) -> Command {
    command.args(["-h", "127.0.0.1", "-p", &broker.port.to_string(), "-V", version]);
    command.args(["-u", user, "-P", "a pass:word"]);
    command
}

/// Publishes one message; what the client said, and whether it ended well.
fn publish(broker: &Broker, version: &str, user: &str, password: &str) -> Result<bool, Failed> {
    let mut command = Peer::MosquittoPub.command()?;
    command.args(["-h", "127.0.0.1", "-p", &broker.port.to_string(), "-V", version, "-u", user]);
    command.args(["-P", password, "-t", "rooms/7", "-q", "1", "-m", "hello"]);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    Ok(status?.success())
}

fn logs_in(hash: &str, version: &str) -> Verdict {
    let folder = tempfile::tempdir()?;
    let users = folder.path().join("users").display().to_string();
    let acl = folder.path().join("acl").display().to_string();
    add(&users, Some(hash), true, "ann")?;
    add(&users, Some(hash), false, "bob")?;
    fs::write(&acl, RULES)?;
    let broker = Broker::tacho_with(&["--password-file", &users, "--acl-file", &acl])?;
    let mut command = Peer::Stdbuf.command()?;
    command.arg("-oL").arg(Peer::MosquittoSub.find().ok_or("no mosquitto_sub")?);
    let mut command = as_user(command, &broker, version, "bob");
    command.args(["-d", "-t", "rooms/+", "-C", "1", "-W", "45", "-F", "message %p"]);
    let mut subscriber = Running::start(command)?;
    subscriber.wait_for_line(|line| line.starts_with("Subscribed (mid:"))?;
    if publish(&broker, version, "ann", "wrong")? || publish(&broker, version, "eve", "wrong")? {
        return Err("a wrong password was accepted".into());
    }
    if !publish(&broker, version, "ann", "a pass:word")? {
        return Err("the right password was refused".into());
    }
    let said = subscriber.succeed()?;
    if said.iter().any(|line| line == "message hello") {
        Ok(())
    } else {
        Err(format!("no message in {said:#?}").into())
    }
}

/// Each program changes the file of the other, and the lines of both are read.
fn edits() -> Verdict {
    let folder = tempfile::tempdir()?;
    let users = folder.path().join("users").display().to_string();
    let tacho = |arguments: &[&str]| -> Verdict {
        let status = Command::new(crate::TACHO).args(arguments).stdin(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { Err(format!("{arguments:?}: {status}").into()) }
    };
    tacho(&["passwd", "-c", "-b", &users, "ann", "a pass:word"])?;
    add(&users, None, false, "bob")?;
    tacho(&["passwd", "-b", &users, "eve", "a pass:word"])?;
    let broker = Broker::tacho_with(&["--password-file", &users])?;
    let text = fs::read_to_string(&users)?;
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(':').next()).collect();
    if names != ["ann", "bob", "eve"] {
        return Err(format!("{names:?}").into());
    }
    drop(broker);
    Ok(())
}
