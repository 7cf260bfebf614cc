//! A badge: the result in a line, as SVG for a README or a page of CI.

use std::fmt::Write as _;

use crate::elements::escape;
use tacho_record::{Comparison, ConditionOutcome, Judgement, RunKind, RunRecord, Verdict};
use tacho_scenario::format;

/// Height of the badge.
const HEIGHT: u32 = 20;
/// Space before and after a text.
const PAD: u32 = 6;
/// Characters of a text; longer ones are cut.
const TEXT_MAX: usize = 60;

const GREEN: &str = "#2e7d32";
const RED: &str = "#b71c1c";
/// Neither good nor bad: nothing is known.
const GREY: &str = "#616161";

/// The badge of a run, a ladder, a search or a suite: its verdict, and where it is good the rate
/// that was delivered or found.
pub fn badge(record: &RunRecord) -> String {
    let colour = match record.verdict {
        Verdict::Ok => GREEN,
        Verdict::NotSustained
        | Verdict::QosViolation
        | Verdict::LoginViolation
        | Verdict::ThresholdFailed => RED,
        Verdict::GeneratorBound
        | Verdict::Disturbed
        | Verdict::NetworkBound
        | Verdict::NotSteady
        | Verdict::Unclear
        | Verdict::Aborted => GREY,
    };
    let word = record.verdict.name().replace('_', " ");
    let words = match (record.verdict, figures(record)) {
        (Verdict::Ok, Some(figures)) => figures,
        _ => word,
    };
    draw(&record.scenario, &words, colour)
}

/// The badge of a comparison: its conditions, or without any the difference.
pub fn comparison_badge(comparison: &Comparison) -> String {
    let outcomes = || comparison.conditions.iter().map(|condition| condition.outcome);
    let (words, colour) = if outcomes().any(|outcome| outcome == ConditionOutcome::Failed) {
        ("regression", RED)
    } else if outcomes().any(|outcome| outcome == ConditionOutcome::Undecided) {
        ("undecided", GREY)
    } else if !comparison.conditions.is_empty() {
        ("conditions hold", GREEN)
    } else {
        let colour = match comparison.verdict {
            Judgement::Better | Judgement::NoChange => GREEN,
            Judgement::Worse => RED,
            Judgement::Mixed | Judgement::Unclear => GREY,
        };
        (comparison.verdict.words(), colour)
    };
    draw(&comparison.scenario, words, colour)
}

/// The figures that stand for a good result.
fn figures(record: &RunRecord) -> Option<String> {
    if let Some(capacity) = &record.capacity {
        return Some(format!("{}/s carried", format::rate(capacity.tps?)));
    }
    match (record.kind, &record.steps[..]) {
        (RunKind::Run, [step]) if step.achieved_out_per_s > 0.0 => {
            let rate = format!("{}/s", format::rate(step.achieved_out_per_s));
            let p99 = step.latency_us.p99;
            let p99 = p99.map(|p99| format!(", p99 {}", format::latency(p99 as f64)));
            Some(rate + &p99.unwrap_or_default())
        }
        _ => None,
    }
}

/// Two fields beside each other; `textLength` fits the words into them whatever the font.
fn draw(label: &str, words: &str, colour: &str) -> String {
    let (label, words) = (cut(label), cut(words));
    let (left, right) = (width(&label), width(&words));
    let total = left + right;
    let title = escape(&format!("{label}: {words}"));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{total}\" height=\"{HEIGHT}\" \
         role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n\
         <rect width=\"{left}\" height=\"{HEIGHT}\" fill=\"#37474f\"/>\n\
         <rect x=\"{left}\" width=\"{right}\" height=\"{HEIGHT}\" fill=\"{colour}\"/>\n\
         <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">\n"
    );
    for (text, from, width) in [(&label, 0, left), (&words, left, right)] {
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"14\" textLength=\"{}\">{}</text>",
            from + PAD,
            width - 2 * PAD,
            escape(text)
        );
    }
    out + "</g>\n</svg>\n"
}

/// The text without its end, where it is too long, and without characters that XML forbids.
fn cut(text: &str) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(TEXT_MAX).collect();
    if text.chars().count() > TEXT_MAX {
        shown.push('…');
    }
    shown
}

/// Pixels of a field with this text.
fn width(text: &str) -> u32 {
    let of = |c: char| if c.is_ascii() { 7 } else { 12 };
    text.chars().map(of).sum::<u32>() + 2 * PAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_record::{ConditionResult, Step};

    fn record(verdict: Verdict) -> RunRecord {
        let mut step = Step { achieved_out_per_s: 12_345.0, ..Step::default() };
        step.latency_us.p99 = Some(1_230);
        RunRecord { scenario: "a<b".to_owned(), verdict, steps: vec![step], ..RunRecord::default() }
    }

    /// The badge is well-formed, and its title.
    fn title(svg: &str) -> String {
        let start = svg.find("<title>").expect("a title") + "<title>".len();
        let end = svg.find("</title>").expect("its end");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        svg[start..end].to_owned()
    }

    #[test]
    fn a_good_run_shows_its_figures_and_others_their_verdict() {
        let good = badge(&record(Verdict::Ok));
        assert_eq!(title(&good), "a&lt;b: 12,345/s, p99 1.23 ms");
        assert!(good.contains(GREEN));
        let lost = badge(&record(Verdict::QosViolation));
        assert_eq!(title(&lost), "a&lt;b: qos violation");
        assert!(lost.contains(RED));
        // A run that says nothing about the broker is neither good nor bad.
        assert!(badge(&record(Verdict::Disturbed)).contains(GREY));
        let ladder = RunRecord { kind: RunKind::Ladder, ..record(Verdict::Ok) };
        assert_eq!(title(&badge(&ladder)), "a&lt;b: ok");
    }

    #[test]
    fn a_comparison_shows_its_conditions() {
        let with = |outcomes: &[ConditionOutcome]| Comparison {
            scenario: "symmetric".to_owned(),
            verdict: Judgement::Worse,
            conditions: outcomes
                .iter()
                .map(|outcome| ConditionResult { outcome: *outcome, ..ConditionResult::default() })
                .collect(),
            ..Comparison::default()
        };
        let words = |outcomes: &[ConditionOutcome]| title(&comparison_badge(&with(outcomes)));
        use ConditionOutcome::{Failed, Holds, Undecided};
        assert_eq!(words(&[Undecided, Failed]), "symmetric: regression");
        assert_eq!(words(&[Holds, Undecided]), "symmetric: undecided");
        assert_eq!(words(&[Holds]), "symmetric: conditions hold");
        assert_eq!(words(&[]), "symmetric: worse");
    }

    #[test]
    fn a_long_name_is_cut() {
        let long = RunRecord { scenario: "x".repeat(500), ..record(Verdict::Aborted) };
        assert!(badge(&long).len() < 1_500);
    }
}
