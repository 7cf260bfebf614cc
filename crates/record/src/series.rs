//! One second of a run.

use serde::{Deserialize, Serialize};

use crate::phase::PhaseName;

/// One interval: a row of `timeseries.csv`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesRow {
    /// Start of the interval in seconds since the start of the run.
    pub start_s: f64,
    /// Its length in seconds: 1, or less for the last one of a phase.
    pub length_s: f64,
    /// The phase it belongs to.
    pub phase: PhaseName,
    /// Clients connected at its end.
    pub connected: u64,
    /// Messages that were due, per second.
    pub offered_in_per_s: f64,
    /// Messages written, per second.
    pub sent_per_s: f64,
    /// Messages acknowledged, per second.
    pub acked_per_s: f64,
    /// Verified first deliveries, per second.
    pub received_per_s: f64,
    /// Messages written more than a millisecond late.
    pub overrun: u64,
    /// Messages never sent.
    pub dropped: u64,
    /// Median of the end-to-end latency, in microseconds.
    pub e2e_p50_us: Option<u64>,
    /// 95th percentile.
    pub e2e_p95_us: Option<u64>,
    /// 99th percentile.
    pub e2e_p99_us: Option<u64>,
    /// Largest.
    pub e2e_max_us: Option<u64>,
    /// 99th percentile of the service time.
    pub service_p99_us: Option<u64>,
    /// 99th percentile of the send delay.
    pub send_delay_p99_us: Option<u64>,
    /// 99th percentile of the time from PUBLISH to its last acknowledgement.
    pub ack_p99_us: Option<u64>,
    /// CPU of the broker process, one core = 100.
    pub broker_cpu_percent: Option<f64>,
    /// Resident memory of the broker in bytes.
    pub broker_rss_bytes: Option<u64>,
    /// 1 - idle - steal of the broker's cores.
    pub broker_cores_busy_percent: Option<f64>,
    /// CPU of the generator's threads, spinning excluded, one core = 100.
    pub generator_cpu_percent: f64,
    /// 1 - idle of the host.
    pub host_cpu_percent: Option<f64>,
    /// 1 - idle - steal of the host.
    #[serde(default)]
    pub host_busy_percent: Option<f64>,
    /// Time that the hypervisor gave to others.
    pub host_steal_percent: Option<f64>,
    /// What other programs used of the broker's cores, in percent of these.
    #[serde(default)]
    pub others_on_broker_cores_percent: Option<f64>,
    /// The machine was disturbed in this second, or its backlog was still that of a disturbed one.
    #[serde(default)]
    pub disturbed: bool,
    /// Memory in use on the host.
    pub host_memory_percent: Option<f64>,
    /// Connects that ended in CONNACK, per second.
    #[serde(default)]
    pub connect_ok_per_s: f64,
    /// Connects that were refused, broke or got no answer in time, per second.
    #[serde(default)]
    pub connect_failed_per_s: f64,
    /// Mean time of successful connects, from TCP connect to CONNACK, in microseconds.
    #[serde(default)]
    pub connect_mean_us: Option<f64>,
    /// 99th percentile of it.
    #[serde(default)]
    pub connect_p99_us: Option<u64>,
    /// Mean time until connects had failed.
    #[serde(default)]
    pub connect_failed_mean_us: Option<f64>,
    /// SUBSCRIBEs that were granted whole, per second.
    #[serde(default)]
    pub subscribe_ok_per_s: f64,
    /// SUBSCRIBEs that were refused in part, broke or got no answer in time, per second.
    #[serde(default)]
    pub subscribe_failed_per_s: f64,
    /// Mean time to SUBACK.
    #[serde(default)]
    pub subscribe_mean_us: Option<f64>,
    /// 99th percentile of it.
    #[serde(default)]
    pub subscribe_p99_us: Option<u64>,
    /// Mean time until SUBSCRIBEs had failed.
    #[serde(default)]
    pub subscribe_failed_mean_us: Option<f64>,
    /// Messages refused, or without acknowledgement when their connection ended, per second.
    #[serde(default)]
    pub publish_failed_per_s: f64,
    /// Mean time from PUBLISH to its last acknowledgement.
    #[serde(default)]
    pub ack_mean_us: Option<f64>,
    /// Mean time until messages had failed.
    #[serde(default)]
    pub publish_failed_mean_us: Option<f64>,
    /// Mean of the end-to-end latency.
    #[serde(default)]
    pub e2e_mean_us: Option<f64>,
    /// Bytes that the clients read, per second.
    #[serde(default)]
    pub bytes_in_per_s: f64,
    /// Bytes that the clients wrote, per second.
    #[serde(default)]
    pub bytes_out_per_s: f64,
    /// Median round trip of PINGREQ and PINGRESP on a connection of its own to each broker; there
    /// are about ten a second.
    #[serde(default)]
    pub rtt_p50_us: Option<u64>,
    /// 99th percentile of it.
    #[serde(default)]
    pub rtt_p99_us: Option<u64>,
    /// Largest.
    #[serde(default)]
    pub rtt_max_us: Option<u64>,
    /// Connections that ended unexpectedly.
    #[serde(default)]
    pub disconnects: u64,
    /// Connections that came back.
    #[serde(default)]
    pub reconnects: u64,
    /// Logins by a schedule that the broker accepted, per second; absent where there are none.
    #[serde(default)]
    pub login_accepted_per_s: Option<f64>,
    /// Logins that it refused for what they presented.
    #[serde(default)]
    pub login_refused_per_s: Option<f64>,
    /// Logins that ended without a decision.
    #[serde(default)]
    pub login_undecided_per_s: Option<f64>,
    /// Median of the time from the moment a login with right credentials was due to the CONNACK
    /// that accepts it, in microseconds.
    #[serde(default)]
    pub login_p50_us: Option<u64>,
    /// 99th percentile of it.
    #[serde(default)]
    pub login_p99_us: Option<u64>,
    /// Largest.
    #[serde(default)]
    pub login_max_us: Option<u64>,
}

/// A part of one interval, by group or broker.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PartRow {
    /// The dimension of the division.
    pub by: PartBy,
    /// Its name; that of the default broker is empty.
    pub name: String,
    /// Clients connected at the interval's end.
    pub connected: u64,
    /// Messages written by its clients, or to it, per second.
    pub sent_per_s: f64,
    /// Verified first deliveries to its clients, or from it, per second.
    pub received_per_s: f64,
    /// Median of the round trip to it, in microseconds.
    pub rtt_p50_us: Option<u64>,
    /// Figures of a broker beside those of its clients.
    #[serde(flatten)]
    pub spent: BrokerSpent,
}

/// Resource use of a broker in one interval, and the state of its bridges within the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BrokerSpent {
    /// CPU of its process, one core = 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// 1 - idle - steal of its cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores_busy_percent: Option<f64>,
    /// Its resident memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
    /// Messages that bridges of others sent to it, per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridged_in_per_s: Option<f64>,
    /// Messages that its bridges sent to others, per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridged_out_per_s: Option<f64>,
    /// Messages that its bridges held at the interval's end: waiting, or sent and not acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridge_waiting: Option<u64>,
    /// Bytes of those that were not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridge_waiting_bytes: Option<u64>,
    /// Connections of its bridges that were up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridge_connections_up: Option<u64>,
}

/// One of several brokers in one interval: a row of `brokers.csv`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrokerRow {
    /// Start of the interval in seconds since the start of the run.
    pub start_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// The phase it belongs to.
    pub phase: PhaseName,
    /// Figures of the broker.
    pub part: PartRow,
}

/// One of several groups of clients in one interval: a row of `groups.csv`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupRow {
    /// Start of the interval in seconds since the start of the run.
    pub start_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// The phase it belongs to.
    pub phase: PhaseName,
    /// Name of the group.
    pub group: String,
    /// Its clients that were connected at the interval's end.
    pub connected: u64,
    /// Messages that they wrote, per second.
    pub sent_per_s: f64,
    /// Verified first deliveries to them, per second.
    pub received_per_s: f64,
}

impl GroupRow {
    /// The same as a part of its interval.
    pub fn part(self) -> PartRow {
        PartRow {
            by: PartBy::Group,
            name: self.group,
            connected: self.connected,
            sent_per_s: self.sent_per_s,
            received_per_s: self.received_per_s,
            ..PartRow::default()
        }
    }
}

/// The dimensions by which a run is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartBy {
    /// Groups of clients.
    #[default]
    Group,
    /// Brokers.
    Broker,
}
