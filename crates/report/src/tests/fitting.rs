//! Figures of losses fit each other, and words name their units.

use tacho_record::{Cause, RunRecord, Step};
use tacho_scenario::format::thousands;

use super::samples::{capacity, single, suite};
use crate::{Lang, summary_text, words};

/// How the figures of a step contradict each other.
fn contradictions(step: &Step) -> Vec<&'static str> {
    let declared = step.declared_lost.count;
    let ranges: u64 = step.lost_ranges.iter().map(|range| range.count).sum();
    let broken = step.violations.lost;
    let checks = [
        (step.received + step.lost + declared == step.expected, "deliveries add up"),
        (step.undelivered <= step.lost, "what may still come is among the lost"),
        (step.acknowledged_lost <= broken.max(step.lost), "acknowledged ones are among the lost"),
        (ranges <= broken.max(step.lost), "ranges are of lost ones"),
        (
            step.lost_ranges.iter().all(|range| range.acknowledged <= range.count),
            "acknowledged ones of a range",
        ),
        (
            step.groups.is_empty()
                || step.groups.iter().map(|group| group.lost).sum::<u64>() == step.lost,
            "groups add up",
        ),
    ];
    checks.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect()
}

#[test]
fn figures_of_losses_fit_each_other_in_all_records() {
    for sample in [single(60), suite(), capacity(), super::grouping::busy_campaign()] {
        let record = &sample.record;
        for step in &record.steps {
            assert!(contradictions(step).is_empty(), "{:?}: {step:?}", contradictions(step));
        }
        let lost: u64 = record.steps.iter().map(|step| step.violations.lost).sum();
        let fits = |cause: &Cause| match cause {
            Cause::QosBroken { lost: told, .. } => told.cmp(&lost).is_eq(),
            _ => true,
        };
        assert!(record.causes.iter().all(fits), "{:?}", record.causes);
        for result in record.thresholds.iter().filter(|result| result.condition == "lost==0") {
            let worst = record.steps.iter().map(|step| step.lost).max().unwrap_or_default();
            assert_eq!(result.value, Some(worst as f64));
        }
    }
    let wrong = Step { expected: 5, received: 5, lost: 3, ..Step::default() };
    assert_eq!(contradictions(&wrong), ["deliveries add up"]);
}

/// A run that lost nearly all, with more in the warm-up than in the window.
fn lost_most() -> RunRecord {
    let mut record = single(60).record;
    let step = &mut record.steps[0];
    (step.expected, step.lost, step.received) = (5_000_000, 4_834_600, 165_400);
    step.declared_lost.count = 0;
    step.lost_ranges.clear();
    step.violations.lost = 6_763_200;
    step.acknowledged_lost = 6_763_200;
    let (lost, duplicated, out_of_order, damaged) = (6_763_200, 0, 0, 0);
    record.causes = vec![
        Cause::QosBroken { lost, duplicated, out_of_order, damaged },
        Cause::AcknowledgedLost { deliveries: lost },
    ];
    record
}

#[test]
fn losses_name_their_unit_and_what_they_include() {
    let mut record = lost_most();
    crate::tell(&mut record);
    assert!(contradictions(&record.steps[0]).is_empty());
    let said = words::verdict(Lang::En, &record);
    let (lost, expected) = (thousands(4_834_600), thousands(5_000_000));
    assert!(said.contains(&format!("{lost} of {expected} deliveries were lost")), "{said}");
    assert!(said.contains("of the 3.3 % of deliveries due that arrived, 99 % took"), "{said}");
    for reason in &record.reasons {
        assert!(reason.contains("deliveries") && reason.contains("warm-up included"), "{reason}");
    }
    let text = summary_text(&record);
    let row = |name: &str| text.lines().find(|line| line.contains(name)).map(str::to_owned);
    assert!(row("deliveries lost").is_some_and(|line| line.contains(&lost)), "{text}");
    assert!(row("acknowledged, but lost").is_some_and(|line| line.contains("6,763,200")), "{text}");
    assert!(row("warm-up included").is_some_and(|line| line.contains("yes")), "{text}");
    assert!(text.contains("of the 3.3 % of deliveries due that arrived"), "{text}");
}
