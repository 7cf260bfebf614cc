//! Asks the brokers of a network repeatedly about the state of their bridges.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::bridge_client::{BridgeClient, BridgeState};
use crate::error::RigError;
use crate::network::Network;

/// Time between two questions: the end of a backlog is noticed this late at most.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// A broker that does not answer within this time is left out of the round.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Asks on a thread of its own; dropping it ends that.
#[derive(Debug)]
pub struct BridgeWatch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A bridge between two brokers of the network.
#[derive(Debug)]
pub struct WatchedBridge<'a> {
    /// The broker that it leads to.
    pub to: &'a str,
    /// Its state.
    pub state: &'a BridgeState,
}

impl BridgeWatch {
    /// Asks those of `brokers` that are in the network, each with the function that takes its
    /// answers; `None` when none is.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start<'a, F>(
        network: &Arc<Network>,
        brokers: impl Iterator<Item = (&'a str, F)>,
    ) -> Result<Option<Self>, RigError>
    where
        F: FnMut(&[WatchedBridge<'_>]) + Send + 'static,
    {
        let asked: Vec<(String, F)> =
            brokers.filter_map(|(name, report)| Some((network.url(name)?, report))).collect();
        if asked.is_empty() {
            return Ok(None);
        }
        let over = Arc::new(AtomicBool::new(false));
        let (network, is_over) = (Arc::clone(network), Arc::clone(&over));
        let work = move || ask_all(&network, asked, &is_over);
        let thread =
            Builder::new().name("bridge-watch".into()).spawn(work).map_err(RigError::Thread)?;
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

fn ask_all<F: FnMut(&[WatchedBridge<'_>])>(
    network: &Network,
    mut brokers: Vec<(String, F)>,
    over: &AtomicBool,
) {
    let client = BridgeClient::new(TIMEOUT);
    while !over.load(Ordering::Relaxed) {
        let next = Instant::now() + ASK_EVERY;
        for (url, report) in &mut brokers {
            // A broker that was killed does not answer until it is back.
            let Ok(answer) = client.ask(url) else { continue };
            let bridges: Vec<WatchedBridge<'_>> = answer
                .bridges
                .iter()
                .filter_map(|state| Some(WatchedBridge { to: network.led_to(&state.name)?, state }))
                .collect();
            report(&bridges);
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
