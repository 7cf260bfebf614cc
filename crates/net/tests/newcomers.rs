//! Newcomers are served after established connections; buffered bytes are counted.

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tacho_net::{ConnId, LoopConfig};
use tacho_testkit::net::*;

/// Records the turn and the first byte of each input.
fn recording(order: Sender<(u64, u8)>) -> Probe {
    Probe {
        on_input: Box::new(move |net, conn, data| {
            if data[0] == b'!' {
                net.established(conn);
            }
            let _ = order.send((net.counters().turns, data[0]));
            net.out(conn).extend_from_slice(&data[..1]);
            data.len()
        }),
        ..Probe::default()
    }
}

/// So little that a turn has time for one newcomer.
fn little_budget() -> LoopConfig {
    LoopConfig { newcomers_budget_ns: 1, ..LoopConfig::default() }
}

/// While the loop is blocked, all peers write, the established one last: it is served first, and
/// each newcomer in a turn of its own.
fn assert_order(
    server: &Running,
    mut inside: TcpStream,
    mut newcomers: Vec<TcpStream>,
    ordered: &Receiver<(u64, u8)>,
) {
    let count = newcomers.len();
    let ((written, all_written), (go, may_go)) = (events(), events());
    let writing = std::thread::spawn(move || {
        next(&may_go);
        for newcomer in &mut newcomers {
            write(newcomer, b"n");
        }
        write(&mut inside, b"i");
        written.send(()).expect("is waited for");
        (newcomers, inside)
    });
    server.ask(move |_, _| {
        go.send(()).expect("the writer waits");
        next(&all_written)
    });
    let mut seen: Vec<(u64, u8)> = (0..=count).map(|_| next(ordered)).collect();
    let (newcomers, inside) = writing.join().expect("has written");
    assert_eq!(seen[0].1, b'i', "{seen:?}");
    seen.retain(|&(_, first)| first == b'n');
    let turns: Vec<u64> = seen.iter().map(|&(turn, _)| turn).collect();
    assert!(turns.windows(2).all(|pair| pair[0] < pair[1]), "one per turn: {turns:?}");
    drop((newcomers, inside));
}

#[test]
fn established_connections_are_served_before_newcomers_which_share_a_budget() {
    let (order, ordered) = events();
    let server = start_config(little_budget(), recording(order));
    let mut inside = server.client();
    write(&mut inside, b"!");
    read_exactly(&mut inside, 1);
    let newcomers: Vec<_> = (0..20).map(|_| server.client()).collect();
    eventually("all are accepted", || server.ask(|_, net| net.connections()) == 21);
    let _ = next(&ordered);
    assert_order(&server, inside, newcomers, &ordered);
}

#[test]
fn connections_of_its_own_wait_as_newcomers_where_the_handler_says_so() {
    let (order, ordered) = events();
    let server = start_config(little_budget(), recording(order));
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = peer.local_addr().unwrap();
    let opened = || {
        server.ask(move |_, net| {
            let conn = net.connect(address, None).unwrap();
            net.newcomer(conn);
        });
        peer.accept().unwrap().0
    };
    let mut inside = opened();
    write(&mut inside, b"!");
    read_exactly(&mut inside, 1);
    let newcomers: Vec<_> = (0..20).map(|_| opened()).collect();
    let _ = next(&ordered);
    assert_order(&server, inside, newcomers, &ordered);
}

#[test]
fn without_a_budget_newcomers_are_treated_as_others() {
    let (order, ordered) = events();
    let server = start(recording(order));
    let mut clients: Vec<_> = (0..20).map(|_| server.client()).collect();
    for client in &mut clients {
        write(client, b"n");
        read_exactly(client, 1);
    }
    assert_eq!(ordered.try_iter().count(), 20);
}

#[test]
fn paced_accepts_keep_their_distance_and_no_client_is_lost() {
    const CLIENTS: u32 = 10;
    const GAP: Duration = Duration::from_millis(20);
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    let server = start(Probe {
        on_accepted: Box::new(move |net, _| noted.lock().unwrap().push(net.now_ns())),
        ..Probe::default()
    });
    server.ask(|_, net| net.pace_accepts(GAP.as_nanos() as u64));
    let begun = Instant::now();
    let _clients: Vec<_> = (0..CLIENTS).map(|_| server.client()).collect();
    eventually("all are accepted", || times.lock().unwrap().len() == CLIENTS as usize);
    assert!(begun.elapsed() >= GAP * (CLIENTS - 1));
    let times = times.lock().unwrap();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= GAP.as_nanos() as u64));
}

#[test]
fn the_oldest_lingering_connection_goes_for_one_more() {
    let config = LoopConfig { lingering_max: 3, linger_ns: u64::MAX / 2, ..LoopConfig::default() };
    let server = start_config(
        config,
        Probe {
            on_input: Box::new(|net, conn, data| {
                net.close(conn);
                data.len()
            }),
            ..Probe::default()
        },
    );
    // The clients do not close their side, so each connection lingers.
    let mut clients: Vec<_> = (0..10).map(|_| server.client()).collect();
    for client in &mut clients {
        write(client, b"x");
    }
    eventually("only a few linger", || server.ask(|_, net| net.connections()) == 3);
}

#[test]
fn buffered_bytes_are_counted_until_connections_end() {
    let held = |server: &Running| server.ask(|_, net| net.buffered_bytes());
    let server = start(Probe {
        // Consumes no input, or answers with a lot of output.
        on_input: Box::new(|net, conn, data| {
            if data.starts_with(b"more") {
                net.out(conn).extend_from_slice(&vec![7; 20_000_000]);
                return data.len();
            }
            if data.starts_with(b"shared") {
                net.out(conn).push_shared(Arc::from(vec![7; 20_000_000]));
                return data.len();
            }
            0
        }),
        ..Probe::default()
    });
    assert_eq!(held(&server), 0);
    let mut incomplete = server.client();
    write(&mut incomplete, &[1; 30_000]);
    eventually("its bytes are counted", || held(&server) == 30_000);
    let mut deaf = server.client();
    write(&mut deaf, b"more");
    eventually("output is counted too", || held(&server) > 1_000_000);
    // Output by reference is not counted.
    let before = held(&server);
    let mut other = server.client();
    write(&mut other, b"shared");
    eventually("it is buffered", || {
        server.ask(|_, net| {
            let ids: Vec<ConnId> = net.open_connections().collect();
            ids.iter().filter(|&&id| net.output_bytes(id) > 1_000_000).count() == 2
        })
    });
    assert!(held(&server) <= before);
    drop((incomplete, deaf, other));
    eventually("no bytes are counted", || held(&server) == 0);
}
