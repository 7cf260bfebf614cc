//! Looks from time to time whether the data directory is still the one that was locked.

use std::time::{Duration, Instant};

use crate::lock::Custody;
use crate::shared::Shared;
use crate::troubles::Trouble;

/// Between two looks, each of which is two system calls. What is committed within this time after
/// the directory was replaced is promised, and missing in the other one.
const INTERVAL: Duration = Duration::from_millis(10);

/// When the committer last looked, and what it saw.
#[derive(Default)]
pub(crate) struct CustodyWatch {
    looked: Option<Instant>,
    is_displaced: bool,
}

impl CustodyWatch {
    /// Whether the directory is not the one that was locked, by a look that is recent. The
    /// condition of the journal says so too.
    pub(crate) fn is_displaced(&mut self, shared: &Shared) -> bool {
        let Some(lock) = &shared.lock else { return false };
        if self.looked.is_some_and(|looked| looked.elapsed() < INTERVAL) {
            return self.is_displaced;
        }
        self.looked = Some(Instant::now());
        self.is_displaced = match lock.custody() {
            Custody::Kept => false,
            Custody::Mended => {
                tracing::warn!("the file `lock` of the data directory was removed: made again");
                false
            }
            Custody::Displaced(why) => {
                if shared.troubles.begin(Trouble::Displaced) {
                    tracing::error!(
                        "the journal commits no more: {why}; it would be missing after a restart: \
                         put the directory back, or start the broker again"
                    );
                }
                true
            }
        };
        if !self.is_displaced && shared.troubles.end(Trouble::Displaced) {
            tracing::info!("the data directory is back: the journal commits again");
        }
        self.is_displaced
    }
}
