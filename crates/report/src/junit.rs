//! `junit.xml`: thresholds, steps and the verdict as test cases, for CI.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::campaign::{capacity_text, recommendation_text, step_line};
use tacho_record::{Cause, RunKind, RunRecord, Step, Verdict};

/// The record as JUnit XML.
///
/// A broken promise of the broker is a failure; a run that says nothing about the broker is an
/// error; a point that could not be run is skipped.
pub fn junit(record: &RunRecord) -> String {
    let mut suite = TestSuite::new(record.name.clone());
    suite.set_time(Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default());
    suite.add_property(("scenario", record.scenario.as_str()));
    suite.add_property(("broker", record.target.broker.as_str()));
    suite.add_property(("started_at", record.started_at.as_str()));
    suite.add_property(("verdict", record.verdict.name()));
    // The trials of a search are meant to fail where the limit is.
    if record.kind != RunKind::Capacity {
        for (index, step) in record.steps.iter().enumerate() {
            suite.add_test_case(step_case(record, index, step));
        }
    }
    for result in &record.thresholds {
        let status = match result.passed {
            true => TestCaseStatus::success(),
            false => failed(NonSuccessKind::Failure, "threshold_failed", &result.shown()),
        };
        suite.add_test_case(case(
            &record.scenario,
            &format!("threshold {}", result.condition),
            status,
        ));
    }
    for skipped in &record.skipped {
        let mut status = TestCaseStatus::skipped();
        status.set_message(skipped.reason.clone());
        let name = format!("{}, {}", skipped.series, skipped.label);
        suite.add_test_case(case(&record.scenario, &name, status));
    }
    let mut verdict = case(&record.scenario, "verdict", status_of(record.verdict, &record.reasons));
    let lines: Vec<String> = record
        .recommendations
        .iter()
        .map(|recommendation| recommendation_text(recommendation, &record.steps))
        .chain(record.capacity.iter().map(capacity_text))
        .chain(record.findings.iter().map(|finding| finding.sentence.clone()))
        .collect();
    if !lines.is_empty() {
        verdict.set_system_out(lines.join("\n"));
    }
    suite.add_test_case(verdict);
    document(suite)
}

/// The file of one suite.
pub(crate) fn document(suite: TestSuite) -> String {
    let mut report = Report::new("tacho");
    report.add_test_suite(suite);
    // Invariant: the texts are strings, from which forbidden characters are removed.
    report.to_string().unwrap_or_default()
}

/// A test case of a scenario.
pub(crate) fn case(scenario: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("tacho.{scenario}"));
    case
}

fn step_case(record: &RunRecord, index: usize, step: &Step) -> TestCase {
    let (name, reasons, counts) = match record.kind {
        RunKind::Run => {
            let name = format!("step {}", index + 1);
            (name, record.reasons.clone(), true)
        }
        _ => {
            let name = match step.series.as_str() {
                series if series.is_empty() || series == step.label => step.label.clone(),
                series => format!("{series}, {}", step.label),
            };
            // A step at which a ladder was asked to end is no failure and has no reason here.
            let reasons = reasons_of(record, &[&step.label, &name]);
            let counts = !reasons.is_empty();
            (name, reasons, counts)
        }
    };
    let status = match counts {
        true => status_of(step.verdict, &reasons),
        false => TestCaseStatus::success(),
    };
    let mut case = case(&record.scenario, &name, status);
    case.set_time(Duration::try_from_secs_f64(step.window_s).unwrap_or_default());
    case.set_system_out(step_line(&step.label, step).trim().to_owned());
    case
}

/// The reasons of the step that has one of these labels.
fn reasons_of(record: &RunRecord, labels: &[&str]) -> Vec<String> {
    let of_step = |(index, reason): &(usize, &String)| match record.causes.get(*index) {
        Some(Cause::InStep { label, .. }) => labels.contains(&label.as_str()),
        Some(_) => false,
        // A record of version 1 has only the sentences.
        None => labels
            .iter()
            .any(|label| reason.strip_prefix(label).is_some_and(|rest| rest.starts_with(": "))),
    };
    let reasons = record.reasons.iter().enumerate().filter(of_step);
    reasons.map(|(_, reason)| reason.clone()).collect()
}

fn status_of(verdict: Verdict, reasons: &[String]) -> TestCaseStatus {
    let kind = match verdict {
        Verdict::Ok => return TestCaseStatus::success(),
        Verdict::NotSustained
        | Verdict::QosViolation
        | Verdict::LoginViolation
        | Verdict::ThresholdFailed => NonSuccessKind::Failure,
        Verdict::GeneratorBound
        | Verdict::Disturbed
        | Verdict::NetworkBound
        | Verdict::NotSteady
        | Verdict::Unclear
        | Verdict::Aborted => NonSuccessKind::Error,
    };
    failed(kind, verdict.name(), &reasons.join("\n"))
}

/// The failure, in a word and in sentences.
pub(crate) fn failed(kind: NonSuccessKind, name: &str, words: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(name);
    status.set_message(words.lines().next().unwrap_or(name));
    status.set_description(words);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_record::{Skipped, ThresholdResult};

    fn record() -> RunRecord {
        RunRecord {
            name: "20261121-symmetric".to_owned(),
            scenario: "symmetric".to_owned(),
            steps: vec![Step::default()],
            ..RunRecord::default()
        }
    }

    /// Number of test cases, failures, errors, skipped ones.
    fn counts(xml: &str) -> [usize; 4] {
        let document = roxmltree::Document::parse(xml).expect("is XML");
        ["testcase", "failure", "error", "skipped"]
            .map(|name| document.descendants().filter(|node| node.has_tag_name(name)).count())
    }

    #[test]
    fn a_good_run() {
        let xml = junit(&record());
        assert_eq!(counts(&xml), [2, 0, 0, 0], "{xml}");
        assert!(xml.contains("classname=\"tacho.symmetric\""), "{xml}");
    }

    #[test]
    fn a_threshold_that_does_not_hold_is_a_failure() {
        let mut record = record();
        record.verdict = Verdict::ThresholdFailed;
        record.reasons = vec!["the threshold e2e_p99<1us does not hold: <3 ms> & more".to_owned()];
        record.thresholds = vec![ThresholdResult {
            condition: "e2e_p99<1us".to_owned(),
            value: Some(3000.0),
            passed: false,
        }];
        let xml = junit(&record);
        assert_eq!(counts(&xml), [3, 2, 0, 0], "{xml}");
        assert!(xml.contains("&lt;3 ms&gt; &amp; more"), "{xml}");
    }

    #[test]
    fn an_invalid_run_is_an_error() {
        let mut record = record();
        record.verdict = Verdict::GeneratorBound;
        record.steps[0].verdict = Verdict::GeneratorBound;
        assert_eq!(counts(&junit(&record)), [2, 0, 2, 0]);
    }

    #[test]
    fn steps_of_a_campaign() {
        let mut record = record();
        record.kind = RunKind::Suite;
        let step = |label: &str, verdict| Step {
            label: label.to_owned(),
            series: "fan-out".to_owned(),
            verdict,
            ..Step::default()
        };
        record.steps = vec![
            step("10K", Verdict::Ok),
            step("20K", Verdict::NotSustained),
            step("30K", Verdict::NotSustained),
        ];
        record.verdict = Verdict::NotSustained;
        record.reasons = vec!["fan-out, 20K: half of it was carried".to_owned()];
        record.skipped = vec![Skipped {
            series: "bridge".to_owned(),
            label: "10K".to_owned(),
            reason: "needs two brokers".to_owned(),
            obstacle: None,
        }];
        let xml = junit(&record);
        assert_eq!(counts(&xml), [5, 2, 0, 1], "{xml}");
        // The data say which step a reason is of, whatever its sentence begins with.
        record.reasons = vec!["30K: the broker was slow".to_owned()];
        record.causes = vec![Cause::NoLoadPasses.in_step("20K")];
        let xml = junit(&record);
        assert_eq!(counts(&xml), [5, 2, 0, 1], "{xml}");
        let case = xml.split("<testcase").find(|case| case.contains("fan-out, 20K"));
        assert!(case.is_some_and(|case| case.contains("the broker was slow")), "{xml}");
        record.kind = RunKind::Capacity;
        assert_eq!(counts(&junit(&record))[0], 2);
    }
}
