//! The configuration of the broker: as written in the file ([`RawConfig`]), and complete and
//! checked ([`Config`]).

mod access;
mod address;
mod alarms;
mod bridge;
mod certificate_login;
mod changes;
mod connections;
mod durability;
mod emqx;
mod error;
mod foreign;
mod http;
mod http_backends;
mod jwt;
mod keys;
mod layers;
mod limits;
mod listener;
mod log;
mod management;
mod origins;
mod overload;
mod proxy;
mod publish;
mod queue;
mod sockets;
mod sources;
mod strategy;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tacho_net::ServerTransport;
use tacho_output::OutputTarget;

pub use access::{
    AccessSettings, OnDeny, OnRevoked, RevokedQueue, SessionTakeover, SubscribeCheck,
};
pub use address::parse_address;
pub use alarms::AlarmSettings;
pub use bridge::{
    BridgeConfig, EgressRule, IngressRule, Mapping, Password, RawBridge, RawBridgeTls, RawRule,
    Remote, Secret, SourceText, Template, TemplateError, Values,
};
pub use certificate_login::{CertificateClientId, CertificateLogin};
pub use connections::ConnectionLimits;
pub(crate) use durability::SessionLevels;
pub use durability::{Durability, Level};
pub use emqx::{ImportKind, ImportNote, ImportedBridges, import_emqx_bridges};
pub use error::ConfigError;
pub use foreign::PSK_REMEDY;
pub use http::{BackendOrder, BodyFormat, HttpMethod, HttpSettings, OnUnavailable, SecretHeader};
pub use http_backends::{HttpBackends, ListenerBackend};
pub use jwt::{JwtSettings, KeyUrl, OnExpiry, TokenPlace};
pub use keys::Applies;
pub use limits::Limits;
pub use listener::{Listener, RawListener, RawTls, Transport};
pub use log::{LogArea, LogFormat, LogLevel, LogSettings};
pub use management::{ManagementSettings, ManagementSocket};
pub use overload::Overload;
pub use proxy::TrustedProxies;
pub use publish::PublishLimits;
pub(crate) use queue::{QueueLimits, QueuePolicies, overflow_of};
pub use sockets::SocketSettings;
use sources::ConfigSources;
pub use sources::{EffectiveValue, ValueSource};
pub use strategy::SharedStrategy;
pub use tacho_access::{PublishExcess, QueuePolicy};

/// The configuration as in the file. Every key is optional; unknown keys are errors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// A folder whose files belong to this one.
    pub include: Option<PathBuf>,
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
    /// Keeps transparent huge pages, if the system has them; the program that runs the broker sees
    /// to it.
    pub huge_pages: Option<bool>,
    /// Writes to many connections with one system call, where the system can.
    pub io_uring: Option<bool>,
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
    /// The log.
    #[serde(default)]
    pub log: LogSettings,
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
    /// The management API.
    #[serde(default)]
    pub management: ManagementSettings,
    /// Alarms.
    #[serde(default)]
    pub alarms: AlarmSettings,
    /// The text of the file, for errors with line numbers.
    #[serde(skip)]
    pub source: Option<SourceText>,
    /// Keys that were set by flags and variables of their own.
    #[serde(skip)]
    pub given: Vec<(&'static str, ValueSource)>,
    /// Where the values of files and of the environment come from, by key.
    #[serde(skip)]
    pub places: BTreeMap<String, (ValueSource, String)>,
}

/// When a change of each key that is in no section takes effect.
const KEYS: [(&str, Applies); 14] = [
    ("include", Applies::Restart),
    ("listen", Applies::Live),
    ("shards", Applies::Restart),
    ("allow_anonymous", Applies::Live),
    ("pin_shards", Applies::Restart),
    ("huge_pages", Applies::Restart),
    ("io_uring", Applies::Restart),
    ("response_information", Applies::Restart),
    ("shared_subscription_strategy", Applies::Restart),
    ("metrics", Applies::Restart),
    ("metrics_allow_remote", Applies::Restart),
    ("sys_interval_s", Applies::Restart),
    ("outputs", Applies::Restart),
    ("data_dir", Applies::Restart),
];

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
    /// Whether transparent huge pages stay on, if the system has them; the program that runs the
    /// broker sees to it.
    pub huge_pages: bool,
    /// Whether shards write to many connections with one system call, where the system can.
    pub io_uring: bool,
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
    /// The log.
    pub log: LogSettings,
    /// Users and access rules.
    pub access: AccessSettings,
    /// Directory for sessions, their messages and retained messages; `None`: in memory only.
    pub data_dir: Option<PathBuf>,
    /// Durability levels.
    pub durability: Durability,
    /// Bridges to other brokers.
    pub bridges: Vec<BridgeConfig>,
    /// The management API.
    pub management: ManagementSettings,
    /// Alarms.
    pub alarms: AlarmSettings,
    sources: ConfigSources,
}

impl RawConfig {
    /// Reads a TOML file, with the files of the folder that it includes.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has an unknown key or a value of the wrong type.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        layers::read(Some(path), std::iter::empty())
    }

    /// The same, with variables of the environment: `TACHO_BROKER__LIMITS__SESSIONS_MAX` is
    /// `sessions_max` in `[limits]`. They take the place of what the file has; without a file they
    /// are all there is.
    ///
    /// # Errors
    /// See [`RawConfig::read`]; a variable names no key, or has a value that does not fit.
    pub fn read_with(
        path: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        layers::read(path, environment)
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
        check_metrics(self.metrics, self.metrics_allow_remote.unwrap_or(false))?;
        let shards = shard_count(self.shards);
        self.limits.check()?;
        self.overload.check()?;
        self.log.check()?;
        self.access.check()?;
        self.management.check()?;
        self.alarms.check()?;
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
        let response_information = response_information(self.response_information)?;
        output_targets(&self.outputs)?;
        let bridges = bridge::resolve(self.bridges, self.source.as_ref())?;
        let sources = ConfigSources::new(self.places, self.given);
        Ok(Config {
            listeners,
            certificates_check_s: self.tls.check_s.unwrap_or(CERTIFICATES_CHECK_S),
            shards,
            pin_shards: self.pin_shards.unwrap_or(false),
            huge_pages: self.huge_pages.unwrap_or(false),
            io_uring: self.io_uring.unwrap_or(true),
            response_information,
            shared_strategy: self.shared_subscription_strategy.unwrap_or_default(),
            metrics: self.metrics,
            sys_interval_s: self.sys_interval_s.unwrap_or(SYS_INTERVAL_S),
            outputs: self.outputs,
            limits: self.limits,
            overload: self.overload,
            log: self.log,
            access: self.access,
            data_dir: self.data_dir,
            durability,
            bridges,
            management: self.management,
            alarms: self.alarms,
            sources,
        })
    }
}

/// The endpoints have no users: others than this machine's need consent.
fn check_metrics(address: Option<SocketAddr>, allows_remote: bool) -> Result<(), ConfigError> {
    match address.filter(|address| !address.ip().is_loopback() && !allows_remote) {
        Some(address) => Err(ConfigError::OpenMetrics(address)),
        None => Ok(()),
    }
}

/// The response information, if it can begin a topic.
fn response_information(text: Option<String>) -> Result<Option<String>, ConfigError> {
    match text.filter(|text| !text.is_empty()) {
        Some(text) if !tacho_codec::is_valid_topic_name(&text) => {
            Err(ConfigError::BadResponseInformation(text))
        }
        text => Ok(text),
    }
}

/// Why a file cannot be parsed.
fn unparsed(path: String, text: &str, source: toml::de::Error) -> ConfigError {
    if let Some(line) = bridge::line_of_password(text, source.span()) {
        return ConfigError::Password { path, line };
    }
    match foreign::remedy(source.message()) {
        Some((key, remedy)) => {
            let before = source.span().and_then(|span| text.get(..span.start));
            let line = before.unwrap_or_default().matches('\n').count() + 1;
            ConfigError::ForeignKey { path, line, key, remedy }
        }
        None => ConfigError::Parse { path, source: Box::new(source) },
    }
}

/// For the names of the tables in it.
#[derive(Serialize)]
struct NamedSections<'a> {
    log: &'a LogSettings,
    access: &'a AccessSettings,
    management: &'a ManagementSettings,
    alarms: &'a AlarmSettings,
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
        let (log, access, management) = (&self.log, &self.access, &self.management);
        let named = NamedSections { log, access, management, alarms: &self.alarms };
        let named = toml::to_string(&named).unwrap_or_default();
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
            "listen = [{}]\nshards = {}\npin_shards = {}\nhuge_pages = {}\nio_uring = {}\nallow_anonymous = {}\n\
             shared_subscription_strategy = \"{}\"\n{response}{metrics}{outputs}{data_dir}sys_interval_s = {}\n\n\
             [tls]\ncheck_s = {}\n\n[limits]\n{limits}\n[overload]\n{overload}\
             \n{named}{durability}{others}{bridges}",
            listen.join(", "),
            self.shards,
            self.pin_shards,
            self.huge_pages,
            self.io_uring,
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

    /// The same with other listeners, and with these limits.
    pub(crate) fn with_listeners(&self, listeners: Vec<Listener>, limits: &Limits) -> Self {
        Self { listeners, limits: limits.clone(), ..self.clone() }
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
