//! Values in the metrics of a broker, in the format of Prometheus.

/// The largest value of a metric, over its labels.
pub(crate) fn largest(text: &str, name: &str) -> Option<f64> {
    let samples = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        (rest.starts_with('{') || rest.starts_with(' ')).then(|| rest.rsplit(' ').next())?
    });
    samples.filter_map(|value| value.trim().parse().ok()).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_turn_is_that_of_any_shard() {
        let text = "# HELP tacho_turn_seconds_max x\ntacho_turn_seconds_max{shard=\"0\"} 0.001\n\
            tacho_turn_seconds_max{shard=\"1\"} 0.25\ntacho_turn_seconds_max_other 9\n";
        assert_eq!(largest(text, "tacho_turn_seconds_max"), Some(0.25));
        assert_eq!(largest(text, "tacho_turn_units_max"), None);
        assert_eq!(largest("tacho_turn_units_max 7\n", "tacho_turn_units_max"), Some(7.0));
    }
}
