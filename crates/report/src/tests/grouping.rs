//! A disturbed campaign says so in a few lines.

use tacho_record::{
    Cause, Disturbance, DisturbedSeconds, Finding, Observation, RunKind, Series, Severity, Verdict,
};

use super::samples::{Noise, Sample, environment, record, step};
use super::{Lang, content, keep, page, page_in};
use crate::{campaign_text, markdown};

/// A ladder of 40 steps, 12 of which were disturbed, with everything that this makes it say.
pub(super) fn busy_campaign() -> Sample {
    let mut noise = Noise(3);
    let mut record = record(RunKind::Ladder, "symmetric", "Each publisher has one subscriber.");
    let mut curves = Vec::new();
    let found = |code: &str, observation, step, place: &str| Finding {
        code: code.to_owned(),
        severity: Severity::Warning,
        sentence: String::new(),
        step,
        observation: Some(observation),
        place: place.to_owned(),
    };
    for index in 0..40_usize {
        let rate = 500.0 * (index + 1) as f64;
        let (mut step, curve) = step(rate, 200.0, 20.0, &mut noise);
        step.label = format!("rate={rate}");
        let label = step.label.clone();
        if index % 3 == 0 && index < 36 {
            let percent = if index == 18 { 13.1 } else { 1.0 + index as f64 / 10.0 };
            step.verdict = Verdict::Disturbed;
            step.gates[0].passed = false;
            let steal = DisturbedSeconds { seconds: 3, percent_max: percent };
            // In three of them another program was there, too.
            let seconds = u64::from(index < 9);
            let others = DisturbedSeconds { seconds, percent_max: 6.0 };
            let disturbance =
                Disturbance { seconds: 15, disturbed: 3, steal, others, ..Disturbance::default() };
            let observation =
                Observation::Disturbed { disturbance: disturbance.clone(), program: None };
            record.findings.push(found("disturbed", observation, Some(index), &label));
            let again = Observation::Repeated { label: label.clone(), verdict: step.verdict };
            let again = Finding { severity: Severity::Info, ..found("repeated", again, None, "") };
            record.findings.extend([again.clone(), again]);
            record.causes.push(Cause::Disturbed { disturbance }.in_step(&label));
        }
        if index == 39 {
            let cold = Observation::ColdStart { first_us: 90_000, others_us: 900 };
            record.findings.push(found("first_interval", cold, Some(index), &label));
        }
        record.steps.push(step);
        curves.push(curve);
    }
    record.verdict = Verdict::Disturbed;
    record.series.push(Series {
        name: "symmetric".to_owned(),
        label: "symmetric over rate".to_owned(),
        figure: "ladder".to_owned(),
        scenario: "symmetric".to_owned(),
        variable: Some("rate".to_owned()),
        steps: (0..40).collect(),
        ..Series::default()
    });
    crate::tell(&mut record);
    let (rows, hosts, brokers) = (Vec::new(), Vec::new(), Vec::new());
    Sample { record, rows, curves, hosts, brokers, environment: environment() }
}

const OTHERS: &str =
    "other programs on the broker's cores in 3 of 40 steps, worst 6.0 % (rate=500)";
const STEAL: &str = "steal in 12 of 40 steps, worst 13.1 % (rate=9500)";

#[test]
fn the_terminal_has_a_line_per_kind() {
    let text = campaign_text(&busy_campaign().record);
    let said = text.lines().filter(|line| line.starts_with("finding: ")).collect::<Vec<_>>();
    assert_eq!(said.len(), 3, "{said:#?}");
    assert_eq!(said[..2], [format!("finding: {STEAL}"), format!("finding: {OTHERS}")]);
    // What was found once is told in full.
    assert!(said[2].starts_with("finding: rate=20000: The first second"), "{}", said[2]);
    let (_, reasons) = text.split_once("verdict: disturbed\n").expect("a verdict");
    assert_eq!(reasons.lines().map(str::trim).collect::<Vec<_>>(), [STEAL, OTHERS]);
}

#[test]
fn pages_fold_the_details_in_both_languages() {
    let sample = busy_campaign();
    let english = page(&sample);
    keep("busy.html", &english);
    let english = content(&english);
    assert!(english.contains(&format!("<summary>{STEAL}</summary>")), "{STEAL}");
    assert!(
        english.contains("<summary>measured again in 12 of 40 steps, first rate=500</summary>")
    );
    let (_, top) = english.split_once("<ul class=\"findings\">").expect("findings");
    let (top, _) = top.split_once("</ul>\n").expect("ends");
    assert_eq!(top.matches("<li class=").count(), 4, "{top}");
    assert_eq!(top.matches("<details").count(), 3, "{top}");
    assert_eq!(top.matches("The machine was disturbed").count(), 12 + 3, "nothing is left out");
    let chinese = page_in(Lang::Zh, &sample);
    assert!(chinese.contains("40 个步骤中有 12 个，最严重为 13.1 %（rate=9500）"));
    assert!(chinese.contains("<summary>重新测量：40 个步骤中有 12 个，首先是 rate=500</summary>"));
}

#[test]
fn markdown_folds_the_details() {
    let text = markdown(&busy_campaign().record);
    assert!(text.contains(&format!("- {STEAL}\n")), "{text}");
    let summary = format!("<details><summary>{STEAL}</summary>\n\n- ");
    assert!(text.contains(&summary), "{text}");
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    // Reasons and findings, by the hypervisor and by other programs.
    assert_eq!(text.matches("<details>").count(), 4);
}
