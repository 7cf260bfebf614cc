//! The configuration of the broker: as written in the file ([`RawConfig`]), and complete and
//! checked ([`Config`]).

mod access;
mod address;
mod bridge;
mod certificate_login;
mod connections;
mod durability;
mod http;
mod jwt;
mod limits;
mod listener;
mod origins;
mod overload;
mod proxy;
mod publish;
mod queue;
mod strategy;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tacho_access::FileError;
use tacho_net::ServerTransport;
use tacho_net::tls::TlsError;
use tacho_output::{OutputTarget, TargetError};

pub use access::{AccessSettings, OnDeny, SessionTakeover, SubscribeCheck};
pub use address::parse_address;
pub use bridge::{
    BridgeConfig, EgressRule, IngressRule, Mapping, Password, RawBridge, RawBridgeTls, RawRule,
    Remote, Secret, SourceText, Template, TemplateError, Values,
};
pub use certificate_login::{CertificateClientId, CertificateLogin};
pub use connections::ConnectionLimits;
pub(crate) use durability::SessionLevels;
pub use durability::{Durability, Level};
pub use http::{BackendOrder, BodyFormat, HttpMethod, HttpSettings, OnUnavailable, SecretHeader};
pub use jwt::{JwtSettings, KeyUrl, OnExpiry, TokenPlace};
pub use limits::Limits;
pub use listener::{Listener, RawListener, RawTls, Transport};
pub use overload::Overload;
pub use proxy::TrustedProxies;
pub use publish::{PublishExcess, PublishLimits};
pub use queue::QueuePolicy;
pub(crate) use queue::{QueueLimits, QueuePolicies};
pub use strategy::SharedStrategy;

/// Why a configuration cannot be used. The text names the problem, its place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {source}")]
    Read {
        /// Path of the file as given.
        path: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file is not valid TOML, or has an unknown key or a value of the wrong type.
    #[error("{path}: {source}")]
    Parse {
        /// Path of the file as given.
        path: String,
        /// Where and why, with the line.
        source: Box<toml::de::Error>,
    },
    /// A parse error on a line with a password, which is not shown.
    #[error("{path}:{line}: `password` must be a string in quotes")]
    Password {
        /// Path of the file as given.
        path: String,
        /// Line number.
        line: usize,
    },
    /// A value is out of its range.
    #[error("`{key}` is {value}, but must be {expected}")]
    OutOfRange {
        /// Name of the setting as in the file.
        key: &'static str,
        /// The configured value.
        value: u64,
        /// Description of the allowed range.
        expected: &'static str,
    },
    /// A listener that other machines can reach and where no login is needed requires consent.
    #[error(
        "the listener {0} is not on loopback, or is behind a proxy, and every client that reaches \
         it may publish and subscribe: set `password_file` in [access] (or pass --password-file), \
         [access.jwt] or [access.http], or set `allow_anonymous = true` (or pass \
         --allow-anonymous) to allow this, or listen on 127.0.0.1"
    )]
    OpenListener(SocketAddr),
    /// Anonymous clients beside a password file are admitted by listener.
    #[error(
        "`allow_anonymous` (--allow-anonymous) is set beside the logins of [access], which are \
         for all listeners: set it in the [[listeners]] that are to admit clients without \
         credentials"
    )]
    AnonymousBesideUsers,
    /// A listener admits no client at all.
    #[error(
        "the listener {0} has `allow_anonymous = false` and no password file: no client could log in"
    )]
    ClosedListener(String),
    /// What clients may do is said twice.
    #[error(
        "both `acl_file` (--acl-file) and `rules_file` (--rules-file) are set: they are two \
         formats of the same, so use one of them"
    )]
    TwoAccessLists,
    /// The keys of a listener do not fit together.
    #[error("the listener {listener}: {what}")]
    Listener {
        /// The listener.
        listener: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A file of access control cannot be used.
    #[error(transparent)]
    Access(#[from] FileError),
    /// It is not said where the keys of tokens are, or not so that they can be found.
    #[error("access.jwt: {0}")]
    TokenKeys(&'static str),
    /// The certificates to trust where keys are fetched cannot be used.
    #[error("access.jwt: the certificates in {path} (`key_ca_file`) cannot be used: {why}")]
    KeyAuthority {
        /// The path as configured.
        path: String,
        /// The problem.
        why: String,
    },
    /// The value that a claim must have is no template.
    #[error("access.jwt.claims: '{0}': `%` begins %c, %u or %%")]
    ClaimTemplate(String),
    /// The backend of logins is not configured so that it can be asked.
    #[error("access.http: {0}")]
    Http(String),
    /// The audit log cannot be used.
    #[error("the audit log {path} cannot be used: {source}")]
    Audit {
        /// The path as configured.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// An output makes no sense.
    #[error("an output cannot be used: {0}")]
    Output(#[from] TargetError),
    /// An output is for figures of runs.
    #[error(
        "the output {0} is for runs: a broker has no table for csv, no figures for the schemas of \
         jmeter and collectd, and does not end with on-failure=end"
    )]
    OutputOfRuns(String),
    /// Metrics that other machines can reach need consent too.
    #[error(
        "the address of `metrics`, {0}, is not on loopback, and every host that reaches it sees \
         the metrics of the broker and its client identifiers: set `metrics_allow_remote = true` \
         (or pass --metrics-allow-remote) to allow this, or use 127.0.0.1"
    )]
    OpenMetrics(SocketAddr),
    /// No listener is configured.
    #[error("no listener is configured: add `listen = [\"127.0.0.1:1883\"]` or pass --listen")]
    NoListener,
    /// A listener with TLS has no certificate.
    #[error(
        "the listener {0} has no certificate: set `cert` and `key`, there or in [tls] (or pass \
         --tls-cert and --tls-key), or pass --self-signed DIR for a test certificate"
    )]
    NoCertificate(String),
    /// Client certificates are required, but no CA is configured.
    #[error(
        "the listener {0} requires client certificates: set `client_ca` to the CA that issues \
         them (or pass --tls-client-ca)"
    )]
    NoClientAuthority(String),
    /// Revocation lists where no certificates are asked for.
    #[error(
        "the listener {0} has revocation lists, but no CA of client certificates: set `client_ca`"
    )]
    UselessRevocationList(String),
    /// A listener whose clients cannot log in with certificates as it says.
    #[error("the listener {0}: {1}")]
    CertificateLogin(String, &'static str),
    /// A listener without TLS has certificates.
    #[error("the listener {0} has certificates, but its transport has no TLS: use tls or wss")]
    UselessCertificate(String),
    /// A listener without WebSocket has a path.
    #[error("the listener {0} has a path, but its transport has no WebSocket: use ws or wss")]
    UselessPath(String),
    /// A path that is not valid in a request.
    #[error("the listener {listener}: `{path}` is not a path such as `/mqtt`")]
    BadPath {
        /// Which.
        listener: String,
        /// As given.
        path: String,
    },
    /// Response information that cannot begin a topic.
    #[error(
        "`response_information` is `{0}`, but must be the beginning of a topic: text without `+` \
         and `#`, such as `answers/{{client_id}}/`"
    )]
    BadResponseInformation(String),
    /// `data_dir` is empty.
    #[error("`data_dir` is empty: name a directory, or omit it to keep sessions in memory")]
    NoDataDirectory,
    /// A policy for the queues of shared subscriptions that only sessions can have.
    #[error(
        "`limits.shared_queue_full` is \"end_session\", but must be \"refuse\", \"drop_newest\" or \
         \"drop_oldest\""
    )]
    SharedQueuePolicy,
    /// A durability level without a data directory.
    #[error(
        "the listener {0} has a durability level of its own, but there is no data directory: set \
         `data_dir` (or pass --data-dir)"
    )]
    UselessLevel(String),
    /// An invalid bridge.
    #[error("{place}bridge `{name}`: {what}")]
    Bridge {
        /// `file:line: `, if the configuration was read from a file.
        place: String,
        /// Which.
        name: String,
        /// The problem, and what to write instead.
        what: String,
    },
    /// The certificates of a bridge cannot be used.
    #[error("bridge `{name}`: {source}")]
    BridgeCertificates {
        /// Which.
        name: String,
        /// The problem.
        source: TlsError,
    },
    /// The certificates of a listener cannot be used.
    #[error("the listener {listener}: {source}")]
    Certificates {
        /// Which.
        listener: String,
        /// The problem.
        source: TlsError,
    },
}

/// The configuration as in the file. Every key is optional; unknown keys are errors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Addresses to listen on with plain TCP, `host:port` or a port on 127.0.0.1.
    #[serde(default, deserialize_with = "address::addresses")]
    pub listen: Option<Vec<SocketAddr>>,
    /// Listeners of any transport.
    #[serde(default)]
    pub listeners: Vec<RawListener>,
    /// Certificates of the listeners that configure none.
    #[serde(default)]
    pub tls: RawTls,
    /// Number of event loops, each with its own thread; 0 or absent: one per usable core.
    pub shards: Option<usize>,
    /// Accepts clients without credentials on listeners that are not on loopback and have no
    /// password file.
    pub allow_anonymous: Option<bool>,
    /// Pins shard i to the i-th usable core.
    pub pin_shards: Option<bool>,
    /// Response information for 5.0 clients that request it: the beginning of their response
    /// topics. `{client_id}` is replaced by the client identifier.
    pub response_information: Option<String>,
    /// How shared subscriptions choose the member for a message.
    pub shared_subscription_strategy: Option<SharedStrategy>,
    /// Address of the HTTP endpoints, `/metrics` among them; absent: no HTTP.
    #[serde(default, deserialize_with = "address::maybe_address")]
    pub metrics: Option<SocketAddr>,
    /// Allows `metrics` to be an address that is not on loopback.
    pub metrics_allow_remote: Option<bool>,
    /// Seconds between two publications of the `$SYS` topics; 0 publishes none.
    pub sys_interval_s: Option<u32>,
    /// Outputs that get the metrics once a second, as `--out` states them.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// Limits, each with a default.
    #[serde(default)]
    pub limits: Limits,
    /// Load shedding.
    #[serde(default)]
    pub overload: Overload,
    /// Users and access rules.
    #[serde(default)]
    pub access: AccessSettings,
    /// Directory for sessions, their messages and retained messages; absent: in memory only.
    pub data_dir: Option<PathBuf>,
    /// Durability levels; without effect if there is no data directory.
    pub durability: Option<Durability>,
    /// Bridges to other brokers.
    #[serde(default)]
    pub bridges: Vec<RawBridge>,
    /// The text of the file, for errors with line numbers.
    #[serde(skip)]
    pub source: Option<SourceText>,
}

/// The complete and checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Listeners for clients.
    pub listeners: Vec<Listener>,
    /// Seconds between two checks of certificate files; 0: only on request.
    pub certificates_check_s: u32,
    /// Event loops, from 1 to 64.
    pub shards: usize,
    /// Whether shard i is pinned to the i-th usable core.
    pub pin_shards: bool,
    /// Response information for 5.0 clients that request it.
    pub response_information: Option<String>,
    /// How shared subscriptions choose the member for a message.
    pub shared_strategy: SharedStrategy,
    /// Address of the HTTP endpoints.
    pub metrics: Option<SocketAddr>,
    /// Seconds between two publications of the `$SYS` topics; 0 publishes none.
    pub sys_interval_s: u32,
    /// Outputs that get the metrics; checked, and without secrets.
    pub outputs: Vec<String>,
    /// All limits.
    pub limits: Limits,
    /// Load shedding.
    pub overload: Overload,
    /// Users and access rules.
    pub access: AccessSettings,
    /// Directory for sessions, their messages and retained messages; `None`: in memory only.
    pub data_dir: Option<PathBuf>,
    /// Durability levels.
    pub durability: Durability,
    /// Bridges to other brokers.
    pub bridges: Vec<BridgeConfig>,
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
        match toml::from_str(&text) {
            Ok(raw) => Ok(Self { source: Some(SourceText { path: shown, text }), ..raw }),
            Err(source) => Err(match bridge::line_of_password(&text, source.span()) {
                Some(line) => ConfigError::Password { path: shown, line },
                None => ConfigError::Parse { path: shown, source: Box::new(source) },
            }),
        }
    }

    /// Fills in the defaults and checks all settings.
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
            .map(|listener| listener.resolve(&self.tls, &self.access))
            .collect::<Result<_, _>>()?;
        if listeners.is_empty() {
            return Err(ConfigError::NoListener);
        }
        let allow_anonymous = self.allow_anonymous.unwrap_or(false);
        let has_logins = self.access.password_file.is_some() || self.access.has_common_logins();
        if allow_anonymous && has_logins {
            return Err(ConfigError::AnonymousBesideUsers);
        }
        if !allow_anonymous && let Some(open) = listeners.iter().find(|l| l.needs_consent()) {
            return Err(ConfigError::OpenListener(open.address));
        }
        let is_remote = |address: &SocketAddr| !address.ip().is_loopback();
        if let Some(address) = self.metrics.filter(is_remote)
            && !self.metrics_allow_remote.unwrap_or(false)
        {
            return Err(ConfigError::OpenMetrics(address));
        }
        let shards = shard_count(self.shards);
        self.limits.check()?;
        self.overload.check()?;
        self.access.check()?;
        let durability = self.durability.unwrap_or_default();
        durability.check()?;
        if self.data_dir.as_ref().is_some_and(|dir| dir.as_os_str().is_empty()) {
            return Err(ConfigError::NoDataDirectory);
        }
        if self.data_dir.is_none()
            && let Some(listener) = listeners.iter().find(|listener| listener.has_levels())
        {
            return Err(ConfigError::UselessLevel(listener.to_string()));
        }
        check_range("shards", shards as u64, 1, SHARDS_MAX as u64, "from 1 to 64")?;
        let response_information = self.response_information.filter(|text| !text.is_empty());
        if let Some(text) = &response_information
            && !tacho_codec::is_valid_topic_name(text)
        {
            return Err(ConfigError::BadResponseInformation(text.clone()));
        }
        output_targets(&self.outputs)?;
        let bridges = bridge::resolve(self.bridges, self.source.as_ref())?;
        Ok(Config {
            listeners,
            certificates_check_s: self.tls.check_s.unwrap_or(CERTIFICATES_CHECK_S),
            shards,
            pin_shards: self.pin_shards.unwrap_or(false),
            response_information,
            shared_strategy: self.shared_subscription_strategy.unwrap_or_default(),
            metrics: self.metrics,
            sys_interval_s: self.sys_interval_s.unwrap_or(SYS_INTERVAL_S),
            outputs: self.outputs,
            limits: self.limits,
            overload: self.overload,
            access: self.access,
            data_dir: self.data_dir,
            durability,
            bridges,
        })
    }
}

/// For the names of the tables in it.
#[derive(Serialize)]
struct AccessSection<'a> {
    access: &'a AccessSettings,
}

/// The number of event loops: one per usable core unless it is configured.
fn shard_count(configured: Option<usize>) -> usize {
    match configured.unwrap_or(0) {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(SHARDS_MAX),
        count => count,
    }
}

/// The targets of `outputs`, which must be for brokers.
fn output_targets(outputs: &[String]) -> Result<Vec<OutputTarget>, ConfigError> {
    let targets = outputs.iter().map(|text| OutputTarget::parse_argument(text));
    let targets = targets.collect::<Result<Vec<_>, _>>()?.concat();
    match targets.iter().find(|target| !target.suits_brokers()) {
        Some(target) => Err(ConfigError::OutputOfRuns(target.to_string())),
        None => Ok(targets),
    }
}

impl Config {
    /// The effective configuration in the format of the configuration file.
    pub fn describe(&self) -> String {
        let plain = |listener: &&Listener| {
            listener.transport == Transport::Tcp && !listener.has_own_rules()
        };
        let listen: Vec<String> =
            self.listeners.iter().filter(plain).map(|l| format!("\"{}\"", l.address)).collect();
        let others: String =
            self.listeners.iter().filter(|l| !plain(l)).map(Listener::describe).collect();
        let metrics = self.metrics.map_or_else(String::new, |address| {
            let remote = !address.ip().is_loopback();
            format!("metrics = \"{address}\"\nmetrics_allow_remote = {remote}\n")
        });
        let outputs = match &self.outputs[..] {
            [] => String::new(),
            outputs => format!("outputs = {}\n", toml::Value::from(outputs.to_vec())),
        };
        // Invariant: numbers and words only, which TOML can always express.
        let limits = toml::to_string(&self.limits).unwrap_or_default();
        let overload = toml::to_string(&self.overload).unwrap_or_default();
        let access = toml::to_string(&AccessSection { access: &self.access }).unwrap_or_default();
        let durability = toml::to_string(&self.durability).unwrap_or_default();
        let durability = match self.data_dir {
            Some(_) => format!("\n[durability]\n{durability}"),
            // Without a data directory it has no effect.
            None => String::new(),
        };
        let data_dir = self.data_dir.as_ref().map_or_else(String::new, |dir| {
            format!("data_dir = {}\n", toml::Value::String(dir.display().to_string()))
        });
        let response = self.response_information.clone().map_or_else(String::new, |text| {
            format!("response_information = {}\n", toml::Value::String(text))
        });
        let bridges: String = self.bridges.iter().map(BridgeConfig::describe).collect();
        format!(
            "listen = [{}]\nshards = {}\npin_shards = {}\nallow_anonymous = {}\n\
             shared_subscription_strategy = \"{}\"\n{response}{metrics}{outputs}{data_dir}sys_interval_s = {}\n\n\
             [tls]\ncheck_s = {}\n\n[limits]\n{limits}\n[overload]\n{overload}\
             \n{access}{durability}{others}{bridges}",
            listen.join(", "),
            self.shards,
            self.pin_shards,
            self.listeners.iter().any(Listener::needs_consent),
            self.shared_strategy.name(),
            self.sys_interval_s,
            self.certificates_check_s,
        )
    }

    /// Where the metrics are sent.
    ///
    /// # Errors
    /// An output makes no sense.
    pub fn output_targets(&self) -> Result<Vec<OutputTarget>, ConfigError> {
        output_targets(&self.outputs)
    }

    /// The durability levels of the sessions of each listener.
    pub(crate) fn session_levels(&self) -> Vec<SessionLevels> {
        let levels = |listener: &Listener| SessionLevels {
            persistent: listener.persistent_level.unwrap_or(self.durability.persistent_level),
            clean: listener.clean_level.unwrap_or(self.durability.clean_level),
        };
        self.listeners.iter().map(levels).collect()
    }

    /// The policies for full queues, by listener.
    pub(crate) fn queue_policies(&self) -> Vec<QueuePolicies> {
        let policies = |listener: &Listener| QueuePolicies {
            persistent: listener.persistent_queue_full.unwrap_or(self.limits.persistent_queue_full),
            clean: listener.clean_queue_full.unwrap_or(self.limits.clean_queue_full),
        };
        self.listeners.iter().map(policies).collect()
    }

    /// Reads the certificates of all listeners. The order is that of the listeners.
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

    /// Checks that the certificates of all bridges can be used.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn check_bridges(&self) -> Result<(), ConfigError> {
        self.bridges.iter().try_for_each(|bridge| {
            let name = || bridge.name.clone();
            let error = |source| ConfigError::BridgeCertificates { name: name(), source };
            bridge.open_tls().map(drop).map_err(error)
        })
    }
}

/// Certificates are renewed every few weeks; checking a few small files costs little.
const CERTIFICATES_CHECK_S: u32 = 10;

/// The default of mosquitto.
const SYS_INTERVAL_S: u32 = 10;

/// The route map has one bit of a `u64` per shard.
pub const SHARDS_MAX: usize = 64;

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
