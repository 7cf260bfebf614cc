//! Commits: what this shard has handed to the journal, and who waits until it is safe.
//!
//! What a shard appends while it handles one event (a read, a mail, a timer) goes to the journal as
//! a whole when that is over: either all of it survives or nothing. The batches that sessions wait
//! for number these groups; which commit took a group is known once it was handed over.
//!
//! A shard that has work asks for a commit only when that is done, or after a few milliseconds:
//! what came together meanwhile is written at once, and a message that its receiver has
//! acknowledged by then is not written at all.
//!
//! The commit thread tells a shard of a commit only if the shard has said that it waits for one.
//! All sessions for which a commit was good are then served together, once each.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use tacho_journal::{CommitSeq, Urgency};
use tacho_session::BatchSeq;

use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};

/// A shard that always has work asks for a commit after so long.
const ASKS_AFTER_NS: u64 = 3_000_000;

/// The groups of records of one shard, and the sessions that wait for them.
#[derive(Debug)]
pub(in crate::shard) struct Commits {
    /// The number of the present group.
    group: u64,
    /// What is in it: nothing yet, or how urgent it is.
    urgency: Option<Urgency>,
    /// Groups handed over: the last one that a commit took, and that commit. Both grow.
    handed_over: VecDeque<(u64, CommitSeq)>,
    /// Somebody waits for a group handed over, and the journal was not asked for its commit.
    owes: bool,
    /// Since this turn.
    owes_since_ns: u64,
    committed: BatchSeq,
    /// First in, first out; nearly in the order of batches.
    waiting: VecDeque<Waiting>,
}

/// A session that waits for a commit.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    batch: BatchSeq,
    slot: SessionSlot,
    generation: u32,
}

impl Commits {
    pub(in crate::shard) fn new() -> Self {
        Self {
            group: 1,
            urgency: None,
            handed_over: VecDeque::new(),
            owes: false,
            owes_since_ns: u64::MAX,
            committed: BatchSeq::DONE,
            waiting: VecDeque::new(),
        }
    }

    /// Something was put into the present group.
    #[inline]
    pub(in crate::shard) fn appended(&mut self, urgency: Urgency) -> BatchSeq {
        if self.urgency != Some(Urgency::Forces) {
            self.urgency = Some(urgency);
        }
        BatchSeq::new(self.group)
    }

    /// How urgent the present group is, if there is anything in it.
    #[inline]
    pub(in crate::shard) fn urgency(&self) -> Option<Urgency> {
        self.urgency
    }

    /// The present group went to the journal, and this commit will take it.
    pub(in crate::shard) fn handed_over(&mut self, commit: CommitSeq) {
        self.owes |= self.urgency.take() == Some(Urgency::Forces);
        match self.handed_over.back_mut() {
            Some((last, known)) if *known == commit => *last = self.group,
            _ => self.handed_over.push_back((self.group, commit)),
        }
        self.group += 1;
    }

    /// A batch of this shard that is complete no earlier than a commit which another shard named.
    pub(in crate::shard) fn elsewhere(
        &mut self,
        commit: CommitSeq,
        complete: CommitSeq,
    ) -> BatchSeq {
        if commit <= complete {
            return BatchSeq::DONE;
        }
        if self.urgency.is_some() {
            // It goes with the present group, whose commit is the same one or a later one.
            return self.appended(Urgency::Forces);
        }
        let newest = self.handed_over.back().map_or(CommitSeq::DONE, |&(_, commit)| commit);
        let batch = BatchSeq::new(self.group);
        self.handed_over(commit.max(newest));
        batch
    }

    /// Which commit has to be complete for the batch of a group that was handed over.
    pub(in crate::shard) fn commit_of(&self, batch: BatchSeq) -> CommitSeq {
        if batch <= self.committed {
            return CommitSeq::DONE;
        }
        let at = self.handed_over.partition_point(|&(last, _)| last < batch.get());
        self.handed_over.get(at).map_or(CommitSeq::DONE, |&(_, commit)| commit)
    }

    /// Up to this commit all are complete.
    pub(in crate::shard) fn complete(&mut self, complete: CommitSeq) {
        while let Some(&(last, commit)) = self.handed_over.front()
            && commit <= complete
        {
            self.committed = BatchSeq::new(last);
            self.handed_over.pop_front();
        }
    }

    /// Everything up to this is safe.
    #[inline]
    pub(in crate::shard) fn committed(&self) -> BatchSeq {
        self.committed
    }

    /// A turn that began then has ended: whether it is time to ask for a commit. `None` if nobody
    /// waits for one that was not asked for.
    fn is_time(&mut self, turn_ns: u64) -> Option<bool> {
        if !self.owes {
            return None;
        }
        self.owes_since_ns = self.owes_since_ns.min(turn_ns);
        Some(turn_ns.saturating_sub(self.owes_since_ns) >= ASKS_AFTER_NS)
    }

    /// True if there is a commit to ask for: the caller is about to do that.
    fn asks(&mut self) -> bool {
        self.owes_since_ns = u64::MAX;
        std::mem::take(&mut self.owes) && !self.handed_over.is_empty()
    }

    /// Sees to it that a session is served once `batch` is committed.
    #[inline]
    pub(in crate::shard) fn await_batch(
        &mut self,
        batch: BatchSeq,
        slot: SessionSlot,
        generation: u32,
    ) {
        if batch > self.committed {
            self.wait(Waiting { batch, slot, generation });
        }
    }

    fn wait(&mut self, waiting: Waiting) {
        // Often the one before is the same session with the next message of the same read.
        if self.waiting.back().is_some_and(|last| {
            (last.batch, last.slot, last.generation)
                == (waiting.batch, waiting.slot, waiting.generation)
        }) {
            return;
        }
        self.waiting.push_back(waiting);
    }

    fn next_due(&mut self) -> Option<Waiting> {
        self.waiting.pop_front_if(|waiting| waiting.batch <= self.committed)
    }

    /// The slots of sessions that wait, some more than once.
    pub(in crate::shard) fn waiting_slots(&self) -> impl Iterator<Item = SessionSlot> {
        self.waiting.iter().map(|waiting| waiting.slot)
    }

    /// How many wait.
    pub(in crate::shard) fn waiting_len(&self) -> usize {
        self.waiting.len()
    }
}

impl Shard {
    /// Sees to it that a session is served once `batch` is committed.
    #[inline]
    pub(in crate::shard) fn await_commit(&mut self, slot: SessionSlot, batch: BatchSeq) {
        if let Some(journal) = &mut self.durability.journal {
            let generation = self.sessions[slot].generation;
            journal.commits.await_batch(batch, slot, generation);
        }
    }

    /// After a turn: asks for a commit if somebody has waited for long, or else once there is
    /// nothing to do.
    #[inline]
    pub(in crate::shard) fn ask_in_time(&mut self, net: &mut Net) {
        if let Some(journal) = &mut self.durability.journal {
            match journal.commits.is_time(net.now_ns()) {
                Some(true) => self.ask_for_commit(),
                Some(false) => net.tell_idle(),
                None => {}
            }
        }
    }

    /// Asks for a commit if somebody waits for it.
    pub(in crate::shard) fn ask_for_commit(&mut self) {
        if let Some(journal) = &mut self.durability.journal
            && journal.commits.asks()
        {
            journal.journal.force();
        }
    }

    /// Serves those for whom something was committed.
    #[inline]
    pub(in crate::shard) fn serve_committed(&mut self, net: &mut Net) {
        if self.durability.journal.is_some() {
            self.serve_waiting(net);
        }
    }

    fn serve_waiting(&mut self, net: &mut Net) {
        loop {
            // What this turn appended shall be on its way before it is looked who waits.
            self.hand_over(net);
            let Some(journal) = &mut self.durability.journal else { return };
            let complete = journal.journal.committed();
            journal.commits.complete(complete);
            while let Some(journal) = &mut self.durability.journal
                && let Some(waiting) = journal.commits.next_due()
            {
                self.serve_one(net, waiting);
            }
            self.hand_over(net);
            let Some(journal) = &mut self.durability.journal else { return };
            self.stats.journal_waiting.set(journal.commits.waiting_len() as u64);
            if journal.commits.waiting_len() == 0 {
                return;
            }
            let Some(durable) = &self.shared.durable else { return };
            durable.shards[self.id].waits.store(true, Ordering::SeqCst);
            // After the flag: either this sees the commit or the commit thread sees the flag.
            if journal.journal.committed() == complete {
                return;
            }
        }
    }

    fn serve_one(&mut self, net: &mut Net, waiting: Waiting) {
        let Waiting { slot, generation, .. } = waiting;
        let session = self.sessions.get(slot);
        if session.is_some_and(|session| session.generation == generation) {
            self.keep_promises(net, slot);
            self.pump(net, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(number: u64) -> BatchSeq {
        BatchSeq::new(number)
    }

    #[test]
    fn groups_are_complete_with_the_commits_that_took_them() {
        let mut commits = Commits::new();
        assert_eq!(commits.urgency(), None);
        let first = commits.appended(Urgency::Forces);
        assert_eq!(commits.appended(Urgency::Rides), first);
        assert_eq!(commits.urgency(), Some(Urgency::Forces));
        commits.handed_over(CommitSeq::new(10));
        let second = commits.appended(Urgency::Rides);
        commits.handed_over(CommitSeq::new(10));
        let third = commits.appended(Urgency::Forces);
        commits.handed_over(CommitSeq::new(12));
        assert!(first < second && second < third);
        assert_eq!(commits.commit_of(second), CommitSeq::new(10));
        assert_eq!(commits.commit_of(third), CommitSeq::new(12));
        commits.complete(CommitSeq::new(9));
        assert_eq!(commits.committed(), BatchSeq::DONE);
        commits.complete(CommitSeq::new(11));
        assert_eq!(commits.committed(), second);
        assert_eq!(commits.commit_of(second), CommitSeq::DONE);
        assert_eq!(commits.commit_of(third), CommitSeq::new(12));
        commits.complete(CommitSeq::new(12));
        assert_eq!(commits.committed(), third);
        assert_eq!(commits.commit_of(third), CommitSeq::DONE);
    }

    #[test]
    fn a_commit_of_another_shard_is_waited_for_like_an_own_one() {
        let mut commits = Commits::new();
        assert_eq!(commits.elsewhere(CommitSeq::new(4), CommitSeq::new(4)), BatchSeq::DONE);
        let other = commits.elsewhere(CommitSeq::new(5), CommitSeq::new(4));
        commits.complete(CommitSeq::new(4));
        assert!(commits.committed() < other);
        commits.complete(CommitSeq::new(5));
        assert_eq!(commits.committed(), other);
        // Behind a later one of our own it waits for that.
        commits.appended(Urgency::Forces);
        commits.handed_over(CommitSeq::new(7));
        let other = commits.elsewhere(CommitSeq::new(6), CommitSeq::new(5));
        commits.complete(CommitSeq::new(6));
        assert!(commits.committed() < other);
        commits.complete(CommitSeq::new(7));
        assert_eq!(commits.committed(), other);
        // And beside one that is not handed over yet, with that.
        let own = commits.appended(Urgency::Rides);
        assert_eq!(commits.elsewhere(CommitSeq::new(8), CommitSeq::new(7)), own);
        assert_eq!(commits.urgency(), Some(Urgency::Forces), "somebody waits for it now");
    }

    #[test]
    fn a_commit_is_asked_for_once_when_somebody_has_waited_for_long() {
        let mut commits = Commits::new();
        commits.appended(Urgency::Rides);
        commits.handed_over(CommitSeq::new(3));
        assert_eq!(commits.is_time(1_000), None, "nobody waits");
        assert!(!commits.asks());
        commits.appended(Urgency::Forces);
        assert_eq!(commits.is_time(1_000), None, "it is not handed over");
        commits.handed_over(CommitSeq::new(3));
        assert_eq!(commits.is_time(1_000), Some(false));
        assert_eq!(commits.is_time(1_000 + ASKS_AFTER_NS - 1), Some(false));
        assert_eq!(commits.is_time(1_000 + ASKS_AFTER_NS), Some(true));
        assert!(commits.asks());
        assert!(!commits.asks());
        assert_eq!(commits.is_time(1_000 + ASKS_AFTER_NS), None);
        // The next one has its own time.
        commits.appended(Urgency::Forces);
        commits.handed_over(CommitSeq::new(4));
        assert_eq!(commits.is_time(1_001 + ASKS_AFTER_NS), Some(false));
        // Somebody else has asked for it.
        commits.complete(CommitSeq::new(4));
        assert!(!commits.asks());
    }

    #[test]
    fn those_who_wait_are_due_in_their_order() {
        let mut commits = Commits::new();
        for (slot, number) in [(1, 1), (1, 1), (2, 1), (1, 2)] {
            let slot = SessionSlot::new(slot);
            commits.wait(Waiting { batch: batch(number), slot, generation: 0 });
        }
        assert_eq!(commits.waiting_len(), 3);
        assert!(commits.next_due().is_none());
        commits.appended(Urgency::Forces);
        commits.handed_over(CommitSeq::new(3));
        commits.complete(CommitSeq::new(3));
        assert_eq!(commits.next_due().map(|waiting| waiting.slot.number()), Some(1));
        assert_eq!(commits.next_due().map(|waiting| waiting.slot.number()), Some(2));
        assert!(commits.next_due().is_none());
        assert_eq!(commits.waiting_len(), 1);
    }
}
