//! How long this machine stops a thread that has next to nothing to do.
//!
//! A host stops the virtual processors of its guests. The part of that time that it does not report
//! as stolen counts as CPU time of the thread that ran: a turn of the broker looks longer than it
//! was. A host whose processors are all loaded stops them for longer, and more so within system
//! calls, so the thread echoes what another one sends from the generator's core.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::floor::{FRAME_BYTES, pin_self_to, thread_cpu_ns};

/// Longest CPU time, in milliseconds, that a bare echo of one message took on core `echo_cpu` while
/// core `sender_cpu` was kept busy with sending, for so long.
pub(super) fn echo_cpu_ms_max(
    lasts: Duration,
    (echo_cpu, sender_cpu): (usize, usize),
) -> Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    let address = listener.local_addr().context("cannot listen")?;
    let echo = thread::spawn(move || {
        let (stream, _) = listener.accept().context("cannot accept")?;
        pin_self_to(&[echo_cpu])?;
        echo_ms_max(stream)
    });
    let sender = thread::spawn(move || {
        pin_self_to(&[sender_cpu])?;
        send_for(TcpStream::connect(address).context("cannot connect")?, lasts)
    });
    sender.join().map_err(|_| anyhow!("the thread that sends panicked"))??;
    echo.join().map_err(|_| anyhow!("the thread that echoes panicked"))?
}

fn echo_ms_max(mut stream: TcpStream) -> Result<f64> {
    stream.set_nodelay(true)?;
    let mut message = [0; FRAME_BYTES];
    let (mut seen_ns, mut ns_max) = (thread_cpu_ns(), 0);
    while stream.read_exact(&mut message).is_ok() {
        stream.write_all(&message).context("cannot echo")?;
        let now_ns = thread_cpu_ns();
        ns_max = ns_max.max(now_ns - seen_ns);
        seen_ns = now_ns;
    }
    Ok(ns_max as f64 / 1e6)
}

fn send_for(mut stream: TcpStream, lasts: Duration) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut message = [0; FRAME_BYTES];
    let begun = Instant::now();
    while begun.elapsed() < lasts {
        stream.write_all(&message).context("cannot send")?;
        stream.read_exact(&mut message).context("no echo")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_echo_is_above_zero_and_within_its_time() {
        let lasts = Duration::from_millis(20);
        let begun = Instant::now();
        let ms_max = echo_cpu_ms_max(lasts, (0, 0)).expect("echoes");
        let took_ms = begun.elapsed().as_secs_f64() * 1e3;
        assert!(ms_max > 0.0 && ms_max <= took_ms, "{ms_max} of {took_ms} ms");
    }
}
