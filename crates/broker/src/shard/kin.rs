//! Bridges of other brokers, which say so in their CONNECT (3.1.1 and 3.1): a bit in the protocol
//! level that the specification does not know, and that bridges of several brokers set.
//!
//! Such a client has what 5.0 has by options of a subscription: it is not sent what it published,
//! and gets RETAIN as published.

/// In the protocol level of CONNECT: the client is a bridge.
pub(super) const BRIDGE_BIT: u8 = 0x80;

/// Whether a whole CONNECT has the bit.
pub(super) fn says_bridge(packet: &[u8]) -> bool {
    place_of_level(packet).is_some_and(|place| matches!(packet[place], 0x83 | 0x84))
}

/// A CONNECT that has the bit without it; `None` if it has not.
pub(super) fn without_bridge_bit(packet: &[u8]) -> Option<Vec<u8>> {
    if !says_bridge(packet) {
        return None;
    }
    let mut plain = packet.to_vec();
    *protocol_level(&mut plain)? &= !BRIDGE_BIT;
    Some(plain)
}

/// The protocol level in a CONNECT.
pub(super) fn protocol_level(packet: &mut [u8]) -> Option<&mut u8> {
    let place = place_of_level(packet)?;
    packet.get_mut(place)
}

/// Behind the fixed header and the protocol's name.
fn place_of_level(packet: &[u8]) -> Option<usize> {
    let length_len = packet.iter().skip(1).position(|byte| byte & 0x80 == 0)? + 1;
    let (high, low) = (packet.get(1 + length_len)?, packet.get(2 + length_len)?);
    let name_len = usize::from(u16::from_be_bytes([*high, *low]));
    let place = 3 + length_len + name_len;
    (place < packet.len()).then_some(place)
}

#[cfg(test)]
mod tests {
    use tacho_codec::{Connect, ConnectProperties, Version};

    use super::*;

    #[test]
    fn the_protocol_level_is_found_behind_lengths_of_any_size() {
        for (version, client_id) in
            [(Version::V311, "a".to_owned()), (Version::V31, "b".repeat(300))]
        {
            let connect = Connect {
                version,
                clean_start: true,
                keep_alive_s: 0,
                client_id: &client_id,
                username: None,
                password: None,
                will: None,
                properties: ConnectProperties::default(),
            };
            let mut packet = Vec::new();
            connect.encode(&mut packet).unwrap();
            assert_eq!(without_bridge_bit(&packet), None);
            let plain = packet.clone();
            *protocol_level(&mut packet).unwrap() |= BRIDGE_BIT;
            assert_eq!(without_bridge_bit(&packet), Some(plain));
        }
        for damaged in
            [&b""[..], b"\x10", b"\x10\xff\xff", b"\x10\x05\x00\xff", b"\x10\x02\x00\x00"]
        {
            assert!(!says_bridge(damaged));
        }
    }
}
