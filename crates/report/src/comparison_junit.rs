//! The comparison as JUnit XML, for CI.

use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCaseStatus, TestSuite};

use super::comparison_text::{change_shown, interval_shown};
use super::junit::{case, document, failed};
use super::lang::Lang;
use tacho_record::{Comparison, ConditionOutcome, Judgement};

/// A test case per figure and side, per condition, and for the verdict. Only a condition can fail:
/// a figure that is worse is told in its output, one that cannot be told is skipped. A condition
/// that cannot be told is an error.
pub fn comparison_junit(comparison: &Comparison) -> String {
    let mut suite = TestSuite::new(comparison.name.clone());
    suite.set_time(Duration::try_from_secs_f64(comparison.elapsed_s).unwrap_or_default());
    suite.add_property(("scenario", comparison.scenario.as_str()));
    suite.add_property(("started_at", comparison.started_at.as_str()));
    suite.add_property(("verdict", comparison.verdict.name()));
    for side in &comparison.sides {
        suite.add_property((side.name.clone(), Lang::En.side_of(side)));
    }
    let case = |name: &str, status| case(&comparison.scenario, name, status);
    for point in &comparison.points {
        for row in &point.figures {
            for change in &row.changes {
                let place = match point.label.is_empty() {
                    true => String::new(),
                    false => format!("{}, ", point.label),
                };
                let words = format!(
                    "{} ({}), {}: {}",
                    change_shown(row, change),
                    interval_shown(row, change),
                    change.verdict.words(),
                    change.reason
                );
                let status = match change.verdict {
                    Judgement::Unclear => {
                        let mut status = TestCaseStatus::skipped();
                        status.set_message(change.reason.clone());
                        status
                    }
                    _ => TestCaseStatus::success(),
                };
                let mut case = case(&format!("{place}{} of {}", row.name, change.side), status);
                case.set_system_out(words);
                suite.add_test_case(case);
            }
        }
    }
    for result in &comparison.conditions {
        let words = Lang::En.condition_reasons(result).join("\n");
        let status = match result.outcome {
            ConditionOutcome::Holds => TestCaseStatus::success(),
            ConditionOutcome::Failed => failed(NonSuccessKind::Failure, "regression", &words),
            ConditionOutcome::Undecided => failed(NonSuccessKind::Error, "undecided", &words),
        };
        suite.add_test_case(case(&Lang::En.condition_of(result), status));
    }
    let mut verdict = case("verdict", TestCaseStatus::success());
    verdict.set_system_out(Lang::En.compared(comparison));
    suite.add_test_case(verdict);
    document(suite)
}
