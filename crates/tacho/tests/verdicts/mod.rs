//! Exit codes of runs against the verdicts of their records: both must say the same.

/// Verdicts of a run in which every message arrived; which of them depends on how busy the machine
/// is.
const GOOD: [&str; 4] = ["ok", "generator_bound", "network_bound", "not_steady"];

/// Asserts that `code` is the exit code for the verdict of `record`, and that the verdict is a good
/// one or one of `others`.
#[track_caller]
pub(crate) fn assert_code(code: Option<i32>, record: &serde_json::Value, others: &[&str]) {
    let verdict = record["verdict"].as_str().expect("a verdict");
    let reasons = &record["reasons"];
    assert!(GOOD.contains(&verdict) || others.contains(&verdict), "{verdict}: {reasons:#}");
    let expected = match verdict {
        "ok" => 0,
        "threshold_failed" | "not_sustained" => 99,
        "qos_violation" => 110,
        "generator_bound" | "network_bound" | "not_steady" => 111,
        other => panic!("a verdict that ends no run: {other}"),
    };
    assert_eq!(code, Some(expected), "{verdict}: {reasons:#}");
}
