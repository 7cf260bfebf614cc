//! The stop flag of the process, which signals raise.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::RigError;

/// Fails once the process was asked to stop.
pub(crate) fn unless_stopped(stop: &AtomicBool) -> Result<(), RigError> {
    match stop.load(Ordering::Relaxed) {
        true => Err(RigError::Stopped),
        false => Ok(()),
    }
}
