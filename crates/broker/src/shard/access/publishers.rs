//! Clients that publish to many topics: their rules, made ready.
//!
//! [Decisions](super::decisions) are remembered per topic. A client with more topics than there are
//! places would have all its rules asked with each message; the rules of such a client are prepared
//! once. A table of fixed size: a client takes the place that its slot says from one that was
//! decided about less often.

use tacho_access::PublishRules;

use crate::keys::SessionSlot;

/// A power of two.
const PLACES: usize = 64;
/// Decisions about a client after which its rules are made ready.
const DECISIONS_MIN: u8 = 64;

/// A session, with the client that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Publisher {
    pub(super) slot: SessionSlot,
    /// Of the session.
    pub(super) generation: u32,
    /// Of the client that the session has.
    pub(super) identity: u32,
}

/// By place.
#[derive(Default)]
pub(super) struct Publishers {
    /// Empty until the first decision.
    places: Vec<PublisherPlace>,
}

#[derive(Clone)]
struct PublisherPlace {
    publisher: Publisher,
    /// Decisions about it, less those about others of this place; at most twice the minimum.
    decisions: u8,
    rules: Option<Box<PublishRules>>,
}

impl Publishers {
    /// The rules of a client, if they were made ready.
    #[inline]
    pub(super) fn rules(&mut self, publisher: Publisher) -> Option<&PublishRules> {
        let place = self.places.get_mut(index(publisher))?;
        if place.publisher != publisher {
            return None;
        }
        let rules = place.rules.as_deref()?;
        place.decisions = (place.decisions + 1).min(2 * DECISIONS_MIN);
        Some(rules)
    }

    /// Counts a decision that was not remembered; true if the rules of the client should be made
    /// ready.
    pub(super) fn decided(&mut self, publisher: Publisher) -> bool {
        let place = |publisher, decisions| PublisherPlace { publisher, decisions, rules: None };
        if self.places.is_empty() {
            let none = Publisher { slot: SessionSlot::NONE, generation: 0, identity: 0 };
            self.places = vec![place(none, 0); PLACES];
        }
        let new = place(publisher, 1);
        let place = &mut self.places[index(publisher)];
        if place.publisher == publisher {
            // Once: of some clients they are not made ready.
            place.decisions = (place.decisions + 1).min(2 * DECISIONS_MIN);
            return place.decisions == DECISIONS_MIN;
        }
        match place.decisions.checked_sub(1) {
            Some(left) => place.decisions = left,
            None => *place = new,
        }
        false
    }

    /// The rules of a client, if it still has its place.
    pub(super) fn keep(&mut self, publisher: Publisher, rules: PublishRules) {
        let place = self.places.get_mut(index(publisher));
        if let Some(place) = place.filter(|place| place.publisher == publisher) {
            place.rules = Some(Box::new(rules));
        }
    }

    /// The rules are others.
    pub(super) fn clear(&mut self) {
        self.places = Vec::new();
    }
}

fn index(publisher: Publisher) -> usize {
    publisher.slot.index() & (PLACES - 1)
}

#[cfg(test)]
mod tests {
    use tacho_access::{RuleSet, Who};

    use super::*;

    fn publisher(slot: u32, generation: u32, identity: u32) -> Publisher {
        Publisher { slot: SessionSlot::new(slot), generation, identity }
    }

    fn rules() -> PublishRules {
        let rules = RuleSet::parse("r", "", None).expect("valid");
        rules.publish_rules(&Who::new(None, "c")).expect("few filters")
    }

    #[test]
    fn rules_are_made_ready_once_and_for_one_client_of_a_session() {
        let mut publishers = Publishers::default();
        let one = publisher(3, 1, 1);
        let asked: Vec<bool> = (0..300).map(|_| publishers.decided(one)).collect();
        assert_eq!(asked.iter().filter(|&&is_ready| is_ready).count(), 1);
        assert!(asked[usize::from(DECISIONS_MIN) - 1]);
        assert!(publishers.rules(one).is_none());
        publishers.keep(one, rules());
        assert!(publishers.rules(one).is_some());
        for other in [publisher(4, 1, 1), publisher(3, 2, 1), publisher(3, 1, 2)] {
            assert!(publishers.rules(other).is_none(), "{other:?}");
        }
        publishers.clear();
        assert!(publishers.rules(one).is_none());
    }

    #[test]
    fn a_client_that_is_decided_about_more_often_takes_the_place() {
        let mut publishers = Publishers::default();
        let (one, other) = (publisher(3, 1, 1), publisher(3 + PLACES as u32, 1, 1));
        for _ in 0..=DECISIONS_MIN {
            publishers.decided(one);
        }
        publishers.keep(one, rules());
        for _ in 0..DECISIONS_MIN {
            assert!(!publishers.decided(other));
        }
        assert!(publishers.rules(one).is_some(), "it keeps its place");
        while !publishers.decided(other) {}
        assert!(publishers.rules(one).is_none());
        publishers.keep(one, rules());
        assert!(publishers.rules(other).is_none(), "rules of another client are not kept");
    }
}
