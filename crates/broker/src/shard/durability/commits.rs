//! Record batches, the commits that take them, and the sessions that wait for those commits.
//!
//! The records that a shard appends while it handles one event (a read, a mail, a timer) form a
//! record batch, which goes to the journal when the event is over: a crash leaves all of it or
//! none. The journal names the commit that will take a batch when the batch is handed over.
//!
//! A busy shard asks for a commit only once it runs out of work, or after a few milliseconds:
//! everything gathered meanwhile is written at once, and a message that its receiver has
//! acknowledged by then is not written at all.
//!
//! The commit thread notifies a shard of a commit only if the shard has set its waiting flag. All
//! sessions whose batch is committed are then served together, once each.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use tacho_journal::{CommitSeq, Urgency};
use tacho_session::BatchSeq;

use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};

/// A shard that always has work asks for a commit after so long.
const ASKS_AFTER_NS: u64 = 3_000_000;

/// The record batches of one shard, and the sessions that wait for them.
#[derive(Debug)]
pub(in crate::shard) struct Commits {
    /// The number of the current batch.
    current: u64,
    /// How urgent the current batch is; `None` while it is empty.
    urgency: Option<Urgency>,
    /// Batches handed over: the last one that a commit takes, and that commit. Both grow.
    handed_over: VecDeque<(u64, CommitSeq)>,
    /// A session waits for a batch handed over, and the journal was not asked for its commit.
    owes: bool,
    /// Since this turn.
    owes_since_ns: u64,
    committed: BatchSeq,
    /// First in, first out; nearly in the order of batches.
    waiting: VecDeque<CommitWaiter>,
}

/// A session that waits for a commit.
#[derive(Clone, Copy, Debug)]
struct CommitWaiter {
    batch: BatchSeq,
    slot: SessionSlot,
    generation: u32,
}

impl Commits {
    pub(in crate::shard) fn new() -> Self {
        Self {
            current: 1,
            urgency: None,
            handed_over: VecDeque::new(),
            owes: false,
            owes_since_ns: u64::MAX,
            committed: BatchSeq::DONE,
            waiting: VecDeque::new(),
        }
    }

    /// A record was appended to the current batch.
    #[inline]
    pub(in crate::shard) fn appended(&mut self, urgency: Urgency) -> BatchSeq {
        if self.urgency != Some(Urgency::Forces) {
            self.urgency = Some(urgency);
        }
        BatchSeq::new(self.current)
    }

    /// How urgent the current batch is, if it is not empty.
    #[inline]
    pub(in crate::shard) fn urgency(&self) -> Option<Urgency> {
        self.urgency
    }

    /// The current batch went to the journal, and this commit will take it.
    pub(in crate::shard) fn handed_over(&mut self, commit: CommitSeq) {
        self.owes |= self.urgency.take() == Some(Urgency::Forces);
        match self.handed_over.back_mut() {
            Some((last, known)) if *known == commit => *last = self.current,
            _ => self.handed_over.push_back((self.current, commit)),
        }
        self.current += 1;
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
            // It goes with the current batch, whose commit is the same one or a later one.
            return self.appended(Urgency::Forces);
        }
        let newest = self.handed_over.back().map_or(CommitSeq::DONE, |&(_, commit)| commit);
        let batch = BatchSeq::new(self.current);
        self.handed_over(commit.max(newest));
        batch
    }

    /// The commit that takes a batch which was handed over.
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

    /// The newest batch that is committed.
    #[inline]
    pub(in crate::shard) fn committed(&self) -> BatchSeq {
        self.committed
    }

    /// Whether it is time to ask for a commit after a turn that began at `turn_ns`. `None` if no
    /// session waits for a commit that was not asked for.
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
            self.wait(CommitWaiter { batch, slot, generation });
        }
    }

    fn wait(&mut self, waiting: CommitWaiter) {
        // Often the one before is the same session with the next message of the same read.
        if self.waiting.back().is_some_and(|last| {
            (last.batch, last.slot, last.generation)
                == (waiting.batch, waiting.slot, waiting.generation)
        }) {
            return;
        }
        self.waiting.push_back(waiting);
    }

    fn next_due(&mut self) -> Option<CommitWaiter> {
        self.waiting.pop_front_if(|waiting| waiting.batch <= self.committed)
    }

    fn is_any_due(&self) -> bool {
        self.waiting.front().is_some_and(|waiting| waiting.batch <= self.committed)
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
            let generation = self.sessions[slot].generation();
            journal.commits.await_batch(batch, slot, generation);
        }
    }

    /// After a turn: asks for a commit if a session has waited for long, or else once the shard is
    /// idle.
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

    /// Asks for a commit if a session waits for it.
    pub(in crate::shard) fn ask_for_commit(&mut self) {
        if let Some(journal) = &mut self.durability.journal
            && journal.commits.asks()
        {
            journal.journal.force();
        }
    }

    /// Serves the sessions whose batch is committed, as long as the turn lasts. True if some of
    /// them are left for the next turn.
    #[inline]
    pub(in crate::shard) fn serve_committed(&mut self, net: &mut Net) -> bool {
        self.durability.journal.is_some() && self.serve_waiting(net)
    }

    fn serve_waiting(&mut self, net: &mut Net) -> bool {
        loop {
            // What this turn appended is handed over before the waiting sessions are looked at.
            self.hand_over(net);
            let Some(journal) = &mut self.durability.journal else { return false };
            let complete = journal.journal.committed();
            journal.commits.complete(complete);
            let mut has_time = true;
            while has_time
                && let Some(journal) = &mut self.durability.journal
                && let Some(waiting) = journal.commits.next_due()
            {
                self.serve_one(net, waiting);
                has_time = net.charge(1);
            }
            self.hand_over(net);
            let Some(journal) = &mut self.durability.journal else { return false };
            self.stats.journal_waiting.set(journal.commits.waiting_len() as u64);
            if journal.commits.waiting_len() == 0 {
                return false;
            }
            if journal.commits.is_any_due() {
                return true;
            }
            let Some(durable) = &self.shared.durable else { return false };
            durable.flags(self.id).waits.store(true, Ordering::SeqCst);
            // After the flag: either this sees the commit or the commit thread sees the flag.
            if journal.journal.committed() == complete {
                return false;
            }
        }
    }

    fn serve_one(&mut self, net: &mut Net, waiting: CommitWaiter) {
        let CommitWaiter { slot, generation, .. } = waiting;
        if self.sessions.is_current(slot, generation) {
            self.send_confirmations(net, slot);
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
    fn batches_are_complete_with_the_commits_that_took_them() {
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
        assert_eq!(commits.urgency(), Some(Urgency::Forces), "a session waits for it now");
    }

    #[test]
    fn a_commit_is_asked_for_once_when_a_session_has_waited_for_long() {
        let mut commits = Commits::new();
        commits.appended(Urgency::Rides);
        commits.handed_over(CommitSeq::new(3));
        assert_eq!(commits.is_time(1_000), None, "no session waits");
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
        // Another shard has asked for it.
        commits.complete(CommitSeq::new(4));
        assert!(!commits.asks());
    }

    #[test]
    fn waiting_sessions_are_due_in_their_order() {
        let mut commits = Commits::new();
        for (slot, number) in [(1, 1), (1, 1), (2, 1), (1, 2)] {
            let slot = SessionSlot::new(slot);
            commits.wait(CommitWaiter { batch: batch(number), slot, generation: 0 });
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
