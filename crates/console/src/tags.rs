//! Tags of runs.

/// Tags of a run.
const TAGS_MAX: usize = 20;
/// Characters of a tag.
const TAG_CHARS_MAX: usize = 40;

/// Tags without blanks around them, each once.
pub(crate) fn checked_tags(tags: Vec<String>) -> Result<Vec<String>, String> {
    let mut checked: Vec<String> = Vec::new();
    for tag in tags {
        let tag = tag.trim();
        if tag.is_empty() || tag.chars().any(char::is_control) {
            return Err("a tag is a word or a few, in one line".to_owned());
        }
        if tag.chars().count() > TAG_CHARS_MAX {
            return Err(format!("a tag has at most {TAG_CHARS_MAX} characters"));
        }
        if !checked.iter().any(|known| known == tag) {
            checked.push(tag.to_owned());
        }
    }
    match checked.len() {
        ..=TAGS_MAX => Ok(checked),
        count => Err(format!("{count} tags, at most {TAGS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_short_lines_each_once() {
        let checked =
            |tags: &[&str]| checked_tags(tags.iter().map(|tag| (*tag).to_owned()).collect());
        assert_eq!(checked(&[" a b ", "c", "c"]), Ok(vec!["a b".to_owned(), "c".to_owned()]));
        assert!(checked(&["a\nb"]).is_err());
        assert!(checked(&[&"x".repeat(TAG_CHARS_MAX + 1)]).is_err());
        let many: Vec<String> = (0..=TAGS_MAX).map(|tag| tag.to_string()).collect();
        assert!(checked_tags(many).is_err());
    }
}
