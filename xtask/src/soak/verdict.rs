//! Whether a soak has passed: the load's own verdict, what was lost, and what did not stay flat.

use serde_json::Value;

use super::flat::Trend;

/// The verdict of the load, as its record names it.
pub(super) fn of_run(summary: &Value) -> &str {
    summary.get("verdict").and_then(Value::as_str).unwrap_or("unknown")
}

/// Why a soak has not passed; empty if it has.
pub(super) fn why_not_passed(summary: &Value, trends: &[Trend]) -> Vec<String> {
    let mut reasons = Vec::new();
    // Whatever it is: figures of a run that was disturbed, or not carried, prove nothing.
    let verdict = of_run(summary);
    if verdict != "ok" {
        reasons.push(format!("the verdict of the run is {verdict}"));
    }
    match summary.pointer("/steps/0/lost").and_then(Value::as_u64) {
        Some(0) => {}
        Some(lost) => reasons.push(format!("{lost} messages were lost")),
        None => reasons.push("the run does not say what was lost".to_owned()),
    }
    let uneven = trends.iter().filter(|trend| !trend.is_flat);
    reasons.extend(uneven.map(|trend| format!("{} did not stay flat", trend.what())));
    reasons
}

/// The same as a sentence.
pub(super) fn sentence(reasons: &[String]) -> String {
    match reasons {
        [] => "The soak has passed.".to_owned(),
        reasons => format!("The soak has not passed: {}.", reasons.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trends(last: f64) -> [Trend; 2] {
        let values: Vec<f64> = (0..60).map(|at| if at < 30 { 100.0 } else { last }).collect();
        [
            Trend::new("RSS", "bytes", &values, (1.05, 1.0)),
            Trend::new("p99", "us", &[5.0; 60], (1.0, 1.0)),
        ]
    }

    #[test]
    fn only_a_run_whose_verdict_is_ok_is_a_soak_that_passed() {
        let summary = |verdict: &str| json!({ "verdict": verdict, "steps": [{ "lost": 0 }] });
        assert!(why_not_passed(&summary("ok"), &trends(100.0)).is_empty());
        for verdict in ["disturbed", "not_sustained", "qos_violation", "aborted", "generator_bound"]
        {
            let why = why_not_passed(&summary(verdict), &trends(100.0));
            assert_eq!(why, [format!("the verdict of the run is {verdict}")]);
        }
        let without = json!({ "steps": [{ "lost": 0 }] });
        let why = why_not_passed(&without, &trends(100.0));
        assert_eq!(why, ["the verdict of the run is unknown"]);
    }

    #[test]
    fn all_reasons_are_named() {
        let summary = json!({ "verdict": "qos_violation", "steps": [{ "lost": 3 }] });
        let why = why_not_passed(&summary, &trends(200.0));
        let expected = "The soak has not passed: the verdict of the run is qos_violation; \
                        3 messages were lost; RSS did not stay flat.";
        assert_eq!(sentence(&why), expected);
        let why = why_not_passed(&json!({ "verdict": "ok" }), &trends(100.0));
        assert_eq!(why, ["the run does not say what was lost"]);
        assert_eq!(sentence(&[]), "The soak has passed.");
    }
}
