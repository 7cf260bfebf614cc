//! Patterns that select by name.

/// Without a `*` a pattern may stand anywhere in the text; with one it must fit the whole, each
/// `*` standing for anything. Case does not matter.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(first) = parts.next().filter(|first| first.len() < pattern.len()) else {
        return text.contains(&pattern);
    };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, fits) in [
            ("qos1", "1k_1k_qos1_p32_50mps", true),
            ("QoS1", "1k_1k_qos1_p32_50mps", true),
            ("qos3", "1k_1k_qos1_p32_50mps", false),
            ("1k_*_p32_*", "1k_1k_qos1_p32_50mps", true),
            ("1k_*_p64_*", "1k_1k_qos1_p32_50mps", false),
            ("*50mps", "1k_1k_qos1_p32_50mps", true),
            ("1k*", "2k_1k", false),
            ("a*a", "a", false),
            ("a*a", "aba", true),
            ("*", "anything", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
