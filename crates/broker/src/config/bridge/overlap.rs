//! Overlaps of topic filters.

use super::Template;

/// Whether some topic matches both filters.
pub(super) fn overlap(a: &str, b: &str) -> bool {
    // `#` and `+` at the beginning do not match topics that begin with `$` [MQTT-4.7.2-1].
    let is_wild = |filter: &str| filter.starts_with(['+', '#']);
    if (is_wild(a) && b.starts_with('$')) || (is_wild(b) && a.starts_with('$')) {
        return false;
    }
    let (mut a, mut b) = (a.split('/'), b.split('/'));
    loop {
        match (a.next(), b.next()) {
            (None, None) | (Some("#"), _) | (_, Some("#")) => return true,
            (None, Some(_)) | (Some(_), None) => return false,
            (Some(x), Some(y)) if x == y || x == "+" || y == "+" => {}
            _ => return false,
        }
    }
}

/// A filter that matches all topics that `template` renders from topics that match `filter`. It may
/// match somewhat more.
pub(super) fn image(template: &Template, filter: &str) -> String {
    if let Some(text) = template.constant() {
        return text.to_owned();
    }
    // Text behind a multi-level wildcard, or beside a wildcard in its level, cannot be expressed.
    let Some((before, behind)) = template.around_topic() else {
        return widened(template.to_string().split("${").next().unwrap_or_default());
    };
    let before_whole = before.is_empty() || before.ends_with('/');
    if !before_whole && filter.starts_with(['+', '#']) {
        return widened(before);
    }
    match (behind.is_empty(), behind.starts_with('/') && !filter.ends_with('#')) {
        (true, _) | (false, true) => format!("{before}{filter}{behind}"),
        (false, false) => widened(&format!("{before}{}", filter.trim_end_matches(['+', '#']))),
    }
}

/// All topics that begin with the whole levels of `start`.
fn widened(start: &str) -> String {
    let whole = start.rfind('/').map_or("", |at| &start[..=at]);
    format!("{whole}#")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_filters_match_a_common_topic() {
        for (a, b, expected) in [
            ("a/b", "a/b", true),
            ("a/#", "a", true),
            ("a/#", "b", false),
            ("+/b", "a/+", true),
            ("+/b", "a/c", false),
            ("a/+", "a/b/c", false),
            ("a/+/#", "a/b/c", true),
            ("#", "$SYS/x", false),
            ("$SYS/#", "$SYS/x", true),
        ] {
            assert_eq!(overlap(a, b), expected, "{a} {b}");
            assert_eq!(overlap(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn images_match_all_rendered_topics() {
        for (template, filter, expected) in [
            ("${topic}", "a/#", "a/#"),
            ("remote/${topic}", "bridge/+/x", "remote/bridge/+/x"),
            ("r/${topic}/end", "a/+", "r/a/+/end"),
            ("r/${topic}/end", "a/#", "r/a/#"),
            ("r/x${topic}", "+/a", "r/#"),
            ("r/x${topic}", "a/+", "r/xa/+"),
            ("r/${topic}x", "a/b", "r/a/#"),
            ("r/${qos}/${topic}", "a", "r/#"),
            ("r/fixed", "a/#", "r/fixed"),
        ] {
            let image = image(&template.parse().expect(template), filter);
            assert_eq!(image, expected, "{template} of {filter}");
        }
    }
}
