use proptest::prelude::*;

use tacho_topic::TopicFilter;

use super::*;
use crate::covers::{Coverage, Steps, every_topic};
use crate::kinds::PublishKinds;

fn acl(text: &str) -> Acl {
    Acl::parse("acl", text).expect(text)
}

fn who<'a>(user: &'a str, client_id: &'a str) -> Who<'a> {
    Who::new((!user.is_empty()).then_some(user), client_id)
}

fn covers(acl: &Acl, who: Who<'_>, filter: &TopicFilter) -> Coverage {
    every_topic(filter, acl.asked(&who), &who, &mut Steps::default(), None)
}

fn allowed(acl: &Acl, who: Who<'_>, topic: &str) -> [bool; 2] {
    [Access::Receive, PUBLISH].map(|access| acl.decide(&who, access, topic).is_allowed)
}

const PUBLISH: Access = Access::Publish(PublishKinds::ANY);
const READ: [bool; 2] = [true, false];
const WRITE: [bool; 2] = [false, true];
const BOTH: [bool; 2] = [true, true];
const NONE: [bool; 2] = [false, false];

#[test]
fn entries_are_for_anonymous_clients_users_or_all() {
    let acl = acl("topic read news/#\n\nuser ann\ntopic home/#\ntopic write log/a b\n\
                   pattern readwrite dev/%c/#\nuser bob\n# no entries\n");
    for (who, topic, expected) in [
        (who("", "c"), "news/1", READ),
        (who("", "c"), "home/1", NONE),
        (who("ann", "c"), "news/1", NONE),
        (who("ann", "c"), "home/1", BOTH),
        (who("ann", "c"), "log/a b", WRITE),
        (who("bob", "c"), "home/1", NONE),
        (who("bob", "c"), "dev/c/x", BOTH),
        (who("eve", "c"), "dev/c/x", BOTH),
        (who("", "c"), "dev/c", BOTH),
        (who("", "c"), "dev/d", NONE),
    ] {
        assert_eq!(allowed(&acl, who, topic), expected, "{who:?} {topic}");
    }
    assert_eq!(acl.len(), 4);
}

#[test]
fn deny_entries_go_first_and_own_entries_before_patterns() {
    let acl = acl("user ann\ntopic a/#\ntopic deny a/secret\npattern deny a/b\npattern read p/#\n\
                   pattern deny p/x\n");
    let ann = || who("ann", "c");
    for (topic, expected) in [
        ("a/x", BOTH),
        ("a/secret", NONE),
        ("a/b", BOTH), // Her own entry allows it before the pattern is asked.
        ("p/y", READ),
        ("p/x", NONE),
    ] {
        assert_eq!(allowed(&acl, ann(), topic), expected, "{topic}");
    }
    assert_eq!(acl.decide(&ann(), PUBLISH, "a/secret").cause, Cause::Line(3));
    assert_eq!(acl.decide(&ann(), PUBLISH, "p/y").cause, Cause::NoEntry);
}

// An entry without the wanted access is no hit: a later one may allow.
#[test]
fn read_and_write_entries_add_up() {
    let acl = acl("topic read a\ntopic write a\n");
    assert_eq!(allowed(&acl, who("", "c"), "a"), BOTH);
}

// An empty list denies everything (CVE-2018-12550).
#[test]
fn an_empty_list_denies_everything() {
    for text in ["", "# nothing\n\n", "user ann\n"] {
        assert_eq!(allowed(&acl(text), who("ann", "c"), "a"), NONE);
        assert_eq!(allowed(&acl(text), who("", "c"), "a"), NONE);
    }
}

#[test]
fn topics_of_the_broker_need_entries_that_begin_with_a_dollar() {
    let acl = acl("topic #\ntopic +/x\npattern %c/#\nuser ann\ntopic $SYS/#\n");
    assert_eq!(allowed(&acl, who("", "$SYS"), "$SYS/x"), NONE);
    assert_eq!(allowed(&acl, who("ann", "c"), "$SYS/x"), BOTH);
}

// A name with a wildcard opened every topic of a pattern (CVE-2017-7650).
#[test]
fn names_with_special_characters_get_nothing_from_patterns() {
    let acl = acl("topic read news\npattern home/%c/#\npattern deny home/%u/secret\npattern p\n");
    for name in ["+", "#", "a/b", "a\u{1}", "+/+"] {
        let decision = acl.decide(&who("", name), Access::Receive, "home/x/1");
        assert_eq!(decision.cause, Cause::SpecialCharacters, "{name:?}");
        assert_eq!(allowed(&acl, who(name, "c"), "home/c/1"), NONE, "{name:?}");
        assert_eq!(allowed(&acl, who("", name), "p"), NONE, "{name:?}");
        assert_eq!(allowed(&acl, who("", name), "news"), READ, "{name:?}");
        let all = TopicFilter::parse("home/#").unwrap();
        assert_eq!(covers(&acl, who("", name), &all), Coverage::Partial);
    }
    assert_eq!(allowed(&acl, who("", "c"), "p"), BOTH);
}

#[test]
fn patterns_with_the_user_name_skip_clients_without_one() {
    let acl = acl("pattern home/%u\npattern read all\n");
    assert_eq!(allowed(&acl, who("", "c"), "home/"), NONE);
    assert_eq!(allowed(&acl, who("", "c"), "all"), READ);
    assert_eq!(allowed(&acl, who("ann", "c"), "home/ann"), BOTH);
}

#[test]
fn wrong_lines_are_refused_by_number() {
    for (text, line, what) in [
        ("topic a\nallow b", 2, "unknown"),
        (" # not in column 1", 1, "unknown"),
        ("user", 1, "name of the user"),
        ("topic", 1, "filter is missing"),
        ("topic reed a", 1, "must be"),
        ("topic read a/#/b", 1, "'#'"),
        ("pattern read a/x%c", 1, "stand alone"),
    ] {
        let error = Acl::parse("acl", text).expect_err(text);
        assert_eq!(error.line(), Some(line), "{text}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn filters_are_covered_only_as_a_whole() {
    let acl = acl("user ann\ntopic read a/#\ntopic deny a/secret/#\ntopic read b/+/c\n\
                   topic write w/#\npattern read dev/%c/#\n");
    for (filter, expected) in [
        ("a/#", Coverage::Partial),
        ("a/x/#", Coverage::Whole),
        ("a/+", Coverage::Partial),
        ("a/+/x", Coverage::Partial),
        ("a/secret", Coverage::Partial),
        ("b/+/c", Coverage::Whole),
        ("b/+/+", Coverage::Partial),
        ("b/x/c", Coverage::Whole),
        ("w/#", Coverage::Partial),
        ("dev/c/#", Coverage::Whole),
        ("dev/c/+/x", Coverage::Whole),
        ("dev/+/x", Coverage::Partial),
        ("#", Coverage::Partial),
    ] {
        let filter = TopicFilter::parse(filter).unwrap();
        assert_eq!(covers(&acl, who("ann", "c"), &filter), expected, "{filter}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(
        text in "((user|topic|pattern|read|deny|#|\\+|%c|/|a| ){0,6}\n?){0,12}",
        other in "\\PC*",
    ) {
        if let Ok(acl) = Acl::parse("acl", &text) {
            acl.decide(&who("a", "a"), Access::Receive, "a/a");
        }
        let _ = Acl::parse("acl", &other);
    }

    /// What covers a filter lets every topic of it through.
    #[test]
    fn a_covered_filter_has_no_topic_that_may_not_be_read(
        lines in prop::collection::vec(
            "(topic|pattern) (read|deny|write) (a|b|\\+|%c)(/(a|b|\\+|%u)){0,2}(/#)?", 1..7),
        filter in "(a|b|\\+)(/(a|b|\\+)){0,2}(/#)?",
    ) {
        // `%u` in a topic line is text, and clients without a user skip such patterns.
        let acl = acl(&lines.join("\n"));
        let client = who("", "b");
        let filter = TopicFilter::parse(&filter).unwrap();
        let mut is_whole = true;
        for topic in crate::covers::tests::topics(&["a", "b", "x", "%u", "%c"], 4) {
            if filter.matches(&topic) {
                is_whole &= acl.decide(&client, Access::Receive, &topic).is_allowed;
            }
        }
        let expected = if is_whole { Coverage::Whole } else { Coverage::Partial };
        prop_assert_eq!(covers(&acl, client, &filter), expected);
    }
}
