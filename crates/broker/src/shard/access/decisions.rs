//! Decisions about topics that were made a short while ago.
//!
//! A table of fixed size: a decision takes the place that its hash says, whichever was there. It
//! costs no more with any number of sessions and topics, and holds no memory where there are no
//! rules.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use tacho_access::Access;

use crate::keys::SessionSlot;

/// A power of two.
const PLACES: usize = 1 << 14;
/// Longer topics are decided each time.
const TOPIC_BYTES_MAX: usize = 256;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    pub(super) slot: SessionSlot,
    /// Of the session.
    pub(super) generation: u32,
    pub(super) access: Access,
    pub(super) topic: &'a str,
}

#[derive(Default)]
pub(super) struct Decisions {
    /// Empty until the first decision.
    places: Vec<DecisionPlace>,
    hasher: RandomState,
}

#[derive(Clone)]
struct DecisionPlace {
    slot: SessionSlot,
    generation: u32,
    access: Access,
    is_allowed: bool,
    topic: String,
}

impl Decisions {
    /// The decision, if it is remembered.
    #[inline]
    pub(super) fn get(&self, asked: &Question<'_>) -> Option<bool> {
        let place = self.places.get(self.index(asked))?;
        let is_same = place.slot == asked.slot
            && place.generation == asked.generation
            && place.access == asked.access
            && place.topic == asked.topic;
        is_same.then_some(place.is_allowed)
    }

    pub(super) fn put(&mut self, asked: &Question<'_>, is_allowed: bool) {
        if asked.topic.len() > TOPIC_BYTES_MAX {
            return;
        }
        if self.places.is_empty() {
            let none = DecisionPlace {
                slot: SessionSlot::NONE,
                generation: 0,
                access: Access::Publish,
                is_allowed: false,
                topic: String::new(),
            };
            self.places = vec![none; PLACES];
        }
        let at = self.index(asked);
        let place = &mut self.places[at];
        (place.slot, place.generation) = (asked.slot, asked.generation);
        (place.access, place.is_allowed) = (asked.access, is_allowed);
        place.topic.clear();
        place.topic.push_str(asked.topic);
    }

    /// The rules, or the user of a session, are others.
    pub(super) fn clear(&mut self) {
        self.places = Vec::new();
    }

    #[inline]
    fn index(&self, asked: &Question<'_>) -> usize {
        let key = (asked.slot, asked.access, asked.topic);
        self.hasher.hash_one(key) as usize & (PLACES - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(slot: u32, generation: u32, access: Access, topic: &str) -> Question<'_> {
        Question { slot: SessionSlot::new(slot), generation, access, topic }
    }

    #[test]
    fn a_decision_is_for_one_session_access_and_topic() {
        let mut decisions = Decisions::default();
        let one = asked(1, 7, Access::Publish, "a");
        assert_eq!(decisions.get(&one), None);
        decisions.put(&one, true);
        assert_eq!(decisions.get(&one), Some(true));
        for other in [
            asked(2, 7, Access::Publish, "a"),
            asked(1, 8, Access::Publish, "a"),
            asked(1, 7, Access::Receive, "a"),
            asked(1, 7, Access::Publish, "b"),
        ] {
            assert_eq!(decisions.get(&other), None, "{other:?}");
        }
        decisions.put(&one, false);
        assert_eq!(decisions.get(&one), Some(false));
        decisions.clear();
        assert_eq!(decisions.get(&one), None);
    }

    #[test]
    fn any_number_of_topics_takes_the_same_places() {
        let mut decisions = Decisions::default();
        for number in 0..3 * PLACES {
            let topic = number.to_string();
            let one = asked(1, 1, Access::Receive, &topic);
            decisions.put(&one, number % 2 == 0);
            assert_eq!(decisions.get(&one), Some(number % 2 == 0));
        }
        let long = "x".repeat(TOPIC_BYTES_MAX + 1);
        decisions.put(&asked(1, 1, Access::Receive, &long), true);
        assert_eq!(decisions.get(&asked(1, 1, Access::Receive, &long)), None);
        assert_eq!(decisions.places.len(), PLACES);
    }
}
