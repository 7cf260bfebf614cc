//! Why a configuration cannot be used.

use std::io;
use std::net::SocketAddr;

use tacho_access::FileError;
use tacho_net::tls::TlsError;
use tacho_output::TargetError;

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
    /// A key that only mosquitto knows.
    #[error("{path}:{line}: `{key}` is of mosquitto.conf: {remedy}")]
    ForeignKey {
        /// Path of the file as given.
        path: String,
        /// Line number.
        line: usize,
        /// The key.
        key: &'static str,
        /// What to write instead, or why there is nothing.
        remedy: &'static str,
    },
    /// A folder, or a file in it, that a file includes.
    #[error("`include` in the configuration: {path}: {why}")]
    Include {
        /// The folder or the file.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// A variable of the environment.
    #[error("the environment variable {name} cannot be used: {why}")]
    Variable {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The management API would be served to other machines.
    #[error(
        "`management.listen` is {0}, which other machines reach: keys must not travel unencrypted; \
         set `management.cert` and `management.key`, or listen on 127.0.0.1, behind a proxy with \
         TLS or an SSH tunnel"
    )]
    OpenManagement(SocketAddr),
    /// A certificate without its key, or the other way round.
    #[error("`management.cert` and `management.key` belong together: set both")]
    HalfManagementCertificate,
    /// A certificate of an API that is not served.
    #[error("`management.cert` has no use without `management.listen`")]
    UselessManagementCertificate,
    /// The certificate of the API cannot be used.
    #[error("the certificate of `management.listen`: {0}")]
    ManagementCertificate(#[source] TlsError),
    /// There is no place for keys.
    #[error(
        "`management.listen` needs `management.store`: a folder for the keys that \
         `tacho ctl keys add` makes"
    )]
    NoManagementStore,
    /// What the management API has stored cannot be used.
    #[error("{path}: {why}")]
    ManagementStore {
        /// The file or folder.
        path: String,
        /// The problem.
        why: String,
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
