//! The header as 44 printable characters, for text payloads.
//!
//! `tacho` and the header's 24 bytes in base 32 with the digits `a`..`x`, `0`..`7`, most
//! significant bits first. All characters are in the alphabet of JMeter's random strings.

use super::{HEADER_BYTES, Header};

/// Characters of a printable header.
pub const PRINTABLE_BYTES: usize = MARK.len() + DIGITS;

const MARK: &[u8; 5] = b"tacho";
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwx01234567";
const DIGITS: usize = (HEADER_BYTES * 8).div_ceil(5);

/// Value of each digit; 255 for any other character.
const VALUES: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        values[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

impl Header {
    /// Appends the printable form.
    pub fn write_printable(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(MARK);
        let (mut bits, mut len) = (0u32, 0);
        for byte in self.encode() {
            bits = bits << 8 | u32::from(byte);
            len += 8;
            while len >= 5 {
                len -= 5;
                out.push(ALPHABET[(bits >> len & 31) as usize]);
            }
            bits &= (1 << len) - 1;
        }
        // The last digit holds the remaining bits, padded with zeros.
        out.push(ALPHABET[(bits << (5 - len) & 31) as usize]);
    }

    /// Reads a printable header at the beginning of `text`.
    pub fn read_printable(text: &[u8]) -> Option<Self> {
        let digits = text.strip_prefix(MARK)?.get(..DIGITS)?;
        let mut bytes = [0; HEADER_BYTES];
        let (mut bits, mut len, mut at) = (0u32, 0, 0);
        for digit in digits {
            let value = VALUES[usize::from(*digit)];
            if value == u8::MAX {
                return None;
            }
            bits = bits << 5 | u32::from(value);
            len += 5;
            if len >= 8 && at < HEADER_BYTES {
                len -= 8;
                bytes[at] = (bits >> len) as u8;
                bits &= (1 << len) - 1;
                at += 1;
            }
        }
        Self::decode(&bytes)
    }

    /// Finds the first printable header in `text`, beginning at `hint`, the position of the last
    /// one.
    pub fn find_printable(text: &[u8], hint: &mut usize) -> Option<Self> {
        if let Some(header) = text.get(*hint..).and_then(Self::read_printable) {
            return Some(header);
        }
        let last = text.len().checked_sub(PRINTABLE_BYTES)?;
        let mut from = 0;
        while let Some(at) = text[from..=last].iter().position(|byte| *byte == MARK[0]) {
            if let Some(header) = Self::read_printable(&text[from + at..]) {
                *hint = from + at;
                return Some(header);
            }
            from += at + 1;
            if from > last {
                break;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::any_header;
    use super::*;
    use crate::index::StreamIndex;

    proptest! {
        #[test]
        fn read_is_the_inverse_of_write(header in any_header(), before in "[a-z ]{0,60}") {
            let mut text = before.into_bytes();
            header.write_printable(&mut text);
            text.extend_from_slice(b" and more");
            prop_assert!(text.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' '));
            let mut hint = 0;
            prop_assert_eq!(Header::find_printable(&text, &mut hint), Some(header));
            prop_assert_eq!(Header::find_printable(&text, &mut hint), Some(header));
            let cut = &text[..hint + PRINTABLE_BYTES - 1];
            prop_assert_eq!(Header::find_printable(cut, &mut 0), None);
        }
    }

    #[test]
    fn a_damaged_header_is_none() {
        let stream = StreamIndex::new(1);
        let header = Header { run: 7, stream, seq: 2, probe: false, intended_ns: 3, late_us: 4 };
        let mut text = Vec::new();
        header.write_printable(&mut text);
        assert_eq!(text.len(), PRINTABLE_BYTES);
        text[20] = b'-';
        assert_eq!(Header::find_printable(&text, &mut 1_000), None);
        assert_eq!(Header::find_printable(b"tacho", &mut 0), None);
    }
}
