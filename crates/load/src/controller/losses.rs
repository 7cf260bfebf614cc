//! Processes that are lost while a divided run goes on.

use tacho_net::clock;

use super::Controller;
use crate::events::{End, Event, LostPart};
use crate::mail::{LostShare, OnLoss};
use crate::placement::members_of_groups;
use crate::plan::{ClientIndex, Receiver};

/// Threads report every second while there is load; such silence means that their process is
/// stuck, although it says that it is there.
const STUCK_NS: u64 = 10_000_000_000;

impl Controller {
    /// A process that runs this thread is lost. The run goes on without it once the load has
    /// begun, unless it is to end.
    pub(super) fn lose(&mut self, thread: usize, lost: LostShare) -> Result<(), End> {
        self.lose_at(thread, lost, clock::now_ns())
    }

    /// The same where it was noticed at this time.
    pub(super) fn lose_at(
        &mut self,
        thread: usize,
        lost: LostShare,
        at_ns: u64,
    ) -> Result<(), End> {
        let LostShare { name, threads: count, why } = lost;
        let of = self.context.plan.threads;
        let end = End::ShareLost { name, threads: count, of, why: why.clone() };
        let Some((share, threads, clients)) = self.shares.of(thread) else { return Err(end) };
        if !self.roll.lose(threads.clone()) {
            return Ok(());
        }
        self.crew.dismiss(&threads);
        if self.on_loss == OnLoss::End || !self.is_loading || self.roll.left() == 0 {
            return Err(end);
        }
        let thread_of = &self.context.placement.thread_of;
        let is_gone = |client: &ClientIndex| {
            thread_of.get(client.index()).is_some_and(|of| threads.contains(&usize::from(*of)))
        };
        self.lost.extend(ClientIndex::all().take(thread_of.len()).filter(&is_gone));
        let groups = (0..).map(Receiver::Shared).zip(members_of_groups(&self.context.plan));
        let groups = groups.filter(|(_, members)| members.iter().any(&is_gone));
        self.lost_groups.extend(groups.map(|(group, _)| group));
        for snapshot in self.intervals.lose(threads) {
            self.emit(Event::Interval(Box::new(snapshot)));
        }
        let started: Vec<usize> = self.started_actions.keys().copied().collect();
        started.into_iter().for_each(|action| self.emit_started(action));
        let of = self.context.plan.client_count() as u64;
        self.emit(Event::ShareLost(Box::new(LostPart { share, at_ns, clients, of, why })));
        Ok(())
    }

    /// A thread does not answer: its process is lost, or the run where it is this one's.
    pub(super) fn give_up(&mut self, thread: usize, why: &str) -> Result<(), End> {
        match self.crew.part_of(thread) {
            None => Err(End::Thread(why.to_owned())),
            Some((name, threads)) => {
                let lost = LostShare { name, threads: threads.len(), why: why.to_owned() };
                self.lose(thread, lost)
            }
        }
    }

    /// Gives up processes whose threads have reported nothing for too long during the load.
    pub(super) fn lose_silent(&mut self, now_ns: u64) -> Result<(), End> {
        if !self.crew.is_elsewhere() {
            return Ok(());
        }
        while let Some(thread) = self.roll.silent(now_ns, STUCK_NS) {
            self.give_up(thread, "its threads have reported nothing for 10 s")?;
        }
        Ok(())
    }
}
