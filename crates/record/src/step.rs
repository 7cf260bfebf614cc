//! One measured window.

use std::collections::BTreeMap;

use crate::disturbance::Disturbance;
use serde::{Deserialize, Serialize};

use crate::agents::StepAgent;
use crate::campaign::{DeclaredLost, SharedFairness, StepTarget};
use crate::check::CheckName;
use crate::hosts::HostUse;
use crate::latency::LatencyStats;
use crate::logins::{LoginKind, StepLogins};
use crate::verdict::Verdict;
use tacho_scenario::VarValue;
use tacho_scenario::threshold::{LatencyKind, Metric, Threshold};

/// Share of the offered load, in percent, below which a step is not sustained.
pub const SUSTAINED_PERCENT: f64 = 99.0;

/// The figures of one window of constant load. Rates are per second of the window;
/// utilisation is absent (`null`) where it could not be observed, as with a remote broker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The verdict of this window.
    pub verdict: Verdict,
    /// Which step this is among others, such as `10,000 msg/s`; empty in a single run.
    #[serde(default)]
    pub label: String,
    /// Name of the scenario.
    #[serde(default)]
    pub scenario: String,
    /// Name of the series that it belongs to; empty in a single run.
    #[serde(default)]
    pub series: String,
    /// Value of the stepped variable, where that is a number.
    #[serde(default)]
    pub x: Option<f64>,
    /// The variables of the scenario with their values.
    #[serde(default)]
    pub vars: BTreeMap<String, VarValue>,
    /// Directory of the step's own run, below that of the record; empty in a single run.
    #[serde(default)]
    pub directory: String,
    /// Length of the window in seconds.
    pub window_s: f64,
    /// Publish rate that the schedule asked for.
    pub offered_in_per_s: f64,
    /// Delivery rate that it implies.
    pub offered_out_per_s: f64,
    /// Publish rate that clients handed to their connections.
    pub attempted_in_per_s: f64,
    /// Publish rate that the broker took: acknowledged at QoS 1 and 2, written at QoS 0.
    pub achieved_in_per_s: f64,
    /// Verified first deliveries per second.
    pub achieved_out_per_s: f64,
    /// `achieved_in_per_s` + `achieved_out_per_s`.
    pub tps: f64,
    /// From the time a message was due to its receipt.
    pub latency_us: LatencyStats,
    /// From the time it was written to its receipt.
    pub service_us: LatencyStats,
    /// From the time it was due to the time it was written: the generator's lateness.
    pub send_delay_us: LatencyStats,
    /// From PUBLISH to PUBACK or PUBCOMP.
    pub ack_us: LatencyStats,
    /// Round trip to the broker's host, measured by the side.
    #[serde(default)]
    pub rtt_us: LatencyStats,
    /// From TCP connect to CONNACK, of the run that the step belongs to.
    #[serde(default)]
    pub connect_us: LatencyStats,
    /// Connections per second from the first connect to the last CONNACK, of the same run.
    #[serde(default)]
    pub connect_per_s: Option<f64>,
    /// From the first connect to the last CONNACK, in seconds, of the same run.
    #[serde(default)]
    pub connect_s: Option<f64>,
    /// Messages sent that were due in the window.
    pub sent: u64,
    /// Deliveries that they had to cause.
    pub expected: u64,
    /// Of these, deliveries that came.
    pub received: u64,
    /// Of these, deliveries that did not come.
    pub lost: u64,
    /// Of the lost, those after which nothing else of their publisher and topic came: the broker
    /// may have lost them or still have had them when the drain ended.
    pub undelivered: u64,
    /// Which messages were lost: at most [`LostRange::MAX`] runs of them.
    pub lost_ranges: Vec<LostRange>,
    /// Further runs, which are only counted.
    pub lost_ranges_cut: u64,
    /// Further copies.
    pub duplicates: u64,
    /// First deliveries behind a later message of the same publisher and topic.
    pub out_of_order: u64,
    /// Unexpected messages: from other runs, or at the wrong receiver.
    pub unexpected: u64,
    /// Damaged messages.
    pub corrupted: u64,
    /// Messages sent more than a millisecond late.
    pub overrun: u64,
    /// Messages that were due and never sent.
    pub dropped: u64,
    /// Messages that the broker refused in its acknowledgement.
    pub refused: u64,
    /// Breaches of the QoS contract, warm-up included.
    pub violations: ViolationCounts,
    /// Deliveries of QoS 1 and 2 that never came although the publisher had the PUBACK or PUBCOMP
    /// of their message, warm-up included.
    #[serde(default)]
    pub acknowledged_lost: u64,
    /// The same, while deliveries still came when the drain ended: late, or lost.
    #[serde(default)]
    pub acknowledged_pending: u64,
    /// Sessions that clients came back to and that the broker did not have.
    #[serde(default)]
    pub sessions_lost: u64,
    /// How often the run killed a broker and started it again.
    #[serde(default)]
    pub kills: u64,
    /// How many timed actions happened to clients, brokers or the machine.
    #[serde(default)]
    pub actions: u64,
    /// The part of each group of clients, when there are several.
    #[serde(default)]
    pub groups: Vec<StepGroup>,
    /// Logins by a schedule; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logins: Option<Box<StepLogins>>,
    /// Losses that the scenario declares; they are not in `lost`.
    #[serde(default)]
    pub declared_lost: DeclaredLost,
    /// How shared subscriptions spread their messages.
    #[serde(default)]
    pub shared: Vec<SharedFairness>,
    /// The part of each broker, when there are several.
    #[serde(default)]
    pub targets: Vec<StepTarget>,
    /// Did everything outstanding arrive before the drain's time was over?
    pub drained: bool,
    /// Deliveries to the receiver that got fewest.
    pub received_min: Option<u64>,
    /// Deliveries to the receiver that got most.
    pub received_max: Option<u64>,
    /// The CPU for objectives, in percent of the broker's share: 1 - idle - steal
    /// of its host when it has one of its own, else of its processes in percent of the cores that
    /// they may use.
    #[serde(default)]
    pub cpu_percent: Option<f64>,
    /// Whose CPU that is: `host` or `broker process` (`broker cores` in earlier records).
    #[serde(default)]
    pub whose_cpu: Option<String>,
    /// How many cores the broker may use.
    #[serde(default)]
    pub broker_cores_used: Option<u64>,
    /// CPU of the broker process over the window, one core = 100.
    pub broker_cpu_percent: Option<f64>,
    /// CPU of the broker process per message in or out, in microseconds.
    pub broker_cpu_us_per_message: Option<f64>,
    /// Where the broker's CPU time was read: `schedstat` (exact) or `stat` (10 ms ticks).
    pub broker_cpu_source: Option<String>,
    /// 1 - idle - steal of the cores that the broker may use, in percent of these cores.
    pub broker_cores_busy_percent: Option<f64>,
    /// 1 - idle of the cores that the broker may use, in percent of these cores: steal counts as
    /// busy, as in published reports.
    #[serde(default)]
    pub broker_cores_not_idle_percent: Option<f64>,
    /// Interrupt work of these cores that the kernel charges to no process, in percent of them.
    #[serde(default)]
    pub broker_cores_softirq_percent: Option<f64>,
    /// What other programs used of these cores, in percent of them.
    #[serde(default)]
    pub others_on_broker_cores_percent: Option<f64>,
    /// The program that used most of that.
    #[serde(default)]
    pub others_on_broker_cores_by: Option<String>,
    /// Resident memory of the broker at the end of the window, in bytes.
    pub broker_rss_bytes: Option<u64>,
    /// Threads of the broker at the end of the window.
    pub broker_threads: Option<u64>,
    /// 1 - idle of the host, in percent: steal counts as busy, as in published reports.
    pub host_cpu_percent: Option<f64>,
    /// 1 - idle - steal of the host, in percent.
    #[serde(default)]
    pub host_busy_percent: Option<f64>,
    /// Time that the hypervisor gave to others, in percent.
    pub host_steal_percent: Option<f64>,
    /// CPU of programs other than broker and generator on the broker's host, when the generator
    /// runs there too; one core = 100.
    pub other_cpu_percent: Option<f64>,
    /// Memory in use on the host, in percent.
    pub host_memory_percent: Option<f64>,
    /// CPU of the generator's threads, spinning excluded, one core = 100.
    pub generator_cpu_percent: f64,
    /// The busiest generator thread, in percent of its time; spinning is not busy.
    pub generator_thread_busy_max_percent: f64,
    /// CPU that the generator's threads spun, one core = 100.
    #[serde(default)]
    pub generator_spin_percent: f64,
    /// How often a generator thread rested, to serve messages in a batch.
    #[serde(default)]
    pub generator_rests: u64,
    /// Resource use of the watched hosts.
    #[serde(default)]
    pub hosts: Vec<HostUse>,
    /// The part of each agent; none where the controller made the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<StepAgent>,
    /// The health checks of the generator.
    pub gates: Vec<Gate>,
    /// What disturbed the window; absent where nothing did.
    #[serde(default)]
    pub disturbance: Option<Disturbance>,
}

/// The part of one group of clients in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepGroup {
    /// Its name.
    pub name: String,
    /// Its clients.
    pub clients: u64,
    /// Messages that its clients were due to publish.
    pub offered: u64,
    /// Messages that they published.
    pub sent: u64,
    /// Deliveries that were due to its clients.
    pub expected: u64,
    /// Of these, deliveries that came.
    pub received: u64,
    /// Of these, deliveries that did not come, and whose loss the scenario does not declare.
    pub lost: u64,
    /// Losses caused by the scenario's actions on its clients.
    pub declared_lost: u64,
    /// Did an action happen to it?
    pub concerned: bool,
    /// End-to-end latency of the messages its clients received.
    pub latency_us: LatencyStats,
}

/// A health check of the generator; a step that fails one says nothing about the broker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The checked figure.
    pub name: CheckName,
    /// Unit of the figure and its limit: `percent` or `microseconds`.
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// Its upper limit.
    pub limit: f64,
    /// Does it?
    pub passed: bool,
    /// The agent whose figure it is; absent where the controller made the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// A run of messages that a receiver did not get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRange {
    /// Client identifier of the publisher.
    pub publisher: String,
    /// Topic.
    pub topic: String,
    /// Client identifier of the receiver, or the shared subscription.
    pub receiver: String,
    /// Sequence number of the first one; each publisher counts each of its topics from 0.
    pub first_seq: u64,
    /// How many.
    pub count: u64,
    /// Sequence numbers from the first to the last lost one: the same as `count`, except where so
    /// many were lost that neighbouring runs were merged.
    pub span: u64,
    /// For how many of them their publisher had the last acknowledgement.
    #[serde(default)]
    pub acknowledged: u64,
}

impl LostRange {
    /// Runs that a record has at most.
    pub const MAX: usize = 1000;
}

/// Breaches of the QoS contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViolationCounts {
    /// Lost at QoS 1 or 2.
    pub lost: u64,
    /// Duplicated at QoS 0 or 2.
    pub duplicates: u64,
    /// Out of order.
    pub out_of_order: u64,
    /// Damaged.
    pub corrupted: u64,
}

/// A threshold and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThresholdResult {
    /// The condition, such as `e2e_p99<10ms`.
    pub condition: String,
    /// The worst figure of all steps, in the metric's unit; absent when it could not be measured.
    pub value: Option<f64>,
    /// Whether it holds. A figure that could not be measured fails.
    pub passed: bool,
}

impl ThresholdResult {
    /// The figure with its unit.
    pub fn shown(&self) -> String {
        match (self.value, Threshold::parse(&self.condition)) {
            (Some(value), Ok(threshold)) => threshold.metric.show(value),
            (Some(value), Err(_)) => value.to_string(),
            (None, _) => "too few samples, or not observable".to_owned(),
        }
    }
}

impl ViolationCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.lost + self.duplicates + self.out_of_order + self.corrupted
    }
}

impl Step {
    /// Achieved rate in percent of the offered one, in the direction that is worse off.
    pub fn achieved_percent(&self) -> f64 {
        let directions = [
            (self.achieved_in_per_s, self.offered_in_per_s),
            (self.achieved_out_per_s, self.offered_out_per_s),
        ];
        let share = |(achieved, offered): (f64, f64)| match offered > 0.0 {
            true => achieved * 100.0 / offered,
            false => 100.0,
        };
        directions.map(share).into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Deliveries lost in percent of those that were due; declared losses are not among them.
    pub fn loss_percent(&self) -> f64 {
        match self.expected {
            0 => 0.0,
            expected => self.lost as f64 * 100.0 / expected as f64,
        }
    }

    /// Deliveries that came in percent of those that were due; absent where none was. Messages that
    /// the schedule asked for and that were never sent are due, too.
    pub fn arrived_percent(&self) -> Option<f64> {
        let (sent, scheduled) = (self.expected as f64, self.offered_out_per_s * self.window_s);
        // The edges of the window may cut a message off the schedule.
        let is_whole = sent * 100.0 >= scheduled * SUSTAINED_PERCENT;
        let due = if is_whole { sent } else { scheduled };
        (due > 0.0).then(|| (self.received as f64 * 100.0 / due).min(100.0))
    }

    /// Memory in use on the broker's host in percent: of the busiest host that is watched, else of
    /// the machine that the run is on.
    pub fn memory_percent(&self) -> Option<f64> {
        let watched = self.hosts.iter().filter_map(|host| host.get("memory_used_percent"));
        watched.map(|used| used.mean).reduce(f64::max).or(self.host_memory_percent)
    }

    /// From the time that a login with right credentials was due to the CONNACK that accepts it;
    /// absent without such logins.
    pub fn login_latency(&self) -> Option<&LatencyStats> {
        self.logins.as_deref()?.of(LoginKind::Right).map(|right| &right.accepted_us)
    }

    /// Its clients log in and do nothing else.
    pub fn has_only_logins(&self) -> bool {
        self.logins.is_some() && self.sent == 0 && self.expected == 0
    }

    /// The figure that a threshold is about; `None` where it could not be measured.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Latency(LatencyKind::EndToEnd, statistic) => self.latency_us.get(statistic),
            Metric::Latency(LatencyKind::Service, statistic) => self.service_us.get(statistic),
            Metric::Latency(LatencyKind::SendDelay, statistic) => self.send_delay_us.get(statistic),
            Metric::Latency(LatencyKind::Ack, statistic) => self.ack_us.get(statistic),
            Metric::Latency(LatencyKind::RoundTrip, statistic) => self.rtt_us.get(statistic),
            Metric::Latency(LatencyKind::Connect, statistic) => self.connect_us.get(statistic),
            Metric::Latency(LatencyKind::Login, statistic) => self.login_latency()?.get(statistic),
            Metric::Loss => Some(self.loss_percent()),
            Metric::Cpu => self.cpu_percent,
            Metric::Memory => self.memory_percent(),
            Metric::Lost => Some(self.lost as f64),
            Metric::AcknowledgedLost => Some(self.acknowledged_lost as f64),
            Metric::SessionsLost => Some(self.sessions_lost as f64),
            Metric::Duplicates => Some(self.duplicates as f64),
            Metric::OutOfOrder => Some(self.out_of_order as f64),
            Metric::Achieved => Some(self.achieved_percent()),
            Metric::Tps => Some(self.tps),
            Metric::BrokerCpu => self.broker_cpu_percent,
            Metric::HostCpu => self.host_cpu_percent,
            Metric::BrokerRss => self.broker_rss_bytes.map(|bytes| bytes as f64),
        }
    }
}
