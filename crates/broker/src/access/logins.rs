//! Passwords are verified on threads of their own: a verification takes tens of milliseconds and of
//! megabytes, and a shard must not wait.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tacho_access::{Memory, Users};
use tacho_net::Remote;

use crate::authentication::ExchangeRef;
use crate::mail::Mail;

/// A password to verify.
pub(crate) struct LoginJob {
    pub(crate) users: Arc<Users>,
    pub(crate) user: Arc<str>,
    pub(crate) password: Box<[u8]>,
    /// Gone when the client is.
    pub(crate) client: Weak<()>,
    /// Where the answer goes.
    pub(crate) shard: usize,
    pub(crate) to: ExchangeRef,
}

impl LoginJob {
    fn run(&self, memory: &mut Memory, remote: &Remote<Mail>) {
        // The password of a client that has given up needs no answer.
        if self.client.strong_count() > 0 {
            let is_right = self.users.verify(&self.user, &self.password, memory);
            remote.post(self.shard, Mail::LoggedIn(self.to, is_right));
        }
    }
}

/// The threads that verify passwords, and a bounded queue for them.
pub(crate) enum Logins {
    /// They end with the last handle of the queue.
    Threads(SyncSender<LoginJob>),
    /// For simulations: verified at once, answered by mail.
    #[cfg(feature = "sim")]
    AtOnce(Remote<Mail>),
    /// There are no users.
    None,
}

impl Logins {
    /// Starts so many threads.
    pub(crate) fn start(
        threads: usize,
        waiting_max: usize,
        remote: &Remote<Mail>,
    ) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(waiting_max);
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..threads {
            let (waiting, remote) = (Arc::clone(&waiting), remote.clone());
            std::thread::Builder::new()
                .name(format!("login-{number}"))
                .spawn(move || work(&waiting, &remote))?;
        }
        Ok(Self::Threads(jobs))
    }

    /// Hands a password to the threads; false if too many wait already.
    pub(crate) fn verify(&self, job: LoginJob) -> bool {
        match self {
            Self::Threads(jobs) => match jobs.try_send(job) {
                Ok(()) => true,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
            },
            #[cfg(feature = "sim")]
            Self::AtOnce(remote) => {
                job.run(&mut Memory::default(), remote);
                true
            }
            Self::None => false,
        }
    }
}

fn work(waiting: &Mutex<Receiver<LoginJob>>, remote: &Remote<Mail>) {
    let mut memory = Memory::default();
    loop {
        // The lock is held while this thread waits: the others wait for the lock instead.
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(job) => job.run(&mut memory, remote),
            Err(_) => return,
        }
    }
}
