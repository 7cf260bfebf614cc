//! Computes the figures that a scenario is for.

use tacho_load::{Histogram, IntervalSnapshot};

use super::numbers::round;
use tacho_record::{
    ActionKind, ActionRecord, Headline, HeadlineName, LatencyStats, LoginKind, LoginsOfKind,
    Restart, SeriesRow, Step, StepGroup, StepLogins,
};
use tacho_scenario::HeadlineKind;

/// After something began or ended, seconds that belong to neither side.
const SETTLE_S: f64 = 1.0;
/// Ends of seconds and times of actions agree only so far.
const EDGE_S: f64 = 0.05;
/// Points that a trend is computed from; more are averaged before.
const TREND_POINTS: usize = 200;
/// Fewer seconds have no trend.
const TREND_SECONDS_MIN: usize = 3;

/// One measured second as the groups saw it that nothing happened to.
#[derive(Debug)]
pub(super) struct CalmSecond {
    start_s: f64,
    end_s: f64,
    latency: Histogram,
}

impl CalmSecond {
    /// Of an interval of a run that began at `started_ns`; `concerned` says which groups something
    /// happened to.
    pub(super) fn of(interval: &IntervalSnapshot, started_ns: u64, concerned: &[bool]) -> Self {
        let start_s = interval.start_ns.saturating_sub(started_ns) as f64 / 1e9;
        let mut latency = super::figures::empty();
        let groups = interval.groups.iter().zip(concerned);
        for (group, _) in groups.filter(|(_, concerned)| !**concerned) {
            // Invariant: all our histograms grow by themselves and share their precision.
            latency.add(&group.e2e).expect("histograms of the same precision add up");
        }
        Self { start_s, end_s: start_s + interval.len_ns as f64 / 1e9, latency }
    }
}

/// What headlines are computed from.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    pub(super) actions: &'a [ActionRecord],
    pub(super) restarts: &'a [Restart],
    pub(super) step: &'a Step,
    /// Full seconds of the measured window.
    pub(super) rows: &'a [&'a SeriesRow],
    pub(super) calm: &'a [CalmSecond],
    /// Groups that ask and get answers.
    pub(super) asking: &'a [String],
}

/// The figures of these kinds.
pub(super) fn headlines(kinds: &[HeadlineKind], sources: &Sources<'_>) -> Vec<Headline> {
    kinds.iter().flat_map(|kind| sources.of(*kind)).collect()
}

impl Sources<'_> {
    fn of(&self, kind: HeadlineKind) -> Vec<Headline> {
        match kind {
            HeadlineKind::Recovery => self.recovery(),
            HeadlineKind::Takeover => self.takeover(),
            HeadlineKind::Churn => self.churn(),
            HeadlineKind::Retained => self.retained(),
            HeadlineKind::Wills => self.wills(),
            HeadlineKind::Isolation => self.isolation(),
            HeadlineKind::Cost => self.cost(),
            HeadlineKind::RoundTrip => self.round_trip(),
            HeadlineKind::Drift => self.drift(),
            HeadlineKind::Groups => self.groups(),
            HeadlineKind::Restart => self.restart(),
            HeadlineKind::Logins => self.logins(),
        }
    }

    fn actions(&self, kind: &ActionKind) -> impl Iterator<Item = &ActionRecord> {
        self.actions.iter().filter(move |action| action.kind == *kind && action.clients > 0)
    }

    /// The worst of all actions of a kind; none when there is one without the figure.
    fn worst(&self, kind: &ActionKind, of: impl Fn(&ActionRecord) -> Option<f64>) -> Option<f64> {
        let figures: Option<Vec<f64>> = self.actions(kind).map(of).collect();
        figures.and_then(|figures| figures.into_iter().reduce(f64::max))
    }

    fn sum(&self, kind: &ActionKind, of: impl Fn(&ActionRecord) -> u64) -> u64 {
        self.actions(kind).map(of).sum()
    }

    fn recovery(&self) -> Vec<Headline> {
        let connected = self.worst(&ActionKind::Disconnect, |action| action.connected_99_ms);
        let ready = self.worst(&ActionKind::Disconnect, |action| action.ready_99_ms);
        let failed = self.sum(&ActionKind::Disconnect, |action| action.retried) as f64;
        vec![
            Headline::new(HeadlineName::TimeTo99PercentConnected, connected),
            Headline::new(HeadlineName::TimeTo99PercentServed, ready),
            Headline::new(HeadlineName::FailedAttempts, Some(failed)),
        ]
    }

    fn restart(&self) -> Vec<Headline> {
        let all = || self.restarts.iter();
        let serving = all().map(|restart| restart.serving_ms).reduce(f64::max);
        let backlog = all().filter_map(|restart| restart.waiting_max).max();
        let drained: Option<Vec<f64>> = all().map(|restart| restart.drained_ms).collect();
        let drained = drained.and_then(|all| all.into_iter().reduce(f64::max));
        vec![
            Headline::new(HeadlineName::RestartServing, serving),
            Headline::new(HeadlineName::BridgeBacklog, backlog.map(|count| count as f64)),
            Headline::new(HeadlineName::BridgeDrained, drained),
        ]
    }

    fn logins(&self) -> Vec<Headline> {
        let logins = self.step.logins.as_deref();
        let right = logins.and_then(|logins| logins.of(LoginKind::Right));
        let accepted = |of: fn(&LatencyStats) -> Option<u64>| {
            right.and_then(|right| of(&right.accepted_us)).map(|us| us as f64)
        };
        let decided_per_s = logins.map(|logins| logins.decided_per_s);
        let mut found = vec![
            Headline::new(HeadlineName::LoginsPerSecond, decided_per_s),
            Headline::new(HeadlineName::LoginP50, accepted(|stats| stats.p50)),
            Headline::new(HeadlineName::LoginP99, accepted(|stats| stats.p99)),
        ];
        let kinds = || logins.iter().flat_map(|logins| &logins.kinds);
        let wrong = kinds().filter(|of| !of.kind.must_be_accepted());
        let refused: Vec<Option<u64>> = wrong.map(|of| of.refused_us.p99).collect();
        if !refused.is_empty() {
            let slowest = refused.into_iter().collect::<Option<Vec<u64>>>();
            let slowest = slowest.and_then(|all| all.into_iter().max()).map(|us| us as f64);
            found.push(Headline::new(HeadlineName::RefusalP99, slowest));
        }
        let rightly = kinds().map(LoginsOfKind::decided_rightly).sum();
        let due = logins.map_or(0, StepLogins::due);
        found.push(Headline::new(HeadlineName::LoginsRight, share(rightly, due)));
        found
    }

    fn takeover(&self) -> Vec<Headline> {
        let served = self.worst(&ActionKind::Takeover, |action| action.ready_99_ms);
        let clients = self.sum(&ActionKind::Takeover, |action| action.clients);
        let told = self.sum(&ActionKind::Takeover, |action| action.told);
        let ended = self.sum(&ActionKind::Takeover, |action| action.displaced);
        vec![
            Headline::new(HeadlineName::TakeoverServed99, served),
            Headline::new(HeadlineName::TakeoverEnded, share(ended, clients)),
            Headline::new(HeadlineName::TakeoverTold, share(told, clients)),
        ]
    }

    fn churn(&self) -> Vec<Headline> {
        let connects = self.sum(&ActionKind::Disconnect, |action| action.connected) as f64;
        let window_s = self.step.window_s;
        let calm = self.latency(|_| true);
        vec![
            Headline::new(
                HeadlineName::ConnectsPerSecond,
                (window_s > 0.0).then(|| round(connects / window_s, 2)),
            ),
            Headline::new(HeadlineName::SteadyP99, calm.p99.map(|us| us as f64)),
        ]
    }

    fn retained(&self) -> Vec<Headline> {
        let complete = |action: &ActionRecord| {
            let all = action.complete == action.clients;
            action.complete_us.max.filter(|_| all).map(|us| us as f64)
        };
        let expected = self.sum(&ActionKind::Subscribe, |action| action.retained_expected);
        let came = self.sum(&ActionKind::Subscribe, |action| action.retained);
        vec![
            Headline::new(HeadlineName::LastRetained, self.worst(&ActionKind::Subscribe, complete)),
            Headline::new(HeadlineName::RetainedComplete, share(came, expected)),
        ]
    }

    fn wills(&self) -> Vec<Headline> {
        let last = |action: &ActionRecord| {
            let all = action.wills >= action.wills_expected;
            action.wills_us.max.filter(|_| all).map(|us| us as f64)
        };
        let expected = self.sum(&ActionKind::Disconnect, |action| action.wills_expected);
        let came = self.sum(&ActionKind::Disconnect, |action| action.wills);
        vec![
            Headline::new(HeadlineName::LastWill, self.worst(&ActionKind::Disconnect, last)),
            Headline::new(HeadlineName::WillsComplete, share(came, expected)),
        ]
    }

    /// Latency of the unaffected clients over the given seconds.
    fn latency(&self, wanted: impl Fn(&CalmSecond) -> bool) -> LatencyStats {
        let mut sum = super::figures::empty();
        for second in self.calm.iter().filter(|second| wanted(second)) {
            // Invariant: as in `CalmSecond::of`.
            sum.add(&second.latency).expect("histograms of the same precision add up");
        }
        LatencyStats::of(&sum)
    }

    fn isolation(&self) -> Vec<Headline> {
        let ends = |action: &ActionRecord| action.at_s + action.length_s.unwrap_or(0.0);
        let pauses: Vec<(f64, f64)> =
            self.actions(&ActionKind::Pause).map(|action| (action.at_s, ends(action))).collect();
        let first = pauses.iter().map(|(from, _)| *from).fold(f64::INFINITY, f64::min);
        let last = pauses.iter().map(|(_, to)| *to).fold(0.0, f64::max);
        let during = |second: &CalmSecond| {
            pauses
                .iter()
                .any(|(from, to)| second.end_s > *from + EDGE_S && second.start_s < *to - EDGE_S)
        };
        let p99 = |stats: LatencyStats| stats.p99.map(|us| us as f64);
        let figure = |name, stats| Headline::new(name, p99(stats));
        vec![
            figure(HeadlineName::CalmP99During, self.latency(during)),
            figure(
                HeadlineName::CalmP99Before,
                self.latency(|second| second.end_s <= first + EDGE_S),
            ),
            figure(
                HeadlineName::CalmP99After,
                self.latency(|second| second.start_s >= last + SETTLE_S - EDGE_S),
            ),
        ]
    }

    /// CPU of the broker per message before and after the first action.
    fn cost(&self) -> Vec<Headline> {
        let first = self.actions.iter().map(|action| action.at_s).fold(f64::INFINITY, f64::min);
        let last = self.actions.iter().map(|action| action.at_s).fold(0.0, f64::max);
        let us_per_message = |wanted: &dyn Fn(&SeriesRow) -> bool| {
            let rows = || self.rows.iter().filter(|row| wanted(row));
            let cpu: Option<Vec<f64>> = rows().map(|row| row.broker_cpu_percent).collect();
            let cpu: f64 = cpu?.iter().sum();
            let messages: f64 = rows().map(|row| row.sent_per_s + row.received_per_s).sum();
            (messages > 0.0).then(|| round(cpu * 1e4 / messages, 3))
        };
        let before = us_per_message(&|row| row.start_s + row.length_s <= first + EDGE_S);
        let after = us_per_message(&|row| row.start_s >= last + SETTLE_S - EDGE_S);
        vec![
            Headline::new(HeadlineName::CpuPerMessageAfter, after),
            Headline::new(HeadlineName::CpuPerMessageBefore, before),
        ]
    }

    fn round_trip(&self) -> Vec<Headline> {
        let named = |group: &&StepGroup| self.asking.contains(&group.name);
        let asking: Vec<&StepGroup> = self.step.groups.iter().filter(named).collect();
        let worst = |of: fn(&LatencyStats) -> Option<u64>| {
            let figures: Option<Vec<u64>> =
                asking.iter().map(|group| of(&group.latency_us)).collect();
            figures.and_then(|figures| figures.into_iter().max()).map(|us| us as f64)
        };
        let (expected, received) = asking.iter().fold((0, 0), |(expected, received), group| {
            (expected + group.expected, received + group.received)
        });
        vec![
            Headline::new(HeadlineName::RoundTripP50, worst(|stats| stats.p50)),
            Headline::new(HeadlineName::RoundTripP99, worst(|stats| stats.p99)),
            Headline::new(HeadlineName::Answered, share(received, expected)),
        ]
    }

    fn drift(&self) -> Vec<Headline> {
        let trend = |of: fn(&SeriesRow) -> Option<f64>| {
            let points = self.rows.iter().filter_map(|row| Some((row.start_s, of(row)?)));
            slope(&points.collect::<Vec<_>>()).map(|per_s| round(per_s * 3600.0, 2))
        };
        vec![
            Headline::new(
                HeadlineName::MemoryDrift,
                trend(|row| row.broker_rss_bytes.map(|bytes| bytes as f64)),
            ),
            Headline::new(
                HeadlineName::LatencyDriftP50,
                trend(|row| row.e2e_p50_us.map(|us| us as f64)),
            ),
            Headline::new(
                HeadlineName::LatencyDriftP99,
                trend(|row| row.e2e_p99_us.map(|us| us as f64)),
            ),
        ]
    }

    fn groups(&self) -> Vec<Headline> {
        let groups = || self.step.groups.iter().filter(|group| group.expected > 0);
        let slowest = groups().max_by_key(|group| group.latency_us.p50);
        let group = slowest.map_or_else(String::new, |group| group.name.clone());
        let median = slowest.and_then(|group| group.latency_us.p50).map(|us| us as f64);
        let (expected, received) = groups().fold((0, 0), |(expected, received), group| {
            (expected + group.expected, received + group.received)
        });
        vec![
            Headline { group, ..Headline::new(HeadlineName::SlowestGroupP50, median) },
            Headline::new(HeadlineName::Delivered, share(received, expected)),
        ]
    }
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| round(part as f64 * 100.0 / all as f64, 3))
}

/// The slope of most pairs of points (Theil and Sen): single outliers do not move it.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < TREND_SECONDS_MIN {
        return None;
    }
    let size = points.len().div_ceil(TREND_POINTS);
    let mean = |part: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        part.iter().map(of).sum::<f64>() / part.len() as f64
    };
    let thinned: Vec<(f64, f64)> = points
        .chunks(size)
        .map(|part| (mean(part, |point| point.0), mean(part, |point| point.1)))
        .collect();
    let mut slopes = Vec::new();
    for (index, from) in thinned.iter().enumerate() {
        slopes.extend(thinned[index + 1..].iter().map(|to| (to.1 - from.1) / (to.0 - from.0)));
    }
    slopes.retain(|slope| slope.is_finite());
    slopes.sort_unstable_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use tacho_record::HeadlineUnit;

    use super::*;

    #[test]
    fn a_trend_is_found_beside_outliers() {
        let mut points: Vec<(f64, f64)> =
            (0..1000).map(|second| (f64::from(second), 100.0 + 2.0 * f64::from(second))).collect();
        points[500].1 = 1e9;
        points[501].1 = 0.0;
        let found = slope(&points).expect("enough points");
        assert!((found - 2.0).abs() < 0.01, "{found}");
        assert_eq!(slope(&points[..2]), None);
        assert_eq!(slope(&[(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)]), Some(0.0));
    }

    #[test]
    fn the_worst_action_counts_and_one_that_never_ended_has_no_figure() {
        let action = |connected_99_ms| ActionRecord {
            kind: ActionKind::Disconnect,
            clients: 10,
            connected_99_ms,
            retried: 3,
            ..ActionRecord::default()
        };
        let figures = |actions: &[ActionRecord]| {
            let step = Step::default();
            let sources =
                Sources { actions, restarts: &[], step: &step, rows: &[], calm: &[], asking: &[] };
            headlines(&[HeadlineKind::Recovery], &sources)
        };
        let both = figures(&[action(Some(120.0)), action(Some(80.0))]);
        assert_eq!((both[0].value, &both[0].unit), (Some(120.0), &HeadlineUnit::Milliseconds));
        assert_eq!((both[2].value, &both[2].unit), (Some(6.0), &HeadlineUnit::Count));
        let never = figures(&[action(Some(120.0)), action(None)]);
        assert_eq!(never[0].value, None);
    }
}
