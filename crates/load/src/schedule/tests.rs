use proptest::prelude::*;

use super::*;

const ALIGNED: Phase = Phase { num: 0, den: 1 };

fn schedule(rate: Rate) -> Schedule {
    Schedule::new(1_000, rate, Scale::ONE, ALIGNED)
}

#[test]
fn uneven_rates_never_drift() {
    // 3 per second: 333,333,333.3 ns; after a year of messages still exact.
    let schedule = schedule(Rate { messages: 3, per_ns: 1_000_000_000 });
    assert_eq!(schedule.due_ns(1), 1_000 + 333_333_333);
    assert_eq!(schedule.due_ns(3), 1_000 + 1_000_000_000);
    let year = 365 * 86_400;
    assert_eq!(schedule.due_ns(3 * year), 1_000 + year * 1_000_000_000);
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
            let phase = Phase::of(PhasePolicy::Uniform, i, 4, 0);
            Schedule::new(0, Rate::every_ns(1_000), Scale::ONE, phase).next_ns()
        })
        .collect();
    assert_eq!(starts, [0, 250, 500, 750]);
}

#[test]
fn random_phases_are_seeded_and_within_the_period() {
    let start = |seed, index| {
        let phase = Phase::of(PhasePolicy::Random, index, 100, seed);
        Schedule::new(0, Rate::every_ns(1_000_000), Scale::ONE, phase).next_ns()
    };
    assert!((0..100).all(|index| start(1, index) < 1_000_000));
    assert_eq!(start(1, 5), start(1, 5));
    assert_ne!(start(1, 5), start(2, 5));
    assert_ne!(start(1, 5), start(1, 6));
}

#[test]
fn scale_multiplies_the_rate() {
    let double = Scale { num: 2, den: 1 };
    let schedule = Schedule::new(0, Rate::every_ns(1_000), double, ALIGNED);
    assert_eq!(schedule.due_ns(1), 500);
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
        prop_assert_eq!(u128::from(schedule.due_ns(index)), 1_000 + exact);
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
            let fresh = Schedule { next: 0, ..schedule };
            prop_assert_eq!(accounted, fresh.remaining_before(now_ns + 1));
        }
    }
}
