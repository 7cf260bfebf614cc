//! What `tacho bench` is told.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};
use tacho_scenario::TimeSpan;

use crate::exit::{self, Failure};
use crate::profile::{self, TARGET};

const AFTER: &str = "Flags of 'tacho run' stand behind '--', such as\n  \
                     tacho bench pub -t a/%i -c 100 -- --threshold 'ack_p99<10ms' --dir first\n\
                     docs/bench.md compares the flags with those of emqtt_bench and mqttx.";

/// Connect, publish or subscribe with many clients, with the flags of emqtt_bench and mqttx.
///
/// The flags become a scenario, which runs as with 'tacho run': on an exact schedule, with a
/// record and a report. In texts %i is the number of a client, %c its identifier and %u its user
/// name.
#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(super) command: BenchCommand,
}

#[derive(Subcommand, Debug)]
pub(super) enum BenchCommand {
    /// Connect clients, which stay
    #[command(disable_help_flag = true, after_help = AFTER)]
    Conn(Box<BenchConnArguments>),
    /// Connect clients that publish at a steady rate each
    #[command(disable_help_flag = true, after_help = AFTER)]
    Pub(Box<BenchPubArguments>),
    /// Connect clients that subscribe, and count the messages of other programs
    #[command(disable_help_flag = true, after_help = AFTER)]
    Sub(Box<BenchSubArguments>),
}

impl BenchCommand {
    pub(super) const fn connection(&self) -> &BenchConnection {
        match self {
            Self::Conn(arguments) => &arguments.connection,
            Self::Pub(arguments) => &arguments.connection,
            Self::Sub(arguments) => &arguments.connection,
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct BenchConnArguments {
    #[command(flatten)]
    pub(super) connection: BenchConnection,
}

#[derive(Args, Debug)]
pub(super) struct BenchPubArguments {
    /// Topic to publish to
    #[arg(short, long, value_name = "TOPIC")]
    pub(super) topic: String,

    /// Time between two messages of a client, in milliseconds
    #[arg(short = 'I', long = "interval_of_msg", visible_alias = "message-interval",
          value_name = "MS", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..=86_400_000))]
    pub(super) interval_ms: u32,

    /// Bytes of the payload, which is random; at least 24, which messages are told apart by
    #[arg(short, long, visible_alias = "payload-size", value_name = "BYTES", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(24..=268_000_000))]
    pub(super) size: u32,

    /// Publish this text instead, with 44 characters behind it, which messages are told apart by
    #[arg(short, long, value_name = "TEXT", conflicts_with = "size")]
    pub(super) message: Option<String>,

    /// QoS of the messages
    #[arg(short, long, value_name = "QOS", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(super) qos: u8,

    /// Have the broker keep the last message of each topic
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, require_equals = false,
          default_value_t = false, default_missing_value = "true")]
    pub(super) retain: bool,

    /// End after this many messages, over all clients
    #[arg(short = 'L', long, value_name = "N", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,

    /// Unacknowledged messages of a client at most; QoS 1 and 2
    #[arg(short = 'F', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) inflight: Option<u16>,

    #[command(flatten)]
    pub(super) connection: BenchConnection,
}

#[derive(Args, Debug)]
pub(super) struct BenchSubArguments {
    /// Topic filter of all clients; also '$share/GROUP/FILTER'
    #[arg(short, long, value_name = "FILTER")]
    pub(super) topic: String,

    /// QoS of the subscriptions
    #[arg(short, long, value_name = "QOS", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(super) qos: u8,

    #[command(flatten)]
    pub(super) connection: BenchConnection,
}

/// The broker and its clients.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub(super) struct BenchConnection {
    /// Host of the broker. Default: localhost
    #[arg(short = 'h', long, visible_alias = "hostname", value_name = "HOST")]
    host: Option<String>,

    /// Port of the broker; by default 1883, with TLS 8883, with WebSocket 80 and 443
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,

    /// The broker as a URL, mqtt://HOST:PORT, mqtts://, ws:// or wss://, or as @NAME in
    /// ~/.config/tacho/targets.toml. Default: TACHO_TARGET
    #[arg(long, visible_alias = "url", value_name = "URL", conflicts_with_all = ["host", "port"])]
    broker: Option<String>,

    /// Number of clients
    #[arg(short, long, value_name = "N", default_value_t = 200,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) count: u32,

    /// Number of the first client
    #[arg(short = 'n', long = "startnumber", value_name = "N", default_value_t = 0)]
    pub(super) first: u32,

    /// Time between two connects, in milliseconds; 0: all at once
    #[arg(short = 'i', long = "interval", value_name = "MS", default_value_t = 10)]
    pub(super) connect_interval_ms: u32,

    /// Instead: connects per second
    #[arg(short = 'R', long = "connrate", value_name = "N", conflicts_with = "connect_interval_ms",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) connects_per_s: Option<u32>,

    /// How long the load lasts, once all clients are connected
    #[arg(short, long, value_name = "TIME", default_value = "60s", value_parser = TimeSpan::parse)]
    pub(super) duration: TimeSpan,

    /// Protocol version: 5, 4 (3.1.1) or 3 (3.1)
    #[arg(short = 'V', long = "version", visible_alias = "mqtt-version", value_name = "VERSION",
          default_value = "5", value_parser = ["3", "3.1", "4", "3.1.1", "5", "5.0"])]
    pub(super) version: String,

    /// Keep-alive in seconds; 0 turns it off
    #[arg(short, long, value_name = "SECONDS", default_value_t = 300)]
    pub(super) keepalive: u16,

    /// Begin without the session that the broker has of a client
    #[arg(short = 'C', long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(super) clean: bool,

    /// Seconds that sessions outlive their connections; MQTT 5.0
    #[arg(
        short = 'x',
        long,
        visible_alias = "session-expiry-interval",
        value_name = "SECONDS",
        default_value_t = 0
    )]
    pub(super) session_expiry: u32,

    /// Prefix of the client identifiers
    #[arg(long, value_name = "TEXT")]
    pub(super) prefix: Option<String>,

    /// Client identifiers, with %i in them
    #[arg(long, value_name = "TEXT", conflicts_with = "prefix")]
    pub(super) client_id: Option<String>,

    /// User name. Default: TACHO_USERNAME
    #[arg(short, long, value_name = "USER")]
    pub(super) username: Option<String>,

    /// Password, which other users of this machine can see. Prefer --password-file, TACHO_PASSWORD
    #[arg(short = 'P', long = "password", value_name = "PASSWORD")]
    pub(super) password: Option<String>,

    /// File with the password and nothing else
    #[arg(long, value_name = "FILE", conflicts_with = "password")]
    pub(super) password_file: Option<PathBuf>,

    /// Use TLS
    #[arg(short = 'S', long = "ssl", visible_alias = "tls", value_name = "BOOL", num_args = 0..=1,
          default_value_t = false, default_missing_value = "true")]
    tls: bool,

    /// Use WebSocket
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = false,
          default_missing_value = "true")]
    ws: bool,

    /// Certificates to trust, instead of the system's (PEM); means --ssl
    #[arg(long, visible_alias = "cacertfile", value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,

    /// Client certificate with its chain (PEM); means --ssl
    #[arg(long, visible_alias = "certfile", value_name = "FILE", requires = "key")]
    pub(super) cert: Option<PathBuf>,

    /// Private key of the client certificate (PEM)
    #[arg(long, visible_alias = "keyfile", value_name = "FILE", requires = "cert")]
    pub(super) key: Option<PathBuf>,

    /// Do not verify the broker's certificate; means --ssl
    #[arg(long, conflicts_with = "ca")]
    pub(super) insecure: bool,

    /// Addresses of this machine that clients connect from, in turn
    #[arg(long, visible_alias = "ifaddr", value_name = "ADDRESSES")]
    pub(super) source_address: Option<String>,

    /// Print the scenario instead of running it
    #[arg(long)]
    pub(super) show: bool,

    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,

    /// Flags of 'tacho run'
    #[arg(last = true, value_name = "RUN FLAGS", allow_hyphen_values = true)]
    pub(super) run: Vec<String>,
}

impl BenchConnection {
    /// The broker as 'tacho run --broker' takes it.
    pub(super) fn target(&self) -> Result<String, Failure> {
        if let Some(broker) = &self.broker {
            return Ok(broker.clone());
        }
        if let (None, None, Ok(broker)) = (&self.host, self.port, std::env::var(TARGET)) {
            return Ok(broker);
        }
        if let Some(host) = self.host.as_ref().filter(|host| host.contains([',', '/'])) {
            let sentence = format!("-h takes one host, and '{host}' is none");
            return Err(Failure::new(exit::INVALID_CONFIG, sentence));
        }
        let has_files = self.ca.is_some() || self.cert.is_some() || self.insecure;
        let kind = (self.tls || has_files, self.ws);
        Ok(profile::address(self.host.as_deref(), self.port, kind).to_string())
    }
}
