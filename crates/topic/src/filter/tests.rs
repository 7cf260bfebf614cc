use super::*;

// 20
#[test]
fn accepts_plain_filters() {
    for text in ["a", "/", "+", "#", "+/+", "a/+/b", "a/#", "/#", "+/#", "$SYS/#", "$share", "a b"]
    {
        let filter = Filter::parse(text).unwrap();
        assert!(!filter.is_shared());
        assert_eq!(filter.to_string(), text);
    }
}

// 20
// [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.8.2-1] [MQTT-4.8.2-2]
// [MQTT-3.1.1: 4.7.1-2] [MQTT-3.1.1: 4.7.1-3] [MQTT-3.1.1: 4.7.3-1]
#[test]
fn refuses_invalid_filters() {
    use FilterError::*;
    let too_long = "a".repeat(TOPIC_LEN_MAX + 1);
    let too_long_with_name = format!("$share/g/{}", "a".repeat(TOPIC_LEN_MAX - 8));
    for (text, error) in [
        ("", Empty),
        ("a#", MultiLevelWildcard),
        ("a/#/b", MultiLevelWildcard),
        ("#/", MultiLevelWildcard),
        ("##", MultiLevelWildcard),
        ("a/b#", MultiLevelWildcard),
        ("#a", MultiLevelWildcard),
        ("a+", SingleLevelWildcard),
        ("+a", SingleLevelWildcard),
        ("++", SingleLevelWildcard),
        ("a/+b/c", SingleLevelWildcard),
        ("+#", SingleLevelWildcard),
        ("a\0", Nul),
        ("$share/", ShareName),
        ("$share//x", ShareName),
        ("$share/a", ShareFilterMissing),
        ("$share/a/", ShareFilterMissing),
        ("$share/a+/x", ShareName),
        ("$share/#/x", ShareName),
        ("$share/a\0/x", Nul),
        ("$share/a/b#", MultiLevelWildcard),
        ("$share/a/+b", SingleLevelWildcard),
        (too_long.as_str(), TooLong),
        (too_long_with_name.as_str(), TooLong),
    ] {
        assert_eq!(Filter::parse(text), Err(error), "{text:.40}");
    }
}

#[test]
fn splits_shared_filters() {
    for (text, group, filter) in [
        ("$share/g/a/b", "g", "a/b"),
        ("$share/g//", "g", "/"),
        ("$share/g/#", "g", "#"),
        ("$share/g/$SYS/+", "g", "$SYS/+"),
        ("$share/a b/$share/x/y", "a b", "$share/x/y"),
    ] {
        let parsed = Filter::parse(text).unwrap();
        assert_eq!(parsed.to_string(), text);
        assert_eq!(parsed.topic_filter().as_str(), filter);
        let Filter::Shared(shared) = parsed else { panic!("{text} is shared") };
        assert_eq!((shared.group(), shared.filter().as_str()), (group, filter));
    }
}

#[test]
fn knows_exact_and_leading_wildcards() {
    for (text, exact, leading) in
        [("a/b", true, false), ("a/+", false, false), ("+/a", false, true), ("#", false, true)]
    {
        let filter = TopicFilter::parse(text).unwrap();
        assert_eq!((filter.is_exact(), filter.starts_with_wildcard()), (exact, leading));
    }
}

#[test]
fn counts_levels() {
    for (text, count) in [("a", 1), ("/", 2), ("a/+/#", 3), ("//", 3)] {
        let filter = TopicFilter::parse(text).unwrap();
        assert_eq!((filter.level_count(), filter.levels().count()), (count, count));
    }
}

#[test]
fn a_filter_is_as_small_as_a_reference_to_its_text() {
    assert_eq!(size_of::<Filter>(), size_of::<Arc<str>>());
}
