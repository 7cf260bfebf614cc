//! Addresses with too many failed logins are banned.

use std::net::{SocketAddr, SocketAddrV4, TcpStream};

use rustix::net::{AddressFamily, SocketType, bind, connect as connect_socket, socket};
use tacho_codec::{Connect, QoS, ReasonCode, Version};
use tacho_testkit::{Client, TestBroker, wait_until};

use super::{Files, login};

const WRONG: ReasonCode = ReasonCode::BAD_USER_NAME_OR_PASSWORD;

/// A connection from an address of this machine.
fn from(host: u8, broker: &TestBroker, version: Version) -> Client {
    let SocketAddr::V4(to) = broker.addresses()[0] else { panic!("an IPv4 address") };
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddrV4::new([127, 0, 0, host].into(), 0)).unwrap();
    connect_socket(&socket, &to).unwrap();
    Client::over(TcpStream::from(socket), version)
}

fn answer(host: u8, broker: &TestBroker, connect: &Connect<'_>) -> ReasonCode {
    from(host, broker, connect.version).connect(connect).1
}

#[test]
fn an_address_that_guesses_is_banned_and_others_are_not() {
    let files = Files::new(&[("ann", "ann")], None);
    let broker = files.broker(3, "login_failures_max = 5\nlogin_ban_s = 3\n");
    let mut before = from(2, &broker, Version::V5);
    assert_eq!(before.connect(&login("before", Version::V5, "ann", "ann")).1, ReasonCode::SUCCESS);
    for guess in 0..5 {
        // Another identifier each time, and a success in between, do not help.
        let (id, password) = (format!("guess{guess}"), format!("wrong{guess}"));
        assert_eq!(answer(2, &broker, &login(&id, Version::V5, "ann", &password)), WRONG);
        if guess == 3 {
            let right = login("right", Version::V5, "ann", "ann");
            assert_eq!(answer(2, &broker, &right), ReasonCode::SUCCESS);
        }
    }
    let right = login("c", Version::V5, "ann", "ann");
    assert_eq!(answer(2, &broker, &right), ReasonCode::BANNED);
    let old = login("c", Version::V311, "ann", "ann");
    assert_eq!(answer(2, &broker, &old), ReasonCode::NOT_AUTHORIZED);
    assert_eq!(answer(3, &broker, &right), ReasonCode::SUCCESS);
    assert_eq!(broker.counter("refused_banned_total"), 2);
    // Who is connected stays.
    before.subscribe("a", QoS::AtMostOnce);
    before.publish("a", b"x", QoS::AtMostOnce, false);
    assert_eq!(before.receive().payload, b"x");
    wait_until("the end of the ban", || answer(2, &broker, &right) == ReasonCode::SUCCESS);
}

#[test]
fn guesses_in_parallel_get_no_more_answers() {
    let files = Files::new(&[("ann", "ann")], None);
    let broker = files.broker(1, "login_failures_max = 3\n");
    let mut clients: Vec<Client> = (0..40).map(|_| from(2, &broker, Version::V311)).collect();
    let mut bytes = Vec::new();
    let guess = login("c", Version::V311, "ann", "wrong");
    tacho_codec::Packet::Connect(guess).encode(Version::V311, &mut bytes).unwrap();
    clients.iter_mut().for_each(|client| client.send_raw(&bytes));
    let answers: Vec<u8> = clients.iter_mut().filter_map(Client::frame).map(|ack| ack[3]).collect();
    assert_eq!(answers.iter().filter(|&&code| code == 4).count(), 3, "{answers:?}");
    assert_eq!(answers.iter().filter(|&&code| code == 5).count(), 37, "{answers:?}");
}

#[test]
fn clients_without_credentials_and_strangers_are_no_guesses() {
    let files = Files::new(&[("ann", "ann"), ("bob", "bob")], None);
    let broker = files.broker(1, "login_failures_max = 1\n");
    let mut ann = from(2, &broker, Version::V5);
    ann.connect(&login("c", Version::V5, "ann", "ann"));
    for _ in 0..3 {
        let anonymous = tacho_testkit::connect("d", Version::V5);
        assert_eq!(answer(2, &broker, &anonymous), ReasonCode::NOT_AUTHORIZED);
        let stranger = login("c", Version::V5, "bob", "bob");
        assert_eq!(answer(2, &broker, &stranger), ReasonCode::NOT_AUTHORIZED);
    }
    assert_eq!(broker.counter("refused_banned_total"), 0);
}
