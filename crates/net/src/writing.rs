//! The flush at the end of a turn: one write per connection with output.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};

use crate::batch::{BATCH_LEN_MAX, BatchWrite, WriteBatch};
use crate::budget::Part;
use crate::conn::{Closed, Conn, ConnId, Filtering, Phase, WriteSide};
use crate::net::{Handler, Net};
use crate::output::{Output, Written};
use crate::pool::BufferPool;

const WRITE_UNITS: u32 = 4;
/// For as many writes of a batch as fit into the rest of a part.
const WRITE_NS: u64 = 8_000;
/// Fewer are written one after the other: what a batch saves grows with its length.
const BATCH_LEN_MIN: usize = 8;
/// More is written alone: copying it takes longer than entering the kernel.
const BATCHED_BYTES_MAX: usize = 4096;

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
        let mut flushed = 0;
        while flushed < count {
            let len = self.batch_len(count - flushed);
            let mut batch = if len > 1 { self.batch.take() } else { None };
            for _ in 0..len {
                if let Some(id) = self.line(line).pop_front()
                    && let Some(conn) = self.conns.get_mut(id)
                {
                    match line {
                        Line::Answers => conn.on_dirty = false,
                        Line::Later => conn.on_later = false,
                    }
                    self.flush_one(id, batch.as_deref_mut());
                }
            }
            if let Some(batch) = batch {
                self.write_batch(batch);
            }
            flushed += len;
            if !self.budget.charge(WRITE_UNITS * len as u32) {
                return flushed;
            }
        }
        count
    }

    /// How many of `waiting` connections are written to before the clock is read again.
    #[inline]
    fn batch_len(&self, waiting: usize) -> usize {
        if self.batch.is_none() || waiting < BATCH_LEN_MIN {
            return 1;
        }
        let in_time = usize::try_from(self.budget.units_left(WRITE_NS)).unwrap_or(usize::MAX);
        waiting.min(in_time.clamp(BATCH_LEN_MIN, BATCH_LEN_MAX))
    }

    fn write_batch(&mut self, mut batch: Box<WriteBatch>) {
        if !batch.is_empty() {
            self.counters.write_batches += 1;
            let result = batch.write();
            for write in batch.drain() {
                self.batch_written(write);
            }
            if result.is_err() {
                return;
            }
        }
        self.batch = Some(batch);
    }

    /// Writes to a connection ahead of its turn. It stays in its lines, where nothing is left to be
    /// written when its turn comes.
    pub(crate) fn write_ahead(&mut self, id: ConnId) {
        self.flush_one(id, None);
        self.budget.charge(WRITE_UNITS);
    }

    /// Writes to a connection, or adds the write to the batch.
    #[inline]
    fn flush_one(&mut self, id: ConnId, batch: Option<&mut WriteBatch>) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        self.later_bytes -= std::mem::take(&mut conn.later_bytes);
        // This includes connections that are not established yet.
        if conn.write_side.is_blocked() {
            return self.count_output(id);
        }
        if conn.filter.is_some()
            && !conn.write_side.is_broken()
            && let Err(error) = translate(conn, &mut self.pool)
        {
            if conn.phase == Phase::Lingering {
                self.drop_conn(id);
            } else {
                self.fail(id, Closed::Error(error));
            }
            return;
        }
        let output = outgoing(&mut conn.filter, &mut conn.output);
        if output.len_bytes() > self.limits.output_high_bytes {
            conn.drained_due = true;
        }
        if output.is_empty() {
            output.clear(&mut self.pool);
            return self.flushed(id);
        }
        if let Some(batch) = batch
            && output.len_bytes() <= BATCHED_BYTES_MAX
            && let Some(buffer) = output.take_whole()
        {
            match batch.push(id, &conn.stream, buffer) {
                Ok(()) => return,
                Err(buffer) => output.restore(buffer, 0, &mut self.pool),
            }
        }
        let result = output.write_to(&mut conn.stream, &mut self.pool);
        self.written(id, result);
    }

    /// Takes note of a write of a batch.
    fn batch_written(&mut self, write: BatchWrite) {
        let BatchWrite { id, buffer, result, .. } = write;
        let Some(conn) = self.conns.get_mut(id) else { return self.pool.give(buffer) };
        let offered = buffer.len();
        let taken = *result.as_ref().unwrap_or(&0);
        let output = outgoing(&mut conn.filter, &mut conn.output);
        output.restore(buffer, taken, &mut self.pool);
        self.written(id, result.map(|taken| Written { offered, taken }));
    }

    /// Takes note of what the kernel has made of a write.
    #[inline]
    fn written(&mut self, id: ConnId, result: io::Result<Written>) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        self.counters.writes += 1;
        match result {
            Ok(written) => {
                self.counters.written_bytes += written.taken as u64;
                if written.taken < written.offered {
                    conn.write_side = WriteSide::Blocked;
                } else if !outgoing(&mut conn.filter, &mut conn.output).is_empty() {
                    self.push_dirty(id);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                conn.write_side = WriteSide::Blocked;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => self.push_dirty(id),
            Err(error) => return self.fail_write(id, error),
        }
        self.flushed(id);
    }

    #[inline]
    fn flushed(&mut self, id: ConnId) {
        self.count_output(id);
        if self.conns.get(id).is_some_and(|conn| conn.phase == Phase::Lingering) {
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
    fn fail_write(&mut self, id: ConnId, error: io::Error) {
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

/// The output that is for the socket.
#[inline]
fn outgoing<'a, S: AsRef<[u8]>>(
    filter: &'a mut Option<Box<Filtering<S>>>,
    plain: &'a mut Output<S>,
) -> &'a mut Output<S> {
    match filter {
        Some(filtering) => &mut filtering.wire,
        None => plain,
    }
}

/// Moves output through the filter.
fn translate<S: AsRef<[u8]>>(conn: &mut Conn<S>, pool: &mut BufferPool) -> io::Result<()> {
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
