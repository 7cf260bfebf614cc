//! The statistics on made-up figures, and comparisons of made-up runs.

use std::path::Path;

use super::*;
use tacho_record::{
    Basis, Change, Comparison, ComparisonSide, ConditionOutcome, Difference, Headline,
    HeadlineName, Judgement, LatencyStats, Repeat, RunKind, RunRecord, Scale, Step, TargetRecord,
    Verdict, curve_of, parse_percentiles,
};
use tacho_report::{comparison_junit, comparison_markdown, comparison_text};

/// Compares, and writes the sentences as the program does.
fn compare(
    sides: &[Side],
    about: &About,
    conditions: &[Condition],
) -> Result<Comparison, CompareError> {
    let mut comparison = super::compare(sides, about, conditions)?;
    tacho_report::tell_comparison(&mut comparison);
    Ok(comparison)
}

/// Normal variates by the sum of twelve.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// Values around `mean` with a spread in percent of it.
fn values(random: &mut fastrand::Rng, count: usize, mean: f64, spread: f64) -> Vec<f64> {
    (0..count).map(|_| mean * (1.0 + spread / 100.0 * normal(random))).collect()
}

fn figure(name: &str) -> &'static Figure {
    Figure::find(name).expect(name)
}

fn judged(name: &str, first: Vec<f64>, second: Vec<f64>) -> Change {
    judged_with(name, first, &[], second)
}

/// With further repeats of the first condition.
fn judged_with(name: &str, first: Vec<f64>, again: &[f64], second: Vec<f64>) -> Change {
    let method = statistics::method(1);
    let sides = [("a", first), ("b", second)];
    let row = judge(figure(name), &sides, again, &method).expect("values");
    row.changes.into_iter().next().expect("a change")
}

#[test]
fn medians() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
}

#[test]
fn equals_are_told_apart_in_fewer_than_one_in_twenty() {
    let cases = [(5, 0, 3.0), (7, 0, 3.0), (5, 0, 20.0), (10, 0, 10.0), (5, 5, 1.0)];
    for (count, further, spread) in cases {
        let mut random = fastrand::Rng::with_seed(7);
        let trials = 200;
        let told = (0..trials)
            .filter(|_| {
                let first = values(&mut random, count, 1000.0, spread);
                let again = values(&mut random, further, 1000.0, spread);
                let second = values(&mut random, count, 1000.0, spread);
                judged_with("e2e_p99", first, &again, second).verdict != Judgement::NoChange
            })
            .count();
        let case = format!("{count} repeats, {further} A/A, {spread} %");
        assert!(told <= trials / 20, "{told} of {trials} with {case}");
    }
}

#[test]
fn five_percent_are_found_where_repeats_scatter_by_one() {
    for further in [0, 5] {
        let mut random = fastrand::Rng::with_seed(5);
        let found = (0..100)
            .filter(|_| {
                let first = values(&mut random, 5, 1000.0, 1.0);
                let again = values(&mut random, further, 1000.0, 1.0);
                let second = values(&mut random, 5, 1050.0, 1.0);
                judged_with("e2e_p99", first, &again, second).verdict == Judgement::Worse
            })
            .count();
        assert!(found >= 95, "{found} of 100 with {further} A/A repeats");
    }
}

/// A machine on which the first side differs from itself has a floor as high as that.
#[test]
fn differences_within_the_noise_floor_are_no_change() {
    let near = |mean: f64| [0.998, 1.001, 1.0, 0.999, 1.002].map(|part| mean * part).to_vec();
    let (first, second) = (near(1000.0), near(1040.0));
    assert_eq!(judged("e2e_p99", first.clone(), second.clone()).verdict, Judgement::Worse);
    let again = near(1060.0);
    let change = judged_with("e2e_p99", first.clone(), &again, second);
    assert_eq!((change.verdict, change.basis), (Judgement::NoChange, Some(Basis::BelowFloor)));
    let (drawn, seen) = (change.floor_drawn.expect("drawn"), change.floor_seen.expect("made"));
    assert_eq!((change.floor, (seen * 10.0).round()), (Some(drawn.max(seen)), 60.0));
    // The same two groups beside each other.
    let sides = [("a", first.clone()), ("b", first)];
    let row = judge(figure("e2e_p99"), &sides, &again, &statistics::method(1)).expect("values");
    let aa = row.aa.expect("was made");
    assert_eq!((aa.change.verdict, aa.spread.values.len()), (Judgement::Worse, 5));
    assert_eq!(aa.change.change.map(f64::round), Some(6.0));
}

/// Every other repeat follows one of the other side: when that leaves traces, halves show it.
#[test]
fn an_order_that_matters_raises_the_floor() {
    let first = vec![1000.0, 1100.0, 1000.0, 1100.0, 1000.0];
    let change = judged("e2e_p99", first.clone(), vec![1050.0; 5]);
    let seen = change.floor_seen.expect("was made");
    // 10 % between groups of three and two, as of groups of five.
    assert!((seen - 10.0 * (0.4_f64 / (1.0 / 3.0 + 0.5)).sqrt()).abs() < 0.01, "{seen}");
    assert!(change.floor >= Some(seen));
    // Too few further repeats are no group; they are drawn from all the same.
    let with_few = judged_with("e2e_p99", first, &[1000.0; 4], vec![1050.0; 5]);
    assert_eq!(with_few.floor_seen, change.floor_seen);
}

#[test]
fn a_known_shift_is_found_with_its_size_and_direction() {
    let mut random = fastrand::Rng::with_seed(11);
    let (mut found, mut covered) = (0, 0);
    let trials = 100;
    for _ in 0..trials {
        let first = values(&mut random, 5, 1000.0, 2.0);
        let second = values(&mut random, 5, 1100.0, 2.0);
        let change = judged("e2e_p99", first, second);
        let (low, high) = (change.low.expect("an interval"), change.high.expect("an interval"));
        assert!(low <= high);
        found += usize::from(change.verdict == Judgement::Worse);
        covered += usize::from((low..=high).contains(&10.0));
        assert_ne!(change.verdict, Judgement::Better);
    }
    assert!(found >= 95 && covered >= 90, "found {found}, covered {covered}");
    // More of what is good is better.
    let first = values(&mut random, 5, 1000.0, 1.0);
    let second = values(&mut random, 5, 1200.0, 1.0);
    assert_eq!(judged("tps", first.clone(), second.clone()).verdict, Judgement::Better);
    assert_eq!(judged("tps", second, first).verdict, Judgement::Worse);
}

#[test]
fn the_same_data_gives_the_same_result() {
    let mut random = fastrand::Rng::with_seed(3);
    let first = values(&mut random, 6, 10.0, 5.0);
    let second = values(&mut random, 6, 11.0, 5.0);
    let once = shift(&first, &[], &second, Scale::Percent, 9);
    assert_eq!(once, shift(&first, &[], &second, Scale::Percent, 9));
    assert_ne!(once, shift(&first, &[], &second, Scale::Percent, 10));
}

#[test]
fn degenerate_values() {
    let verdict =
        |name, first: &[f64], second: &[f64]| judged(name, first.to_vec(), second.to_vec()).verdict;
    // All the same: an interval without width, and nothing below one microsecond or one percent.
    assert_eq!(verdict("e2e_p50", &[50.0; 5], &[50.0; 5]), Judgement::NoChange);
    assert_eq!(verdict("e2e_p50", &[50.0; 5], &[51.0; 5]), Judgement::NoChange);
    assert_eq!(verdict("e2e_p50", &[50.0; 5], &[52.0; 5]), Judgement::Worse);
    assert_eq!(verdict("tps", &[1000.0; 5], &[1009.0; 5]), Judgement::NoChange);
    // Too few, or none.
    assert_eq!(verdict("e2e_p50", &[50.0; 4], &[500.0; 9]), Judgement::Unclear);
    assert_eq!(verdict("e2e_p50", &[], &[500.0; 9]), Judgement::Unclear);
    assert!(
        judge(figure("cpu"), &[("a", vec![]), ("b", vec![])], &[], &statistics::method(1))
            .is_none()
    );
    // Nothing to be in percent of; zero is a usual value of others.
    let zero = judged("e2e_p50", vec![0.0; 5], vec![9.0; 5]);
    assert_eq!((zero.change, zero.verdict), (None, Judgement::Unclear));
    assert_eq!(zero.basis, Some(Basis::FirstIsZero));
    assert_eq!(verdict("loss", &[0.0; 5], &[0.5; 5]), Judgement::Worse);
    assert_eq!(verdict("loss", &[0.0; 5], &[0.0; 5]), Judgement::NoChange);
    assert_eq!(verdict("loss", &[0.0; 5], &[0.0, 0.0, 3.0, 0.0, 0.0]), Judgement::NoChange);
}

#[test]
fn one_bad_repeat_does_not_decide() {
    let first = vec![100.0, 101.0, 99.0, 100.0, 102.0];
    let second = vec![100.0, 99.0, 101.0, 900.0, 100.0];
    let change = judged("e2e_p99", first, second);
    assert_eq!(change.verdict, Judgement::NoChange);
    assert!(change.change.is_some_and(|change| change.abs() < 1.0));
}

/// A run of a scenario with a p99 in microseconds.
fn run(p99_us: u64, verdict: Verdict) -> Run {
    let latency_us = LatencyStats { count: 1000, p99: Some(p99_us), ..LatencyStats::default() };
    let step = Step { tps: 1000.0, latency_us, expected: 500, ..Step::default() };
    let target = TargetRecord { broker: "mqtt://127.0.0.1:9".to_owned(), ..Default::default() };
    Run {
        path: Path::new("nowhere").to_owned(),
        shown: format!("steps/{p99_us}"),
        record: RunRecord {
            schema_version: 1,
            scenario: "symmetric".to_owned(),
            verdict,
            targets: vec![target],
            steps: vec![step],
            ..RunRecord::default()
        },
        environment: None,
        scenario: "seed = 1\n[target]\nbroker = 'x'\n[vars]\nqos = 1".parse().ok(),
        before: None,
        made_up: false,
    }
}

fn side(name: &str, runs: Vec<Run>) -> Side {
    Side { name: name.to_owned(), label: format!("broker {name}"), runs, ..Side::default() }
}

fn sides(first: &[u64], second: &[u64]) -> [Side; 2] {
    let runs = |all: &[u64]| all.iter().map(|p99| run(*p99, Verdict::Ok)).collect();
    [side("old", runs(first)), side("new", runs(second))]
}

fn about() -> About {
    About { name: "n".to_owned(), interleaved: true, seed: 1, ..About::default() }
}

const GOOD: [u64; 5] = [1000, 1010, 990, 1005, 995];
const BAD: [u64; 5] = [1300, 1310, 1290, 1305, 1295];

#[test]
fn a_regression_is_told_and_fails_its_conditions() {
    let condition = |text| Condition::Regression(Regression::parse(text).expect(text));
    let conditions = [
        Condition::FailIf(FailIf::Worse),
        condition("5%"),
        condition("40%"),
        condition("p99=10%"),
        condition("loss=0%"),
        condition("cpu=1%"),
    ];
    let comparison = compare(&sides(&GOOD, &BAD), &about(), &conditions).expect("comparable");
    assert_eq!(comparison.verdict, Judgement::Worse);
    let row = comparison.points[0].figures.iter().find(|row| row.name == "e2e_p99");
    let row = row.expect("is compared");
    assert_eq!(row.sides[0].median, Some(1000.0));
    assert_eq!(row.changes[0].change.map(f64::round), Some(30.0));
    use ConditionOutcome::{Failed, Holds, Undecided};
    let outcomes: Vec<ConditionOutcome> =
        comparison.conditions.iter().map(|result| result.outcome).collect();
    assert_eq!(outcomes, [Failed, Failed, Holds, Failed, Holds, Undecided]);
    let text = comparison_text(&comparison);
    assert!(text.contains("verdict: worse\n"), "{text}");
    assert!(text.contains("new is worse in latency, 99th percentile: +30.0 %"), "{text}");
    let xml = comparison_junit(&comparison);
    let document = roxmltree::Document::parse(&xml).expect("is XML");
    let count = |name| document.descendants().filter(|node| node.has_tag_name(name)).count();
    assert_eq!((count("failure"), count("error")), (3, 1), "{xml}");
    assert!(comparison_markdown(&comparison).contains("| latency, 99th percentile | 1.00 ms"));
    // The other way round it is better.
    let conditions = [Condition::FailIf(FailIf::Worse), Condition::FailIf(FailIf::NotBetter)];
    let back = compare(&sides(&BAD, &GOOD), &about(), &conditions).expect("comparable");
    assert_eq!(back.verdict, Judgement::Better);
    assert!(back.conditions.iter().all(|result| result.outcome == Holds));
    let same = compare(&sides(&GOOD, &GOOD), &about(), &conditions).expect("comparable");
    assert_eq!(same.verdict, Judgement::NoChange);
    assert_eq!(same.conditions[1].outcome, Failed);
}

#[test]
fn single_runs_have_differences_but_no_verdict() {
    let conditions = [Condition::FailIf(FailIf::Worse)];
    let comparison = compare(&sides(&[1000], &[1500]), &about(), &conditions).expect("comparable");
    assert_eq!(comparison.verdict, Judgement::Unclear);
    let row = comparison.points[0].figures.iter().find(|row| row.name == "e2e_p99");
    let change = &row.expect("is compared").changes[0];
    assert_eq!((change.change, change.low), (Some(50.0), None));
    assert_eq!(comparison.conditions[0].outcome, ConditionOutcome::Undecided);
    assert!(comparison.notes.iter().any(|note| note.contains("There are 1 repeats per side")));
}

#[test]
fn runs_that_say_nothing_about_the_broker_do_not_count() {
    let [first, mut second] = sides(&GOOD, &GOOD);
    second.runs.push(run(90_000, Verdict::GeneratorBound));
    second.runs.push(run(90_000, Verdict::Aborted));
    let comparison = compare(&[first, second], &about(), &[]).expect("comparable");
    let row = comparison.points[0].figures.iter().find(|row| row.name == "e2e_p99");
    assert_eq!(row.expect("is compared").sides[1].max, Some(1010.0));
    assert_eq!(comparison.verdict, Judgement::NoChange);
    assert!(comparison.notes.iter().any(|note| note.starts_with("2 of 7 repeats of new")));
}

#[test]
fn differences_in_conditions_are_named() {
    let [first, mut second] = sides(&GOOD, &GOOD);
    for run in &mut second.runs {
        run.scenario = "seed = 1\n[target]\nbroker = 'y'\n[vars]\nqos = 2".parse().ok();
        run.record.targets[0].command = Some("broker -p 9".to_owned());
    }
    let about = About { interleaved: false, ..about() };
    let comparison = compare(&[first, second], &about, &[]).expect("comparable");
    let values = |all: &[Difference], name: &str| {
        all.iter().find(|one| one.name == name).map(|one| one.values.clone())
    };
    let broker = values(&comparison.environment, "broker").expect("differs");
    assert_eq!(broker, ["mqtt://127.0.0.1:9", "broker -p {port}"]);
    assert_eq!(
        values(&comparison.scenario_differences, "vars.qos"),
        Some(vec!["1".to_owned(), "2".to_owned()])
    );
    assert_eq!(comparison.scenario_differences.len(), 1);
    let has = |start: &str| comparison.notes.iter().any(|note| note.starts_with(start));
    assert!(has("The runs did not alternate") && has("The scenarios differ in vars.qos"));
    assert!(has("The environments differ in broker"));
}

#[test]
fn steps_of_ladders_are_compared_one_by_one() {
    let ladder = |p99s: [u64; 2]| {
        let mut run = run(p99s[0], Verdict::Ok);
        run.record.kind = RunKind::Ladder;
        let step = |(index, p99): (usize, u64)| {
            let mut step = super::tests::run(p99, Verdict::Ok).record.steps.remove(0);
            step.series = "symmetric".to_owned();
            let (number, x) = (index % 2, if index < 2 { 10.0 } else { 20.0 });
            step.label = format!("rate={x}{}", if number == 0 { "" } else { " #2" });
            step.x = Some(x);
            step
        };
        let [low, high] = p99s;
        run.record.steps = [low, low, high, high].into_iter().enumerate().map(step).collect();
        run
    };
    let first = side("old", vec![ladder([100, 200]); 3]);
    let second = side("new", vec![ladder([100, 400]); 3]);
    let comparison = compare(&[first, second], &about(), &[]).expect("comparable");
    let told: Vec<_> =
        comparison.points.iter().map(|point| (point.label.as_str(), point.verdict)).collect();
    assert_eq!(told, [("rate=10", Judgement::NoChange), ("rate=20", Judgement::Worse)]);
    assert_eq!(comparison.points[0].figures[0].sides[0].values.len(), 6);
}

#[test]
fn replaced_repeats_are_counted_and_reported() {
    let [mut first, mut second] = sides(&GOOD, &GOOD);
    first.again = BAD.iter().map(|p99| run(*p99, Verdict::Ok)).collect();
    let mut bound = run(5000, Verdict::GeneratorBound);
    bound.record.reasons = vec!["the generator was busy".to_owned()];
    second.runs.insert(0, bound);
    second.runs[1].made_up = true;
    let comparison = compare(&[first, second], &about(), &[]).expect("comparable");
    assert_eq!((comparison.made_up, comparison.aa_repeats.len()), (1, 5));
    assert!(comparison.sides[1].repeats[1].made_up && !comparison.sides[1].repeats[0].counts);
    let note = |words: &str| comparison.notes.iter().any(|note| note.contains(words));
    assert!(note("1 of 6 repeats of new do not count: the generator was busy"));
    assert!(note("1 additional repeats replaced repeats that do not count"));
    assert!(note("A/A: the additional repeats of old differ from its others in latency"));
    let text = comparison_text(&comparison);
    for words in ["A/A        the first side once more", "1.30 ms", "its A/A repeats", "5 of 6"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = comparison_markdown(&comparison);
    let table: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    let columns = |line: &str| line.matches('|').count();
    assert!(table[0].contains("| old | new | A/A | change |"), "{page}");
    assert!(table.iter().all(|line| columns(line) == columns(table[0])), "{page}");
}

#[test]
fn names_stay_text_in_markdown() {
    let [mut first, second] = sides(&GOOD, &BAD);
    first.name = "o*l_d`".to_owned();
    first.label = "[x](y) #1\n<b>".to_owned();
    let page = comparison_markdown(&compare(&[first, second], &about(), &[]).expect("comparable"));
    assert!(page.contains("- o\\*l\\_d\\`: \\[x\\](y) \\#1 &lt;b>\n"), "{page}");
    assert!(page.contains("| figure | o\\*l\\_d\\` | new |"), "{page}");
}

#[test]
fn connecting_is_compared() {
    let sides = [("old", 500.0, 4.0, 120.0), ("new", 1000.0, 2.0, 60.0)];
    let sides = sides.map(|(name, rate, seconds, storm_ms)| {
        let mut runs: Vec<Run> = GOOD.iter().map(|p99| run(*p99, Verdict::Ok)).collect();
        for run in &mut runs {
            let step = &mut run.record.steps[0];
            (step.connect_per_s, step.connect_s) = (Some(rate), Some(seconds));
            let name = HeadlineName::TimeTo99PercentConnected;
            run.record.headlines = vec![Headline::new(name, Some(storm_ms))];
        }
        side(name, runs)
    });
    let comparison = compare(&sides, &about(), &[]).expect("comparable");
    let shown = |name: &str| {
        let row = comparison.points[0].figures.iter().find(|row| row.name == name);
        let row = row.unwrap_or_else(|| panic!("{name} is compared"));
        let median = row.sides[1].median.expect("was measured");
        (row.unit.show(median), row.changes[0].verdict)
    };
    assert_eq!(shown("connect_rate"), ("1,000/s".to_owned(), Judgement::Better));
    assert_eq!(shown("time_to_connected"), ("2.00 s".to_owned(), Judgement::Better));
    assert_eq!(shown("time_to_reconnected"), ("60.0 ms".to_owned(), Judgement::Better));
}

#[test]
fn incomparable_runs_are_refused() {
    let refused = |sides: &[Side]| {
        let error = compare(sides, &about(), &[]).expect_err("is refused");
        error.to_string()
    };
    let [first, second] = sides(&GOOD, &GOOD);
    assert!(refused(std::slice::from_ref(&first)).contains("two sides"));
    let mut other = second.clone();
    other.runs[0].record.scenario = "fan-out".to_owned();
    assert!(refused(&[first.clone(), other]).contains("steps/1000 ran 'fan-out'"));
    let mut other = second.clone();
    other.runs[0].record.kind = RunKind::Ladder;
    assert!(refused(&[first.clone(), other]).contains("is a run, steps/1000 a ladder"));
    let mut other = second;
    for run in &mut other.runs {
        run.record.steps.clear();
        run.record.reasons = vec!["the broker was gone".to_owned()];
    }
    let said = refused(&[first.clone(), other]);
    assert_eq!(said, "broker new has no comparable figures: the broker was gone");
    let [mut one, mut two] = sides(&[1], &[2]);
    for (side, label) in [(&mut one, "rate=1"), (&mut two, "rate=2")] {
        side.runs[0].record.kind = RunKind::Ladder;
        side.runs[0].record.steps[0].label = label.to_owned();
    }
    assert!(refused(&[one, two]).ends_with("(rate=1; rate=2)"));
}

#[test]
fn conditions_are_read_or_refused() {
    for valid in ["5%", "e2e_p99=10%", "p99=10 %", "loss=0.1%", "acknowledged_lost=0"] {
        assert!(Regression::parse(valid).is_ok(), "{valid}");
    }
    for (bad, words) in [
        ("5", "needs a %"),
        ("p98=5%", "no figure 'p98'"),
        ("p99=5ms", "needs a %"),
        ("-5%", "not a limit"),
        ("x%", "not a limit"),
    ] {
        let error = Regression::parse(bad).expect_err(bad);
        assert!(error.contains(words), "{bad}: {error}");
    }
    assert!(FailIf::parse("worse").is_ok() && FailIf::parse("bad").is_err());
}

#[test]
fn histograms_of_repeats_become_one() {
    let text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n\
        1.000 0.000000000000 90 1.00\n2.000 0.900000000000 100 10.00\n#[Mean = 1.1]\n";
    let one = parse_percentiles(text);
    assert_eq!(one, [(1000.0, 90), (2000.0, 100)]);
    let other = vec![(500.0, 100), (4000.0, 200)];
    let all = curves::pool(&[one, other]);
    assert_eq!(all, [(500.0, 100), (1000.0, 190), (2000.0, 200), (4000.0, 300)]);
    let points = curve_of(&all);
    let at = |wanted: f64| {
        let point = points.iter().find(|point| (point.quantile - wanted).abs() < 0.02);
        point.expect("a point").value_us
    };
    assert_eq!((at(0.0), at(0.5), at(0.9)), (500, 1000, 4000));
    // A percentile needs ten samples beyond it.
    assert!(points.iter().all(|point| point.quantile < 0.97));
}

#[test]
fn sides_are_read_from_directories() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let write = |name: &str, file: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).expect("creates");
        std::fs::write(path.join(file), text).expect("writes");
        path.to_str().expect("a name").to_owned()
    };
    let record = |p99| serde_json::to_string(&run(p99, Verdict::Ok).record).expect("is JSON");
    let one = write("one", "summary.json", &record(100));
    let two = write("two", "summary.json", &record(200));
    let side = read_side("a", &format!("{one},{two}")).expect("reads");
    assert_eq!((side.runs.len(), side.runs[1].shown.as_str()), (2, two.as_str()));
    let comparison = Comparison {
        sides: vec![ComparisonSide {
            name: "a".to_owned(),
            repeats: vec![Repeat { directory: "steps/1".to_owned(), ..Repeat::default() }],
            ..ComparisonSide::default()
        }],
        aa_repeats: vec![Repeat { directory: "steps/2".to_owned(), ..Repeat::default() }],
        ..Comparison::default()
    };
    let text = serde_json::to_string(&comparison).expect("is JSON");
    let whole = write("whole", "comparison.json", &text);
    write("whole/steps/1", "summary.json", &record(300));
    write("whole/steps/2", "summary.json", &record(310));
    let side = read_side("b", &format!("{whole}@a")).expect("reads");
    assert_eq!(side.runs[0].record.steps[0].latency_us.p99, Some(300));
    assert_eq!(side.again[0].record.steps[0].latency_us.p99, Some(310));
    let empty = write("empty", "notes.txt", "");
    let broken = write("broken", "summary.json", "{");
    let mut newer = run(1, Verdict::Ok).record;
    newer.schema_version = 99;
    let newer = write("newer", "summary.json", &serde_json::to_string(&newer).expect("is JSON"));
    let mut search = run(1, Verdict::Ok).record;
    search.kind = RunKind::Capacity;
    let search = write("search", "summary.json", &serde_json::to_string(&search).expect("JSON"));
    for (argument, words) in [
        (empty, "no summary.json"),
        (format!("{one}/missing"), "the directory does not exist"),
        (broken, "is damaged or of another version"),
        (newer, "its form is 99"),
        (search, "a search has trials"),
        (whole.clone(), "whole@a"),
        (format!("{whole}@z"), "is not a side: it is a comparison; write"),
        (format!("{one}@a"), "it is no comparison"),
    ] {
        let error = read_side("a", &argument).expect_err(&argument).to_string();
        assert!(error.contains(words), "{argument}: {error}");
    }
}
