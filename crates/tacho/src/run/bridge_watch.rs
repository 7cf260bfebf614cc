//! Asks brokers that the run bridged, again and again, how their bridges stand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tacho_lab::run::{BridgeFigures, BridgeLog, BridgeSample};

use super::bridged::Network;
use crate::bridge::Asker;

/// How often: a backlog that is gone is seen so soon.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// A broker that does not answer within this time has nothing to say.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Asks on a thread of its own; dropping it ends that.
#[derive(Debug)]
pub(super) struct BridgeWatch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A broker that is asked.
struct Asked {
    url: String,
    log: Arc<BridgeLog>,
}

impl BridgeWatch {
    /// Asks those of `brokers` (names, and where answers go) that are in the network; `None` when
    /// none is.
    pub(super) fn start<'a>(
        network: &Arc<Network>,
        brokers: impl Iterator<Item = (&'a str, Arc<BridgeLog>)>,
    ) -> std::io::Result<Option<Self>> {
        let asked = brokers.filter_map(|(name, log)| Some(Asked { url: network.url(name)?, log }));
        let asked: Vec<Asked> = asked.collect();
        if asked.is_empty() {
            return Ok(None);
        }
        let over = Arc::new(AtomicBool::new(false));
        let (network, is_over) = (Arc::clone(network), Arc::clone(&over));
        let work = move || go_on(&network, &asked, &is_over);
        let thread = Builder::new().name("bridge-watch".into()).spawn(work)?;
        Ok(Some(Self { over, thread: Some(thread) }))
    }
}

impl Drop for BridgeWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

fn go_on(network: &Network, brokers: &[Asked], over: &AtomicBool) {
    let asker = Asker::new(TIMEOUT);
    while !over.load(Ordering::Relaxed) {
        let next = Instant::now() + ASK_EVERY;
        for broker in brokers {
            // One that was killed says nothing until it is back.
            let Ok(answer) = asker.ask(&broker.url) else { continue };
            let at_ns = BridgeLog::now_ns();
            let bridges = answer.bridges.iter().filter_map(|bridge| {
                let figures = &bridge.figures;
                Some(BridgeFigures {
                    to: network.led_to(&bridge.name)?.to_owned(),
                    connections: bridge.connections(),
                    connected: bridge.connected,
                    sent: figures.sent,
                    waiting: figures.buffered_messages + figures.inflight,
                    waiting_bytes: figures.buffered_bytes,
                })
            });
            broker.log.told(BridgeSample { at_ns, bridges: bridges.collect() });
        }
        while !over.load(Ordering::Relaxed) {
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::park_timeout(left);
        }
    }
}
