//! The end of connections: the call of [`Handler::closed`], lingering, dropping the socket.

use crate::conn::{Closed, Conn, ConnId, Phase, ReadSide, WriteSide};
use crate::net::{Handler, Net};

/// Closing a socket takes microseconds, and after a storm of disconnects thousands are due at once.
const LINGERING_DROPPED_PER_TURN_MAX: usize = 256;
const DROP_UNITS: u32 = 4;

impl<H: Handler> Net<H> {
    /// The connection is over: `closed` will be called, and then its output is written.
    pub(crate) fn end(&mut self, id: ConnId, why: Closed) {
        self.leave(id, Phase::Ending, why);
    }

    /// The socket is of no further use: `closed` will be called and nothing more is written.
    pub(crate) fn fail(&mut self, id: ConnId, why: Closed) {
        self.leave(id, Phase::Aborting, why);
    }

    fn leave(&mut self, id: ConnId, phase: Phase, why: Closed) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        match conn.phase {
            Phase::Connecting | Phase::Open => {
                conn.phase = phase;
                conn.partial.clear();
                conn.unit = None;
                self.buffered_bytes -= std::mem::take(&mut conn.input_counted);
                self.ending.push_back((id, why));
            }
            // `closed` is due already; a failure still cancels the rest of the output.
            Phase::Ending => conn.phase = phase,
            Phase::Aborting | Phase::Lingering => {}
        }
    }

    /// The peer will send no more.
    pub(crate) fn input_ended(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.read_side = ReadSide::Ended;
        if conn.phase == Phase::Lingering {
            if matches!(conn.write_side, WriteSide::Finished | WriteSide::Broken(_)) {
                self.drop_conn(id);
            }
            return;
        }
        match conn.write_side.take_error() {
            Some(error) => self.fail(id, Closed::Error(error)),
            None => self.end(id, Closed::ByPeer),
        }
    }

    /// `closed` was called for the connection: drops it, or keeps it until its output is written.
    pub(crate) fn end_reported(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.phase == Phase::Aborting {
            self.reset_conn(id);
        } else {
            conn.phase = Phase::Lingering;
            self.lingering.push_back((self.now_ns + self.limits.linger_ns, id));
            self.push_dirty(id);
            self.push_ready(id);
        }
    }

    /// When a lingering connection has written everything, it sends FIN and waits for the peer's.
    pub(crate) fn finish_lingering(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.output_bytes() > 0 || matches!(conn.write_side, WriteSide::Finished) {
            return;
        }
        if conn.read_side == ReadSide::Ended || conn.stream.finish().is_err() {
            self.drop_conn(id);
            return;
        }
        conn.write_side = WriteSide::Finished;
    }

    /// Drops lingering connections whose time is over, and the oldest ones if there are too many.
    /// The loop does not sleep while more of them are due.
    pub(crate) fn expire_lingering(&mut self) {
        for _ in 0..LINGERING_DROPPED_PER_TURN_MAX {
            let Some(&(until_ns, id)) = self.lingering.front() else { return };
            let too_many = self.lingering.len() > self.limits.lingering_max;
            let found = self.conns.get(id);
            if until_ns > self.now_ns && found.is_some() && !too_many {
                break;
            }
            let unwritten_bytes = found.map_or(0, Conn::output_bytes);
            self.lingering.pop_front();
            if unwritten_bytes > 0 {
                // A peer that does not read must not hold our memory in the kernel either.
                self.reset_conn(id);
            } else {
                self.drop_conn(id);
            }
            if !self.budget.charge(DROP_UNITS) {
                return;
            }
        }
    }

    /// Drops a connection that the handler no longer knows.
    pub(crate) fn drop_conn(&mut self, id: ConnId) {
        let Some(mut conn) = self.conns.remove(id) else { return };
        self.buffered_bytes -= conn.output_counted + conn.input_counted;
        self.later_bytes -= conn.later_bytes;
        conn.output.clear(&mut self.pool);
        if let Some(mut filtering) = conn.filter.take() {
            filtering.wire.clear(&mut self.pool);
        }
    }

    /// Drops it so that the peer sees RST.
    fn reset_conn(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id) {
            conn.stream.reset_when_dropped();
        }
        self.drop_conn(id);
    }
}
