//! Matches one filter against one topic, level by level: the reference that the indexes are tested
//! against.

/// Whether the valid `filter` matches the valid `topic` (MQTT 5.0 section 4.7).
///
/// `+` matches one level, also an empty one; `#` matches the parent and all levels below; a filter
/// that starts with a wildcard matches no topic that starts with `$`.
///
/// ```
/// assert!(tacho_topic::matches("sport/#", "sport"));
/// assert!(tacho_topic::matches("+/+", "/finance"));
/// assert!(!tacho_topic::matches("#", "$SYS/uptime"));
/// ```
pub fn matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut topic_levels = topic.split('/');
    for filter_level in filter.split('/') {
        if filter_level == "#" {
            return true;
        }
        match topic_levels.next() {
            Some(topic_level) if filter_level == "+" || filter_level == topic_level => {}
            _ => return false,
        }
    }
    topic_levels.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn follows_the_specification() {
        for (filter, topic, expected) in [
            ("sport/tennis/player1/#", "sport/tennis/player1", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
            ("sport/#", "sport", true),
            ("#", "a/b", true),
            ("#", "/", true),
            ("sport/tennis/+", "sport/tennis/player1", true),
            ("sport/tennis/+", "sport/tennis/player1/ranking", false),
            ("sport/+", "sport", false),
            ("sport/+", "sport/", true),
            ("+/+", "/finance", true),
            ("/+", "/finance", true),
            ("+", "/finance", false),
            ("/x", "x", false),
            ("x", "/x", false),
            ("a/+/#", "a", false),
            ("a/+/#", "a/b", true),
            ("#", "$SYS/x", false),
            ("+/x", "$SYS/x", false),
            ("$SYS/#", "$SYS/x", true),
            ("$SYS/#", "$SYS", true),
            ("$SYS/+", "$SYS/x", true),
            ("a/$b/#", "a/$b/c", true),
            ("a/+", "a/$b", true),
            ("A", "a", false),
        ] {
            assert_eq!(matches(filter, topic), expected, "{filter} on {topic}");
        }
    }
}
