//! Decisions about topics that were made a short while ago.
//!
//! A table of fixed size: a decision takes the place that its hash says, whichever was there. It
//! costs no more with any number of sessions and topics, and holds no memory where there are no
//! rules.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use tacho_access::PublishKinds;

use crate::keys::SessionSlot;

/// A power of two.
const PLACES: usize = 1 << 14;
/// Longer topics are decided each time.
const TOPIC_BYTES_MAX: usize = 256;

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Right {
    Publish,
    /// All kinds of messages or none.
    Receive,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    pub(super) slot: SessionSlot,
    /// Of the session.
    pub(super) generation: u32,
    /// Of the client that the session has.
    pub(super) identity: u32,
    pub(super) right: Right,
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
    identity: u32,
    right: Right,
    allowed: PublishKinds,
    topic: String,
}

impl Decisions {
    /// The decision, if it is remembered.
    #[inline]
    pub(super) fn get(&self, asked: &Question<'_>) -> Option<PublishKinds> {
        let place = self.places.get(self.index(asked))?;
        let is_same = place.slot == asked.slot
            && place.generation == asked.generation
            && place.identity == asked.identity
            && place.right == asked.right
            && place.topic == asked.topic;
        is_same.then_some(place.allowed)
    }

    pub(super) fn put(&mut self, asked: &Question<'_>, allowed: PublishKinds) {
        if asked.topic.len() > TOPIC_BYTES_MAX {
            return;
        }
        if self.places.is_empty() {
            let none = DecisionPlace {
                slot: SessionSlot::NONE,
                generation: 0,
                identity: 0,
                right: Right::Publish,
                allowed: PublishKinds::NONE,
                topic: String::new(),
            };
            self.places = vec![none; PLACES];
        }
        let at = self.index(asked);
        let place = &mut self.places[at];
        (place.slot, place.generation) = (asked.slot, asked.generation);
        (place.identity, place.right) = (asked.identity, asked.right);
        place.allowed = allowed;
        place.topic.clear();
        place.topic.push_str(asked.topic);
    }

    /// The rules are others.
    pub(super) fn clear(&mut self) {
        self.places = Vec::new();
    }

    #[inline]
    fn index(&self, asked: &Question<'_>) -> usize {
        let key = (asked.slot, asked.right, asked.topic);
        self.hasher.hash_one(key) as usize & (PLACES - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: PublishKinds = PublishKinds::ALL;

    fn asked(slot: u32, generation: u32, right: Right, topic: &str) -> Question<'_> {
        Question { slot: SessionSlot::new(slot), generation, identity: 3, right, topic }
    }

    #[test]
    fn a_decision_is_for_one_session_client_right_and_topic() {
        let mut decisions = Decisions::default();
        let one = asked(1, 7, Right::Publish, "a");
        assert_eq!(decisions.get(&one), None);
        decisions.put(&one, ALL);
        assert_eq!(decisions.get(&one), Some(ALL));
        for other in [
            asked(2, 7, Right::Publish, "a"),
            asked(1, 8, Right::Publish, "a"),
            asked(1, 7, Right::Receive, "a"),
            asked(1, 7, Right::Publish, "b"),
            Question { identity: 4, ..one },
        ] {
            assert_eq!(decisions.get(&other), None, "{other:?}");
        }
        decisions.put(&one, PublishKinds::NONE);
        assert_eq!(decisions.get(&one), Some(PublishKinds::NONE));
        decisions.clear();
        assert_eq!(decisions.get(&one), None);
    }

    #[test]
    fn any_number_of_topics_takes_the_same_places() {
        let mut decisions = Decisions::default();
        for number in 0..3 * PLACES {
            let topic = number.to_string();
            let one = asked(1, 1, Right::Receive, &topic);
            let allowed = [ALL, PublishKinds::NONE][number % 2];
            decisions.put(&one, allowed);
            assert_eq!(decisions.get(&one), Some(allowed));
        }
        let long = "x".repeat(TOPIC_BYTES_MAX + 1);
        decisions.put(&asked(1, 1, Right::Receive, &long), ALL);
        assert_eq!(decisions.get(&asked(1, 1, Right::Receive, &long)), None);
        assert_eq!(decisions.places.len(), PLACES);
    }
}
