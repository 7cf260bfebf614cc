//! Bytes through one loop: all of them, in order, for all splits; and the end of connections.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tacho_net::LoopConfig;
use tacho_testkit::net::*;

/// A handler that consumes frames of one length byte and that many bytes, and echoes the content.
fn deframer() -> Probe {
    Probe {
        on_input: Box::new(|net, conn, data| {
            let mut consumed = 0;
            while let Some((&len, rest)) = data[consumed..].split_first()
                && let Some(content) = rest.get(..usize::from(len))
            {
                net.out(conn).extend_from_slice(content);
                consumed += 1 + usize::from(len);
            }
            consumed
        }),
        ..Probe::default()
    }
}

fn frames(lens: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut wire, mut content) = (Vec::new(), Vec::new());
    for (index, &len) in lens.iter().enumerate() {
        let bytes: Vec<u8> = (0..len).map(|byte| byte.wrapping_add(index as u8)).collect();
        wire.push(len);
        wire.extend_from_slice(&bytes);
        content.extend_from_slice(&bytes);
    }
    (wire, content)
}

#[test]
fn every_split_of_a_stream_yields_the_same_bytes() {
    let server = start(deframer());
    let (wire, content) = frames(&[3, 0, 1, 20, 7]);
    for split in 0..=wire.len() {
        let mut client = server.client();
        write(&mut client, &wire[..split]);
        // The echo of the complete frames shows that the first part was read on its own.
        let whole = {
            let mut position = 0;
            let mut content = 0;
            while position < split && position + 1 + usize::from(wire[position]) <= split {
                content += usize::from(wire[position]);
                position += 1 + usize::from(wire[position]);
            }
            content
        };
        let mut got = read_exactly(&mut client, whole);
        write(&mut client, &wire[split..]);
        got.extend(finish(client));
        assert_eq!(got, content, "split at {split}");
    }
}

#[test]
fn a_stream_that_arrives_byte_by_byte_is_complete() {
    let server = start(deframer());
    let (wire, content) = frames(&[200, 100, 1, 0, 50]);
    let mut client = server.client();
    for byte in wire {
        write(&mut client, &[byte]);
    }
    assert_eq!(finish(client), content);
}

#[test]
fn small_read_buffers_yield_the_same_bytes() {
    for read_buffer_bytes in [1, 7, 64, 1000] {
        let config = LoopConfig { read_buffer_bytes, ..LoopConfig::default() };
        let server = start_config(config, deframer());
        let lens: Vec<u8> = (0..200).map(|index| (index * 37) as u8).collect();
        let (wire, content) = frames(&lens);
        let mut client = server.client();
        write(&mut client, &wire);
        assert!(finish(client) == content, "buffer of {read_buffer_bytes}");
    }
}

#[test]
fn input_larger_than_the_read_buffer_is_kept_until_it_is_complete() {
    let len = 1_000_000;
    let server = start(Probe {
        on_input: Box::new(move |net, conn, data| {
            if data.len() < len {
                return 0;
            }
            net.out(conn).push_shared(Arc::from(&data[..len]));
            len
        }),
        ..Probe::default()
    });
    let bytes = pattern(2 * len);
    let mut client = server.client();
    let mut reader = client.try_clone().unwrap();
    let got = thread::spawn(move || read_exactly(&mut reader, 2 * len));
    write(&mut client, &bytes);
    assert!(got.join().unwrap() == bytes);
}

#[test]
fn a_half_close_is_reported_after_the_last_byte() {
    // The peer sends everything and FIN before the loop reads anything.
    let (closed, ends) = events();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let total = Arc::clone(&seen);
    let server = start(Probe {
        on_input: Box::new(move |net, conn, data| {
            count.fetch_add(data.len(), Ordering::SeqCst);
            net.out(conn).extend_from_slice(data);
            data.len()
        }),
        on_closed: Box::new(move |_, _, reason| {
            closed.send((why(&reason), total.load(Ordering::SeqCst))).unwrap();
        }),
        ..Probe::default()
    });
    for len in [0, 1, 65_535, 65_536, 65_537, 200_000] {
        seen.store(0, Ordering::SeqCst);
        let mut client = server.client();
        // Both the bytes and FIN are in the kernel before the loop polls.
        let (block, blocked) = events::<()>();
        let (entered, inside) = events::<()>();
        let stop: Do = Box::new(move |_, _| {
            entered.send(()).unwrap();
            let _ = blocked.recv_timeout(PATIENCE);
        });
        server.remote.post(0, Mail::Do(stop));
        next(&inside);
        write(&mut client, &pattern(len));
        client.shutdown(std::net::Shutdown::Write).unwrap();
        block.send(()).unwrap();
        let mut echoed = Vec::new();
        client.read_to_end(&mut echoed).unwrap();
        assert!(echoed == pattern(len), "{len}: echoed {}", echoed.len());
        assert_eq!(next(&ends), ("by peer", len));
    }
}

#[test]
fn a_reset_is_an_error_after_the_bytes_before_it() {
    let (closed, ends) = events();
    let server = start(Probe {
        on_closed: Box::new(move |_, _, reason| closed.send(why(&reason)).unwrap()),
        ..Probe::default()
    });
    let client = server.client();
    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    eventually("accepted", || server.ask(|_, net| net.connections()) == 1);
    drop(client);
    assert_eq!(next(&ends), "error");
    assert_eq!(server.ask(|_, net| net.connections()), 0);
}

#[test]
fn input_before_a_failed_write_is_still_read() {
    // The peer sends bytes and closes at once, while the server keeps writing to it.
    let (closed, ends) = events();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let server = start(Probe {
        on_accepted: Box::new(|net, conn| {
            net.pause_read(conn);
            net.out(conn).extend_from_slice(&[0; 1000]);
        }),
        on_input: Box::new(move |_, _, data| {
            hears.lock().unwrap().extend_from_slice(data);
            data.len()
        }),
        on_closed: Box::new(move |_, _, reason| closed.send(why(&reason)).unwrap()),
        ..Probe::default()
    });
    let mut client = server.client();
    // Unread input makes the peer's kernel answer with a reset.
    let mut first = [0; 1];
    client.read_exact(&mut first).unwrap();
    write(&mut client, b"farewell");
    drop(client);
    server.ask(|_, net| {
        let conn = net.open_connections().next().unwrap();
        net.out(conn).extend_from_slice(&[0; 1000]);
        net.resume_read(conn);
    });
    next(&ends);
    assert_eq!(*heard.lock().unwrap(), b"farewell");
}

#[test]
fn a_paused_connection_whose_write_fails_is_reported() {
    let (closed, ends) = events();
    let server = start(Probe {
        on_accepted: Box::new(|net, conn| {
            net.pause_read(conn);
            net.out(conn).extend_from_slice(&[0; 1000]);
        }),
        on_closed: Box::new(move |_, _, reason| closed.send(why(&reason)).unwrap()),
        ..Probe::default()
    });
    let mut client = server.client();
    client.read_exact(&mut [0; 1]).unwrap();
    drop(client);
    eventually("closed", || {
        server.ask(|_, net| {
            let conns: Vec<_> = net.open_connections().collect();
            for &conn in &conns {
                net.out(conn).extend_from_slice(&[0; 1000]);
            }
            conns.is_empty()
        })
    });
    assert_eq!(next(&ends), "error");
}

#[test]
fn closing_delivers_all_output_even_if_input_was_left_unread() {
    let (closed, ends) = events();
    let len = 5_000_000;
    // Long enough for any machine; other tests cover the end of lingering.
    let config = LoopConfig { linger_ns: PATIENCE.as_nanos() as u64, ..LoopConfig::default() };
    let probe = Probe {
        on_input: Box::new(move |net, conn, _| {
            net.out(conn).push_shared(Arc::from(pattern(len)));
            net.close(conn);
            assert!(!net.is_open(conn));
            net.out(conn).extend_from_slice(b"too late");
            0
        }),
        on_closed: Box::new(move |_, _, reason| closed.send(why(&reason)).unwrap()),
        ..Probe::default()
    };
    let server = start_config(config, probe);
    let mut client = server.client();
    write(&mut client, &[1; 100]);
    assert_eq!(next(&ends), "by us");
    write(&mut client, &[2; 100_000]);
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert!(got == pattern(len), "{} bytes", got.len());
    drop(client);
    eventually("the connection is gone", || server.ask(|_, net| net.connections()) == 0);
    assert!(ends.try_recv().is_err(), "closed was called twice");
}

#[test]
fn a_peer_that_never_reads_cannot_hold_a_closed_connection() {
    let config = LoopConfig { linger_ns: 50_000_000, ..LoopConfig::default() };
    let server = start_config(
        config,
        Probe {
            on_accepted: Box::new(|net, conn| {
                net.out(conn).push_shared(Arc::from(vec![0; 50_000_000]));
                net.close(conn);
            }),
            ..Probe::default()
        },
    );
    let clients: Vec<_> = (0..5).map(|_| server.client()).collect();
    eventually("accepted", || server.ask(|_, net| net.counters().accepted) == 5);
    eventually("dropped", || server.ask(|_, net| net.connections()) == 0);
    for mut client in clients {
        let mut rest = Vec::new();
        assert!(client.read_to_end(&mut rest).is_err(), "output was cut off without a reset");
    }
}

#[test]
fn a_peer_that_does_not_close_cannot_hold_a_closed_connection() {
    let config = LoopConfig { linger_ns: 50_000_000, ..LoopConfig::default() };
    let server = start_config(
        config,
        Probe {
            on_accepted: Box::new(|net, conn| {
                net.out(conn).extend_from_slice(b"bye");
                net.close(conn);
            }),
            ..Probe::default()
        },
    );
    let mut client = server.client();
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"bye");
    eventually("dropped", || server.ask(|_, net| net.connections()) == 0);
}

#[test]
fn an_aborted_connection_is_reset() {
    let (closed, ends) = events();
    let server = start(Probe {
        on_input: Box::new(|net, conn, data| {
            net.out(conn).extend_from_slice(b"never seen");
            net.abort(conn);
            data.len()
        }),
        on_closed: Box::new(move |_, _, reason| closed.send(why(&reason)).unwrap()),
        ..Probe::default()
    });
    let mut client = server.client();
    write(&mut client, b"x");
    let error = client.read(&mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(next(&ends), "by us");
    assert_eq!(server.ask(|_, net| net.connections()), 0);
}
