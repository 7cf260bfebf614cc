//! The client against a broker, and against one that fails.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tacho_client::{
    Client, ClientError, ClientSettings, Happened, Message, MessageProperties, Subscription,
};
use tacho_codec::{QoS, ReasonCode, SubscribeOptions, Version};
use tacho_testkit::{ALL_QOS, TestBroker, VERSIONS};

const SOON: Duration = Duration::from_secs(20);

fn settings(address: SocketAddr, client_id: &str, version: Version) -> ClientSettings {
    ClientSettings {
        addresses: vec![address],
        filter: Arc::new(|| Ok(None)),
        version,
        client_id: client_id.to_owned(),
        clean_start: true,
        session_expiry_s: None,
        keep_alive_s: 60,
        receive_maximum: None,
        username: None,
        password: None,
        will: None,
        will_delay_s: None,
        user_properties: Vec::new(),
        packet_bytes_max: 1 << 20,
        timeout: Duration::from_secs(10),
        stop: Arc::new(AtomicBool::new(false)),
    }
}

fn connected(settings: ClientSettings) -> Client {
    let mut client = Client::new(settings);
    client.connect().expect("the broker takes it");
    client
}

fn next(client: &mut Client) -> Happened {
    client.wait(Some(Instant::now() + SOON)).expect("not stopped").expect("in time")
}

fn subscription(filter: &str, qos: QoS) -> Subscription {
    Subscription { filter: filter.to_owned(), options: SubscribeOptions::new(qos) }
}

fn message(topic: &str, payload: &[u8], qos: QoS) -> Message {
    Message { topic: topic.to_owned(), payload: payload.to_vec(), qos, ..Message::default() }
}

#[test]
fn messages_of_every_qos_and_version_arrive_and_are_acknowledged() {
    let broker = TestBroker::start(1);
    let address = broker.addresses()[0];
    for version in VERSIONS {
        let mut receiver = connected(settings(address, "receiver", version));
        receiver.subscribe(&[subscription("a/#", QoS::ExactlyOnce)], None).unwrap();
        let Happened::Subscribed(reasons) = next(&mut receiver) else { panic!("no SUBACK") };
        assert_eq!(reasons, [ReasonCode::granted(QoS::ExactlyOnce)]);
        let mut sender = connected(settings(address, "sender", version));
        for qos in ALL_QOS {
            for number in 0..100_u32 {
                let sent = message("a/b", &number.to_be_bytes(), qos);
                sender.publish(Arc::new(sent)).unwrap();
            }
            while sender.unacknowledged() > 0 {
                let Happened::Acknowledged { reason, .. } = next(&mut sender) else {
                    panic!("no acknowledgement")
                };
                assert!(!reason.is_error(), "{reason}");
            }
            for number in 0..100_u32 {
                let Happened::Message(received) = next(&mut receiver) else { panic!("no message") };
                assert_eq!(received.message, message("a/b", &number.to_be_bytes(), qos));
            }
        }
        sender.disconnect();
        receiver.disconnect();
    }
}

#[test]
fn properties_arrive_as_they_were_sent() {
    let broker = TestBroker::start(1);
    let mut client = connected(settings(broker.addresses()[0], "one", Version::V5));
    client.subscribe(&[subscription("a", QoS::AtLeastOnce)], Some(7)).unwrap();
    assert!(matches!(next(&mut client), Happened::Subscribed(_)));
    let properties = MessageProperties {
        payload_format_utf8: Some(true),
        message_expiry_s: Some(900),
        response_topic: Some("answers".into()),
        correlation_data: Some(vec![0, 255]),
        content_type: Some("text/plain".into()),
        user_properties: vec![("k".into(), "1".into()), ("k".into(), "2".into())],
        subscription_ids: Vec::new(),
    };
    let sent = Message { properties, ..message("a", b"x", QoS::AtLeastOnce) };
    client.publish(Arc::new(sent.clone())).unwrap();
    let received = loop {
        if let Happened::Message(received) = next(&mut client) {
            break received.message;
        }
    };
    let mut expected = sent;
    expected.properties.subscription_ids = vec![7];
    assert_eq!(received, expected);
}

/// Takes a connection, reads its CONNECT and accepts it, without a session.
fn accept(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().expect("the client is there");
    stream.set_read_timeout(Some(SOON)).expect("the client is there");
    assert_eq!(packet(&mut stream)[0], 0x10);
    stream.write_all(&[0x20, 2, 0, 0]).expect("the client is there");
    stream
}

/// A packet of fewer than 128 bytes.
fn packet(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("the client is there");
    let mut packet = head.to_vec();
    packet.resize(2 + usize::from(head[1]), 0);
    stream.read_exact(&mut packet[2..]).expect("the client is there");
    packet
}

#[test]
fn unacknowledged_messages_are_sent_again_on_the_next_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut first = accept(&listener);
        let sent = packet(&mut first);
        drop(first);
        let mut second = accept(&listener);
        let again = packet(&mut second);
        assert_eq!((sent[0] & !8, &sent[2..5]), (again[0] & !8, &again[2..5]));
        assert!(again.ends_with(b"kept"));
        let identifier = [again[5], again[6]];
        second.write_all(&[0x40, 2, identifier[0], identifier[1]]).unwrap();
        second
    });
    let mut client = connected(settings(address, "c", Version::V311));
    client.publish(Arc::new(message("a", b"kept", QoS::AtLeastOnce))).unwrap();
    let Happened::Lost(error) = next(&mut client) else { panic!("not lost") };
    assert!(error.is_passing(), "{error}");
    assert_eq!(client.unacknowledged(), 1);
    client.connect().unwrap();
    assert!(matches!(next(&mut client), Happened::Acknowledged { .. }));
    assert_eq!(client.unacknowledged(), 0);
    drop(server.join().unwrap());
}

#[test]
fn refusals_and_broken_brokers_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answers: [&[u8]; 4] = [&[0x20, 2, 0, 5], &[0x20, 0xFF, 0xFF, 0xFF, 0xFF], &[], &[0xD0, 0]];
    let server = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            packet(&mut stream);
            stream.write_all(answer).unwrap();
        }
    });
    let mut errors = Vec::new();
    for _ in answers {
        let mut client = Client::new(settings(address, "c", Version::V311));
        errors.push(client.connect().unwrap_err());
    }
    server.join().unwrap();
    assert!(matches!(errors[0], ClientError::Refused { reason, .. } if reason.is_error()));
    for (error, named) in errors[1..].iter().zip(["does not speak MQTT", "closed", "out of place"])
    {
        assert!(error.to_string().contains(named), "{error}");
    }
    // The listener is gone.
    let mut client = Client::new(settings(address, "c", Version::V311));
    assert!(matches!(client.connect(), Err(ClientError::Connect { .. })));
}

#[test]
fn input_is_read_when_it_is_asked_for_and_a_stop_ends_the_wait() {
    let broker = TestBroker::start(1);
    let stop = Arc::new(AtomicBool::new(false));
    let settings = ClientSettings {
        stop: Arc::clone(&stop),
        ..settings(broker.addresses()[0], "c", Version::V5)
    };
    let mut client = connected(settings);
    let mut left = vec![b"2".to_vec(), b"1".to_vec()];
    client.read_from(move || Ok(left.pop())).unwrap();
    for expected in [Some(b"1".to_vec()), Some(b"2".to_vec()), None] {
        assert!(client.wait(Some(Instant::now())).unwrap().is_none(), "nothing was asked for");
        client.ask();
        let Happened::Input(Ok(input)) = next(&mut client) else { panic!("no input") };
        assert_eq!(input, expected);
    }
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(client.wait(None), Err(ClientError::Stopped)));
}
