//! Records of runs on machines that are busy with other things: verdicts that are fair there, the
//! exit codes that belong to them, and rows that were measured again.

use serde_json::Value;

/// Verdicts of a run in which every message arrived; which of them depends on how busy the machine
/// is.
const FAIR: [&str; 6] =
    ["ok", "generator_bound", "disturbed", "network_bound", "not_steady", "not_sustained"];

/// Does the verdict of `record` say nothing against the broker but that it, or the generator, was
/// slow?
pub fn is_fair(record: &Value) -> bool {
    record["verdict"].as_str().is_some_and(|verdict| FAIR.contains(&verdict))
}

/// The exit code that belongs to the verdict of `record`; `None` for a run that came to no end of
/// its own.
pub fn code_of(record: &Value) -> Option<i32> {
    match record["verdict"].as_str()? {
        "ok" => Some(0),
        "threshold_failed" | "not_sustained" => Some(99),
        "qos_violation" | "login_violation" => Some(110),
        "generator_bound" | "disturbed" | "network_bound" | "not_steady" | "unclear" => Some(111),
        _ => None,
    }
}

/// Asserts that `code` is the exit code for the verdict of `record`, and that the verdict is a fair
/// one or one of `others`.
#[track_caller]
pub fn assert_code(code: Option<i32>, record: &Value, others: &[&str]) {
    let verdict = record["verdict"].as_str().expect("a verdict");
    let reasons = &record["reasons"];
    assert!(is_fair(record) || others.contains(&verdict), "{verdict}: {reasons:#}");
    assert!(code.is_some() && code == code_of(record), "{code:?}: {verdict}: {reasons:#}");
}

/// The steps of a campaign's record, each once: a busy machine has rows measured again, which
/// follow as steps of their own; the last attempt stands for the row.
pub fn rows(record: &Value) -> Vec<&Value> {
    let mut rows: Vec<(&str, &Value)> = Vec::new();
    for step in record["steps"].as_array().expect("steps") {
        let label = step["label"].as_str().expect("a label");
        match label.split_once(" (repeat ").map(|(row, _)| row) {
            Some(row) => {
                let (before, last) = rows.last_mut().expect("a repeat follows its row");
                assert_eq!(*before, row, "{record:#}");
                *last = step;
            }
            None => rows.push((label, step)),
        }
    }
    rows.into_iter().map(|(_, step)| step).collect()
}
