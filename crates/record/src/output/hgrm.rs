//! `e2e.hgrm` and the other percentile files, as HdrHistogram's `outputPercentileDistribution`
//! writes them and its plotting page reads them.

use std::io::{self, Write};

use hdrhistogram::Histogram;

/// Lines per halving of the distance to 100 %.
const TICKS_PER_HALF_DISTANCE: u32 = 5;
/// Our histograms hold microseconds, the files milliseconds.
const UNITS_PER_MS: f64 = 1000.0;

/// Writes the percentiles of a histogram of microseconds, in milliseconds.
///
/// # Errors
/// When the output cannot be written.
pub fn write_percentiles(out: &mut impl Write, histogram: &Histogram<u64>) -> io::Result<()> {
    writeln!(out, "       Value     Percentile TotalCount 1/(1-Percentile)\n")?;
    let mut total = 0;
    for step in histogram.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        total += step.count_since_last_iteration();
        let value_ms = step.value_iterated_to() as f64 / UNITS_PER_MS;
        let quantile = step.quantile_iterated_to();
        write!(out, "{value_ms:12.3} {quantile:2.12} {total:10}")?;
        match quantile < 1.0 {
            true => writeln!(out, " {:14.2}", 1.0 / (1.0 - quantile))?,
            false => writeln!(out)?,
        }
    }
    let (mean, deviation) = (histogram.mean() / UNITS_PER_MS, histogram.stdev() / UNITS_PER_MS);
    let max = histogram.max() as f64 / UNITS_PER_MS;
    // Three significant digits take 2048 sub-buckets.
    let sub_buckets = (2 * 10_u32.pow(u32::from(histogram.sigfig()))).next_power_of_two();
    writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]")?;
    writeln!(out, "#[Max     = {max:12.3}, Total count    = {:12}]", histogram.len())?;
    writeln!(out, "#[Buckets = {:12}, SubBuckets     = {sub_buckets:12}]", histogram.buckets())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value, percentile, count and 1/(1-percentile) of each line.
    fn parsed(text: &str) -> Vec<(f64, f64, u64, Option<f64>)> {
        let lines = text.lines().skip(2).filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let number = |index: usize| words[index].parse::<f64>().expect("a number");
                let last = words.get(3).map(|word| word.parse().expect("a number"));
                (number(0), number(1), number(2) as u64, last)
            })
            .collect()
    }

    #[test]
    fn percentiles_in_milliseconds() {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        for value_us in 1..=1000 {
            histogram.record(value_us).expect("grows");
        }
        let mut bytes = Vec::new();
        write_percentiles(&mut bytes, &histogram).expect("writes");
        let text = String::from_utf8(bytes).expect("is text");
        assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"));
        let lines = parsed(&text);
        assert!(lines.len() > 30, "{text}");
        assert!(lines.windows(2).all(|pair| {
            pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1 && pair[0].2 <= pair[1].2
        }));
        let median = lines.iter().find(|line| line.1 >= 0.5).expect("the middle");
        assert!((median.0 - 0.5).abs() < 0.002 && median.2 == 500, "{median:?}");
        assert_eq!(median.3, Some(2.0));
        assert_eq!(lines.last(), Some(&(1.0, 1.0, 1000, None)));
        assert!(
            text.contains("#[Mean    =        0.500, StdDeviation   =        0.289]"),
            "{text}"
        );
        assert!(
            text.contains("#[Max     =        1.000, Total count    =         1000]"),
            "{text}"
        );
        assert!(text.contains("SubBuckets     =         2048]"), "{text}");
    }

    #[test]
    fn an_empty_histogram_has_no_lines() {
        let mut bytes = Vec::new();
        let histogram = Histogram::<u64>::new(3).expect("three digits");
        write_percentiles(&mut bytes, &histogram).expect("writes");
        let text = String::from_utf8(bytes).expect("is text");
        assert_eq!(parsed(&text), []);
        assert!(text.contains("Total count    =            0]"));
    }
}
