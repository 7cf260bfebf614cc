//! The flush at the end of a turn: one write per connection with output.

use std::collections::VecDeque;
use std::io::ErrorKind;

use crate::budget::Part;
use crate::conn::{Closed, Conn, ConnId, Phase, WriteSide};
use crate::net::{Handler, Net};
use crate::pool::BufferPool;

const WRITE_UNITS: u32 = 4;

/// The lines in which connections wait for their output to be written.
#[derive(Clone, Copy)]
enum Line {
    Answers,
    /// Behind all others.
    Later,
}

impl<H: Handler> Net<H> {
    /// Writes once to every connection that has output and is not blocked, in order, up to the
    /// bounds of a turn; what may wait comes last. The last turn of a loop writes everything.
    pub(crate) fn flush(&mut self, handler: &mut H) {
        if !self.scrap.is_empty() {
            // Otherwise shared pieces in it would live as long as this loop.
            self.scrap.clear(&mut self.pool);
        }
        self.begin_part(Part::Answers);
        let flushed = self.flush_line(Line::Answers);
        if self.budget.is_spent() {
            self.turns_due += self.dirty.len() / flushed.max(1);
        }
        self.begin_part(Part::Rest);
        self.flush_line(Line::Later);
        // Output appended here leaves in the next turn, which does not sleep then.
        for _ in 0..self.drained.len() {
            if let Some(id) = self.drained.pop_front()
                && self.is_open(id)
            {
                handler.drained(self, id);
            }
            if !self.budget.charge(1) {
                return;
            }
        }
    }

    fn begin_part(&mut self, part: Part) {
        if self.stopping {
            self.budget.lift();
        } else {
            self.budget.begin_part(part);
        }
    }

    fn line(&mut self, line: Line) -> &mut VecDeque<ConnId> {
        match line {
            Line::Answers => &mut self.dirty,
            Line::Later => &mut self.later,
        }
    }

    /// Writes to the connections that are in a line now; returns how many it has come to.
    #[inline]
    fn flush_line(&mut self, line: Line) -> usize {
        let count = self.line(line).len();
        for flushed in 1..=count {
            if let Some(id) = self.line(line).pop_front()
                && let Some(conn) = self.conns.get_mut(id)
            {
                match line {
                    Line::Answers => conn.on_dirty = false,
                    Line::Later => conn.on_later = false,
                }
                self.flush_one(id);
            }
            if !self.budget.charge(WRITE_UNITS) {
                return flushed;
            }
        }
        count
    }

    /// Writes to a connection ahead of its turn. It stays in its lines, where nothing is left to be
    /// written when its turn comes.
    pub(crate) fn write_ahead(&mut self, id: ConnId) {
        self.flush_one(id);
        self.budget.charge(WRITE_UNITS);
    }

    #[inline]
    fn flush_one(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        self.later_bytes -= std::mem::take(&mut conn.later_bytes);
        // This includes connections that are not established yet.
        if conn.write_side.is_blocked() {
            return self.count_output(id);
        }
        let lingering = conn.phase == Phase::Lingering;
        if conn.filter.is_some()
            && !conn.write_side.is_broken()
            && let Err(error) = translate(conn, &mut self.pool)
        {
            if lingering {
                self.drop_conn(id);
            } else {
                self.fail(id, Closed::Error(error));
            }
            return;
        }
        let output = match &mut conn.filter {
            Some(filtering) => &mut filtering.wire,
            None => &mut conn.output,
        };
        if output.len_bytes() > self.limits.output_high_bytes {
            conn.drained_due = true;
        }
        if output.is_empty() {
            output.clear(&mut self.pool);
        } else {
            self.counters.writes += 1;
            match output.write_to(&mut conn.stream, &mut self.pool) {
                Ok(written) => {
                    self.counters.written_bytes += written.taken as u64;
                    let left = !output.is_empty();
                    if written.taken < written.offered {
                        conn.write_side = WriteSide::Blocked;
                    } else if left {
                        self.push_dirty(id);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    conn.write_side = WriteSide::Blocked;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => self.push_dirty(id),
                Err(error) => return self.fail_write(id, error),
            }
        }
        self.count_output(id);
        if lingering {
            self.finish_lingering(id);
        } else {
            self.check_low_mark(id);
        }
    }

    /// Schedules `drained` when output that was above the high-water mark has fallen to the low
    /// one.
    #[inline]
    fn check_low_mark(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id)
            && conn.drained_due
            && conn.output_bytes() <= self.limits.output_low_bytes
        {
            conn.drained_due = false;
            self.drained.push_back(id);
        }
    }

    /// Writing is impossible from now on. What the peer has sent before is still read: it may have
    /// said why it closes.
    fn fail_write(&mut self, id: ConnId, error: std::io::Error) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.phase == Phase::Lingering {
            self.drop_conn(id);
            return;
        }
        conn.output.clear(&mut self.pool);
        if let Some(filtering) = &mut conn.filter {
            filtering.wire.clear(&mut self.pool);
        }
        self.buffered_bytes -= std::mem::take(&mut conn.output_counted);
        conn.write_side = WriteSide::Broken(error);
        conn.read_side.note_edge(true);
        self.push_ready(id);
    }
}

/// Moves output through the filter.
fn translate<S: AsRef<[u8]>>(conn: &mut Conn<S>, pool: &mut BufferPool) -> std::io::Result<()> {
    let Some(filtering) = &mut conn.filter else { return Ok(()) };
    let filter = &mut filtering.filter;
    filtering.wire.prepare(pool);
    let wire = filtering.wire.as_vec_mut();
    if conn.output.is_empty() {
        filter.outbound(&[], wire)?;
    }
    conn.output.drain_into(pool, |plain| filter.outbound(plain, wire))?;
    if conn.phase == Phase::Lingering && !filtering.finished {
        filtering.finished = true;
        filter.finish(wire);
    }
    Ok(())
}
