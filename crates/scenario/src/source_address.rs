//! Local addresses that clients connect from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Serialize, Serializer};

/// Addresses at most: as many as a network of 16 bits has.
const ADDRESSES_MAX: u128 = 65_536;

/// Addresses of this machine that clients use in turn; empty leaves the choice to the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceAddresses(Vec<Range>);

/// From an address to an address of the same family, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: IpAddr,
    last: IpAddr,
}

impl SourceAddresses {
    /// Reads addresses and ranges with commas between: `10.0.0.2-10.0.0.9,10.0.1.1`.
    ///
    /// # Errors
    /// A sentence, when something else is written, or an address twice.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::from_parts(text.split(','))
    }

    /// Reads a list whose parts are addresses or ranges.
    ///
    /// # Errors
    /// As [`SourceAddresses::parse`].
    pub fn from_parts<'t>(parts: impl Iterator<Item = &'t str>) -> Result<Self, String> {
        let ranges = parts.map(|part| Range::parse(part.trim())).collect::<Result<Vec<_>, _>>()?;
        let count = ranges.iter().fold(0_u128, |sum, range| sum.saturating_add(range.count()));
        if count > ADDRESSES_MAX {
            return Err(format!("{count} source addresses are too many: at most {ADDRESSES_MAX}"));
        }
        let mut sorted = ranges.clone();
        sorted.sort_by_key(|range| range.first);
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].last >= pair[1].first) {
            return Err(format!("the source address {} is listed twice", pair[1].first));
        }
        Ok(Self(ranges))
    }

    /// No address: the system chooses.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All addresses, in the order in which they are written.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.0.iter().flat_map(|range| (0..range.count()).map(|offset| range.at(offset)))
    }
}

impl Range {
    fn parse(text: &str) -> Result<Self, String> {
        let address = |text: &str| {
            text.trim().parse::<IpAddr>().map_err(|_| {
                format!(
                    "'{text}' is not an IP address: write addresses and ranges such as \
                     10.0.0.2-10.0.0.9,10.0.1.1"
                )
            })
        };
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (address(first)?, address(last)?),
            None => (address(text)?, address(text)?),
        };
        if first.is_ipv4() != last.is_ipv4() {
            return Err(format!("'{text}' mixes IPv4 and IPv6"));
        }
        if last < first {
            return Err(format!("'{text}' ends before it begins"));
        }
        Ok(Self { first, last })
    }

    /// Invariant: the last address is not before the first, and of the same family.
    fn count(self) -> u128 {
        (number(self.last) - number(self.first)).saturating_add(1)
    }

    fn at(self, offset: u128) -> IpAddr {
        let number = number(self.first) + offset;
        match self.first {
            // Invariant: it is at most the last address, which has 32 bits.
            IpAddr::V4(_) => Ipv4Addr::from_bits(number as u32).into(),
            IpAddr::V6(_) => Ipv6Addr::from_bits(number).into(),
        }
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// A list of addresses and ranges.
impl Serialize for SourceAddresses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|Range { first, last }| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_spelled_out() {
        let shown = |text: &str| -> Vec<String> {
            let addresses = SourceAddresses::parse(text).expect(text);
            addresses.iter().map(|address| address.to_string()).collect()
        };
        assert_eq!(
            shown("10.0.0.254-10.0.1.1, 10.0.0.2"),
            ["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1", "10.0.0.2"]
        );
        assert_eq!(shown("fd00::fffe-fd00::1:0"), ["fd00::fffe", "fd00::ffff", "fd00::1:0"]);
        assert!(SourceAddresses::default().is_empty());
    }

    #[test]
    fn errors_are_sentences() {
        for (text, words) in [
            ("10.0.0.1,eth0", "'eth0' is not an IP address"),
            ("", "'' is not an IP address"),
            ("10.0.0.9-10.0.0.2", "ends before it begins"),
            ("10.0.0.9-fd00::1", "mixes IPv4 and IPv6"),
            ("10.0.0.1-10.0.0.9,10.0.0.5", "10.0.0.5 is listed twice"),
            ("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "too many"),
            ("10.0.0.0-10.1.0.0", "65537 source addresses are too many"),
        ] {
            let error = SourceAddresses::parse(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
