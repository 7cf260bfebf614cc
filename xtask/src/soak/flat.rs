//! What is seen of a soak over its time, and whether it stays flat.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::bench::figures::{median, number};
use crate::bench::machine::rss_bytes;

/// A look at the broker's process.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Look {
    at_s: f64,
    pub(super) rss_bytes: u64,
    pub(super) descriptors: usize,
}

/// Something that should stay as it is: its medians over two thirds of the time, one after the
/// other.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Trend {
    what: &'static str,
    unit: &'static str,
    first: Option<f64>,
    last: Option<f64>,
    /// The most that the last may be.
    bound: Option<f64>,
    pub(super) is_flat: bool,
}

impl Look {
    pub(super) fn at(at: Duration, pid: u32) -> Result<Self> {
        let rss_bytes = rss_bytes(pid)?;
        let path = format!("/proc/{pid}/fd");
        let entries = fs::read_dir(&path).with_context(|| format!("cannot list {path}"))?;
        Ok(Self { at_s: at.as_secs_f64(), rss_bytes, descriptors: entries.count() })
    }
}

impl Trend {
    pub(super) fn what(&self) -> &'static str {
        self.what
    }

    /// `(times, more)`: the last third may be so many times the first, and so much more.
    pub(super) fn new(
        what: &'static str,
        unit: &'static str,
        values: &[f64],
        (times, more): (f64, f64),
    ) -> Self {
        // Clients connect during the first sixth and leave during the last.
        let at = |part: usize| values.len() * part / 6;
        let part = |from, to| median(values.get(at(from)..at(to)).unwrap_or_default().to_vec());
        let (first, last) = (part(1, 3), part(3, 5));
        let bound = first.map(|first| first * times + more);
        let is_flat = last.zip(bound).is_some_and(|(last, bound)| last <= bound);
        Self { what, unit, first, last, bound, is_flat }
    }
}

pub(super) fn table(trends: &[Trend]) -> String {
    let mut text = "| | first | last | at most | flat |\n|---|---|---|---|---|\n".to_owned();
    for Trend { what, unit, first, last, bound, is_flat } in trends {
        let shown = |value: &Option<f64>| {
            value.map_or_else(String::new, |value| format!("{} {unit}", number(value)))
        };
        let (first, last, bound) = (shown(first), shown(last), shown(bound));
        let flat = if *is_flat { "yes" } else { "**no**" };
        let _ = writeln!(text, "| {what} | {first} | {last} | {bound} | {flat} |");
    }
    text
}

/// The values of a column of a time series in the rows of a phase.
pub(super) fn column(series: &str, phase: &str, name: &str) -> Result<Vec<f64>> {
    let mut lines = series.lines();
    let header: Vec<&str> = lines.next().context("an empty time series")?.split(',').collect();
    let place = |name: &str| {
        let found = header.iter().position(|column| *column == name);
        found.with_context(|| format!("the time series has no column {name}"))
    };
    let (phase_at, value_at) = (place("phase")?, place(name)?);
    let value = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let is_it = fields.get(phase_at).is_some_and(|found| *found == phase);
        if is_it { fields.get(value_at)?.parse().ok() } else { None }
    };
    Ok(lines.filter_map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found_and_noise_is_not() {
        let grows: Vec<f64> = (0..600).map(|second| 100.0 + f64::from(second)).collect();
        assert!(!Trend::new("x", "", &grows, (1.5, 0.0)).is_flat);
        let noisy: Vec<f64> = (0..600).map(|second| 100.0 + f64::from(second % 7)).collect();
        assert!(Trend::new("x", "", &noisy, (1.0, 1.0)).is_flat);
        assert!(!Trend::new("x", "", &[], (1.0, 1.0)).is_flat, "nothing was seen");
        // What happens while clients connect and leave does not count.
        let mut ends = vec![100.0; 600];
        ends[..90].fill(1.0);
        ends[520..].fill(1000.0);
        assert!(Trend::new("x", "", &ends, (1.0, 1.0)).is_flat);
    }

    #[test]
    fn columns_are_found_by_name() {
        let series = "start_s,phase,e2e_p99_us\n0,warmup,9\n1,measure,5\n2,measure,\n3,measure,7\n";
        assert_eq!(column(series, "measure", "e2e_p99_us").expect("is there"), [5.0, 7.0]);
        assert!(column(series, "measure", "rtt").is_err());
    }
}
