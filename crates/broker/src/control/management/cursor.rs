//! Where a page begins that is gathered from one shard after the other: the shard, and numbers or a
//! text that say where in it.

use tacho_http::hex;

/// Numbers separated by dots.
pub(super) fn numbers<const N: usize>(text: Option<&str>) -> Option<[usize; N]> {
    let Some(text) = text else { return Some([0; N]) };
    let mut parts = text.split('.');
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = parts.next()?.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

pub(super) fn of_numbers(numbers: &[usize]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    texts.join(".")
}

/// A shard and a text, which is written in hexadecimal digits.
pub(super) fn place(text: Option<&str>) -> Option<(usize, String)> {
    let Some(text) = text else { return Some((0, String::new())) };
    let (shard, digits) = text.split_once('.')?;
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    Some((shard.parse().ok()?, String::from_utf8(bytes?).ok()?))
}

pub(super) fn of_place(shard: usize, position: &str) -> String {
    format!("{shard}.{}", hex(position.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_others_are_refused() {
        assert_eq!(numbers(None), Some([0, 0, 0]));
        assert_eq!(numbers(Some(&of_numbers(&[3, 1_048_576]))), Some([3, 1_048_576]));
        for text in ["", "1", "1.", "1.2.3", "-1.2", "a.b"] {
            assert_eq!(numbers::<2>(Some(text)), None, "{text}");
        }
        for position in ["", "a/b", "\u{fc}\0/\u{10ffff}"] {
            let expected = Some((2, position.to_owned()));
            assert_eq!(place(Some(&of_place(2, position))), expected);
        }
        for text in ["", "1", "x.00", "1.0", "1.zz", "1.ff", "1.+1", "1.\u{fc}"] {
            assert_eq!(place(Some(text)), None, "{text}");
        }
    }
}
