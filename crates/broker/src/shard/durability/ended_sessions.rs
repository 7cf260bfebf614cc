//! Durable sessions whose end is not committed yet. A client must not be told that it has no
//! session while a crash would bring the old one back.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_journal::{Record, Urgency};
use tacho_session::BatchSeq;

use crate::keys::ClientKey;
use crate::shard::Shard;
use crate::shard::durability::{JournaledSession, SessionJournal};

/// Sessions that ended a short while ago: as many at most as end between two commits.
#[derive(Default)]
pub(in crate::shard) struct EndedSessions {
    by_client: HashMap<ClientKey, (BatchSeq, JournaledSession), RandomState>,
    /// In the order of their ends.
    order: VecDeque<(BatchSeq, ClientKey)>,
}

impl EndedSessions {
    /// A client's session is gone once `batch` is committed; others may be by now.
    fn note(
        &mut self,
        key: ClientKey,
        journaled: JournaledSession,
        batch: BatchSeq,
        committed: BatchSeq,
    ) {
        while let Some((batch, key)) = self.order.pop_front_if(|(batch, _)| *batch <= committed) {
            if self.by_client.get(&key).is_some_and(|(last, _)| *last == batch) {
                self.by_client.remove(&key);
            }
        }
        self.by_client.insert(key.clone(), (batch, journaled));
        self.order.push_back((batch, key));
    }

    /// The client's last session, if its end is not safe.
    fn unsafe_end(&self, key: &ClientKey, committed: BatchSeq) -> Option<JournaledSession> {
        let (batch, journaled) = self.by_client.get(key)?;
        (*batch > committed).then_some(*journaled)
    }
}

impl Shard {
    /// A session is over: everything that the journal has of it is forgotten.
    pub(in crate::shard) fn record_session_end(
        &mut self,
        key: &ClientKey,
        session: &SessionJournal,
    ) {
        let Some(journaled) = session.place else { return };
        let record = Record::DropQueue { queue: journaled.queue };
        let batch = self.append(record, journaled.level, Urgency::Rides);
        if let Some(journal) = &mut self.durability.journal {
            let committed = journal.commits.committed();
            journal.dropped.note(key.clone(), journaled, batch, committed);
        }
    }

    /// Whether a client's last session would come back if the broker died now.
    pub(in crate::shard) fn is_end_unsafe(&self, key: &ClientKey) -> bool {
        self.durability.journal.as_ref().is_some_and(|journal| {
            journal.dropped.unsafe_end(key, journal.commits.committed()).is_some()
        })
    }

    /// What a client waits for who is told that it has no session of former times.
    pub(in crate::shard) fn forget_ended_session(&mut self, key: &ClientKey) -> BatchSeq {
        let Some(journal) = &self.durability.journal else { return BatchSeq::DONE };
        let former = journal.dropped.unsafe_end(key, journal.commits.committed());
        let Some(JournaledSession { queue, level, .. }) = former else { return BatchSeq::DONE };
        // Once more, which changes nothing, but now a client waits for it.
        self.append(Record::DropQueue { queue }, level, Urgency::Forces)
    }
}

#[cfg(test)]
mod tests {
    use tacho_journal::QueueId;

    use super::*;
    use crate::config::Level;
    use crate::keys::TenantId;

    #[test]
    fn ends_are_forgotten_once_they_are_safe() {
        let key = |name: &str| ClientKey { tenant: TenantId::DEFAULT, client_id: name.into() };
        let journaled =
            |n| JournaledSession { queue: QueueId::new(n), level: Level::Fsynced, has_will: false };
        let batch = BatchSeq::new;
        let mut dropped = EndedSessions::default();
        dropped.note(key("a"), journaled(1), batch(1), BatchSeq::DONE);
        dropped.note(key("b"), journaled(2), batch(2), BatchSeq::DONE);
        dropped.note(key("a"), journaled(3), batch(3), BatchSeq::DONE);
        assert_eq!(dropped.unsafe_end(&key("a"), batch(2)), Some(journaled(3)));
        assert_eq!(dropped.unsafe_end(&key("b"), batch(1)), Some(journaled(2)));
        assert_eq!(dropped.unsafe_end(&key("b"), batch(2)), None);
        assert_eq!(dropped.unsafe_end(&key("c"), BatchSeq::DONE), None);
        dropped.note(key("c"), journaled(4), batch(4), batch(2));
        assert_eq!(dropped.unsafe_end(&key("a"), batch(2)), Some(journaled(3)));
        assert_eq!((dropped.by_client.len(), dropped.order.len()), (2, 2));
        dropped.note(key("d"), journaled(5), batch(5), batch(4));
        assert_eq!((dropped.by_client.len(), dropped.order.len()), (1, 1));
    }
}
