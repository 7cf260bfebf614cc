//! The evidence as the table of docs/trust.md.

use std::fmt::Write as _;

use super::evidence::Evidence;
use super::foreign::ToolEnd;
use super::judge::{
    CAPACITY_SHARE, FaultRun, Judgement, LATENCY_SHARE, LATENCY_US, LatencyRun, Percentile,
    SearchRun,
};
use super::responder::Fault;
use crate::bench::figures::number;

/// One line per piece of evidence.
pub(super) fn table(evidence: &Evidence) -> String {
    if evidence.measured.is_empty() {
        return "No record of `cargo xtask trust` is kept yet.\n".to_owned();
    }
    let times: Vec<&str> = evidence.measured.values().map(String::as_str).collect();
    let (first, last) = (times.iter().min().copied(), times.iter().max().copied());
    let mut text = format!(
        "Measured from {} to {} on {}, revision {}.\n\n\
         | shown to the program | its truth | reported | accepted | result |\n\
         |---|---|---|---|---|\n",
        first.unwrap_or_default(),
        last.unwrap_or_default(),
        evidence.machine,
        evidence.revision,
    );
    latencies(&mut text, "every message held", &evidence.delays);
    latencies(&mut text, "a broker that stops", &evidence.stalls);
    searches(&mut text, &evidence.searches);
    for burned in ["the broker's", "the generator's", "both"] {
        noisy(&mut text, burned, &evidence.noisy_searches);
    }
    for run in &evidence.faults {
        fault(&mut text, run);
    }
    tools(&mut text, evidence);
    text
}

/// The last run of each kind, since those before it were undecided.
fn latencies(text: &mut String, what: &str, runs: &[LatencyRun]) {
    let mut runs: Vec<&LatencyRun> = runs.iter().collect();
    // By the time that is held; those that were tried again are in the order of their trials.
    runs.sort_by_key(|run| run.shown.split(' ').next().and_then(|ms| ms.parse::<u64>().ok()));
    for (index, run) in runs.iter().enumerate() {
        if runs.get(index + 1).is_some_and(|next| next.shown == run.shown) {
            continue;
        }
        for percentile in &run.percentiles {
            let result = match run.judge_one(percentile) {
                Judgement::Right => "right".to_owned(),
                Judgement::Wrong => "**wrong**".to_owned(),
                Judgement::Undecided => format!("undecided ({})", run.verdict),
            };
            let name = percentile.name.as_str();
            let _ = writeln!(
                text,
                "| {what}: {}, {} | {} us | {} | {}± {:.0} %, at least ± {:.0} us | {result} |",
                run.shown,
                if name == "p999" { "p99.9" } else { name },
                number(percentile.recorded_us),
                reported(percentile),
                if percentile.reported_us_min.is_some() { "the interval " } else { "" },
                LATENCY_SHARE * 100.0,
                LATENCY_US,
            );
        }
    }
}

/// A latency with its distance from the truth, or the interval in which disturbances leave it.
fn reported(percentile: &Percentile) -> String {
    let Percentile { reported_us, reported_us_min, recorded_us, .. } = percentile;
    let figure = number(*reported_us);
    match reported_us_min {
        Some(low) => format!("{} to {figure} us, with disturbed seconds", number(*low)),
        None => format!("{figure} us ({:+.0} us)", reported_us - recorded_us),
    }
}

/// How many runs are right, wrong and undecided.
fn counts(runs: &[&SearchRun]) -> (usize, usize, usize) {
    let count = |wanted| runs.iter().filter(|run| run.judge() == wanted).count();
    (count(Judgement::Right), count(Judgement::Wrong), count(Judgement::Undecided))
}

fn searches(text: &mut String, runs: &[SearchRun]) {
    let runs: Vec<&SearchRun> = runs.iter().collect();
    if runs.is_empty() {
        return;
    }
    let (right, wrong, undecided) = counts(&runs);
    let limits = || runs.iter().map(|run| run.limit);
    let (low, high) = (limits().fold(f64::MAX, f64::min), limits().fold(0.0, f64::max));
    let decided = runs.iter().filter(|run| run.judge() != Judgement::Undecided);
    let far = decided.filter_map(|run| run.distance()).fold(0.0, f64::max);
    let _ = writeln!(
        text,
        "| `tacho capacity`, a forwarder limited to N messages/s | N from {} to {} | intervals that \
         end at most {:.1} % from N | both ends within {:.0} % of N, which lies between | {right} of \
         {} right, {undecided} undecided{} |",
        number(low),
        number(high),
        far * 100.0,
        CAPACITY_SHARE * 100.0,
        right + wrong,
        if wrong > 0 { format!(", **{wrong} wrong**") } else { String::new() },
    );
}

fn noisy(text: &mut String, burned: &str, runs: &[SearchRun]) {
    let runs: Vec<&SearchRun> = runs.iter().filter(|run| run.burned == burned).collect();
    if runs.is_empty() {
        return;
    }
    let (right, wrong, undecided) = counts(&runs);
    let core = if burned == "both" { "both cores".to_owned() } else { format!("{burned} core") };
    let _ = writeln!(
        text,
        "| the same while another program burns {core} in bursts | N | {right} of {} intervals \
         contain N, {undecided} searches ended with 111 | N within every interval, or 111 | {} |",
        right + wrong,
        if wrong > 0 { format!("**{wrong} wrong**") } else { "right".to_owned() },
    );
}

fn fault(text: &mut String, run: &FaultRun) {
    let (what, word) = match run.fault {
        Fault::Lose => ("1 of 10,000 messages lost, QoS 1", "lost"),
        Fault::Double => ("1 of 10,000 messages doubled, QoS 2", "doubled"),
        Fault::Reorder => ("1 of 10,000 messages reordered, QoS 1", "out of order"),
    };
    let (made, counted) = run.counts();
    let _ = writeln!(
        text,
        "| {what} | {made} of {} | {counted} {word}, `{}` | exactly as many, `qos_violation` | {} |",
        number(run.record.messages as f64),
        run.verdict,
        if run.judge() == Judgement::Right { "right" } else { "**wrong**" },
    );
}

fn tools(text: &mut String, evidence: &Evidence) {
    let missing: Vec<&str> = evidence
        .tools
        .iter()
        .filter(|run| run.said.is_none())
        .map(|run| run.name.as_str())
        .collect();
    if !missing.is_empty() {
        let _ = write!(
            text,
            "\nOther programs that were not installed, and have not seen this broker: {}.\n",
            missing.join(", ")
        );
    }
    for run in &evidence.tools {
        let Some(said) = &run.said else { continue };
        let _ = write!(
            text,
            "\n{} published {} messages, of which the responder acknowledged and lost {}. {} Its \
             output:\n\n```text\n{said}\n```\n",
            run.name,
            number(run.messages as f64),
            number(run.lost as f64),
            ending(run.ended),
        );
    }
}

fn ending(ended: Option<ToolEnd>) -> String {
    match ended {
        Some(ToolEnd::Exit { code }) => format!("It ended with exit code {code}."),
        Some(ToolEnd::Signal) => "A signal ended it.".to_owned(),
        Some(ToolEnd::Stopped { after_s }) => {
            format!("It did not end within {after_s} s and was stopped.")
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{evidence, responder::Testimony, tools::ToolRun};
    use super::*;
    use crate::markers::with_part;
    use crate::shell;

    fn document() -> String {
        std::fs::read_to_string(shell::root().join("docs/trust.md")).expect("reads")
    }

    #[test]
    fn the_document_has_the_newest_record() {
        let folder = evidence::newest();
        let kept = folder.map(|folder| Evidence::load(&folder).expect("a record"));
        let expected = table(&kept.unwrap_or_default());
        let again =
            with_part(&document(), "trust", &expected).expect("the document has the markers");
        assert_eq!(document(), again, "`cargo xtask trust --render` writes it again");
    }

    /// Tests that the document cites as evidence.
    #[test]
    fn cited_tests_exist() {
        let text = document();
        let mut count = 0;
        for part in text.split("`").skip(1).step_by(2) {
            let Some((file, test)) = part.split_once(".rs::") else { continue };
            let path = shell::root().join(format!("{file}.rs"));
            let code = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(code.contains(&format!("fn {test}(")), "{part}");
            count += 1;
        }
        assert!(count >= 8, "{count} cited tests");
    }

    #[test]
    fn only_the_part_between_the_markers_is_replaced() {
        let marked =
            |part: &str| format!("a\n<!-- trust: begin -->\n{part}\n<!-- trust: end -->\nb\n");
        assert_eq!(with_part(&marked("old"), "trust", "new\n"), Some(marked("new")));
        assert_eq!(with_part("a\nb\n", "trust", "new\n"), None);
    }

    fn latency(shown: &str, verdict: &str, reported_us: f64) -> LatencyRun {
        LatencyRun {
            shown: shown.into(),
            is_uniform: true,
            verdict: verdict.into(),
            steal_percent: 0.0,
            is_left_out: false,
            is_within_tolerance: false,
            percentiles: vec![Percentile {
                name: "p50".into(),
                reported_us,
                reported_us_min: None,
                recorded_us: 1_000.0,
            }],
        }
    }

    fn search(burned: &str, exit_code: i32, pass: f64) -> SearchRun {
        SearchRun {
            limit: 4_000.0,
            burned: burned.into(),
            hold_s: 6,
            exit_code: Some(exit_code),
            highest_pass: Some(pass),
            lowest_fail: Some(pass * 1.05),
            trials: 10,
            seconds: 60,
            steal_percent: 0.0,
        }
    }

    #[test]
    fn wrong_right_and_undecided_evidence_is_told_apart() {
        let mut evidence = Evidence {
            measured: [("delays".to_owned(), "2026-01-01T00:00:00Z".to_owned())].into(),
            delays: vec![
                latency("1 ms held", "generator_bound", 9_000.0),
                latency("1 ms held", "ok", 1_040.0),
                latency("5 ms held", "ok", 2_000.0),
            ],
            searches: vec![search("", 0, 3_950.0), search("", 111, 0.0)],
            noisy_searches: vec![search("both", 0, 5_000.0), search("both", 111, 0.0)],
            ..Evidence::default()
        };
        let text = table(&evidence);
        assert!(!text.contains("9,000"), "an undecided run was repeated: {text}");
        let line = |part: &str| {
            let found = text.lines().find(|line| line.contains(part));
            found.unwrap_or_else(|| panic!("{part}: {text}"))
        };
        assert!(line("1 ms held").contains("(+40 us)") && line("1 ms held").ends_with("right |"));
        assert!(line("5 ms held").ends_with("**wrong** |"));
        assert!(line("limited to N").contains("1 of 1 right, 1 undecided"));
        assert!(line("burns both cores").contains("0 of 1 intervals"));
        assert!(line("burns both cores").ends_with("**1 wrong** |"));
        evidence.delays.clear();
        assert!(!table(&evidence).contains("held"), "what was not measured has no line");
    }

    #[test]
    fn a_disturbed_figure_is_shown_with_its_interval() {
        let mut run = latency("1 ms held", "ok", 3_700.0);
        run.is_within_tolerance = true;
        run.percentiles[0].reported_us_min = Some(1_050.0);
        let text = table(&Evidence {
            measured: [("delays".to_owned(), "2026-01-01T00:00:00Z".to_owned())].into(),
            delays: vec![run],
            ..Evidence::default()
        });
        let expected = "| 1,000 us | 1,050 to 3,700 us, with disturbed seconds | the interval ± 1 %, \
                        at least ± 100 us | right |";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn faults_and_other_programs_are_listed() {
        let record = Testimony { messages: 100_000, lost: 10, ..Testimony::default() };
        let run = FaultRun {
            fault: Fault::Lose,
            verdict: "qos_violation".into(),
            exit_code: Some(110),
            lost: 9,
            duplicates: 0,
            out_of_order: 0,
            others: 0,
            record,
        };
        let tool = |name: &str, said: Option<&str>| ToolRun {
            name: name.into(),
            said: said.map(Into::into),
            ended: said.map(|_| ToolEnd::Stopped { after_s: 45 }),
            messages: 10_000,
            lost: 100,
        };
        let text = table(&Evidence {
            measured: [("faults".to_owned(), "2026-01-01T00:00:00Z".to_owned())].into(),
            faults: vec![run],
            tools: vec![tool("alpha", None), tool("beta", Some("all fine"))],
            ..Evidence::default()
        });
        assert!(text.contains("| 10 of 100,000 | 9 lost, `qos_violation` |"), "{text}");
        assert!(text.contains("**wrong**") && text.contains("not installed"), "{text}");
        let beta = "beta published 10,000 messages, of which the responder acknowledged and lost \
                    100. It did not end within 45 s and was stopped. Its output:";
        assert!(text.contains(beta) && text.contains("all fine"), "{text}");
        let end = |ended: Option<ToolEnd>| ending(ended);
        assert_eq!(end(Some(ToolEnd::Exit { code: 3 })), "It ended with exit code 3.");
        assert_eq!(end(Some(ToolEnd::Signal)), "A signal ended it.");
        assert_eq!(end(None), "");
    }
}
