//! The one way to act on a session.
//!
//! What a session promises to its client it first records, and its packets wait for the record
//! batches they depend on. [`Journaling::act`] hands the session a [`Recorder`] and afterwards
//! registers the wait for the newest batch that the action promised, so that the session is served
//! when that is committed. A `Recorder` cannot be made anywhere else: no promise can be forgotten.

use tacho_session::{BatchSeq, Persist, Record, server};

use super::Journaling;
use super::hand_offs::HandOffRecorder;
use super::journal::{QueueRecorder, ShardJournal};
use super::session::SessionJournal;
use super::session_records::JournaledSession;
use crate::delivery::{Copy, Place};
use crate::keys::SessionSlot;
use crate::shard::Shard;

/// The protocol machine of a session.
pub(in crate::shard) type Machine = server::Session<Copy>;

/// The session that is acted on.
pub(in crate::shard) struct Subject<'a> {
    pub(in crate::shard) machine: &'a mut Machine,
    pub(in crate::shard) journal: &'a SessionJournal,
    pub(in crate::shard) is_connected: bool,
    pub(in crate::shard) generation: u32,
}

/// Takes the records of one session during one action.
pub(in crate::shard) struct Recorder<'a> {
    target: RecordTarget<'a>,
    /// The newest batch that the session, or a caller of [`Recorder::awaits`], waits for.
    promised: BatchSeq,
}

/// Where the records go.
enum RecordTarget<'a> {
    /// Nowhere: the session lives in memory.
    None,
    /// To the queue of a durable session.
    Session(QueueRecorder<'a>),
    /// To the queues of shared groups, for messages that a session in memory holds for them.
    Groups(HandOffRecorder<'a>),
}

impl<'a> Recorder<'a> {
    #[inline]
    fn new(
        journal: &'a mut Option<Box<ShardJournal>>,
        session: &SessionJournal,
        is_connected: bool,
    ) -> Self {
        let target = match (journal, &session.place, session.hand_offs) {
            (None, ..) | (_, None, None) => RecordTarget::None,
            (Some(journal), Some(journaled), _) => {
                RecordTarget::Session(journal.persist(journaled, is_connected))
            }
            (Some(journal), None, Some(hand_offs)) => {
                RecordTarget::Groups(HandOffRecorder::new(journal, hand_offs))
            }
        };
        Self { target, promised: BatchSeq::DONE }
    }

    /// Of a broker without a journal.
    #[inline]
    fn none() -> Self {
        Self { target: RecordTarget::None, promised: BatchSeq::DONE }
    }

    /// The batch that holds the message offered to a durable session: its publisher waits for it.
    #[inline]
    pub(in crate::shard) fn written(&self) -> BatchSeq {
        match &self.target {
            RecordTarget::Session(persist) => persist.written(),
            RecordTarget::None | RecordTarget::Groups(_) => BatchSeq::DONE,
        }
    }

    /// The newest batch that the session waits for after this action.
    #[inline]
    pub(in crate::shard) fn promised(&self) -> BatchSeq {
        let promised = match &self.target {
            RecordTarget::None => BatchSeq::DONE,
            RecordTarget::Session(persist) => persist.waits_for(),
            RecordTarget::Groups(persist) => persist.waits_for(),
        };
        promised.max(self.promised)
    }

    /// The session also waits for `batch`, which the action did not record itself.
    #[inline]
    pub(in crate::shard) fn awaits(&mut self, batch: BatchSeq) {
        self.promised = self.promised.max(batch);
    }

    /// The places in the queues of shared groups of the messages that the action took out, in
    /// their order.
    pub(in crate::shard) fn take_places(&mut self) -> Vec<Option<Place>> {
        match &mut self.target {
            RecordTarget::Groups(persist) => persist.take_places(),
            RecordTarget::None | RecordTarget::Session(_) => Vec::new(),
        }
    }
}

impl Persist<Copy> for Recorder<'_> {
    #[inline]
    fn persist(&mut self, record: Record<'_, Copy>) -> BatchSeq {
        match &mut self.target {
            RecordTarget::None => BatchSeq::DONE,
            RecordTarget::Session(persist) => persist.persist(record),
            RecordTarget::Groups(persist) => persist.persist(record),
        }
    }
}

impl Journaling {
    /// Acts on a session, and registers its wait for what the action promised.
    #[inline]
    pub(in crate::shard) fn act<T>(
        &mut self,
        slot: SessionSlot,
        subject: Subject<'_>,
        action: impl FnOnce(&mut Machine, &mut Recorder<'_>) -> T,
    ) -> T {
        let Subject { machine, journal, is_connected, generation } = subject;
        if self.journal.is_none() {
            // Nothing is recorded, so nothing is promised.
            return action(machine, &mut Recorder::none());
        }
        let mut recorder = Recorder::new(&mut self.journal, journal, is_connected);
        let result = action(machine, &mut recorder);
        let promised = recorder.promised();
        if let Some(journal) = &mut self.journal {
            journal.commits.await_batch(promised, slot, generation);
        }
        result
    }

    /// Makes the machine of a session that has no connection: its client is told of nothing, so
    /// nothing is promised yet.
    pub(in crate::shard) fn make_machine(
        &mut self,
        journaled: Option<&JournaledSession>,
        make: impl FnOnce(&mut Recorder<'_>) -> Machine,
    ) -> Machine {
        let target = match (&mut self.journal, journaled) {
            (Some(journal), Some(journaled)) => {
                RecordTarget::Session(journal.persist(journaled, false))
            }
            _ => RecordTarget::None,
        };
        make(&mut Recorder { target, promised: BatchSeq::DONE })
    }
}

impl Shard {
    /// See [`Journaling::act`].
    #[inline]
    pub(in crate::shard) fn act<T>(
        &mut self,
        slot: SessionSlot,
        action: impl FnOnce(&mut Machine, &mut Recorder<'_>) -> T,
    ) -> T {
        self.durability.act(slot, self.sessions[slot].subject(), action)
    }
}
