//! Numbers and texts in journal records: little-endian, lengths as variable-length integers.

/// Appends a number with seven bits per byte, the lowest first.
pub(super) fn put_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends bytes behind their length.
pub(super) fn put_bytes(part: &[u8], bytes: &mut Vec<u8>) {
    put_number(part.len() as u64, bytes);
    bytes.extend_from_slice(part);
}

/// The bytes left to read. A read returns `None` if there are too few.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return None;
            }
            number |= part << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn number_u32(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (first, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(first)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_oversized_ones_are_refused() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1 << 40, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_number(number, &mut bytes);
            let mut rest = Rest(&bytes);
            assert_eq!((rest.number(), rest.0.len()), (Some(number), 0));
            assert_eq!(Rest(&bytes[..bytes.len() - 1]).number(), None);
        }
        assert_eq!(Rest(&[0xff; 9]).number(), None);
        assert_eq!(Rest(&[0xff; 11]).number(), None);
        let above_64_bits = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(Rest(&above_64_bits).number(), None);
        assert_eq!(Rest(&[5, b'a']).bytes(), None);
        assert_eq!(Rest(&[1, 0xff]).text(), None);
    }
}
