//! One step of a replay: does a topic match, and where may the next match be?

use std::cmp::Ordering;

use crate::level::Levels;

/// What [`visit`] found out about one topic.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Visit {
    pub(super) is_match: bool,
    pub(super) next: Next,
}

/// Where the replay goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// At the topic that follows; the place written is right behind the visited one.
    Successor,
    /// At the place written, somewhere behind the visited topic.
    Place,
    /// Nowhere: no later topic matches.
    End,
}

/// The least text that stands, as a suffix, behind everything below a level and before the next
/// level: the smallest character but `/` (see [`super::order::compare`]).
const BEHIND_SUBTREE: &str = "\0";

/// Visits `topic` on behalf of `filter`, which holds a wildcard, and writes to `place` the least
/// place behind `topic` where a topic that matches may stand.
pub(super) fn visit(filter: &str, topic: &str, place: &mut String) -> Visit {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        set_place(place, "", "%"); // The character behind '$'.
        return Visit { is_match: false, next: Next::Place };
    }
    let (filter_levels, topic_levels) = (Levels::new(filter), Levels::new(topic));
    let (mut filter_at, mut topic_at) = (0, 0);
    // Where the topic's level ends that the last '+' so far stands for.
    let mut plus_end = None;
    while !filter_levels.is_end(filter_at) {
        let (wanted, filter_next) = filter_levels.at(filter_at);
        if wanted == "#" {
            set_place(place, topic, "/");
            return Visit { is_match: true, next: Next::Successor };
        }
        if topic_levels.is_end(topic_at) {
            set_place(place, topic, "/");
            if wanted != "+" {
                place.push_str(wanted);
            }
            return Visit { is_match: false, next: Next::Place };
        }
        let (level, topic_next) = topic_levels.at(topic_at);
        if wanted == "+" {
            plus_end = Some(topic_at as usize + level.len());
        } else {
            match level.cmp(wanted) {
                Ordering::Equal => {}
                Ordering::Less => {
                    set_place(place, &topic[..topic_at as usize], wanted);
                    return Visit { is_match: false, next: Next::Place };
                }
                Ordering::Greater => {
                    return Visit { is_match: false, next: behind_plus(topic, plus_end, place) };
                }
            }
        }
        (filter_at, topic_at) = (filter_next, topic_next);
    }
    let is_match = topic_levels.is_end(topic_at);
    Visit { is_match, next: behind_plus(topic, plus_end, place) }
}

/// Goes on behind the subtree that the last `+` stood for; without a `+` there is no other one.
fn behind_plus(topic: &str, plus_end: Option<usize>, place: &mut String) -> Next {
    match plus_end {
        Some(end) => {
            set_place(place, &topic[..end], BEHIND_SUBTREE);
            Next::Place
        }
        None => Next::End,
    }
}

fn set_place(place: &mut String, start: &str, end: &str) {
    place.clear();
    place.push_str(start);
    place.push_str(end);
}
