//! The lease on a run: which controller has it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tacho_bus::{Bus, BusError, Expected, Name, Table};

use super::protocol::{Held, LEASE, RENEW_EVERY, decode, encode, runs};

/// How often a lease of another controller is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a controller waits for the lease of one that was killed just now.
const PATIENCE: Duration = LEASE.saturating_add(Duration::from_secs(4));

/// Why a run cannot be had.
#[derive(Debug)]
pub(super) enum NoLease {
    Bus(BusError),
    /// Another controller has it.
    Held(Held),
    /// The run is to end before it begins.
    Stopped,
    System(io::Error),
}

impl From<BusError> for NoLease {
    fn from(error: BusError) -> Self {
        Self::Bus(error)
    }
}

/// The lease on a run, renewed until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Another controller has taken the run up.
    is_lost: Arc<AtomicBool>,
}

impl Lease {
    /// Takes the lease; one of a controller that has just been killed is waited for.
    pub(super) fn take(
        bus: &dyn Bus,
        run: &Name,
        attempt: u32,
        stop: &AtomicBool,
    ) -> Result<Self, NoLease> {
        let (table, own) = (runs(bus)?, Held::by_this_process(attempt));
        let deadline = Instant::now() + PATIENCE;
        let mut revision = loop {
            match table.put(run, encode(&own), Expected::Absent) {
                Ok(revision) => break revision,
                Err(BusError::Conflict { .. }) if stop.load(Ordering::Relaxed) => {
                    return Err(NoLease::Stopped);
                }
                Err(BusError::Conflict { .. }) if Instant::now() < deadline => {
                    std::thread::sleep(LOOK_EVERY);
                }
                Err(error @ BusError::Conflict { .. }) => {
                    let held = table.get(run)?.and_then(|value| decode::<Held>(&value.payload));
                    return Err(held.map_or(NoLease::Bus(error), NoLease::Held));
                }
                Err(error) => return Err(error.into()),
            }
        };
        let (sender, stopped) = mpsc::channel::<()>();
        let is_lost = Arc::new(AtomicBool::new(false));
        let (lost, run) = (Arc::clone(&is_lost), run.clone());
        let work = move || {
            while stopped.recv_timeout(RENEW_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                match renewed(&*table, &run, &own, Expected::Revision(revision)) {
                    Ok(now) => revision = now,
                    Err(BusError::Conflict { .. }) => {
                        lost.store(true, Ordering::Relaxed);
                        return;
                    }
                    // The bus is away: its links tell how long.
                    Err(_) => {}
                }
            }
            // Otherwise it ends soon.
            let _ = table.delete(&run, Expected::Revision(revision));
        };
        let thread = Builder::new().name("agent-lease".to_owned()).spawn(work);
        let thread = Some(thread.map_err(NoLease::System)?);
        Ok(Self { stop: Some(sender), thread, is_lost })
    }

    /// Whether another controller has taken the run up, while this one stood still.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}

fn renewed(
    table: &dyn Table,
    run: &Name,
    own: &Held,
    expected: Expected,
) -> Result<tacho_bus::Revision, BusError> {
    match table.put(run, encode(own), expected) {
        // It has ended meanwhile, or is another's.
        Err(BusError::Conflict { .. }) => table.put(run, encode(own), Expected::Absent),
        written => written,
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

impl Held {
    fn by_this_process(attempt: u32) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim().to_owned();
        Self { attempt, host, process: std::process::id() }
    }
}

/// Looks, until it is dropped, whether a controller that an agent does not hear lives nevertheless:
/// then it has given the agent up.
#[derive(Debug)]
pub(super) struct ControllerWatch {
    // Its thread may wait for the bus, which is away; it ends soon after.
    ended: Arc<AtomicBool>,
}

impl ControllerWatch {
    /// Calls `lives` at most once.
    pub(super) fn start(
        bus: Arc<dyn Bus>,
        run: Name,
        attempt: u32,
        lives: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&ended);
        let work = move || {
            while !stopped.load(Ordering::Relaxed) {
                // A lease ends before the silence of a link is too long.
                std::thread::sleep(RENEW_EVERY);
                let held = runs(&*bus).and_then(|table| table.get(&run)).ok().flatten();
                let held = held.and_then(|value| decode::<Held>(&value.payload));
                if held.is_some_and(|held| held.attempt == attempt)
                    && !stopped.load(Ordering::Relaxed)
                {
                    lives();
                    return;
                }
            }
        };
        Builder::new().name("agent-watch".to_owned()).spawn(work)?;
        Ok(Self { ended })
    }
}

impl Drop for ControllerWatch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tacho_bus::LocalBus;

    use super::*;

    #[test]
    fn a_lease_is_held_until_another_controller_takes_it() {
        let bus = LocalBus::default();
        let run = Name::parse("run").expect("a name");
        let stop = AtomicBool::new(false);
        let lease = Lease::take(&bus, &run, 3, &stop).expect("is free");
        let table = runs(&bus).expect("the bus works");
        let held = || {
            let value = table.get(&run).expect("the bus works");
            value.and_then(|value| decode::<Held>(&value.payload)).map(|held| held.attempt)
        };
        assert_eq!(held(), Some(3));
        // A controller that is to end does not wait for it.
        let taken = Lease::take(&bus, &run, 4, &AtomicBool::new(true)).map(|_| ());
        assert!(matches!(taken, Err(NoLease::Stopped)), "{taken:?}");
        let other = encode(&Held::by_this_process(4));
        table.put(&run, other, Expected::Any).expect("the bus works");
        while !lease.is_lost() {
            std::thread::sleep(LOOK_EVERY);
        }
        drop(lease);
        // It is the other's, and stays so.
        assert_eq!(held(), Some(4));
    }
}
