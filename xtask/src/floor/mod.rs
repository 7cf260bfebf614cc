//! The echo floor: the cost of the kernel for the sockets and frames of the symmetric scenario
//! without a broker in between.
//!
//! A server passes each frame that arrives on socket *i* on to socket *i* + 1000, with raw epoll
//! and nothing else; a client offers frames on an absolute schedule. Neither shares code with the
//! event loop of the broker, so that a mistake there cannot hide in its own yardstick. The pairs
//! are such a client of MQTT: the yardstick of the load generator.

pub(crate) mod accepting;
mod client;
mod forwarder;
mod pairs;
mod process;
mod publication;
mod publish;
mod server;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::shell;
pub(crate) use pairs::PairsFigures;
pub(crate) use process::{cpu_ns, now_ns, pin_self_to, raise_descriptor_limit, thread_cpu_ns};

/// A 128-byte payload in an MQTT frame would be slightly longer; the floor counts frames.
pub(crate) const FRAME_BYTES: usize = 128;

#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    load: Load,
}

#[derive(Subcommand)]
enum Part {
    /// The forwarding side alone; prints its port, ends when its input closes
    Server {
        /// Sockets to expect; the second half belongs to the receivers
        #[arg(long, default_value_t = 2000)]
        sockets: usize,
        /// Core to run on
        #[arg(long)]
        cpu: Option<usize>,
    },
    /// A bare forwarder that speaks some MQTT, at QoS 0 and 1; prints its port, ends when its input
    /// closes
    Forwarder {
        /// Core to run on
        #[arg(long)]
        cpu: Option<usize>,
    },
    /// Publishing alone, to a running broker
    Publish(publish::Options),
    /// Publishers and subscribers in pairs, at a running broker, by a client that never sleeps
    Pairs(pairs::Options),
}

/// The offered load.
#[derive(Args, Clone, Debug)]
pub(crate) struct Load {
    /// Frames per second in, and the same number out
    #[arg(long, default_value_t = 30_000)]
    pub(crate) rate: u64,
    /// Seconds to measure
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u64,
    /// Seconds of warm-up
    #[arg(long, default_value_t = 1)]
    pub(crate) warmup: u64,
    /// Sockets; the first half sends, the second half receives
    #[arg(long, default_value_t = 2000)]
    pub(crate) sockets: usize,
    /// Core of the server
    #[arg(long, default_value_t = 0)]
    pub(crate) server_cpu: usize,
    /// Core of the client
    #[arg(long, default_value_t = 1)]
    pub(crate) client_cpu: usize,
}

/// Result of one run of the floor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Floor {
    pub(crate) offered_in_per_s: f64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// CPU of the server for one frame, in or out counted as one.
    pub(crate) server_cpu_us_per_frame: f64,
    pub(crate) server_cpu_percent: f64,
    pub(crate) client_cpu_percent: f64,
    pub(crate) latency_us_mean: f64,
    pub(crate) latency_us_p50: f64,
    pub(crate) latency_us_p99: f64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    match &options.part {
        Some(Part::Server { sockets, cpu }) => server::run(*sockets, *cpu),
        Some(Part::Forwarder { cpu }) => forwarder::run(*cpu),
        Some(Part::Publish(options)) => publish::run(options),
        Some(Part::Pairs(options)) => pairs::run(options),
        None => {
            if cfg!(debug_assertions) {
                eprintln!("an unoptimised build: `cargo run --release -p xtask -- floor` counts");
            }
            println!("{}", serde_json::to_string_pretty(&measure(&options.load)?)?);
            Ok(())
        }
    }
}

/// Starts a server, loads it, stops it.
pub(crate) fn measure(load: &Load) -> Result<Floor> {
    if load.rate == 0 || load.seconds == 0 || load.sockets < 2 || !load.sockets.is_multiple_of(2) {
        bail!("the floor needs a rate, a duration and an even number of sockets");
    }
    let mut server = ServerProcess::start(load)?;
    let result = client::run(load, server.port, server.child.id());
    server.stop();
    result
}

struct ServerProcess {
    child: Child,
    port: u16,
}

impl ServerProcess {
    fn start(load: &Load) -> Result<Self> {
        let this = std::env::current_exe().context("cannot find this program")?;
        let mut command = shell::command(this);
        command.args(["floor", "server", "--sockets", &load.sockets.to_string()]);
        command.args(["--cpu", &load.server_cpu.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the floor's server")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the server's output is not piped")?;
        BufReader::new(stdout).read_line(&mut line).context("cannot read the server's port")?;
        let port = line.trim().parse().with_context(|| format!("not a port: {line:?}"))?;
        Ok(Self { child, port })
    }

    fn stop(&mut self) {
        // The server ends by itself when its sockets close; the kill is for errors.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.stop();
    }
}
