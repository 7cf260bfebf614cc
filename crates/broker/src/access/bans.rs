//! Addresses and client identifiers that are banned for what they did, known to all shards.
//!
//! Where nothing is banned a connection costs a few loads of atomics; a lock is taken for offences,
//! and for connections while there are bans.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::AccessSettings;
use crate::party::Party;

/// What a table counts offences of, and what it bans.
const PLACES_MAX: usize = 65_536;
const SECOND_NS: u64 = 1_000_000_000;

/// Counts offences, and bans for too many.
#[derive(Debug)]
pub(crate) struct OffenceBans {
    /// Failed logins of an address.
    logins: BanTable<Party>,
    /// Connections of an address that have ended.
    flaps: BanTable<Party>,
    /// The same of a client identifier, as its hash: names may be long.
    client_flaps: BanTable<u64>,
    hasher: RandomState,
}

/// Why something is banned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offence {
    /// Too many logins of the address have failed.
    FailedLogins,
    /// The address has connected and left too often.
    AddressFlaps,
    /// The client identifier has connected and left too often.
    ClientIdFlaps,
}

impl Offence {
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::FailedLogins => "the address is banned for failed logins",
            Self::AddressFlaps => "the address is banned, since it connects and leaves too often",
            Self::ClientIdFlaps => {
                "the client identifier is banned, since it connects and leaves too often"
            }
        }
    }
}

impl OffenceBans {
    pub(crate) fn new(settings: &AccessSettings) -> Self {
        let offences_max = match (settings.login_failures_max, settings.login_delay_ms) {
            // Answers are delayed by their number, and nothing is banned.
            (0, 1..) => u32::MAX,
            (offences_max, _) => offences_max,
        };
        let of_logins = BanRule {
            offences_max,
            window_s: settings.login_failures_window_s,
            ban_s: settings.login_ban_s,
        };
        let (window_s, ban_s) = (settings.flapping_window_s, settings.flapping_ban_s);
        let of_flaps = |offences_max: u32| BanRule { offences_max, window_s, ban_s };
        Self {
            logins: BanTable::new(of_logins),
            flaps: BanTable::new(of_flaps(settings.flapping_address_max)),
            client_flaps: BanTable::new(of_flaps(settings.flapping_client_id_max)),
            hasher: RandomState::new(),
        }
    }

    /// Whether failed logins are counted.
    pub(crate) const fn counts_logins(&self) -> bool {
        self.logins.is_on()
    }

    /// Whether connections that end are counted.
    #[inline]
    pub(crate) const fn counts_flaps(&self) -> bool {
        self.flaps.is_on() || self.client_flaps.is_on()
    }

    /// A login of an address has failed.
    pub(crate) fn login_failed(&self, address: IpAddr, now_ns: u64) -> Noted {
        self.logins.note(Party::of(address), now_ns)
    }

    /// A connection of an address has ended; true if that bans it.
    pub(crate) fn address_flapped(&self, address: IpAddr, now_ns: u64) -> bool {
        self.flaps.note(Party::of(address), now_ns).bans
    }

    /// A connection of a client has ended; true if that bans its identifier.
    pub(crate) fn client_id_flapped(&self, client_id: &str, now_ns: u64) -> bool {
        self.client_flaps.is_on() && self.client_flaps.note(self.hash(client_id), now_ns).bans
    }

    /// Whether any address may be banned at present.
    #[inline]
    pub(crate) fn has_addresses(&self) -> bool {
        self.logins.has_any() || self.flaps.has_any()
    }

    /// Why an address is banned.
    pub(crate) fn of_address(&self, address: IpAddr, now_ns: u64) -> Option<Offence> {
        let party = Party::of(address);
        if self.logins.is_banned(&party, now_ns) {
            return Some(Offence::FailedLogins);
        }
        self.flaps.is_banned(&party, now_ns).then_some(Offence::AddressFlaps)
    }

    /// Why a client identifier is banned.
    pub(crate) fn of_client_id(&self, client_id: &str, now_ns: u64) -> Option<Offence> {
        let is_banned = self.client_flaps.has_any()
            && self.client_flaps.is_banned(&self.hash(client_id), now_ns);
        is_banned.then_some(Offence::ClientIdFlaps)
    }

    /// How much is banned for each offence; of what is banned no longer, some may be counted still.
    pub(crate) fn banned(&self) -> [(Offence, usize); 3] {
        [
            (Offence::FailedLogins, self.logins.len()),
            (Offence::AddressFlaps, self.flaps.len()),
            (Offence::ClientIdFlaps, self.client_flaps.len()),
        ]
    }

    /// How often something was banned for each offence.
    pub(crate) fn totals(&self) -> [(Offence, u64); 3] {
        [
            (Offence::FailedLogins, self.logins.total()),
            (Offence::AddressFlaps, self.flaps.total()),
            (Offence::ClientIdFlaps, self.client_flaps.total()),
        ]
    }

    /// The addresses that are banned, each with the offence and when its ban ends, up to so many.
    pub(crate) fn addresses(&self, now_ns: u64, max: usize) -> Vec<(IpAddr, Offence, u64)> {
        let logins = self.logins.list(now_ns, max).into_iter();
        let flaps = self.flaps.list(now_ns, max).into_iter();
        let logins = logins.map(|(party, ends)| (party.address(), Offence::FailedLogins, ends));
        let flaps = flaps.map(|(party, ends)| (party.address(), Offence::AddressFlaps, ends));
        logins.chain(flaps).take(max).collect()
    }

    /// An operator lifts the bans of an address: whether there were any.
    pub(crate) fn forgive_address(&self, address: IpAddr) -> bool {
        let party = Party::of(address);
        let (login, flap) = (self.logins.forgive(&party), self.flaps.forgive(&party));
        login || flap
    }

    /// An operator lifts the ban of a client identifier: whether there was one.
    pub(crate) fn forgive_client_id(&self, client_id: &str) -> bool {
        self.client_flaps.forgive(&self.hash(client_id))
    }

    fn hash(&self, client_id: &str) -> u64 {
        self.hasher.hash_one(client_id)
    }
}

/// What an offence has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// How many there have been lately, with this one; 0 if none is counted.
    pub(crate) offences: u32,
    /// It bans.
    pub(crate) bans: bool,
}

/// So many offences within a window ban for a while.
#[derive(Clone, Copy, Debug)]
struct BanRule {
    /// 0: nothing is counted.
    offences_max: u32,
    window_s: u32,
    ban_s: u32,
}

/// Counts offences of one kind, and bans for too many.
#[derive(Debug)]
struct BanTable<K> {
    /// 0: nothing is counted.
    offences_max: u32,
    window_ns: u64,
    ban_ns: u64,
    /// As many as the table has.
    banned: AtomicUsize,
    /// Since the start.
    bans: AtomicU64,
    table: Mutex<OffenceTable<K>>,
}

/// Offences are counted in two maps. After a window, or when it is full, the newer one becomes the
/// older one, and what was in that is forgotten: a count reaches back one to two windows.
#[derive(Debug)]
struct OffenceTable<K> {
    newer: HashMap<K, u32>,
    older: HashMap<K, u32>,
    newer_since_ns: u64,
    /// The ends of bans.
    banned: HashMap<K, u64>,
    /// When bans that have ended were last looked for.
    swept_ns: u64,
}

impl<K: Copy + Eq + Hash> BanTable<K> {
    fn new(rule: BanRule) -> Self {
        Self {
            offences_max: rule.offences_max,
            window_ns: u64::from(rule.window_s) * SECOND_NS,
            ban_ns: u64::from(rule.ban_s) * SECOND_NS,
            banned: AtomicUsize::new(0),
            bans: AtomicU64::new(0),
            table: Mutex::new(OffenceTable {
                newer: HashMap::new(),
                older: HashMap::new(),
                newer_since_ns: 0,
                banned: HashMap::new(),
                swept_ns: 0,
            }),
        }
    }

    const fn is_on(&self) -> bool {
        self.offences_max > 0
    }

    #[inline]
    fn has_any(&self) -> bool {
        self.len() > 0
    }

    fn len(&self) -> usize {
        self.banned.load(Ordering::Relaxed)
    }

    fn total(&self) -> u64 {
        self.bans.load(Ordering::Relaxed)
    }

    fn note(&self, key: K, now_ns: u64) -> Noted {
        if !self.is_on() {
            return Noted::default();
        }
        let mut table = self.lock();
        if table.banned.contains_key(&key) {
            return Noted::default();
        }
        let offences = table.count(key, now_ns, self.window_ns);
        if offences < self.offences_max {
            return Noted { offences, bans: false };
        }
        table.sweep(now_ns);
        let has_place = table.banned.len() < PLACES_MAX;
        if has_place {
            table.newer.remove(&key);
            table.older.remove(&key);
            table.banned.insert(key, now_ns + self.ban_ns);
            self.bans.fetch_add(1, Ordering::Relaxed);
        }
        self.banned.store(table.banned.len(), Ordering::Relaxed);
        Noted { offences, bans: has_place }
    }

    fn is_banned(&self, key: &K, now_ns: u64) -> bool {
        if !self.has_any() {
            return false;
        }
        let mut table = self.lock();
        let ends_ns = table.banned.get(key).copied();
        if ends_ns.is_some_and(|ends_ns| ends_ns <= now_ns) {
            table.banned.remove(key);
        }
        table.sweep(now_ns);
        self.banned.store(table.banned.len(), Ordering::Relaxed);
        ends_ns.is_some_and(|ends_ns| ends_ns > now_ns)
    }

    /// What is banned, with the end of each ban.
    fn list(&self, now_ns: u64, max: usize) -> Vec<(K, u64)> {
        let table = self.lock();
        let held = table.banned.iter().filter(|(_, ends_ns)| **ends_ns > now_ns);
        held.take(max).map(|(key, ends_ns)| (*key, *ends_ns)).collect()
    }

    /// Forgets a ban and the offences that led to it.
    fn forgive(&self, key: &K) -> bool {
        let mut table = self.lock();
        table.newer.remove(key);
        table.older.remove(key);
        let was_banned = table.banned.remove(key).is_some();
        self.banned.store(table.banned.len(), Ordering::Relaxed);
        was_banned
    }

    fn lock(&self) -> MutexGuard<'_, OffenceTable<K>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> OffenceTable<K> {
    /// Counts an offence; how many there are.
    fn count(&mut self, key: K, now_ns: u64, window_ns: u64) -> u32 {
        let is_over = now_ns.saturating_sub(self.newer_since_ns) >= window_ns;
        if is_over || self.newer.len() >= PLACES_MAX {
            let is_long_over = now_ns.saturating_sub(self.newer_since_ns) >= 2 * window_ns;
            self.older = std::mem::take(&mut self.newer);
            self.newer_since_ns = now_ns;
            if is_long_over {
                self.older = HashMap::new();
            }
        }
        let older = self.older.get(&key).copied().unwrap_or(0);
        let newer = self.newer.entry(key).or_default();
        *newer = newer.saturating_add(1);
        newer.saturating_add(older)
    }

    /// Forgets bans that have ended, once a second at most: that looks at all of them.
    fn sweep(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.swept_ns) >= SECOND_NS {
            self.swept_ns = now_ns;
            self.banned.retain(|_, ends_ns| *ends_ns > now_ns);
        }
    }
}

#[cfg(test)]
mod tests;
