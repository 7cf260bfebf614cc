//! Strategies for topics and filters that often match each other.

use proptest::prelude::*;

/// A level that topics and filters share; one is too long to be stored inline in a tree node.
fn level() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just("a"),
        4 => Just("b"),
        2 => Just(""),
        1 => Just("$a"),
        1 => Just("ab"),
        1 => Just("a!"), // Its second character sorts before the slash.
        1 => Just("a level of more than twenty-two bytes"),
    ]
}

/// A valid topic name of one to five levels.
pub fn topic() -> impl Strategy<Value = String> {
    prop::collection::vec(level(), 1..=5)
        .prop_map(|levels| levels.join("/"))
        .prop_filter("a topic is not empty", |topic| !topic.is_empty())
}

/// A valid topic filter of one to six levels.
pub fn filter() -> impl Strategy<Value = String> {
    let filter_level = prop_oneof![3 => level(), 1 => Just("+")];
    (prop::collection::vec(filter_level, 0..=5), prop::bool::weighted(0.3))
        .prop_map(|(mut levels, is_multi)| {
            if is_multi {
                levels.push("#");
            }
            levels.join("/")
        })
        .prop_filter("a filter is not empty", |filter| !filter.is_empty())
}
