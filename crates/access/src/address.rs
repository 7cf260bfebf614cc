//! Ranges of addresses, as files of access control name them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::file::shown;

/// Addresses that begin with the same bits. An IPv6 address that stands for one of IPv4 counts as
/// that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    is_v4: bool,
    len: u32,
    /// Those of IPv4 are the first 32.
    bits: u128,
}

impl AddressRange {
    /// One address, or a prefix with its length.
    ///
    /// # Errors
    /// A sentence: the text is neither, or has bits behind the prefix.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{} is no address: it must be as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32",
                shown(text)
            )
        };
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let len = match len {
            Some(len) => {
                let is_number = len.len() <= 3 && len.bytes().all(|byte| byte.is_ascii_digit());
                let len = len.parse::<u32>().ok().filter(|&len| is_number && len <= width);
                len.ok_or_else(wrong)?
            }
            None => width,
        };
        let range = match (address, address.to_canonical()) {
            (IpAddr::V4(v4), _) => Self { is_v4: true, len, bits: u128::from(v4.to_bits()) << 96 },
            (IpAddr::V6(_), IpAddr::V4(v4)) if len >= 96 => {
                Self { is_v4: true, len: len - 96, bits: u128::from(v4.to_bits()) << 96 }
            }
            (IpAddr::V6(v6), _) => Self { is_v4: false, len, bits: v6.to_bits() },
        };
        match range.bits & !mask(range.len) {
            0 => Ok(range),
            _ => Err(format!("{} has bits behind its prefix: they must be 0", shown(text))),
        }
    }

    /// The range that has this address alone.
    pub(crate) fn one(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self { is_v4: true, len: 32, bits: u128::from(v4.to_bits()) << 96 },
            IpAddr::V6(v6) => Self { is_v4: false, len: 128, bits: v6.to_bits() },
        }
    }

    /// The range with this prefix; the bits of IPv4 are the first 32.
    pub(crate) const fn of_bits(is_v4: bool, len: u32, bits: u128) -> Self {
        Self { is_v4, len, bits }
    }

    /// Whether an address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let one = Self::one(address);
        one.is_v4 == self.is_v4 && one.bits & mask(self.len) == self.bits
    }

    pub(crate) const fn is_v4(&self) -> bool {
        self.is_v4
    }

    pub(crate) const fn prefix_len(&self) -> u32 {
        self.len
    }

    pub(crate) const fn bits(&self) -> u128 {
        self.bits
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_v4, len, bits } = *self;
        match is_v4 {
            true => write!(f, "{}/{len}", Ipv4Addr::from_bits((bits >> 96) as u32)),
            false => write!(f, "{}/{len}", Ipv6Addr::from_bits(bits)),
        }
    }
}

/// The first bits.
pub(crate) fn mask(len: u32) -> u128 {
    u128::MAX.checked_shl(128 - len.min(128)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_what_begins_with_their_bits() {
        for (range, address, expected) in [
            ("10.0.0.0/8", "10.9.8.7", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("0.0.0.0/0", "192.0.2.8", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
        ] {
            let parsed = AddressRange::parse(range).expect(range);
            assert_eq!(parsed.contains(address.parse().expect(address)), expected, "{range}");
            assert_eq!(AddressRange::parse(&parsed.to_string()), Ok(parsed));
        }
    }
}
