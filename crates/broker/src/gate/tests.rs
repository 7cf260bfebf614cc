use super::addresses::ADDRESSES_MAX;
use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn gate(limits: ConnectionLimits) -> Gate {
    let text = "[[listeners]]\naddress = '127.0.0.1:0'\n";
    let raw: crate::config::RawConfig = toml::from_str(text).unwrap();
    let mut config = raw.resolve().unwrap();
    config.listeners[0].connections = limits;
    Gate::new(&config.listeners[0])
}

fn permits() -> ConnectionPermits {
    ConnectionPermits::of_socket(Quota::new(1).take())
}

/// A connection from an address at a time.
fn come(gate: &Gate, address: &str, now_ns: u64) -> Result<ConnectionPermits, Excess> {
    let mut permits = permits();
    gate.enter_from(&mut permits, address.parse().unwrap(), now_ns)?;
    gate.enter(&mut permits, now_ns)?;
    Ok(permits)
}

#[test]
fn a_listener_and_an_address_have_so_many_connections() {
    let limits = ConnectionLimits { max: Some(3), per_address_max: Some(2), ..Default::default() };
    let gate = gate(limits);
    let first = come(&gate, "192.0.2.1", 1).unwrap();
    // The same address behind a socket of IPv6.
    let second = come(&gate, "::ffff:192.0.2.1", 1).unwrap();
    assert_eq!(come(&gate, "192.0.2.1", 1).err(), Some(Excess::AddressFull));
    let third = come(&gate, "192.0.2.2", 1).unwrap();
    assert_eq!(come(&gate, "192.0.2.3", 1).err(), Some(Excess::ListenerFull));
    drop(first);
    let fourth = come(&gate, "192.0.2.1", 1).unwrap();
    drop((second, third, fourth));
    assert_eq!(gate.addresses.as_ref().unwrap().len(), 0, "nothing is left behind");
}

#[test]
fn a_network_of_ipv6_is_one_address() {
    let gate = gate(ConnectionLimits { per_address_max: Some(1), ..Default::default() });
    let _first = come(&gate, "2001:db8:0:7::1", 1).unwrap();
    assert_eq!(come(&gate, "2001:db8:0:7:ffff::2", 1).err(), Some(Excess::AddressFull));
    assert!(come(&gate, "2001:db8:0:8::1", 1).is_ok());
}

#[test]
fn new_connections_are_limited_per_second_and_refused_ones_do_not_count() {
    let limits = ConnectionLimits {
        per_s_max: Some(5),
        per_address_per_s_max: Some(2),
        ..Default::default()
    };
    let gate = gate(limits);
    let at = |address: &str, now_ns: u64| come(&gate, address, now_ns).map(drop);
    for _ in 0..2 {
        assert_eq!(at("192.0.2.1", SECOND_NS), Ok(()));
    }
    assert_eq!(at("192.0.2.1", SECOND_NS), Err(Excess::AddressRate));
    assert_eq!(at("192.0.2.2", SECOND_NS), Ok(()));
    assert_eq!(at("192.0.2.3", SECOND_NS), Ok(()));
    assert_eq!(at("192.0.2.4", SECOND_NS), Ok(()));
    assert_eq!(at("192.0.2.5", SECOND_NS), Err(Excess::ListenerRate));
    // Half a second later there is room for one more of this address.
    let later_ns = SECOND_NS + SECOND_NS / 2;
    assert_eq!(at("192.0.2.1", later_ns), Ok(()));
    assert_eq!(at("192.0.2.1", later_ns), Err(Excess::AddressRate));
}

#[test]
fn any_number_of_addresses_takes_so_much_room() {
    let limits = ConnectionLimits { per_address_per_s_max: Some(1), ..Default::default() };
    let gate = gate(limits);
    let address = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
    let len = || gate.addresses.as_ref().unwrap().len();
    let mut held = permits();
    assert_eq!(gate.enter_from(&mut held, address(0), SECOND_NS), Ok(true));
    for number in 1..ADDRESSES_MAX as u32 {
        assert_eq!(gate.enter_from(&mut permits(), address(number), SECOND_NS), Ok(true));
    }
    let more = address(ADDRESSES_MAX as u32);
    assert_eq!(gate.enter_from(&mut permits(), more, SECOND_NS), Ok(false), "there is no room");
    assert_eq!(len(), ADDRESSES_MAX);
    // One that is known is limited still.
    assert_eq!(gate.enter_from(&mut permits(), address(7), SECOND_NS), Err(Excess::AddressRate));
    assert_eq!(gate.enter_from(&mut permits(), more, 3 * SECOND_NS), Ok(true));
    assert_eq!(len(), 2, "the new one, and the one with a connection");
    drop(held);
}
