//! The published results whose workloads Tacho reproduces, as data for comparison.
//!
//! Two reports: a guide that measured EMQX 5.1.6 with the service XMeter ([`guide`]) and the report
//! of BifroMQ ([`bifromq`]). Both name their hardware ([`Source`]): a report that shows one of
//! their figures shows it too. The figures are in `data/*.csv`; where the guide has only a drawn
//! curve, they are read off it ([`GuidePoint::from_table`] tells); one is from a sentence
//! ([`GuidePoint::from_text`]).

use std::sync::LazyLock;

use serde::Deserialize;

use crate::quantity::TimeSpan;

/// A published report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publication {
    /// The guide that measured EMQX.
    EmqxGuide,
    /// The report of BifroMQ.
    BifromqReport,
}

/// The source of published figures and their test environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Which report.
    pub publication: Publication,
    /// Short name for legends.
    pub name: &'static str,
    /// Broker and machine, a line for captions.
    pub hardware: &'static str,
    /// How the load was made.
    pub load: &'static str,
    /// Cores of the broker's host: 100 % CPU is all of them.
    pub cores: u32,
    /// How long each step was held; absent where the report does not say.
    pub hold: Option<TimeSpan>,
}

/// How long the guide held each step.
pub const GUIDE_HOLD: TimeSpan = TimeSpan::from_secs(300);

/// Within this time the guide's clients connected.
pub const GUIDE_RAMP_UP: TimeSpan = TimeSpan::from_secs(20);

/// The guide's machine.
pub const GUIDE: Source = Source {
    publication: Publication::EmqxGuide,
    name: "EMQX guide",
    hardware: "EMQX 5.1.6, one node, 4 vCPU Xeon Platinum 8378A 3.0 GHz, 8 GiB, CentOS 7.9, default \
               configuration",
    load: "XMeter on 10 load machines (fan-in: 20) over a network, 5 minutes a step",
    cores: 4,
    hold: Some(GUIDE_HOLD),
};

/// The BifroMQ report's machine.
pub const BIFROMQ: Source = Source {
    publication: Publication::BifromqReport,
    name: "BifroMQ report",
    hardware: "BifroMQ standalone, 32 cores, 128 GB, JVM heap 40 GB",
    load: "a second machine with 32 cores",
    cores: 32,
    hold: None,
};

/// One point of a series of the guide.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct GuidePoint {
    /// Key of its series, such as `symmetric-qos1`.
    pub series: String,
    /// Name of the scenario: `symmetric`, `fan-in`, `fan-out` or `bridge`.
    pub test: String,
    /// QoS of the publications.
    pub qos: u8,
    /// Payload.
    pub payload_bytes: u32,
    /// Messages in + out per second; for the bridge per broker, its own legs included.
    pub tps: f64,
    /// Mean CPU (1 - idle) of the broker's host, 100 = all its cores.
    pub cpu_percent: Option<f64>,
    /// Memory in use on the broker's host.
    pub memory_percent: Option<f64>,
    /// Mean latency from publish to receive.
    pub mean_ms: Option<f64>,
    /// 99th percentile of it.
    pub p99_ms: Option<f64>,
    source: Origin,
}

/// The position of a point in the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Origin {
    /// A table.
    Table,
    /// A drawn curve.
    Figure,
    /// A sentence.
    Text,
}

/// The load that the guide recommends for a series.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Recommended {
    /// Key of the series.
    pub series: String,
    /// Messages in + out per second.
    pub tps: f64,
    /// Mean CPU at which it holds.
    pub cpu_percent: f64,
}

/// A row of the BifroMQ report.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BifromqRow {
    /// Name without prefixes, such as `2k_2k_qos1_p32_100mps`.
    pub scenario: String,
    /// Clean session.
    pub clean_session: bool,
    /// All subscribers share one subscription.
    pub shared: bool,
    /// Publishing clients.
    pub publishers: u32,
    /// Subscribing clients.
    pub subscribers: u32,
    /// QoS of publications and subscriptions.
    pub qos: u8,
    /// Payload.
    pub payload_bytes: u32,
    /// Messages per second that each publisher was to send.
    pub per_publisher_per_s: f64,
    /// Messages to the broker per second, as reached.
    pub in_per_s: f64,
    /// Messages from the broker per second.
    pub out_per_s: f64,
    /// Mean latency.
    pub mean_ms: f64,
    /// 99th percentile of it.
    pub p99_ms: f64,
    /// CPU of the broker's host, 100 = all 32 cores. Rows that differ only in payload share one
    /// figure where clean session is false: the report has no more.
    pub cpu_percent: f64,
}

impl GuidePoint {
    /// The figures stand in a table.
    pub fn from_table(&self) -> bool {
        self.source == Origin::Table
    }

    /// A sentence states the figures, beyond the guide's own tables and curves.
    pub fn from_text(&self) -> bool {
        self.source == Origin::Text
    }
}

impl BifromqRow {
    /// The name with all prefixes, as a scenario of the same grammar: `false_share_5k_50_...`.
    pub fn full_name(&self) -> String {
        let session = if self.clean_session { "true_" } else { "false_" };
        let share = if self.shared { "share_" } else { "" };
        format!("{session}{share}{}", self.scenario)
    }
}

/// All points of the guide, series by series, each in the order of its x axis.
pub fn guide() -> &'static [GuidePoint] {
    static POINTS: LazyLock<Vec<GuidePoint>> =
        LazyLock::new(|| rows(include_str!("../data/guide.csv")));
    &POINTS
}

/// The points of one series of the guide; empty when there is none of that name.
///
/// Series are `symmetric-qos0`, `-qos1`, `-qos2`, `fan-in`, `fan-out` and `bridge` over TPS, and
/// `symmetric-payload` over the payload.
pub fn guide_series(key: &str) -> impl Iterator<Item = &'static GuidePoint> {
    guide().iter().filter(move |point| point.series == key)
}

/// The guide's (TPS, CPU percent) curve of a series.
pub fn guide_cpu_curve(key: &str) -> Vec<(f64, f64)> {
    guide_series(key).filter_map(|point| Some((point.tps, point.cpu_percent?))).collect()
}

/// The loads that the guide recommends.
pub fn guide_recommended() -> &'static [Recommended] {
    static LOADS: LazyLock<Vec<Recommended>> =
        LazyLock::new(|| rows(include_str!("../data/guide-recommended.csv")));
    &LOADS
}

/// All rows of the BifroMQ report.
pub fn bifromq() -> &'static [BifromqRow] {
    static ROWS: LazyLock<Vec<BifromqRow>> =
        LazyLock::new(|| rows(include_str!("../data/bifromq.csv")));
    &ROWS
}

/// The row of a scenario, named with or without its prefixes; clean session is true by default.
pub fn bifromq_row(name: &str) -> Option<&'static BifromqRow> {
    let mut rest = name;
    let (mut clean_session, mut shared) = (true, None);
    loop {
        rest = if let Some(after) = rest.strip_prefix("true_") {
            clean_session = true;
            after
        } else if let Some(after) = rest.strip_prefix("false_") {
            clean_session = false;
            after
        } else if let Some(after) = rest.strip_prefix("share_") {
            shared = Some(true);
            after
        } else {
            break;
        };
    }
    bifromq().iter().find(|row| {
        row.scenario == rest
            && row.clean_session == clean_session
            && shared.is_none_or(|shared| row.shared == shared)
    })
}

fn rows<T: serde::de::DeserializeOwned>(text: &'static str) -> Vec<T> {
    // Invariant: the texts are part of the program and every one is read by a test.
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .expect("the embedded tables have the columns of their types")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_every_row_of_its_table() {
        let table: Vec<_> = guide().iter().filter(|point| point.from_table()).collect();
        assert_eq!(table.len(), 8);
        for point in table {
            assert!(point.cpu_percent.is_some() && point.memory_percent.is_some());
            assert!(point.p99_ms > point.mean_ms && point.mean_ms > Some(1.0), "{point:?}");
        }
        let qos1: Vec<_> = guide_series("symmetric-qos1").collect();
        assert_eq!(qos1.len(), 6);
        // "QoS 1, 60K TPS, p99 around 15 ms", beyond the curve, which ends at 50K.
        assert!(qos1[5].from_text() && !qos1[5].from_table());
        assert_eq!((qos1[5].tps, qos1[5].p99_ms), (60_000.0, Some(15.0)));
        assert_eq!((qos1[5].cpu_percent, qos1[5].mean_ms), (None, None));
        assert_eq!(qos1[3].mean_ms, Some(2.356));
        assert_eq!(guide_series("no such").count(), 0);
    }

    #[test]
    fn curves_rise_with_the_load() {
        for recommended in guide_recommended() {
            let curve = guide_cpu_curve(&recommended.series);
            assert!(curve.len() >= 3, "{}", recommended.series);
            for pair in curve.windows(2) {
                assert!(pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1, "{pair:?}");
            }
        }
    }

    #[test]
    fn a_straight_line_between_points_gives_what_the_guide_recommends() {
        for recommended in guide_recommended() {
            let curve = guide_cpu_curve(&recommended.series);
            let wanted = recommended.cpu_percent;
            let pair = curve.windows(2).find(|pair| (pair[0].1..=pair[1].1).contains(&wanted));
            let [low, high] = pair.expect("the curve crosses the line") else { unreachable!() };
            let tps = low.0 + (wanted - low.1) * (high.0 - low.0) / (high.1 - low.1);
            let off = (tps / recommended.tps - 1.0).abs();
            assert!(off < 0.03, "{}: {tps} instead of {}", recommended.series, recommended.tps);
        }
    }

    #[test]
    fn names_of_the_bifromq_report_agree_with_their_columns() {
        assert_eq!(bifromq().len(), 62);
        for row in bifromq() {
            let count = |count: u32| match count.is_multiple_of(1000) || count == 1200 {
                true => format!("{}k", f64::from(count) / 1e3),
                false => count.to_string(),
            };
            let name = format!(
                "{}_{}_qos{}_p{}_{}mps",
                count(row.publishers),
                count(row.subscribers),
                row.qos,
                row.payload_bytes,
                row.per_publisher_per_s
            );
            assert_eq!(row.scenario, name);
            let offered = f64::from(row.publishers) * row.per_publisher_per_s;
            assert!(row.in_per_s <= offered, "{row:?}");
            assert!(row.in_per_s >= offered * 0.68, "{row:?}");
            assert!(row.mean_ms < row.p99_ms && row.cpu_percent <= 40.0, "{row:?}");
            assert_eq!(bifromq_row(&row.full_name()), Some(row));
        }
    }

    #[test]
    fn rows_are_found_by_name() {
        let row = bifromq_row("40k_400_qos1_p1024_1mps").expect("a row");
        assert!(row.shared && row.clean_session);
        let row = bifromq_row("false_1k_1k_qos0_p1024_1mps").expect("a row");
        assert_eq!((row.mean_ms, row.p99_ms, row.cpu_percent), (1.4, 2.3, 6.0));
        assert_eq!(bifromq_row("share_100_100_qos0_p1024_50mps"), None);
        assert_eq!(bifromq_row("7_7_qos0_p32_1mps"), None);
    }
}
