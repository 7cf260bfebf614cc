use proptest::prelude::*;

use super::*;

const WHO: Who<'static> = Who::new(None, "c");

/// All topics of up to so many of these levels.
pub(crate) fn topics(levels: &[&str], len_max: usize) -> Vec<String> {
    let mut all: Vec<String> = levels.iter().map(|&level| level.to_owned()).collect();
    let mut longest = all.clone();
    for _ in 1..len_max {
        let longer = longest.iter().flat_map(|topic| levels.iter().map(move |l| (topic, l)));
        longest = longer.map(|(topic, level)| format!("{topic}/{level}")).collect();
        all.extend(longest.iter().cloned());
    }
    all.retain(|topic| !topic.is_empty());
    all
}

fn decide(filter: &str, rules: &[(bool, &str)]) -> Coverage {
    let mut denied = String::new();
    let named = decide_with(filter, rules, Some(&mut denied));
    let coverage = decide_with(filter, rules, None);
    if named == Coverage::Partial {
        let is_matched = tacho_topic::matches(filter, &denied) && !denied.is_empty();
        assert!(is_matched && !allows(rules, &denied), "{denied:?} of {filter} by {rules:?}");
    }
    assert_eq!(named, coverage);
    coverage
}

fn decide_with(filter: &str, rules: &[(bool, &str)], denied: Option<&mut String>) -> Coverage {
    let templates: Vec<Template> =
        rules.iter().map(|(_, text)| Template::literal(text).expect(text)).collect();
    let rules = templates.iter().zip(rules);
    let rules = rules.map(|(template, &(allows, _))| Rule { template, allows });
    let filter = TopicFilter::parse(filter).expect(filter);
    every_topic(&filter, rules, &WHO, &mut Steps::default(), denied)
}

fn allows(rules: &[(bool, &str)], topic: &str) -> bool {
    // `$` topics only by entries that begin with `$`, which matching by itself sees to.
    let hit = rules.iter().find(|(_, text)| tacho_topic::matches(text, topic));
    hit.is_some_and(|(allows, _)| *allows)
}

/// Every topic that could make a difference, one by one.
fn naive(filter: &str, rules: &[(bool, &str)], topics: &[String]) -> Coverage {
    let mut matched = topics.iter().filter(|topic| tacho_topic::matches(filter, topic));
    if matched.all(|topic| allows(rules, topic)) { Coverage::Whole } else { Coverage::Partial }
}

#[test]
fn known_cases() {
    use Coverage::{Partial, Whole};
    for (filter, rules, expected) in [
        ("a/#", &[(true, "#")][..], Whole),
        ("#", &[(true, "#")], Whole),
        ("#", &[(true, "+/#")], Whole),
        ("+", &[(true, "+")], Whole),
        ("+/#", &[(true, "+")], Partial),
        ("a/#", &[(true, "a/+/#")], Partial), // `a` itself.
        ("a/+/#", &[(true, "a/#")], Whole),
        ("a/#", &[(true, "a"), (true, "a/+/#")], Whole),
        ("a/+", &[(true, "a/b"), (true, "a/+")], Whole),
        ("a/+", &[(true, "a/b"), (true, "a/c")], Partial),
        ("#", &[(false, "a"), (true, "#")], Partial),
        ("b/#", &[(false, "a"), (true, "#")], Whole),
        ("#", &[(true, "#"), (false, "a")], Whole),
        ("a/+", &[(true, "a/#"), (false, "#")], Whole),
        ("$SYS/#", &[(true, "#")], Partial),
        ("$SYS/#", &[(true, "$SYS/#")], Whole),
        ("#", &[(true, "#"), (true, "$SYS/#")], Whole),
        ("+/x", &[(true, "+/x"), (false, "$SYS/x")], Whole),
        ("#", &[], Partial),
        ("+", &[(false, "/#"), (true, "+")], Whole), // There is no empty topic.
        ("#", &[(false, "/#"), (true, "#")], Partial),
    ] {
        assert_eq!(decide(filter, rules), expected, "{filter} {rules:?}");
    }
}

#[test]
fn thousands_of_entries_are_decided_within_the_bound() {
    let texts: Vec<String> = (0..2_000).map(|number| format!("s/{number}/#")).collect();
    let mut rules: Vec<(bool, &str)> = texts.iter().map(|text| (true, text.as_str())).collect();
    assert_eq!(decide("s/+/x", &rules), Coverage::Partial);
    rules.push((true, "s/#"));
    assert_eq!(decide("s/+/x", &rules), Coverage::Whole);
    assert_eq!(decide("s/77/#", &rules), Coverage::Whole);
}

#[test]
fn many_filters_share_their_steps() {
    let texts: Vec<String> = (0..2_000).map(|number| format!("s/{number}/#")).collect();
    let templates: Vec<Template> =
        texts.iter().map(|text| Template::literal(text).expect(text)).collect();
    let filter = TopicFilter::parse("s/+/x").unwrap();
    let mut steps = Steps::default();
    let mut decide = || {
        let rules = templates.iter().map(|template| Rule { template, allows: true });
        every_topic(&filter, rules, &WHO, &mut steps, None)
    };
    assert_eq!(decide(), Coverage::Partial);
    let decided = (0..1_000).filter(|_| decide() != Coverage::Undecided).count();
    assert!(decided < 100, "{decided}");
    assert_eq!(decide(), Coverage::Undecided);
}

#[test]
fn a_decision_that_takes_too_long_is_given_up() {
    // Each level doubles the states.
    let texts: Vec<String> = (0..14)
        .map(|at| {
            let level = |depth| if depth == at { "a" } else { "+" };
            (0..14).map(level).collect::<Vec<_>>().join("/")
        })
        .collect();
    let mut rules: Vec<(bool, &str)> = texts.iter().map(|text| (false, text.as_str())).collect();
    let all = ["+"; 14].join("/");
    rules.push((true, &all));
    // A refusal is found early, a grant would need all of them.
    assert_eq!(decide(&all, &rules[..]), Coverage::Partial);
    let allowing: Vec<(bool, &str)> = texts.iter().map(|text| (true, text.as_str())).collect();
    let mut mixed: Vec<(bool, &str)> = allowing;
    mixed.push((false, "b/b/b/b/b/b/b/b/b/b/b/b/b/b/b"));
    mixed.push((true, &all));
    assert_eq!(decide(&all, &mixed), Coverage::Undecided);
}

fn filters() -> impl Strategy<Value = String> {
    "(a|b|\\+|\\$s)(/(a|b|\\+|)){0,2}(/#)?|#|/(a|b|\\+)?(/#)?"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn decisions_are_those_of_the_naive_model(
        filter in filters(),
        rules in prop::collection::vec((any::<bool>(), filters()), 0..7),
    ) {
        let rules: Vec<(bool, &str)> =
            rules.iter().map(|(allows, text)| (*allows, text.as_str())).collect();
        // One level more than any filter has tells the same as any number more.
        let topics = topics(&["a", "b", "x", "", "$s"], 4);
        prop_assert_eq!(decide(&filter, &rules), naive(&filter, &rules, &topics));
    }
}
