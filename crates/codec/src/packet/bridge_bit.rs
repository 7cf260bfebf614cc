//! The bridge bit of MQTT 3.1 and 3.1.1: the high bit of the protocol level in CONNECT.
//!
//! The specification does not know it, but bridges of several brokers set it. A broker that knows
//! it gives such a client what 5.0 has as subscription options: No Local and Retain As Published. A
//! broker that does not know it refuses the protocol level.

const BRIDGE_BIT: u8 = 0x80;

/// Whether an encoded CONNECT of 3.1 or 3.1.1 has the bridge bit.
#[must_use]
pub fn has_bridge_bit(connect: &[u8]) -> bool {
    level_index(connect).is_some_and(|index| matches!(connect[index], 0x83 | 0x84))
}

/// Sets the bridge bit of an encoded CONNECT. What is not a CONNECT stays as it is.
pub fn set_bridge_bit(connect: &mut [u8]) {
    if let Some(index) = level_index(connect) {
        connect[index] |= BRIDGE_BIT;
    }
}

/// A copy of a CONNECT without its bridge bit; `None` if the bit is not set.
#[must_use]
pub fn without_bridge_bit(connect: &[u8]) -> Option<Vec<u8>> {
    if !has_bridge_bit(connect) {
        return None;
    }
    let mut plain = connect.to_vec();
    plain[level_index(connect)?] &= !BRIDGE_BIT;
    Some(plain)
}

/// Where the protocol level is: behind the fixed header and the protocol name (3.1.2.2).
fn level_index(connect: &[u8]) -> Option<usize> {
    let length_len = connect.iter().skip(1).position(|byte| byte & 0x80 == 0)? + 1;
    let (high, low) = (connect.get(1 + length_len)?, connect.get(2 + length_len)?);
    let name_len = usize::from(u16::from_be_bytes([*high, *low]));
    let index = 3 + length_len + name_len;
    (index < connect.len()).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Connect, ConnectProperties, Version};

    #[test]
    fn protocol_level_is_found_behind_lengths_of_any_size() {
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
            set_bridge_bit(&mut packet);
            assert!(has_bridge_bit(&packet));
            assert_eq!(without_bridge_bit(&packet), Some(plain));
        }
        for damaged in
            [&b""[..], b"\x10", b"\x10\xff\xff", b"\x10\x05\x00\xff", b"\x10\x02\x00\x00"]
        {
            assert!(!has_bridge_bit(damaged));
        }
    }
}
