//! Ladders, searches and suites on a bench that performs runs by a model.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

use tacho_lab::campaign::{
    Bench, CampaignAbout, CampaignEnd, CampaignError, CampaignNews, Driver, LadderRequest,
    Performance, Rung, Subject, SuiteRow, run_ladder, run_suite,
};
use tacho_lab::capacity::{CapacityRequest, SearchPlan, run_search};
use tacho_lab::repeats::run_repeats;
use tacho_lab::run::{Ending, Outcome};
use tacho_record::{Obstacle, RunData, RunDirectory, RunKind, RunRecord, Step, Verdict};
use tacho_scenario::suite::Suite;
use tacho_scenario::threshold::Threshold;
use tacho_scenario::{Adjustment, Limits, Scenario, ScenarioError, TimeSpan};

/// Brokers that carry a load up to a limit with CPU in proportion to it.
struct Model {
    /// Messages in per second at 100 % CPU.
    limit: f64,
    /// The run, counted from 1, after which the broker is gone.
    dies_after: Option<usize>,
    /// The run, counted from 1, after which the campaign is asked to stop.
    stops_after: Option<usize>,
    /// Runs, counted from 1, that the machine disturbs.
    disturbed: &'static [usize],
    /// What each run adds to the messages per second of the one before.
    rises_by: f64,
    is_up: bool,
    set_ups: usize,
    runs: usize,
    pauses: Cell<usize>,
    skipped: RefCell<Vec<Obstacle>>,
}

impl Model {
    fn new(limit: f64) -> Self {
        Self {
            limit,
            dies_after: None,
            stops_after: None,
            disturbed: &[],
            rises_by: 0.0,
            is_up: false,
            set_ups: 0,
            runs: 0,
            pauses: Cell::new(0),
            skipped: RefCell::default(),
        }
    }
}

impl Bench for Model {
    fn choose_side(&mut self, _side: usize) {}

    fn set_up(&mut self, _: &Scenario, _: &RunDirectory) -> Result<(), CampaignError> {
        self.is_up = true;
        self.set_ups += 1;
        Ok(())
    }

    fn clear(&mut self) {
        self.is_up = false;
    }

    fn perform(
        &mut self,
        performance: Performance,
        _: &RunDirectory,
    ) -> Result<Outcome, CampaignError> {
        assert!(self.is_up, "a run needs its brokers");
        self.runs += 1;
        let needs = tacho_lab::needs::needs(&performance.scenario).expect("counts");
        let achieved = needs.in_per_s.min(self.limit);
        let is_carried = achieved >= needs.in_per_s;
        let step = Step {
            offered_in_per_s: needs.in_per_s,
            achieved_in_per_s: achieved,
            tps: 2.0 * achieved + self.rises_by * self.runs as f64,
            cpu_percent: Some(100.0 * achieved / self.limit),
            drained: is_carried,
            ..Step::default()
        };
        let verdict = match (is_carried, self.disturbed.contains(&self.runs)) {
            (_, true) => Verdict::Disturbed,
            (true, false) => Verdict::Ok,
            (false, false) => Verdict::NotSustained,
        };
        let record = RunRecord { verdict, steps: vec![step], ..RunRecord::default() };
        let data = RunData { record, ..RunData::default() };
        Ok(Outcome { data, ending: Ending::Completed, left: None })
    }

    fn broker_failure(&self) -> Option<String> {
        let is_gone = self.dies_after == Some(self.runs);
        is_gone.then(|| "the broker is gone".to_owned())
    }

    fn is_stopped(&self) -> bool {
        self.stops_after.is_some_and(|runs| self.runs >= runs)
    }

    fn pause(&self, _: Duration) {
        self.pauses.set(self.pauses.get() + 1);
    }

    fn tell(&self, news: CampaignNews<'_>) {
        if let CampaignNews::Skipped { obstacle, .. } = news {
            self.skipped.borrow_mut().push(obstacle.clone());
        }
    }
}

fn symmetric(rate: f64, hold: TimeSpan) -> Result<Scenario, ScenarioError> {
    let vars = [("target_throughput".to_owned(), format!("{rate}"))];
    let mut scenario = Scenario::load("symmetric", &vars, &Adjustment::NONE, Limits::NONE)?;
    scenario.phases.measure = hold;
    Ok(scenario)
}

fn trial(rate: f64, hold: TimeSpan) -> Result<Result<Scenario, Obstacle>, ScenarioError> {
    symmetric(rate, hold).map(Ok)
}

fn driver<'b>(bench: &'b mut Model, kind: RunKind, place: &Path) -> Driver<'b> {
    let subject = Subject { name: "symmetric", ..Subject::default() };
    let about = CampaignAbout { kind, name: "c", subject };
    Driver::new(bench, &about, RunDirectory::create(place).expect("creates"))
}

fn ladder(rates: &[&str], stop_when: &[&str]) -> LadderRequest {
    let rung = |rate: &&str| {
        let scenario = match rate.parse() {
            Ok(rate) => Ok(symmetric(rate, TimeSpan::from_secs(1)).expect("a scenario")),
            Err(_) => Err(Obstacle::Message("lacks cores".to_owned())),
        };
        Rung::new("target_throughput", rate, scenario)
    };
    let condition = |text: &&str| Threshold::parse(text).expect("a condition");
    LadderRequest {
        variable: "target_throughput".to_owned(),
        rungs: rates.iter().map(rung).collect(),
        pause: Duration::from_secs(1),
        stop_when: stop_when.iter().map(condition).collect(),
        repeat: 2,
        recommend_at_percent: 75.0,
    }
}

#[test]
fn a_ladder_ends_at_its_condition_and_recommends_between_its_steps() {
    let place = tempfile::tempdir().expect("temporary directory");
    let mut bench = Model::new(10_000.0);
    let request = ladder(&["5000", "8000", "9900", "none", "12000"], &["cpu>95%"]);
    let driver = driver(&mut bench, RunKind::Ladder, &place.path().join("run"));
    let finished = run_ladder(driver, &request).expect("runs");
    let record = &finished.data.record;
    assert!(matches!(finished.end, CampaignEnd::Completed { forgiven: None }));
    let labels: Vec<&str> = record.steps.iter().map(|step| step.label.as_str()).collect();
    let rate = |rate: &str| format!("target_throughput={rate}");
    // The second pass ends where the first one did.
    let twice = ["5000", "8000", "9900", "5000 #2", "8000 #2", "9900 #2"].map(rate);
    assert_eq!(labels, twice);
    assert_eq!(record.verdict, Verdict::Ok);
    let lacks = Obstacle::Message("lacks cores".to_owned());
    assert_eq!(record.skipped[0].obstacle, Some(lacks));
    assert_eq!(record.recommendations[0].tps, Some(15_000.0));
    assert_eq!((bench.set_ups, bench.pauses.get()), (1, 5));
    let steps = place.path().join("run/steps");
    assert!(steps.join("03-target_throughput-9900").is_dir());
}

#[test]
fn a_ladder_whose_broker_goes_away_makes_no_further_step() {
    let place = tempfile::tempdir().expect("temporary directory");
    let mut bench = Model { dies_after: Some(2), ..Model::new(10_000.0) };
    let driver = driver(&mut bench, RunKind::Ladder, &place.path().join("run"));
    let finished = run_ladder(driver, &ladder(&["5000", "6000", "7000"], &[])).expect("runs");
    assert!(matches!(finished.end, CampaignEnd::Failed(CampaignError::Target(_))));
    assert_eq!(finished.data.record.verdict, Verdict::Aborted);
    assert_eq!(bench.runs, 2);
    assert!(!bench.is_up);
}

#[test]
fn a_ladder_that_this_machine_cannot_run_names_the_shortage() {
    let request = ladder(&["none", "never"], &[]);
    let error = request.first().expect_err("nothing can be run");
    let CampaignError::Infeasible { points: "steps", obstacle } = error else { panic!("{error}") };
    assert_eq!(*obstacle, Obstacle::Message("lacks cores".to_owned()));
}

#[test]
fn a_search_finds_the_limit_of_the_model_and_profiles_below_it() {
    let place = tempfile::tempdir().expect("temporary directory");
    let mut bench = Model::new(10_000.0);
    let plan = SearchPlan {
        from: 1000.0,
        floor: 1.0,
        ceiling: 1e9,
        precision: 0.05,
        trial_s: 1.0,
        hold_s: 4.0,
        whole: true,
        confirm: 3,
        trials_max: 60,
    };
    let objectives = [Threshold::parse("achieved>=99%").expect("an objective")];
    let request = CapacityRequest {
        variable: "target_throughput",
        plan,
        objectives: &objectives,
        pause: Duration::ZERO,
        with_profile: true,
        scenario: &trial,
    };
    let driver = driver(&mut bench, RunKind::Capacity, &place.path().join("run"));
    let finished = run_search(driver, &request, "symmetric").expect("runs");
    let record = &finished.data.record;
    let capacity = record.capacity.as_ref().expect("a capacity");
    let (pass, fail) = (capacity.highest_pass.expect("one"), capacity.lowest_fail.expect("one"));
    assert!(pass <= 10_102.0 && fail > 10_000.0 && fail - pass <= 0.05 * fail, "{pass} {fail}");
    assert!(capacity.confirmed >= 3, "{}", capacity.confirmed);
    assert_eq!(record.verdict, Verdict::Ok);
    let profile = record.series.iter().find(|series| series.name == "profile").expect("a series");
    let values: Vec<f64> = profile.steps.iter().filter_map(|at| record.steps[*at].x).collect();
    assert_eq!(values, [0.1, 0.5, 0.9].map(|part| (pass * part).round()));
    // All trials but those of the profile are between two pauses, and all use the same broker.
    assert_eq!((bench.set_ups, bench.pauses.get()), (1, capacity.trials.len() - 1));
}

#[test]
fn a_search_that_is_stopped_has_no_further_trial() {
    let place = tempfile::tempdir().expect("temporary directory");
    let mut bench = Model { stops_after: Some(1), ..Model::new(10_000.0) };
    let plan = SearchPlan {
        from: 1000.0,
        floor: 1.0,
        ceiling: 2000.0,
        precision: 0.05,
        trial_s: 1.0,
        hold_s: 1.0,
        whole: true,
        confirm: 1,
        trials_max: 60,
    };
    let request = CapacityRequest {
        variable: "target_throughput",
        plan,
        objectives: &[],
        pause: Duration::ZERO,
        with_profile: true,
        scenario: &trial,
    };
    let driver = driver(&mut bench, RunKind::Capacity, &place.path().join("run"));
    let finished = run_search(driver, &request, "symmetric").expect("runs");
    assert!(matches!(finished.end, CampaignEnd::Stopped { failed: None }));
    assert_eq!((finished.data.record.verdict, bench.runs), (Verdict::Aborted, 1));
}

#[test]
fn a_suite_goes_on_with_a_fresh_broker_in_the_next_series() {
    let place = tempfile::tempdir().expect("temporary directory");
    let suite = Suite::find("guide").expect("is built in");
    let only = ["qos0/*", "qos1/*"].map(str::to_owned);
    let rows: Vec<SuiteRow<'_>> = suite
        .select(&only)
        .map(|(series, point)| {
            let none = Adjustment::NONE;
            let scenario = Scenario::load(&series.scenario, &point.vars, &none, Limits::NONE);
            SuiteRow { series, point, scale: 1.0, scenario: Ok(scenario.expect("a scenario")) }
        })
        .collect();
    let first = rows.iter().filter(|row| row.series.name == "qos0").count();
    assert!(first > 3 && rows.len() > first, "{} of {}", first, rows.len());
    let mut bench = Model { dies_after: Some(2), ..Model::new(1e6) };
    let driver = driver(&mut bench, RunKind::Suite, &place.path().join("run"));
    let finished = run_suite(driver, &rows).expect("runs");
    assert!(matches!(finished.end, CampaignEnd::Completed { forgiven: Some(_) }));
    assert_eq!(finished.data.record.verdict, Verdict::Aborted);
    assert_eq!(bench.runs, 2 + rows.len() - first);
    assert_eq!(finished.data.record.skipped.len(), first - 2);
    assert_eq!(*bench.skipped.borrow(), vec![Obstacle::BrokerGone; first - 2]);
    assert_eq!(bench.set_ups, 2);
}

fn repeated(bench: &mut Model, repeats: u16) -> (Vec<String>, RunRecord) {
    let place = tempfile::tempdir().expect("temporary directory");
    let scenario = symmetric(1000.0, TimeSpan::from_secs(1)).expect("a scenario");
    let driver = driver(bench, RunKind::Repeats, &place.path().join("run"));
    let finished = run_repeats(driver, &scenario, repeats).expect("runs");
    let record = finished.data.record;
    (record.steps.iter().map(|step| step.label.clone()).collect(), record)
}

/// Least, median and greatest messages per second, and over how many runs.
fn tps_of(record: &RunRecord) -> Option<([Option<f64>; 3], usize)> {
    let row = record.repeated.iter().find(|row| row.name == "tps")?;
    let spread = row.sides.first()?;
    Some(([spread.min, spread.median, spread.max], spread.values.len()))
}

#[test]
fn repeats_use_the_same_brokers_and_have_median_and_range() {
    let mut bench = Model { rises_by: 10.0, ..Model::new(10_000.0) };
    let (labels, record) = repeated(&mut bench, 3);
    assert_eq!(labels, ["run 1", "run 2", "run 3"]);
    assert_eq!(tps_of(&record), Some(([2010.0, 2020.0, 2030.0].map(Some), 3)));
    assert_eq!((record.verdict, record.kind), (Verdict::Ok, RunKind::Repeats));
    // Fresh connections on one broker, with a pause between two runs.
    assert_eq!((bench.set_ups, bench.runs, bench.pauses.get()), (1, 3, 2));
}

#[test]
fn a_disturbed_repeat_is_made_again_and_does_not_count() {
    let mut bench = Model { rises_by: 10.0, disturbed: &[2], ..Model::new(10_000.0) };
    let (labels, record) = repeated(&mut bench, 3);
    assert_eq!(labels, ["run 1", "run 2", "run 2 (repeat 1)", "run 3"]);
    assert_eq!(tps_of(&record), Some(([2010.0, 2030.0, 2040.0].map(Some), 3)));
    assert_eq!(record.verdict, Verdict::Ok, "the repeat in its place was valid");
    // One that is disturbed each time leaves its mark on the whole.
    let mut bench = Model { disturbed: &[2, 3, 4], ..Model::new(10_000.0) };
    let (labels, record) = repeated(&mut bench, 2);
    assert_eq!(labels.len(), 4);
    assert_eq!(record.verdict, Verdict::Disturbed);
    assert_eq!(tps_of(&record).map(|tps| tps.1), Some(1));
}

#[test]
fn repeats_end_with_their_broker_or_when_asked() {
    let mut bench = Model { dies_after: Some(2), ..Model::new(10_000.0) };
    let (labels, record) = repeated(&mut bench, 4);
    assert_eq!((labels.len(), record.verdict), (2, Verdict::Aborted));
    let mut bench = Model { stops_after: Some(1), ..Model::new(10_000.0) };
    let (labels, record) = repeated(&mut bench, 4);
    assert_eq!((labels.len(), record.verdict), (1, Verdict::Aborted));
}

#[test]
fn the_worst_repeat_decides() {
    let mut bench = Model::new(500.0);
    let (_, record) = repeated(&mut bench, 2);
    assert_eq!(record.verdict, Verdict::NotSustained);
}
