//! Which generator threads are there, and which have answered the controller.

use std::ops::Range;

/// The threads of a run by their number.
#[derive(Debug)]
pub(super) struct Roll {
    /// Lost, with the process that ran them.
    gone: Vec<bool>,
    /// Finished the phase entered last.
    done: Vec<bool>,
    /// Answered the question asked last.
    answered: Vec<bool>,
    /// When something came from them last.
    heard_ns: Vec<u64>,
}

impl Roll {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            gone: vec![false; threads],
            done: vec![false; threads],
            answered: vec![false; threads],
            heard_ns: vec![0; threads],
        }
    }

    /// A phase begins.
    pub(super) fn enter(&mut self) {
        self.done.fill(false);
    }

    /// A question goes to all threads.
    pub(super) fn ask(&mut self) {
        self.answered.fill(false);
    }

    /// From now on silence counts.
    pub(super) fn listen(&mut self, now_ns: u64) {
        self.heard_ns.fill(now_ns);
    }

    pub(super) fn heard(&mut self, thread: usize, now_ns: u64) {
        set(&mut self.heard_ns, thread, now_ns);
    }

    pub(super) fn note_done(&mut self, thread: usize) {
        set(&mut self.done, thread, true);
    }

    pub(super) fn note_answer(&mut self, thread: usize) {
        set(&mut self.answered, thread, true);
    }

    /// These threads are lost; false if they were before.
    pub(super) fn lose(&mut self, threads: Range<usize>) -> bool {
        let Some(gone) = self.gone.get_mut(threads) else { return false };
        let is_new = gone.contains(&false);
        gone.fill(true);
        is_new
    }

    pub(super) fn is_gone(&self, thread: usize) -> bool {
        self.gone.get(thread).is_some_and(|gone| *gone)
    }

    /// Whether no thread was lost.
    pub(super) fn is_whole(&self) -> bool {
        !self.gone.contains(&true)
    }

    /// Threads that are left.
    pub(super) fn left(&self) -> usize {
        self.gone.iter().filter(|gone| !**gone).count()
    }

    pub(super) fn all_done(&self) -> bool {
        self.first_without(&self.done).is_none()
    }

    /// A thread that has not answered yet.
    pub(super) fn unanswered(&self) -> Option<usize> {
        self.first_without(&self.answered)
    }

    /// A thread that has been silent for so long.
    pub(super) fn silent(&self, now_ns: u64, longest_ns: u64) -> Option<usize> {
        let mut threads = self.heard_ns.iter().zip(&self.gone);
        threads.position(|(heard_ns, gone)| !gone && now_ns.saturating_sub(*heard_ns) > longest_ns)
    }

    fn first_without(&self, flags: &[bool]) -> Option<usize> {
        flags.iter().zip(&self.gone).position(|(flag, gone)| !flag && !gone)
    }
}

fn set<T>(of: &mut [T], thread: usize, value: T) {
    if let Some(known) = of.get_mut(thread) {
        *known = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_gone_owe_nothing() {
        let mut roll = Roll::new(3);
        roll.enter();
        roll.ask();
        roll.listen(10);
        roll.note_done(0);
        roll.note_answer(2);
        assert!(!roll.all_done() && roll.is_whole());
        assert_eq!((roll.unanswered(), roll.left()), (Some(0), 3));
        assert!(roll.lose(1..2) && !roll.lose(1..2) && !roll.lose(7..9));
        roll.note_answer(0);
        roll.note_done(2);
        assert!(roll.all_done() && roll.is_gone(1) && !roll.is_whole());
        assert_eq!((roll.unanswered(), roll.left()), (None, 2));
        roll.heard(0, 30);
        assert_eq!((roll.silent(30, 20), roll.silent(31, 20)), (None, Some(2)));
        roll.ask();
        assert_eq!(roll.unanswered(), Some(0));
    }
}
