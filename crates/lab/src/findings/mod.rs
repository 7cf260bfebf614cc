//! Findings: what a reader should know about the figures, and what to do about it.
//!
//! Each detector is a pure function of a step and what was seen beside it; it returns what was
//! seen; the report says what to do. Codes are stable names.

mod latency;
mod machine;
mod network;

use tacho_record::{CurvePoint, Finding, MonitorRecord, Observation, SeriesRow, Severity, Step};

/// What the detectors look at.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The step.
    pub step: &'a Step,
    /// The full seconds of its window.
    pub rows: &'a [&'a SeriesRow],
    /// Percentile curve of its end-to-end latency.
    pub curve: &'a [CurvePoint],
    /// Broker and generator share a machine.
    pub one_machine: bool,
    /// Sources of host figures.
    pub monitors: &'a [MonitorRecord],
}

/// A detector's result before it has a place.
type Found = Option<(&'static str, Severity, Observation)>;

/// All findings about the step at `position`.
pub fn of_step(evidence: &Evidence<'_>, position: usize) -> Vec<Finding> {
    let detectors: [fn(&Evidence<'_>) -> Found; 13] = [
        network::bound,
        network::drops,
        network::retransmits,
        network::listen_overflows,
        network::round_trip,
        latency::delayed_acknowledgements,
        latency::retransmission_timeouts,
        latency::first_interval,
        latency::connection_retries,
        latency::clock_error,
        machine::disturbed,
        machine::other_programs,
        machine::unfair_groups,
    ];
    detectors
        .iter()
        .filter_map(|detector| detector(evidence))
        .map(|(code, severity, observation)| finding(code, severity, observation, Some(position)))
        .collect()
}

/// A finding whose sentence is not yet written.
pub fn finding(
    code: &str,
    severity: Severity,
    observation: Observation,
    step: Option<usize>,
) -> Finding {
    Finding {
        code: code.to_owned(),
        severity,
        sentence: String::new(),
        step,
        observation: Some(observation),
        place: String::new(),
    }
}

/// Code of the finding that the network was the bottleneck.
pub const NETWORK_BOUND: &str = "network_bound";

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_record::{Disturbance, HostUse, LatencyStats, MetricUse, SharedFairness};

    /// A step with nothing to say about it.
    fn quiet() -> Step {
        Step {
            latency_us: LatencyStats {
                count: 10_000,
                p50: Some(500),
                p99: Some(2000),
                max: Some(9000),
                ..LatencyStats::default()
            },
            connect_us: LatencyStats { p50: Some(800), max: Some(5000), ..LatencyStats::default() },
            rtt_us: LatencyStats { p50: Some(50), ..LatencyStats::default() },
            ..Step::default()
        }
    }

    fn codes(step: &Step) -> Vec<String> {
        codes_of(step, &[], &[], &[])
    }

    fn codes_of(
        step: &Step,
        rows: &[&SeriesRow],
        curve: &[CurvePoint],
        monitors: &[MonitorRecord],
    ) -> Vec<String> {
        let evidence = Evidence { step, rows, curve, one_machine: true, monitors };
        let found = of_step(&evidence, 3);
        for finding in &found {
            assert_eq!(finding.step, Some(3));
            let sentence = tacho_report::Lang::En.finding(finding);
            assert!(sentence.ends_with('.') && sentence.len() > 40, "{finding:?}");
        }
        found.into_iter().map(|finding| finding.code).collect()
    }

    fn with_host(metrics: &[(&str, Option<&str>, f64)]) -> Step {
        let metric = |(metric, instance, mean): &(&str, Option<&str>, f64)| MetricUse {
            metric: (*metric).to_owned(),
            instance: instance.map(str::to_owned),
            min: *mean,
            mean: *mean,
            max: *mean,
        };
        let metrics = metrics.iter().map(metric).collect();
        let host = HostUse { host: "b1".to_owned(), samples: 10, metrics, ..HostUse::default() };
        Step { hosts: vec![host], ..quiet() }
    }

    #[test]
    fn a_quiet_step_has_none() {
        assert!(codes(&quiet()).is_empty());
        assert!(codes(&Step::default()).is_empty());
    }

    #[test]
    fn the_network() {
        let at = |share: f64| {
            with_host(&[
                ("net_speed_bytes_per_s", Some("eth0"), 125e6),
                ("net_rx_bytes_per_s", Some("eth0"), 10e6),
                ("net_tx_bytes_per_s", Some("eth0"), 125e6 * share),
            ])
        };
        assert!(codes(&at(0.5)).is_empty());
        assert_eq!(codes(&at(0.9)), [NETWORK_BOUND]);
        let loopback = with_host(&[
            ("net_speed_bytes_per_s", Some("lo"), 125e6),
            ("net_tx_bytes_per_s", Some("lo"), 125e6),
            ("net_rx_drops_per_s", Some("lo"), 50.0),
        ]);
        assert!(codes(&loopback).is_empty());
        let drops = with_host(&[("net_rx_drops_per_s", Some("eth0"), 5.0)]);
        assert_eq!(codes(&drops), ["network_drops"]);
        assert_eq!(codes(&with_host(&[("tcp_retransmits_per_s", None, 20.0)])), ["retransmits"]);
        let overflows = with_host(&[("tcp_listen_overflows_per_s", None, 2.0)]);
        assert_eq!(codes(&overflows), ["listen_overflow"]);
        let mut far = quiet();
        far.rtt_us.p50 = Some(400);
        let evidence = |one_machine| Evidence {
            step: &far,
            rows: &[],
            curve: &[],
            one_machine,
            monitors: &[],
        };
        assert_eq!(of_step(&evidence(false), 0)[0].code, "round_trip");
        assert!(of_step(&evidence(true), 0).is_empty());
    }

    #[test]
    fn a_way_that_is_narrower_than_the_interface() {
        let found = |achieved_out, one_machine, change: fn(&mut MetricUse)| {
            let mut step = with_host(&[
                ("net_speed_bytes_per_s", Some("eth0"), 1.25e9),
                ("net_tx_bytes_per_s", Some("eth0"), 244e3),
                ("net_tx_packets_per_s", Some("eth0"), 502.0),
                ("tcp_retransmits_per_s", None, 585.0),
            ]);
            step.offered_in_per_s = 500.0;
            step.achieved_in_per_s = 500.0;
            step.offered_out_per_s = 500.0;
            step.achieved_out_per_s = achieved_out;
            step.hosts[0].metrics.iter_mut().for_each(change);
            let evidence =
                Evidence { step: &step, rows: &[], curve: &[], one_machine, monitors: &[] };
            of_step(&evidence, 0).iter().any(|found| found.code == NETWORK_BOUND)
        };
        assert!(found(191.0, false, |_| {}));
        assert!(!found(499.0, false, |_| {}), "the load is carried");
        assert!(!found(191.0, true, |_| {}), "there is no network");
        assert!(!found(191.0, false, |metric| metric.max *= 1.2), "the rate varies");
        assert!(!found(191.0, false, |metric| {
            metric.mean = if metric.metric.starts_with("tcp") { 2.0 } else { metric.mean };
        }));
    }

    /// A curve with `share` of the samples between `from` and `to`, at quantile `at`.
    fn plateau(at: f64, share: f64, from: u64, to: u64) -> Vec<CurvePoint> {
        (0..=100)
            .map(|step| {
                let quantile = f64::from(step) / 100.0;
                let value_us = match quantile {
                    q if q < at => 300 + (q * 700.0) as u64,
                    q if q < at + share => from + ((q - at) / share * (to - from) as f64) as u64,
                    q => to + ((q - at) * 1e6) as u64,
                };
                CurvePoint { quantile, value_us }
            })
            .collect()
    }

    #[test]
    fn plateaus() {
        let found = |curve: &[CurvePoint]| codes_of(&quiet(), &[], curve, &[]);
        assert_eq!(found(&plateau(0.9, 0.08, 40_000, 41_500)), ["delayed_ack"]);
        assert_eq!(found(&plateau(0.95, 0.04, 200_000, 208_000)), ["retransmission_timeout"]);
        // A smooth tail that crosses 40 ms is none, nor is a broker that takes 40 ms for all.
        assert!(found(&plateau(0.9, 0.1, 1000, 90_000)).is_empty());
        assert!(found(&plateau(0.0, 1.0, 38_000, 44_000)).is_empty());
        assert!(found(&plateau(0.9, 0.08, 25_000, 26_000)).is_empty());
    }

    fn row(p99: u64) -> SeriesRow {
        SeriesRow { e2e_p99_us: Some(p99), length_s: 1.0, ..SeriesRow::default() }
    }

    #[test]
    fn the_first_second() {
        let rows: Vec<SeriesRow> = [90_000, 2000, 2100, 1900, 2500].map(row).into();
        let rows: Vec<&SeriesRow> = rows.iter().collect();
        assert_eq!(codes_of(&quiet(), &rows, &[], &[]), ["first_interval"]);
        assert!(codes_of(&quiet(), &rows[1..], &[], &[]).is_empty());
    }

    #[test]
    fn connections_and_clocks() {
        for (max, found) in
            [(900_000, false), (1_030_000, true), (3_060_000, true), (2_200_000, false)]
        {
            let mut step = quiet();
            step.connect_us.max = Some(max);
            assert_eq!(codes(&step) == ["syn_retry"], found, "{max}");
        }
        let monitor = |error| MonitorRecord {
            source: "agent://b1".to_owned(),
            clock_error_us_max: Some(error),
            ..MonitorRecord::default()
        };
        assert!(codes_of(&quiet(), &[], &[], &[monitor(900.0)]).is_empty());
        assert_eq!(codes_of(&quiet(), &[], &[], &[monitor(2e5)]), ["clock_error"]);
    }

    #[test]
    fn the_machine() {
        let step = Step { disturbance: Some(Disturbance::default()), ..quiet() };
        assert_eq!(codes(&step), ["disturbed"]);
        let step = Step { other_cpu_percent: Some(50.0), ..quiet() };
        assert_eq!(codes(&step), ["other_programs"]);
    }

    #[test]
    fn shared_groups() {
        let group = |gini, received| SharedFairness {
            filter: "$share/g/a".to_owned(),
            members: 5,
            received,
            received_min: 1,
            received_max: 900,
            gini,
        };
        let step = |shared| Step { shared: vec![shared], ..quiet() };
        assert_eq!(codes(&step(group(0.6, 5000))), ["unfair_group"]);
        assert!(codes(&step(group(0.05, 5000))).is_empty());
        assert!(codes(&step(group(0.6, 20))).is_empty(), "too few messages to tell");
    }
}
