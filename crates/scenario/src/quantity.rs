//! Values with a unit, as scenario files write them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time: `"30s"`, `"250ms"`, `"1.5m"`, `"1h"`; a bare number is seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(pub Duration);

/// Messages per second: `100`, `"100/s"`, `"600/m"`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct PerSecond(pub f64);

/// The longest time a scenario may name: a month. Longer is a slip of the unit.
const LONGEST: Duration = Duration::from_secs(31 * 86_400);

/// Splits `1.5ms` into the number and the unit behind it.
fn split_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.replace('_', "").parse().ok()?, unit.trim()))
}

impl TimeSpan {
    /// Whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// No time at all?
    pub const fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// Nanoseconds; at most a month, so it fits easily.
    pub fn as_ns(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Reads `30s`, `250ms`, `1.5m`, `1h`, or a bare number of seconds.
    ///
    /// # Errors
    /// A sentence, when the text is something else or longer than a month.
    pub fn parse(text: &str) -> Result<Self, String> {
        let complaint = || format!("'{text}' is not a length of time: write \"30s\" or \"250ms\"");
        let (number, unit) = split_unit(text).ok_or_else(complaint)?;
        let seconds = match unit {
            "ns" => number / 1e9,
            "us" | "µs" => number / 1e6,
            "ms" => number / 1e3,
            "" | "s" => number,
            "m" | "min" => number * 60.0,
            "h" => number * 3600.0,
            _ => return Err(complaint()),
        };
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if duration <= LONGEST => Ok(Self(duration)),
            _ => Err(format!("'{text}' is longer than 31 days")),
        }
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        match ns {
            0 => write!(f, "0s"),
            _ if ns.is_multiple_of(1_000_000_000) => write!(f, "{}s", ns / 1_000_000_000),
            _ if ns.is_multiple_of(1_000_000) => write!(f, "{}ms", ns / 1_000_000),
            _ if ns.is_multiple_of(1_000) => write!(f, "{}us", ns / 1_000),
            _ => write!(f, "{ns}ns"),
        }
    }
}

impl PerSecond {
    /// Reads `100`, `100/s` or `600/m`.
    ///
    /// # Errors
    /// A sentence, when the text is something else.
    pub fn parse(text: &str) -> Result<Self, String> {
        let complaint = || format!("'{text}' is not a rate: write 100 or \"100/s\"");
        let (number, unit) = split_unit(text).ok_or_else(complaint)?;
        match unit.replace(' ', "").as_str() {
            "" | "/s" => Ok(Self(number)),
            "/m" | "/min" => Ok(Self(number / 60.0)),
            "k" | "k/s" => Ok(Self(number * 1000.0)),
            _ => Err(complaint()),
        }
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for PerSecond {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

/// Reads a value that may be a number or a string, `parse` doing the work for strings.
struct NumberOrText<T> {
    expecting: &'static str,
    number: fn(f64) -> Result<T, String>,
    text: fn(&str) -> Result<T, String>,
}

impl<T> de::Visitor<'_> for NumberOrText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        (self.number)(value as f64).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        (self.number)(value as f64).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        (self.number)(value).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<T, E> {
        (self.text)(value).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrText {
            expecting: "a length of time such as \"30s\"",
            number: |seconds| match Duration::try_from_secs_f64(seconds) {
                Ok(duration) if duration <= LONGEST => Ok(Self(duration)),
                _ => Err(format!("{seconds} seconds is not between 0 and 31 days")),
            },
            text: Self::parse,
        })
    }
}

impl<'de> Deserialize<'de> for PerSecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrText {
            expecting: "a rate such as 100 or \"100/s\"",
            number: |rate| Ok(Self(rate)),
            text: Self::parse,
        })
    }
}

/// A whole number; the range is checked later, where a sentence can say what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole(pub(crate) i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WholeVisitor;
        impl de::Visitor<'_> for WholeVisitor {
            type Value = Whole;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Whole, E> {
                Ok(Whole(value))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Whole, E> {
                Ok(Whole(i64::try_from(value).unwrap_or(i64::MAX)))
            }
        }
        deserializer.deserialize_any(WholeVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spans() {
        let ms = |text| TimeSpan::parse(text).map(|span| span.0.as_millis());
        assert_eq!(ms("30s"), Ok(30_000));
        assert_eq!(ms("250 ms"), Ok(250));
        assert_eq!(ms("1.5m"), Ok(90_000));
        assert_eq!(ms("10"), Ok(10_000));
        assert_eq!(ms("1h"), Ok(3_600_000));
        for bad in ["", "s", "10 parsecs", "-5s", "1e9h", "9999999h", "1.2.3s"] {
            assert!(TimeSpan::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn time_spans_print_as_they_are_read() {
        for text in ["0s", "30s", "250ms", "90s", "1us", "7ns"] {
            assert_eq!(TimeSpan::parse(text).expect("parses").to_string(), text);
        }
    }

    #[test]
    fn rates() {
        assert_eq!(PerSecond::parse("100/s"), Ok(PerSecond(100.0)));
        assert_eq!(PerSecond::parse("600/m"), Ok(PerSecond(10.0)));
        assert_eq!(PerSecond::parse("10_000"), Ok(PerSecond(10_000.0)));
        assert_eq!(PerSecond::parse("10k/s"), Ok(PerSecond(10_000.0)));
        assert!(PerSecond::parse("fast").is_err());
    }
}
