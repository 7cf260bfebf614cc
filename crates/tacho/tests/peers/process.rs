//! Foreign programs: where they are, how they are started, and that they are gone afterwards.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

/// How long anything in these tests may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A program that is not ours.
#[derive(Clone, Copy)]
pub(crate) enum Peer {
    Mosquitto,
    MosquittoPub,
    MosquittoSub,
    MosquittoPasswd,
    /// Makes a foreign program write line by line.
    Stdbuf,
    Paho,
    MqttJs,
    Chromium,
    Playwright,
    Collectd,
    NodeExporter,
    Prometheus,
    Promtool,
    Curl,
    InfluxDb,
    /// OpenTelemetry's collector.
    OtelCollector,
    /// NATS, with JetStream.
    NatsServer,
    /// Grafana's types, and a compiler that checks them.
    GrafanaSchema,
    /// Java with JMeter's and HdrHistogram's libraries.
    Jmeter,
    /// Python with matplotlib.
    Matplotlib,
    /// Python with a validator of OpenAPI documents.
    OpenApi,
    SystemdAnalyze,
}

impl Peer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mosquitto => "mosquitto",
            Self::MosquittoPub => "mosquitto_pub",
            Self::MosquittoSub => "mosquitto_sub",
            Self::MosquittoPasswd => "mosquitto_passwd",
            Self::Stdbuf => "stdbuf",
            Self::Paho => "paho-mqtt",
            Self::MqttJs => "mqtt.js",
            Self::Chromium => "chromium",
            Self::Playwright => "playwright-core",
            Self::Collectd => "collectd",
            Self::NodeExporter => "prometheus-node-exporter",
            Self::Prometheus => "prometheus",
            Self::Promtool => "promtool",
            Self::Curl => "curl",
            Self::InfluxDb => "influxd",
            Self::OtelCollector => "otelcol",
            Self::NatsServer => "nats-server",
            Self::GrafanaSchema => "@grafana/schema",
            Self::Jmeter => "JMeter",
            Self::Matplotlib => "matplotlib",
            Self::OpenApi => "openapi-spec-validator",
            Self::SystemdAnalyze => "systemd-analyze",
        }
    }

    /// The program to start, if it is there and complete.
    pub(crate) fn find(self) -> Option<PathBuf> {
        match self {
            Self::Paho => {
                let python = peers_dir().join("venv").join("bin").join("python");
                python.is_file().then_some(python)
            }
            Self::Matplotlib | Self::OpenApi => {
                let venv = peers_dir().join("venv");
                let stamp = std::fs::read_to_string(venv.join(".installed")).unwrap_or_default();
                stamp.contains(self.name()).then(|| venv.join("bin").join("python"))
            }
            Self::Jmeter => {
                let is_complete = peers_dir().join("jmeter").join(".installed").is_file();
                is_complete.then(|| on_path("java")).flatten()
            }
            Self::Playwright => {
                let library = peers_dir().join("node_modules").join("playwright-core");
                library.is_dir().then(|| on_path("node")).flatten()
            }
            Self::GrafanaSchema => {
                let modules = peers_dir().join("node_modules");
                let is_there = |name: &str| modules.join(name).is_dir();
                let all = is_there("@grafana/schema") && is_there("typescript");
                all.then(|| on_path("node")).flatten()
            }
            Self::MqttJs => {
                let library = peers_dir().join("node_modules").join("mqtt");
                library.is_dir().then(|| on_path("node")).flatten()
            }
            // Another one may have other parts.
            Self::OtelCollector => {
                Some(peers_dir().join("bin").join(self.name())).filter(|built| built.is_file())
            }
            // The system's may be an older one.
            Self::InfluxDb | Self::NatsServer => {
                let built = peers_dir().join("bin").join(self.name());
                if built.is_file() { Some(built) } else { on_path(self.name()) }
            }
            _ => on_path(self.name()),
        }
    }

    /// A command for it.
    pub(crate) fn command(self) -> Result<Command, Failed> {
        let program = self.find().ok_or_else(|| format!("no {}", self.name()))?;
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

/// Where `cargo xtask peers` installs clients.
pub(crate) fn peers_dir() -> PathBuf {
    let beside_target = || {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        tmp.parent().unwrap_or(tmp).join("peers")
    };
    env::var_os("TACHO_PEERS_DIR").map_or_else(beside_target, PathBuf::from)
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// A port of the loopback address that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, Failed> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Waits until something listens on a port.
pub(crate) fn wait_for_port(port: u16) -> Result<(), Failed> {
    wait_until("nothing listens on the port", || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
    })
}

/// Asks again and again, until `PATIENCE` is over.
pub(crate) fn wait_until(complaint: &str, mut met: impl FnMut() -> bool) -> Result<(), Failed> {
    let start = Instant::now();
    while !met() {
        if start.elapsed() > PATIENCE {
            return Err(format!("{complaint} after {} s", PATIENCE.as_secs()).into());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A child whose output is read line by line; killed when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    name: String,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Result<Self, Failed> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        let (sender, lines) = sync_channel(100_000);
        let outputs: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
            child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        ];
        for output in outputs.into_iter().flatten() {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { child, name, lines, seen: Vec::new() })
    }

    /// Waits for a line that `wanted` accepts.
    pub(crate) fn wait_for_line(&mut self, wanted: impl Fn(&str) -> bool) -> Result<(), Failed> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let found = wanted(&line);
                    self.seen.push(line);
                    if found {
                        return Ok(());
                    }
                }
                Err(_) => {
                    return Err(
                        format!("{} did not say it; it said {:?}", self.name, self.seen).into()
                    );
                }
            }
        }
    }

    /// The line that was waited for last.
    pub(crate) fn last_line(&self) -> &str {
        self.seen.last().map_or("", String::as_str)
    }

    /// Waits for the end; returns the status and everything that was said.
    pub(crate) fn finish(mut self) -> Result<(ExitStatus, Vec<String>), Failed> {
        let deadline = Instant::now() + PATIENCE;
        // The channel closes when both outputs have.
        while let Ok(line) =
            self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            self.seen.push(line);
        }
        let child = &mut self.child;
        wait_until(&format!("{} still runs", self.name), || {
            child.try_wait().is_ok_and(|status| status.is_some())
        })
        .map_err(|error| format!("{}; it said {:?}", error.message().unwrap_or(""), self.seen))?;
        Ok((self.child.wait()?, std::mem::take(&mut self.seen)))
    }

    /// Waits for the end and insists on success.
    pub(crate) fn succeed(self) -> Result<Vec<String>, Failed> {
        let name = self.name.clone();
        let (status, said) = self.finish()?;
        if !status.success() {
            return Err(format!("{name} ended with {status}: {said:#?}").into());
        }
        Ok(said)
    }

    /// Ends it without a farewell, as a crash would; returns the lines that were waited for and
    /// those before them.
    pub(crate) fn kill(mut self) -> Result<Vec<String>, Failed> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(std::mem::take(&mut self.seen))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
