//! Every statement of a record has words in both languages.

use std::collections::BTreeSet;
use std::fmt::Debug;

use tacho_record::{
    ActionEffect, ActionKind, ActionRecord, Basis, Capacity, Cause, Check, Comparison,
    ComparisonSide, ConditionResult, Consequence, CoreRates, CutShort, Difference, Direction,
    Disturbance, DisturbedSeconds, Estimator, FigureName, FigureRow, Handling, Headline,
    HeadlineName, HeadlineUnit, Judgement, NoOwnCore, Observation, Obstacle, PhaseKind, PhaseName,
    Property, PropertyValue, Purpose, Recommendation, Remark, Remedy, SearchEnd, Verdict, WhoseCpu,
};
use tacho_scenario::published::{BIFROMQ, GUIDE};

use tacho_scenario::Shortage;

use super::label_samples as labels;
use crate::lang::{Lang, statement_texts, statement_variants};

fn text() -> String {
    "X1".to_owned()
}

fn disturbance(handling: Handling) -> Disturbance {
    let kind = DisturbedSeconds { seconds: 2, percent_max: 13.1 };
    let (steal, others, waiting) = (kind, kind, kind);
    Disturbance {
        seconds: 15,
        disturbed: 3,
        steal,
        others,
        waiting,
        handling,
        ..Disturbance::default()
    }
}

fn causes() -> Vec<Cause> {
    let (count, value, limit) = (3, 1.5, 1.0);
    vec![
        Cause::QosBroken { lost: 1, duplicated: 2, out_of_order: 3, damaged: 4 },
        Cause::AcknowledgedLost { deliveries: 1 },
        Cause::AcknowledgedPending { deliveries: 1 },
        Cause::GeneratorCheck { check: Check::ThreadBusy, value, limit, agent: None },
        Cause::GeneratorCheck { check: Check::SendDelay, value, limit, agent: None },
        Cause::GeneratorCheck { check: Check::SendDelay, value, limit, agent: Some(text()) },
        Cause::GeneratorCheck { check: Check::LateSamples, value, limit, agent: None },
        Cause::GeneratorCheck { check: Check::Steal, value, limit, agent: None },
        Cause::Disturbed { disturbance: disturbance(Handling::Invalid) },
        Cause::NotCarried { direction: Direction::In, achieved_per_s: 1.0, offered_per_s: 2.0 },
        Cause::NotCarried { direction: Direction::Out, achieved_per_s: 1.0, offered_per_s: 2.0 },
        Cause::LoginsUndecided { decided: 1, due: 2, first: None },
        Cause::LoginsUndecided { decided: 1, due: 2, first: Some(text()) },
        Cause::BystanderSent { group: text(), sent: 1, offered: 2 },
        Cause::BystanderReceived { group: text(), received: 1, expected: 2 },
        Cause::RetainedMissing { count },
        Cause::WillsMissing { count },
        Cause::NotTakenOver { count },
        Cause::RateChanged { first_per_s: 1.0, last_per_s: 2.0 },
        Cause::LatencyChanged { first_us: 1, last_us: 2 },
        Cause::ThresholdFailed { condition: "e2e_p99<1ms".to_owned(), value: Some(2000.0) },
        Cause::ThresholdFailed { condition: "e2e_p99<1ms".to_owned(), value: None },
        Cause::ObjectiveMissed { objective: "cpu<=75%".to_owned(), value: Some(76.0) },
        Cause::ObjectiveMissed { objective: "cpu<=75%".to_owned(), value: None },
        Cause::QosBreaches { count },
        Cause::ClientsFailed { count, first: text() },
        Cause::Observed { observation: Observation::CpuNotObserved },
        Cause::RunStopped,
        Cause::OutputFailed { output: text(), why: text() },
        Cause::CampaignStopped,
        Cause::EndedBeforeMeasuring,
        Cause::NothingMeasured,
        Cause::NoPointRuns,
        Cause::Unreachable { why: text() },
        Cause::AllLost { why: text() },
        Cause::ProbeFailed { missing: 1, expected: 2, waited_ms: 3, first_topic: text() },
        Cause::ThreadFailed { why: text() },
        Cause::LoadMissing { agent: text(), at_s: 1.5, percent: 33.3, why: text() },
        Cause::AgentLost { agent: text(), threads: 1, of: 3, why: text() },
        Cause::MachineEndsSearch { needs: Obstacle::BrokerGone },
        Cause::NotRun { obstacle: Obstacle::BrokerGone },
        Cause::SearchDisturbed { trials: 9, disturbed: 6 },
        Cause::GeneratorEndsSearch,
        Cause::GeneratorBoundEverywhere,
        Cause::NoLoadPasses,
        Cause::Contradictions { trials: 3 },
        labels::failed_condition(),
        labels::undecided_condition(),
        Cause::TooFewRepeats { least: 5 },
        Cause::RunStopped.in_step("10K"),
        Cause::Message(text()),
    ]
}

fn observations() -> Vec<Observation> {
    let (host, interface, percent) = (text(), Some("eth0".to_owned()), 12.5);
    let busy = |direction, interface| Observation::NetworkBusy {
        interface,
        host: text(),
        bytes_per_s: 1e6,
        direction,
        percent,
    };
    vec![
        busy(Direction::In, interface.clone()),
        busy(Direction::Out, None),
        Observation::NetworkLimitReached {
            interface: interface.clone(),
            host: host.clone(),
            bytes_per_s: 1e9,
            direction: Direction::In,
            percent,
        },
        Observation::PacketLimitReached {
            interface: interface.clone(),
            host: host.clone(),
            packets_per_s: 8e5,
            direction: Direction::Out,
            percent,
        },
        Observation::NetworkNarrow {
            interface: interface.clone(),
            host: host.clone(),
            bytes_per_s: 1e6,
            retransmits_per_s: 5.0,
        },
        Observation::NetworkDrops { interface, host: host.clone(), packets_per_s: 5.0 },
        Observation::Retransmits { host: host.clone(), segments_per_s: 5.0, one_machine: true },
        Observation::Retransmits { host: host.clone(), segments_per_s: 5.0, one_machine: false },
        Observation::ListenOverflow { host },
        Observation::RoundTrip { round_trip_us: 10, latency_us: 20 },
        Observation::DelayedAcknowledgements { percent, is_mosquitto: false },
        Observation::DelayedAcknowledgements { percent, is_mosquitto: true },
        Observation::RetransmissionTimeouts { percent },
        Observation::ColdStart { first_us: 10_000, others_us: 20 },
        Observation::ConnectionRetries { took_us: 1_000_000 },
        Observation::ClockError { source: text(), error_us: 5.0 },
        Observation::Steal { percent },
        Observation::OtherPrograms { percent },
        Observation::ForeignLoad { busy_percent: percent, broker_percent: 1.0 },
        Observation::UnfairGroups {
            unfair: 1,
            groups: 2,
            filter: text(),
            received_min: 3,
            received_max: 4,
            gini: 0.5,
        },
        Observation::MonitorGap { monitor: text(), covered_s: 1.0, window_s: 15.0 },
        Observation::MonitorErrors { monitor: text(), errors: 1, last: text() },
        Observation::MonitorErrors { monitor: text(), errors: 2, last: text() },
        Observation::MonitorDropped { monitor: text(), rows: 3 },
        Observation::OutputLost { output: text(), lost: 3, of: 4, last: text() },
        Observation::PacketTooLarge {
            clients: 2,
            client: text(),
            packet: text(),
            announced_bytes: 268_435_460,
            limit_bytes: 1_048_576,
        },
        Observation::ReceiveBudget {
            clients: 2,
            client: text(),
            packet: text(),
            announced_bytes: 1_000_000,
            budget_bytes: 4_000_000,
        },
        Observation::Disturbed {
            disturbance: disturbance(Handling::LeftOut),
            program: Some(text()),
        },
        Observation::Disturbed {
            disturbance: disturbance(Handling::WithinTolerance),
            program: None,
        },
        Observation::Disturbed { disturbance: disturbance(Handling::Invalid), program: None },
        Observation::Repeated { label: text(), verdict: Verdict::Disturbed },
        Observation::LadderStopped { label: text(), condition: text() },
        Observation::LoginsMisjudged { accepted: 1, refused: 2, first: text() },
        Observation::LoginsBanned { count: 3 },
        Observation::CpuNotObserved,
    ]
}

fn remarks() -> Vec<Remark> {
    vec![
        Remark::OneMachine,
        Remark::ClosedModel,
        Remark::CertificateNotVerified { broker: text() },
        Remark::BrokerNotObserved,
        Remark::RoundTripsMissing { why: text() },
        Remark::BrokerKilled,
        Remark::Eventful,
        Remark::Interrupted { count: 2, first: text() },
        Remark::GeneratorNeverSlept { threads: 2 },
        Remark::GeneratorSpun { threads: 2, budget_percent: 95 },
        Remark::GeneratorSlept { why: None },
        Remark::GeneratorSlept { why: Some(NoOwnCore::NotPinned) },
        Remark::GeneratorSlept { why: Some(NoOwnCore::FewerCoresThanThreads) },
        Remark::GeneratorSlept { why: Some(NoOwnCore::BrokerUnknown) },
        Remark::GeneratorSlept { why: Some(NoOwnCore::SharedWithBroker) },
        Remark::GeneratorSlept { why: Some(NoOwnCore::SharedHardware) },
        Remark::GeneratorSlept { why: Some(NoOwnCore::CpuQuota) },
        Remark::GeneratorBatched,
        Remark::GeneratorRested,
        Remark::Agents { count: 3, clock_error_us: 0 },
        Remark::Agents { count: 3, clock_error_us: 250 },
        Remark::TakenUp { at_s: 61.5 },
        Remark::SamplesThinned { one_in: 8, of: 800_000 },
        Remark::RepeatsDoNotCount { out: 1, of: 2, side: text(), cause: None },
        Remark::RepeatsDoNotCount { out: 1, of: 2, side: text(), cause: Some(Cause::RunStopped) },
        Remark::MadeUp { count: 2 },
        Remark::NoRepeatCounts,
        Remark::FewRepeats { fewest: 2, least: 5 },
        Remark::ApartFromItself { side: text(), figures: vec!["tps".to_owned()] },
        Remark::NotInTurns,
        Remark::ScenariosDiffer { names: vec![Property::Key(text())], more: 0 },
        Remark::EnvironmentsDiffer { names: vec![Property::Kernel], more: 3 },
        Remark::Message(text()),
    ]
}

fn effects() -> Vec<ActionEffect> {
    let group = text;
    vec![
        ActionEffect::BreakOff { group: group(), share: 1.0 },
        ActionEffect::BreakOff { group: group(), share: 0.125 },
        ActionEffect::Disconnect { group: group(), share: 0.5 },
        ActionEffect::StopReading { group: group(), share: 1.0, length_s: 1.5 },
        ActionEffect::ConnectAgain { group: group(), share: 1.0 },
        ActionEffect::Subscribe { group: group(), share: 1.0 },
        ActionEffect::KillBroker { target: None },
        ActionEffect::KillBroker { target: Some(text()) },
        ActionEffect::RunCommand { command: text() },
    ]
}

fn obstacles() -> Vec<Obstacle> {
    let (needed, available) = (5 << 20, 3 << 20);
    let (in_per_s, out_per_s, per_core) = (300_000.0, 400_000.0, 150_000);
    let cores = || Shortage::Cores { needed, available, in_per_s, out_per_s, per_core };
    let lacks = |rates, remedy| Obstacle::Lacks { shortages: vec![cores()], rates, remedy };
    let remedy = |scale_clients, scale| Some(Remedy { scale_clients, scale });
    let measured_at = text();
    let calibrated = CoreRates::Calibrated { measured_at };
    vec![
        Shortage::Descriptors { needed, available }.into(),
        Shortage::Ports { needed, available }.into(),
        Shortage::Memory { needed, available }.into(),
        cores().into(),
        Shortage::Bridge { arguments: vec![text(), text()] }.into(),
        Obstacle::Lacks {
            shortages: vec![Shortage::Ports { needed, available }, cores()],
            rates: Some(CoreRates::Typical),
            remedy: remedy(Some(0.5), Some(0.25)),
        },
        lacks(Some(calibrated), remedy(None, Some(0.25))),
        lacks(None, remedy(Some(0.5), None)),
        lacks(Some(CoreRates::Typical), None),
        Obstacle::BrokerGone,
        Obstacle::Message(text()),
    ]
}

fn cut_short() -> Vec<CutShort> {
    vec![
        CutShort::TimedOut,
        CutShort::RunOver,
        CutShort::StillRunning,
        CutShort::NotWatched { error: text() },
        CutShort::NotStarted { error: text() },
    ]
}

fn consequences() -> Vec<Consequence> {
    let (clients, of, last_us) = (3, 4000, Some(120_000));
    let (connections, messages, wills) = (3, 3, 3);
    vec![
        Consequence::Reached { clients },
        Consequence::Connected { clients, of, last_us: None },
        Consequence::Connected { clients, of, last_us },
        Consequence::Connected99 { after_ms: None },
        Consequence::Connected99 { after_ms: Some(1.5) },
        Consequence::Served99 { after_ms: 1.5 },
        Consequence::PausedUntil { at_s: 12.25 },
        Consequence::Subscribed { clients, of, last_us: None },
        Consequence::Subscribed { clients, of, last_us },
        Consequence::Subscribed99 { after_ms: 1.5 },
        Consequence::RetainedReceived { messages, of: None },
        Consequence::RetainedReceived { messages, of: Some(of) },
        Consequence::RetainedComplete { last_us: None },
        Consequence::RetainedComplete { last_us },
        Consequence::BrokerAway,
        Consequence::BrokerServes { after_ms: 12.0 },
        Consequence::CommandRuns,
        Consequence::CommandExited { code: 3 },
        Consequence::CommandSignalled,
        Consequence::CommandCutShort { why: CutShort::TimedOut },
        Consequence::CommandTook { length_s: 0.5 },
        Consequence::CommandOutput { file: "command-1.log".to_owned() },
        Consequence::FirstConnectionsEnded { connections, of: None },
        Consequence::FirstConnectionsEnded { connections, of: Some(of) },
        Consequence::ToldOfTakeover { connections },
        Consequence::WillsReceived { wills, of },
        Consequence::LastWill { last_us: None },
        Consequence::LastWill { last_us },
        Consequence::AttemptsFailed { attempts: 5, refused: 0 },
        Consequence::AttemptsFailed { attempts: 5, refused: 2 },
        Consequence::GivenUp { clients },
        Consequence::Message(text()),
    ]
}

fn is_chinese(text: &str) -> bool {
    text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
}

/// Checks the words of every variant, and that they survive a file.
fn walk<T>(all: &[T], words: impl Fn(Lang, &T) -> String) -> BTreeSet<String>
where
    T: Debug + PartialEq + serde::Serialize + for<'d> serde::Deserialize<'d>,
{
    /// Brought by a run, and shown as they are.
    const AS_THEY_ARE: [&str; 4] = ["Message", "Key", "KernelSetting", "Text"];
    let mut names = BTreeSet::new();
    for one in all {
        let json = serde_json::to_string(one).expect("is JSON");
        assert_eq!(&serde_json::from_str::<T>(&json).expect("reads"), one, "{json}");
        let debug = format!("{one:?}");
        let name = debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        names.insert(name.to_owned());
        let (english, chinese) = (words(Lang::En, one), words(Lang::Zh, one));
        assert!(!english.is_empty() && !is_chinese(&english), "{english}");
        assert!(is_chinese(&chinese) || AS_THEY_ARE.contains(&name), "{chinese}");
        let figures = |text: &str| -> Vec<String> {
            let numbers = text.split(|c: char| !c.is_ascii_digit() && c != '.');
            let mut numbers: Vec<String> =
                numbers.map(|n| n.trim_matches('.').to_owned()).filter(|n| !n.is_empty()).collect();
            numbers.sort();
            numbers
        };
        assert_eq!(figures(&english), figures(&chinese), "{english}: {chinese}");
    }
    names
}

#[test]
fn every_variant_has_words_in_both_languages() {
    let mut names = walk(&causes(), |lang, one| lang.cause(one));
    names.extend(walk(&observations(), |lang, one| lang.observation(one)));
    names.extend(walk(&remarks(), |lang, one| lang.remark(one)));
    names.extend(walk(&effects(), |lang, one| lang.effect(one)));
    names.extend(walk(&cut_short(), |lang, one| lang.cut_short(one)));
    names.extend(walk(&obstacles(), |lang, one| lang.obstacle(one)));
    names.extend(walk(&consequences(), |lang, one| lang.consequence(one)));
    names.extend(walk(&labels::properties(), |lang, one| lang.property(one)));
    names.extend(walk(&labels::condition_causes(), |lang, one| lang.condition_cause(one)));
    names.extend(walk(FigureName::ALL, |lang, one| lang.figure_name(one)));
    names.extend(walk(HeadlineName::ALL, |lang, one| lang.headline_name(one)));
    let bases = [
        Basis::IncludesZero,
        Basis::BelowFloor,
        Basis::AboveFloor,
        Basis::FewRepeats { repeats: 3, least: 5 },
        Basis::FirstIsZero,
        Basis::FirstNotObserved,
        Basis::NotObserved,
    ];
    names.extend(walk(&bases, |lang, one| lang.basis(one)));
    for variant in statement_variants() {
        let name = variant.rsplit("::").next().unwrap_or_default().trim();
        let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        assert!(names.contains(name), "{name} is not among the samples");
    }
    assert!(statement_texts().all(|(english, chinese)| !english.is_empty() && !chinese.is_empty()));
}

#[test]
fn values_searches_and_sides_have_words_in_both_languages() {
    walk(&labels::property_values(), |lang, one| lang.property_value(one));
    walk(&labels::requirements(), |lang, one| lang.requirement(one));
    walk(&labels::side_labels(), |lang, one| lang.side_label(one));
    walk(&SearchEnd::ALL, |lang, one| lang.search_end(*one).to_owned());
    walk(Purpose::ALL, |lang, one| lang.trial_purpose(*one).to_owned());
    walk(WhoseCpu::ALL, |lang, one| lang.whose_cpu_explained(*one).to_owned());
    let estimators: Vec<_> =
        WhoseCpu::ALL.iter().map(|cpu| Estimator::Interpolation { whose_cpu: *cpu }).collect();
    walk(&estimators, |lang, one| lang.estimator(one));
    for source in [GUIDE, BIFROMQ] {
        assert!(is_chinese(&Lang::Zh.published(&source)), "{source:?}");
        assert!(Lang::En.published(&source).contains(source.hardware), "{source:?}");
    }
    let side = |name: &str| ComparisonSide { name: name.to_owned(), ..ComparisonSide::default() };
    let verdicts = [
        Judgement::Better,
        Judgement::Worse,
        Judgement::Mixed,
        Judgement::NoChange,
        Judgement::Unclear,
    ];
    walk(&verdicts, |lang, verdict| {
        let sides = vec![side("a"), side("b")];
        lang.compared(&Comparison { verdict: *verdict, sides, ..Comparison::default() })
    });
}

#[test]
fn values_of_headlines_have_their_units() {
    let shown =
        |lang: Lang, name: HeadlineName, value| lang.headline_value(&Headline::new(name, value));
    for (name, value, english, chinese) in [
        (HeadlineName::SteadyP99, 120.0, "120 µs", "120 µs"),
        (HeadlineName::TimeTo99PercentServed, 120.0, "120 ms", "120 ms"),
        (HeadlineName::Answered, 50.0, "50.0 %", "50.0 %"),
        (HeadlineName::ConnectsPerSecond, 10.0, "10.0/s", "10.0/s"),
        (HeadlineName::FailedAttempts, 6.0, "6", "6"),
        (HeadlineName::MemoryDrift, -2048.0, "-2.0 KiB per hour", "每小时 -2.0 KiB"),
        (HeadlineName::LatencyDriftP50, 5.0, "+5 µs per hour", "每小时 +5 µs"),
    ] {
        assert_eq!(shown(Lang::En, name, Some(value)), english);
        assert_eq!(shown(Lang::Zh, name, Some(value)), chinese);
    }
    assert_eq!(shown(Lang::En, HeadlineName::LastWill, None), "never, or too little to tell");
    assert_eq!(shown(Lang::Zh, HeadlineName::LastWill, None), "从未达到，或样本太少");
    let slowest = Headline::new(HeadlineName::SlowestGroupP50, Some(1.0));
    let slowest = Headline { group: "pub".to_owned(), ..slowest };
    assert_eq!(Lang::En.headline(&slowest), "median latency of the slowest group (pub)");
    assert_eq!(Lang::Zh.headline(&slowest), "最慢组的延迟中位数（pub）");
}

#[test]
fn labels_of_a_record_without_data_stay_as_they_are() {
    let words = || "an old one".to_owned();
    let side = ComparisonSide { label: words(), ..ComparisonSide::default() };
    let row = FigureRow { name: "e2e_p42".to_owned(), label: words(), ..FigureRow::default() };
    let difference =
        Difference { name: words(), values: vec![words(); 2], ..Difference::default() };
    let (condition, reasons) = (words(), vec![words()]);
    let result = ConditionResult { condition, reasons, ..ConditionResult::default() };
    let capacity = Capacity { ending: words(), ..Capacity::default() };
    let recommendation = Recommendation { method: words(), ..Recommendation::default() };
    let slowest = HeadlineName::SlowestGroupP50;
    let without_group = Headline { label: words(), ..Headline::new(slowest, None) };
    let (name, unit) = ("speed".to_owned(), HeadlineUnit::Other("knots".to_owned()));
    let unknown = Headline { name, label: words(), unit, value: Some(1.5), ..Headline::default() };
    for lang in Lang::ALL {
        assert_eq!(lang.side_of(&side), words());
        assert_eq!(lang.figure_of(&row), words());
        assert_eq!(lang.figure_named(&row.name), "e2e_p42");
        assert_eq!(lang.difference_name(&difference), words());
        assert_eq!(lang.difference_values(&difference), [words(), words()]);
        assert_eq!(lang.condition_of(&result), words());
        assert_eq!(lang.condition_reasons(&result), [words()]);
        assert_eq!(lang.ending(&capacity), words());
        assert_eq!(lang.found_by(&recommendation), words());
        assert_eq!(lang.headline(&without_group), words());
        assert_eq!(lang.headline(&unknown), words());
        assert_eq!(lang.headline_value(&unknown), "1.50 knots");
        assert_eq!(lang.description("An old one.", ""), "An old one.");
    }
    assert_eq!(Lang::Zh.description("A new one.", "新的。"), "新的。");
}

#[test]
fn a_comparison_is_told_from_its_data() {
    let property_values = vec![vec![], vec![PropertyValue::No, PropertyValue::Yes]];
    let property = Some(Property::CertificateVerified { target: String::new() });
    let difference = Difference { property, property_values, ..Difference::default() };
    let causes = labels::condition_causes().into_iter().take(1).collect();
    let requirement = labels::requirements().into_iter().next();
    let result = ConditionResult { requirement, causes, ..ConditionResult::default() };
    let what = labels::side_labels().into_iter().next();
    let row = FigureRow { name: "tps".to_owned(), ..FigureRow::default() };
    let mut comparison = Comparison {
        sides: vec![ComparisonSide { what, ..ComparisonSide::default() }],
        environment: vec![difference],
        conditions: vec![result],
        points: vec![tacho_record::Point { figures: vec![row], ..Default::default() }],
        ..Comparison::default()
    };
    crate::tell_comparison(&mut comparison);
    assert_eq!(comparison.sides[0].label, "Tacho's own broker");
    assert_eq!(comparison.points[0].figures[0].label, "messages in + out");
    let difference = &comparison.environment[0];
    assert_eq!(difference.name, "certificate verified");
    let values = Lang::Zh.difference_values(difference);
    assert_eq!((difference.values[1].as_str(), values[1].as_str()), ("no / yes", "否 / 是"));
    assert_eq!(values[0], "–");
    let result = &comparison.conditions[0];
    assert_eq!(result.condition, "fail if worse");
    assert_eq!(result.reasons, ["b is worse in latency, 99th percentile: +30.0 %"]);
    let chinese = Lang::Zh.condition_was(result);
    assert_eq!(chinese, "变差即失败：无法判断：b 的延迟的第 99 百分位更差：+30.0 %");
}

#[test]
fn kinds_of_actions_and_phases_have_words_in_both_languages() {
    for kind in ActionKind::ALL {
        assert_eq!(Lang::En.action_kind(&kind), kind.as_str());
        assert!(is_chinese(Lang::Zh.action_kind(&kind)), "{kind:?}");
    }
    for kind in PhaseKind::ALL {
        assert_eq!(Lang::En.phase(&kind.into()), kind.name());
        assert!(is_chinese(&Lang::Zh.phase(&kind.into())), "{kind:?}");
    }
    // Words of other versions stay as they are.
    for lang in Lang::ALL {
        assert_eq!(lang.action_kind(&ActionKind::Other("freeze".to_owned())), "freeze");
        assert_eq!(lang.phase(&PhaseName::Other("rest".to_owned())), "rest");
    }
}

#[test]
fn an_action_is_told_in_both_languages_and_that_of_an_old_record_as_it_is() {
    let old = ActionRecord {
        kind: ActionKind::Run,
        what: "run: date".to_owned(),
        error: "ended: it took too long".to_owned(),
        length_s: Some(0.5),
        ..ActionRecord::default()
    };
    for lang in Lang::ALL {
        assert_eq!(lang.what_happened(&old), "run: date");
        let followed = lang.consequences(&old.consequences());
        assert!(followed.starts_with("ended: it took too long"), "{followed}");
    }
    let command = ActionEffect::RunCommand { command: "date".to_owned() };
    let new = ActionRecord {
        effect: Some(command),
        cut_short: Some(CutShort::TimedOut),
        what: String::new(),
        error: String::new(),
        ..old
    };
    assert_eq!(Lang::Zh.what_happened(&new), "命令：date");
    assert_eq!(Lang::Zh.consequences(&new.consequences()), "因超时被终止；用时 0.50 秒");
    // The record has the English sentences beside the data.
    let mut record = tacho_record::RunRecord { actions: vec![new], ..Default::default() };
    crate::tell(&mut record);
    assert_eq!(record.actions[0].what, "run: date");
    assert_eq!(record.actions[0].error, "ended: it took too long");
}

#[test]
fn sentences_of_a_record_without_data_stay_as_they_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/version1");
    let record = tacho_record::read_record(std::path::Path::new(path)).expect("reads");
    let mut record = record.expect("is there");
    record.reasons = vec!["an old reason".to_owned()];
    let before = record.clone();
    crate::tell(&mut record);
    assert_eq!(record, before);
    for lang in Lang::ALL {
        assert_eq!(lang.notes(&record.notes, &record.remarks), record.notes);
        assert_eq!(lang.reasons(&record.reasons, &record.causes), record.reasons);
        for finding in &record.findings {
            assert_eq!(lang.finding(finding), finding.sentence);
        }
    }
}
