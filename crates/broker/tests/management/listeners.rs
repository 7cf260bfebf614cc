//! Listeners that operators stop and start, and their connections.

use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::{Value, json};
use tacho_codec::Version;
use tacho_testkit::{Client, connect, wait_until};

use super::Managed;

/// Two listeners of plain TCP.
fn managed() -> Managed {
    Managed::start("shards = 3\n[[listeners]]\naddress = '127.0.0.1:0'\nconnections_max = 5\n")
}

fn row(managed: &Managed, address: SocketAddr) -> Value {
    let list = managed.get("/listeners");
    let rows = list["listeners"].as_array().unwrap().iter();
    let address = address.to_string();
    rows.into_iter().find(|row| row["address"] == address.as_str()).unwrap().clone()
}

fn connected(address: SocketAddr, client_id: &str) -> Client {
    let mut client = Client::open(address, Version::V5);
    client.connect(&connect(client_id, Version::V5));
    client
}

#[test]
fn a_listener_is_stopped_and_started_and_its_clients_stay() {
    let managed = managed();
    let [first, second] = managed.broker.addresses() else { panic!("two listeners") };
    let (first, second) = (*first, *second);
    let mut stays = connected(first, "stays");
    let _one = connected(second, "one");
    let _two = connected(second, "two");
    wait_until("they are counted", || row(&managed, second)["connections"] == 2);
    let of_first = row(&managed, first);
    assert_eq!((&of_first["connections"], &of_first["state"]), (&1.into(), &"open".into()));

    let stopped = managed.ask("POST", &format!("/listeners/{first}/stop"), "").json();
    assert_eq!((&stopped["state"], &stopped["connections"]), (&"stopped".into(), &1.into()));
    assert!(TcpStream::connect(first).is_err(), "the listener is closed");
    stays.ping();
    connected(second, "three").disconnect();
    // It stays stopped, whatever happens to the others.
    managed
        .ask("POST", "/drain", &json!({"wait_s": 3_000, "deadline_s": 3_600}).to_string())
        .json();
    assert_eq!(row(&managed, second)["state"], "closed");
    let (_, why) = managed.ask("POST", &format!("/listeners/{first}/start"), "").error(409);
    assert!(why.contains("drained"), "{why}");
    managed.ask("DELETE", "/drain", "").json();
    assert_eq!(row(&managed, second)["state"], "open");
    assert_eq!(row(&managed, first)["state"], "stopped");
    // Stopped again, it is no other.
    managed.ask("POST", &format!("/listeners/{first}/stop"), "").json();

    let started = managed.ask("POST", &format!("/listeners/{first}/start"), "").json();
    assert_eq!(started["state"], "open");
    connected(first, "four").disconnect();
    managed.ask("POST", &format!("/listeners/{first}/start"), "").json();
    stays.ping();
}

#[test]
fn a_web_socket_listener_says_its_path_and_whose_pages_may_open_it() {
    let managed = Managed::start(
        "shards = 1\n[[listeners]]\naddress = '127.0.0.1:0'\ntransport = 'ws'\npath = '/here'\n\
         origins = ['https://app.example']\n",
    );
    let [tcp, ws] = managed.broker.addresses() else { panic!("two listeners") };
    let (tcp, ws) = (row(&managed, *tcp), row(&managed, *ws));
    assert_eq!((&ws["transport"], &ws["path"]), (&"ws".into(), &"/here".into()));
    assert_eq!(ws["origins"], json!(["https://app.example"]));
    assert!(tcp.get("path").is_none() && tcp.get("origins").is_none(), "{tcp}");
}

#[test]
fn a_listener_whose_address_was_taken_is_not_started_and_can_be_later() {
    let managed = managed();
    let address = managed.broker.addresses()[1];
    managed.ask("POST", &format!("/listeners/{address}/stop"), "").json();
    let taken = TcpListener::bind(address).unwrap();
    let (_, why) = managed.ask("POST", &format!("/listeners/{address}/start"), "").error(409);
    assert!(why.contains(&address.to_string()), "{why}");
    assert_eq!(row(&managed, address)["state"], "stopped");
    drop(taken);
    managed.ask("POST", &format!("/listeners/{address}/start"), "").json();
    connected(address, "c").disconnect();
    managed.ask("POST", "/listeners/127.0.0.1:1/stop", "").error(404);
    assert_eq!(managed.ask("POST", "/listeners/here/stop", "").error(400).0, "address");
}
