//! What rounds say: the ratio of the generator's figures to the client's, and whether it is near 1.

use std::fmt::Write as _;

use serde::Serialize;

use crate::bench::figures::{median, number};

/// The timing that must agree.
pub(super) const JUDGED: &str = "auto";
/// How far the broker's CPU per message may be apart, and how far the median latency.
const CPU_TOLERANCE: f64 = 0.05;
const LATENCY_TOLERANCE: f64 = 0.10;
/// Time taken by the hypervisor, in percent, above which a round does not count.
const STEAL_PERCENT_MAX: f64 = 2.0;
/// Fewer rounds say nothing.
const ROUNDS_MIN: usize = 3;

/// What one run measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct RunFigures {
    pub(super) broker_cpu_us_per_message: f64,
    pub(super) latency_us_p50: f64,
    pub(super) latency_us_p99: f64,
    /// CPU of the generator's thread, one core = 100.
    pub(super) work_percent: Option<f64>,
    pub(super) spin_percent: Option<f64>,
    pub(super) steal_percent: f64,
}

/// One run of each client.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    floor: RunFigures,
    /// By timing.
    generator: Vec<(String, RunFigures)>,
}

impl Round {
    /// Adds a run of the generator with a timing, or of the independent client.
    pub(super) fn push(&mut self, timing: Option<&str>, figures: RunFigures) {
        match timing {
            Some(timing) => self.generator.push((timing.to_owned(), figures)),
            None => self.floor = figures,
        }
    }

    /// Whether no run was disturbed.
    pub(super) fn counts(&self) -> bool {
        let runs = self.generator.iter().map(|(_, figures)| figures).chain([&self.floor]);
        runs.into_iter().all(|figures| figures.steal_percent <= STEAL_PERCENT_MAX)
    }

    pub(super) fn line(&self) -> String {
        let shown = |name: &str, figures: &RunFigures| {
            format!(
                "{name} {:.2} us/message, p50 {:.0} us (steal {:.1} %)",
                figures.broker_cpu_us_per_message, figures.latency_us_p50, figures.steal_percent
            )
        };
        let mut parts = vec![shown("client", &self.floor)];
        parts.extend(self.generator.iter().map(|(timing, figures)| shown(timing, figures)));
        let mark = if self.counts() { "" } else { ": does not count" };
        format!("{}{mark}", parts.join(", "))
    }
}

/// Whether the generator agrees with the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Conclusion {
    Agrees,
    Apart,
    /// Too few rounds count.
    Unknown,
}

/// One load with one timing.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Agreement {
    tps_k: u64,
    qos: u8,
    timing: String,
    /// Rounds that count, and rounds that were made.
    rounds: usize,
    rounds_made: usize,
    /// Rounds that must count.
    rounds_min: usize,
    /// Pairs of the client's and the generator's figures, of the rounds that count.
    pairs: Vec<(RunFigures, RunFigures)>,
    cpu_ratio: Option<f64>,
    p50_ratio: Option<f64>,
    p99_ratio: Option<f64>,
}

impl Agreement {
    pub(super) fn new(
        tps_k: u64,
        qos: u8,
        timing: &str,
        rounds_wanted: usize,
        rounds: &[Round],
    ) -> Self {
        let pair = |round: &Round| {
            let found = round.generator.iter().find(|(name, _)| name == timing);
            found.map(|(_, figures)| (round.floor.clone(), figures.clone()))
        };
        let counting = rounds.iter().filter(|round| round.counts());
        let pairs: Vec<(RunFigures, RunFigures)> = counting.filter_map(pair).collect();
        let ratio = |of: fn(&RunFigures) -> f64| {
            median(pairs.iter().map(|(floor, tacho)| of(tacho) / of(floor)).collect())
        };
        Self {
            tps_k,
            qos,
            timing: timing.to_owned(),
            rounds: pairs.len(),
            rounds_made: rounds.len(),
            rounds_min: ROUNDS_MIN.min(rounds_wanted),
            cpu_ratio: ratio(|figures| figures.broker_cpu_us_per_message),
            p50_ratio: ratio(|figures| figures.latency_us_p50),
            p99_ratio: ratio(|figures| figures.latency_us_p99),
            pairs,
        }
    }

    pub(super) fn is_judged(&self) -> bool {
        self.timing == JUDGED
    }

    pub(super) fn conclusion(&self) -> Conclusion {
        let near = |ratio: f64, tolerance: f64| (ratio - 1.0).abs() <= tolerance;
        match (self.cpu_ratio, self.p50_ratio) {
            (Some(cpu), Some(p50)) if self.rounds >= self.rounds_min.max(1) => {
                match near(cpu, CPU_TOLERANCE) && near(p50, LATENCY_TOLERANCE) {
                    true => Conclusion::Agrees,
                    false => Conclusion::Apart,
                }
            }
            _ => Conclusion::Unknown,
        }
    }

    fn median_of(&self, of: impl Fn(&(RunFigures, RunFigures)) -> Option<f64>) -> Option<f64> {
        median(self.pairs.iter().filter_map(of).collect())
    }

    pub(super) fn line(&self) -> String {
        let ratio = |ratio: Option<f64>| {
            ratio.map_or_else(|| "?".to_owned(), |ratio| format!("{ratio:.3}"))
        };
        format!(
            "{:>3}K TPS, QoS {}, {}: CPU {} x, p50 {} x of the client's, {} of {} rounds: {:?}",
            self.tps_k,
            self.qos,
            self.timing,
            ratio(self.cpu_ratio),
            ratio(self.p50_ratio),
            self.rounds,
            self.rounds_made,
            self.conclusion()
        )
    }
}

/// All agreements, a line each.
pub(super) fn table(agreements: &[Agreement]) -> String {
    let mut text = format!(
        "| TPS | QoS | timing | rounds | broker CPU us/message, client | generator | ratio (± {:.0} %) \
         | p50 us, client | generator | ratio (± {:.0} %) | p99 ratio | work % | spinning % | agrees |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        CPU_TOLERANCE * 100.0,
        LATENCY_TOLERANCE * 100.0
    );
    for agreement in agreements {
        let shown = |value: Option<f64>| value.map(number).unwrap_or_default();
        let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.3}"));
        let conclusion = match (agreement.conclusion(), agreement.is_judged()) {
            (Conclusion::Agrees, _) => "yes",
            (Conclusion::Apart, true) => "**no**",
            (Conclusion::Apart, false) => "no",
            (Conclusion::Unknown, _) => "cannot be told",
        };
        let _ = writeln!(
            text,
            "| {}K | {} | {} | {} of {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {conclusion} |",
            agreement.tps_k,
            agreement.qos,
            agreement.timing,
            agreement.rounds,
            agreement.rounds_made,
            shown(agreement.median_of(|(floor, _)| Some(floor.broker_cpu_us_per_message))),
            shown(agreement.median_of(|(_, tacho)| Some(tacho.broker_cpu_us_per_message))),
            ratio(agreement.cpu_ratio),
            shown(agreement.median_of(|(floor, _)| Some(floor.latency_us_p50))),
            shown(agreement.median_of(|(_, tacho)| Some(tacho.latency_us_p50))),
            ratio(agreement.p50_ratio),
            ratio(agreement.p99_ratio),
            shown(agreement.median_of(|(_, tacho)| tacho.work_percent)),
            shown(agreement.median_of(|(_, tacho)| tacho.spin_percent)),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(cpu: f64, p50: f64, steal_percent: f64) -> Round {
        let figures = |cpu, p50, steal_percent| RunFigures {
            broker_cpu_us_per_message: cpu,
            latency_us_p50: p50,
            latency_us_p99: p50,
            steal_percent,
            ..RunFigures::default()
        };
        let mut round = Round::default();
        round.push(None, figures(10.0, 50.0, 0.5));
        round.push(Some(JUDGED), figures(cpu, p50, steal_percent));
        round
    }

    fn conclusion(rounds: &[Round]) -> Conclusion {
        Agreement::new(20, 1, JUDGED, 5, rounds).conclusion()
    }

    #[test]
    fn both_figures_must_be_near() {
        let all = |cpu, p50| [(); 3].map(|()| round(cpu, p50, 0.0));
        assert_eq!(conclusion(&all(10.4, 54.0)), Conclusion::Agrees);
        assert_eq!(conclusion(&all(9.6, 46.0)), Conclusion::Agrees);
        assert_eq!(conclusion(&all(10.6, 50.0)), Conclusion::Apart);
        assert_eq!(conclusion(&all(9.4, 50.0)), Conclusion::Apart);
        assert_eq!(conclusion(&all(10.0, 56.0)), Conclusion::Apart);
        assert_eq!(conclusion(&all(10.0, 44.0)), Conclusion::Apart);
    }

    #[test]
    fn the_median_of_the_rounds_is_judged() {
        let rounds = [round(10.0, 50.0, 0.0), round(20.0, 99.0, 0.0), round(10.1, 51.0, 0.0)];
        assert_eq!(conclusion(&rounds), Conclusion::Agrees);
    }

    #[test]
    fn disturbed_rounds_do_not_count() {
        let mut rounds = vec![round(20.0, 99.0, 2.1), round(20.0, 99.0, 9.0)];
        assert_eq!(conclusion(&rounds), Conclusion::Unknown);
        rounds.extend([(); 2].map(|()| round(10.0, 50.0, 1.9)));
        assert_eq!(conclusion(&rounds), Conclusion::Unknown, "two are too few");
        rounds.push(round(10.0, 50.0, 2.0));
        assert_eq!(conclusion(&rounds), Conclusion::Agrees);
        let text = table(&[Agreement::new(20, 1, JUDGED, 5, &rounds)]);
        assert!(text.contains("| 3 of 5 |"), "{text}");
    }

    #[test]
    fn a_timing_that_was_not_run_says_nothing() {
        let rounds = [(); 3].map(|()| round(10.0, 50.0, 0.0));
        let other = Agreement::new(20, 1, "sleep", 5, &rounds);
        assert_eq!((other.conclusion(), other.is_judged()), (Conclusion::Unknown, false));
    }
}
