//! An honest client: it sends a small message now and then, receives it, and notes how late it was.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use super::super::figures::Sample;
use crate::floor::now_ns;
use crate::mqtt::{connect, publish, subscribe};

const TOPIC: &str = "honest";
/// Between two messages: enough for a 99th percentile within seconds, and no load.
const INTERVAL: Duration = Duration::from_millis(10);
/// For the last messages.
const DRAIN: Duration = Duration::from_secs(2);

pub(super) struct Honest {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    publisher: JoinHandle<Result<()>>,
    receiver: JoinHandle<Vec<u64>>,
    subscriber: TcpStream,
}

/// The latencies, and how many messages were due.
pub(super) struct Seen {
    latencies_ns: Vec<u64>,
    sent: u64,
}

impl Honest {
    pub(super) fn start(port: u16) -> Result<Self> {
        let broker = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut subscriber = connect(broker, "honest-sub").context("an honest client")?;
        subscriber.write_all(&subscribe(1, &[TOPIC.to_owned()])).context("cannot subscribe")?;
        let mut suback = [0; 5];
        subscriber.read_exact(&mut suback).context("no SUBACK")?;
        ensure!(suback == [0x90, 3, 0, 1, 0], "not subscribed: {suback:02x?}");
        let mut publisher = connect(broker, "honest-pub").context("an honest client")?;
        let (stop, sent) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&sent));
        let publisher = spawn("honest-pub", move || -> Result<()> {
            let mut due_ns = now_ns();
            while !stopped.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
                let packet = publish(TOPIC, &due_ns.to_le_bytes());
                publisher.write_all(&packet).context("the honest client was closed")?;
                counted.fetch_add(1, Ordering::Relaxed);
                due_ns += INTERVAL.as_nanos() as u64;
            }
            Ok(())
        })?;
        let mut reader = subscriber.try_clone().context("cannot share a socket")?;
        let receiver = spawn("honest-sub", move || {
            let mut packet = publish(TOPIC, &[0; 8]);
            let mut latencies_ns = Vec::new();
            while reader.read_exact(&mut packet).is_ok() {
                if let Some(due) = packet.last_chunk() {
                    latencies_ns.push(now_ns().saturating_sub(u64::from_le_bytes(*due)));
                }
            }
            latencies_ns
        })?;
        Ok(Self { stop, sent, publisher, receiver, subscriber })
    }

    /// Ends it, once the last messages had time to arrive.
    pub(super) fn end(self) -> Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        let published = self.publisher.join().map_err(|_| anyhow!("its thread panicked"))?;
        thread::sleep(DRAIN);
        let _ = self.subscriber.shutdown(std::net::Shutdown::Both);
        let latencies_ns = self.receiver.join().map_err(|_| anyhow!("its thread panicked"))?;
        published?;
        Ok(Seen { latencies_ns, sent: self.sent.load(Ordering::Relaxed) })
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    thread::Builder::new().name(name.to_owned()).spawn(work).context("cannot start a thread")
}

impl Seen {
    pub(super) fn tell(mut self, sample: &mut Sample) {
        self.latencies_ns.sort_unstable();
        let last = self.latencies_ns.len().saturating_sub(1);
        let at = |share: f64| {
            let place = (last as f64 * share).round() as usize;
            self.latencies_ns.get(place).map(|ns| *ns as f64 / 1e3)
        };
        sample.set("latency_us_p50", at(0.5));
        sample.set("latency_us_p99", at(0.99));
        sample.set("latency_us_max", at(1.0));
        let received = self.latencies_ns.len() as f64;
        sample.set("sent", Some(self.sent as f64));
        sample.set("received", Some(received));
        sample.set("lost", Some(self.sent as f64 - received));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_among_the_figures_and_so_is_what_never_came() {
        let mut sample = Sample::new("x", 1);
        let latencies_ns = (1..=100).rev().map(|us| us * 1000).collect();
        Seen { latencies_ns, sent: 103 }.tell(&mut sample);
        let figure = |name| sample.metrics.get(name).copied();
        assert_eq!(figure("latency_us_max"), Some(100.0));
        assert_eq!(figure("latency_us_p99"), Some(99.0));
        assert_eq!((figure("sent"), figure("lost")), (Some(103.0), Some(3.0)));
    }
}
