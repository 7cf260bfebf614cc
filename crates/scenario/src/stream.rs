//! Publications: schedule and content.

use serde::Serialize;

use super::data::{DataFile, Table};
use super::quantity::{PerSecond, TimeSpan};
use super::template::Template;

/// One stream that each client of a group publishes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Publish {
    /// Topic name.
    pub topic: Template,
    /// Its messages are requests (5.0), answered here by groups that answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_topic: Option<Template>,
    /// 0, 1 or 2.
    pub qos: u8,
    /// Retain flag.
    pub retain: bool,
    /// When messages are due.
    #[serde(flatten)]
    pub model: Model,
    /// Payload.
    pub payload: Payload,
}

/// When messages are due.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "model", rename_all = "lowercase")]
pub enum Model {
    /// An absolute schedule of even steps.
    Open {
        /// How many.
        rate: Rate,
        /// Where in its period a stream starts.
        phase: PhasePolicy,
        /// Send messages whose time has passed late (true) or skip them (false).
        catch_up: bool,
    },
    /// Random arrivals with an exact mean.
    Poisson {
        /// How many.
        rate: Rate,
        /// As with even steps.
        catch_up: bool,
    },
    /// Several messages at once, at even steps.
    Bursts {
        /// How many messages, on average.
        rate: Rate,
        /// Messages at once.
        burst: u32,
        /// Where in its period a stream has its burst.
        phase: PhasePolicy,
        /// As with even steps.
        catch_up: bool,
    },
    /// As recorded or drawn before.
    Trace {
        /// When.
        trace: Trace,
        /// As with even steps.
        catch_up: bool,
    },
    /// As JMeter's constant throughput timer paces a thread group: whole milliseconds between two
    /// messages of a client, and what is late is not caught up.
    Jmeter {
        /// How many.
        rate: Rate,
        /// Wait for the acknowledgement of a message before the next one.
        wait: bool,
    },
    /// As fast as the broker lets it, `window` messages per stream under way.
    Closed {
        /// Messages under way.
        window: u32,
    },
}

impl Model {
    /// Messages per second of each of this number of clients; `None` without a steady rate.
    pub fn per_client(&self, clients: u32) -> Option<f64> {
        match self {
            Self::Open { rate, .. }
            | Self::Poisson { rate, .. }
            | Self::Bursts { rate, .. }
            | Self::Jmeter { rate, .. } => Some(match rate {
                Rate::Total(rate) => rate.0 / f64::from(clients.max(1)),
                Rate::PerClient(rate) => rate.0,
            }),
            Self::Trace { .. } | Self::Closed { .. } => None,
        }
    }
}

/// A rate of a group's stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// Over all clients of the group.
    Total(PerSecond),
    /// Of each client.
    PerClient(PerSecond),
}

/// Where in its period a stream starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PhasePolicy {
    /// Evenly spread.
    #[default]
    Uniform,
    /// Seeded random.
    Random,
    /// All at once.
    Aligned,
}

/// Arrivals spelled out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// The times, or rates that change with time.
    #[serde(flatten)]
    pub arrivals: Arrivals,
    /// Begin again after this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<TimeSpan>,
    /// Each client plays all of it; otherwise the clients of the group share it.
    pub each: bool,
    /// Played that many times as fast.
    pub speed: f64,
}

/// The form of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// When each message is due.
    At(Vec<TimeSpan>),
    /// Rates, each from some time on.
    Rates(Vec<RateFrom>),
    /// A CSV file with a column `at` (seconds), and perhaps a column `rate`.
    File(Table),
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateFrom {
    /// Since the start.
    pub from: TimeSpan,
    /// Messages per second from then on; may be 0.
    pub rate: PerSecond,
}

/// The content of a message. All but the first three carry the data of the verification as
/// printable text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Payload {
    /// Random bytes.
    Random {
        /// Bytes, the 24 of the measurement header included.
        size: u32,
    },
    /// Zeros.
    Zeros {
        /// Bytes, the 24 of the measurement header included.
        size: u32,
    },
    /// As mqtt-jmeter writes them.
    Jmeter {
        /// Bytes of random text.
        size: u32,
        /// Time and separator in front: 24 more bytes.
        timestamp: bool,
    },
    /// Text, with fields in double braces.
    Text {
        /// The text.
        text: String,
    },
    /// The same file in every message.
    File {
        /// The file.
        file: DataFile,
    },
    /// A row of a table per message.
    Csv {
        /// The table.
        csv: Table,
        /// Text with the columns as fields; without it the row as it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
}

impl Rate {
    /// Messages per second over all `clients` of the group.
    pub fn total(self, clients: u32) -> f64 {
        match self {
            Self::Total(rate) => rate.0,
            Self::PerClient(rate) => rate.0 * f64::from(clients),
        }
    }
}

impl Payload {
    /// Bytes of every message, where that is part of the scenario.
    pub const fn size(&self) -> Option<u32> {
        match self {
            Self::Random { size } | Self::Zeros { size } => Some(*size),
            Self::Jmeter { size, timestamp } => Some(*size + if *timestamp { 24 } else { 0 }),
            _ => None,
        }
    }
}
