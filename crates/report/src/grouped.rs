//! Findings and reasons of many steps: one line per kind with its share and its worst, and the
//! sentences behind it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::lang::Lang;
use tacho_record::{Cause, Disturbance, Finding, Observation, RunRecord, Severity};

/// What is said of one kind.
#[derive(Debug)]
pub(super) struct Group {
    /// How much it matters; absent for reasons of a verdict.
    pub(super) severity: Option<Severity>,
    /// All of it in one line.
    pub(super) line: String,
    /// A sentence for each; empty where the line is the only one.
    pub(super) details: Vec<String>,
}

/// Something that is said of one step.
struct Item<'r> {
    /// Items of the same kind have the same key.
    key: String,
    severity: Option<Severity>,
    /// The name of the kind; absent where only the sentence tells.
    kind: Option<String>,
    /// The figure that makes one worse than another, with its words.
    figure: Option<(f64, String)>,
    label: &'r str,
    sentence: String,
}

impl Item<'_> {
    /// One for each kind of a disturbance; the item as it is without one.
    fn by_disturbance(self, lang: Lang, disturbance: Option<&Disturbance>) -> Vec<Self> {
        let kinds = disturbance.into_iter().flat_map(|found| lang.kinds_of_disturbance(found));
        let mut items: Vec<Self> = kinds
            .map(|(kind, figure)| Self {
                key: kind.to_owned(),
                severity: self.severity,
                kind: Some(kind.to_owned()),
                figure: Some(figure),
                label: self.label,
                sentence: self.sentence.clone(),
            })
            .collect();
        if items.is_empty() {
            items.push(self);
        }
        items
    }
}

/// The findings from a severity on, the most severe first.
pub(super) fn findings(lang: Lang, record: &RunRecord, from: Severity) -> Vec<Group> {
    let mut shown: Vec<&Finding> =
        record.findings.iter().filter(|finding| finding.severity >= from).collect();
    shown.sort_by_key(|finding| Reverse(finding.severity));
    let disturbed = shown.iter().filter(|finding| disturbance_of(finding).is_some()).count();
    let items = shown.into_iter().flat_map(|finding| {
        let observation = finding.observation.as_ref();
        let item = Item {
            key: finding.code.clone(),
            severity: Some(finding.severity),
            kind: Some(match observation {
                Some(observation) => lang.observed(observation),
                None => finding.code.replace('_', " "),
            }),
            figure: observation.and_then(|observation| lang.figure_observed(observation)),
            label: label_of(record, finding),
            sentence: sentence_of(lang, record, finding),
        };
        // One disturbed step is told in a sentence, several by what disturbed them.
        let disturbance = disturbance_of(finding).filter(|_| disturbed > 1);
        item.by_disturbance(lang, disturbance)
    });
    grouped(lang, record.steps.len(), items)
}

/// What a finding tells of a disturbed machine.
fn disturbance_of(finding: &Finding) -> Option<&Disturbance> {
    match &finding.observation {
        Some(Observation::Disturbed { disturbance, .. }) => Some(disturbance),
        _ => None,
    }
}

/// The reasons of the verdict.
pub(super) fn reasons(lang: Lang, record: &RunRecord) -> Vec<Group> {
    if record.causes.is_empty() {
        let line =
            |reason: &String| Group { severity: None, line: reason.clone(), details: Vec::new() };
        return record.reasons.iter().map(line).collect();
    }
    let is_disturbed = |cause: &&Cause| matches!(inner_of(cause).1, Cause::Disturbed { .. });
    let disturbed = record.causes.iter().filter(is_disturbed).count();
    let items = record.causes.iter().flat_map(|cause| {
        let (label, inner) = inner_of(cause);
        let (kind, figure) = lang.kind_of_cause(inner).unzip();
        let sentence = lang.cause(cause);
        let key = match (&kind, label) {
            (Some(kind), _) => kind.clone(),
            // Reasons without a step of their own stand alone.
            (None, "") => sentence.clone(),
            (None, _) => format!("{:?}", std::mem::discriminant(inner)),
        };
        let item = Item { key, severity: None, kind, figure: figure.flatten(), label, sentence };
        let disturbance = match inner {
            Cause::Disturbed { disturbance } if disturbed > 1 => Some(disturbance),
            _ => None,
        };
        item.by_disturbance(lang, disturbance)
    });
    grouped(lang, record.steps.len(), items)
}

/// The step of a reason, empty for the whole, and the reason without it.
fn inner_of(cause: &Cause) -> (&str, &Cause) {
    match cause {
        Cause::InStep { label, cause } => (label, cause),
        cause => ("", cause),
    }
}

/// The step that a finding is about; empty for the whole run.
fn label_of<'r>(record: &'r RunRecord, finding: &'r Finding) -> &'r str {
    let step = finding.step.and_then(|index| record.steps.get(index));
    match (&finding.observation, finding.place.as_str()) {
        (Some(Observation::Repeated { label, .. }), _) => label,
        (_, "") => step.map_or("", |step| &step.label),
        (_, place) => place,
    }
}

/// The sentence of a finding, with its step where it does not name it.
fn sentence_of(lang: Lang, record: &RunRecord, finding: &Finding) -> String {
    let (sentence, label) = (lang.finding(finding), label_of(record, finding));
    match label.is_empty() || sentence.contains(label) {
        true => sentence,
        false => format!("{label}{}{sentence}", lang.colon()),
    }
}

fn grouped<'r>(lang: Lang, steps: usize, items: impl Iterator<Item = Item<'r>>) -> Vec<Group> {
    let mut groups: Vec<Vec<Item<'r>>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| group[0].key == item.key) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups.into_iter().map(|group| whole(lang, steps, group)).collect()
}

/// A group of at least one item.
fn whole(lang: Lang, steps: usize, group: Vec<Item<'_>>) -> Group {
    let figure = |item: &Item<'_>| item.figure.as_ref().map_or(f64::NEG_INFINITY, |(of, _)| *of);
    // Of equal ones the first.
    let worst = group.iter().reduce(|worst, item| match figure(item) > figure(worst) {
        true => item,
        false => worst,
    });
    // Invariant: groups are made of the items in them.
    let worst = worst.expect("a group has an item");
    let severity = worst.severity;
    if let [only] = &group[..] {
        return Group { severity, line: only.sentence.clone(), details: Vec::new() };
    }
    let labels: BTreeSet<&str> = group.iter().map(|item| item.label).collect();
    let (count, all) = (labels.len(), steps.max(labels.len()));
    let line = match (&worst.kind, &worst.figure) {
        (Some(kind), Some((_, figure))) => {
            lang.in_steps_worst(kind, count, all, figure, worst.label)
        }
        (Some(kind), None) => lang.in_steps_first(kind, count, all, worst.label),
        (None, _) => lang.in_steps_such_as(count, all, &worst.sentence),
    };
    let details = group.into_iter().map(|item| item.sentence).collect();
    Group { severity, line, details }
}
