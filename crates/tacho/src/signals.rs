//! Signals that end the process in order.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::exit::{self, Failure};

/// Becomes true on SIGINT, SIGTERM and SIGHUP.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    }
    Ok(stop)
}
