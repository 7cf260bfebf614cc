//! A journal that only remembers which commit each record belongs to.

use std::collections::HashMap;

use tacho_codec::PacketId;
use tacho_session::{CommitToken, Persist, Record};

use crate::ledger::Msg;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Sent,
    Released,
    InboundReceived,
    InboundReleased,
}

#[derive(Default)]
pub(crate) struct Journal {
    /// False: every record is complete at once.
    delayed: bool,
    pub(crate) committed: CommitToken,
    last: CommitToken,
    records: HashMap<(Kind, PacketId), CommitToken>,
    routed: HashMap<u32, CommitToken>,
}

impl Journal {
    pub(crate) fn new(delayed: bool) -> Self {
        Self { delayed, ..Self::default() }
    }

    /// The token of a record that joins the batch now.
    fn next(&mut self) -> CommitToken {
        if !self.delayed {
            return CommitToken::DONE;
        }
        self.last = CommitToken::new(self.last.get() + 1);
        self.last
    }

    /// Stores the inbound message `id`; its first storing is what an acknowledgement promises.
    pub(crate) fn route(&mut self, id: u32) -> CommitToken {
        let token = self.next();
        self.routed.entry(id).or_insert(token);
        token
    }

    /// Completes all but `keep` of the waiting records.
    pub(crate) fn commit(&mut self, keep: u64) {
        let committed = self.last.get().saturating_sub(keep);
        self.committed = self.committed.max(CommitToken::new(committed));
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.last.get() - self.committed.get()
    }

    /// Fails if the record that a packet promises is not committed.
    pub(crate) fn require(&self, kind: Kind, packet_id: PacketId) {
        let token = self.records.get(&(kind, packet_id)).copied();
        let token = token.unwrap_or_else(|| panic!("no record {kind:?} for {packet_id}"));
        assert!(token <= self.committed, "{kind:?} of {packet_id} left before its commit");
    }

    pub(crate) fn require_if_any(&self, kind: Kind, packet_id: PacketId) {
        if self.records.contains_key(&(kind, packet_id)) {
            self.require(kind, packet_id);
        }
    }

    pub(crate) fn require_routed(&self, id: u32) {
        let token = self.routed.get(&id).expect("an accepted message was routed");
        assert!(*token <= self.committed, "message {id} was acknowledged before its commit");
    }
}

impl Persist<Msg> for Journal {
    fn persist(&mut self, record: Record<'_, Msg>) -> CommitToken {
        let token = self.next();
        let key = match record {
            Record::Sent { packet_id, .. } => (Kind::Sent, packet_id),
            Record::Released { packet_id } => (Kind::Released, packet_id),
            Record::InboundReceived { packet_id } => (Kind::InboundReceived, packet_id),
            Record::InboundReleased { packet_id } => (Kind::InboundReleased, packet_id),
            _ => return token,
        };
        self.records.insert(key, token);
        token
    }
}
