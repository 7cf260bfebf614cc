//! Calendar time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::{Date, Month, OffsetDateTime, Time};

/// A moment of calendar time in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(Duration);

impl Timestamp {
    /// Now.
    pub fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// From nanoseconds since 1970.
    pub const fn from_unix_ns(ns: u64) -> Self {
        Self(Duration::from_nanos(ns))
    }

    /// Nanoseconds since 1970.
    pub const fn unix_ns(self) -> u128 {
        self.0.as_nanos()
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> f64 {
        self.0.as_secs_f64()
    }

    /// Whole milliseconds since 1970.
    pub fn unix_ms(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// Reads what [`Timestamp::rfc3339`] writes; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        let mut date = date.splitn(3, '-');
        let (year, month, day) = (date.next()?, date.next()?, date.next()?);
        let mut time = time.splitn(3, ':');
        let (hour, minute, second) = (time.next()?, time.next()?, time.next()?);
        let (second, ms) = second.split_once('.')?;
        let month = Month::try_from(month.parse::<u8>().ok()?).ok()?;
        let date = Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()?;
        let (hour, minute) = (hour.parse().ok()?, minute.parse().ok()?);
        let time = Time::from_hms_milli(hour, minute, second.parse().ok()?, ms.parse().ok()?);
        let since = date.with_time(time.ok()?).assume_utc() - OffsetDateTime::UNIX_EPOCH;
        Duration::try_from(since).ok().map(Self)
    }

    /// The moment so many seconds later; a length that is none changes nothing.
    pub fn after(self, seconds: f64) -> Self {
        let length = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Self(self.0.saturating_add(length))
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
            assert_eq!(Timestamp::parse(text).map(Timestamp::unix_ms), Some(seconds * 1_000));
        }
        let read = Timestamp::parse("2026-11-21T01:17:45.678Z").map(Timestamp::unix_ms);
        assert_eq!(read, Some(1_795_223_865_678));
        for text in ["", "2026-11-21", "2026-13-21T01:17:45.000Z", "2026-11-21T01:17:45.000+01:00"]
        {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
        assert_eq!(Timestamp(Duration::from_secs(951_782_400)).compact(), "20000229-000000");
    }
}
