//! Passwords and tokens are verified on threads of their own: a password takes tens of milliseconds
//! and of megabytes, and a shard must not wait.

#[cfg(feature = "sim")]
mod simulated;

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tacho_access::{Memory, TokenClient, TokenError, TokenVerifier, Users};
use tacho_net::{Remote, clock};

use super::key_fetch::KeysWanted;
use crate::authentication::{AuthFailure, AuthReply, AuthStep, AuthUser, ExchangeRef};
use crate::login_answer::{LoginAnswer, TokenLogin};
use crate::mail::Mail;
#[cfg(feature = "sim")]
pub(crate) use simulated::SimulatedLogins;

/// Credentials to verify.
pub(crate) enum Credentials {
    Password {
        users: Arc<Users>,
        user: Arc<str>,
        password: Box<[u8]>,
    },
    Token {
        verifier: Arc<TokenVerifier>,
        token: Box<str>,
        client_id: Arc<str>,
        user: Option<Box<str>>,
    },
}

impl Credentials {
    fn verify(&self, memory: &mut Memory) -> LoginAnswer {
        match self {
            Self::Password { users, user, password } => {
                LoginAnswer::Password(users.verify(user, password, memory))
            }
            Self::Token { verifier, token, client_id, user } => {
                let now_s = clock::unix_ns() / 1_000_000_000;
                let client = TokenClient { client_id, user: user.as_deref() };
                let verified = verifier.verify(token, &client, now_s);
                LoginAnswer::Token(verified.map(|verified| TokenLogin {
                    user: verified.user.into(),
                    rules: verified.acl.map(Arc::new),
                    ends_in_s: verified.expires_unix_s.map(|end_s| end_s.saturating_sub(now_s)),
                }))
            }
        }
    }
}

/// Credentials to verify, and where the answer goes.
pub(crate) struct LoginJob {
    pub(crate) credentials: Credentials,
    /// Gone when the client is.
    pub(crate) client: Weak<()>,
    pub(crate) answer_to: AnswerTo,
}

/// Where an answer goes.
pub(crate) enum AnswerTo {
    /// To this shard, for a CONNECT that waits there.
    Shard(usize, ExchangeRef),
    /// To an exchange of enhanced authentication.
    Method(AuthReply),
}

impl LoginJob {
    fn run(self, memory: &mut Memory, remote: &Remote<Mail>, wanted: Option<&KeysWanted>) {
        // A client that has given up needs no answer.
        if self.client.strong_count() == 0 {
            return;
        }
        let answer = self.credentials.verify(memory);
        if let (LoginAnswer::Token(Err(TokenError::Key)), Some(wanted)) = (&answer, wanted) {
            // It may be new. If the keys are wanted already, that is enough.
            let _ = wanted.try_send(());
        }
        match self.answer_to {
            AnswerTo::Shard(shard, to) => {
                remote.post(shard, Mail::LoggedIn(to, Box::new(answer)));
            }
            AnswerTo::Method(reply) => reply.send(step_of(answer)),
        }
    }
}

#[cfg(feature = "sim")]
impl LoginJob {
    /// Answers a shard once more than it asks, and whether its client is there or not.
    fn answer_early(&self, remote: &Remote<Mail>) {
        if let AnswerTo::Shard(shard, to) = self.answer_to {
            let answer = self.credentials.verify(&mut Memory::default());
            remote.post(shard, Mail::LoggedIn(to, Box::new(answer)));
        }
    }
}

/// The answer of a method that has had a token verified.
fn step_of(answer: LoginAnswer) -> AuthStep {
    match answer {
        LoginAnswer::Token(Ok(TokenLogin { user, rules, ends_in_s })) => {
            let user = AuthUser { name: user, is_listed: false, rules, ends_in_s, data: None };
            AuthStep::SuccessAs(Box::new(user))
        }
        LoginAnswer::Token(Err(error)) => AuthStep::Failure(AuthFailure::Token(error)),
        LoginAnswer::Password(_) | LoginAnswer::Backend(_) => {
            AuthStep::Failure(AuthFailure::Unavailable)
        }
    }
}

/// The threads that verify credentials, and a bounded queue for them.
#[derive(Clone)]
pub(crate) enum Logins {
    /// They end with the last handle of the queue.
    Threads(SyncSender<LoginJob>),
    /// For simulations.
    #[cfg(feature = "sim")]
    Simulated(Arc<SimulatedLogins>),
    /// There are no users.
    None,
}

impl Logins {
    /// Starts so many threads.
    pub(crate) fn start(
        threads: usize,
        waiting_max: usize,
        remote: &Remote<Mail>,
        wanted: Option<&KeysWanted>,
    ) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(waiting_max);
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..threads {
            let (waiting, remote) = (Arc::clone(&waiting), remote.clone());
            let wanted = wanted.cloned();
            std::thread::Builder::new()
                .name(format!("login-{number}"))
                .spawn(move || work(&waiting, &remote, wanted.as_ref()))?;
        }
        Ok(Self::Threads(jobs))
    }

    /// Hands credentials to the threads; false if too many wait already.
    pub(crate) fn verify(&self, job: LoginJob) -> bool {
        match self {
            Self::Threads(jobs) => match jobs.try_send(job) {
                Ok(()) => true,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
            },
            #[cfg(feature = "sim")]
            Self::Simulated(logins) => {
                logins.verify(job);
                true
            }
            Self::None => false,
        }
    }
}

fn work(waiting: &Mutex<Receiver<LoginJob>>, remote: &Remote<Mail>, wanted: Option<&KeysWanted>) {
    let mut memory = Memory::default();
    loop {
        // The lock is held while this thread waits: the others wait for the lock instead.
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(job) => job.run(&mut memory, remote, wanted),
            Err(_) => return,
        }
    }
}
