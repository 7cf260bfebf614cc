//! What `tacho ctl` is told.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::bridges::BridgeWish;
use super::target::CtlTargetArguments;

const CODES: &str = "Exit codes: 0 done, 1 wrong usage or an unexpected error, 99 not healthy, \
                     104 there is no such thing, it cannot be done so, or the key does not allow \
                     it, 112 the broker does not answer. docs/management.md has examples.";

/// Look into a running broker, and operate it.
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

    /// Repeat a command that looks, every so many seconds, until Ctrl-C
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
    /// The broker in a few figures
    Status,
    /// Whether every event loop takes its turns: exit code 0 or 99, for probes of containers
    Health,
    /// List clients, connected or away
    Clients(ClientsArguments),
    /// All there is to know of a client, with the reason of its last disconnect
    Client {
        /// Client identifier
        client_id: String,
    },
    /// Disconnect a client
    Kick(KickArguments),
    /// What a client has subscribed to
    Subscriptions {
        /// Client identifier
        client_id: String,
    },
    /// Who has subscribed to exactly this filter
    Subscribers(SubscribersArguments),
    /// Who would get a message to this topic, and by which filter
    Topic(TopicArguments),
    /// List, read and delete retained messages
    Retained {
        #[command(subcommand)]
        command: RetainedCommand,
    },
    /// Publish a message
    Publish(CtlPublishArguments),
    /// List shared groups and what waits for them
    Groups(PageArguments),
    /// The members of a shared group
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
    /// Whether a client may do something by the rules in force, and why; exit code 0 or 99
    Explain(CtlExplainArguments),
    /// List where clients connect, with the number of their connections
    Listeners,
    /// Stop and start a listener
    Listener {
        #[command(subcommand)]
        command: ListenerCommand,
    },
    /// List the broker's limits, and how much is used
    Limits,
    /// How bridges stand
    Bridges,
    /// Make and remove bridges; pause, drain, stop and resume them
    Bridge {
        #[command(subcommand)]
        command: BridgeWish,
    },
    /// Size, garbage and condition of the journal
    Journal,
    /// What takes most: clients that publish, queues, retained messages
    Top {
        #[command(subcommand)]
        command: TopCommand,
    },
    /// How the broker has been in the last hour or day: clients, rates, memory, loop lag
    History(HistoryArguments),
    /// Clients that are slow, or were
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
    /// The configuration in force, with where each value comes from
    Config(ConfigArguments),
    /// Read configuration, certificates, users, rules and bans again, as SIGHUP does; says what is
    /// applied, and what waits for the next start
    Reload,
    /// Back the data directory up while the broker goes on; `tacho journal restore` makes a data
    /// directory of it
    Backup {
        /// A directory on the broker's host that is not there or empty, best on the file system of
        /// the data directory
        directory: PathBuf,
    },
    /// Take no more clients, send those that are here away bit by bit, and end
    Drain(DrainArguments),
    /// Whether the broker is being drained, and how far it is
    DrainStatus,
    /// Take clients again after `drain --keep`, or in the middle of a drain
    Undrain,
    /// The metrics in the format of Prometheus
    Metrics,
    /// The description of the API (OpenAPI)
    Openapi,
    /// Follow events until Ctrl-C: clients that come, go and are refused, bridges that go up and
    /// down
    Events(EventsArguments),
    /// Follow the packets of clients or topics, and what is decided about them, until Ctrl-C
    ///
    /// Passwords and authentication data are never shown, payloads only if that is asked for. Needs
    /// the role operator.
    Trace(TraceArguments),
    /// List, make and remove keys for the API by HTTP
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
}

/// How much of a list.
#[derive(Args, Debug)]
pub(super) struct PageArguments {
    /// Rows at most
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
    /// Client identifiers that begin so
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
    /// The topic filter, letter by letter
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
    /// The last day, a point each minute, instead of the last hour, one each ten seconds
    #[arg(long)]
    pub(super) day: bool,

    /// Points at most, the last ones
    #[arg(short = 'n', long, value_name = "N", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=1_440))]
    pub(super) limit: u64,
}

#[derive(Args, Debug)]
pub(super) struct CtlExplainArguments {
    /// Client identifier; one that has a session is asked about with its login and address
    #[arg(short = 'i', long)]
    pub(super) client_id: Option<String>,

    /// User, in the place of the one that the client has logged in as
    #[arg(short, long)]
    pub(super) user: Option<String>,

    /// QoS of the message or the subscription
    #[arg(short, long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(super) qos: u8,

    /// The message is to be retained
    #[arg(short, long)]
    pub(super) retain: bool,

    /// What the client wants to do
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

    /// Seconds after which the message is worth nothing
    #[arg(long, value_name = "SECONDS")]
    pub(super) expiry: Option<u32>,
}

#[derive(Subcommand, Debug)]
pub(super) enum BansCommand {
    /// List bans, with where they come from
    List,
    /// Ban something; its clients are disconnected
    Add {
        #[command(flatten)]
        of: BannedArguments,

        /// Why; the client and the log learn it
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,

        /// When it ends, such as 2026-12-31T18:00:00Z. Default: never
        #[arg(long, value_name = "TIME", conflicts_with = "seconds")]
        until: Option<String>,

        /// After how many seconds it ends
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
    /// Clients that publish most, counted for some seconds
    Publishers {
        /// Rows
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10,
              value_parser = clap::value_parser!(u64).range(1..=100))]
        limit: u64,

        /// For how many seconds publishes are counted
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
    /// Count the messages of a filter, until the broker ends
    Add {
        /// The topic filter
        filter: String,
    },
    /// Count them no longer
    Remove {
        /// The topic filter
        filter: String,
    },
}

#[derive(Args, Debug)]
pub(super) struct AlarmsArguments {
    /// Those that have ended, too
    #[arg(long)]
    pub(super) past: bool,
}

#[derive(Args, Debug)]
pub(super) struct ConfigArguments {
    /// Only what is not the default
    #[arg(long)]
    pub(super) changed: bool,
}

#[derive(Subcommand, Debug)]
pub(super) enum ListenerCommand {
    /// Open a listener that was stopped
    Start {
        /// Its address as `tacho ctl listeners` shows it
        address: String,
    },
    /// Close a listener: it takes no more connections, and those that it has stay
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

    /// Clients that are disconnected per second
    #[arg(long, value_name = "N", default_value_t = 500,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) rate: u32,

    /// Seconds until no client is left, the wait included; the rate is raised where that needs it
    #[arg(long, value_name = "SECONDS", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) deadline: u64,

    /// Where clients of MQTT 5.0 are told to go, such as b.example:8883 (reason code 0x9C). Without
    /// it they learn that the server shuts down (0x8B)
    #[arg(long, value_name = "SERVER")]
    pub(super) server_reference: Option<String>,

    /// Stay when no client is left, and take none: `undrain` ends that
    #[arg(long)]
    pub(super) keep: bool,

    /// Do not wait for the end
    #[arg(long)]
    pub(super) detach: bool,
}

#[derive(Args, Debug)]
pub(super) struct EventsArguments {
    /// Only these: connected, disconnected, taken_over, refused, login_refused, dropped, overload,
    /// bridge_up, bridge_down, alarm_raised, alarm_ended, drain; with commas between them
    #[arg(long, value_name = "EVENTS")]
    pub(super) only: Option<String>,

    /// Only of this client
    #[arg(long, value_name = "ID")]
    pub(super) client_id: Option<String>,

    /// Only of clients whose identifiers begin so
    #[arg(long, value_name = "TEXT")]
    pub(super) prefix: Option<String>,

    /// Only of clients of this user
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,

    /// End after so many events
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) count: Option<u64>,
}

/// What a trace follows: that for which everything given holds.
#[derive(Args, Debug)]
#[group(id = "followed", required = true, multiple = true,
        args = ["client_id", "user", "address", "topic"])]
pub(super) struct TraceArguments {
    /// Of this client
    #[arg(long, value_name = "ID")]
    pub(super) client_id: Option<String>,

    /// Of clients of this user
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,

    /// Of clients that are connected from this address or range, such as 192.0.2.0/24
    #[arg(long, value_name = "ADDRESS")]
    pub(super) address: Option<String>,

    /// Only messages whose topics match this filter
    #[arg(long, value_name = "FILTER")]
    pub(super) topic: Option<String>,

    /// How payloads are shown
    #[arg(long, value_name = "FORM", default_value = "off", value_parser = ["off", "text", "hex"])]
    pub(super) payload: String,

    /// Bytes of a payload that are shown
    #[arg(long, value_name = "BYTES", default_value_t = 256,
          value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub(super) payload_bytes: u64,

    /// After how many seconds the trace ends
    #[arg(long = "for", id = "seconds", value_name = "SECONDS", default_value_t = 600,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) seconds: u64,

    /// After how many MiB the trace ends
    #[arg(long, value_name = "MIB", default_value_t = 16,
          value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub(super) mib_max: u64,

    /// Write the trace to this file, which must not be there yet
    #[arg(short, long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,

    /// End after so many entries
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) count: Option<u64>,
}

#[derive(Subcommand, Debug)]
pub(super) enum KeysCommand {
    /// List keys
    List,
    /// Make a key, which is shown once
    Add {
        /// Its name
        name: String,

        /// What it allows: viewer, operator or administrator
        #[arg(long, value_name = "ROLE", value_parser = ["viewer", "operator", "administrator"])]
        role: String,
    },
    /// Remove a key
    Remove {
        /// Its name
        name: String,
    },
}
