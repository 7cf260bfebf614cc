//! Addresses that are banned for failed logins, known to all shards.
//!
//! Where no address is banned a connection costs one load of an atomic; the lock is taken for
//! failed logins, and for connections while there are bans.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::AccessSettings;

/// Addresses whose failures are counted, and addresses that are banned.
const ADDRESSES_MAX: usize = 65_536;
const SECOND_NS: u64 = 1_000_000_000;

/// Counts failed logins by address, and bans addresses with too many.
#[derive(Debug)]
pub(crate) struct LoginBans {
    /// 0: nothing is counted.
    failures_max: u32,
    window_ns: u64,
    ban_ns: u64,
    /// As many as the table has.
    banned: AtomicUsize,
    /// Since the start.
    bans: AtomicU64,
    table: Mutex<FailureTable>,
}

/// Failures are counted in two maps. After a window, or when it is full, the newer one becomes the
/// older one, and what was in that is forgotten: a count reaches back one to two windows.
#[derive(Debug, Default)]
struct FailureTable {
    newer: HashMap<IpAddr, u32>,
    older: HashMap<IpAddr, u32>,
    newer_since_ns: u64,
    /// The ends of bans.
    banned: HashMap<IpAddr, u64>,
    /// When bans that have ended were last looked for.
    swept_ns: u64,
}

impl LoginBans {
    pub(crate) fn new(settings: &AccessSettings) -> Self {
        Self {
            failures_max: settings.login_failures_max,
            window_ns: u64::from(settings.login_failures_window_s) * SECOND_NS,
            ban_ns: u64::from(settings.login_ban_s) * SECOND_NS,
            banned: AtomicUsize::new(0),
            bans: AtomicU64::new(0),
            table: Mutex::default(),
        }
    }

    /// Whether failures are counted.
    pub(crate) const fn is_on(&self) -> bool {
        self.failures_max > 0
    }

    /// Whether any address may be banned at present.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.banned.load(Ordering::Relaxed) > 0
    }

    /// How many addresses are banned; of those whose ban has ended, some may be counted still.
    pub(crate) fn len(&self) -> usize {
        self.banned.load(Ordering::Relaxed)
    }

    /// How often an address was banned.
    pub(crate) fn total(&self) -> u64 {
        self.bans.load(Ordering::Relaxed)
    }

    /// A login of an address has failed; true if that bans it.
    pub(crate) fn failed(&self, address: IpAddr, now_ns: u64) -> bool {
        if !self.is_on() {
            return false;
        }
        let address = party(address);
        let mut table = self.lock();
        if table.banned.contains_key(&address)
            || table.count(address, now_ns, self.window_ns) < self.failures_max
        {
            return false;
        }
        table.sweep(now_ns);
        let has_place = table.banned.len() < ADDRESSES_MAX;
        if has_place {
            table.newer.remove(&address);
            table.older.remove(&address);
            table.banned.insert(address, now_ns + self.ban_ns);
            self.bans.fetch_add(1, Ordering::Relaxed);
        }
        self.banned.store(table.banned.len(), Ordering::Relaxed);
        has_place
    }

    /// Whether an address is banned.
    pub(crate) fn is_banned(&self, address: IpAddr, now_ns: u64) -> bool {
        if !self.has_any() {
            return false;
        }
        let address = party(address);
        let mut table = self.lock();
        let ends_ns = table.banned.get(&address).copied();
        if ends_ns.is_some_and(|ends_ns| ends_ns <= now_ns) {
            table.banned.remove(&address);
        }
        table.sweep(now_ns);
        self.banned.store(table.banned.len(), Ordering::Relaxed);
        ends_ns.is_some_and(|ends_ns| ends_ns > now_ns)
    }

    fn lock(&self) -> MutexGuard<'_, FailureTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailureTable {
    /// Counts a failure; how many there are.
    fn count(&mut self, address: IpAddr, now_ns: u64, window_ns: u64) -> u32 {
        let is_over = now_ns.saturating_sub(self.newer_since_ns) >= window_ns;
        if is_over || self.newer.len() >= ADDRESSES_MAX {
            let is_long_over = now_ns.saturating_sub(self.newer_since_ns) >= 2 * window_ns;
            self.older = std::mem::take(&mut self.newer);
            self.newer_since_ns = now_ns;
            if is_long_over {
                self.older = HashMap::new();
            }
        }
        let older = self.older.get(&address).copied().unwrap_or(0);
        let newer = self.newer.entry(address).or_default();
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

/// What is counted and banned as one: an IPv4 address, or the network of an IPv6 address, of which
/// its owner has 2^64.
pub(crate) fn party(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bans() -> LoginBans {
        let settings = AccessSettings {
            login_failures_max: 3,
            login_failures_window_s: 10,
            login_ban_s: 60,
            ..AccessSettings::default()
        };
        LoginBans::new(&settings)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("is one")
    }

    /// Whether the last of so many failures bans.
    fn fail(bans: &LoginBans, address: IpAddr, times: usize, at_s: u64) -> bool {
        (0..times).fold(false, |_, _| bans.failed(address, at_s * SECOND_NS))
    }

    #[test]
    fn an_address_is_banned_for_its_failures_and_for_a_time() {
        let bans = bans();
        let (one, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        assert!(!fail(&bans, one, 2, 100) && !fail(&bans, other, 2, 100));
        assert!(!bans.has_any() && !bans.is_banned(one, 100 * SECOND_NS));
        assert!(fail(&bans, one, 1, 105));
        assert!(bans.is_banned(one, 105 * SECOND_NS) && !bans.is_banned(other, 105 * SECOND_NS));
        // The same address behind a socket of IPv6.
        assert!(bans.is_banned(ip("::ffff:192.0.2.1"), 164 * SECOND_NS));
        assert_eq!((bans.len(), bans.total()), (1, 1));
        assert!(!bans.is_banned(one, 165 * SECOND_NS));
        assert_eq!((bans.len(), bans.has_any()), (0, false));
        // It begins anew.
        assert!(!fail(&bans, one, 2, 166) && fail(&bans, one, 1, 166));
    }

    #[test]
    fn failures_of_long_ago_do_not_count() {
        let bans = bans();
        let one = ip("192.0.2.1");
        for at_s in [100, 120, 140, 160] {
            assert!(!fail(&bans, one, 2, at_s), "{at_s}");
        }
    }

    #[test]
    fn a_network_of_ipv6_is_one_party() {
        let bans = bans();
        for host in 1..=3 {
            let last = bans.failed(ip(&format!("2001:db8:0:7::{host}")), SECOND_NS);
            assert_eq!(last, host == 3);
        }
        assert!(bans.is_banned(ip("2001:db8:0:7:ffff::1"), SECOND_NS));
        assert!(!bans.is_banned(ip("2001:db8:0:8::1"), SECOND_NS));
    }

    #[test]
    fn any_number_of_addresses_takes_so_much_room_and_frees_no_banned_one() {
        let bans = bans();
        let banned = ip("192.0.2.1");
        assert!(fail(&bans, banned, 3, 1));
        for number in 0..3 * ADDRESSES_MAX as u32 {
            bans.failed(IpAddr::from((0x0a00_0000 + number).to_be_bytes()), SECOND_NS);
        }
        {
            let table = bans.lock();
            assert!(table.newer.len() <= ADDRESSES_MAX && table.older.len() <= ADDRESSES_MAX);
        }
        assert!(bans.is_banned(banned, 2 * SECOND_NS));
        for number in 0..ADDRESSES_MAX as u32 {
            let address = IpAddr::from((0x0a00_0000 + number).to_be_bytes());
            fail(&bans, address, 3, 2);
        }
        assert_eq!(bans.len(), ADDRESSES_MAX);
        assert!(!fail(&bans, ip("198.51.100.1"), 3, 2), "there is no room");
        assert!(fail(&bans, ip("198.51.100.1"), 3, 70), "the bans have ended");
        assert_eq!(bans.len(), 1);
    }

    #[test]
    fn nothing_is_counted_unless_it_is_configured() {
        let bans = LoginBans::new(&AccessSettings::default());
        assert!(!fail(&bans, ip("192.0.2.1"), 1_000, 1));
        assert!(bans.lock().newer.is_empty());
    }
}
