//! Exit codes of runs against the verdicts of their records: both must say the same.

use serde_json::Value;

/// Verdicts of a run in which every message arrived; which of them depends on how busy the machine
/// is.
const GOOD: [&str; 5] = ["ok", "generator_bound", "disturbed", "network_bound", "not_steady"];

/// The exit code that belongs to the verdict of `record`; `None` for a run that came to no end of
/// its own.
pub fn code_of(record: &Value) -> Option<i32> {
    match record["verdict"].as_str()? {
        "ok" => Some(0),
        "threshold_failed" | "not_sustained" => Some(99),
        "qos_violation" => Some(110),
        "generator_bound" | "disturbed" | "network_bound" | "not_steady" | "unclear" => Some(111),
        _ => None,
    }
}

/// Asserts that `code` is the exit code for the verdict of `record`, and that the verdict is a good
/// one or one of `others`.
#[track_caller]
pub fn assert_code(code: Option<i32>, record: &Value, others: &[&str]) {
    let verdict = record["verdict"].as_str().expect("a verdict");
    let reasons = &record["reasons"];
    assert!(GOOD.contains(&verdict) || others.contains(&verdict), "{verdict}: {reasons:#}");
    assert!(code.is_some() && code == code_of(record), "{code:?}: {verdict}: {reasons:#}");
}
