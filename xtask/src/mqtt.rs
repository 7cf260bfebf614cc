//! A client of MQTT 3.1.1 over a blocking socket, made by hand: it shares no code with what is
//! measured.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A connected client with a clean session and no keep-alive.
pub(crate) fn connect(broker: SocketAddr, client_id: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(broker).context("cannot connect")?;
    stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).context("cannot set a timeout")?;
    let mut body = b"\x00\x04MQTT\x04\x02\x00\x00".to_vec();
    push_text(&mut body, client_id);
    stream.write_all(&packet(0x10, &body)).context("cannot say CONNECT")?;
    let mut connack = [0; 4];
    stream.read_exact(&mut connack).context("no CONNACK")?;
    ensure!(connack == [0x20, 2, 0, 0], "refused: {connack:02x?}");
    Ok(stream)
}

/// A SUBSCRIBE of QoS 0.
pub(crate) fn subscribe(id: u16, filters: &[String]) -> Vec<u8> {
    subscribe_at(0, id, filters)
}

/// A SUBSCRIBE.
pub(crate) fn subscribe_at(qos: u8, id: u16, filters: &[String]) -> Vec<u8> {
    let mut body = id.to_be_bytes().to_vec();
    for filter in filters {
        push_text(&mut body, filter);
        body.push(qos);
    }
    packet(0x82, &body)
}

/// An UNSUBSCRIBE.
pub(crate) fn unsubscribe(id: u16, filter: &str) -> Vec<u8> {
    unsubscribe_all(id, &[filter.to_owned()])
}

/// An UNSUBSCRIBE of several filters.
pub(crate) fn unsubscribe_all(id: u16, filters: &[String]) -> Vec<u8> {
    let mut body = id.to_be_bytes().to_vec();
    filters.iter().for_each(|filter| push_text(&mut body, filter));
    packet(0xa2, &body)
}

/// A PUBLISH of QoS 0.
pub(crate) fn publish(topic: &str, payload: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(2 + topic.len() + payload.len());
    push_text(&mut body, topic);
    body.extend_from_slice(payload);
    packet(0x30, &body)
}

/// Any packet: its first byte, the length, the rest.
pub(crate) fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = head(first, body.len());
    packet.extend_from_slice(body);
    packet
}

/// The beginning of a packet: its first byte, and the length of the rest.
pub(crate) fn head(first: u8, length: usize) -> Vec<u8> {
    let mut head = vec![first];
    let mut rest = length;
    loop {
        let low = (rest % 128) as u8;
        rest /= 128;
        head.push(if rest > 0 { low | 0x80 } else { low });
        if rest == 0 {
            return head;
        }
    }
}

/// A text with its length in front; those here are far shorter than 64 KiB.
pub(crate) fn push_text(body: &mut Vec<u8>, text: &str) {
    body.extend_from_slice(&(text.len() as u16).to_be_bytes());
    body.extend_from_slice(text.as_bytes());
}
