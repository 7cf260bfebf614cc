//! Which seconds of a window were disturbed, and what the figures are without them.
//!
//! A second is disturbed by causes that are measured apart from the broker: steal, other programs
//! on the broker's cores, and the generator's wait for its own cores. It lasts until the backlog is
//! as before. Where at least half of the window and 10 s remain, latency and CPU are theirs.
//! Otherwise the effect is bounded: time that was taken delays the messages due in it and those
//! that then queue, at 75 % load four times as many. Delays only raise latencies, so the
//! undisturbed percentile lies between that of the unaffected share and the one measured.

use tacho_load::{Histogram, IntervalSnapshot, PhaseKind};
use tacho_record::{
    Disturbance, DisturbanceLimits, DisturbedSeconds, Handling, LatencyStats, SeriesRow, Step,
};

use super::numbers::round;

/// Seconds that must remain.
const SECONDS_MIN: u64 = 10;
/// Share of the window that must remain.
const SHARE_MIN: f64 = 0.5;
/// Messages that a stolen time affects, in multiples of those due in it: 1 / (1 - 0.75).
const AFFECTED_FACTOR: f64 = 4.0;
/// Seconds after a disturbed one that its backlog may explain.
const FOLLOWING_MAX: u32 = 10;
/// A backlog within this share of a second's deliveries is as before.
const BACKLOG_SHARE: f64 = 0.01;
/// What a disturbance may change of the median: as a share, and in microseconds.
const P50_TOLERANCE: (f64, f64) = (0.1, 50.0);
/// The same for the 99th percentile.
const P99_TOLERANCE: (f64, f64) = (0.25, 250.0);

/// Follows the seconds of the current window.
#[derive(Debug)]
pub(super) struct Disturbances {
    limits: DisturbanceLimits,
    /// Deliveries that are due for each published message; unknown in closed runs.
    fan_out: Option<f64>,
    /// Cores of the broker's host, when known.
    host_cores: usize,
    window: Window,
}

#[derive(Debug, Default)]
struct Window {
    seconds: u64,
    disturbed: u64,
    steal: DisturbedSeconds,
    others: DisturbedSeconds,
    waiting: DisturbedSeconds,
    /// Time taken by steal and others, in seconds of one core.
    taken_s: f64,
    length_s: f64,
    /// Deliveries that are due and have not come.
    backlog: f64,
    /// The same after the last undisturbed second.
    backlog_before: f64,
    /// Seconds since the last disturbed one, while its backlog lasts.
    following: Option<u32>,
    calm: Calm,
}

/// The figures of the seconds that were not disturbed.
#[derive(Debug, Default)]
struct Calm {
    latencies: Option<Latencies>,
    length_s: f64,
    messages: f64,
    /// CPU of the broker times seconds, and the seconds for which it is known.
    cpu_percent_s: f64,
    cpu_s: f64,
    steal_percent_s: f64,
    steal_s: f64,
}

#[derive(Debug)]
struct Latencies {
    e2e: Histogram,
    service: Histogram,
    send_delay: Histogram,
    ack: Histogram,
    rtt: Histogram,
}

impl Disturbances {
    /// Begins; each published message is due `fan_out` times, and the broker's host has
    /// `host_cores`.
    pub(super) fn new(limits: DisturbanceLimits, fan_out: Option<f64>, host_cores: usize) -> Self {
        Self { limits, fan_out, host_cores, window: Window::default() }
    }

    /// A window begins.
    pub(super) fn open(&mut self) {
        self.window = Window::default();
    }

    /// Takes a second of the window, or of the drain after it; `waiting_percent` is the generator's
    /// wait for its own cores, in percent of one. Returns whether it is disturbed.
    pub(super) fn second(
        &mut self,
        interval: &IntervalSnapshot,
        row: &SeriesRow,
        waiting_percent: Option<f64>,
    ) -> bool {
        if !matches!(interval.phase, PhaseKind::Measure | PhaseKind::Drain) {
            return false;
        }
        let is_caused =
            self.note_causes(row, waiting_percent, interval.phase == PhaseKind::Measure);
        let window = &mut self.window;
        let is_over = self.fan_out.is_none_or(|fan_out| {
            let due = row.sent_per_s * row.length_s * fan_out;
            window.backlog += due - row.received_per_s * row.length_s;
            window.backlog <= window.backlog_before + due * BACKLOG_SHARE
        });
        window.following = match (is_caused, window.following) {
            (true, _) => Some(0),
            (false, Some(seconds)) if !is_over && seconds < FOLLOWING_MAX => Some(seconds + 1),
            (false, _) => None,
        };
        let is_calm = window.following.is_none();
        if is_calm {
            window.backlog_before = window.backlog;
            window.calm.add(interval);
        }
        if interval.phase == PhaseKind::Measure {
            window.seconds += 1;
            window.disturbed += u64::from(!is_calm);
            window.length_s += row.length_s;
            if is_calm {
                window.calm.count(row);
            }
        }
        !is_calm
    }

    /// Notes which limits a second exceeds; those of the drain are not counted.
    fn note_causes(&mut self, row: &SeriesRow, waiting: Option<f64>, counts: bool) -> bool {
        let (stolen, others) = (row.host_steal_percent, row.others_on_broker_cores_percent);
        let (limits, window) = (self.limits, &mut self.window);
        let note = |kind: &mut DisturbedSeconds, percent: Option<f64>, limit: f64| {
            let Some(percent) = percent.filter(|percent| *percent >= limit) else { return false };
            if counts {
                kind.seconds += 1;
                kind.percent_max = kind.percent_max.max(round(percent, 2));
            }
            true
        };
        let is_disturbed = [
            note(&mut window.steal, stolen, limits.steal_percent),
            note(&mut window.others, others, limits.others_percent),
            note(&mut window.waiting, waiting, limits.waiting_percent),
        ];
        if counts {
            let part = |percent: Option<f64>| percent.unwrap_or(0.0) / 100.0 * row.length_s;
            // All of the host's steal may have been that of one core.
            let steal_s = part(stolen) * self.host_cores.max(1) as f64;
            window.taken_s += steal_s + part(others) + part(waiting);
        }
        is_disturbed.contains(&true)
    }

    /// The window is over: decides, and gives the step the figures that hold.
    pub(super) fn settle(&mut self, step: &mut Step, all: &Histogram) {
        let window = std::mem::take(&mut self.window);
        if window.seconds == 0 {
            self.settle_whole(step);
        }
        if window.disturbed == 0 {
            return;
        }
        let remain = window.seconds - window.disturbed;
        let affected = AFFECTED_FACTOR * window.taken_s / window.length_s.max(f64::MIN_POSITIVE);
        let mut disturbance = Disturbance {
            seconds: window.seconds,
            disturbed: window.disturbed,
            steal: window.steal,
            others: window.others,
            waiting: window.waiting,
            affected_percent: round(affected.min(1.0) * 100.0, 2),
            tolerated: (self.limits != DisturbanceLimits::default()).then_some(self.limits),
            ..Disturbance::default()
        };
        if remain >= SECONDS_MIN && remain as f64 >= SHARE_MIN * window.seconds as f64 {
            disturbance.handling = Handling::LeftOut;
            window.calm.replace(step);
        } else {
            disturbance.p50_us_min = at_least(all, 0.5, affected);
            disturbance.p99_us_min = at_least(all, 0.99, affected);
            let p50 = within(disturbance.p50_us_min, step.latency_us.p50, P50_TOLERANCE);
            let p99 = within(disturbance.p99_us_min, step.latency_us.p99, P99_TOLERANCE);
            if p50 && p99 {
                disturbance.handling = Handling::WithinTolerance;
            }
        }
        step.disturbance = Some(disturbance);
    }
}

impl Disturbances {
    /// A window without a full second is judged as a whole.
    fn settle_whole(&self, step: &mut Step) {
        let over = |percent: Option<f64>, limit: f64| {
            let percent_max = percent.filter(|percent| *percent >= limit).unwrap_or(0.0);
            DisturbedSeconds { seconds: 0, percent_max }
        };
        let steal = over(step.host_steal_percent, self.limits.steal_percent);
        let others = over(step.others_on_broker_cores_percent, self.limits.others_percent);
        if steal.percent_max > 0.0 || others.percent_max > 0.0 {
            step.disturbance = Some(Disturbance { steal, others, ..Disturbance::default() });
        }
    }
}

/// The percentile that the unaffected share alone cannot be below.
fn at_least(all: &Histogram, quantile: f64, affected: f64) -> Option<u64> {
    let unaffected = 1.0 - affected.min(1.0);
    (!all.is_empty()).then(|| all.value_at_quantile((quantile - 1.0 + unaffected).max(0.0)))
}

fn within(low: Option<u64>, figure: Option<u64>, (share, us): (f64, f64)) -> bool {
    let Some((low, figure)) = low.zip(figure) else { return true };
    (figure - low.min(figure)) as f64 <= (figure as f64 * share).max(us)
}

impl Calm {
    fn add(&mut self, interval: &IntervalSnapshot) {
        let all =
            [&interval.e2e, &interval.service, &interval.send_delay, &interval.ack, &interval.rtt];
        match &mut self.latencies {
            None => {
                let [e2e, service, send_delay, ack, rtt] = all.map(Histogram::clone);
                self.latencies = Some(Latencies { e2e, service, send_delay, ack, rtt });
            }
            Some(known) => {
                let known = [
                    &mut known.e2e,
                    &mut known.service,
                    &mut known.send_delay,
                    &mut known.ack,
                    &mut known.rtt,
                ];
                for (known, new) in known.into_iter().zip(all) {
                    // Invariant: all histograms of a run have the same precision and resize.
                    let _ = known.add(new);
                }
            }
        }
    }

    fn count(&mut self, row: &SeriesRow) {
        self.length_s += row.length_s;
        self.messages += (row.sent_per_s + row.received_per_s) * row.length_s;
        if let Some(cpu) = row.broker_cpu_percent {
            self.cpu_percent_s += cpu * row.length_s;
            self.cpu_s += row.length_s;
        }
        if let Some(steal) = row.host_steal_percent {
            self.steal_percent_s += steal * row.length_s;
            self.steal_s += row.length_s;
        }
    }

    /// Gives the step latency and CPU of these seconds alone.
    fn replace(self, step: &mut Step) {
        if let Some(latencies) = &self.latencies {
            step.latency_us = LatencyStats::of(&latencies.e2e);
            step.service_us = LatencyStats::of(&latencies.service);
            step.send_delay_us = LatencyStats::of(&latencies.send_delay);
            step.ack_us = LatencyStats::of(&latencies.ack);
            step.rtt_us = LatencyStats::of(&latencies.rtt);
        }
        if step.broker_cpu_percent.is_some() && self.cpu_s > 0.0 {
            let percent = self.cpu_percent_s / self.cpu_s;
            step.broker_cpu_percent = Some(round(percent, 2));
            if self.messages > 0.0 {
                let cpu_us = percent / 100.0 * self.length_s * 1e6;
                step.broker_cpu_us_per_message = Some(round(cpu_us / self.messages, 3));
            }
        }
        if self.steal_s > 0.0 {
            step.host_steal_percent = Some(round(self.steal_percent_s / self.steal_s, 2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::snapshot;
    use super::*;

    /// A second in which 1,000 messages are sent and `received` arrive, all after `latency_us`.
    fn second(steal: f64, received: u64, latency_us: u64) -> (IntervalSnapshot, SeriesRow) {
        let interval = snapshot(0, latency_us, received);
        let row = SeriesRow {
            length_s: 1.0,
            sent_per_s: 1000.0,
            received_per_s: received as f64,
            host_steal_percent: Some(steal),
            broker_cpu_percent: Some(latency_us as f64 / 100.0),
            ..SeriesRow::default()
        };
        (interval, row)
    }

    /// The step after these seconds.
    fn settled(limits: DisturbanceLimits, seconds: &[(f64, u64, u64)]) -> Step {
        let mut disturbances = Disturbances::new(limits, Some(1.0), 2);
        let mut all = snapshot(0, 0, 0).e2e;
        disturbances.open();
        for (steal, received, latency_us) in seconds {
            let (interval, row) = second(*steal, *received, *latency_us);
            all.add(&interval.e2e).expect("same precision");
            disturbances.second(&interval, &row, None);
        }
        let mut step = Step {
            latency_us: LatencyStats::of(&all),
            broker_cpu_percent: Some(99.0),
            ..Step::default()
        };
        disturbances.settle(&mut step, &all);
        step
    }

    #[test]
    fn quiet_seconds_change_nothing_however_slow_they_are() {
        let mut seconds = vec![(0.0, 1000, 100); 14];
        seconds.push((0.5, 1000, 900_000));
        let step = settled(DisturbanceLimits::default(), &seconds);
        assert_eq!((step.disturbance, step.broker_cpu_percent), (None, Some(99.0)));
        assert!(step.latency_us.max.is_some_and(|max| max >= 899_000));
    }

    #[test]
    fn disturbed_seconds_are_left_out_with_those_that_their_backlog_explains() {
        let mut seconds = vec![(0.0, 1000, 100); 12];
        seconds.extend([(20.0, 100, 900_000), (0.0, 1500, 600_000), (0.0, 1400, 100)]);
        let step = settled(DisturbanceLimits::default(), &seconds);
        let found = step.disturbance.expect("steal");
        assert_eq!((found.handling, found.disturbed), (Handling::LeftOut, 2));
        assert_eq!((found.steal.seconds, found.steal.percent_max), (1, 20.0));
        assert!(step.latency_us.max.is_some_and(|max| max < 200));
        assert_eq!(step.broker_cpu_percent, Some(1.0));
    }

    #[test]
    fn a_disturbance_that_cannot_change_the_figures_leaves_them_valid() {
        let step = settled(DisturbanceLimits::default(), &[(1.5, 1000, 100); 5]);
        let found = step.disturbance.expect("steal");
        assert_eq!(found.handling, Handling::WithinTolerance);
        assert_eq!(found.affected_percent, 12.0);
    }

    #[test]
    fn a_disturbance_that_may_have_made_the_tail_is_invalid() {
        let step = settled(
            DisturbanceLimits::default(),
            &[(0.0, 1000, 100), (8.0, 1000, 50_000), (6.0, 1000, 100), (0.0, 1000, 100)],
        );
        let found = step.disturbance.expect("steal");
        assert_eq!(found.handling, Handling::Invalid);
        assert!(found.p99_us_min < step.latency_us.p99);
    }

    #[test]
    fn the_user_may_tolerate_more() {
        let limits = DisturbanceLimits { steal_percent: 25.0, ..DisturbanceLimits::default() };
        assert_eq!(settled(limits, &[(20.0, 1000, 100); 5]).disturbance, None);
        let found = settled(limits, &[(30.0, 1000, 100); 5]).disturbance.expect("steal");
        assert_eq!(found.tolerated, Some(limits));
    }
}
