//! What `tacho ctl` is told.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::bridges::BridgeWish;
use super::target::CtlTargetArguments;

const CODES: &str = "Exit codes: 0 done, 1 wrong usage or an unexpected error, 99 not healthy, \
                     104 there is no such thing, it cannot be done so, or the key does not allow \
                     it, 112 the broker does not answer. docs/management.md has examples.";

/// Inspect and operate a running broker.
///
/// On the broker's host and as its user it needs nothing: it finds the broker's Unix socket. Where
/// several brokers run, --socket chooses one; by HTTP it needs --url and --key-file.
#[derive(Args, Debug)]
#[command(after_help = CODES)]
pub(crate) struct CtlArguments {
    #[command(flatten)]
    pub(super) target: CtlTargetArguments,

    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub(super) json: bool,

    /// Repeat a command that changes nothing, every SECONDS seconds, until Ctrl-C
    #[arg(long, global = true, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) watch: Option<u64>,

    #[command(subcommand)]
    pub(super) command: CtlCommand,
}

impl CtlCommand {
    /// Whether it changes nothing, and ends by itself.
    pub(super) const fn looks(&self) -> bool {
        match self {
            Self::Kick(_)
            | Self::Publish(_)
            | Self::Reload
            | Self::Bridge { .. }
            | Self::Events(_)
            | Self::Trace(_)
            | Self::Backup { .. }
            | Self::Drain(_)
            | Self::Undrain
            | Self::Listener { .. } => false,
            Self::Retained { command } => !matches!(command, RetainedCommand::Delete { .. }),
            Self::Bans { command } => matches!(command, BansCommand::List),
            Self::Keys { command } => matches!(command, KeysCommand::List),
            Self::TopicMetrics { command } => matches!(command, TopicMetricsCommand::List),
            _ => true,
        }
    }
}

#[derive(Subcommand, Debug)]
pub(super) enum CtlCommand {
    /// Show the state of the broker in a few figures
    Status,
    /// Check that every event loop makes progress: exit code 0 or 99, for probes of containers
    Health,
    /// List clients, connected or away
    Clients(ClientsArguments),
    /// Show a client: session, queues, counters, will, reason of its last disconnect
    Client {
        /// Client identifier
        client_id: String,
    },
    /// Disconnect a client
    Kick(KickArguments),
    /// List the subscriptions of a client
    Subscriptions {
        /// Client identifier
        client_id: String,
    },
    /// List the subscribers of exactly this filter
    Subscribers(SubscribersArguments),
    /// List the receivers of a message to this topic, and the filter of each
    Topic(TopicArguments),
    /// List, read and delete retained messages
    Retained {
        #[command(subcommand)]
        command: RetainedCommand,
    },
    /// Publish a message
    Publish(CtlPublishArguments),
    /// List shared groups and their backlog
    Groups(PageArguments),
    /// List the members of a shared group
    Group {
        /// The group as its members subscribe to it: '$share/GROUP/FILTER'
        filter: String,
    },
    /// List, add and remove bans
    Bans {
        #[command(subcommand)]
        command: BansCommand,
    },
    /// List the users of the password files, with their roles
    Users(PageArguments),
    /// List the roles of the rules file
    Roles,
    /// Explain whether the rules in force allow a client something; exit code 0 or 99
    Explain(CtlExplainArguments),
    /// List listeners, with the number of their connections
    Listeners,
    /// Stop and start a listener
    Listener {
        #[command(subcommand)]
        command: ListenerCommand,
    },
    /// List the limits of the broker, and how much of each is used
    Limits,
    /// Show the state of the bridges
    Bridges,
    /// Create and remove bridges; pause, drain, stop and resume them
    Bridge {
        #[command(subcommand)]
        command: BridgeWish,
    },
    /// Show size, garbage and condition of the journal
    Journal,
    /// List the largest: publishers by rate, queues, retained messages
    Top {
        #[command(subcommand)]
        command: TopCommand,
    },
    /// Show the last hour or day: clients, rates, memory, loop lag
    History(HistoryArguments),
    /// List slow clients, also of the past
    Slow {
        /// Rows of those that are
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10,
              value_parser = clap::value_parser!(u64).range(1..=100))]
        limit: u64,
    },
    /// Count messages of chosen topic filters
    TopicMetrics {
        #[command(subcommand)]
        command: TopicMetricsCommand,
    },
    /// List alarms: disk, memory, overload, certificates, bridges, journal, descriptors
    Alarms(AlarmsArguments),
    /// Show the configuration in force, with the source of each value
    Config(ConfigArguments),
    /// Read configuration, certificates, users, rules and bans again, as SIGHUP does, and list what
    /// is applied and what waits for a restart
    Reload,
    /// Back up the data directory while the broker runs; `tacho journal restore` makes a data
    /// directory of the backup
    Backup {
        /// A directory on the broker's host that is not there or empty, best on the file system of
        /// the data directory
        directory: PathBuf,
    },
    /// Accept no more clients, disconnect the others at a configured rate, and exit
    Drain(DrainArguments),
    /// Show the progress of a drain
    DrainStatus,
    /// Accept clients again, during a drain or after `drain --keep`
    Undrain,
    /// Print the metrics in the format of Prometheus
    Metrics,
    /// Print the description of the API (OpenAPI)
    Openapi,
    /// Follow events until Ctrl-C: clients connected, disconnected and refused, bridges up and down
    Events(EventsArguments),
    /// Follow the packets of clients or topics, and the decisions about them, until Ctrl-C
    ///
    /// Passwords and authentication data are never shown, payloads only if that is asked for. Needs
    /// the role operator.
    Trace(TraceArguments),
    /// List, create and remove keys for the API by HTTP
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
}

/// How much of a list.
#[derive(Args, Debug)]
pub(super) struct PageArguments {
    /// Most rows shown
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: u64,

    /// All rows
    #[arg(long, conflicts_with = "limit")]
    pub(super) all: bool,
}

impl PageArguments {
    pub(super) const fn rows_max(&self) -> usize {
        if self.all { usize::MAX } else { self.limit as usize }
    }
}

#[derive(Args, Debug)]
pub(super) struct ClientsArguments {
    /// Clients whose identifiers have this prefix
    #[arg(long, value_name = "TEXT")]
    pub(super) prefix: Option<String>,

    /// Clients of this user
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,

    /// Clients that are connected from this address or range, such as 192.0.2.0/24
    #[arg(long, value_name = "ADDRESS")]
    pub(super) address: Option<String>,

    /// Clients that are connected, or sessions whose client is away
    #[arg(long, value_name = "STATE", value_parser = ["connected", "away"])]
    pub(super) state: Option<String>,

    #[command(flatten)]
    pub(super) page: PageArguments,
}

#[derive(Args, Debug)]
pub(super) struct KickArguments {
    /// Client identifier
    pub(super) client_id: String,

    /// End its session, too: subscriptions and queued messages are gone
    #[arg(long)]
    pub(super) end_session: bool,
}

#[derive(Args, Debug)]
pub(super) struct SubscribersArguments {
    /// The topic filter, exactly as it was subscribed
    pub(super) filter: String,

    #[command(flatten)]
    pub(super) page: PageArguments,
}

#[derive(Args, Debug)]
pub(super) struct TopicArguments {
    /// The topic
    pub(super) topic: String,

    #[command(flatten)]
    pub(super) page: PageArguments,
}

#[derive(Args, Debug)]
pub(super) struct HistoryArguments {
    /// The last day with a point each minute, instead of the last hour with one each 10 seconds
    #[arg(long)]
    pub(super) day: bool,

    /// Most points shown; the last ones are
    #[arg(short = 'n', long, value_name = "N", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=1_440))]
    pub(super) limit: u64,
}

#[derive(Args, Debug)]
pub(super) struct CtlExplainArguments {
    /// Client identifier; if it has a session, its login and address are used
    #[arg(short = 'i', long)]
    pub(super) client_id: Option<String>,

    /// User, instead of the one that the client has logged in as
    #[arg(short, long)]
    pub(super) user: Option<String>,

    /// QoS of the message or the subscription
    #[arg(short, long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(super) qos: u8,

    /// For a retained message
    #[arg(short, long)]
    pub(super) retain: bool,

    /// The action of the client
    #[arg(value_parser = ["connect", "publish", "subscribe", "receive"])]
    pub(super) action: String,

    /// Topic, or filter of a subscription
    #[arg(required_if_eq_any = [
        ("action", "publish"), ("action", "subscribe"), ("action", "receive"),
    ])]
    pub(super) topic: Option<String>,
}

#[derive(Subcommand, Debug)]
pub(super) enum RetainedCommand {
    /// List topics with retained messages
    List {
        /// Those that match this filter. Default: all, except $SYS
        filter: Option<String>,

        #[command(flatten)]
        page: PageArguments,
    },
    /// Print a retained message
    Show {
        /// The topic
        topic: String,
    },
    /// Delete the retained message of a topic, or those of a filter
    Delete {
        /// The topic
        #[arg(required_unless_present = "filter")]
        topic: Option<String>,

        /// All retained messages whose topics match
        #[arg(long, value_name = "FILTER", conflicts_with = "topic")]
        filter: Option<String>,
    },
}

#[derive(Args, Debug)]
pub(super) struct CtlPublishArguments {
    /// The topic
    #[arg(short, long, value_name = "TOPIC")]
    pub(super) topic: String,

    /// The payload as text. Default: empty
    #[arg(short, long, value_name = "TEXT")]
    pub(super) message: Option<String>,

    /// A file with the payload
    #[arg(short, long, value_name = "FILE", conflicts_with = "message")]
    pub(super) file: Option<PathBuf>,

    /// QoS of the message
    #[arg(short, long, value_name = "QOS", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(super) qos: u8,

    /// Retain the message
    #[arg(short, long)]
    pub(super) retain: bool,

    /// Seconds after which the message expires
    #[arg(long, value_name = "SECONDS")]
    pub(super) expiry: Option<u32>,
}

#[derive(Subcommand, Debug)]
pub(super) enum BansCommand {
    /// List bans, with the source of each
    List,
    /// Add a ban; clients that it matches are disconnected
    Add {
        #[command(flatten)]
        of: BannedArguments,

        /// Reason, shown to the client and in the log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,

        /// When it ends, such as 2026-12-31T18:00:00Z. Default: never
        #[arg(long, value_name = "TIME", conflicts_with = "seconds")]
        until: Option<String>,

        /// Seconds after which it ends
        #[arg(long = "for", id = "seconds", value_name = "SECONDS")]
        seconds: Option<u32>,
    },
    /// Lift a ban of an operator or for an offence
    Remove {
        #[command(flatten)]
        of: BannedArguments,
    },
}

/// What a ban is of.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct BannedArguments {
    /// An address or a range, such as 192.0.2.0/24
    #[arg(long, value_name = "ADDRESS")]
    pub(super) address: Option<String>,

    /// A client identifier
    #[arg(long, value_name = "ID")]
    pub(super) client_id: Option<String>,

    /// A user
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,
}

#[derive(Subcommand, Debug)]
pub(super) enum TopCommand {
    /// Clients that publish most, counted for a few seconds
    Publishers {
        /// Rows
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10,
              value_parser = clap::value_parser!(u64).range(1..=100))]
        limit: u64,

        /// Seconds for which publishes are counted
        #[arg(long = "for", id = "counted", value_name = "SECONDS", default_value_t = 5,
              value_parser = clap::value_parser!(u64).range(1..=30))]
        seconds: u64,
    },
    /// Clients with the largest queues, connected or away
    Queues {
        /// Rows
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10,
              value_parser = clap::value_parser!(u64).range(1..=100))]
        limit: u64,
    },
    /// The largest retained messages
    Retained {
        /// Rows
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10,
              value_parser = clap::value_parser!(u64).range(1..=100))]
        limit: u64,
    },
}

#[derive(Subcommand, Debug)]
pub(super) enum TopicMetricsCommand {
    /// List counted filters, with messages and bytes in and out
    List,
    /// Count the messages of a filter until the broker exits
    Add {
        /// The topic filter
        filter: String,
    },
    /// Stop counting the messages of a filter
    Remove {
        /// The topic filter
        filter: String,
    },
}

#[derive(Args, Debug)]
pub(super) struct AlarmsArguments {
    /// Also those of the past
    #[arg(long)]
    pub(super) past: bool,
}

#[derive(Args, Debug)]
pub(super) struct ConfigArguments {
    /// Only values that differ from the default
    #[arg(long)]
    pub(super) changed: bool,
}

#[derive(Subcommand, Debug)]
pub(super) enum ListenerCommand {
    /// Start a stopped listener
    Start {
        /// Its address as `tacho ctl listeners` shows it
        address: String,
    },
    /// Stop a listener: it accepts no more connections, and keeps those that it has
    Stop {
        /// Its address as `tacho ctl listeners` shows it
        address: String,
    },
}

#[derive(Args, Debug)]
pub(super) struct DrainArguments {
    /// Seconds between the end of accepting and the first disconnect: time for a load balancer to
    /// see that /healthz fails
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(super) wait: u64,

    /// Clients disconnected per second
    #[arg(long, value_name = "N", default_value_t = 500,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) rate: u32,

    /// Seconds until no client is left, the wait included; the rate is raised where that needs it
    #[arg(long, value_name = "SECONDS", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) deadline: u64,

    /// Server reference for clients of MQTT 5.0, such as b.example:8883 (reason code 0x9C). Without
    /// it they get "server shutting down" (0x8B)
    #[arg(long, value_name = "SERVER")]
    pub(super) server_reference: Option<String>,

    /// Do not exit when no client is left, and accept none until `undrain`
    #[arg(long)]
    pub(super) keep: bool,

    /// Return at once, without waiting for the end of the drain
    #[arg(long)]
    pub(super) detach: bool,
}

#[derive(Args, Debug)]
pub(super) struct EventsArguments {
    /// Only these: connected, disconnected, taken_over, refused, login_refused, dropped, overload,
    /// bridge_up, bridge_down, alarm_raised, alarm_ended, drain; with commas between them
    #[arg(long, value_name = "EVENTS")]
    pub(super) only: Option<String>,

    /// Only events of this client
    #[arg(long, value_name = "ID")]
    pub(super) client_id: Option<String>,

    /// Only events of clients whose identifiers have this prefix
    #[arg(long, value_name = "TEXT")]
    pub(super) prefix: Option<String>,

    /// Only events of clients of this user
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,

    /// End after this many events
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) count: Option<u64>,
}

/// What a trace follows: that for which everything given holds.
#[derive(Args, Debug)]
#[group(id = "followed", required = true, multiple = true,
        args = ["client_id", "user", "address", "topic"])]
pub(super) struct TraceArguments {
    /// Packets of this client
    #[arg(long, value_name = "ID")]
    pub(super) client_id: Option<String>,

    /// Packets of clients of this user
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,

    /// Packets of clients connected from this address or range, such as 192.0.2.0/24
    #[arg(long, value_name = "ADDRESS")]
    pub(super) address: Option<String>,

    /// Only messages whose topics match this filter
    #[arg(long, value_name = "FILTER")]
    pub(super) topic: Option<String>,

    /// Form in which payloads are shown
    #[arg(long, value_name = "FORM", default_value = "off", value_parser = ["off", "text", "hex"])]
    pub(super) payload: String,

    /// Bytes shown of each payload
    #[arg(long, value_name = "BYTES", default_value_t = 256,
          value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub(super) payload_bytes: u64,

    /// Seconds after which the trace ends
    #[arg(long = "for", id = "seconds", value_name = "SECONDS", default_value_t = 600,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) seconds: u64,

    /// MiB after which the trace ends
    #[arg(long, value_name = "MIB", default_value_t = 16,
          value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub(super) mib_max: u64,

    /// Write the trace to this file, which must not exist
    #[arg(short, long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,

    /// End after this many entries
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) count: Option<u64>,
}

#[derive(Subcommand, Debug)]
pub(super) enum KeysCommand {
    /// List keys
    List,
    /// Create a key, which is shown once
    Add {
        /// Its name
        name: String,

        /// Role: viewer, operator or administrator
        #[arg(long, value_name = "ROLE", value_parser = ["viewer", "operator", "administrator"])]
        role: String,
    },
    /// Remove a key
    Remove {
        /// Its name
        name: String,
    },
}
