use super::*;

fn replay(index: &RetainedIndex<u32>, filter: &str, budget: usize) -> Vec<String> {
    let filter = TopicFilter::parse(filter).unwrap();
    let (mut cursor, mut topics) = (RetainedCursor::default(), Vec::new());
    while index.next(&filter, &mut cursor, budget, |topic, _| topics.push(topic.to_owned()))
        == Progress::More
    {}
    topics
}

#[test]
fn replays_in_level_order() {
    let mut index = RetainedIndex::new();
    for topic in ["a!b", "a/b", "a", "a/b/c", "/", "", "$SYS/a/c", "b", "a/", "a/a/c", "a/c/c"] {
        index.insert(topic, 0);
    }
    for budget in [1, 2, 100] {
        for (filter, expected) in [
            ("#", vec!["", "/", "a", "a/", "a/a/c", "a/b", "a/b/c", "a/c/c", "a!b", "b"]),
            ("a/#", vec!["a", "a/", "a/a/c", "a/b", "a/b/c", "a/c/c"]),
            ("+", vec!["", "a", "a!b", "b"]),
            ("a/+", vec!["a/", "a/b"]),
            ("a/+/c", vec!["a/a/c", "a/b/c", "a/c/c"]),
            ("+/+/c", vec!["a/a/c", "a/b/c", "a/c/c"]),
            ("+/b/#", vec!["a/b", "a/b/c"]),
            ("$SYS/#", vec!["$SYS/a/c"]),
            ("a/b", vec!["a/b"]),
            ("x", vec![]),
        ] {
            assert_eq!(replay(&index, filter, budget), expected, "{filter} by {budget}");
        }
    }
}

#[test]
fn replaces_and_removes() {
    let mut index = RetainedIndex::new();
    assert_eq!(index.insert("a/b", 1), None);
    assert_eq!(index.insert("a/b", 2), Some(1));
    assert_eq!(index.get("a/b"), Some(&2));
    assert_eq!(index.len(), 1);
    assert_eq!(index.remove("a/c"), None);
    assert_eq!(index.remove("a/b"), Some(2));
    assert_eq!(index.remove("a/b"), None);
    assert!(index.is_empty() && index.ordered.is_empty());
}

#[test]
fn skips_topics_that_cannot_match() {
    let mut index = RetainedIndex::new();
    for group in 0..10 {
        for id in 0..1_000 {
            index.insert(&format!("{group}/{id}/x"), 0);
        }
    }
    let filter = TopicFilter::parse("+/500/+").unwrap();
    let mut cursor = RetainedCursor::default();
    let mut count = 0;
    let progress = index.next(&filter, &mut cursor, 50, |_, _| count += 1);
    assert_eq!((progress, count), (Progress::Done, 10));
}
