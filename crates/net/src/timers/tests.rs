use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;

fn fire(wheel: &mut Wheel, now_ns: u64) -> Vec<u64> {
    let due = wheel.advance(now_ns);
    (0..due).filter_map(|_| wheel.pop()).collect()
}

#[test]
fn timers_fire_in_the_order_of_their_deadlines() {
    let mut wheel = Wheel::new(5_000 * MS);
    for delay_ms in [90, 3, 4_000_000, 70, 1, 64, 65, 5_000, 3_600_000] {
        wheel.set((5_000 + delay_ms) * MS, delay_ms);
    }
    let fired = fire(&mut wheel, 10_000_000 * MS);
    assert_eq!(fired, [1, 3, 64, 65, 70, 90, 5_000, 3_600_000, 4_000_000]);
    assert_eq!(wheel.next_ns(), u64::MAX);
}

#[test]
fn deadlines_within_one_tick_keep_their_order() {
    let mut wheel = Wheel::new(0);
    for deadline_ns in [900, 100, 500, 300] {
        wheel.set(7 * MS + deadline_ns, deadline_ns);
    }
    assert_eq!(fire(&mut wheel, 20 * MS), [100, 300, 500, 900]);
}

#[test]
fn a_timer_in_the_past_fires_at_the_next_turn() {
    let mut wheel = Wheel::new(1_000 * MS);
    assert!(fire(&mut wheel, 2_000 * MS).is_empty());
    wheel.set(3, 1);
    assert!(wheel.next_ns() <= 2_000 * MS);
    assert_eq!(fire(&mut wheel, 2_000 * MS), [1]);
}

#[test]
fn the_resolution_is_about_a_millisecond() {
    let mut wheel = Wheel::new(0);
    for deadline_ns in (0..200).map(|step| step * 333_333) {
        wheel.set(deadline_ns, deadline_ns);
        let wake_ns = wheel.next_ns().max(deadline_ns);
        assert!(wake_ns - deadline_ns <= 1 << TICK_SHIFT);
        assert_eq!(fire(&mut wheel, wake_ns), [deadline_ns]);
    }
}

#[test]
fn cancelled_timers_do_not_fire_and_their_ids_have_no_effect() {
    let mut wheel = Wheel::new(0);
    let first = wheel.set(10 * MS, 1);
    let second = wheel.set(10 * MS, 2);
    let third = wheel.set(10 * MS, 3);
    assert!(wheel.cancel(second));
    assert!(!wheel.cancel(second));
    let reused = wheel.set(11 * MS, 4);
    assert!(!wheel.cancel(second));
    assert_eq!(fire(&mut wheel, 20 * MS), [1, 3, 4]);
    for id in [first, third, reused] {
        assert!(!wheel.cancel(id));
    }
}

#[test]
fn a_due_timer_can_still_be_cancelled() {
    let mut wheel = Wheel::new(0);
    wheel.set(10 * MS, 1);
    let second = wheel.set(10 * MS, 2);
    assert_eq!(wheel.advance(20 * MS), 2);
    assert_eq!(wheel.pop(), Some(1));
    assert!(wheel.cancel(second));
    let third = wheel.set(20 * MS, 3);
    assert_eq!(wheel.pop(), None);
    assert!(wheel.cancel(third));
    assert!(fire(&mut wheel, 40 * MS).is_empty());
}

#[test]
fn timers_in_days_and_in_centuries_are_kept() {
    let mut wheel = Wheel::new(0);
    let day_ns = 86_400_000 * MS;
    wheel.set(u64::MAX, 9);
    wheel.set(30 * day_ns, 1);
    assert!(fire(&mut wheel, 30 * day_ns - 1).is_empty());
    assert_eq!(fire(&mut wheel, 30 * day_ns + 2 * MS), [1]);
    assert!(wheel.next_ns() > 30 * day_ns);
}

#[test]
fn a_distant_timer_causes_few_wake_ups() {
    let mut wheel = Wheel::new(12_345 * MS);
    wheel.set(86_412_345 * MS, 1);
    let mut wakes = 0;
    while wheel.next_ns() != u64::MAX {
        wakes += 1;
        let next_ns = wheel.next_ns();
        fire(&mut wheel, next_ns);
    }
    assert!(wakes <= LEVELS, "{wakes}");
}

#[test]
fn entries_are_reused() {
    let mut wheel = Wheel::new(0);
    for turn in 0..10_000 {
        let id = wheel.set(turn * MS + 50 * MS, turn);
        wheel.cancel(id);
        wheel.set(turn * MS + MS, turn);
        fire(&mut wheel, turn * MS);
    }
    assert!(wheel.entries.len() < 10);
}

/// Calls until all that is due has fired, each of which moves a bounded number.
fn fire_in_pieces(wheel: &mut Wheel, now_ns: u64) -> (Vec<u64>, usize) {
    let (mut fired, mut calls) = (Vec::new(), 0);
    while wheel.next_ns() <= now_ns {
        calls += 1;
        let before = fired.len();
        fired.extend(fire(wheel, now_ns));
        assert!(fired.len() - before <= MOVES_MAX);
    }
    (fired, calls)
}

#[test]
fn a_million_timers_of_one_moment_fire_in_pieces_and_none_is_lost() {
    let mut wheel = Wheel::new(0);
    let count = 20 * MOVES_MAX as u64;
    // Level 2: they move down twice.
    let deadline_ns = 30_000 * MS;
    let ids: Vec<TimerId> = (0..count).map(|token| wheel.set(deadline_ns, token)).collect();
    wheel.set(deadline_ns + 10 * MS, count);
    let (mut fired, calls) = fire_in_pieces(&mut wheel, deadline_ns - MS);
    assert!(fired.is_empty() && calls >= 20, "{calls}");
    // One that is cancelled half-way, and one that is set then.
    fired.extend(fire(&mut wheel, deadline_ns + MS));
    assert!(wheel.cancel(ids[count as usize - 1]) && !wheel.cancel(ids[0]));
    wheel.set(deadline_ns, count + 1);
    fired.extend(fire_in_pieces(&mut wheel, deadline_ns + 2 * MS).0);
    fired.sort_unstable();
    let expected: Vec<u64> = (0..count - 1).chain([count + 1]).collect();
    assert_eq!(fired, expected);
    assert_eq!(fire_in_pieces(&mut wheel, deadline_ns + 20 * MS).0, [count]);
    assert_eq!((wheel.next_ns(), wheel.opened), (u64::MAX, None));
}

#[test]
fn a_slot_that_was_emptied_while_it_moved_down_is_used_again() {
    let mut wheel = Wheel::new(0);
    let (count, deadline_ns) = (MOVES_MAX as u64 + 1, 3_000 * MS);
    let ids: Vec<TimerId> = (0..count).map(|token| wheel.set(deadline_ns, token)).collect();
    let next_ns = wheel.next_ns();
    wheel.advance(next_ns);
    assert!(wheel.opened.is_some());
    assert!(ids.into_iter().all(|id| wheel.cancel(id)));
    wheel.set(deadline_ns + (1 << (TICK_SHIFT + 12)), 7);
    assert!(fire(&mut wheel, deadline_ns).is_empty());
    assert_eq!(fire(&mut wheel, 2 * deadline_ns + (1 << (TICK_SHIFT + 12))), [7]);
}

#[derive(Clone, Debug)]
enum Step {
    Set { delay_ns: u64 },
    Cancel { which: usize },
    Wait { ns: u64 },
    WaitForNext,
}

fn step() -> impl Strategy<Value = Step> {
    let delay_ns = prop_oneof![0..5 * MS, 0..200 * MS, 0..100_000 * MS, 0..u64::MAX / 1024];
    prop_oneof![
        4 => delay_ns.prop_map(|delay_ns| Step::Set { delay_ns }),
        1 => any::<usize>().prop_map(|which| Step::Cancel { which }),
        2 => prop_oneof![0..3 * MS, 0..300 * MS, 0..1_000_000 * MS].prop_map(|ns| Step::Wait { ns }),
        2 => Just(Step::WaitForNext),
    ]
}

proptest! {
    #[test]
    fn the_wheel_agrees_with_a_sorted_map(
        start_ns in 0..u64::MAX / 4,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut now_ns = start_ns;
        let mut wheel = Wheel::new(now_ns);
        // By deadline rounded up to a tick, then by deadline.
        let mut expected: BTreeMap<(u64, u64), TimerId> = BTreeMap::new();
        let mut names: Vec<(TimerId, u64)> = Vec::new();
        let mut token = 0;
        for step in steps {
            match step {
                Step::Set { delay_ns } => {
                    token += 1;
                    let deadline_ns = now_ns + delay_ns;
                    let id = wheel.set(deadline_ns, token);
                    expected.insert((deadline_ns, token), id);
                    names.push((id, token));
                }
                Step::Cancel { which } => {
                    if !names.is_empty() {
                        let (id, token) = names[which % names.len()];
                        let found = expected.keys().find(|key| key.1 == token).copied();
                        prop_assert_eq!(wheel.cancel(id), found.is_some());
                        if let Some(key) = found {
                            expected.remove(&key);
                        }
                    }
                }
                Step::Wait { ns } => now_ns += ns,
                Step::WaitForNext => {
                    if wheel.next_ns() != u64::MAX {
                        now_ns = now_ns.max(wheel.next_ns());
                    }
                }
            }
            let due_until_ns = now_ns >> TICK_SHIFT << TICK_SHIFT;
            let mut due: Vec<u64> = Vec::new();
            while let Some((&(deadline_ns, token), _)) = expected.first_key_value()
                && deadline_ns <= due_until_ns
            {
                due.push(token);
                expected.pop_first();
            }
            let mut fired = fire(&mut wheel, now_ns);
            // Equal deadlines may fire in any order.
            fired.sort_unstable();
            due.sort_unstable();
            prop_assert_eq!(fired, due);
            if let Some((&(deadline_ns, _), _)) = expected.first_key_value() {
                prop_assert!(wheel.next_ns() > now_ns);
                prop_assert!(wheel.next_ns() <= deadline_ns.next_multiple_of(1 << TICK_SHIFT));
            } else {
                prop_assert_eq!(wheel.next_ns(), u64::MAX);
            }
        }
    }
}
