//! A broker of ours and a mosquitto that it has a bridge to, both of which may end and come back.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use libtest_mimic::Failed;

use crate::Verdict;
use crate::process::{Peer, Running, free_port, wait_for_port, wait_until};

/// What the bridge is like.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// As `version` in the configuration.
    pub(super) version: &'static str,
    pub(super) connections: u16,
    /// Keys of the bridge, and its rules.
    pub(super) more: &'static str,
    /// mosquitto wants a name and a password, by TLS.
    pub(super) guarded: bool,
    /// Ours keeps what it has.
    pub(super) durable: bool,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ours,
    Theirs,
}

pub(super) struct Pair {
    folder: tempfile::TempDir,
    ours: (u16, Option<Child>),
    theirs: (u16, Option<Running>),
    metrics: u16,
    durable: bool,
    guarded: bool,
}

/// What guarded ones want.
pub(super) const USER: &str = "bridge";
pub(super) const PASSWORD: &str = "open sesame";

impl Pair {
    /// Writes the configurations; nothing runs yet.
    pub(super) fn new(kind: Kind) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let pair = Self {
            ours: (free_port()?, None),
            theirs: (free_port()?, None),
            metrics: free_port()?,
            durable: kind.durable,
            guarded: kind.guarded,
            folder,
        };
        let file = |name: &str| pair.file(name).display().to_string();
        let mut theirs = format!(
            "user root\nlistener {} 127.0.0.1\nset_tcp_nodelay true\npersistence true\n\
             persistence_location {}/\nlog_type error\nmax_queued_messages 0\n",
            pair.theirs.0,
            pair.folder.path().display(),
        );
        let mut access = String::new();
        if kind.guarded {
            let files = tacho_broker::self_signed(pair.folder.path(), [])?;
            let _ = write!(
                theirs,
                "cafile {}\ncertfile {}\nkeyfile {}\nallow_anonymous false\npassword_file {}\n",
                files.ca.display(),
                files.cert.display(),
                files.key.display(),
                file("users"),
            );
            let mut passwords = Peer::MosquittoPasswd.command()?;
            passwords.args(["-b", "-c", &file("users"), USER, PASSWORD]);
            Running::start(passwords)?.succeed()?;
            std::fs::write(pair.file("password"), format!("{PASSWORD}\n"))?;
            access = format!(
                "username = '{USER}'\npassword_file = '{}'\n[bridges.tls]\nca = '{}'\n",
                file("password"),
                files.ca.display()
            );
        } else {
            theirs.push_str("allow_anonymous true\n");
        }
        std::fs::write(pair.file("mosquitto.conf"), theirs)?;
        let scheme = if kind.guarded { "mqtts" } else { "mqtt" };
        // Rules are tables of their own and come last; so does TLS.
        let split = kind.more.find("[[").unwrap_or(kind.more.len());
        let (keys, rules) = kind.more.split_at(split);
        let ours = format!(
            "listen = ['127.0.0.1:{}']\nshards = 2\nmetrics = '127.0.0.1:{}'\nsys_interval_s = 1\n\
             [[bridges]]\nname = 'far'\naddress = '{scheme}://127.0.0.1:{}'\nversion = '{}'\n\
             connections = {}\nretry_longest_s = 1\n{keys}\n{access}\n{rules}\n",
            pair.ours.0, pair.metrics, pair.theirs.0, kind.version, kind.connections,
        );
        std::fs::write(pair.file("broker.toml"), ours)?;
        Ok(pair)
    }

    /// The same with both of them running and the bridge up.
    pub(super) fn up(kind: Kind) -> Result<Self, Failed> {
        let mut pair = Self::new(kind)?;
        pair.start(Side::Theirs)?;
        pair.start(Side::Ours)?;
        pair.wait_until_up()?;
        Ok(pair)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts one, again too.
    pub(super) fn start(&mut self, side: Side) -> Verdict {
        match side {
            Side::Theirs => {
                let mut command = Peer::Mosquitto.command()?;
                command.arg("-c").arg(self.file("mosquitto.conf"));
                self.theirs.1 = Some(Running::start(command)?);
                wait_for_port(self.theirs.0)
            }
            Side::Ours => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
                command.env("XDG_RUNTIME_DIR", tacho_testkit::runtime_folder());
                command.args(["broker", "--quiet", "--config"]).arg(self.file("broker.toml"));
                if self.durable {
                    command.arg("--data-dir").arg(self.file("data"));
                }
                let log = std::fs::File::options()
                    .create(true)
                    .append(true)
                    .open(self.file("broker.log"))?;
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
                self.ours.1 = Some(command.spawn()?);
                wait_for_port(self.ours.0)
            }
        }
    }

    /// Ends mosquitto as a service is ended: it writes down what it has.
    pub(super) fn end_theirs(&mut self) -> Verdict {
        let Some(running) = self.theirs.1.take() else { return Ok(()) };
        let id = running.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        running.finish().map(drop)
    }

    /// Ends ours without a warning.
    pub(super) fn kill_ours(&mut self) -> Verdict {
        let Some(mut child) = self.ours.1.take() else { return Ok(()) };
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Waits until all connections of the bridge are made.
    pub(super) fn wait_until_up(&self) -> Verdict {
        wait_until("the bridge is not up", || {
            self.command("status", &[]).is_ok_and(|(code, _)| code == Some(0))
        })
        .map_err(|error| {
            let log = std::fs::read_to_string(self.file("broker.log")).unwrap_or_default();
            let status = self.command("status", &["--verbose"]).map(|(_, said)| said);
            let why = error.message().unwrap_or_default();
            format!("{why}: {}\n{log}", status.unwrap_or_default()).into()
        })
    }

    /// `tacho bridge ...`: its exit code, and what it said.
    pub(super) fn command(
        &self,
        what: &str,
        more: &[&str],
    ) -> Result<(Option<i32>, String), Failed> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(["bridge", what]);
        if what == "status" {
            command.arg("--config");
        }
        let output = command.arg(self.file("broker.toml")).args(more).output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// Where ours answers questions.
    pub(super) const fn metrics(&self) -> u16 {
        self.metrics
    }

    /// A mosquitto client of one of the two.
    fn client(&self, side: Side, version: &str, mut command: Command) -> Command {
        let port = if side == Side::Ours { self.ours.0 } else { self.theirs.0 };
        let version = if version == "5" { "mqttv5" } else { "mqttv311" };
        command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-V", version]);
        if self.guarded && side == Side::Theirs {
            command.args(["-u", USER, "-P", PASSWORD, "--cafile"]).arg(self.file("ca.pem"));
        }
        command
    }

    /// A subscriber with a session that outlives its connections, which comes back by itself. It
    /// ends after `count` messages.
    pub(super) fn subscribe(
        &self,
        side: Side,
        filter: &str,
        count: usize,
    ) -> Result<Subscriber, Failed> {
        let mut command = Peer::Stdbuf.command()?;
        command.arg("-oL").arg(Peer::MosquittoSub.find().ok_or("no mosquitto_sub")?);
        // With version 5 it ends when it is told that the broker does.
        let mut command = self.client(side, "3.1.1", command);
        command.args(["-i", &format!("reader-{side:?}"), "-c", "-q", "2", "-d"]);
        command.args(["-t", filter, "-F", "message %t %q %r %p", "-C", &count.to_string()]);
        command.args(["-W", "55"]);
        let mut running = Running::start(command)?;
        // Its session may have the subscription, and a message for it.
        let is_there = |line: &str| line.starts_with("Subscribed (mid:") || is_message(line);
        running.wait_for_line(is_there)?;
        Ok(Subscriber(running))
    }

    /// Publishes `lines`, each as a message; all are acknowledged afterwards.
    pub(super) fn publish(&self, side: Side, topic: &str, qos: u8, lines: &[String]) -> Verdict {
        let mut publisher = self.publisher(side, topic, qos, &[])?;
        lines.iter().try_for_each(|line| publisher.send(line))?;
        publisher.finish()
    }

    /// The same step by step.
    pub(super) fn publisher(
        &self,
        side: Side,
        topic: &str,
        qos: u8,
        more: &[&str],
    ) -> Result<Publisher, Failed> {
        let mut command = self.client(side, "5", Peer::MosquittoPub.command()?);
        command.args(["-t", topic, "-q", &qos.to_string(), "-l"]).args(more);
        command.stdin(Stdio::piped());
        Ok(Publisher(Running::start(command)?))
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = self.kill_ours();
    }
}

pub(super) struct Publisher(Running);

impl Publisher {
    pub(super) fn send(&mut self, line: &str) -> Verdict {
        let stdin = self.0.child.stdin.as_mut().ok_or("no standard input")?;
        Ok(writeln!(stdin, "{line}")?)
    }

    /// Waits until everything is acknowledged.
    pub(super) fn finish(mut self) -> Verdict {
        drop(self.0.child.stdin.take());
        self.0.succeed().map(drop)
    }
}

pub(super) struct Subscriber(Running);

impl Subscriber {
    /// Everything that came, each as topic, QoS, RETAIN flag and payload.
    pub(super) fn messages(self) -> Result<Vec<String>, Failed> {
        let (_, said) = self.0.finish()?;
        let message = |line: String| Some(line.strip_prefix(MESSAGE)?.to_owned());
        Ok(said.into_iter().filter_map(message).collect())
    }
}

/// What a line with a message begins with.
const MESSAGE: &str = "message ";

fn is_message(line: &str) -> bool {
    line.starts_with(MESSAGE)
}
