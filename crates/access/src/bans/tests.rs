use proptest::prelude::*;

use super::*;

fn bans(text: &str) -> Bans {
    Bans::parse("bans", text).expect("valid")
}

fn refused(text: &str) -> String {
    Bans::parse("bans", text).expect_err("not valid").to_string()
}

fn is_banned(bans: &Bans, address: &str, unix_s: i64) -> bool {
    bans.of_address(address.parse().expect("an address"), unix_s).is_some()
}

#[test]
fn addresses_and_ranges_of_both_families() {
    let bans = bans(
        "[[bans]]\naddress = '192.0.2.7'\nreason = 'scanner'\n[[bans]]\naddress = '10.1.0.0/16'\n\
         [[bans]]\naddress = '2001:db8::/32'\n[[bans]]\naddress = '::ffff:198.51.100.0/120'\n",
    );
    for (address, expected) in [
        ("192.0.2.7", true),
        ("192.0.2.8", false),
        ("::ffff:192.0.2.7", true),
        ("::192.0.2.7", false),
        ("10.1.255.255", true),
        ("10.2.0.0", false),
        ("2001:db8:ffff::1", true),
        ("2001:db9::1", false),
        ("198.51.100.9", true),
        ("::ffff:198.51.100.9", true),
        ("198.51.101.0", false),
    ] {
        assert_eq!(is_banned(&bans, address, 0), expected, "{address}");
    }
    let ban = bans.of_address([192, 0, 2, 7].into(), 0).expect("is banned");
    assert_eq!(ban.reason(), Some("scanner"));
    let all = super::Bans::parse("", "[[bans]]\naddress = '0.0.0.0/0'\n").expect("valid");
    assert!(is_banned(&all, "255.255.255.255", 0) && !is_banned(&all, "::1", 0));
}

#[test]
fn names_are_exact_and_apart() {
    let bans = bans("[[bans]]\nclient_id = 'c/1'\n[[bans]]\nuser = 'eve'\n");
    assert!(bans.of_client_id("c/1", 0).is_some() && bans.of_user("eve", 0).is_some());
    for name in ["C/1", "c/", "eve", ""] {
        assert!(bans.of_client_id(name, 0).is_none(), "{name}");
    }
    assert!(bans.of_user("c/1", 0).is_none());
    assert!(!bans.has_addresses() && !bans.is_empty());
    assert!(super::Bans::parse("", "").expect("valid").is_empty());
}

#[test]
fn a_ban_ends_at_its_time_and_a_wider_one_holds_on() {
    let bans = bans(
        "[[bans]]\naddress = '192.0.2.7'\nuntil = 1970-01-01T01:00:10+01:00\n\
         [[bans]]\naddress = '192.0.2.0/24'\nuntil = '1970-01-01T00:00:20Z'\n\
         [[bans]]\nuser = 'eve'\nuntil = 1969-12-31 23:59:50Z\n",
    );
    for (unix_s, expected) in [(9, true), (10, true), (19, true), (20, false)] {
        assert_eq!(is_banned(&bans, "192.0.2.7", unix_s), expected, "{unix_s}");
    }
    assert!(bans.of_user("eve", -11).is_some() && bans.of_user("eve", -10).is_none());
    assert!(bans.of_user("eve", 0).is_none());
}

#[test]
fn errors_name_the_line_and_the_problem() {
    for (text, line, words) in [
        ("[[bans]]\nuser = 'a'\nnote = 'x'\n", 3, "note"),
        ("\n[[ban]]\nuser = 'a'\n", 2, "ban"),
        ("[[bans]]\nuser = 'a\n", 2, ""),
        ("[[bans]]\nuser = 'a'\n\n[[bans]]\nreason = 'x'\n", 4, "exactly one"),
        ("[[bans]]\nuser = 'a'\nclient_id = 'a'\n", 1, "exactly one"),
        ("[[bans]]\naddress = '192.0.2'\n", 2, "192.0.2.0/24"),
        ("[[bans]]\naddress = '192.0.2.0/33'\n", 2, "is no address"),
        ("[[bans]]\naddress = '192.0.2.0/+8'\n", 2, "is no address"),
        ("[[bans]]\naddress = '192.0.2.1/24'\n", 2, "behind its prefix"),
        ("[[bans]]\naddress = '2001:db8::1/32'\n", 2, "behind its prefix"),
        ("[[bans]]\nuser = 'a'\n[[bans]]\nuser = 'a'\n", 4, "twice"),
        ("[[bans]]\naddress = '::ffff:1.2.3.4'\n[[bans]]\naddress = '1.2.3.4'\n", 4, "twice"),
        ("[[bans]]\nuser = ''\n", 2, "1 to 65535 bytes"),
        ("[[bans]]\nuser = 'a'\nreason = \"a\\nb\"\n", 3, "one line"),
        ("[[bans]]\nuser = 'a'\nuntil = 2026-12-31\n", 3, "offset"),
        ("[[bans]]\nuser = 'a'\nuntil = 2026-12-31T10:00:00\n", 3, "offset"),
        ("[[bans]]\nuser = 'a'\nuntil = 7\n", 3, "offset"),
        ("[[bans]]\nuser = 'a'\nuntil = 'tomorrow'\n", 3, "offset"),
    ] {
        let error = refused(text);
        assert!(error.starts_with(&format!("bans:{line}: ")) && error.contains(words), "{error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_taken_or_refused(text in any::<String>(), value in "[0-9a-f:./]{0,20}") {
        let _ = Bans::parse("bans", &text);
        let _ = Bans::parse("bans", &format!("[[bans]]\naddress = '{value}'\n"));
        let _ = Bans::parse("bans", &format!("[[bans]]\nuser = 'a'\nuntil = '{value}Z'\n"));
    }

    /// The maps say what comparing the bits says.
    #[test]
    fn a_range_has_the_addresses_that_begin_like_it(
        bits in any::<u128>(), len in 0_u32..=128, other in any::<u128>(), same in 0_u32..=128,
    ) {
        let start = bits & mask(len);
        let range = std::net::Ipv6Addr::from_bits(start);
        prop_assume!(range.to_ipv4_mapped().is_none());
        let bans = bans(&format!("[[bans]]\naddress = '{range}/{len}'\n"));
        let other = (bits & mask(same)) | (other & !mask(same));
        let address = std::net::Ipv6Addr::from_bits(other);
        prop_assume!(address.to_ipv4_mapped().is_none());
        let expected = other & mask(len) == start;
        prop_assert_eq!(bans.of_address(address.into(), 0).is_some(), expected);
    }
}

#[test]
fn all_bans_are_listed_as_the_file_has_them() {
    let text = "[[bans]]\naddress = '192.0.2.0/24'\nreason = 'scans'\n\
                [[bans]]\naddress = '2001:db8::7'\n\
                [[bans]]\nclient_id = 'a'\nuntil = 1970-01-01T00:01:40Z\n\
                [[bans]]\nuser = 'ann'\n";
    let bans = Bans::parse("bans", text).expect("is right");
    let mut entries: Vec<(String, Option<&str>, Option<i64>)> = bans
        .entries()
        .map(|entry| {
            let what = format!("{:?} {}", entry.banned, entry.what);
            (what, entry.ban.reason(), entry.ban.until_s())
        })
        .collect();
    entries.sort();
    let expected = [
        ("Address 192.0.2.0/24", Some("scans"), None),
        ("Address 2001:db8::7/128", None, None),
        ("ClientId a", None, Some(100)),
        ("User ann", None, None),
    ];
    assert_eq!(entries, expected.map(|(what, reason, until)| (what.to_owned(), reason, until)));
}
