//! One step of a replay: whether a topic matches, and where the next match may be.

use std::cmp::Ordering;

use crate::level::Levels;

/// The result of [`visit`] for one topic.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Visit {
    pub(super) is_match: bool,
    pub(super) next: Next,
}

/// Where the replay continues.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// At the next topic; the written position is directly behind the visited one.
    Successor,
    /// At the written position, somewhere behind the visited topic.
    Position,
    /// Nowhere: no later topic matches.
    End,
}

/// The smallest suffix that sorts behind everything below a level and before the next level: the
/// smallest character but `/` (see [`super::order::compare`]).
const BEHIND_SUBTREE: &str = "\0";

/// Examines `topic` for `filter`, which contains a wildcard, and writes to `position` the smallest
/// position behind `topic` where a matching topic may be.
pub(super) fn visit(filter: &str, topic: &str, position: &mut String) -> Visit {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        set_position(position, "", "%"); // The character behind '$'.
        return Visit { is_match: false, next: Next::Position };
    }
    let (filter_levels, topic_levels) = (Levels::new(filter), Levels::new(topic));
    let (mut filter_at, mut topic_at) = (0, 0);
    // The end of the topic's level that the last '+' so far matched.
    let mut plus_end = None;
    while !filter_levels.is_end(filter_at) {
        let (wanted, filter_next) = filter_levels.at(filter_at);
        if wanted == "#" {
            set_position(position, topic, "/");
            return Visit { is_match: true, next: Next::Successor };
        }
        if topic_levels.is_end(topic_at) {
            set_position(position, topic, "/");
            if wanted != "+" {
                position.push_str(wanted);
            }
            return Visit { is_match: false, next: Next::Position };
        }
        let (level, topic_next) = topic_levels.at(topic_at);
        if wanted == "+" {
            plus_end = Some(topic_at as usize + level.len());
        } else {
            match level.cmp(wanted) {
                Ordering::Equal => {}
                Ordering::Less => {
                    set_position(position, &topic[..topic_at as usize], wanted);
                    return Visit { is_match: false, next: Next::Position };
                }
                Ordering::Greater => {
                    return Visit { is_match: false, next: behind_plus(topic, plus_end, position) };
                }
            }
        }
        (filter_at, topic_at) = (filter_next, topic_next);
    }
    let is_match = topic_levels.is_end(topic_at);
    Visit { is_match, next: behind_plus(topic, plus_end, position) }
}

/// Continues behind the subtree that the last `+` matched; without a `+` there is no other one.
fn behind_plus(topic: &str, plus_end: Option<usize>, position: &mut String) -> Next {
    match plus_end {
        Some(end) => {
            set_position(position, &topic[..end], BEHIND_SUBTREE);
            Next::Position
        }
        None => Next::End,
    }
}

fn set_position(position: &mut String, start: &str, end: &str) {
    position.clear();
    position.push_str(start);
    position.push_str(end);
}
