//! Secrets that requests bring.

use axum::http::HeaderMap;
use axum::http::header;

/// The secret of `Authorization: Bearer ...`.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, secret) = value.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

/// Compares in a time that does not tell where they differ.
pub fn is_same(given: &[u8], secret: &[u8]) -> bool {
    let differ =
        given.iter().zip(secret).fold(0, |differ, (given, secret)| differ | (given ^ secret));
    given.len() == secret.len() && differ == 0
}

/// Two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearers_bring_a_secret() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(of("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(of("bearer  abc ").as_deref(), Some("abc"));
        assert_eq!(of("Basic abc"), None);
        assert_eq!(of("abc"), None);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn only_the_whole_secret_is_the_same() {
        assert!(is_same(b"abc", b"abc"));
        for other in ["", "ab", "abcd", "abd"] {
            assert!(!is_same(other.as_bytes(), b"abc"), "{other}");
        }
    }
}
