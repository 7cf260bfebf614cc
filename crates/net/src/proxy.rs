//! The header that a proxy sends before the bytes of its client: the PROXY protocol, versions 1
//! and 2, with the address that the client has at the proxy, and in version 2 perhaps with the
//! name in the certificate that it has shown there.
//!
//! Source: <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>; numbers of sections are
//! of that text.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The longest header that is accepted.
pub const HEADER_BYTES_MAX: usize = START_BYTES + UNIX_BYTES + EXTRAS_BYTES_MAX;

/// A line of version 1 with its end (2.1).
const LINE_BYTES_MAX: usize = 107;
const LINE_BEGIN: &[u8] = b"PROXY ";

/// What version 2 begins with (2.2).
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The signature, the command, the family and the length of what follows.
const START_BYTES: usize = 16;
/// Addresses of both ends by family.
const V4_BYTES: usize = 12;
const V6_BYTES: usize = 36;
const UNIX_BYTES: usize = 216;
/// What may follow the addresses: names, certificates and the like.
const EXTRAS_BYTES_MAX: usize = 4096;

/// The type of a checksum over the header (2.2.3).
const CRC32C: u8 = 0x03;
/// The type of what the proxy says of TLS between the client and itself (2.2.6).
const TLS: u8 = 0x20;
/// Its flags, and the result of verifying the client's certificate; values follow.
const TLS_START_BYTES: usize = 5;
/// Flags: the client has used TLS, and has shown a certificate on this connection. That it has
/// shown one on an earlier connection of the same TLS session is another flag.
const CERTIFICATE_SHOWN: u8 = 0x01 | 0x02;
/// The type of the common name in that certificate.
const COMMON_NAME: u8 = 0x22;
/// Of a common name; X.509 allows 64 characters.
const NAME_BYTES_MAX: usize = 1024;

const BEYOND: HeaderError = HeaderError("a value reaches beyond its end");

/// A whole header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader<'a> {
    /// How many bytes it takes; what follows is the client's.
    pub len: usize,
    /// Where the client is. Absent: the proxy speaks for itself or does not know, and its own
    /// address counts.
    pub client: Option<SocketAddr>,
    /// The common name in the certificate that the client has shown to the proxy on this
    /// connection, if the proxy says that it has verified it. It should be UTF-8.
    pub certificate_name: Option<&'a [u8]>,
}

/// Bytes that are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PROXY header: {0}")]
pub struct HeaderError(&'static str);

impl From<HeaderError> for io::Error {
    fn from(error: HeaderError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

impl<'a> ProxyHeader<'a> {
    /// Parses the header at the beginning of what a connection has brought so far; `None` while it
    /// is not complete, which it is at the latest with [`HEADER_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// There is none, it is malformed, or it is too long: known as early as possible.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, HeaderError> {
        let begins_as = |begin: &[u8]| bytes.iter().zip(begin).all(|(byte, due)| byte == due);
        if begins_as(LINE_BEGIN) {
            parse_line(bytes)
        } else if begins_as(SIGNATURE) {
            parse_binary(bytes)
        } else {
            Err(HeaderError("the connection does not begin with one"))
        }
    }
}

/// Version 1.
fn parse_line(bytes: &[u8]) -> Result<Option<ProxyHeader<'_>>, HeaderError> {
    let bytes = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
        return match bytes.len() {
            LINE_BYTES_MAX => Err(HeaderError("the line is too long")),
            _ => Ok(None),
        };
    };
    let line = bytes[..end].strip_suffix(b"\r").and_then(|line| line.strip_prefix(LINE_BEGIN));
    let line = line.ok_or(HeaderError("the line does not end with CR and LF"))?;
    Ok(Some(ProxyHeader { len: end + 1, client: parse_ends(line)?, certificate_name: None }))
}

/// The addresses and ports of both ends in version 1.
fn parse_ends(line: &[u8]) -> Result<Option<SocketAddr>, HeaderError> {
    let wrong = || HeaderError("the line is malformed");
    let mut fields = line.split(|&byte| byte == b' ');
    let family = fields.next();
    if family == Some(b"UNKNOWN") {
        // Whatever follows is ignored.
        return Ok(None);
    }
    let mut field = || std::str::from_utf8(fields.next()?).ok();
    let ends = (field(), field(), field(), field());
    let (Some(client), Some(proxy), Some(client_port), Some(proxy_port)) = ends else {
        return Err(wrong());
    };
    if fields.next().is_some() {
        return Err(wrong());
    }
    let client: IpAddr = match family {
        Some(b"TCP4") => both::<Ipv4Addr>(client, proxy).ok_or_else(wrong)?.into(),
        Some(b"TCP6") => both::<Ipv6Addr>(client, proxy).ok_or_else(wrong)?.into(),
        _ => return Err(wrong()),
    };
    let (Some(port), Some(_)) = (parse_port(client_port), parse_port(proxy_port)) else {
        return Err(wrong());
    };
    Ok(Some(SocketAddr::new(client, port)))
}

/// The client's address, if both are addresses.
fn both<T: FromStr>(client: &str, proxy: &str) -> Option<T> {
    proxy.parse::<T>().ok()?;
    client.parse().ok()
}

/// A number without zeroes in front.
fn parse_port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

/// Version 2.
fn parse_binary(bytes: &[u8]) -> Result<Option<ProxyHeader<'_>>, HeaderError> {
    let Some((start, rest)) = bytes.split_first_chunk::<START_BYTES>() else { return Ok(None) };
    let [.., command, family, len_high, len_low] = *start;
    let len = usize::from(u16::from_be_bytes([len_high, len_low]));
    let is_local = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(HeaderError("the version or the command is unknown")),
    };
    if START_BYTES + len > HEADER_BYTES_MAX {
        return Err(HeaderError("it is too long"));
    }
    let addresses_bytes = match family {
        // The proxy speaks for itself: the family has no meaning.
        _ if is_local => 0,
        0x00 => 0,
        0x11 | 0x12 => V4_BYTES,
        0x21 | 0x22 => V6_BYTES,
        0x31 | 0x32 => UNIX_BYTES,
        _ => return Err(HeaderError("the family of addresses is unknown")),
    };
    if len < addresses_bytes {
        return Err(HeaderError("it has no room for its addresses"));
    }
    let Some(body) = rest.get(..len) else { return Ok(None) };
    let whole_len = START_BYTES + len;
    let (addresses, extras) = body.split_at(addresses_bytes);
    let certificate_name = match addresses_bytes {
        0 => None,
        _ => read_extras(&bytes[..whole_len], extras)?,
    };
    Ok(Some(ProxyHeader { len: whole_len, client: client_of(addresses), certificate_name }))
}

/// The client's end of the addresses in version 2.
fn client_of(addresses: &[u8]) -> Option<SocketAddr> {
    let (client, port): (IpAddr, _) = match addresses.len() {
        V4_BYTES => (Ipv4Addr::from(*addresses.first_chunk()?).into(), addresses.get(8..10)?),
        V6_BYTES => (Ipv6Addr::from(*addresses.first_chunk()?).into(), addresses.get(32..34)?),
        // A socket of the same machine, or none.
        _ => return None,
    };
    Some(SocketAddr::new(client, u16::from_be_bytes(port.try_into().ok()?)))
}

/// Values of a type each, with their lengths in front.
struct Values<'a>(&'a [u8]);

impl<'a> Iterator for Values<'a> {
    type Item = Result<(u8, &'a [u8]), HeaderError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.0);
        if bytes.is_empty() {
            return None;
        }
        let Some((&[kind, len_high, len_low], behind)) = bytes.split_first_chunk() else {
            return Some(Err(BEYOND));
        };
        let len = usize::from(u16::from_be_bytes([len_high, len_low]));
        let Some((value, rest)) = behind.split_at_checked(len) else { return Some(Err(BEYOND)) };
        self.0 = rest;
        Some(Ok((kind, value)))
    }
}

/// Checks what follows the addresses: each value is there, and a checksum is right. The name in the
/// client's certificate, if there is one.
fn read_extras<'a>(header: &[u8], extras: &'a [u8]) -> Result<Option<&'a [u8]>, HeaderError> {
    let (mut values, mut checksum, mut tls) = (Values(extras), None, None);
    while let Some(value) = values.next() {
        let (kind, value) = value?;
        // Each once: a second one could be taken for the first, and costs.
        let place = match kind {
            CRC32C => &mut checksum,
            TLS => &mut tls,
            _ => continue,
        };
        let at = header.len() - values.0.len() - value.len();
        if place.replace((at, value)).is_some() {
            return Err(HeaderError("a value is there twice"));
        }
    }
    if let Some((at, stated)) = checksum {
        let stated: [u8; 4] =
            stated.try_into().map_err(|_| HeaderError("a checksum must have 4 bytes"))?;
        if u32::from_be_bytes(stated) != crc32c_without(header, at) {
            return Err(HeaderError("the checksum is wrong"));
        }
    }
    tls.map_or(Ok(None), |(_, value)| read_tls(value))
}

/// The name in the certificate that the client has shown to the proxy and that the proxy has
/// verified, from what the proxy says of TLS.
fn read_tls(value: &[u8]) -> Result<Option<&[u8]>, HeaderError> {
    let Some((&[flags, ref verified @ ..], rest)) = value.split_first_chunk::<TLS_START_BYTES>()
    else {
        return Err(HeaderError("what it says of TLS is too short"));
    };
    let mut name = None;
    for value in Values(rest) {
        let (kind, value) = value?;
        if kind != COMMON_NAME {
            continue;
        }
        if value.len() > NAME_BYTES_MAX {
            return Err(HeaderError("the name of the client's certificate is too long"));
        }
        if name.replace(value).is_some() {
            return Err(HeaderError("the client's certificate has two names"));
        }
    }
    let is_proved = flags & CERTIFICATE_SHOWN == CERTIFICATE_SHOWN && *verified == [0; 4];
    Ok(name.filter(|_| is_proved))
}

/// The checksum (RFC 4960, appendix B) of a header whose four bytes at `at` count as zeroes.
fn crc32c_without(header: &[u8], at: usize) -> u32 {
    let byte_of = |(index, &byte): (usize, &u8)| match (at..at + 4).contains(&index) {
        true => 0,
        false => byte,
    };
    !header.iter().enumerate().map(byte_of).fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & 0_u32.wrapping_sub(crc & 1))
        })
    })
}

#[cfg(test)]
mod tests;
