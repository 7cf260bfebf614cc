use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn new(skipped: u64) -> Observation {
    Observation::New { skipped }
}

const fn inside(inside: bool) -> Mark {
    Mark { inside, absence: Absence::None }
}

fn settle(tracker: &mut Tracker, to: u64) -> Vec<Hole> {
    let mut holes = Vec::new();
    tracker.settle(to, Mark::default(), |hole| holes.push(hole));
    holes
}

#[test]
fn complete_stream_has_no_holes() {
    let mut tracker = Tracker::default();
    assert!((0..100).all(|seq| tracker.observe(seq, inside(false)) == new(0)));
    assert_eq!(settle(&mut tracker, 100), []);
}

#[test]
fn loss_duplicate_and_disorder_are_distinguished() {
    let mut tracker = Tracker::default();
    assert_eq!(tracker.observe(0, inside(false)), new(0));
    assert_eq!(tracker.observe(4, inside(false)), new(3));
    assert_eq!(tracker.observe(4, inside(false)), Observation::Duplicate);
    assert_eq!(tracker.observe(2, inside(false)), Observation::OutOfOrder);
    assert_eq!(tracker.observe(2, inside(false)), Observation::Duplicate);
    assert_eq!(tracker.observe(0, inside(false)), Observation::Duplicate);
    let lost = [Hole::exact(1, 2), Hole::exact(3, 4), Hole::exact(5, 7)];
    assert_eq!(settle(&mut tracker, 7), lost);
}

#[test]
fn messages_after_the_books_are_closed_are_late() {
    let mut tracker = Tracker::default();
    assert_eq!(settle(&mut tracker, 3), [Hole::exact(0, 3)]);
    assert_eq!(tracker.observe(1, inside(false)), Observation::Late);
    assert_eq!(tracker.observe(3, inside(false)), new(0));
    assert_eq!(settle(&mut tracker, 4), []);
}

#[test]
fn sequence_numbers_wrap_around() {
    let mut tracker = Tracker { next: u64::from(u32::MAX), ..Tracker::default() };
    assert_eq!(tracker.observe(u32::MAX, inside(false)), new(0));
    assert_eq!(tracker.observe(1, inside(false)), new(1));
    assert_eq!(tracker.observe(0, inside(false)), Observation::OutOfOrder);
    assert_eq!(tracker.observe(u32::MAX, inside(false)), Observation::Duplicate);
    assert_eq!(tracker.next, (1 << 32) + 2);
}

#[test]
fn endless_loss_is_counted_in_bounded_memory() {
    let mut tracker = Tracker::default();
    let sent = 20_000;
    for seq in (0..sent).step_by(2) {
        tracker.observe(seq, inside(false));
    }
    assert_eq!(tracker.holes.as_ref().map(|holes| holes.len()), Some(HOLES_MAX));
    let holes = settle(&mut tracker, u64::from(sent));
    assert_eq!(holes.iter().map(|hole| hole.lost).sum::<u64>(), u64::from(sent) / 2);
}

proptest! {
    /// Compares with a set of all received messages, for any order of deliveries.
    #[test]
    fn agrees_with_the_set_of_seen_messages(deliveries in prop::collection::vec(0u32..60, 0..120)) {
        let mut tracker = Tracker::default();
        let mut seen = BTreeSet::new();
        for &seq in &deliveries {
            let expected = if seen.contains(&seq) {
                Observation::Duplicate
            } else if seen.last().is_some_and(|last| *last > seq) {
                Observation::OutOfOrder
            } else {
                new(u64::from(seq) - seen.last().map_or(0, |last| u64::from(*last) + 1))
            };
            prop_assert_eq!(tracker.observe(seq, inside(false)), expected);
            seen.insert(seq);
        }
        let holes = settle(&mut tracker, 60);
        let lost: Vec<u64> = holes.iter().flat_map(|hole| hole.from..hole.to).collect();
        let expected: Vec<u64> =
            (0..60).filter(|seq| !seen.contains(&(*seq as u32))).collect();
        prop_assert_eq!(lost, expected);
        prop_assert!(holes.iter().all(|hole| hole.lost == hole.to - hole.from));
        prop_assert!(holes.windows(2).all(|pair| pair[0].to < pair[1].from));
    }

    #[test]
    fn widen_finds_the_nearest(near in 0u64..1 << 40, distance in -1_000_000i64..1_000_000) {
        if let Some(wide) = near.checked_add_signed(distance) {
            prop_assert_eq!(widen(wide as u32, near), wide);
        }
    }
}

#[test]
fn merging_keeps_losses_inside_and_outside_the_window_separate() {
    let mut tracker = Tracker::default();
    for seq in (1..20_000).step_by(2) {
        tracker.observe(seq, inside(seq > 5_000));
    }
    let holes = settle(&mut tracker, 20_000);
    let lost = |inside| -> u64 {
        holes.iter().filter(|hole| hole.mark.inside == inside).map(|hole| hole.lost).sum()
    };
    assert_eq!((lost(false), lost(true)), (2_500, 7_500));
}
