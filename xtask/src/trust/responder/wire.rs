//! Packets of MQTT 3.1.1 and 5, as far as the responder needs them.

use anyhow::{Context, Result, bail};

use crate::mqtt::{packet, push_text};

/// Longer packets end a connection.
const PACKET_BYTES_MAX: usize = 1 << 20;

/// What a client said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    Connect {
        mqtt5: bool,
    },
    Publish(Message),
    Subscribe {
        id: u16,
        filters: Vec<(String, u8)>,
    },
    Unsubscribe {
        id: u16,
        filters: usize,
    },
    /// A delivery of QoS 2 has arrived.
    Received(u16),
    /// A publication of QoS 2 is released.
    Release(u16),
    Ping,
    Disconnect,
    /// An acknowledgement that needs no answer.
    Done,
}

/// A publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) topic: String,
    pub(super) qos: u8,
    /// With QoS 1 and 2.
    pub(super) id: u16,
    /// Of MQTT 5, without their length.
    properties: Vec<u8>,
    payload: Vec<u8>,
}

impl Message {
    /// The packet for a subscriber.
    pub(super) fn delivery(&self, qos: u8, id: u16, mqtt5: bool) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.topic.len() + self.payload.len() + 16);
        push_text(&mut body, &self.topic);
        if qos > 0 {
            body.extend_from_slice(&id.to_be_bytes());
        }
        if mqtt5 {
            push_length(&mut body, self.properties.len());
            body.extend_from_slice(&self.properties);
        }
        body.extend_from_slice(&self.payload);
        packet(0x30 | qos << 1, &body)
    }
}

/// Length of the packet at the beginning of these bytes; `None` when its head is not complete.
pub(super) fn packet_length(bytes: &[u8]) -> Result<Option<usize>> {
    let Some((length, used)) = read_length(bytes.get(1..).unwrap_or_default())? else {
        return Ok(None);
    };
    if length > PACKET_BYTES_MAX {
        bail!("a packet of {length} bytes");
    }
    Ok(Some(1 + used + length))
}

/// Reads one whole packet.
pub(super) fn parse(bytes: &[u8], mqtt5: bool) -> Result<Request> {
    let first = *bytes.first().context("an empty packet")?;
    let (_, used) = read_length(bytes.get(1..).unwrap_or_default())?.context("no length")?;
    let mut body = Body { rest: bytes.get(1 + used..).unwrap_or_default() };
    Ok(match first >> 4 {
        1 => {
            body.text()?;
            Request::Connect { mqtt5: body.byte()? == 5 }
        }
        3 => Request::Publish(body.message(first, mqtt5)?),
        5 => Request::Received(body.number()?),
        6 => Request::Release(body.number()?),
        8 => {
            let id = body.number()?;
            body.skip_properties(mqtt5)?;
            let mut filters = Vec::new();
            while !body.rest.is_empty() {
                filters.push((body.text()?, body.byte()? & 3));
            }
            Request::Subscribe { id, filters }
        }
        10 => {
            let id = body.number()?;
            body.skip_properties(mqtt5)?;
            let mut filters = 0;
            while !body.rest.is_empty() {
                body.text()?;
                filters += 1;
            }
            Request::Unsubscribe { id, filters }
        }
        12 => Request::Ping,
        14 => Request::Disconnect,
        4 | 7 => Request::Done,
        kind => bail!("a packet of type {kind}"),
    })
}

pub(super) fn connack(mqtt5: bool) -> Vec<u8> {
    packet(0x20, if mqtt5 { &[0, 0, 0] } else { &[0, 0] })
}

/// Grants what was asked for.
pub(super) fn suback(id: u16, filters: &[(String, u8)], mqtt5: bool) -> Vec<u8> {
    let mut body = id.to_be_bytes().to_vec();
    body.extend(mqtt5.then_some(0));
    body.extend(filters.iter().map(|(_, qos)| qos));
    packet(0x90, &body)
}

pub(super) fn unsuback(id: u16, filters: usize, mqtt5: bool) -> Vec<u8> {
    let mut body = id.to_be_bytes().to_vec();
    if mqtt5 {
        body.push(0);
        body.resize(body.len() + filters, 0);
    }
    packet(0xb0, &body)
}

/// PUBACK, PUBREC, PUBREL or PUBCOMP by its first byte.
pub(super) fn acknowledgement(first: u8, id: u16) -> Vec<u8> {
    packet(first, &id.to_be_bytes())
}

/// A length and the number of its bytes; `None` when it is not complete.
fn read_length(bytes: &[u8]) -> Result<Option<(usize, usize)>> {
    let mut length = 0;
    for (index, byte) in bytes.iter().take(4).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((length, index + 1)));
        }
    }
    if bytes.len() >= 4 {
        bail!("a length of more than four bytes");
    }
    Ok(None)
}

fn push_length(body: &mut Vec<u8>, mut length: usize) {
    loop {
        let low = (length % 128) as u8;
        length /= 128;
        body.push(if length > 0 { low | 0x80 } else { low });
        if length == 0 {
            return;
        }
    }
}

struct Body<'a> {
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).context("a packet ends early")?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        self.take(1)?.first().copied().context("no byte")
    }

    fn number(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(*self.take(2)?.first_chunk().context("no number")?))
    }

    fn text(&mut self) -> Result<String> {
        let length = usize::from(self.number()?);
        String::from_utf8(self.take(length)?.to_vec()).context("a text that is not UTF-8")
    }

    fn skip_properties(&mut self, mqtt5: bool) -> Result<&'a [u8]> {
        if !mqtt5 {
            return Ok(&[]);
        }
        let (length, used) = read_length(self.rest)?.context("no length of properties")?;
        self.take(used)?;
        self.take(length)
    }

    fn message(mut self, first: u8, mqtt5: bool) -> Result<Message> {
        let qos = first >> 1 & 3;
        let topic = self.text()?;
        let id = if qos > 0 { self.number()? } else { 0 };
        let properties = self.skip_properties(mqtt5)?.to_vec();
        Ok(Message { topic, qos, id, properties, payload: self.rest.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publication_becomes_a_delivery_of_either_version() {
        for mqtt5 in [false, true] {
            let sent = Message {
                topic: "test/1".into(),
                qos: 1,
                id: 7,
                properties: if mqtt5 { vec![1, 1] } else { Vec::new() },
                payload: vec![0xab; 200],
            };
            let packet = sent.delivery(1, 7, mqtt5);
            assert_eq!(packet_length(&packet).expect("is well-formed"), Some(packet.len()));
            let parsed = parse(&packet, mqtt5).expect("is well-formed");
            assert_eq!(parsed, Request::Publish(sent));
        }
    }

    #[test]
    fn subscriptions_are_granted_as_asked() {
        let packet = crate::mqtt::subscribe(3, &["a/b".to_owned(), "c".to_owned()]);
        let Request::Subscribe { id, filters } = parse(&packet, false).expect("is well-formed")
        else {
            panic!("no SUBSCRIBE");
        };
        assert_eq!((id, filters.len()), (3, 2));
        assert_eq!(suback(id, &filters, false), [0x90, 4, 0, 3, 0, 0]);
        assert_eq!(suback(id, &filters, true), [0x90, 5, 0, 3, 0, 0, 0]);
        assert_eq!(unsuback(id, 2, true), [0xb0, 5, 0, 3, 0, 0, 0]);
    }

    #[test]
    fn broken_packets_are_errors() {
        assert!(packet_length(&[0x30, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(packet_length(&[0x30, 0xff, 0xff, 0xff, 0x7f]).is_err(), "too long");
        assert_eq!(packet_length(&[0x30, 0x80]).expect("may go on"), None);
        assert!(parse(&[0x32, 3, 0, 1, b'a'], false).is_err(), "no identifier");
        assert!(parse(&[0x00, 0], false).is_err(), "no such type");
    }
}
