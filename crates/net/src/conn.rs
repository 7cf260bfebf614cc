//! The connections of one loop and how they are named.

use std::io;

use crate::filter::Filtering;
use crate::output::Output;
use crate::stream::Stream;

/// Names a connection of one loop. A name that has outlived its connection is recognised and
/// harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    index: u32,
    generation: u32,
}

impl ConnId {
    /// A small number, unique among the connections that exist in this loop at one time; it can
    /// serve as the key of a slab.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Tells apart the connections that have had this index one after the other.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// An outgoing connection that is not established yet.
    Connecting,
    /// In use by the handler.
    Open,
    /// Over, but `closed` was not called yet.
    Ending,
    /// `closed` was called; the last output is on its way and the peer's end is awaited.
    Lingering,
}

pub(crate) struct Conn<S> {
    pub(crate) stream: Stream,
    pub(crate) phase: Phase,
    /// The kernel may have bytes for us: an edge was seen and no short read since.
    pub(crate) readable: bool,
    /// The kernel has reported the end of input or an error; only a read of zero bytes or an error
    /// ends readiness.
    pub(crate) read_closed: bool,
    /// A read has returned the end.
    pub(crate) eof: bool,
    /// The handler wants no input.
    pub(crate) paused: bool,
    /// `partial` is to be handed again although nothing new has come.
    pub(crate) hand_partial: bool,
    /// On the ready list or, as a newcomer, on theirs.
    pub(crate) on_ready: bool,
    /// The handler has not called it established: it is served behind those that are.
    pub(crate) newcomer: bool,
    /// On the dirty list.
    pub(crate) on_dirty: bool,
    /// The kernel takes no more; the writable edge clears this.
    pub(crate) write_blocked: bool,
    /// Unwritten output was above the high-water mark.
    pub(crate) above_high: bool,
    /// Drop the socket once `closed` was called, without lingering.
    pub(crate) abort: bool,
    /// Our side is shut down.
    pub(crate) fin_sent: bool,
    /// Writing has failed; what the peer sent before is still read.
    pub(crate) broken: Option<io::Error>,
    pub(crate) output: Output<S>,
    /// Input that the handler did not consume.
    pub(crate) partial: Vec<u8>,
    pub(crate) filter: Option<Box<Filtering<S>>>,
    /// What of `output` and the filter's is counted in the loop's sum.
    pub(crate) output_counted: usize,
    /// What of `partial` is.
    pub(crate) partial_counted: usize,
}

impl<S: AsRef<[u8]>> Conn<S> {
    pub(crate) fn new(stream: Stream, phase: Phase) -> Self {
        Self {
            stream,
            phase,
            readable: false,
            read_closed: false,
            eof: false,
            paused: false,
            hand_partial: false,
            on_ready: false,
            newcomer: false,
            on_dirty: false,
            write_blocked: phase == Phase::Connecting,
            above_high: false,
            abort: false,
            fin_sent: false,
            broken: None,
            output: Output::new(),
            partial: Vec::new(),
            filter: None,
            output_counted: 0,
            partial_counted: 0,
        }
    }

    /// Bytes of output in memory that is this connection's own.
    #[inline]
    pub(crate) fn output_owned_bytes(&self) -> usize {
        let filtered = self.filter.as_ref().map_or(0, |filtering| filtering.wire.owned_bytes());
        self.output.owned_bytes() + filtered
    }

    #[inline]
    pub(crate) fn output_bytes(&self) -> usize {
        let filtered = self.filter.as_ref().map_or(0, |filtering| filtering.wire.len_bytes());
        self.output.len_bytes() + filtered
    }

    /// True for a connection that the handler may write to.
    #[inline]
    pub(crate) fn takes_output(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Connecting) && self.broken.is_none()
    }
}

struct Slot<S> {
    generation: u32,
    conn: Option<Conn<S>>,
}

/// Connections by index, with a generation that recognises stale names.
pub(crate) struct Connections<S> {
    slots: Vec<Slot<S>>,
    free: Vec<u32>,
}

impl<S> Connections<S> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, conn: Conn<S>) -> ConnId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, conn: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.conn = Some(conn);
        ConnId { index, generation: slot.generation }
    }

    pub(crate) fn remove(&mut self, id: ConnId) -> Option<Conn<S>> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.generation != id.generation {
            return None;
        }
        let conn = slot.conn.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index);
        Some(conn)
    }

    #[inline]
    pub(crate) fn get(&self, id: ConnId) -> Option<&Conn<S>> {
        let slot = self.slots.get(id.index())?;
        if slot.generation == id.generation { slot.conn.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut Conn<S>> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.generation == id.generation { slot.conn.as_mut() } else { None }
    }

    /// The connection that an event with this index belongs to.
    #[inline]
    pub(crate) fn at_index(&mut self, index: usize) -> Option<(ConnId, &mut Conn<S>)> {
        let slot = self.slots.get_mut(index)?;
        let id = ConnId { index: index as u32, generation: slot.generation };
        slot.conn.as_mut().map(|conn| (id, conn))
    }

    /// All connections that exist.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.conn.is_some())
            .map(|(index, slot)| ConnId { index: index as u32, generation: slot.generation })
    }
}
