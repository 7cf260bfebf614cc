//! Where the reports of an agent go: to its controller, and into the log of the run, from which
//! another controller could take it up.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::Builder;
use std::time::Duration;

use tacho_bus::{Bus, BusError, Bytes, Link, Log, Name};

use super::protocol::{Keep, LogPiece, ToController, encode, log_name};

/// Largest part of a report in the log: with what a piece adds, half of what the bus takes.
const PIECE_BYTES: usize = 256 * 1024;
/// Bytes that may wait for the log. What comes while it is full is missing there, and with it the
/// agent in a run that is taken up.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// How long the log is left alone after an error.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Where reports go.
#[derive(Debug)]
pub(super) struct Outlet {
    /// To the controller; none while it is gone.
    pub(super) link: Option<Arc<Link>>,
    /// Where another controller could take the run up.
    kept: Option<KeptReports>,
}

impl Outlet {
    pub(super) const fn new(link: Arc<Link>) -> Self {
        Self { link: Some(link), kept: None }
    }

    /// From now on reports go into the log of the run, too.
    pub(super) fn keep(&mut self, bus: &dyn Bus, run: &Name, keep: &Keep) -> Result<(), String> {
        let kept = KeptReports::open(bus, run, keep.share);
        self.kept = Some(kept.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// From now on no other controller can take the run up.
    pub(super) fn keep_no_more(&mut self) {
        self.kept = None;
    }

    /// Pieces in the log so far; `None` without a log.
    pub(super) fn pieces(&self) -> Option<u64> {
        self.kept.as_ref().map(|kept| kept.number)
    }

    /// Passes reports on; false if the controller cannot get them although it is there.
    pub(super) fn report(&mut self, reports: Vec<u8>) -> bool {
        if let Some(kept) = &mut self.kept {
            kept.add(&reports);
        }
        let Some(link) = &self.link else { return self.kept.is_some() };
        match link.send(&encode(&ToController::Reports(reports))) {
            Ok(()) => true,
            // The controller is gone, which the link is about to tell.
            Err(BusError::Closed { .. }) => self.kept.is_some(),
            Err(_) => false,
        }
    }
}

/// Reports on their way into the log.
#[derive(Debug)]
struct KeptReports {
    share: u16,
    /// Of the next piece.
    number: u64,
    pieces: mpsc::Sender<Bytes>,
    waiting_bytes: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl KeptReports {
    fn open(bus: &dyn Bus, run: &Name, share: u16) -> Result<Self, BusError> {
        let name = log_name(run)?;
        let missing = || BusError::Refused { why: format!("there is no log '{name}'") };
        let log = bus.find_log(&name)?.ok_or_else(missing)?;
        let (pieces, waiting) = mpsc::channel();
        let (waiting_bytes, stop): (Arc<AtomicUsize>, Arc<AtomicBool>) = Default::default();
        let work = {
            let (waiting_bytes, stop) = (Arc::clone(&waiting_bytes), Arc::clone(&stop));
            move || append_all(&*log, &waiting, &waiting_bytes, &stop)
        };
        let thread = Builder::new().name("agent-log".to_owned()).spawn(work);
        thread.map_err(|error| BusError::Refused { why: error.to_string() })?;
        Ok(Self { share, number: 0, pieces, waiting_bytes, stop })
    }

    fn add(&mut self, reports: &[u8]) {
        let count = reports.len().div_ceil(PIECE_BYTES).max(1);
        for (at, bytes) in reports.chunks(PIECE_BYTES).enumerate() {
            let (share, number, last) = (self.share, self.number, at + 1 == count);
            self.number += 1;
            let piece = encode(&LogPiece { share, number, last, bytes });
            if self.waiting_bytes.load(Ordering::Relaxed) + piece.len() <= WAITING_BYTES_MAX {
                self.waiting_bytes.fetch_add(piece.len(), Ordering::Relaxed);
                // The thread outlives this value.
                let _ = self.pieces.send(piece);
            }
        }
    }
}

impl Drop for KeptReports {
    fn drop(&mut self) {
        // The thread may wait for a bus that is away; it ends soon after.
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Adds one piece after the other. One that may have been added is added again: its number tells.
fn append_all(
    log: &dyn Log,
    waiting: &mpsc::Receiver<Bytes>,
    waiting_bytes: &AtomicUsize,
    stop: &AtomicBool,
) {
    for piece in waiting {
        while !stop.load(Ordering::Relaxed) && log.append(piece.clone()).is_err() {
            std::thread::sleep(AGAIN_AFTER);
        }
        waiting_bytes.fetch_sub(piece.len(), Ordering::Relaxed);
    }
}
