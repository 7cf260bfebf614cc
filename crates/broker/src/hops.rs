//! How many bridges a message has passed: a count in a user property. No broker knows the bridges
//! of the others, but what circulates over several of them ends at the limit.
//!
//! The broker writes the count into messages that came by a bridge and may leave by another one:
//! between two brokers there is none. A client is known as a bridge by a user property of its
//! CONNECT (5.0), which the links of this broker's bridges have, or by the bridge bit (3.1.1).
//! Messages of 3.1.1 have no properties: behind such a link the count starts again.

use tacho_codec::{UserProperties, UserPropertiesBuf};

/// The user property of a PUBLISH with the count.
const HOPS: &str = "tacho-hops";
/// The user property of a CONNECT by which a bridge says that it is one, and its name.
pub(crate) const BRIDGE: &str = "tacho-bridge";

/// How many bridges a message with these properties has passed. What no number is counts as none:
/// anyone may write there.
pub(crate) fn hops(properties: UserProperties<'_>) -> u32 {
    let counts = properties.iter().filter(|(name, _)| *name == HOPS);
    counts.filter_map(|(_, value)| value.parse().ok()).max().unwrap_or(0)
}

/// The properties of the message after one more bridge.
pub(crate) fn after_bridge(properties: UserProperties<'_>) -> UserPropertiesBuf {
    let mut after = UserPropertiesBuf::new();
    for (name, value) in properties.iter().filter(|(name, _)| *name != HOPS) {
        // Invariant: a view contains checked strings only, so push cannot refuse them.
        let _ = after.push(name, value);
    }
    let _ = after.push(HOPS, &hops(properties).saturating_add(1).to_string());
    after
}

/// Whether a CONNECT with these properties is that of a bridge.
pub(crate) fn is_bridge(properties: UserProperties<'_>) -> bool {
    properties.iter().any(|(name, _)| name == BRIDGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(all: &[(&str, &str)]) -> UserPropertiesBuf {
        let mut properties = UserPropertiesBuf::new();
        for (name, value) in all {
            properties.push(name, value).unwrap();
        }
        properties
    }

    #[test]
    fn each_bridge_counts_one_and_leaves_other_properties_in_their_order() {
        let mut properties = with(&[("b", "1"), ("a", "2"), ("b", "3")]);
        for count in 1..4 {
            properties = after_bridge(properties.view());
            assert_eq!(hops(properties.view()), count);
        }
        assert_eq!(properties, with(&[("b", "1"), ("a", "2"), ("b", "3"), (HOPS, "3")]));
    }

    #[test]
    fn what_a_client_wrote_there_does_no_harm() {
        let after = |value| hops(after_bridge(with(&[(HOPS, value)]).view()).view());
        assert_eq!(["", "x", "-1", "99999999999"].map(after), [1; 4]);
        assert_eq!(after("4294967295"), u32::MAX);
        let twice = with(&[(HOPS, "2"), (HOPS, "7")]);
        assert_eq!(after_bridge(twice.view()), with(&[(HOPS, "8")]));
    }

    #[test]
    fn a_bridge_says_that_it_is_one() {
        assert!(is_bridge(with(&[("a", "b"), (BRIDGE, "cloud")]).view()));
        assert!(!is_bridge(with(&[("cloud", BRIDGE)]).view()));
    }
}
