use proptest::prelude::*;

use super::*;
use crate::plan::{Arrivals, Rate, RateFrom, Trace};

const ALONE: Place = Place { ordinal: 0, siblings: 1, seed: 0 };
const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn open(rate: Rate, phase: PhasePolicy) -> Pace {
    Pace::Open { rate, phase, catch_up: CatchUp::CatchUp }
}

fn schedule(rate: Rate) -> Schedule {
    start(1_000, &open(rate, PhasePolicy::Aligned), ALONE)
}

fn start(start_ns: u64, pace: &Pace, place: Place) -> Schedule {
    Schedule::new(start_ns, pace, Scale::ONE, place, true).expect("is open")
}

/// Intended times before `end_ns`, each taken on time.
fn times(mut schedule: Schedule, end_ns: u64) -> Vec<u64> {
    let mut times = Vec::new();
    while schedule.next_ns() < end_ns {
        let due = schedule.take(schedule.next_ns(), CatchUp::CatchUp).expect("is due");
        times.push(due.intended_ns);
    }
    times
}

/// Intended time of message `index`.
fn due_ns(schedule: &Schedule, index: u64) -> u64 {
    schedule.pattern.next_ns(index)
}

#[test]
fn uneven_rates_never_drift() {
    // 3 per second is 333,333,333.3 ns; exact even after a year.
    let schedule = schedule(Rate { messages: 3, per_ns: 1_000_000_000 });
    assert_eq!(due_ns(&schedule, 1), 1_000 + 333_333_333);
    assert_eq!(due_ns(&schedule, 3), 1_000 + 1_000_000_000);
    let year = 365 * 86_400;
    assert_eq!(due_ns(&schedule, 3 * year), 1_000 + year * 1_000_000_000);
}

#[test]
fn total_rate_is_shared_exactly() {
    // 10,000/s over 1,001 streams, for 1001 s: every stream sends exactly 10,000.
    let schedule = schedule(Rate::per_second_shared(10_000, 1_001));
    assert_eq!(schedule.remaining_before(1_000 + 1_001_000_000_000), 10_000);
}

#[test]
fn uniform_phases_divide_the_period() {
    let starts: Vec<u64> = (0..4)
        .map(|i| {
            let pace = open(Rate::every_ns(1_000), PhasePolicy::Uniform);
            start(0, &pace, Place { ordinal: i, siblings: 4, seed: 0 }).next_ns()
        })
        .collect();
    assert_eq!(starts, [0, 250, 500, 750]);
}

#[test]
fn random_phases_are_seeded_and_within_the_period() {
    let first = |seed, ordinal| {
        let pace = open(Rate::every_ns(1_000_000), PhasePolicy::Random);
        start(0, &pace, Place { ordinal, siblings: 100, seed }).next_ns()
    };
    assert!((0..100).all(|index| first(1, index) < 1_000_000));
    assert_eq!(first(1, 5), first(1, 5));
    assert_ne!(first(1, 5), first(2, 5));
    assert_ne!(first(1, 5), first(1, 6));
}

#[test]
fn scale_multiplies_the_rate() {
    let double = Scale { num: 2, den: 1 };
    let pace = open(Rate::every_ns(1_000), PhasePolicy::Aligned);
    let schedule = Schedule::new(0, &pace, double, ALONE, true).expect("is open");
    assert_eq!(due_ns(&schedule, 1), 500);
}

#[test]
fn catch_up_sends_everything_late() {
    let mut schedule = schedule(Rate::every_ns(10));
    let sent: Vec<Due> = std::iter::from_fn(|| schedule.take(1_025, CatchUp::CatchUp)).collect();
    let due = |intended_ns| Due { intended_ns, skipped: 0 };
    assert_eq!(sent, [due(1_000), due(1_010), due(1_020)]);
}

#[test]
fn skip_sends_the_latest_and_counts_the_rest() {
    let mut schedule = schedule(Rate::every_ns(10));
    assert_eq!(schedule.take(999, CatchUp::Skip), None);
    assert_eq!(schedule.take(1_025, CatchUp::Skip), Some(Due { intended_ns: 1_020, skipped: 2 }));
    assert_eq!(schedule.take(1_029, CatchUp::Skip), None);
    assert_eq!(schedule.take(1_030, CatchUp::Skip), Some(Due { intended_ns: 1_030, skipped: 0 }));
}

#[test]
fn a_ramp_starts_streams_one_after_another() {
    let pace = open(Rate::every_ns(SECOND), PhasePolicy::Ramp { step_ns: 20 * MS });
    let first = |ordinal| start(5, &pace, Place { ordinal, siblings: 3, seed: 0 }).next_ns();
    assert_eq!([0, 1, 2].map(first), [5, 5 + 20 * MS, 5 + 40 * MS]);
}

#[test]
fn bursts_are_due_together() {
    let pace = Pace::Bursts {
        messages: 3,
        period_ns: 100,
        phase: PhasePolicy::Aligned,
        catch_up: CatchUp::CatchUp,
    };
    assert_eq!(times(start(0, &pace, ALONE), 201), [0, 0, 0, 100, 100, 100, 200, 200, 200]);
    let mut burst = start(0, &pace, ALONE);
    assert_eq!(burst.remaining_before(1), 3);
    assert_eq!(burst.take(0, CatchUp::CatchUp), Some(Due { intended_ns: 0, skipped: 0 }));
    assert_eq!(burst.remaining_before(101), 5);
    assert_eq!(burst.take(100, CatchUp::Skip), Some(Due { intended_ns: 100, skipped: 4 }));
    assert_eq!(pace.per_second(), Some(3e7));
}

#[test]
fn poisson_arrivals_have_the_exact_mean_and_exponential_gaps() {
    let pace = Pace::Poisson { rate: Rate::every_ns(MS), catch_up: CatchUp::CatchUp };
    let place = Place { ordinal: 3, siblings: 9, seed: 42 };
    let arrivals = times(start(SECOND, &pace, place), SECOND + 100 * 256 * MS);
    assert_eq!(arrivals.len(), 25_600);
    assert!(arrivals.is_sorted());
    let gaps: Vec<f64> = arrivals.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    let share =
        |over: f64| gaps.iter().filter(|gap| **gap > over).count() as f64 / gaps.len() as f64;
    // P(gap > x) = e^-x; five standard deviations of so many draws are below 0.016.
    for over in [0.1f64, 0.5, 1.0, 2.0, 4.0] {
        assert!((share(over) - (-over).exp()).abs() < 0.016, "{over}: {}", share(over));
    }
    assert_eq!(arrivals, times(start(SECOND, &pace, place), SECOND + 100 * 256 * MS));
    let other = Place { ordinal: 4, ..place };
    assert_ne!(arrivals[0], times(start(SECOND, &pace, other), 2 * SECOND)[0]);
}

#[test]
fn a_recorded_trace_is_repeated_and_shared() {
    let trace =
        Trace { arrivals: Arrivals::Offsets(vec![0, 10, 15]), repeat_ns: Some(20), shared_by: 1 };
    let pace = |trace: &Trace| Pace::Trace {
        trace: std::sync::Arc::new(trace.clone()),
        catch_up: CatchUp::CatchUp,
    };
    assert_eq!(times(start(100, &pace(&trace), ALONE), 140), [100, 110, 115, 120, 130, 135]);
    let once = Trace { repeat_ns: None, ..trace.clone() };
    assert_eq!(times(start(100, &pace(&once), ALONE), u64::MAX), [100, 110, 115]);
    let shared = Trace { shared_by: 2, ..trace };
    let second = Place { ordinal: 1, siblings: 2, seed: 0 };
    assert_eq!(times(start(0, &pace(&shared), ALONE), 40), [0, 15, 30]);
    assert_eq!(times(start(0, &pace(&shared), second), 40), [10, 20, 35]);
    assert_eq!(shared.per_second(), 75_000_000.0);
}

#[test]
fn a_drawn_trace_follows_its_rates() {
    let rate = |from_s: u64, per_second| RateFrom { from_ns: from_s * SECOND, per_second };
    let trace = Trace {
        arrivals: Arrivals::Rates(vec![rate(0, 10.0), rate(1, 0.0), rate(2, 100.0)]),
        repeat_ns: Some(3 * SECOND),
        shared_by: 1,
    };
    let pace = Pace::Trace { trace: std::sync::Arc::new(trace), catch_up: CatchUp::CatchUp };
    let schedule = start(0, &pace, ALONE);
    for (end_s, count) in [(1, 10), (2, 10), (3, 110), (4, 120), (6, 220), (300, 11_000)] {
        assert_eq!(schedule.remaining_before(end_s * SECOND), count, "until {end_s} s");
    }
    assert_eq!(schedule.pattern.next_ns(10), 2 * SECOND);
    assert!((pace.per_second().expect("is open") - 110.0 / 3.0).abs() < 1e-9);
}

/// The guide's 1000 publishers at 15,000/s: 4 ms steps for 3.999 ms wanted would be exact, but
/// JMeter rounds 66.67 ms to 67.
#[test]
fn jmeter_rounds_to_milliseconds() {
    let pace = |per_second: f64, threads| Pace::Jmeter {
        per_minute: per_second * 60.0,
        threads,
        ramp_ns: 0,
        wait: false,
    };
    let total = |per_second, threads: u32| {
        let each = pace(per_second, threads).per_second().expect("has a rate");
        (each * f64::from(threads)).round()
    };
    assert_eq!(total(10_000.0, 1_000), 10_000.0);
    assert_eq!(total(15_000.0, 1_000), 14_925.0);
    assert_eq!(total(30_000.0, 1_000), 30_303.0);
    assert_eq!(total(30_000.0, 500), 29_412.0);
    assert_eq!(total(7_500.0, 10), 10_000.0);
    let schedule = start(SECOND, &pace(15_000.0, 1_000), ALONE);
    let expected: Vec<u64> = (0..4).map(|i| SECOND + i * 67 * MS).collect();
    assert_eq!(times(schedule, SECOND + 4 * 67 * MS), expected);
}

#[test]
fn jmeter_gives_the_whole_rate_to_few_threads_during_ramp_up() {
    let pace = Pace::Jmeter { per_minute: 600.0, threads: 4, ramp_ns: 4 * SECOND, wait: false };
    let starts = [0, 1, 2, 3, 4].map(|ordinal| {
        start(SECOND, &pace, Place { ordinal, siblings: 8, seed: 0 }).next_ns() / SECOND
    });
    // The fifth stream is the first of the next group.
    assert_eq!(starts, [1, 2, 3, 4, 1]);
    let first = times(start(SECOND, &pace, ALONE), 7 * SECOND);
    let gaps: Vec<u64> = first.windows(2).map(|pair| (pair[1] - pair[0]) / MS).collect();
    // One thread: 10 per second. All four: one in 400 ms each.
    assert_eq!((gaps[0], gaps[10], *gaps.last().expect("many")), (100, 200, 400));
}

#[test]
fn jmeter_does_not_catch_up_and_waits_if_configured() {
    let pace = |wait| Pace::Jmeter { per_minute: 600.0, threads: 1, ramp_ns: 0, wait };
    let mut free = start(SECOND, &pace(false), ALONE);
    assert_eq!(free.take(SECOND, CatchUp::CatchUp).map(|due| due.intended_ns), Some(SECOND));
    let late_ns = SECOND + 350 * MS;
    let due = free.take(late_ns, CatchUp::CatchUp).expect("is due");
    assert_eq!((due.intended_ns, due.skipped), (SECOND + 100 * MS, 0));
    // 200 ms have also passed: due at once, and counted from there.
    assert_eq!(free.next_ns(), late_ns);
    free.take(late_ns, CatchUp::CatchUp).expect("is due");
    assert_eq!(free.next_ns(), late_ns + 100 * MS);
    let mut waiting = start(SECOND, &pace(true), ALONE);
    waiting.take(SECOND, CatchUp::CatchUp).expect("is due");
    assert_eq!(waiting.next_ns(), u64::MAX);
    assert!(waiting.acknowledged(SECOND + 30 * MS));
    assert_eq!(waiting.next_ns(), SECOND + 100 * MS);
    assert!(!waiting.acknowledged(SECOND + 31 * MS));
}

/// Any open pace, at about 1000 messages per second.
fn any_pace() -> impl Strategy<Value = Pace> {
    let catch_up = CatchUp::CatchUp;
    let rate = Rate { messages: 1_000, per_ns: SECOND };
    let trace = |arrivals, repeat_ns, shared_by| Pace::Trace {
        trace: std::sync::Arc::new(Trace { arrivals, repeat_ns, shared_by }),
        catch_up,
    };
    let rates = vec![
        RateFrom { from_ns: 0, per_second: 333.3 },
        RateFrom { from_ns: 700 * MS, per_second: 0.0 },
        RateFrom { from_ns: 800 * MS, per_second: 1_777.0 },
    ];
    prop_oneof![
        Just(open(rate, PhasePolicy::Uniform)),
        Just(Pace::Poisson { rate, catch_up }),
        Just(Pace::Bursts { messages: 7, period_ns: 7 * MS, phase: PhasePolicy::Random, catch_up }),
        Just(trace(Arrivals::Rates(rates.clone()), Some(SECOND), 1)),
        Just(trace(Arrivals::Rates(rates), None, 3)),
        Just(trace(Arrivals::Offsets((0..50).map(|i| i * i * 10_000).collect()), Some(40 * MS), 2)),
    ]
}

proptest! {
    #[test]
    fn due_times_are_within_a_nanosecond_of_the_ideal(
        messages in 1u64..10_000_000,
        per_ns in 1u64..100_000_000_000,
        index in 0u64..10_000_000_000,
    ) {
        let schedule = schedule(Rate { messages, per_ns });
        let exact = u128::from(index) * u128::from(per_ns) / u128::from(messages);
        prop_assume!(exact < 1 << 62);
        prop_assert_eq!(u128::from(due_ns(&schedule, index)), 1_000 + exact);
    }

    #[test]
    fn skip_and_catch_up_account_for_every_message(
        messages in 1u64..1_000, per_ns in 1u64..1_000_000,
        steps in prop::collection::vec(0u64..500_000, 1..30),
    ) {
        let rate = Rate { messages, per_ns };
        prop_assume!(per_ns / messages > 500);
        for policy in [CatchUp::CatchUp, CatchUp::Skip] {
            let mut schedule = schedule(rate);
            let mut now_ns = 1_000;
            let mut accounted = 0;
            for step in &steps {
                now_ns += step;
                while let Some(due) = schedule.take(now_ns, policy) {
                    prop_assert!(due.intended_ns <= now_ns);
                    accounted += 1 + due.skipped;
                }
                prop_assert_eq!(schedule.remaining_before(now_ns + 1), 0);
            }
            let fresh = self::schedule(rate);
            prop_assert_eq!(accounted, fresh.remaining_before(now_ns + 1));
        }
    }

    #[test]
    fn counting_agrees_with_taking(
        pace in any_pace(), ordinal in 0u64..5, seed in 0u64..100,
        skips in prop::collection::vec(0u64..700, 1..5),
        ends in prop::collection::vec(0u64..3_000, 1..5),
    ) {
        let place = Place { ordinal, siblings: 5, seed };
        let all = times(start(SECOND, &pace, place), 8 * SECOND);
        prop_assert!(all.is_sorted());
        let mut schedule = start(SECOND, &pace, place);
        let mut taken = 0;
        for (skip, end_ms) in skips.iter().zip(ends) {
            schedule.skip(*skip);
            taken += *skip as usize;
            if taken >= all.len() {
                break;
            }
            prop_assert_eq!(schedule.next_ns(), all[taken]);
            let end_ns = SECOND + end_ms * MS;
            let due = all[taken..].iter().filter(|at_ns| **at_ns < end_ns).count();
            prop_assert_eq!(schedule.remaining_before(end_ns), due as u64);
        }
    }
}
