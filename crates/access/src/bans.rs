//! Ban files: addresses, client identifiers and users that may not connect, in TOML.
//!
//! Looking up costs no more with more bans: names are hashed, and ranges of addresses are hashed
//! by the length of their prefix.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;

use serde::Deserialize;
use time::{Date, Month, PrimitiveDateTime, Time, UtcOffset};
use toml::Spanned;
use toml::value::{Datetime, Offset};

use crate::address::{AddressRange, mask};
use crate::file::FileError;
use crate::file::shown;
use crate::toml_text::{Wrong, parse_text};

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

    /// When it ends, in seconds since 1970; absent: never.
    pub const fn until_s(&self) -> Option<i64> {
        self.until_s
    }

    /// Whether it is in force at this time, in seconds since 1970.
    pub fn holds(&self, unix_s: i64) -> bool {
        self.until_s.is_none_or(|until_s| unix_s < until_s)
    }
}

/// What a ban is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BannedThing {
    /// An address, or a range of them.
    Address,
    /// A client identifier.
    ClientId,
    /// A user.
    User,
}

/// One ban with what it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanEntry<'a> {
    /// What it is of.
    pub banned: BannedThing,
    /// Which.
    pub what: Cow<'a, str>,
    /// The ban itself.
    pub ban: &'a Ban,
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

    fn entries(&self) -> impl Iterator<Item = (u32, u128, &Ban)> {
        let all = self.0.iter();
        all.flat_map(|(len, bans)| bans.iter().map(move |(bits, ban)| (*len, *bits, ban)))
    }
}

impl Bans {
    /// Parses the text of a ban file; `path` is for errors.
    ///
    /// # Errors
    /// It is not TOML, has an unknown key, an entry that does not ban one thing, a value that
    /// cannot be used, the same thing twice, or too much.
    pub fn parse(path: &str, text: &str) -> Result<Self, FileError> {
        let raw: RawBans = parse_text(path, text)?;
        if raw.bans.len() > BANS_MAX {
            return Err(FileError::whole(path, format!("there are more than {BANS_MAX} bans")));
        }
        let mut bans = Self::default();
        for entry in raw.bans {
            let span = entry.span();
            bans.add(entry).map_err(|wrong| wrong.in_file(path, text, &span))?;
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
                    .map_err(|what| Wrong::of(&address, what))?;
                let maps = if range.is_v4() { &mut self.v4 } else { &mut self.v6 };
                (maps.insert(range.prefix_len(), range.bits(), ban), address)
            }
            (None, Some(name), None) => {
                check_name(&name)?;
                (self.client_ids.insert(name.get_ref().as_str().into(), ban).is_none(), name)
            }
            (None, None, Some(name)) => {
                check_name(&name)?;
                (self.users.insert(name.get_ref().as_str().into(), ban).is_none(), name)
            }
            _ => return Err(Wrong::whole(ENTRY_NEEDS)),
        };
        match is_new {
            true => Ok(()),
            false => Err(Wrong::of(&name, format!("{} is banned twice", shown(name.get_ref())))),
        }
    }

    /// All of them, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = BanEntry<'_>> {
        let addresses =
            [(true, &self.v4), (false, &self.v6)].into_iter().flat_map(|(is_v4, maps)| {
                maps.entries().map(move |(len, bits, ban)| {
                    let range = AddressRange::of_bits(is_v4, len, bits);
                    BanEntry { banned: BannedThing::Address, what: range.to_string().into(), ban }
                })
            });
        addresses
            .chain(named(BannedThing::ClientId, &self.client_ids))
            .chain(named(BannedThing::User, &self.users))
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
        let one = AddressRange::one(address);
        let maps = if one.is_v4() { &self.v4 } else { &self.v6 };
        maps.get(one.bits(), unix_s)
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

/// The bans of names.
fn named(banned: BannedThing, bans: &HashMap<Box<str>, Ban>) -> impl Iterator<Item = BanEntry<'_>> {
    bans.iter().map(move |(name, ban)| BanEntry { banned, what: Cow::Borrowed(&**name), ban })
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

#[cfg(test)]
mod tests;
