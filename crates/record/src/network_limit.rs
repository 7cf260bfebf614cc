//! What a host's network can do, as its owner states it.

use serde::{Deserialize, Serialize};

/// The most that a host's network carries in each direction; at least one figure is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetworkLimit {
    /// Bits per second.
    pub bits_per_s: Option<u64>,
    /// Packets per second.
    pub packets_per_s: Option<u64>,
}

/// Units of bits, the longest prefix first.
const BIT_UNITS: [(&str, f64); 4] =
    [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];
/// Units of packets, likewise.
const PACKET_UNITS: [(&str, f64); 3] = [("Mpps", 1e6), ("kpps", 1e3), ("pps", 1.0)];

impl NetworkLimit {
    /// Parses `8Gbit/s`, `800kpps` or both with a comma between.
    ///
    /// # Errors
    /// A sentence that names the faulty part and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut limit = Self::default();
        for part in text.split(',').map(str::trim) {
            let of = |units: &[(&str, f64)]| {
                let (number, factor) = units
                    .iter()
                    .find_map(|(unit, factor)| Some((part.strip_suffix(unit)?, *factor)))?;
                let figure = number.trim().parse::<f64>().ok()? * factor;
                (1.0..=1e15).contains(&figure).then_some(figure as u64)
            };
            let place = match (of(&BIT_UNITS), of(&PACKET_UNITS)) {
                (Some(bits), _) => (&mut limit.bits_per_s, bits),
                (None, Some(packets)) => (&mut limit.packets_per_s, packets),
                (None, None) => {
                    return Err(format!(
                        "'{part}' is no limit of a network: write 8Gbit/s (kbit/s, Mbit/s), \
                         800kpps (pps, Mpps), or both with a comma between"
                    ));
                }
            };
            if place.0.replace(place.1).is_some() {
                return Err(format!("'{part}': there is such a limit already"));
            }
        }
        Ok(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed() {
        let limit = |bits_per_s, packets_per_s| Ok(NetworkLimit { bits_per_s, packets_per_s });
        let both = limit(Some(8_000_000_000), Some(800_000));
        assert_eq!(NetworkLimit::parse("8Gbit/s,800kpps"), both);
        assert_eq!(NetworkLimit::parse("800kpps, 8Gbit/s"), both);
        assert_eq!(NetworkLimit::parse("1.5 Mbit/s"), limit(Some(1_500_000), None));
        assert_eq!(NetworkLimit::parse("900pps"), limit(None, Some(900)));
        for wrong in ["", "8", "8GB/s", "-1Gbit/s", "0pps", "NaNpps", "infpps", "1kpps,2kpps"] {
            NetworkLimit::parse(wrong).expect_err(wrong);
        }
    }
}
