//! How long tests wait.

use std::time::{Duration, Instant};

/// How long a test waits for something that must come, on however slow a machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How long a test waits to be convinced that nothing comes.
pub const QUIET: Duration = Duration::from_millis(150);

/// Waits until `done` says so.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
