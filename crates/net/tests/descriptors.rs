//! What happens when descriptors run out. Alone in this binary: the limit is the process's.

mod common;

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use common::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn peers_are_refused_and_others_served_when_descriptors_run_out() {
    let server = start(echo());
    let mut first = server.client();
    write(&mut first, b"before");
    assert_eq!(read_exactly(&mut first, 6), b"before");

    // Room for exactly 20 more: the clients live in this process too, so that the 11th connection
    // cannot be accepted.
    let before = getrlimit(Resource::Nofile);
    let open = std::fs::read_dir("/dev/fd").unwrap().count() as u64 - 1;
    setrlimit(Resource::Nofile, Rlimit { current: Some(open + 20), maximum: before.maximum })
        .unwrap();
    let mut clients = Vec::new();
    while let Ok(client) = std::net::TcpStream::connect(server.addr) {
        client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        clients.push(client);
        if clients.len() > 20 {
            break;
        }
        // Each is accepted, or refused, before the next one comes.
        let settled = clients.len() as u64 + 1;
        let until = Instant::now() + Duration::from_secs(1);
        loop {
            let counters = server.ask(|_, net| net.counters());
            if counters.accepted + counters.refused >= settled || Instant::now() > until {
                break;
            }
        }
    }
    let counters = server.ask(|_, net| net.counters());
    assert!(counters.refused > 0, "{counters:?}, {} clients", clients.len());

    // Those who were accepted are served all along.
    write(&mut first, b"during");
    assert_eq!(read_exactly(&mut first, 6), b"during");

    // Those who were refused know it: their connection is closed, they do not wait.
    let refused = clients
        .iter_mut()
        .map(|client| client.read(&mut [0; 1]))
        .filter(|result| match result {
            Ok(len) => *len == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        })
        .count();
    assert!(refused as u64 >= counters.refused, "{refused} of {counters:?}");

    // When there is room again, so is service.
    drop(clients);
    setrlimit(Resource::Nofile, before).unwrap();
    eventually("accepting again", || {
        let mut client = server.client();
        write(&mut client, b"after");
        let mut got = [0; 5];
        client.read_exact(&mut got).is_ok() && &got == b"after"
    });
}
