//! Restarts of a broker during a run, reported by the program that starts and kills it.

use std::sync::{Mutex, PoisonError};

use super::bridge_log::Recovery;
use tacho_monitor::now_ns;

/// The process of one broker, which may become another one.
#[derive(Debug, Default)]
pub struct Course {
    /// It is going to be killed.
    is_killed: bool,
    state: Mutex<CourseState>,
}

#[derive(Debug, Default)]
struct CourseState {
    pid: Option<u32>,
    killed_ns: u64,
    started_ns: u64,
    restarts: Vec<Again>,
}

/// Killed at a time, started again, and back after so long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Again {
    pub(super) at_ns: u64,
    /// From the start of the new process.
    pub(super) serving_ns: u64,
    /// When it was back.
    pub(super) back_ns: u64,
    /// What became of bridges, where there are some.
    pub(super) recovery: Option<Recovery>,
}

impl Course {
    /// A broker with this process id, where that is known.
    pub fn new(pid: Option<u32>, is_killed: bool) -> Self {
        Self { is_killed, state: Mutex::new(CourseState { pid, ..CourseState::default() }) }
    }

    /// Its process is killed now.
    pub fn killed(&self) {
        self.change(|state| (state.pid, state.killed_ns) = (None, now_ns()));
    }

    /// A new process was started.
    pub fn started(&self, pid: u32) {
        self.change(|state| (state.pid, state.started_ns) = (Some(pid), now_ns()));
    }

    /// The new process serves clients.
    pub fn serves(&self) {
        self.change(|state| {
            let back_ns = now_ns();
            let serving_ns = back_ns.saturating_sub(state.started_ns);
            let at_ns = state.killed_ns;
            state.restarts.push(Again { at_ns, serving_ns, back_ns, recovery: None });
        });
    }

    /// Its process, while it has one.
    pub(super) fn pid(&self) -> Option<u32> {
        self.change(|state| state.pid)
    }

    pub(super) const fn is_killed(&self) -> bool {
        self.is_killed
    }

    pub(super) fn restarts(&self) -> Vec<Again> {
        self.change(|state| state.restarts.clone())
    }

    /// When it was killed each time, and how long it took from its new start until it served
    /// clients; nothing while it does not.
    pub(super) fn kills(&self) -> Vec<(u64, Option<u64>)> {
        self.change(|state| {
            let back = state.restarts.iter();
            let mut kills: Vec<_> =
                back.map(|again| (again.at_ns, Some(again.serving_ns))).collect();
            if state.restarts.last().map_or(0, |last| last.at_ns) < state.killed_ns {
                kills.push((state.killed_ns, None));
            }
            kills
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut CourseState) -> T) -> T {
        // Every change is whole by itself.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
