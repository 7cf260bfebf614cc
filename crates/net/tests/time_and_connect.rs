//! Timers, precise wake-ups and outgoing connections.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tacho_net::{LoopConfig, Next, mailboxes};
use tacho_testkit::net::*;

const MS: u64 = 1_000_000;

#[test]
fn timers_wake_a_sleeping_loop_in_order_and_never_early() {
    let (fired, timers) = events();
    let server = start(Probe {
        on_timer: Box::new(move |net, token| {
            assert!(net.now_ns() >= token, "early");
            fired.send(token).unwrap();
        }),
        ..Probe::default()
    });
    let deadlines = server.ask(|_, net| {
        let now_ns = net.now_ns();
        let mut deadlines: Vec<u64> =
            [70, 5, 30, 1, 5, 12, 3].iter().map(|delay_ms| now_ns + delay_ms * MS).collect();
        for &deadline_ns in &deadlines {
            // The token is the deadline itself.
            net.set_timer(deadline_ns, deadline_ns);
        }
        let cancelled = net.set_timer(now_ns + 2 * MS, 0);
        assert!(net.cancel_timer(cancelled));
        assert!(!net.cancel_timer(cancelled));
        deadlines.sort_unstable();
        deadlines
    });
    let got: Vec<u64> = deadlines.iter().map(|_| next(&timers)).collect();
    assert_eq!(got, deadlines);
}

#[test]
fn a_loop_reports_once_that_it_is_idle() {
    let (told, happened) = events();
    let idle = told.clone();
    let server = start(Probe {
        on_mail: Box::new(move |net, _, mail| {
            let Mail::Number(number) = mail else { return };
            told.send(number).unwrap();
            net.tell_idle();
            if number > 0 {
                net.post(net.shard(), Mail::Number(number - 1));
            }
        }),
        on_idle: Box::new(move |_| idle.send(99).unwrap()),
        ..Probe::default()
    });
    for _ in 0..3 {
        assert!(server.remote.post(server.shard, Mail::Number(4)));
        let got: Vec<u64> = (0..6).map(|_| next(&happened)).collect();
        assert_eq!(got, [4, 3, 2, 1, 0, 99]);
        // Turns without a request.
        (0..3).for_each(|_| server.ask(|_, _| ()));
    }
    assert!(happened.try_recv().is_err());
}

#[test]
fn a_timer_may_set_and_cancel_others() {
    let (fired, timers) = events();
    let mut victim = None;
    let server = start(Probe {
        on_timer: Box::new(move |net, token| {
            fired.send(token).unwrap();
            match token {
                0..=9 => {
                    net.set_timer(net.now_ns(), token + 1);
                }
                10 => {
                    victim = Some(net.set_timer(net.now_ns() + 20 * MS, 99));
                    net.set_timer(net.now_ns() + 10 * MS, 11);
                }
                11 => {
                    assert!(net.cancel_timer(victim.take().unwrap()));
                    net.set_timer(net.now_ns() + 30 * MS, 12);
                }
                _ => {}
            }
        }),
        ..Probe::default()
    });
    server.ask(|_, net| {
        net.set_timer(net.now_ns(), 0);
    });
    let got: Vec<u64> = (0..13).map(|_| next(&timers)).collect();
    assert_eq!(got, (0..13).collect::<Vec<_>>());
}

#[test]
fn a_loop_wakes_at_the_requested_time() {
    // 100 wake-ups, 300 us apart; none is early, none is lost, and the loop does not spin in
    // between.
    let (woken, wakes) = events();
    let mut at_ns = 0;
    let mut left = 100;
    let server = start(Probe {
        on_turn: Box::new(move |net| {
            if left == 0 {
                return Next::Sleep;
            }
            if at_ns == 0 {
                at_ns = net.now_ns();
            }
            if net.now_ns() >= at_ns {
                woken.send(net.now_ns() - at_ns).unwrap();
                at_ns = net.now_ns() + 300_000;
                left -= 1;
            }
            Next::At(at_ns)
        }),
        ..Probe::default()
    });
    let late_ns = (0..100).map(|_| next(&wakes)).min();
    // A timeout in milliseconds would make every wake-up 700 us late, on any machine.
    assert!(late_ns < Some(500_000), "{late_ns:?}");
    assert!(server.ask(|_, net| net.counters().turns) < 300);
}

#[test]
fn a_rest_is_not_ended_by_events() {
    for polls in [false, true] {
        let (turned, turns) = events();
        let server = start(Probe {
            on_turn: Box::new(move |net| {
                turned.send(net.now_ns()).unwrap();
                Next::Rest { until_ns: net.now_ns() + 20 * MS, polls, at_ns: u64::MAX }
            }),
            ..Probe::default()
        });
        let mut last_ns = next(&turns);
        for _ in 0..3 {
            // Without the rest, a mail would begin a turn at once.
            server.ask(|_, _| ());
            let now_ns = next(&turns);
            assert!(now_ns >= last_ns + 20 * MS);
            last_ns = now_ns;
        }
        // Time in which the clock was polled is counted, sleep is not; neither is work.
        let counters = server.ask(|_, net| net.counters());
        let polled_ns = counters.polled_rest_ns;
        assert_eq!(polled_ns > 0, polls, "{polled_ns}");
        assert!(polled_ns <= counters.turns * 20 * MS, "{polled_ns} in {} turns", counters.turns);
    }
}

#[test]
fn an_earlier_deadline_replaces_a_later_one() {
    let (fired, timers) = events();
    let (idle, sleeps) = events();
    let server = start(Probe {
        on_timer: Box::new(move |_, token| fired.send(token).unwrap()),
        // The loop sleeps next, with its alarm set to the deadline.
        on_idle: Box::new(move |_| idle.send(()).unwrap()),
        ..Probe::default()
    });
    server.ask(|_, net| {
        net.set_timer(net.now_ns() + 3_600_000 * MS, 2);
        net.tell_idle();
    });
    next(&sleeps);
    server.ask(|_, net| {
        net.set_timer(net.now_ns() + 5 * MS, 1);
    });
    assert_eq!(next(&timers), 1);
    server.ask(|_, net| net.tell_idle());
    next(&sleeps);
    server.ask(|_, net| {
        net.set_timer(net.now_ns() + 5 * MS, 3);
    });
    assert_eq!(next(&timers), 3);
}

#[test]
fn a_spinning_loop_does_the_same() {
    let config = LoopConfig { spin: true, ..LoopConfig::default() };
    let (fired, timers) = events();
    let server = start_config(
        config,
        Probe { on_timer: Box::new(move |_, token| fired.send(token).unwrap()), ..echo() },
    );
    server.ask(|_, net| {
        net.set_timer(net.now_ns() + 5 * MS, 1);
    });
    let mut client = server.client();
    write(&mut client, b"hello");
    assert_eq!(finish(client), b"hello");
    assert_eq!(next(&timers), 1);
    assert_eq!(server.ask(|_, net| net.counters().sleeps), 0);
}

#[test]
fn a_pinned_loop_runs_on_its_cpu() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..1024).find(|&cpu| allowed.is_set(cpu)).unwrap();
    let server =
        start_config(LoopConfig { cpu: Some(cpu), ..LoopConfig::default() }, Probe::default());
    let count = server.ask(move |_, _| {
        let now = rustix::thread::sched_getaffinity(None).unwrap();
        (now.count(), now.is_set(cpu))
    });
    assert_eq!(count, (1, true));
}

#[test]
fn outgoing_connections_send_what_was_written_before_and_after() {
    let server = start(echo());
    let addr = server.addr;
    let (heard, hears) = events();
    let client = start_with(
        LoopConfig::default(),
        mailboxes(1).remove(0),
        Probe {
            on_connected: Box::new(|net, conn, result| {
                result.unwrap();
                net.out(conn).extend_from_slice(b"after");
            }),
            on_input: Box::new(move |_, _, data| {
                if data.len() < 11 {
                    return 0;
                }
                heard.send(data.to_vec()).unwrap();
                data.len()
            }),
            ..Probe::default()
        },
    );
    client.ask(move |_, net| {
        for _ in 0..20 {
            let conn = net.connect(addr, Some("127.0.0.2:0".parse().unwrap())).unwrap();
            assert!(!net.is_open(conn), "not yet");
            net.out(conn).extend_from_slice(b"before");
        }
    });
    for _ in 0..20 {
        assert_eq!(next(&hears), b"beforeafter");
    }
    let peer = client.ask(|_, net| {
        let conn = net.open_connections().next().unwrap();
        (net.peer_addr(conn).unwrap(), net.local_addr(conn).unwrap().ip().to_string())
    });
    assert_eq!(peer, (addr, "127.0.0.2".to_owned()));
}

#[test]
fn a_failed_connect_is_reported_once_and_leaves_nothing() {
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = refusing.local_addr().unwrap();
    drop(refusing);
    let (told, tells) = events();
    let client = start(Probe {
        on_connected: Box::new(move |net, conn, result| {
            assert!(!net.is_open(conn));
            // Its index is not reused while the handler is called.
            let other = net.connect(addr, None).unwrap();
            assert_ne!(other.index(), conn.index());
            net.abort(other);
            net.close(conn);
            told.send(result.unwrap_err().kind()).unwrap();
        }),
        on_closed: Box::new(|_, _, reason| assert_eq!(why(&reason), "by us")),
        ..Probe::default()
    });
    client.ask(move |_, net| net.connect(addr, None).unwrap());
    assert_eq!(next(&tells), ErrorKind::ConnectionRefused);
    eventually("nothing is left", || client.ask(|_, net| net.connections()) == 0);
    assert!(tells.try_recv().is_err());
}

#[test]
fn many_loops_share_a_listener() {
    let accepted = Arc::new(AtomicU64::new(0));
    let listener = local();
    let loops: Vec<_> = mailboxes(3)
        .into_iter()
        .map(|mailbox| {
            let listeners = vec![listener.try_clone().unwrap()];
            let accepted = Arc::clone(&accepted);
            let probe = Probe {
                on_accepted: Box::new(move |_, _| {
                    accepted.fetch_add(1, Ordering::SeqCst);
                }),
                ..echo()
            };
            start_with(LoopConfig { listeners, ..LoopConfig::default() }, mailbox, probe)
        })
        .collect();
    for _ in 0..50 {
        let mut client = loops[0].client();
        write(&mut client, b"hello");
        assert_eq!(finish(client), b"hello");
    }
    assert_eq!(accepted.load(Ordering::SeqCst), 50);
}

#[test]
fn a_loop_that_stops_listening_keeps_its_connections() {
    let server = start(echo());
    let mut client = server.client();
    write(&mut client, b"one");
    assert_eq!(read_exactly(&mut client, 3), b"one");
    server.ask(|_, net| net.stop_listening());
    let addr = server.addr;
    eventually("refused", || std::net::TcpStream::connect(addr).is_err());
    write(&mut client, b"two");
    assert_eq!(finish(client), b"two");
}

#[test]
fn an_address_in_use_is_an_error() {
    let first = local();
    let error = tacho_net::bind(first.local_addr().unwrap(), 10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
}
