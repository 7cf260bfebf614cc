//! Calendar time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

    /// Year, month, day, hour, minute, second.
    fn parts(self) -> (i64, u32, u32, u64, u64, u64) {
        let seconds = self.0.as_secs();
        let (year, month, day) = civil_from_days((seconds / 86_400) as i64);
        let within = seconds % 86_400;
        (year, month, day, within / 3600, within / 60 % 60, within % 60)
    }

    /// RFC 3339 with milliseconds: `2026-11-21T01:17:45.000Z`.
    pub fn rfc3339(self) -> String {
        let (year, month, day, hour, minute, second) = self.parts();
        let ms = self.0.subsec_millis();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }

    /// For file names, in the order of time: `20261121-011745`.
    pub fn compact(self) -> String {
        let (year, month, day, hour, minute, second) = self.parts();
        format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
    }
}

/// The Gregorian date of a number of days since 1970-01-01 (days_from_civil, inverted; see
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
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
