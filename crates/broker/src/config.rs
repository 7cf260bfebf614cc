//! The broker's configuration: as typed ([`RawConfig`]) and as it will run ([`Config`]).

mod listener;
mod strategy;

use std::net::SocketAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tacho_net::ServerTransport;
use tacho_net::tls::TlsError;

pub use listener::{Listener, RawListener, RawTls, Transport};
pub use strategy::SharedStrategy;

/// Why a configuration cannot be used. The text says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {source}")]
    Read {
        /// The file's path as given.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not the TOML we expect; the text points at the line.
    #[error("{path}: {source}")]
    Parse {
        /// The file's path as given.
        path: String,
        /// Where and why, with the line quoted.
        source: Box<toml::de::Error>,
    },
    /// A value is out of its range.
    #[error("`{key}` is {value}, but must be {expected}")]
    OutOfRange {
        /// The setting's name as in the file.
        key: &'static str,
        /// The value given.
        value: u64,
        /// The allowed range in words.
        expected: &'static str,
    },
    /// A listener that others can reach needs a decision, since there is no access control yet.
    #[error(
        "the listener {0} is not on loopback and anybody who reaches it may publish and subscribe: \
         set `allow_anonymous = true` (or pass --allow-anonymous) if that is meant, \
         or listen on 127.0.0.1"
    )]
    OpenListener(SocketAddr),
    /// Figures that others can reach need a decision too.
    #[error(
        "the address of `metrics`, {0}, is not on loopback and anybody who reaches it sees the \
         broker's figures and its clients' names: set `metrics_allow_remote = true` (or pass \
         --metrics-allow-remote) if that is meant, or use 127.0.0.1"
    )]
    OpenMetrics(SocketAddr),
    /// No address to listen on.
    #[error("no listener is configured: add `listen = [\"127.0.0.1:1883\"]` or pass --listen")]
    NoListener,
    /// TLS without a certificate.
    #[error(
        "the listener {0} has no certificate: set `cert` and `key`, there or in [tls] (or pass \
         --tls-cert and --tls-key), or pass --self-signed DIR for tests"
    )]
    NoCertificate(String),
    /// Clients' certificates are required, but nobody says from whom.
    #[error(
        "the listener {0} requires client certificates: set `client_ca` to the CA that issues \
         them (or pass --tls-client-ca)"
    )]
    NoClientAuthority(String),
    /// Certificates without TLS.
    #[error("the listener {0} has certificates, but its transport has no TLS: use tls or wss")]
    UselessCertificate(String),
    /// A path without a WebSocket.
    #[error("the listener {0} has a path, but its transport has no WebSocket: use ws or wss")]
    UselessPath(String),
    /// A path that no request can have.
    #[error("the listener {listener}: `{path}` is not a path such as `/mqtt`")]
    BadPath {
        /// Which.
        listener: String,
        /// As given.
        path: String,
    },
    /// Response information that is no topic.
    #[error(
        "`response_information` is `{0}`, but must be the beginning of a topic: text without `+` \
         and `#`, such as `answers/{{client_id}}/`"
    )]
    BadResponseInformation(String),
    /// Certificates that cannot be used.
    #[error("the listener {listener}: {source}")]
    Certificates {
        /// Which.
        listener: String,
        /// What is wrong with them.
        source: TlsError,
    },
}

/// The configuration file as typed. Every key is optional; unknown keys are errors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Addresses to listen on by plain TCP, `host:port` with numeric hosts.
    pub listen: Option<Vec<SocketAddr>>,
    /// Listeners of any transport.
    #[serde(default)]
    pub listeners: Vec<RawListener>,
    /// Certificates of all listeners that have none of their own.
    #[serde(default)]
    pub tls: RawTls,
    /// Event loops, each a thread; 0 or absent means one per usable core.
    pub shards: Option<usize>,
    /// Lets clients without credentials in on listeners that are not loopback.
    pub allow_anonymous: Option<bool>,
    /// Pins shard i to the i-th usable core.
    pub pin_shards: Option<bool>,
    /// What 5.0 clients that ask for response information are told: the beginning of their
    /// response topics. `{client_id}` stands for the client's identifier.
    pub response_information: Option<String>,
    /// How shared subscriptions choose the member that gets a message.
    pub shared_subscription_strategy: Option<SharedStrategy>,
    /// Where to answer `/metrics` and other questions by HTTP; nowhere unless given.
    pub metrics: Option<SocketAddr>,
    /// Lets `metrics` be an address that is not on loopback.
    pub metrics_allow_remote: Option<bool>,
    /// Seconds between two publications of the `$SYS` topics; 0 publishes none.
    pub sys_interval_s: Option<u32>,
    /// Limits, each with a default.
    #[serde(default)]
    pub limits: Limits,
}

/// Every bound the broker keeps, with its default. A limit that is reached is counted.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections at once; more are refused (5.0: 0x97, 3.x: 3). 0 = as many as descriptors allow.
    pub connections_max: usize,
    /// Sessions, connected or not; new ones are refused beyond it.
    pub sessions_max: usize,
    /// Subscriptions of one session; more get SUBACK 0x97 (3.x: 0x80).
    pub subscriptions_per_session_max: usize,
    /// Levels of a filter with wildcards, which cost memory each; more get SUBACK 0x97 (3.x: 0x80).
    pub filter_levels_max: usize,
    /// Bytes of one packet either way; larger incoming ones end the connection (0x95).
    pub packet_size_max: u32,
    /// QoS 1 and 2 publishes a client may have unacknowledged (5.0's Receive Maximum).
    pub receive_maximum: u16,
    /// QoS 1 and 2 publishes the broker has unacknowledged per client, at most.
    pub inflight_max: u16,
    /// Messages waiting for one session; the newest is dropped beyond it.
    pub session_queue_len_max: u32,
    /// Bytes of messages waiting for one session; the newest is dropped beyond it.
    pub session_queue_bytes_max: u64,
    /// Unsent output of one connection above which QoS 0 messages to it are dropped, and QoS 1 and
    /// 2 messages wait in its session.
    pub output_bytes_max: usize,
    /// Topic aliases a 5.0 client may use towards the broker.
    pub topic_alias_maximum: u16,
    /// Topic aliases the broker uses towards a 5.0 client that takes some; 0 = none.
    pub outgoing_topic_aliases_max: u16,
    /// Whether QoS 0 messages wait for a session without a connection, like those of QoS 1 and 2.
    pub queue_qos0_offline: bool,
    /// Seconds a connection may take to send its whole CONNECT.
    pub connect_timeout_s: u32,
    /// Longest keep-alive; longer ones (and none) are lowered to it for 5.0 clients. 0 = any.
    pub keep_alive_max_s: u16,
    /// Longest session expiry; longer ones are lowered to it. 4294967295 = any.
    pub session_expiry_max_s: u32,
    /// Retained messages of the broker; a new topic beyond it is not retained.
    pub retained_count_max: usize,
    /// Bytes of retained messages of the broker; what does not fit is not retained, nor is what it
    /// replaces.
    pub retained_bytes_max: u64,
    /// Retained topics one shard looks at for new subscriptions in a turn before it looks at its
    /// sockets again.
    pub retained_steps_per_turn_max: usize,
    /// Messages waiting in one shared subscription while none of its members can take them; the
    /// newest is dropped beyond it.
    pub shared_queue_len_max: usize,
    /// Bytes of those messages; the same policy.
    pub shared_queue_bytes_max: u64,
    /// Deliveries one shard makes in a turn before it looks at its sockets again.
    pub deliveries_per_turn_max: usize,
    /// Messages whose fan-out is unfinished, per shard, before publishers are held back.
    pub fanout_backlog_max: usize,
    /// Topics whose matches each shard remembers.
    pub route_cache_topics_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 0,
            sessions_max: 1_000_000,
            subscriptions_per_session_max: 1_000,
            filter_levels_max: 256,
            packet_size_max: 1024 * 1024,
            receive_maximum: 1_024,
            inflight_max: 1_024,
            session_queue_len_max: 10_000,
            session_queue_bytes_max: 64 * 1024 * 1024,
            output_bytes_max: 1024 * 1024,
            topic_alias_maximum: 32,
            outgoing_topic_aliases_max: 16,
            queue_qos0_offline: false,
            connect_timeout_s: 10,
            keep_alive_max_s: 0,
            session_expiry_max_s: u32::MAX,
            retained_count_max: 1_000_000,
            retained_bytes_max: 1024 * 1024 * 1024,
            retained_steps_per_turn_max: 2_048,
            shared_queue_len_max: 10_000,
            shared_queue_bytes_max: 64 * 1024 * 1024,
            deliveries_per_turn_max: 8_192,
            fanout_backlog_max: 1_024,
            route_cache_topics_max: 65_536,
        }
    }
}

/// The configuration as it will run: complete and cross-checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients connect.
    pub listeners: Vec<Listener>,
    /// Seconds between two looks at certificates; 0 looks only when told to.
    pub certificates_check_s: u32,
    /// Event loops; at least 1, at most 64.
    pub shards: usize,
    /// Whether shard i is pinned to the i-th usable core.
    pub pin_shards: bool,
    /// Told to 5.0 clients that ask for response information.
    pub response_information: Option<String>,
    /// How shared subscriptions choose the member that gets a message.
    pub shared_strategy: SharedStrategy,
    /// Where to answer `/metrics` and other questions by HTTP.
    pub metrics: Option<SocketAddr>,
    /// Seconds between two publications of the `$SYS` topics; 0 publishes none.
    pub sys_interval_s: u32,
    /// All limits.
    pub limits: Limits,
}

impl RawConfig {
    /// Reads a TOML file.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has an unknown key or a value of the wrong type.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: shown.clone(), source })?;
        toml::from_str(&text)
            .map_err(|source| ConfigError::Parse { path: shown, source: Box::new(source) })
    }

    /// Fills in the defaults and checks everything against everything.
    ///
    /// # Errors
    /// A limit is out of range, or a listener that is not loopback lacks `allow_anonymous`.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        let plain = match self.listen {
            Some(listen) => listen,
            None if self.listeners.is_empty() => vec![SocketAddr::from(([127, 0, 0, 1], 1883))],
            None => Vec::new(),
        };
        let listeners: Vec<Listener> = plain
            .into_iter()
            .map(|address| RawListener::new(Transport::Tcp, address))
            .chain(self.listeners)
            .map(|listener| listener.resolve(&self.tls))
            .collect::<Result<_, _>>()?;
        if listeners.is_empty() {
            return Err(ConfigError::NoListener);
        }
        if !self.allow_anonymous.unwrap_or(false)
            && let Some(open) = listeners.iter().find(|l| !l.address.ip().is_loopback())
        {
            return Err(ConfigError::OpenListener(open.address));
        }
        if let Some(address) = self.metrics
            && !address.ip().is_loopback()
            && !self.metrics_allow_remote.unwrap_or(false)
        {
            return Err(ConfigError::OpenMetrics(address));
        }
        let shards = match self.shards.unwrap_or(0) {
            0 => std::thread::available_parallelism().map_or(1, usize::from).min(SHARDS_MAX),
            n => n,
        };
        self.limits.check()?;
        check_range("shards", shards as u64, 1, SHARDS_MAX as u64, "from 1 to 64")?;
        let response_information = self.response_information.filter(|text| !text.is_empty());
        if let Some(text) = &response_information
            && !tacho_codec::is_valid_topic_name(text)
        {
            return Err(ConfigError::BadResponseInformation(text.clone()));
        }
        let pin_shards = self.pin_shards.unwrap_or(false);
        Ok(Config {
            listeners,
            certificates_check_s: self.tls.check_s.unwrap_or(CERTIFICATES_CHECK_S),
            shards,
            pin_shards,
            response_information,
            shared_strategy: self.shared_subscription_strategy.unwrap_or_default(),
            metrics: self.metrics,
            sys_interval_s: self.sys_interval_s.unwrap_or(SYS_INTERVAL_S),
            limits: self.limits,
        })
    }
}

impl Config {
    /// The effective configuration as a file that would produce it.
    pub fn describe(&self) -> String {
        let plain = |listener: &&Listener| listener.transport == Transport::Tcp;
        let listen: Vec<String> =
            self.listeners.iter().filter(plain).map(|l| format!("\"{}\"", l.address)).collect();
        let others: String =
            self.listeners.iter().filter(|l| !plain(l)).map(Listener::describe).collect();
        let metrics = self.metrics.map_or_else(String::new, |address| {
            let remote = !address.ip().is_loopback();
            format!("metrics = \"{address}\"\nmetrics_allow_remote = {remote}\n")
        });
        // Invariant: numbers only, which TOML can always express.
        let limits = toml::to_string(&self.limits).unwrap_or_default();
        let response = self.response_information.clone().map_or_else(String::new, |text| {
            format!("response_information = {}\n", toml::Value::String(text))
        });
        format!(
            "listen = [{}]\nshards = {}\npin_shards = {}\nallow_anonymous = {}\n\
             shared_subscription_strategy = \"{}\"\n{response}{metrics}sys_interval_s = {}\n\n\
             [tls]\ncheck_s = {}\n\n[limits]\n{limits}{others}",
            listen.join(", "),
            self.shards,
            self.pin_shards,
            self.listeners.iter().any(|listener| !listener.address.ip().is_loopback()),
            self.shared_strategy.name(),
            self.sys_interval_s,
            self.certificates_check_s,
        )
    }

    /// Reads the certificates of all listeners, in their order.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn open_transports(&self) -> Result<Vec<ServerTransport>, ConfigError> {
        let open = |listener: &Listener| {
            listener.open().map_err(|source| ConfigError::Certificates {
                listener: listener.to_string(),
                source,
            })
        };
        self.listeners.iter().map(open).collect()
    }
}

/// Certificates are renewed every few weeks; a look at a few small files costs nothing.
const CERTIFICATES_CHECK_S: u32 = 10;

/// What mosquitto publishes its own at.
const SYS_INTERVAL_S: u32 = 10;

/// Shards are kept as bits of one `u64` in the route map.
pub const SHARDS_MAX: usize = 64;

impl Limits {
    fn check(&self) -> Result<(), ConfigError> {
        let not_zero = "at least 1";
        for (key, value) in [
            ("limits.sessions_max", self.sessions_max as u64),
            ("limits.subscriptions_per_session_max", self.subscriptions_per_session_max as u64),
            ("limits.filter_levels_max", self.filter_levels_max as u64),
            ("limits.receive_maximum", u64::from(self.receive_maximum)),
            ("limits.inflight_max", u64::from(self.inflight_max)),
            ("limits.connect_timeout_s", u64::from(self.connect_timeout_s)),
            ("limits.deliveries_per_turn_max", self.deliveries_per_turn_max as u64),
            ("limits.retained_steps_per_turn_max", self.retained_steps_per_turn_max as u64),
            ("limits.fanout_backlog_max", self.fanout_backlog_max as u64),
            ("limits.route_cache_topics_max", self.route_cache_topics_max as u64),
        ] {
            check_range(key, value, 1, u64::MAX, not_zero)?;
        }
        // 268,435,460 = the largest Remaining Length plus its five-byte header.
        let size = u64::from(self.packet_size_max);
        check_range("limits.packet_size_max", size, 128, 268_435_460, "from 128 to 268435460")?;
        let output = self.output_bytes_max as u64;
        check_range("limits.output_bytes_max", output, 4096, 1 << 30, "from 4096 to 1073741824")
    }
}

fn check_range(
    key: &'static str,
    value: u64,
    min: u64,
    max: u64,
    expected: &'static str,
) -> Result<(), ConfigError> {
    if value < min || value > max {
        return Err(ConfigError::OutOfRange { key, value, expected });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
