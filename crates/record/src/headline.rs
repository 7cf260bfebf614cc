//! The figures that a scenario is for.

use serde::{Deserialize, Serialize};

use crate::named::named;

named! {
    /// A figure that stands above all others.
    pub enum HeadlineName {
        /// Until 99 % of disconnected clients are connected again.
        TimeTo99PercentConnected = "time_to_99_percent_connected",
        /// Until 99 % of them have their subscriptions.
        TimeTo99PercentServed = "time_to_99_percent_served",
        /// Attempts to connect that failed.
        FailedAttempts = "failed_attempts",
        /// Until a killed broker serves again.
        RestartServing = "restart_serving",
        /// Messages that waited in bridges at the worst.
        BridgeBacklog = "bridge_backlog",
        /// From the kill until the bridges' backlog was what it was before.
        BridgeDrained = "bridge_drained",
        /// Until 99 % of second connections are served.
        TakeoverServed99 = "takeover_served_99",
        /// First connections that the broker ended.
        TakeoverEnded = "takeover_ended",
        /// First connections that were told why.
        TakeoverTold = "takeover_told",
        /// Clients that leave and come back.
        ConnectsPerSecond = "connects_per_second",
        /// 99th percentile of the latency of unaffected clients.
        SteadyP99 = "steady_p99",
        /// Until the last retained message has arrived.
        LastRetained = "last_retained",
        /// Retained messages that arrived.
        RetainedComplete = "retained_complete",
        /// Until the last will has arrived.
        LastWill = "last_will",
        /// Wills that arrived.
        WillsComplete = "wills_complete",
        /// 99th percentile of the latency of unaffected clients during pauses.
        CalmP99During = "calm_p99_during",
        /// The same before the first pause.
        CalmP99Before = "calm_p99_before",
        /// The same after the last pause.
        CalmP99After = "calm_p99_after",
        /// CPU of the broker per message after the last action.
        CpuPerMessageAfter = "cpu_per_message_after",
        /// The same before the first action.
        CpuPerMessageBefore = "cpu_per_message_before",
        /// Median of the time from request to answer.
        RoundTripP50 = "round_trip_p50",
        /// Its 99th percentile.
        RoundTripP99 = "round_trip_p99",
        /// Requests that were answered.
        Answered = "answered",
        /// Logins that the broker decided, per second.
        LoginsPerSecond = "logins_per_second",
        /// Median of the time from the moment a login is due to its acceptance.
        LoginP50 = "login_p50",
        /// Its 99th percentile.
        LoginP99 = "login_p99",
        /// 99th percentile of the time to a refusal.
        RefusalP99 = "refusal_p99",
        /// Logins that were decided as they must be.
        LoginsRight = "logins_right",
        /// Drift of the broker's memory.
        MemoryDrift = "memory_drift",
        /// Drift of the median latency.
        LatencyDriftP50 = "latency_drift_p50",
        /// Drift of the 99th percentile of the latency.
        LatencyDriftP99 = "latency_drift_p99",
        /// Median latency of the slowest group.
        SlowestGroupP50 = "slowest_group_p50",
        /// Deliveries that arrived.
        Delivered = "delivered",
    }
}

/// What the value of a headline is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadlineUnit {
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Percent.
    Percent,
    /// A number per second.
    PerSecond,
    /// A number of something.
    #[default]
    Count,
    /// Bytes per hour.
    BytesPerHour,
    /// Microseconds per hour.
    MicrosecondsPerHour,
    /// A unit of another version of the program.
    #[serde(untagged)]
    Other(String),
}

/// A figure that stands above all others, with its value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Headline {
    /// Its name for programs: that of a [`HeadlineName`].
    pub name: String,
    /// Its name for readers.
    pub label: String,
    /// The group that it is about; empty where it is about none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The figure; absent where it was never reached, or there was too little to tell.
    pub value: Option<f64>,
    /// What the value is.
    pub unit: HeadlineUnit,
}

impl HeadlineName {
    /// What its values are.
    pub const fn unit(self) -> HeadlineUnit {
        match self {
            Self::TimeTo99PercentConnected
            | Self::TimeTo99PercentServed
            | Self::RestartServing
            | Self::BridgeDrained
            | Self::TakeoverServed99 => HeadlineUnit::Milliseconds,
            Self::FailedAttempts | Self::BridgeBacklog => HeadlineUnit::Count,
            Self::TakeoverEnded
            | Self::TakeoverTold
            | Self::RetainedComplete
            | Self::WillsComplete
            | Self::Answered
            | Self::LoginsRight
            | Self::Delivered => HeadlineUnit::Percent,
            Self::ConnectsPerSecond | Self::LoginsPerSecond => HeadlineUnit::PerSecond,
            Self::SteadyP99
            | Self::LastRetained
            | Self::LastWill
            | Self::CalmP99During
            | Self::CalmP99Before
            | Self::CalmP99After
            | Self::CpuPerMessageAfter
            | Self::CpuPerMessageBefore
            | Self::RoundTripP50
            | Self::RoundTripP99
            | Self::LoginP50
            | Self::LoginP99
            | Self::RefusalP99
            | Self::SlowestGroupP50 => HeadlineUnit::Microseconds,
            Self::MemoryDrift => HeadlineUnit::BytesPerHour,
            Self::LatencyDriftP50 | Self::LatencyDriftP99 => HeadlineUnit::MicrosecondsPerHour,
        }
    }
}

impl Headline {
    /// A figure; `report` writes its label.
    pub fn new(name: HeadlineName, value: Option<f64>) -> Self {
        Self {
            name: name.name().to_owned(),
            value: value.filter(|value| value.is_finite()),
            unit: name.unit(),
            ..Self::default()
        }
    }
}
