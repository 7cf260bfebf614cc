//! Ratios of this tree's figures to another program's, for cases that alternate between the two.

use std::fmt::Write as _;

use super::case::Case;
use super::figures::{Figures, median, number};

/// Metrics to compare where both programs have them. Lower is better, except for rates.
const METRICS: [&str; 10] = [
    "cpu_us_per_message",
    "tps",
    "generator_cpu_percent",
    "latency_us_p50",
    "latency_us_p99",
    "rss_bytes_per_connection",
    "rss_bytes_per_subscribed",
    "rss_bytes_per_subscription",
    "restart_ms",
    "drained_per_s",
];

/// A table: medians of both programs, the median of the rounds' ratios, and their range.
///
/// A ratio comes from two consecutive runs, so that a slow minute of the machine affects both.
pub(super) fn table(cases: &[Case], figures: &Figures) -> String {
    let mut text = "| case | figure | this | other | this / other | range over rounds |\n\
        |---|---|---|---|---|---|\n"
        .to_owned();
    for case in cases.iter().filter(|case| case.is_of_tacho()) {
        let other = case.of_other_program().name;
        for metric in METRICS {
            let mut ratios = figures.ratios(&case.name, &other, metric);
            ratios.sort_by(f64::total_cmp);
            let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else { continue };
            let shown = |name: &str| figures.median(name, metric).map(number).unwrap_or_default();
            let (this, that) = (shown(&case.name), shown(&other));
            let Some(middle) = median(ratios.clone()) else { continue };
            let _ = writeln!(
                text,
                "| {} | {metric} | {this} | {that} | {middle:.3} | {least:.3} to {most:.3} |",
                case.name
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::case;
    use crate::bench::figures::Sample;

    #[test]
    fn ratios_pair_runs_of_the_same_round() {
        let cases = case::all();
        let case = cases.iter().find(|case| case.is_of_tacho()).expect("cases of Tacho");
        let other = case.of_other_program();
        let mut figures = Figures::default();
        for (round, this, that) in [(1, 10.0, 10.0), (2, 30.0, 20.0), (3, 11.0, 10.0)] {
            for (name, value) in [(&case.name, this), (&other.name, that)] {
                let mut sample = Sample::new(name, round);
                sample.set("cpu_us_per_message", Some(value));
                figures.push(sample);
            }
        }
        // A round with a result of only one program has no ratio.
        figures.push(Sample::new(&case.name, 4));
        let text = table(&cases, &figures);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.contains("| 1.100 | 1.000 to 1.500 |"), "{text}");
    }
}
