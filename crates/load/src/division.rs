//! Dividing a run over several processes: each runs a part of the generator threads.
//!
//! The unit of division is the thread. A plan for `n` threads places every client, with its streams
//! and its schedule, on one of them, and clients that exchange messages on the same one where
//! possible ([`placement`](crate::placement)). A [`Division`] gives each process consecutive
//! threads; the controller stays in this process and talks to the threads by the same mail as ever,
//! encoded. So rates and counts are those of an undivided run, message by message: intervals are
//! merged without loss, and the books are closed over all threads, whichever process they are in.
//!
//! ```text
//! Division::new -> assignment 0..n -> Assignment::read -> start -> Share    (other processes)
//!              \-> Division::start -> Engine <- ShareInput::take <- reports of the shares
//! ```
//!
//! Not divided are plans with secrets that must stay where they are (TLS, tokens, certificates) or
//! with state that all threads share; [`DivideError`] has the list.

use std::io;
use std::ops::Range;
use std::sync::{Arc, mpsc};

use serde::{Deserialize, Serialize};

use crate::context::RunContext;
use crate::controller::CrewPart;
use crate::engine::Engine;
use crate::mail::{LostShare, Report, ReportBody};
pub use crate::mail::{OnLoss, SendOrder};
use crate::past::Past;
pub use crate::past::{LostThen, PastRun};
pub use crate::placement::PairPlacement;
use crate::placement::{Layout, members_of_groups};
use crate::plan::{Authentication, ClientIndex, Plan, PlanError, Receiver};
use crate::sound;
use crate::verifier::unix_offset_ns;
use crate::wire::{self, WireError};

mod share;

pub use share::{Assignment, Share, ShareFigures, ShareStartError};

/// Threads of all processes together: what can be numbered, and far above what makes sense.
pub(crate) const THREADS_MAX: usize = 4_096;

/// Why a plan cannot be divided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DivideError {
    /// The plan cannot run at all.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// No process, one without threads, or too many threads.
    #[error("a run is divided over 1 to {THREADS_MAX} generator threads, not {threads}")]
    Threads {
        /// Threads of all processes.
        threads: usize,
    },
    /// Keys and certificates stay on this machine.
    #[error(
        "group {group} cannot be divided over agents: {what} stay on this machine; use mqtt:// or ws:// and passwords"
    )]
    Secrets {
        /// The group.
        group: String,
        /// Which.
        what: &'static str,
    },
    /// Responders must know of each other's absences.
    #[error("group {group} cannot be divided over agents: its clients answer requests")]
    Answers {
        /// The group.
        group: String,
    },
    /// Closed mode at QoS 0 waits for deliveries, and those would take the way over the bus.
    #[error(
        "topic {topic} cannot be divided over agents: its publisher waits for deliveries at QoS 0, and a receiver is on another agent; use QoS 1, or a rate"
    )]
    Closed {
        /// The topic.
        topic: String,
    },
    /// The plan cannot be encoded.
    #[error("the plan cannot be sent to agents")]
    Encode,
}

/// What a process needs to run its share.
#[derive(Debug, Serialize, Deserialize)]
struct AssignmentForm {
    first_thread: usize,
    threads: usize,
    /// Unix time minus the controller's clock: payloads that carry the time are checked by it.
    unix_offset_ns: u64,
    layout: Layout,
    plan: Plan,
}

/// A process that is to run a share.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Its name in messages.
    pub name: String,
    /// Its generator threads.
    pub threads: usize,
    /// Its part of the clients, in proportion to those of the others; above 0.
    pub capacity: f64,
}

/// The clock of this process as it tells it to a controller elsewhere: its machine's.
#[must_use]
pub fn clock_ns() -> u64 {
    tacho_net::clock::unshifted_ns()
}

/// For tests of clocks: this process takes its machine's clock for one that is so far ahead and
/// runs so much faster, in parts per billion. To be called before anything else.
pub fn skew_clock(ahead_ns: i64, drift_ppb: i64) {
    tacho_net::clock::skew(ahead_ns, drift_ppb);
}

/// A plan, divided, before it runs.
pub struct Division {
    context: Arc<RunContext>,
    layout: Layout,
    parts: Vec<Range<usize>>,
    names: Vec<String>,
    unix_offset_ns: u64,
    sender: mpsc::Sender<Report>,
    reports: mpsc::Receiver<Report>,
}

/// Where the reports of one share go.
#[derive(Clone)]
pub struct ShareInput {
    name: String,
    threads: Range<usize>,
    context: Arc<RunContext>,
    sender: mpsc::Sender<Report>,
}

impl Division {
    /// Divides `plan` over processes with these names and numbers of threads, which replace the
    /// plan's number.
    ///
    /// # Errors
    /// The plan cannot run, or cannot be divided so.
    pub fn new(
        plan: Plan,
        processes: &[(String, usize)],
    ) -> Result<(Self, Vec<ShareInput>), DivideError> {
        let process = |(name, threads): &(String, usize)| Process {
            name: name.clone(),
            threads: *threads,
            capacity: *threads as f64,
        };
        let processes: Vec<Process> = processes.iter().map(process).collect();
        Self::spread(plan, &processes, PairPlacement::Same)
    }

    /// The same by the capacity of the processes, and with clients that exchange messages where
    /// `spread` wants them.
    ///
    /// # Errors
    /// The plan cannot run, or cannot be divided so.
    pub fn spread(
        mut plan: Plan,
        processes: &[Process],
        spread: PairPlacement,
    ) -> Result<(Self, Vec<ShareInput>), DivideError> {
        let threads = processes.iter().map(|process| process.threads).sum();
        let parts = processes.iter().map(|process| (process.threads, process.capacity));
        let layout = Layout { spread, parts: parts.collect() };
        if threads == 0 || threads > THREADS_MAX || !layout.fits(threads) {
            return Err(DivideError::Threads { threads });
        }
        plan.threads = threads;
        plan.check()?;
        check_secrets(&plan)?;
        let mut parts = Vec::with_capacity(processes.len());
        let mut first = 0;
        for process in processes {
            parts.push(first..first + process.threads);
            first += process.threads;
        }
        let unix_offset_ns = unix_offset_ns();
        let context = Arc::new(RunContext::of_share(plan, &layout, 0..threads, unix_offset_ns));
        check_state(&context, &parts)?;
        let (sender, reports) = mpsc::channel();
        let inputs = processes.iter().zip(&parts).map(|(process, threads)| ShareInput {
            name: process.name.clone(),
            threads: threads.clone(),
            context: Arc::clone(&context),
            sender: sender.clone(),
        });
        let inputs = inputs.collect();
        let names = processes.iter().map(|process| process.name.clone()).collect();
        Ok((Self { context, layout, parts, names, unix_offset_ns, sender, reports }, inputs))
    }

    /// What the process with this position needs, for [`Assignment::read`] there.
    ///
    /// # Errors
    /// The plan cannot be encoded.
    ///
    /// # Panics
    /// There is no such process.
    pub fn assignment(&self, process: usize) -> Result<Vec<u8>, DivideError> {
        wire::encode(&self.form(process, self.unix_offset_ns)).map_err(|_| DivideError::Encode)
    }

    /// What is the same for the process whenever the same plan is divided so:
    /// [`Assignment::identity`].
    ///
    /// # Errors
    /// The plan cannot be encoded.
    ///
    /// # Panics
    /// There is no such process.
    pub fn identity(&self, process: usize) -> Result<Vec<u8>, DivideError> {
        wire::encode(&self.form(process, 0)).map_err(|_| DivideError::Encode)
    }

    fn form(&self, process: usize, unix_offset_ns: u64) -> AssignmentForm {
        let threads = self.parts[process].clone();
        AssignmentForm {
            first_thread: threads.start,
            threads: threads.len(),
            unix_offset_ns,
            layout: self.layout.clone(),
            plan: self.context.plan.clone(),
        }
    }

    /// Clients of each process.
    pub fn clients(&self) -> Vec<usize> {
        let of = |threads: &Range<usize>| {
            let placed = self.context.placement.thread_of.iter();
            placed.filter(|thread| threads.contains(&usize::from(**thread))).count()
        };
        self.parts.iter().map(of).collect()
    }

    /// Starts the phases; the shares have been started. `send` reaches each process, in order.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(self, send: Vec<SendOrder>, on_loss: OnLoss) -> io::Result<Engine> {
        self.begin(send, on_loss, None)
    }

    /// Takes up a run that another controller has started and left under load.
    ///
    /// # Errors
    /// A thread cannot be started, or what is known of the run does not fit this one.
    pub fn take_up(
        self,
        send: Vec<SendOrder>,
        on_loss: OnLoss,
        past: PastRun,
    ) -> io::Result<Engine> {
        let past = Past::new(past, &self.context, &self.parts, &self.names);
        let past = past.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.begin(send, on_loss, Some(past))
    }

    fn begin(
        self,
        send: Vec<SendOrder>,
        on_loss: OnLoss,
        past: Option<Past>,
    ) -> io::Result<Engine> {
        let clients = self.clients();
        let parts = self.parts.into_iter().zip(clients).zip(self.names).zip(send);
        let parts = parts.map(|(((threads, clients), name), send)| CrewPart {
            name,
            threads,
            clients: clients as u64,
            send,
        });
        let parts = (parts.collect(), past);
        Engine::of_parts(self.context, parts, on_loss, (self.sender, self.reports))
    }
}

impl ShareInput {
    /// Takes what a share has reported.
    ///
    /// # Errors
    /// It is no report of this share: the share is to be given up.
    pub fn take(&self, bytes: &[u8]) -> Result<(), WireError> {
        let reports: Vec<Report> = wire::decode(bytes)?;
        for report in reports {
            if !sound::report(&report, &self.context, &self.threads) {
                return Err(WireError);
            }
            // The run may have ended.
            let _ = self.sender.send(report);
        }
        Ok(())
    }

    /// The share is lost: the run ends.
    pub fn lost(&self, why: impl Into<String>) {
        let lost =
            LostShare { name: self.name.clone(), threads: self.threads.len(), why: why.into() };
        let report = Report { thread: self.threads.start, body: ReportBody::Lost(lost) };
        let _ = self.sender.send(report);
    }
}

/// Secrets that must not travel.
fn check_secrets(plan: &Plan) -> Result<(), DivideError> {
    for group in &plan.groups {
        let targets = if group.targets.is_empty() { &plan.targets } else { &group.targets };
        let own = |client: &crate::Client| client.identity.is_some();
        let what = if targets.iter().any(|target| target.transport.uses_tls()) {
            "keys and certificates of TLS"
        } else if group.clients.iter().any(own) {
            "certificates of clients"
        } else if matches!(group.authentication, Authentication::Token(_)) {
            "keys of tokens"
        } else {
            continue;
        };
        return Err(DivideError::Secrets { group: group.name.clone(), what });
    }
    Ok(())
}

/// State that threads of different processes would have to share.
fn check_state(context: &RunContext, parts: &[Range<usize>]) -> Result<(), DivideError> {
    if parts.len() < 2 {
        return Ok(());
    }
    if let Some(group) = context.plan.groups.iter().find(|group| group.answers) {
        return Err(DivideError::Answers { group: group.name.clone() });
    }
    if context.homes.iter().all(|home| !home.wants_credit) {
        return Ok(());
    }
    let part_of = |thread: u16| parts.iter().position(|part| part.contains(&usize::from(thread)));
    let of_client = |client: ClientIndex| part_of(context.placement.thread_of[client.index()]);
    let members = members_of_groups(&context.plan);
    for route in &context.plan.routes {
        let home = &context.homes[route.stream.index()];
        let is_away = |client: &ClientIndex| of_client(*client) != part_of(home.thread);
        let is_divided = home.wants_credit
            && match route.receiver {
                Receiver::Client(client) => is_away(&client),
                Receiver::Shared(group) => members[group as usize].iter().any(is_away),
            };
        if is_divided {
            let topic = context.streams.infos[route.stream.index()].topic.to_string();
            return Err(DivideError::Closed { topic });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
