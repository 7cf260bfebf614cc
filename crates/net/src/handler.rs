//! What the user of a loop implements.

use std::io;

use crate::{ConnId, Net};

/// The logic above a loop. All methods run on the loop's thread and must not block.
///
/// Any method may do anything to any connection through [`Net`]: write, close, pause, detach. The
/// loop calls [`closed`](Self::closed) exactly once for each connection that was accepted,
/// connected or attached, unless it was detached; an index is not used again before that.
pub trait Handler: Sized {
    /// Messages between shards.
    type Mail: Send + 'static;
    /// Large output that several connections share, by reference. Cheap to clone, for instance an
    /// `Arc`.
    type Shared: AsRef<[u8]> + Send + 'static;

    /// The loop is about to take its first turn.
    fn started(&mut self, net: &mut Net<Self>) {
        let _ = net;
    }

    /// A peer has connected to the listener with this index in
    /// [`LoopConfig::listeners`](crate::LoopConfig::listeners).
    fn accepted(&mut self, net: &mut Net<Self>, conn: ConnId, listener: usize);

    /// [`Net::connect`] has succeeded or failed. After a failure the connection does not exist any
    /// more and `closed` is not called for it.
    fn connected(&mut self, net: &mut Net<Self>, conn: ConnId, result: io::Result<()>) {
        let _ = (net, conn, result);
    }

    /// The handshake of this connection's [`Filter`](crate::Filter) is over: what is written now
    /// reaches the peer at once. Called once, and only if the filter has a handshake.
    fn ready(&mut self, net: &mut Net<Self>, conn: ConnId) {
        let _ = (net, conn);
    }

    /// Bytes have arrived. Returns how many were consumed; the loop keeps the rest and hands it
    /// again, in front of what comes next.
    ///
    /// After `close`, `abort`, `detach` or `pause_read` for this connection the loop stops handing
    /// input. To be given the rest again without waiting for more bytes, call
    /// [`Net::resume_read`].
    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize;

    /// The connection is over. Everything that had arrived before was handed to `input`.
    fn closed(&mut self, net: &mut Net<Self>, conn: ConnId, why: Closed);

    /// Unwritten output fell to the low-water mark after it had been above the high one. Who stops
    /// writing because [`Net::output_bytes`] exceeds
    /// [`LoopConfig::output_high_bytes`](crate::LoopConfig::output_high_bytes) is therefore always
    /// called back, be it at the end of this very turn.
    fn drained(&mut self, net: &mut Net<Self>, conn: ConnId) {
        let _ = (net, conn);
    }

    /// A timer of [`Net::set_timer`] is due.
    fn timer(&mut self, net: &mut Net<Self>, token: u64) {
        let _ = (net, token);
    }

    /// A message from shard `from`, or from [`OUTSIDE`](crate::OUTSIDE) all loops. Messages of one
    /// sender arrive in the order in which they were posted.
    fn mail(&mut self, net: &mut Net<Self>, from: usize, mail: Self::Mail) {
        let _ = (net, from, mail);
    }

    /// All events of this turn have been handled and nothing was flushed yet. Says when the next
    /// turn shall begin if nothing else happens.
    fn turn(&mut self, net: &mut Net<Self>) -> Next {
        let _ = net;
        Next::Sleep
    }

    /// The turn is over: everything that it wrote has been flushed, so that [`Net::counters`] say
    /// how things stand while the loop sleeps. Output appended here leaves in the next turn, which
    /// may be far away.
    fn turn_ended(&mut self, net: &mut Net<Self>) {
        let _ = net;
    }

    /// The loop has looked again after a turn in which [`Net::tell_idle`] was called, and has found
    /// nothing to do: it sleeps next. Output appended here leaves in the next turn.
    fn idle(&mut self, net: &mut Net<Self>) {
        let _ = net;
    }
}

/// When the next turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When something happens.
    Sleep,
    /// At once: there is work left.
    Again,
    /// At this time ([`clock::now_ns`](crate::clock::now_ns)) or when something happens before.
    /// The wake-up is as precise as the kernel's timers.
    At(u64),
    /// Not before `until_ns`, whatever happens; then as [`Next::At`] `at_ns`. What comes meanwhile
    /// is served together, which takes less CPU than one turn for each. A spinning loop does not
    /// rest.
    Rest {
        /// The earliest beginning.
        until_ns: u64,
        /// The latest; `u64::MAX` for none.
        at_ns: u64,
    },
}

/// Why a connection is over.
#[derive(Debug)]
pub enum Closed {
    /// The peer has closed its side.
    ByPeer,
    /// `close` or `abort` was called here.
    ByUs,
    /// The socket or its filter failed.
    Error(io::Error),
}
