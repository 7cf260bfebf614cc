//! The page of a comparison.

use super::languages::texts;
use super::{content, keep};
use crate::{Lang, comparison_html, with_files};
use tacho_lab::compare::{About, CompareError, Condition, FailIf, Run, Side};
use tacho_record::RunDirectory;
use tacho_record::{
    BeforeRun, CurvePoint, LatencyStats, RunKind, RunRecord, SideCurve, Step, TargetRecord, Verdict,
};

/// Compares, and writes the sentences as the program does.
fn compare(
    sides: &[Side],
    about: &About,
    conditions: &[Condition],
) -> Result<tacho_record::Comparison, CompareError> {
    let mut comparison = tacho_lab::compare::compare(sides, about, conditions)?;
    crate::tell_comparison(&mut comparison);
    Ok(comparison)
}

/// A repeat whose figures are near those of its side.
fn run(number: usize, factor: f64, kind: RunKind) -> Run {
    let near = |value: f64| value * (1.0 + 0.01 * ((number * 7) % 5) as f64);
    let us = |value: f64| Some(near(value * factor) as u64);
    let latency_us = LatencyStats {
        count: 100_000,
        p50: us(180.0),
        p99: us(900.0),
        p999: us(2100.0),
        max: us(9000.0 + 3000.0 * ((number * 3) % 4) as f64),
        ..LatencyStats::default()
    };
    let step = |x: f64| Step {
        label: format!("rate={x}"),
        x: Some(x),
        tps: near(x * 2.0 - x * (factor - 1.0)),
        latency_us,
        expected: 10_000,
        broker_cpu_us_per_message: Some(near(3.2 * factor)),
        cpu_percent: Some(near(40.0)),
        broker_rss_bytes: Some(near(24e6 / factor) as u64),
        verdict: Verdict::Ok,
        ..Step::default()
    };
    let steps = match kind {
        RunKind::Run => vec![step(10_000.0)],
        _ => [5000.0, 10_000.0, 15_000.0].map(step).into(),
    };
    Run {
        path: std::path::PathBuf::from("nowhere"),
        shown: format!("steps/{number:02}"),
        record: RunRecord {
            kind,
            schema_version: 1,
            scenario: "symmetric".to_owned(),
            description: "Each publisher sends to one subscriber.".to_owned(),
            started_at: format!("2026-01-01T00:{number:02}:00Z"),
            targets: vec![TargetRecord {
                broker: "mqtt://127.0.0.1:1".to_owned(),
                command: Some(format!("broker -p 1 --speed {factor}")),
                ..TargetRecord::default()
            }],
            steps,
            ..RunRecord::default()
        },
        environment: None,
        scenario: None,
        before: Some(BeforeRun {
            command: "sysctl -w x=1".to_owned(),
            exit_code: Some(0),
            seconds: 0.1,
            output: "x = 1\n".to_owned(),
        }),
        made_up: number == 5,
    }
}

fn sides(kind: RunKind) -> Vec<Side> {
    let side = |name: &str, factor| {
        let mut runs: Vec<Run> = (1..=6).map(|number| run(number, factor, kind)).collect();
        if let Some(last) = runs.last_mut() {
            last.record.verdict = Verdict::GeneratorBound;
            last.record.reasons = vec!["the generator was busy".to_owned()];
        }
        let before = Some("sysctl -w x=1".to_owned());
        let again = Vec::new();
        let (name, label) = (name.to_owned(), format!("broker {name}"));
        Side { name, label, what: None, before, runs, again }
    };
    let mut both = vec![side("old", 1.0), side("new", 1.25)];
    both[0].again = (7..=12).map(|number| run(number, 1.0, kind)).collect();
    both
}

fn page(sides: &[Side]) -> String {
    page_in(Lang::En, sides)
}

fn page_in(lang: Lang, sides: &[Side]) -> String {
    let about = About {
        name: "20260101-compare-symmetric".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        elapsed_s: 300.0,
        interleaved: true,
        seed: 1,
    };
    let conditions = [Condition::FailIf(FailIf::Worse)];
    let mut comparison = compare(sides, &about, &conditions).expect("comparable");
    // That of the test's own process.
    comparison.command_line = ["tacho", "compare", "symmetric"].map(str::to_owned).into();
    let curve = |factor: f64| {
        let point = |step: u32| {
            let quantile = 1.0 - 10_f64.powf(-f64::from(step) / 20.0);
            let value_us = (150.0 * factor * (1.0 + f64::from(step * step) / 300.0)) as u64;
            CurvePoint { quantile, value_us }
        };
        (0..80).map(point).collect::<Vec<_>>()
    };
    let curves = [("old", 1.0), ("new", 1.25)].map(|(name, factor)| SideCurve {
        name: name.to_owned(),
        pooled: curve(factor),
        slowest: curve(factor * 1.1),
    });
    let page = comparison_html(&comparison, &curves, lang);
    with_files(&page, &["comparison.json".to_owned(), "junit.xml".to_owned()])
}

#[test]
fn both_sides_stand_beside_each_other() {
    let page = page(&sides(RunKind::Run));
    keep("comparison.html", &page);
    for words in [
        "Better in some figures, worse in others",
        "latency, 99th percentile",
        "+25.0 %",
        "95 % interval",
        "new: all messages of its repeats",
        "old: slowest repeat",
        "Repeat by repeat",
        "broker -p {port} --speed 1.25",
        "command before each repeat",
        "fail if worse: does not hold",
        "1 of 6 repeats of old do not count",
        "sysctl -w x=1 (exit code 0, 0.1 s): x = 1",
        "href=\"steps/01/report.html\"",
        "href=\"comparison.json\"",
        "class=\"invalid\"",
        "A/A (the first side once more)",
        "the first side against its 6 A/A repeats",
        "5 (in place of another)",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // A picture per figure that has a change.
    assert!(page.matches("role=\"img\" aria-label=\"latency,").count() >= 3);
    for outside in ["http:", "https:", "@import", "url(", "<link", "<img", "<iframe", " src="] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// What a page says itself is Chinese; what the run brought is not.
#[test]
fn a_comparison_speaks_chinese() {
    let sides = sides(RunKind::Run);
    let page = page_in(Lang::Zh, &sides);
    keep("comparison-zh.html", &page);
    assert!(page.contains("<html lang=\"zh\">"));
    for words in [
        "部分指标更好，部分更差",
        "延迟的第 99 百分位",
        "变差即失败：不满足：new 的",
        "new：各次重复的全部消息",
        "old 的 6 次重复中有 1 次不计入结果：",
        "第一方与其 6 次 A/A 重复相比",
        "对比结果：本页全部数据",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let brought = [
        "symmetric",
        "broker old",
        "broker new",
        "20260101-compare-symmetric",
        "sysctl -w x=1",
        "the generator was busy",
        "broker -p {port} --speed",
        "{port}",
        "compare",
        "tacho",
        "junit.xml",
        "comparison.json",
        "Each publisher sends to one subscriber.",
        "Broker",
    ];
    let mut left: Vec<String> = texts(&page).into_iter().collect();
    for text in &mut left {
        for known in brought {
            *text = text.replace(known, "");
        }
    }
    left.retain(|text| {
        text.split(|c: char| !c.is_ascii_lowercase()).any(|word| word.len() > 3 && word != "json")
    });
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn steps_of_ladders_have_tables_and_charts() {
    let page = page(&sides(RunKind::Ladder));
    keep("comparison-ladder.html", &page);
    for words in ["rate=15000", "Medians over the steps", "Broker CPU per message in or out"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("Repeat by repeat"));
}

#[test]
fn hostile_names_of_sides_stay_text() {
    let evil = "</script><script>alert(1)</script><b onclick='x'>\"&";
    let mut sides = sides(RunKind::Run);
    for side in &mut sides {
        side.name.push_str(evil);
        side.label = evil.to_owned();
        side.before = Some(evil.to_owned());
        for run in &mut side.runs {
            run.shown = evil.to_owned();
            run.record.scenario = evil.to_owned();
            run.record.description = evil.to_owned();
            run.record.reasons = vec![evil.to_owned()];
            run.record.targets[0].command = Some(evil.to_owned());
        }
    }
    let page = content(&page(&sides));
    assert!(!page.contains("<script>alert") && !page.contains("<b onclick"), "{page}");
}

#[test]
fn the_files_are_written() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = RunDirectory::create(place.path()).expect("creates");
    let about = About { name: "n".to_owned(), seed: 1, ..About::default() };
    let comparison = compare(&sides(RunKind::Run), &about, &[]).expect("comparable");
    crate::write_comparison(&directory, &comparison, &[], Lang::En).expect("writes");
    let text = std::fs::read_to_string(place.path().join("comparison.json")).expect("reads");
    let back: tacho_record::Comparison = serde_json::from_str(&text).expect("is JSON");
    assert_eq!((&back.sides, back.verdict), (&comparison.sides, comparison.verdict));
    let told = |one: &tacho_record::Comparison| {
        let rows = one.points.iter().flat_map(|point| &point.figures);
        rows.map(|row| (row.name.clone(), row.changes[0].verdict)).collect::<Vec<_>>()
    };
    assert_eq!(told(&back), told(&comparison));
    for file in ["report.html", "junit.xml", "summary.md"] {
        assert!(place.path().join(file).exists(), "{file}");
    }
}

/// The lines of its tables, as a terminal has them.
fn table_lines(sides: &[Side]) -> Vec<String> {
    let about = About { name: "x".to_owned(), seed: 1, ..About::default() };
    let text = crate::comparison_text(&compare(sides, &about, &[]).expect("comparable"));
    let lines = text.lines().skip_while(|line| !line.starts_with("FIGURE"));
    lines.take_while(|line| !line.starts_with("floor:")).map(str::to_owned).collect()
}

#[test]
fn tables_for_terminals_have_lines_of_100_letters() {
    let two = sides(RunKind::Run);
    let mut four = sides(RunKind::Run);
    for name in ["a_broker_with_a_very_long_name", "another"] {
        let mut side = sides(RunKind::Run).remove(1);
        side.name = name.to_owned();
        four.push(side);
    }
    for (count, sides) in [two, four].into_iter().enumerate() {
        let lines = table_lines(&sides);
        assert!(lines.len() > 5, "{lines:#?}");
        for line in &lines {
            assert!(line.chars().count() <= 100, "{count}: {line}");
        }
        let told = lines.join(" ");
        let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
        for figure in ["messages in + out", "99.9th", "memory of the"] {
            assert!(words.contains(figure), "{figure}: {lines:#?}");
        }
    }
    // Each of several sides has a line with its own median.
    let lines = table_lines(&sides(RunKind::Run));
    assert!(lines[0].contains("old") && lines[0].contains("new"), "{}", lines[0]);
}
