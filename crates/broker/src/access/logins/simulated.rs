//! Logins of simulations: verified at once, or when the test says so, if ever.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tacho_access::Memory;
use tacho_net::Remote;

use super::LoginJob;
use crate::mail::Mail;

/// Credentials that wait for the test.
pub(crate) struct SimulatedLogins {
    remote: Remote<Mail>,
    is_held: AtomicBool,
    waiting: Mutex<VecDeque<LoginJob>>,
}

impl SimulatedLogins {
    pub(crate) fn new(remote: Remote<Mail>) -> Self {
        Self { remote, is_held: AtomicBool::new(false), waiting: Mutex::default() }
    }

    pub(super) fn verify(&self, job: LoginJob) {
        if self.is_held.load(Ordering::Relaxed) {
            self.waiting().push_back(job);
        } else {
            job.run(&mut Memory::default(), &self.remote, None);
        }
    }

    /// From now on credentials wait, or not; those that wait go on waiting.
    pub(crate) fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Relaxed);
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting().len()
    }

    /// Verifies what waits at this place and answers, so many times; 0: never.
    pub(crate) fn answer(&self, at: usize, times: u32) {
        let Some(job) = self.waiting().remove(at) else { return };
        for _ in 1..times {
            job.answer_early(&self.remote);
        }
        if times > 0 {
            job.run(&mut Memory::default(), &self.remote, None);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<LoginJob>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
