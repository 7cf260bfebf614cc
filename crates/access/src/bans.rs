//! Ban files: addresses, client identifiers and users that may not connect, in TOML.
//!
//! Looking up costs no more with more bans: names are hashed, and ranges of addresses are hashed
//! by the length of their prefix.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

use serde::Deserialize;
use time::{Date, Month, PrimitiveDateTime, Time, UtcOffset};
use toml::Spanned;
use toml::value::{Datetime, Offset};

use crate::file::FileError;

/// What the parser takes is a multiple of the text.
const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;
const BANS_MAX: usize = 1_000_000;
const REASON_CHARS_MAX: usize = 200;
/// The length of an identifier or a user name travels as 16 bits.
const NAME_BYTES_MAX: usize = 65_535;
const ENTRY_NEEDS: &str = "an entry has exactly one of `address`, `client_id` and `user`";
const UNTIL_NEEDS: &str =
    "`until` must be a date and a time with an offset, as 2026-12-31T18:00:00Z";

/// The bans of a file.
#[derive(Debug, Default)]
pub struct Bans {
    v4: PrefixMaps,
    v6: PrefixMaps,
    client_ids: HashMap<Box<str>, Ban>,
    users: HashMap<Box<str>, Ban>,
}

/// One ban.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    reason: Option<Box<str>>,
    /// Seconds since 1970, fractions cut off. Absent: for ever.
    until_s: Option<i64>,
}

impl Ban {
    /// Why, in the words of the file.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    fn holds(&self, unix_s: i64) -> bool {
        self.until_s.is_none_or(|until_s| unix_s < until_s)
    }
}

/// Ranges of addresses by the length of their prefix, the longest first.
#[derive(Debug, Default)]
struct PrefixMaps(Vec<(u32, HashMap<u128, Ban>)>);

impl PrefixMaps {
    fn get(&self, bits: u128, unix_s: i64) -> Option<&Ban> {
        let mut found = self.0.iter().filter_map(|(len, bans)| bans.get(&(bits & mask(*len))));
        found.find(|ban| ban.holds(unix_s))
    }

    /// False if the range is there already.
    fn insert(&mut self, len: u32, bits: u128, ban: Ban) -> bool {
        let at = match self.0.binary_search_by(|(known, _)| len.cmp(known)) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (len, HashMap::new()));
                at
            }
        };
        self.0[at].1.insert(bits, ban).is_none()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Bans {
    /// Parses the text of a ban file; `path` is for errors.
    ///
    /// # Errors
    /// It is not TOML, has an unknown key, an entry that does not ban one thing, a value that
    /// cannot be used, the same thing twice, or too much.
    pub fn parse(path: &str, text: &str) -> Result<Self, FileError> {
        if text.len() > TEXT_BYTES_MAX {
            let mib = TEXT_BYTES_MAX / (1024 * 1024);
            return Err(FileError::whole(path, format!("it is larger than {mib} MiB")));
        }
        let raw: RawBans = toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            FileError::at(path, line_of(text, &span), error.message())
        })?;
        if raw.bans.len() > BANS_MAX {
            return Err(FileError::whole(path, format!("there are more than {BANS_MAX} bans")));
        }
        let mut bans = Self::default();
        for entry in raw.bans {
            let span = entry.span();
            bans.add(entry).map_err(|wrong| {
                let span = wrong.at.unwrap_or(span);
                FileError::at(path, line_of(text, &span), wrong.what)
            })?;
        }
        Ok(bans)
    }

    fn add(&mut self, entry: Spanned<RawBan>) -> Result<(), Wrong> {
        let RawBan { address, client_id, user, reason, until } = entry.into_inner();
        if let Some(reason) = &reason {
            check_reason(reason)?;
        }
        let until_s = until.map(|until| unix_s_of(&until)).transpose()?;
        let ban = Ban { reason: reason.map(|reason| reason.into_inner().into()), until_s };
        let (is_new, name) = match (address, client_id, user) {
            (Some(address), None, None) => {
                let range = AddressRange::parse(address.get_ref())
                    .map_err(|what| Wrong { at: Some(address.span()), what })?;
                let maps = if range.is_v4 { &mut self.v4 } else { &mut self.v6 };
                (maps.insert(range.len, range.bits, ban), address)
            }
            (None, Some(name), None) => {
                check_name(&name)?;
                (self.client_ids.insert(name.get_ref().as_str().into(), ban).is_none(), name)
            }
            (None, None, Some(name)) => {
                check_name(&name)?;
                (self.users.insert(name.get_ref().as_str().into(), ban).is_none(), name)
            }
            _ => return Err(Wrong { at: None, what: ENTRY_NEEDS.to_owned() }),
        };
        match is_new {
            true => Ok(()),
            false => Err(Wrong::of(&name, format!("{} is banned twice", shown(name.get_ref())))),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        !self.has_addresses() && self.client_ids.is_empty() && self.users.is_empty()
    }

    /// Whether there are any of addresses.
    pub fn has_addresses(&self) -> bool {
        !self.v4.is_empty() || !self.v6.is_empty()
    }

    /// The ban of an address at this time, in seconds since 1970. An IPv6 address that stands for
    /// one of IPv4 counts as that.
    pub fn of_address(&self, address: IpAddr, unix_s: i64) -> Option<&Ban> {
        match address.to_canonical() {
            IpAddr::V4(v4) => self.v4.get(u128::from(v4.to_bits()) << 96, unix_s),
            IpAddr::V6(v6) => self.v6.get(v6.to_bits(), unix_s),
        }
    }

    /// The ban of a client identifier at this time, in seconds since 1970.
    pub fn of_client_id(&self, client_id: &str, unix_s: i64) -> Option<&Ban> {
        self.client_ids.get(client_id).filter(|ban| ban.holds(unix_s))
    }

    /// The ban of a user at this time, in seconds since 1970.
    pub fn of_user(&self, user: &str, unix_s: i64) -> Option<&Ban> {
        self.users.get(user).filter(|ban| ban.holds(unix_s))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBans {
    #[serde(default)]
    bans: Vec<Spanned<RawBan>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBan {
    address: Option<Spanned<String>>,
    client_id: Option<Spanned<String>>,
    user: Option<Spanned<String>>,
    reason: Option<Spanned<String>>,
    until: Option<Spanned<toml::Value>>,
}

/// What is wrong with an entry, and where.
struct Wrong {
    /// Absent: the entry as a whole.
    at: Option<Range<usize>>,
    what: String,
}

impl Wrong {
    fn of<T>(value: &Spanned<T>, what: impl Into<String>) -> Self {
        Self { at: Some(value.span()), what: what.into() }
    }
}

/// Addresses that begin with the same bits; those of IPv4 are the first 32.
struct AddressRange {
    is_v4: bool,
    len: u32,
    bits: u128,
}

impl AddressRange {
    fn parse(text: &str) -> Result<Self, String> {
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
}

/// The first bits.
fn mask(len: u32) -> u128 {
    u128::MAX.checked_shl(128 - len.min(128)).unwrap_or(0)
}

fn check_name(name: &Spanned<String>) -> Result<(), Wrong> {
    match name.get_ref().len() {
        1..=NAME_BYTES_MAX => Ok(()),
        _ => Err(Wrong::of(name, format!("a name must have 1 to {NAME_BYTES_MAX} bytes"))),
    }
}

fn check_reason(reason: &Spanned<String>) -> Result<(), Wrong> {
    let text = reason.get_ref();
    if text.chars().nth(REASON_CHARS_MAX).is_some() || text.contains(char::is_control) {
        let what = format!("`reason` must be one line of at most {REASON_CHARS_MAX} characters");
        return Err(Wrong::of(reason, what));
    }
    Ok(())
}

fn unix_s_of(until: &Spanned<toml::Value>) -> Result<i64, Wrong> {
    let datetime = match until.get_ref() {
        toml::Value::Datetime(datetime) => Some(*datetime),
        toml::Value::String(text) => text.parse::<Datetime>().ok(),
        _ => None,
    };
    datetime.as_ref().and_then(seconds_of).ok_or_else(|| Wrong::of(until, UNTIL_NEEDS))
}

/// Seconds since 1970 of a date and time with an offset.
fn seconds_of(datetime: &Datetime) -> Option<i64> {
    let (date, time) = (datetime.date?, datetime.time?);
    let offset_min = match datetime.offset? {
        Offset::Z => 0,
        Offset::Custom { minutes } => i32::from(minutes),
    };
    let month = Month::try_from(date.month).ok()?;
    let date = Date::from_calendar_date(date.year.into(), month, date.day).ok()?;
    let time = Time::from_hms(time.hour, time.minute, time.second.unwrap_or(0)).ok()?;
    let offset = UtcOffset::from_whole_seconds(offset_min * 60).ok()?;
    Some(PrimitiveDateTime::new(date, time).assume_offset(offset).unix_timestamp())
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().iter().take(span.start);
    before.filter(|&&byte| byte == b'\n').count() + 1
}

fn shown(text: &str) -> String {
    let short: String = text.chars().take(64).collect();
    format!("`{}`", short.escape_debug())
}

#[cfg(test)]
mod tests;
