//! Parser of one datagram.

/// A value with its data source type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DataValue {
    /// Monotonic, may wrap around.
    Counter(u64),
    /// An instantaneous value.
    Gauge(f64),
    /// May increase and decrease; its rate is of interest.
    Derive(i64),
    /// Count since the last reading.
    Absolute(u64),
}

/// The values of one identifier at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) host: String,
    pub(crate) plugin: String,
    pub(crate) plugin_instance: String,
    pub(crate) kind: String,
    pub(crate) type_instance: String,
    /// Nanoseconds since 1970 on the sender's clock.
    pub(crate) time_ns: u64,
    /// Nanoseconds between readings; 0 where the sender did not specify it.
    pub(crate) interval_ns: u64,
    pub(crate) values: Vec<DataValue>,
}

/// Why a packet is rejected, completely or from some part on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub(crate) enum PacketError {
    /// The packet is signed.
    #[error("signed packets are not supported: set SecurityLevel None")]
    Signed,
    /// The packet is encrypted.
    #[error("encrypted packets are not supported: set SecurityLevel None")]
    Encrypted,
    /// The packet violates the protocol.
    #[error("the packet does not follow collectd's network protocol")]
    Malformed,
}

/// collectd's limit on names.
const NAME_BYTES_MAX: usize = 127;

/// Calls `each` for every reading of a packet.
///
/// # Errors
/// The first invalid part; readings before it have been delivered.
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
            // Notifications, and parts of later versions.
            _ => {}
        }
    }
    Ok(())
}

/// Type and body of the first part, and the rest. The length of a part includes its header.
fn part(packet: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let kind = u16::from_be_bytes(packet.get(..2)?.try_into().ok()?);
    let length = usize::from(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?));
    Some((kind, packet.get(4..length)?, packet.get(length..)?))
}

/// A zero-terminated string.
fn name(body: &[u8]) -> Result<String, PacketError> {
    let text = body.strip_suffix(&[0]).ok_or(PacketError::Malformed)?;
    if text.len() > NAME_BYTES_MAX {
        return Err(PacketError::Malformed);
    }
    std::str::from_utf8(text).map(str::to_owned).map_err(|_| PacketError::Malformed)
}

/// Converts units of 2^-30 s to nanoseconds.
fn high_resolution(time: u64) -> u64 {
    u64::try_from((u128::from(time) * 1_000_000_000) >> 30).unwrap_or(u64::MAX)
}

/// A count, the types, and the values.
fn values(body: &[u8], values: &mut Vec<DataValue>) -> Option<()> {
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
            0 => DataValue::Counter(u64::from_be_bytes(bytes)),
            // The only little-endian field of the protocol.
            1 => DataValue::Gauge(f64::from_le_bytes(bytes)),
            2 => DataValue::Derive(i64::from_be_bytes(bytes)),
            3 => DataValue::Absolute(u64::from_be_bytes(bytes)),
            _ => return None,
        });
    }
    Some(())
}
