//! TLS and WebSocket listeners, and certificates that change under open connections.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use tacho_broker::{Broker, RawConfig, SelfSigned, self_signed};
use tacho_codec::{Packet, QoS, ReasonCode, Version};
use tacho_net::tls::{TlsClient, TlsClientSettings};
use tacho_net::ws::WsClient;
use tacho_net::{Filter, Layers};
use tacho_testkit::*;

/// A broker with one listener of each transport, and certificates of its own.
struct Carriers {
    broker: Option<Broker>,
    files: SelfSigned,
    folder: tempfile::TempDir,
}

impl Carriers {
    fn start(extra: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = self_signed(folder.path(), []).unwrap();
        let mut text = format!(
            "shards = 2\n{extra}\n[tls]\ncheck_s = 0\ncert = '{}'\nkey = '{}'\n",
            files.cert.display(),
            files.key.display()
        );
        for transport in ["tcp", "tls", "ws", "wss"] {
            let entry = "[[listeners]]\naddress = '127.0.0.1:0'\ntransport =";
            text.push_str(&format!("{entry} '{transport}'\n"));
        }
        let raw: RawConfig = toml::from_str(&text).unwrap();
        let broker = Broker::start(raw.resolve().unwrap()).unwrap();
        Self { broker: Some(broker), files, folder }
    }

    fn broker(&self) -> &Broker {
        self.broker.as_ref().unwrap()
    }

    fn address(&self, transport: &str) -> SocketAddr {
        let index = ["tcp", "tls", "ws", "wss"].iter().position(|name| *name == transport).unwrap();
        self.broker().addresses()[index]
    }

    fn client(&self, transport: &str, version: Version) -> Client {
        self.client_trusting(&self.files.ca, transport, version)
    }

    fn client_trusting(&self, ca: &Path, transport: &str, version: Version) -> Client {
        let address = self.address(transport);
        let settings = TlsClientSettings {
            ca: Some(ca.to_owned()),
            server_name: "127.0.0.1".to_owned(),
            ..TlsClientSettings::default()
        };
        let tls = || TlsClient::new(&settings).unwrap().filter().unwrap();
        let ws = WsClient { host: "a".into(), path: "/mqtt".into(), protocol: "mqtt".into() };
        let filter: Box<dyn Filter> = match transport {
            "tls" => Box::new(tls()),
            "ws" => Box::new(ws.filter()),
            "wss" => Box::new(Layers::new(tls(), ws.filter())),
            _ => return Client::open(address, version),
        };
        through(filter, address, version)
    }

    fn counter(&self, name: &str) -> u64 {
        let values = self.broker().stats().iter().flat_map(|stats| stats.values());
        values.filter(|(known, _)| *known == name).map(|(_, value)| value).sum()
    }

    fn eventually(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        wait_until(what, || condition(self));
    }
}

impl Drop for Carriers {
    fn drop(&mut self) {
        if let Some(broker) = self.broker.take() {
            broker.stop();
            let ended = broker.join();
            assert!(ended.is_ok() || std::thread::panicking(), "{ended:?}");
        }
    }
}

// [MQTT-4.2-1] [MQTT-6.0.0-2]
// [MQTT-3.1.1: 6.0.0-2] [MQTT-3.1.1: 7.1.1-1]
#[test]
fn every_transport_carries_every_version_to_every_other() {
    let carriers = Carriers::start("");
    let large: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    let all = ["tcp", "tls", "ws", "wss"];
    for (transport, version) in
        all.into_iter().zip([Version::V5, Version::V31, Version::V311, Version::V5])
    {
        let mut readers: Vec<Client> = all
            .iter()
            .enumerate()
            .map(|(index, name)| {
                // Identifiers of both shards: half of the connections move.
                let mut client = carriers.client(name, Version::V311);
                client.connect(&connect(&format!("r{index}{transport}"), Version::V311));
                assert!(!client.subscribe("all/#", QoS::ExactlyOnce).is_error());
                client
            })
            .collect();
        let mut writer = carriers.client(transport, version);
        let accepted = writer.connect(&connect(&format!("w{transport}"), version));
        assert_eq!(accepted, (false, ReasonCode::SUCCESS));
        for (payload, qos) in [(&b"small"[..], QoS::AtMostOnce), (&large, QoS::AtLeastOnce)] {
            writer.publish("all/x", payload, qos, false);
        }
        for reader in &mut readers {
            assert_eq!(reader.receive().payload, b"small");
            assert!(reader.receive().payload == large);
            reader.ping();
        }
        writer.disconnect();
        readers.into_iter().for_each(Client::disconnect);
    }
}

#[test]
fn certificates_change_under_open_connections() {
    let carriers = Carriers::start("");
    let old_ca = carriers.folder.path().join("old-ca.pem");
    std::fs::copy(&carriers.files.ca, &old_ca).unwrap();
    let mut open = carriers.client("tls", Version::V5);
    open.connect(&connect("open", Version::V5));

    // A renewal in the same files.
    self_signed(carriers.folder.path(), []).unwrap();
    carriers.broker().certificates().reload();
    let mut new = carriers.client("wss", Version::V5);
    new.connect(&connect("new", Version::V5));
    let mut distrustful = carriers.client_trusting(&old_ca, "tls", Version::V5);
    distrustful.expect_closed();
    open.ping();

    // A file that cannot be used changes nothing.
    std::fs::write(&carriers.files.cert, "nothing").unwrap();
    carriers.broker().certificates().reload();
    let mut again = carriers.client("tls", Version::V5);
    again.connect(&connect("again", Version::V5));
    [open, new, again].into_iter().for_each(Client::disconnect);
}

#[test]
fn changed_files_are_noticed_without_being_told() {
    let folder = tempfile::tempdir().unwrap();
    let files = self_signed(folder.path(), []).unwrap();
    let text = format!(
        "[tls]\ncheck_s = 1\ncert = '{}'\nkey = '{}'\n\
         [[listeners]]\naddress = '127.0.0.1:0'\ntransport = 'tls'\n",
        files.cert.display(),
        files.key.display()
    );
    let raw: RawConfig = toml::from_str(&text).unwrap();
    let broker = Broker::start(raw.resolve().unwrap()).unwrap();
    self_signed(folder.path(), []).unwrap();
    let settings = TlsClientSettings {
        ca: Some(files.ca),
        server_name: "localhost".to_owned(),
        ..TlsClientSettings::default()
    };
    let client = TlsClient::new(&settings).unwrap();
    wait_until("the new certificate is in use", || {
        let filter = Box::new(client.filter().unwrap());
        let mut attempt = through(filter, broker.addresses()[0], Version::V5);
        attempt.stream.write_all(&[0xc0, 0]).unwrap();
        // A PINGREQ is no CONNECT and ends the connection, but only after a handshake is it seen.
        let refused = broker.stats().iter().map(|s| s.protocol_errors_total.value()).sum::<u64>();
        attempt.expect_closed();
        refused > 0
    });
    broker.stop();
    broker.join().unwrap();
}

#[test]
fn connections_of_another_transport_are_rejected() {
    let carriers = Carriers::start("");
    for (count, (transport, bytes)) in
        (1..).zip([("tls", b"\x10\x0e\0\x04MQTT\x05\x02"), ("ws", b"\x10\x0e\0\x04MQTT\x05\x02")])
    {
        let mut stranger = TcpStream::connect(carriers.address(transport)).unwrap();
        stranger.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stranger.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // A reset is an answer too.
        let _ = stranger.read_to_end(&mut answer);
        carriers.eventually("counted", |c| c.counter("failed_handshakes_total") == count);
    }
    let mut browser = TcpStream::connect(carriers.address("ws")).unwrap();
    browser.write_all(b"GET /mqtt HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = String::new();
    browser.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
}

#[test]
fn handshakes_that_stall_are_cut_off() {
    let carriers = Carriers::start("limits = { connect_timeout_s = 1 }");
    let stalled: Vec<_> = [("tls", &b"\x16\x03\x01"[..]), ("ws", b"GET /mqtt HT"), ("wss", b"")]
        .into_iter()
        .map(|(transport, bytes)| {
            let mut stream = TcpStream::connect(carriers.address(transport)).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        })
        .collect();
    for mut stream in stalled {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    }
    assert_eq!(carriers.counter("connect_timeouts_total"), 3);
}

#[test]
fn a_client_that_does_not_read_costs_no_more_than_its_budget() {
    let carriers = Carriers::start("limits = { output_bytes_max = 65536 }");
    let mut deaf = carriers.client("wss", Version::V5);
    deaf.connect(&connect("deaf", Version::V5));
    deaf.subscribe("flood", QoS::AtMostOnce);
    let mut writer = carriers.client("tls", Version::V5);
    writer.connect(&connect("writer", Version::V5));
    let payload = vec![1; 100_000];
    for _ in 0..400 {
        writer.publish("flood", &payload, QoS::AtMostOnce, false);
    }
    writer.ping();
    carriers.eventually("dropped", |c| c.counter("dropped_output_full_total") > 0);
    // Once it reads again, it is served again: behind what had waited comes the answer.
    deaf.send(&Packet::PingReq);
    while deaf.frame().expect("the broker should not have closed")[0] != 0xd0 {}
    deaf.ping();
}
