//! Listeners: what they demand of a connection before its client is heard.

#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod connections;
mod flapping;
mod origins;
mod proxies;
mod rates;

use std::net::{SocketAddr, TcpStream};

use rustix::net::{AddressFamily, SocketType, bind, connect as connect_socket, socket};
use tacho_codec::{Connect, Packet, ReasonCode, Version};
use tacho_testkit::{Client, PATIENCE, TestBroker};

/// A broker whose second listener has these keys; `more` comes before its entry.
fn broker_with(shards: usize, more: &str, keys: &str) -> TestBroker {
    TestBroker::configured(&format!("shards = {shards}\n{more}\n{}", entry(keys)))
}

/// An entry for a listener.
fn entry(keys: &str) -> String {
    format!("[[listeners]]\naddress = '127.0.0.1:0'\nallow_anonymous = true\n{keys}\n")
}

/// The listener with the keys of the test.
fn tested(broker: &TestBroker) -> SocketAddr {
    broker.addresses()[1]
}

fn open(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A stream from an address of this machine.
fn from(host: u8, to: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, host], 0))).unwrap();
    connect_socket(&socket, &to).unwrap();
    TcpStream::from(socket)
}

fn bytes_of(connect: &Connect<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Packet::Connect(connect.clone()).encode(connect.version, &mut bytes).unwrap();
    bytes
}

/// The reason of the CONNACK that comes.
fn connack(client: &mut Client) -> ReasonCode {
    client.expect(|packet| match packet {
        Packet::ConnAck(ack) => ack.reason,
        other => panic!("{other:?} instead of CONNACK"),
    })
}

/// A client on a stream that has something else before its packets.
fn client_on(stream: TcpStream) -> Client {
    Client::over(stream, Version::V5)
}
