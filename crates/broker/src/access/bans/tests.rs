use super::*;

fn bans() -> BanTable<Party> {
    BanTable::new(BanRule { offences_max: 3, window_s: 10, ban_s: 60 })
}

fn party(text: &str) -> Party {
    Party::of(text.parse().expect("is one"))
}

fn numbered(number: u32) -> Party {
    Party::of(IpAddr::from((0x0a00_0000 + number).to_be_bytes()))
}

/// Whether the last of so many offences bans.
fn offend(bans: &BanTable<Party>, party: Party, times: usize, at_s: u64) -> bool {
    (0..times).fold(false, |_, _| bans.note(party, at_s * SECOND_NS).bans)
}

#[test]
fn an_address_is_banned_for_its_failures_and_for_a_time() {
    let bans = bans();
    let (one, other) = (party("192.0.2.1"), party("192.0.2.2"));
    assert!(!offend(&bans, one, 2, 100) && !offend(&bans, other, 2, 100));
    assert!(!bans.has_any() && !bans.is_banned(&one, 100 * SECOND_NS));
    assert!(offend(&bans, one, 1, 105));
    assert!(bans.is_banned(&one, 105 * SECOND_NS) && !bans.is_banned(&other, 105 * SECOND_NS));
    // The same address behind a socket of IPv6.
    assert!(bans.is_banned(&party("::ffff:192.0.2.1"), 164 * SECOND_NS));
    assert_eq!((bans.len(), bans.total()), (1, 1));
    assert!(!bans.is_banned(&one, 165 * SECOND_NS));
    assert_eq!((bans.len(), bans.has_any()), (0, false));
    // It begins anew.
    assert!(!offend(&bans, one, 2, 166) && offend(&bans, one, 1, 166));
}

#[test]
fn failures_of_long_ago_do_not_count() {
    let bans = bans();
    for at_s in [100, 120, 140, 160] {
        assert!(!offend(&bans, party("192.0.2.1"), 2, at_s), "{at_s}");
    }
}

#[test]
fn a_network_of_ipv6_is_one_party() {
    let bans = bans();
    for host in 1..=3 {
        let noted = bans.note(party(&format!("2001:db8:0:7::{host}")), SECOND_NS);
        assert_eq!(noted, Noted { offences: host, bans: host == 3 });
    }
    assert!(bans.is_banned(&party("2001:db8:0:7:ffff::1"), SECOND_NS));
    assert!(!bans.is_banned(&party("2001:db8:0:8::1"), SECOND_NS));
}

#[test]
fn any_number_of_addresses_takes_so_much_room_and_frees_no_banned_one() {
    let bans = bans();
    let banned = party("192.0.2.1");
    assert!(offend(&bans, banned, 3, 1));
    for number in 0..3 * PLACES_MAX as u32 {
        bans.note(numbered(number), SECOND_NS);
    }
    {
        let table = bans.lock();
        assert!(table.newer.len() <= PLACES_MAX && table.older.len() <= PLACES_MAX);
    }
    assert!(bans.is_banned(&banned, 2 * SECOND_NS));
    for number in 0..PLACES_MAX as u32 {
        offend(&bans, numbered(number), 3, 2);
    }
    assert_eq!(bans.len(), PLACES_MAX);
    let late = party("198.51.100.1");
    assert!(!offend(&bans, late, 3, 2), "there is no room");
    assert!(offend(&bans, late, 3, 70), "the bans have ended");
    assert_eq!(bans.len(), 1);
}

#[test]
fn nothing_is_counted_unless_it_is_configured() {
    let bans = OffenceBans::new(&AccessSettings::default());
    let address = "192.0.2.1".parse().unwrap();
    for _ in 0..1_000 {
        assert_eq!(bans.login_failed(address, 1), Noted::default());
        assert!(!bans.address_flapped(address, 1) && !bans.client_id_flapped("c", 1));
    }
    assert!(!bans.counts_logins() && !bans.counts_flaps());
    assert!(bans.logins.lock().newer.is_empty() && bans.client_flaps.lock().newer.is_empty());
}

#[test]
fn each_offence_has_its_own_count_and_ban() {
    let settings = AccessSettings {
        login_failures_max: 2,
        flapping_address_max: 3,
        flapping_client_id_max: 2,
        flapping_ban_s: 10,
        ..AccessSettings::default()
    };
    let bans = OffenceBans::new(&settings);
    let address = "192.0.2.1".parse().unwrap();
    assert!(!bans.login_failed(address, 1).bans && !bans.address_flapped(address, 1));
    assert!(!bans.address_flapped(address, 1));
    assert!(!bans.has_addresses() && bans.of_address(address, 1).is_none());
    assert!(bans.address_flapped(address, 1));
    assert_eq!(bans.of_address(address, 1), Some(Offence::AddressFlaps));
    assert!(bans.login_failed(address, 1).bans);
    assert_eq!(bans.of_address(address, 1), Some(Offence::FailedLogins));
    assert_eq!(bans.of_client_id("c", 1), None);
    assert!(!bans.client_id_flapped("c", 1) && !bans.client_id_flapped("d", 1));
    assert!(bans.client_id_flapped("c", 1));
    assert_eq!(bans.of_client_id("c", 1), Some(Offence::ClientIdFlaps));
    assert_eq!(bans.of_client_id("d", 1), None);
    assert_eq!(bans.of_client_id("c", 1 + 10 * SECOND_NS), None);
    assert_eq!(bans.totals().map(|(_, total)| total), [1, 1, 1]);
    assert_eq!(bans.banned().map(|(_, banned)| banned), [1, 1, 0]);
}

#[test]
fn failed_logins_are_counted_for_delays_although_nothing_is_banned() {
    let settings = AccessSettings { login_delay_ms: 250, ..AccessSettings::default() };
    let bans = OffenceBans::new(&settings);
    assert!(bans.counts_logins());
    let address = "192.0.2.1".parse().unwrap();
    for offences in 1..=1_000 {
        assert_eq!(bans.login_failed(address, 1), Noted { offences, bans: false });
    }
    let later = bans.login_failed(address, 1 + 120 * SECOND_NS);
    assert_eq!(later, Noted { offences: 1, bans: false }, "of long ago");
    assert!(!bans.has_addresses());
}
