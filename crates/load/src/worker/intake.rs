//! Incomplete packets from brokers: what one thread keeps of them is bounded.

use tacho_net::ConnId;

use crate::context::RunContext;

/// The bytes of incomplete packets, of all connections of a thread.
#[derive(Debug)]
pub(super) struct Intake {
    bytes_max: u64,
    bytes: u64,
    /// Of each connection, by its index.
    of: Vec<u32>,
}

impl Intake {
    /// The thread's part of the plan's budget; at least one packet of every size fits.
    pub(super) fn new(context: &RunContext) -> Self {
        let part = context.plan.receive_bytes_max / context.plan.threads.max(1) as u64;
        let largest = context.packet_bytes_accepted.iter().copied().max().unwrap_or_default();
        Self { bytes_max: part.max(largest.into()), bytes: 0, of: Vec::new() }
    }

    pub(super) const fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// `conn` keeps so many bytes of an incomplete packet, instead of what it kept before. `false`
    /// when they exceed the budget: then it keeps none.
    #[inline]
    pub(super) fn keep(&mut self, conn: ConnId, bytes: usize) -> bool {
        let kept = self.of.get(conn.index()).copied().unwrap_or_default();
        if bytes == 0 && kept == 0 {
            return true;
        }
        self.change(conn.index(), bytes)
    }

    /// The connection has ended, or what it kept is discarded.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.keep(conn, 0);
    }

    #[cold]
    fn change(&mut self, index: usize, bytes: usize) -> bool {
        if self.of.len() <= index {
            self.of.resize(index + 1, 0);
        }
        let others = self.bytes - u64::from(self.of[index]);
        let fits = others + bytes as u64 <= self.bytes_max;
        // Invariant: what fits is at most a packet, whose size fits into 32 bits.
        let bytes = if fits { bytes as u32 } else { 0 };
        self.of[index] = bytes;
        self.bytes = others + u64::from(bytes);
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_connections_keep_is_bounded() {
        let mut intake = Intake { bytes_max: 100, bytes: 0, of: Vec::new() };
        assert!(intake.change(3, 60) && intake.change(0, 40));
        assert!(!intake.change(0, 41), "one byte too many");
        assert_eq!(intake.bytes, 60, "which it does not keep");
        assert!(intake.change(3, 100), "it replaces what it kept");
        assert!(!intake.change(1, 1));
        assert!(intake.change(3, 0) && intake.change(1, 100));
        assert_eq!((intake.bytes, &intake.of[..]), (100, &[0, 100, 0, 0][..]));
    }
}
