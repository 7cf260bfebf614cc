//! Reading: from readiness reported by the kernel to [`Handler::input`].

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use crate::conn::{ClientEnd, Closed, ConnId, Demand, Phase, ReadSide, WriteSide};
use crate::net::{Handler, Net};
use crate::proxy::{HEADER_BYTES_MAX, ProxyHeader};
use crate::readiness::Readiness;
use crate::unit::{PIECE_BYTES, Unit};

/// Copying to memory that was not touched before takes a microsecond for about so much.
const COPIED_BYTES_PER_UNIT: usize = 4096;

/// A buffer for so little is kept for the next bytes.
const SMALL_BYTES: usize = 4096;

/// The reused buffer of a loop. Left-over bytes fit in its first half; a read begins right behind
/// them, so that both are passed to the handler as one slice.
pub(crate) struct ReadBuffer {
    bytes: Box<[u8]>,
    read_bytes_max: usize,
}

impl ReadBuffer {
    pub(crate) fn new(read_bytes_max: usize) -> Self {
        Self { bytes: vec![0; 2 * read_bytes_max].into_boxed_slice(), read_bytes_max }
    }
}

/// The result of one read.
enum Got {
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// The connection is over, and its phase says so.
    End,
}

impl<H: Handler> Net<H> {
    /// Records the readiness that was reported for the connection at `index`.
    #[inline]
    pub(crate) fn note_event(&mut self, index: usize, event: &impl Readiness) {
        let Some((id, conn)) = self.conns.at_index(index) else { return };
        let at_end = event.is_read_closed() || event.is_error();
        if event.is_readable() || at_end {
            conn.read_side.note_edge(at_end);
            let waits = conn.demand == Demand::Paused && conn.phase == Phase::Open;
            if !waits {
                self.push_ready(id);
            }
        }
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.write_side.is_blocked() && (event.is_writable() || event.is_error()) {
            if conn.phase == Phase::Connecting {
                self.push_ready(id);
                return;
            }
            conn.write_side = WriteSide::Open;
            self.push_dirty(id);
        }
    }

    /// Serves a connection of the ready list: one read at most.
    #[inline]
    pub(crate) fn serve(&mut self, handler: &mut H, id: ConnId, buffer: &mut ReadBuffer) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.on_ready = false;
        match conn.phase {
            Phase::Open => {}
            Phase::Connecting => return self.finish_connect(handler, id),
            Phase::Ending | Phase::Aborting => return,
            Phase::Lingering => return self.discard_input(id, buffer),
        }
        if conn.header_due {
            self.read_header(handler, id, buffer);
            return self.keep_ready(id);
        }
        match conn.demand {
            Demand::Flowing => {}
            Demand::Again => {
                conn.demand = Demand::Flowing;
                if !conn.partial.is_empty() {
                    let kept = conn.partial.take();
                    return self.pass_kept(handler, id, kept);
                }
            }
            Demand::Paused => {
                if let Some(error) = conn.write_side.take_error() {
                    self.fail(id, Closed::Error(error));
                }
                return;
            }
        }
        if !conn.read_side.is_readable() {
            return;
        }
        if conn.filter.is_some() {
            self.read_filtered(handler, id, buffer);
        } else if let Some(unit) = conn.unit.take() {
            self.read_unit(handler, id, unit);
        } else if conn.partial.is_empty() {
            if let Got::Bytes(len) = self.read(id, &mut buffer.bytes[..buffer.read_bytes_max]) {
                self.pass(handler, id, &buffer.bytes[..len]);
            }
        } else {
            self.read_behind_partial(handler, id, buffer);
        }
        self.keep_ready(id);
    }

    /// Passes `data` to the handler and keeps what it does not consume.
    #[inline]
    fn pass(&mut self, handler: &mut H, id: ConnId, data: &[u8]) {
        self.unit_len = 0;
        let consumed = handler.input(self, id, data);
        debug_assert!(consumed <= data.len(), "a handler cannot consume more than it is given");
        if consumed < data.len()
            && let Some(conn) = self.conns.get_mut(id)
            && conn.phase == Phase::Open
        {
            let left = &data[consumed..];
            if left.len() >= PIECE_BYTES && left.len() < self.unit_len {
                conn.unit = Some(Unit::begin(self.unit_len, left));
                return;
            }
            conn.partial.append(left, SMALL_BYTES);
        }
    }

    /// Passes bytes that are in a buffer of their own, and keeps the rest in it.
    fn pass_kept(&mut self, handler: &mut H, id: ConnId, kept: Vec<u8>) {
        if kept.len() > PIECE_BYTES {
            return self.pass_large(handler, id, kept);
        }
        self.unit_len = 0;
        let consumed = handler.input(self, id, &kept).min(kept.len());
        self.keep_rest(id, kept, consumed);
    }

    /// The same with an allocation that the handler may keep.
    fn pass_large(&mut self, handler: &mut H, id: ConnId, kept: Vec<u8>) {
        let shared = Arc::new(kept);
        self.shared_input = Some(Arc::clone(&shared));
        self.unit_len = 0;
        let consumed = handler.input(self, id, &shared).min(shared.len());
        self.shared_input = None;
        match Arc::try_unwrap(shared) {
            Ok(kept) => self.keep_rest(id, kept, consumed),
            Err(shared) => self.keep_rest(id, shared[consumed..].to_vec(), 0),
        }
    }

    /// Keeps what the handler has not consumed of `kept`.
    fn keep_rest(&mut self, id: ConnId, mut kept: Vec<u8>, consumed: usize) {
        let left = kept.len() - consumed;
        if left > 0
            && let Some(conn) = self.conns.get_mut(id)
            && conn.phase == Phase::Open
        {
            if left >= PIECE_BYTES && left < self.unit_len {
                conn.unit = Some(Unit::begin(self.unit_len, &kept[consumed..]));
                self.pool.give(kept);
            } else {
                kept.drain(..consumed);
                if kept.capacity() > 4 * kept.len() + SMALL_BYTES {
                    kept.shrink_to_fit();
                }
                if !conn.partial.is_empty() {
                    kept.reserve_exact(conn.partial.bytes().len());
                    kept.extend_from_slice(conn.partial.bytes());
                }
                conn.partial.put(kept);
            }
        } else {
            self.pool.give(kept);
        }
        self.keep_ready(id);
    }

    /// One read into a unit that is not whole.
    fn read_unit(&mut self, handler: &mut H, id: ConnId, mut unit: Box<Unit>) {
        match self.read(id, unit.room()) {
            Got::Bytes(len) => {
                unit.grown(len);
                self.pass_unit(handler, id, unit, Vec::new());
            }
            Got::Nothing => self.put_unit_back(id, unit),
            Got::End => {}
        }
    }

    /// Passes a unit that has grown, if it is whole by now; `behind` it are the first bytes of
    /// others.
    fn pass_unit(&mut self, handler: &mut H, id: ConnId, unit: Box<Unit>, behind: Vec<u8>) {
        if !unit.is_whole() {
            let len = unit.len();
            self.pool.give(behind);
            self.put_unit_back(id, unit);
            self.count_input(id);
            return handler.unit_grew(self, id, len);
        }
        let is_last = behind.is_empty();
        if is_last {
            self.pool.give(behind);
        } else {
            // So that it moves along if the connection does.
            self.put_back(id, behind);
        }
        self.budget.charge((unit.len() / COPIED_BYTES_PER_UNIT) as u32);
        self.pass_large(handler, id, unit.into_bytes());
        if !is_last
            && let Some(conn) = self.conns.get_mut(id)
            && conn.phase == Phase::Open
            && conn.demand == Demand::Flowing
        {
            // Behind the unit, too, if the handler has left that.
            let kept = conn.partial.take();
            self.pass_kept(handler, id, kept);
        }
    }

    /// Returns a unit that was taken and is not whole.
    fn put_unit_back(&mut self, id: ConnId, unit: Box<Unit>) {
        if let Some(conn) = self.conns.get_mut(id)
            && conn.phase == Phase::Open
        {
            conn.unit = Some(unit);
        }
    }

    /// A connection whose readiness is not exhausted, or whose end is pending, stays on the list.
    #[inline]
    fn keep_ready(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.phase != Phase::Open {
            return;
        }
        let input_bytes = conn.input_bytes();
        if input_bytes != conn.input_counted {
            self.buffered_bytes = self.buffered_bytes - conn.input_counted + input_bytes;
            conn.input_counted = input_bytes;
        }
        let has_work = match conn.demand {
            Demand::Flowing => conn.read_side.is_readable(),
            Demand::Again => true,
            Demand::Paused => conn.write_side.is_broken(),
        };
        if has_work {
            self.push_ready(id);
        }
    }

    fn read_behind_partial(&mut self, handler: &mut H, id: ConnId, buffer: &mut ReadBuffer) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let mut kept = conn.partial.take();
        let front = kept.len();
        if front > buffer.read_bytes_max {
            // Part of a large unit, or a large one that is left: it grows in its own buffer.
            let got = self.read(id, &mut buffer.bytes[..buffer.read_bytes_max]);
            if let Got::Bytes(len) = got {
                if kept.capacity() - front < len {
                    // An eighth: little memory is unused, and little is copied again.
                    kept.reserve_exact(len.max(front / 8));
                }
                kept.extend_from_slice(&buffer.bytes[..len]);
                return self.pass_kept(handler, id, kept);
            }
            self.put_back(id, kept);
            return;
        }
        let end = front + buffer.read_bytes_max;
        match self.read(id, &mut buffer.bytes[front..end]) {
            Got::Bytes(len) => {
                buffer.bytes[..front].copy_from_slice(&kept);
                kept.clear();
                if kept.capacity() <= SMALL_BYTES {
                    self.put_back(id, kept);
                }
                self.pass(handler, id, &buffer.bytes[..front + len]);
                self.release_partial(id);
            }
            Got::Nothing => self.put_back(id, kept),
            Got::End => {}
        }
    }

    /// Returns bytes that were taken from `partial` and are not consumed.
    fn put_back(&mut self, id: ConnId, kept: Vec<u8>) {
        if let Some(conn) = self.conns.get_mut(id)
            && conn.phase == Phase::Open
        {
            conn.partial.put(kept);
        }
    }

    /// Frees the buffer for partial input if it is empty.
    fn release_partial(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id)
            && conn.partial.is_empty()
        {
            conn.partial.clear();
        }
    }

    /// One read of a connection that begins with the header of a proxy. What comes behind the
    /// header takes the usual way.
    fn read_header(&mut self, handler: &mut H, id: ConnId, buffer: &mut ReadBuffer) {
        let room = buffer.read_bytes_max.min(HEADER_BYTES_MAX);
        let Got::Bytes(len) = self.read(id, &mut buffer.bytes[..room]) else { return };
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.partial.append(&buffer.bytes[..len], SMALL_BYTES);
        let header = match ProxyHeader::parse(conn.partial.bytes()) {
            Ok(Some(header)) => header,
            Ok(None) => return,
            Err(error) => return self.fail(id, Closed::Error(error.into())),
        };
        let header_len = header.len;
        conn.header_due = false;
        conn.client = ClientEnd::of_header(&header);
        let mut behind = conn.partial.take();
        behind.drain(..header_len);
        handler.proxied(self, id);
        let Some(conn) = self.conns.get(id) else { return };
        if behind.is_empty() || conn.phase != Phase::Open {
            return;
        }
        if conn.filter.is_some() {
            self.pass_filtered(handler, id, &behind);
        } else if conn.demand == Demand::Paused {
            self.put_back(id, behind);
        } else {
            self.pass_kept(handler, id, behind);
        }
    }

    /// One read, whose bytes pass through the filter.
    fn read_filtered(&mut self, handler: &mut H, id: ConnId, buffer: &mut ReadBuffer) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let Some(filtering) = conn.filter.as_mut() else { return };
        if let Some(why) = filtering.over.take() {
            return self.end(id, why);
        }
        if let Got::Bytes(len) = self.read(id, &mut buffer.bytes[..buffer.read_bytes_max]) {
            self.pass_filtered(handler, id, &buffer.bytes[..len]);
        }
    }

    /// Passes bytes of the wire through the filter, and what comes out to the handler.
    fn pass_filtered(&mut self, handler: &mut H, id: ConnId, wire: &[u8]) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let Some(filtering) = conn.filter.as_mut() else { return };
        let is_paused = conn.demand == Demand::Paused;
        let mut plain = conn.partial.take();
        if plain.capacity() == 0 {
            plain = self.pool.take();
        }
        let before = plain.len();
        let result = filtering.filter.inbound(wire, &mut plain);
        let speaks = filtering.filter.wants_write() || result.is_err();
        filtering.over = match result {
            Err(error) => Some(Closed::Error(error)),
            Ok(()) => filtering.filter.peer_closed().then_some(Closed::ByPeer),
        };
        if filtering.over.is_some() && !conn.read_side.is_readable() {
            // So that the next turn comes here and reports the end, unless the handler pauses.
            conn.read_side = ReadSide::Readable;
        }
        let opened = !filtering.announced && filtering.filter.is_ready();
        filtering.announced |= opened;
        let grown = plain.len() > before;
        if speaks {
            self.push_dirty(id);
        }
        if opened {
            self.put_back(id, plain);
            handler.ready(self, id);
            plain = match self.conns.get_mut(id) {
                Some(conn) if conn.phase == Phase::Open && conn.demand != Demand::Paused => {
                    conn.partial.take()
                }
                _ => return,
            };
        }
        if grown && !is_paused {
            self.pass_plain(handler, id, plain);
        } else if plain.is_empty() {
            self.pool.give(plain);
        } else {
            self.put_back(id, plain);
        }
    }

    /// Passes what came out of the filter.
    fn pass_plain(&mut self, handler: &mut H, id: ConnId, mut plain: Vec<u8>) {
        match self.conns.get_mut(id).and_then(|conn| conn.unit.take()) {
            Some(mut unit) => {
                let taken = unit.extend(&plain);
                plain.drain(..taken);
                self.pass_unit(handler, id, unit, plain);
            }
            None => self.pass_kept(handler, id, plain),
        }
    }

    /// Input of a lingering connection is read and discarded, so that the kernel does not answer it
    /// with a reset that would destroy our last output.
    fn discard_input(&mut self, id: ConnId, buffer: &mut ReadBuffer) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if !conn.read_side.is_readable() {
            return;
        }
        self.read(id, &mut buffer.bytes[..buffer.read_bytes_max]);
        if let Some(conn) = self.conns.get(id)
            && conn.read_side.is_readable()
        {
            self.push_ready(id);
        }
    }

    /// One read. A short one ends readiness, unless the end is pending.
    #[inline]
    fn read(&mut self, id: ConnId, into: &mut [u8]) -> Got {
        let Some(conn) = self.conns.get_mut(id) else { return Got::Nothing };
        self.counters.reads += 1;
        match conn.stream.read(into) {
            Ok(0) => {
                self.input_ended(id);
                Got::End
            }
            Ok(len) => {
                self.counters.read_bytes += len as u64;
                if len < into.len() {
                    conn.read_side.note_short_read();
                }
                Got::Bytes(len)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Got::Nothing,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                conn.read_side = ReadSide::Drained;
                match conn.write_side.take_error() {
                    Some(error) => {
                        self.fail(id, Closed::Error(error));
                        Got::End
                    }
                    None => Got::Nothing,
                }
            }
            Err(error) => {
                conn.read_side = ReadSide::Drained;
                if conn.phase == Phase::Lingering {
                    self.drop_conn(id);
                } else {
                    self.fail(id, Closed::Error(error));
                }
                Got::End
            }
        }
    }

    /// An outgoing connection has an event: checks whether it is established.
    fn finish_connect(&mut self, handler: &mut H, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let result = match conn.stream.take_error() {
            Ok(Some(error)) | Err(error) => Err(error),
            Ok(None) => match conn.stream.peer_addr() {
                Ok(_) => Ok(()),
                Err(error)
                    if error.kind() == ErrorKind::NotConnected
                        && conn.read_side != ReadSide::EndPending =>
                {
                    return;
                }
                Err(error) => Err(error),
            },
        };
        if result.is_err() {
            // Not open for the handler, and its index is not reused before `connected` returns.
            conn.phase = Phase::Ending;
            handler.connected(self, id, result);
            self.drop_conn(id);
            return;
        }
        conn.phase = Phase::Open;
        conn.write_side = WriteSide::Open;
        if !conn.output.is_empty() || conn.filter.is_some() {
            self.push_dirty(id);
        }
        handler.connected(self, id, result);
        self.keep_ready(id);
    }
}
