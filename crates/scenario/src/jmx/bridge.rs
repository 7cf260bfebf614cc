//! Bridges that a plan's brokers must have between them.
//!
//! A plan for bridged brokers has publishers at one and subscribers at another; that the brokers
//! are bridged is nowhere said. Where a filter at one broker is a topic of another one with
//! something put in front of it or cut off from it, a bridge is what makes the two meet.

use super::group::ThreadGroup;

/// Messages that one broker passes on to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImpliedBridge {
    /// Positions in the list of brokers.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) filter: String,
    pub(super) strip: String,
    pub(super) prefix: String,
}

/// The bridges that the groups imply; `broker_of` gives the position of a group's broker.
///
/// # Errors
/// A sentence, when a topic cannot be written as a template.
pub(super) fn implied(
    groups: &[ThreadGroup],
    broker_of: impl Fn(&ThreadGroup) -> Option<usize>,
) -> Result<Vec<ImpliedBridge>, String> {
    let mut bridges = Vec::new();
    for publisher in groups {
        for subscriber in groups {
            let (Some(from), Some(to)) = (broker_of(publisher), broker_of(subscriber)) else {
                continue;
            };
            if from == to {
                continue;
            }
            for stream in &publisher.streams {
                let topic = stream.topic.template()?;
                for subscription in &subscriber.subscriptions {
                    let filter = subscription.filter.template()?;
                    let Some((strip, prefix)) = change(&topic, unshared(&filter)) else { continue };
                    let filter = everything_below(&topic);
                    let bridge = ImpliedBridge { from, to, filter, strip, prefix };
                    if !bridges.contains(&bridge) {
                        bridges.push(bridge);
                    }
                }
            }
        }
    }
    Ok(bridges)
}

/// The levels to strip from and prepend to `topic` to give `filter`.
fn change(topic: &str, filter: &str) -> Option<(String, String)> {
    let levels = |front: &str| front.is_empty() || front.ends_with('/');
    if let Some(prefix) = filter.strip_suffix(topic).filter(|prefix| levels(prefix)) {
        return Some((String::new(), prefix.to_owned()));
    }
    let strip =
        topic.strip_suffix(filter).filter(|strip| levels(strip) && !strip.contains("{{"))?;
    Some((strip.to_owned(), String::new()))
}

/// Without `$share/group/`.
fn unshared(filter: &str) -> &str {
    let rest = filter.strip_prefix("$share/").and_then(|rest| rest.split_once('/'));
    rest.map_or(filter, |(_, filter)| filter)
}

/// A filter for the topics of all clients.
fn everything_below(topic: &str) -> String {
    match topic.find("{{") {
        None => topic.to_owned(),
        Some(at) => format!("{}#", &topic[..topic[..at].rfind('/').map_or(0, |slash| slash + 1)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_change_by_whole_levels() {
        let pair = |strip: &str, prefix: &str| Some((strip.to_owned(), prefix.to_owned()));
        assert_eq!(change("a/{{i}}", "remote/a/{{i}}"), pair("", "remote/"));
        assert_eq!(change("out/a/{{i}}", "a/{{i}}"), pair("out/", ""));
        assert_eq!(change("a/{{i}}", "a/{{i}}"), pair("", ""));
        assert_eq!(change("a/{{i}}", "xa/{{i}}"), None);
        assert_eq!(change("a/{{i}}", "b/{{i}}"), None);
        assert_eq!(unshared("$share/g/a/b"), "a/b");
        assert_eq!(everything_below("a/b{{i}}/c"), "a/#");
        assert_eq!(everything_below("{{i}}"), "#");
        assert_eq!(everything_below("a/b"), "a/b");
    }
}
