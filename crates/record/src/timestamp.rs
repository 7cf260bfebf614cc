//! Calendar time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;

/// A moment of calendar time in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(Duration);

impl Timestamp {
    /// Now.
    pub fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> f64 {
        self.0.as_secs_f64()
    }

    /// Nanoseconds within the second: a little entropy for a run's identity.
    pub fn subsecond_ns(self) -> u32 {
        self.0.subsec_nanos()
    }

    fn utc(self) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + self.0
    }

    /// RFC 3339 with milliseconds: `2026-11-21T01:17:45.000Z`.
    pub fn rfc3339(self) -> String {
        let at = self.utc();
        let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
        let (hour, minute, second, ms) = (at.hour(), at.minute(), at.second(), at.millisecond());
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }

    /// For file names, in the order of time: `20261121-011745`.
    pub fn compact(self) -> String {
        let at = self.utc();
        let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
        let (hour, minute, second) = (at.hour(), at.minute(), at.second());
        format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_795_223_865, "2026-11-21T01:17:45.000Z"),
        ] {
            assert_eq!(Timestamp(Duration::from_secs(seconds)).rfc3339(), text);
        }
        assert_eq!(Timestamp(Duration::from_secs(951_782_400)).compact(), "20000229-000000");
    }
}
