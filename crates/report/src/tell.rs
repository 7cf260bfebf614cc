//! The English sentences of a record, written beside the data that they are made of.

use tacho_record::{Comparison, RunRecord};

use crate::lang::Lang;

/// Writes the sentences and labels of a run from their data. Those of records that have no data for
/// them stay.
pub fn tell(record: &mut RunRecord) {
    const LANG: Lang = Lang::En;
    if !record.causes.is_empty() {
        record.reasons = record.causes.iter().map(|cause| LANG.cause(cause)).collect();
    }
    if !record.remarks.is_empty() {
        record.notes = record.remarks.iter().map(|remark| LANG.remark(remark)).collect();
    }
    for finding in record.findings.iter_mut().filter(|finding| finding.observation.is_some()) {
        finding.sentence = LANG.finding(finding);
    }
    for action in &mut record.actions {
        action.what = LANG.what_happened(action);
        if let Some(why) = &action.cut_short {
            action.error = LANG.cut_short(why);
        }
    }
    for point in &mut record.skipped {
        point.reason = LANG.skip_reason(&point.reason, point.obstacle.as_ref());
    }
    for trial in record.capacity.iter_mut().flat_map(|capacity| &mut capacity.trials) {
        if !trial.causes.is_empty() {
            trial.reasons = trial.causes.iter().map(|cause| LANG.cause(cause)).collect();
        }
    }
    for row in &mut record.repeated {
        row.label = LANG.figure_of(row);
    }
    for headline in &mut record.headlines {
        headline.label = LANG.headline(headline);
    }
    for one in &mut record.recommendations {
        one.method = LANG.found_by(one);
    }
    if let Some(capacity) = &mut record.capacity {
        capacity.ending = LANG.ending(capacity);
    }
}

/// Writes the sentences and labels of a comparison from their data. Those of records that have no
/// data for them stay.
pub fn tell_comparison(comparison: &mut Comparison) {
    const LANG: Lang = Lang::En;
    for side in &mut comparison.sides {
        side.label = LANG.side_of(side);
    }
    let environment = comparison.environment.iter_mut();
    for difference in environment.chain(&mut comparison.scenario_differences) {
        (difference.name, difference.values) =
            (LANG.difference_name(difference), LANG.difference_values(difference));
    }
    for result in &mut comparison.conditions {
        (result.condition, result.reasons) =
            (LANG.condition_of(result), LANG.condition_reasons(result));
    }
    let rows = comparison.points.iter_mut().flat_map(|point| &mut point.figures);
    for row in rows {
        row.label = LANG.figure_of(row);
        let again = row.aa.iter_mut().map(|again| &mut again.change);
        for change in row.changes.iter_mut().chain(again) {
            change.reason = LANG.reason_of(change);
        }
    }
    if !comparison.remarks.is_empty() {
        let remarks = comparison.remarks.iter();
        comparison.notes = remarks.map(|remark| LANG.remark(remark)).collect();
    }
}
