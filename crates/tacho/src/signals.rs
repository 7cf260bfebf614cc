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

/// Ends the process with 0 on SIGINT and SIGTERM: for what waits without an end, and has nothing
/// to put in order.
pub(crate) fn end_well() -> Result<(), Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            std::process::exit(exit::OK.into());
        }
    });
    Ok(())
}
