//! One datagram.

/// A value with its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    /// Only grows, may wrap.
    Counter(u64),
    /// A figure of the moment.
    Gauge(f64),
    /// May grow and shrink; its rate is meant.
    Derive(i64),
    /// Counted since the last reading.
    Absolute(u64),
}

/// Values of one identifier at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) host: String,
    pub(crate) plugin: String,
    pub(crate) plugin_instance: String,
    pub(crate) kind: String,
    pub(crate) type_instance: String,
    /// Nanoseconds since 1970 by the sender's clock.
    pub(crate) time_ns: u64,
    /// Nanoseconds between readings; 0 when the sender did not say.
    pub(crate) interval_ns: u64,
    pub(crate) values: Vec<Value>,
}

/// A packet that is not used, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub(crate) enum PacketError {
    /// It is signed; the key is not ours.
    #[error(
        "signed packets (SecurityLevel Sign), which are not understood: use SecurityLevel None"
    )]
    Signed,
    /// It is encrypted.
    #[error("encrypted packets (SecurityLevel Encrypt), which are not understood: use None")]
    Encrypted,
    /// It does not have the form of the protocol.
    #[error("packets that are not of collectd's network protocol")]
    Malformed,
}

/// Names are at most 127 bytes in collectd.
const NAME_BYTES_MAX: usize = 127;

/// Calls `each` for every reading of a packet.
///
/// # Errors
/// At the first part that cannot be used; readings before it were delivered.
pub(crate) fn parse(mut packet: &[u8], mut each: impl FnMut(&Reading)) -> Result<(), PacketError> {
    let mut reading = Reading::default();
    while !packet.is_empty() {
        let (kind, body, rest) = part(packet).ok_or(PacketError::Malformed)?;
        packet = rest;
        let number = || body.try_into().map(u64::from_be_bytes).map_err(|_| PacketError::Malformed);
        match kind {
            0x0000 => reading.host = name(body)?,
            0x0001 => reading.time_ns = number()?.saturating_mul(1_000_000_000),
            0x0008 => reading.time_ns = high_resolution(number()?),
            0x0002 => reading.plugin = name(body)?,
            0x0003 => reading.plugin_instance = name(body)?,
            0x0004 => reading.kind = name(body)?,
            0x0005 => reading.type_instance = name(body)?,
            0x0007 => reading.interval_ns = number()?.saturating_mul(1_000_000_000),
            0x0009 => reading.interval_ns = high_resolution(number()?),
            0x0006 => {
                values(body, &mut reading.values).ok_or(PacketError::Malformed)?;
                each(&reading);
            }
            0x0200 => return Err(PacketError::Signed),
            0x0210 => return Err(PacketError::Encrypted),
            // Notifications and parts of later versions.
            _ => {}
        }
    }
    Ok(())
}

/// Type, body and what follows: a part says its own length, head included.
fn part(packet: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let kind = u16::from_be_bytes(packet.get(..2)?.try_into().ok()?);
    let length = usize::from(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?));
    Some((kind, packet.get(4..length)?, packet.get(length..)?))
}

/// A string with its terminating zero.
fn name(body: &[u8]) -> Result<String, PacketError> {
    let text = body.strip_suffix(&[0]).ok_or(PacketError::Malformed)?;
    if text.len() > NAME_BYTES_MAX {
        return Err(PacketError::Malformed);
    }
    std::str::from_utf8(text).map(str::to_owned).map_err(|_| PacketError::Malformed)
}

/// Units of 2^-30 seconds.
fn high_resolution(time: u64) -> u64 {
    u64::try_from((u128::from(time) * 1_000_000_000) >> 30).unwrap_or(u64::MAX)
}

/// A count, that many kinds, that many values.
fn values(body: &[u8], values: &mut Vec<Value>) -> Option<()> {
    let count = usize::from(u16::from_be_bytes(body.get(..2)?.try_into().ok()?));
    let kinds = body.get(2..2 + count)?;
    let bytes = body.get(2 + count..)?;
    if bytes.len() != count * 8 {
        return None;
    }
    values.clear();
    for (kind, bytes) in kinds.iter().zip(bytes.chunks_exact(8)) {
        let bytes: [u8; 8] = bytes.try_into().ok()?;
        values.push(match kind {
            0 => Value::Counter(u64::from_be_bytes(bytes)),
            // The one little-endian field of the protocol.
            1 => Value::Gauge(f64::from_le_bytes(bytes)),
            2 => Value::Derive(i64::from_be_bytes(bytes)),
            3 => Value::Absolute(u64::from_be_bytes(bytes)),
            _ => return None,
        });
    }
    Some(())
}
