//! A share of a run: the generator threads that this process runs for a controller elsewhere.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use tacho_net::Remote;

use super::{AssignmentForm, THREADS_MAX};
use crate::context::RunContext;
use crate::controller::threads;
use crate::mail::{Enter, Mail, Order, Report, Task};
use crate::placement::Layout;
use crate::plan::{Phase, Plan, PlanError};
use crate::sound;
use crate::wire::{self, WireError};

/// Reports that travel together.
const REPORTS_MAX: usize = 256;

/// Why a share could not start.
#[derive(Debug, thiserror::Error)]
pub enum ShareStartError {
    /// The plan cannot run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system refused a resource.
    #[error("cannot start the load generator: {0}")]
    System(#[from] io::Error),
}

/// What a controller wants of this process; it has done nothing yet.
pub struct Assignment {
    pub(super) threads: Range<usize>,
    unix_offset_ns: u64,
    layout: Layout,
    pub(super) plan: Plan,
    identity: Vec<u8>,
}

/// What a share would do, for limits.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareFigures {
    /// Its clients.
    pub clients: usize,
    /// Messages and logins per second that it sends; infinite in closed mode.
    pub per_second: f64,
    /// The longest that the run can take, in seconds.
    pub seconds: u64,
    /// All addresses that clients of the run connect to.
    pub addresses: Vec<SocketAddr>,
}

/// Running threads. Dropping it stops them at once: nothing is sent afterwards.
pub struct Share {
    context: Arc<RunContext>,
    threads: Range<usize>,
    remote: Remote<Mail>,
    running: Vec<JoinHandle<()>>,
    reporting: Option<JoinHandle<()>>,
    load: LoadState,
}

/// How far the orders of a share have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadState {
    Before,
    /// In the first load of the plan.
    First,
    After,
}

impl LoadState {
    fn take(&mut self, mail: &Mail) {
        *self = match (*self, mail) {
            (Self::Before | Self::First, Mail::Enter(Enter { task: Task::Load { .. }, .. })) => {
                Self::First
            }
            (Self::First, Mail::Enter(_) | Mail::Cut(_) | Mail::Stop) => Self::After,
            (state, _) => state,
        };
    }
}

impl Assignment {
    /// Reads and checks an assignment.
    ///
    /// # Errors
    /// It is none of this version, or its plan cannot run.
    pub fn read(bytes: &[u8]) -> Result<Self, ShareStartError> {
        let damaged = |error: WireError| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut form: AssignmentForm = wire::decode(bytes).map_err(damaged)?;
        let unix_offset_ns = std::mem::take(&mut form.unix_offset_ns);
        let identity = wire::encode(&form).map_err(damaged)?;
        let AssignmentForm { first_thread, threads, layout, mut plan, .. } = form;
        let last = first_thread.checked_add(threads);
        let fits = last.is_some_and(|last| last <= plan.threads) && plan.threads <= THREADS_MAX;
        if threads == 0 || !fits || !layout.fits(plan.threads) {
            return Err(damaged(WireError).into());
        }
        plan.routes = plan.derive_routes();
        plan.check()?;
        let threads = first_thread..first_thread + threads;
        Ok(Self { threads, unix_offset_ns, layout, plan, identity })
    }

    /// What is the same whenever the same plan is divided so.
    pub fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// What it would do.
    pub fn figures(&self) -> ShareFigures {
        let context = self.context(self.plan.clone());
        let is_here = |thread: u16| self.threads.contains(&usize::from(thread));
        let own = |client: usize| is_here(context.placement.thread_of[client]);
        let scale = self.plan.phases.iter().map(|phase| match phase {
            Phase::WarmUp { scale, .. } | Phase::Measure { scale, .. } => scale.factor(),
            _ => 0.0,
        });
        let scale = scale.fold(0.0, f64::max);
        let streams = self.plan.streams().filter(|(client, ..)| own(client.index()));
        let messages =
            streams.map(|(_, _, block)| block.pace.per_second().unwrap_or(f64::INFINITY));
        let mut per_second: f64 = messages.sum();
        let mut first = 0;
        for group in &self.plan.groups {
            let members = first..first + group.clients.len();
            first = members.end;
            let Some(login) = &group.login else { continue };
            let mine = members.clone().filter(|client| own(*client)).count();
            per_second += login.per_s * mine as f64 / members.len().max(1) as f64;
        }
        let groups = self.plan.groups.iter().flat_map(|group| &group.targets);
        let addresses = self.plan.targets.iter().chain(groups).map(|target| target.addr);
        ShareFigures {
            clients: (0..self.plan.client_count()).filter(|client| own(*client)).count(),
            per_second: per_second * scale,
            seconds: self.plan.phases.iter().map(longest_s).fold(0, u64::saturating_add),
            addresses: addresses.collect(),
        }
    }

    /// Starts the threads, on these CPUs in turn if there are any. They wait for orders; what they
    /// report, encoded, goes to `report`, called from one thread. The clock of this process is
    /// [shifted](tacho_net::clock::shift) to the controller's, so that it runs one share at a time.
    ///
    /// # Errors
    /// Threads cannot be started.
    pub fn start(
        self,
        cpus: Vec<usize>,
        clock_shift_ns: i64,
        report: impl FnMut(Vec<u8>) + Send + 'static,
    ) -> Result<Share, ShareStartError> {
        // Where the limit cannot be raised, reaching it shows as failed connects.
        let _ = tacho_net::raise_fd_limit();
        tacho_net::clock::shift(clock_shift_ns);
        let mut plan = self.plan.clone();
        plan.cpus = cpus;
        // The budget is this machine's, and all threads of the plan divide it.
        let here = Plan::receive_bytes_of_machine() / self.threads.len() as u64;
        plan.receive_bytes_max = here.saturating_mul(plan.threads as u64);
        let context = Arc::new(self.context(plan));
        let (sender, reports) = mpsc::channel();
        let (running, remote) = threads::start(&context, &sender)?;
        drop(sender);
        let work = move || pass_on(&reports, report);
        let reporting = Builder::new().name("load-share".into()).spawn(work)?;
        let threads = self.threads;
        let (reporting, load) = (Some(reporting), LoadState::Before);
        Ok(Share { context, threads, remote, running, reporting, load })
    }

    pub(super) fn context(&self, plan: Plan) -> RunContext {
        RunContext::of_share(plan, &self.layout, self.threads.clone(), self.unix_offset_ns)
    }
}

impl Share {
    /// Passes an order of the controller on to the threads.
    ///
    /// # Errors
    /// It does not fit the run: the controller is not to be trusted.
    pub fn order(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let order: Order = wire::decode(bytes)?;
        if !sound::order(&order, &self.context, &self.threads) {
            return Err(WireError);
        }
        self.load.take(&order.mail);
        let to = order.thread.map_or_else(|| self.threads.clone(), |thread| thread..thread + 1);
        for thread in to {
            // A thread that has ended has reported why.
            let _ = self.remote.post(thread - self.threads.start, order.mail.clone());
        }
        Ok(())
    }

    /// Whether it makes the first load of the plan, which it does without further orders: another
    /// controller could take the run up.
    pub fn is_loading(&self) -> bool {
        self.load == LoadState::First
    }

    /// Whether all threads have ended, after the order to stop.
    pub fn has_ended(&self) -> bool {
        self.running.iter().all(JoinHandle::is_finished)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        for thread in 0..self.threads.len() {
            let _ = self.remote.post(thread, Mail::Stop);
        }
        let reporting = self.reporting.take();
        for thread in self.running.drain(..).chain(reporting) {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

/// Encodes reports, several at once where they wait.
fn pass_on(reports: &mpsc::Receiver<Report>, mut report: impl FnMut(Vec<u8>)) {
    while let Ok(first) = reports.recv() {
        let mut waiting = vec![first];
        while waiting.len() < REPORTS_MAX
            && let Ok(next) = reports.try_recv()
        {
            waiting.push(next);
        }
        // Invariant: reports hold no type without a form.
        report(wire::encode(&waiting).expect("reports can be encoded"));
    }
}

/// The longest that a phase can take, in seconds, rounded up.
fn longest_s(phase: &Phase) -> u64 {
    let ns = match *phase {
        Phase::Connect { timeout_ns }
        | Phase::Subscribe { timeout_ns }
        | Phase::Probe { timeout_ns }
        | Phase::Resume { timeout_ns }
        | Phase::Drain { timeout_ns } => timeout_ns,
        Phase::WarmUp { duration_ns, .. } | Phase::Measure { duration_ns, .. } => duration_ns,
        Phase::Offline | Phase::Disconnect => 0,
    };
    ns.div_ceil(1_000_000_000)
}
