//! `tacho broker`: the broker by itself, until a signal ends it.

mod given;
mod signals;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tacho_broker::{
    AuthMethods, BridgeConfig, Broker, Config, ConfigError, Level, Listener, LogFormat,
    LogSettings, ManagementSocket, PSK_REMEDY, RawConfig, RawListener, RawTls, SelfSigned,
    SharedStrategy, StartError, ValueSource, check_access, parse_address, self_signed,
};
use tacho_output::target::OUTPUTS_VARIABLE;
use tracing_subscriber::filter::LevelFilter;

use crate::allocator;
use crate::broker_log::BrokerLog;
use crate::exit;
use crate::service;
use signals::{SignalAnswers, reload_hooks, total};

/// Run the broker: MQTT 3.1, 3.1.1 and 5.0 on one port, by TCP, TLS and WebSocket.
///
/// Without arguments it listens on 127.0.0.1:1883 only. It stops on SIGTERM or Ctrl-C and tells
/// MQTT 5.0 clients so. SIGHUP reads configuration, certificates, users, access rules and bans
/// again, SIGUSR1 and SIGUSR2 log the state.
/// With --data-dir, sessions, their messages and retained messages survive the end of the process;
/// without it they live in memory only.
#[derive(Args, Clone, Debug)]
pub(crate) struct BrokerArgs {
    /// Configuration file (TOML); flags override it.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on, [tcp|tls|ws|wss://]host:port[/path], or a port on 127.0.0.1; may be
    /// repeated. Port 0 takes a free one. A WebSocket's path is /mqtt unless given.
    #[arg(short, long, value_name = "ADDRESS")]
    listen: Vec<RawListener>,
    /// Certificate of tls and wss listeners (PEM, with its chain).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// CA certificates that client certificates are verified with (PEM).
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// Certificates that those CAs have revoked (revocation list, PEM or DER); may be repeated.
    /// Each CA needs a list.
    #[arg(long, value_name = "FILE")]
    tls_client_crl: Vec<PathBuf>,
    /// Refuse clients without a certificate of those CAs.
    #[arg(long)]
    tls_require_client_certificate: bool,
    /// For tests: make a CA and a certificate for this machine at each start, and leave them in
    /// DIR; clients trust DIR/ca.pem.
    #[arg(long, value_name = "DIR", conflicts_with = "tls_cert")]
    self_signed: Option<PathBuf>,
    /// Event loops, each a thread. Default: one per usable core.
    #[arg(short, long, value_name = "N")]
    shards: Option<usize>,
    /// Pin each shard to a core of its own.
    #[arg(long)]
    pin: bool,
    /// Accept clients without credentials on listeners that are not on loopback.
    #[arg(long)]
    allow_anonymous: bool,
    /// Users and their hashed passwords, in the format of mosquitto (`tacho passwd` makes it):
    /// clients log in, on loopback too.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// What clients may publish and subscribe to, in the format of mosquitto's acl_file.
    #[arg(long, value_name = "FILE")]
    acl_file: Option<PathBuf>,
    /// What clients may do, by rules in TOML (docs/access-control.md), instead of an acl_file.
    #[arg(long, value_name = "FILE")]
    rules_file: Option<PathBuf>,
    /// Addresses, client identifiers and users that may not connect (TOML).
    #[arg(long, value_name = "FILE")]
    ban_file: Option<PathBuf>,
    /// Write a line of JSON to this file for each refused login and each change of users and rules.
    #[arg(long, value_name = "FILE")]
    audit_file: Option<PathBuf>,
    /// Not supported, and says so: what mosquitto calls `psk_file`.
    #[arg(long, hide = true, value_name = "FILE", value_parser = refuse_psk)]
    psk_file: Option<String>,
    /// Not supported, and says so: what mosquitto calls `psk_hint`.
    #[arg(long, hide = true, value_name = "HINT", value_parser = refuse_psk)]
    psk_hint: Option<String>,
    /// Largest number of connections; 0 means as many as descriptors allow.
    #[arg(long, value_name = "N")]
    connections_max: Option<usize>,
    /// Largest packet in bytes, in either direction.
    #[arg(long, value_name = "BYTES")]
    packet_size_max: Option<u32>,
    /// Which member of a shared subscription gets a message: least_inflight (default),
    /// round_robin, random, sticky, hash_client_id or hash_topic.
    #[arg(long, value_name = "STRATEGY")]
    shared_strategy: Option<SharedStrategy>,
    /// Keep sessions, their messages and retained messages in DIR, which is created if missing.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Durability of persistent sessions and retained messages when the broker acknowledges them:
    /// memory, written (survives the end of the process) or fsynced (survives a power cut, the
    /// default).
    #[arg(long, value_name = "LEVEL")]
    durability: Option<Level>,
    /// Largest number of unacknowledged QoS 1 and 2 messages from the broker to one client.
    #[arg(long, value_name = "N")]
    inflight_max: Option<u16>,
    /// Largest number of messages that wait for one session.
    #[arg(long, value_name = "N")]
    session_queue_len_max: Option<u32>,
    /// End with standard input: for programs that start a broker and may be killed.
    #[arg(long)]
    end_with_stdin: bool,
    /// Answer /metrics (for Prometheus), /healthz and /clients by HTTP at this host:port, or at a
    /// port on 127.0.0.1.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    metrics: Option<SocketAddr>,
    /// Allow a --metrics address that is not on loopback: everyone who reaches it sees the figures.
    #[arg(long)]
    metrics_allow_remote: bool,
    /// The Unix socket for `tacho ctl`: `auto`, `none` or a path [default: auto, which is
    /// $XDG_RUNTIME_DIR/tacho/PORT.sock, else /run/tacho/PORT.sock]. Only this user may open it.
    #[arg(long, value_name = "SOCKET")]
    management_socket: Option<ManagementSocket>,
    /// Serve the management API by HTTP at this host:port, or at a port on 127.0.0.1, to programs
    /// with a key; needs --management-store, and off loopback a certificate ([management] cert).
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    management_listen: Option<SocketAddr>,
    /// Keep the keys of the management API and the bans that operators make in DIR.
    #[arg(long, value_name = "DIR")]
    management_store: Option<PathBuf>,
    /// Send the metrics once a second to a service or a file, beside /metrics; may be given several
    /// times. Default: the outputs of the configuration file, or those in TACHO_OUT.
    ///
    /// influxdb=http://HOST:8086/DATABASE, prometheus=http://HOST:9090/api/v1/write,
    /// otlp=http://HOST:4318, json=FILE, or @FILE with one of these per line; docs/outputs.md has
    /// their options.
    #[arg(long = "out", value_name = "KIND=ADDRESS")]
    outputs: Vec<String>,
    /// Seconds between two publications of the $SYS/broker/ topics [default: 10]; 0 turns them off.
    #[arg(long, value_name = "N")]
    sys_interval_s: Option<u32>,
    /// Check the configuration, print the effective limits, and exit.
    #[arg(long)]
    check_config: bool,
    /// Write the log to this file instead of standard error. It is renamed when it is large, and
    /// opened anew on SIGHUP if it was moved away.
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Form of the log: text, or json for one object a line.
    #[arg(long, value_name = "FORMAT", value_parser = log_format)]
    log_format: Option<LogFormat>,
    /// Log only warnings and errors.
    #[arg(short, long)]
    quiet: bool,
    /// Log every connection: client, address, user, protocol and listener when it begins, reason
    /// and duration when it ends; given twice, log more.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl BrokerArgs {
    fn raw_config(&self) -> Result<RawConfig, ConfigError> {
        // What is not text is no value of ours.
        let environment = std::env::vars_os();
        let environment = environment
            .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)));
        let mut raw = RawConfig::read_with(self.config.as_deref(), environment)?;
        if !self.listen.is_empty() {
            raw.listen = Some(Vec::new());
            raw.listeners.clone_from(&self.listen);
        }
        self.set_tls(&mut raw.tls);
        raw.shards = self.shards.or(raw.shards);
        raw.pin_shards = if self.pin { Some(true) } else { raw.pin_shards };
        raw.allow_anonymous = if self.allow_anonymous { Some(true) } else { raw.allow_anonymous };
        if self.password_file.is_some() {
            raw.access.password_file.clone_from(&self.password_file);
        }
        if self.acl_file.is_some() {
            raw.access.acl_file.clone_from(&self.acl_file);
        }
        if self.rules_file.is_some() {
            raw.access.rules_file.clone_from(&self.rules_file);
        }
        if self.ban_file.is_some() {
            raw.access.ban_file.clone_from(&self.ban_file);
        }
        if self.audit_file.is_some() {
            raw.access.audit_file.clone_from(&self.audit_file);
        }
        raw.shared_subscription_strategy =
            self.shared_strategy.or(raw.shared_subscription_strategy);
        if self.log_file.is_some() {
            raw.log.file.clone_from(&self.log_file);
        }
        raw.log.format = self.log_format.unwrap_or(raw.log.format);
        raw.metrics = self.metrics.or(raw.metrics);
        raw.sys_interval_s = self.sys_interval_s.or(raw.sys_interval_s);
        if !self.outputs.is_empty() {
            raw.outputs.clone_from(&self.outputs);
        } else if raw.outputs.is_empty()
            && let Ok(text) = std::env::var(OUTPUTS_VARIABLE)
        {
            raw.outputs = text.split_whitespace().map(str::to_owned).collect();
            raw.given.push(("outputs", ValueSource::Environment));
        }
        if self.metrics_allow_remote {
            raw.metrics_allow_remote = Some(true);
        }
        if self.data_dir.is_some() {
            raw.data_dir.clone_from(&self.data_dir);
        }
        if let Some(level) = self.durability {
            let durability = raw.durability.get_or_insert_default();
            durability.persistent_level = level;
            durability.retained_level = level;
        }
        let limits = &mut raw.limits;
        limits.connections_max = self.connections_max.unwrap_or(limits.connections_max);
        limits.packet_size_max = self.packet_size_max.unwrap_or(limits.packet_size_max);
        limits.inflight_max = self.inflight_max.unwrap_or(limits.inflight_max);
        limits.session_queue_len_max =
            self.session_queue_len_max.unwrap_or(limits.session_queue_len_max);
        self.set_management(&mut raw);
        raw.given.extend(self.given().into_iter().map(|key| (key, ValueSource::Flag)));
        Ok(raw)
    }

    fn set_tls(&self, tls: &mut RawTls) {
        if self.tls_cert.is_some() {
            tls.cert.clone_from(&self.tls_cert);
            tls.key.clone_from(&self.tls_key);
        }
        if self.tls_client_ca.is_some() {
            tls.client_ca.clone_from(&self.tls_client_ca);
        }
        if !self.tls_client_crl.is_empty() {
            tls.client_crl = Some(self.tls_client_crl.clone());
        }
        if self.tls_require_client_certificate {
            tls.require_client_certificate = Some(true);
        }
    }

    /// The configuration with certificates that can be used, or a sentence.
    fn config(&self, mut raw: RawConfig) -> Result<Config, String> {
        if let Some(folder) = &self.self_signed {
            let files = make_certificates(folder, &raw)?;
            tracing::info!("clients can trust {}", files.ca.display());
            raw.tls.cert = Some(files.cert);
            raw.tls.key = Some(files.key);
        }
        self.checked(raw)
    }

    /// The configuration of the running broker, read again: certificates that it has made stay.
    fn read_again(&self) -> Result<Config, String> {
        let mut raw = self.raw_config().map_err(|error| error.to_string())?;
        if let Some(folder) = &self.self_signed {
            let made = SelfSigned::within(folder);
            (raw.tls.cert, raw.tls.key) = (Some(made.cert), Some(made.key));
        }
        self.checked(raw)
    }

    fn checked(&self, raw: RawConfig) -> Result<Config, String> {
        let is_useless = raw.durability.is_some() && raw.data_dir.is_none();
        let config = raw.resolve().map_err(|error| error.to_string())?;
        if self.durability.is_some() && config.data_dir.is_none() {
            return Err("--durability has no use without --data-dir (or `data_dir`)".to_owned());
        }
        if is_useless {
            tracing::warn!("[durability] has no effect without --data-dir (or `data_dir`)");
        }
        if self.check_config {
            config.open_transports().map_err(|error| error.to_string())?;
            config.check_bridges().map_err(|error| error.to_string())?;
            check_access(&config).map_err(|error| error.to_string())?;
            config.management.open_tls().map_err(|error| error.to_string())?;
        }
        for warning in config.bridges.iter().flat_map(BridgeConfig::warnings) {
            tracing::warn!("{warning}");
        }
        Ok(config)
    }

    /// The level that a flag asks for.
    const fn log_level(&self) -> Option<LevelFilter> {
        match (self.quiet, self.verbose) {
            (true, _) => Some(LevelFilter::WARN),
            (false, 0) => None,
            (false, 1) => Some(LevelFilter::DEBUG),
            (false, _) => Some(LevelFilter::TRACE),
        }
    }

    /// Starts the log. A check of the configuration leaves its file alone.
    fn start_log(&self, raw: &RawConfig) -> Result<BrokerLog, String> {
        let file = raw.log.file.as_deref().filter(|_| !self.check_config).map(Path::to_owned);
        let shown = file.as_deref().map_or_else(String::new, |path| path.display().to_string());
        BrokerLog::start(&LogSettings { file, ..raw.log.clone() }, self.log_level())
            .map_err(|error| format!("cannot open the log file {shown}: {error}"))
    }
}

fn log_format(text: &str) -> Result<LogFormat, &'static str> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("it must be text or json"),
    }
}

/// Flags of pre-shared keys get a reason instead of the word that they are unknown.
fn refuse_psk(_: &str) -> Result<String, &'static str> {
    Err(PSK_REMEDY)
}

/// For the line at the start: what survives the end of the process, and where it is kept.
fn about_storage(config: &Config) -> String {
    let Some(dir) = &config.data_dir else {
        return "sessions live in memory only: nothing survives the end of the process".to_owned();
    };
    let levels = &config.durability;
    format!(
        "data directory {}: persistent sessions {}, clean sessions {}, retained messages {}",
        dir.display(),
        levels.persistent_level,
        levels.clean_level,
        levels.retained_level,
    )
}

/// For the same line: the bridges; empty without any.
fn about_bridges(config: &Config) -> String {
    let bridge = |bridge: &BridgeConfig| match bridge.connections {
        1 => format!("{} to {}", bridge.name, bridge.remote),
        count => format!("{} to {} ({count} connections)", bridge.name, bridge.remote),
    };
    let bridges: Vec<String> = config.bridges.iter().map(bridge).collect();
    match bridges.is_empty() {
        true => String::new(),
        false => format!("; bridges: {}", bridges.join(", ")),
    }
}

/// For the same line: where clients log in and what says what they may do; empty without either.
fn about_access(config: &Config) -> String {
    let mut about = String::new();
    let users: BTreeSet<&Path> =
        config.listeners.iter().filter_map(|listener| listener.password_file.as_deref()).collect();
    for path in users {
        about.push_str(&format!("; users from {}", path.display()));
    }
    for listener in config.listeners.iter().filter(|listener| listener.certificates.is_some()) {
        about.push_str(&format!("; users by certificates at {listener}"));
    }
    if let Some(jwt) = &config.access.jwt {
        let file = jwt.key_file.as_ref().map(|path| path.display().to_string());
        let url = || jwt.key_url.as_ref().map(ToString::to_string);
        let source = file.or_else(url).unwrap_or_default();
        about.push_str(&format!("; tokens by the keys of {source}"));
    }
    for http in config.access.http.all() {
        about.push_str(&format!("; logins by the backend {}", http.shown()));
    }
    let lists = [&config.access.acl_file, &config.access.rules_file];
    for path in lists.into_iter().flatten() {
        about.push_str(&format!("; access rules from {}", path.display()));
    }
    if let Some(path) = &config.access.ban_file {
        about.push_str(&format!("; bans from {}", path.display()));
    }
    about
}

fn make_certificates(folder: &Path, raw: &RawConfig) -> Result<SelfSigned, String> {
    let secure = || raw.listeners.iter().filter(|listener| listener.transport.uses_tls());
    if secure().next().is_none() {
        return Err("--self-signed has no use without a tls or wss listener".to_owned());
    }
    self_signed(folder, secure().map(|listener| listener.address.ip()))
        .map_err(|error| format!("cannot write certificates to {}: {error}", folder.display()))
}

/// Runs the broker until SIGTERM or SIGINT.
pub(crate) fn run(args: &BrokerArgs) -> anyhow::Result<ExitCode> {
    let refused = |sentence: String| {
        eprintln!("tacho broker: {sentence}");
        Ok(ExitCode::from(exit::INVALID_CONFIG))
    };
    let raw = match args.raw_config() {
        Ok(raw) => raw,
        Err(error) => return refused(error.to_string()),
    };
    let log = match args.start_log(&raw) {
        Ok(log) => log,
        Err(sentence) => return refused(sentence),
    };
    let config = match args.config(raw) {
        Ok(config) => config,
        Err(sentence) => return refused(sentence),
    };
    if args.check_config {
        println!("{}", config.describe());
        return Ok(ExitCode::SUCCESS);
    }
    // Before the shards start, so that no signal finds the default handler.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2])
        .context("cannot handle signals")?;
    let about = About::new(&config);
    let given = match service::sockets() {
        Ok(given) => given,
        Err(sentence) => return refused(sentence),
    };
    if !config.huge_pages {
        allocator::refuse_huge_pages();
    }
    let broker = match Broker::start_with(config, AuthMethods::default(), given) {
        Err(error) if is_of_configuration(&error) => return refused(error.to_string()),
        started => started?,
    };
    about.log(&broker);
    broker.reloads().use_hooks(reload_hooks(args, log.control()));
    let status = about_listeners(&broker);
    service::ready(&status);
    let watchdog = service::watchdog(&broker).context("cannot start the watchdog")?;
    allocator::give_memory_back().context("cannot start a thread")?;
    if args.end_with_stdin {
        end_with_stdin(&broker);
    }
    let handle = signals.handle();
    let stats = broker.stats().to_vec();
    let answers = SignalAnswers::new(&broker, status, log.control());
    let waiter = std::thread::spawn(move || answers.until_stopped(&mut signals));
    let result = broker.join();
    drop(watchdog);
    handle.close();
    // The waiter only forwards a signal, and the broker has ended by now.
    let _ = waiter.join();
    tracing::info!(
        "stopped after {} connections, {} messages in, {} out",
        total(&stats, "accepted_total"),
        total(&stats, "publishes_in_total"),
        total(&stats, "publishes_out_total"),
    );
    result?;
    Ok(ExitCode::SUCCESS)
}

/// For the service manager: where clients connect.
fn about_listeners(broker: &Broker) -> String {
    let addresses: Vec<String> = broker.addresses().iter().map(ToString::to_string).collect();
    format!("listening on {}", addresses.join(", "))
}

/// Whether the configuration has to be another one.
const fn is_of_configuration(error: &StartError) -> bool {
    matches!(
        error,
        StartError::Config(_)
            | StartError::Journal { .. }
            | StartError::Outputs(_)
            | StartError::ManagementSocket(_)
            | StartError::UnclaimedSocket { .. }
    )
}

/// What the log says when the broker has started.
struct About {
    shards: usize,
    engine: String,
    listeners: Vec<Listener>,
    storage: String,
    bridges: String,
    access: String,
}

impl About {
    fn new(config: &Config) -> Self {
        Self {
            shards: config.shards,
            engine: about_engine(config),
            listeners: config.listeners.clone(),
            storage: about_storage(config),
            bridges: about_bridges(config),
            access: about_access(config),
        }
    }

    fn log(self, broker: &Broker) {
        let Self { shards, engine, listeners, storage, bridges, access } = self;
        let listeners: Vec<String> = listeners
            .into_iter()
            .zip(broker.addresses())
            .map(|(listener, &address)| Listener { address, ..listener }.to_string())
            .collect();
        tracing::info!(
            "listening on {} with {shards} shards ({engine}), up to {} connections; \
             {storage}{access}{bridges}",
            listeners.join(", "),
            broker.connections_max(),
        );
        if let Some(address) = broker.metrics_address() {
            tracing::info!("metrics at http://{address}/metrics");
        }
        if let Some(path) = broker.management_socket() {
            tracing::info!("`tacho ctl` finds this broker at {}", path.display());
        }
        if let Some(url) = broker.management_url() {
            tracing::info!("management API at {url}/api/v1");
        }
    }
}

/// How shards learn of events and write, as the log says it.
fn about_engine(config: &Config) -> String {
    let events = if cfg!(target_os = "linux") { "epoll" } else { "kqueue" };
    if !config.io_uring {
        return events.to_owned();
    }
    match tacho_net::probe_batch_writes() {
        Ok(()) => format!("{events}, writes with io_uring"),
        Err(error) => format!("{events}, no io_uring: {error}"),
    }
}

/// Stops the broker at the end of standard input.
fn end_with_stdin(broker: &Broker) {
    let stopper = broker.stopper();
    std::thread::spawn(move || {
        // An error is an end as well.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        tracing::info!("standard input has ended");
        stopper.stop();
    });
}
