//! What became of the records of a target.

/// What became of what one target was given.
///
/// Records are counted as the format counts them: lines, samples, data points, rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputAccount {
    /// The target, without its options.
    pub target: String,
    /// Records that the service took.
    pub taken: u64,
    /// Records that the service refused: sending them again would not help.
    pub refused: u64,
    /// Records that could not be sent in time, or did not fit into a queue.
    pub unsent: u64,
    /// Requests that were made again.
    pub repeated: u64,
    /// The last error.
    pub last_error: Option<String>,
}

impl OutputAccount {
    /// Records that did not arrive.
    pub fn lost(&self) -> u64 {
        self.refused + self.unsent
    }

    /// Adds what became of further records of the same target.
    pub fn add(&mut self, later: &Self) {
        self.taken += later.taken;
        self.refused += later.refused;
        self.unsent += later.unsent;
        self.repeated += later.repeated;
        if later.last_error.is_some() {
            self.last_error.clone_from(&later.last_error);
        }
    }

    /// Is there nothing to tell?
    pub fn is_clean(&self) -> bool {
        self.lost() == 0
    }
}
