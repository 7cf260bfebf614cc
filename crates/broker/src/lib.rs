//! The MQTT broker: shards own sessions and route messages between them, with a limit on every
//! queue.
//!
//! Each shard is a thread with a [`tacho_net::Loop`]; the private module `shard` handles its
//! events. Shards never block and never read a clock: the loop passes the time to them. Nothing
//! here depends on the load generator.

mod access;
mod asked_access;
mod authentication;
pub mod bridge;
mod bridge_trial;
mod certificates;
mod config;
mod control;
mod delivery;
mod durable;
mod ending;
mod events;
mod gate;
mod given_sockets;
mod hops;
mod keys;
mod line_file;
mod listeners;
mod login_answer;
mod mail;
mod memory;
mod message;
mod party;
mod permits;
mod policy;
mod publish_limit;
mod query;
mod rate;
mod reload;
mod room;
mod server;
mod shard;
#[cfg(feature = "sim")]
pub mod sim;
mod start_error;
mod stats;
mod stored_connect;
mod subscription;
mod topic_metrics;
mod trace;
mod watcher;

pub use access::{AccessControl, AccessReloaded, BackendOutcome, ask_backend, check_access};
pub use authentication::{
    AuthClient, AuthExchange, AuthFailure, AuthMethod, AuthMethods, AuthReply, AuthStep, AuthUser,
};
pub use bridge_trial::{BridgeWire, bridge_addresses, bridge_connect};
pub use certificates::{Certificates, Reloaded, SelfSigned, self_signed};
pub use config::{
    AccessSettings, AlarmSettings, Applies, BackendOrder, BodyFormat, BridgeConfig,
    CertificateClientId, CertificateLogin, Config, ConfigError, ConnectionLimits, Durability,
    EffectiveValue, EgressRule, HttpBackends, HttpMethod, HttpSettings, ImportKind, ImportNote,
    ImportedBridges, IngressRule, JwtSettings, KeyUrl, Level, Limits, Listener, ListenerBackend,
    LogArea, LogFormat, LogLevel, LogSettings, ManagementSettings, ManagementSocket, Mapping,
    OnDeny, OnExpiry, OnRevoked, OnUnavailable, Overload, PSK_REMEDY, Password, PublishExcess,
    PublishLimits, QueuePolicy, RawBridge, RawBridgeTls, RawConfig, RawListener, RawRule, RawTls,
    Remote, RevokedQueue, SHARDS_MAX, Secret, SecretHeader, SessionTakeover, SharedStrategy,
    SocketSettings, SourceText, SubscribeCheck, Template, TemplateError, TokenPlace, Transport,
    TrustedProxies, ValueSource, Values, import_emqx_bridges, parse_address,
};
pub use control::{HealthCheck, SocketError, Unhealthy, management_folder};
pub use durable::JournalError;
pub use durable::records::{KeptMessage, KeptRecord, visit_records};
pub use given_sockets::GivenSockets;
pub use line_file::{LineFile, LineFileOptions, StuckFile};
pub use reload::{ConfigChange, ReloadHooks, ReloadReport, Reloads};
pub use server::{Broker, SharedSubscription, Stopper};
pub use start_error::StartError;
pub use stats::{ByQos, ByReason, Counter, Histogram, ShardStats, overload_effect};
pub use watcher::Watcher;
