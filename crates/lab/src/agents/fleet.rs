//! The controller's side: agents chosen for a run, and the run on them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tacho_bus::{Bus, BusError, Link, LinkEnds, LinkEvent, LinkLimits, Name};
use tacho_load::division::{
    DivideError, Division, OnLoss, PairPlacement, Process, SendOrder, ShareInput,
};
use tacho_load::{Engine, Plan};
use tacho_record::{AgentRecord, Timestamp};

use super::SILENCE;
use super::card::{AgentCard, boot};
use super::clock::{ClockWatch, FollowedClock};
use super::figures::{AgentCounters, AgentSample, Told};
use super::protocol::{
    Hire, Hired, Keep, ToAgent, ToController, agent_subject, decode, encode, link_ends, table,
};

mod kept;
mod take_up;

pub(crate) use kept::KeptRun;
pub use kept::RunTicket;
pub(crate) use take_up::Since;

/// Time for an agent to say that it is hired.
const HIRE_WITHIN: Duration = Duration::from_secs(3);
/// Time for agents to prepare a plan.
const PREPARE_WITHIN: Duration = Duration::from_secs(60);
/// How often waiting looks at the stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Exchanges with a clock before a run.
const EXCHANGES: usize = 20;
/// Exchanges with a clock after a run.
const EXCHANGES_AFTER: usize = 8;

/// Which agents a run wants, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// A label that they must have; any agent without it.
    pub label: Option<(String, String)>,
    /// How many.
    pub count: usize,
}

impl FromStr for Wanted {
    type Err = String;

    /// Reads `N`, or `LABEL=VALUE:N`.
    fn from_str(text: &str) -> Result<Self, String> {
        let complain = || format!("'{text}': write a number of agents, or LABEL=VALUE:N");
        let (label, count) = match text.rsplit_once(':') {
            None => (None, text),
            Some((label, count)) => {
                let (name, value) = label.split_once('=').ok_or_else(complain)?;
                (Some((name.to_owned(), value.to_owned())), count)
            }
        };
        let count = count.parse().ok().filter(|count| (1..=1_000).contains(count));
        Ok(Self { label, count: count.ok_or_else(complain)? })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            None => write!(f, "{}", self.count),
            Some((name, value)) => write!(f, "{} with {name}={value}", self.count),
        }
    }
}

/// Why a run on agents did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The bus does not work.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// There are too few agents.
    #[error("the bus has {found} free agents for a run that wants {wanted}{reasons}")]
    TooFew {
        /// How many are there and free.
        found: usize,
        /// What was wanted.
        wanted: Wanted,
        /// Why others do not count, each after a semicolon.
        reasons: String,
    },
    /// An agent does not take its part.
    #[error("agent {agent} refuses: {why}")]
    Refused {
        /// The agent.
        agent: String,
        /// Its reason.
        why: String,
    },
    /// Weights by calibration need one of each agent.
    #[error(
        "agent {agent} has no calibration: run 'tacho calibrate' there, then start the agent anew"
    )]
    NotCalibrated {
        /// The agent.
        agent: String,
    },
    /// An agent that was chosen is gone.
    #[error("agent {agent} does not answer any more")]
    Gone {
        /// The agent.
        agent: String,
    },
    /// The plan cannot be divided.
    #[error(transparent)]
    Divide(#[from] DivideError),
    /// An agent did not prepare in time.
    #[error("agent {agent} was not ready within {waited_s} s")]
    NotReady {
        /// The agent.
        agent: String,
        /// Time waited.
        waited_s: u64,
    },
    /// The run cannot be taken up.
    #[error("{why}")]
    NotTakenUp {
        /// Why not.
        why: String,
    },
    /// The run was stopped before it began.
    #[error("stopped before the load began")]
    Stopped,
    /// The system refused a resource.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// All agents on a bus, by name.
///
/// # Errors
/// The bus does not work.
pub fn agents(bus: &dyn Bus) -> Result<Vec<AgentCard>, BusError> {
    let table = table(bus)?;
    let mut cards = Vec::new();
    for key in table.keys()? {
        // One may leave, or be of another version, between two calls.
        cards.extend(table.get(&key)?.and_then(|value| decode::<AgentCard>(&value.payload)));
    }
    Ok(cards)
}

/// Agents chosen for runs.
pub struct Fleet {
    bus: Arc<dyn Bus>,
    members: Vec<Member>,
    /// Cores for the agents' threads in turn, where they are of this machine.
    cores: Vec<usize>,
    on_loss: OnLoss,
    spread: PairPlacement,
    weights: Weights,
    /// How long agents wait for another controller, where one may take a run up.
    keeps_for: Option<Duration>,
    /// The lease on a run that is to be taken up.
    held: Mutex<Option<KeptRun>>,
}

/// How the clients of a run are divided over its agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Weights {
    /// In proportion to their generator threads.
    #[default]
    Threads,
    /// All alike.
    Equal,
    /// In proportion to what each carries by its calibration.
    Calibrated,
}

#[derive(Debug)]
struct Member {
    card: AgentCard,
    name: Name,
    clock: Arc<Mutex<FollowedClock>>,
}

impl Fleet {
    /// Chooses free agents of this version, in the order of their names; waits up to `patience`
    /// until there are enough.
    ///
    /// # Errors
    /// There are not, or the bus does not work.
    pub fn gather(
        bus: Arc<dyn Bus>,
        wanted: &[Wanted],
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<Self, FleetError> {
        let deadline = Instant::now() + patience;
        loop {
            match choose(agents(&*bus)?, wanted) {
                Ok(cards) => {
                    return Ok(Self::of(bus, cards)?);
                }
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(_) if stop.load(Ordering::Relaxed) => return Err(FleetError::Stopped),
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    fn of(bus: Arc<dyn Bus>, cards: Vec<AgentCard>) -> Result<Self, BusError> {
        let member = |card: AgentCard| -> Result<Member, BusError> {
            let name = Name::parse(&card.name)?;
            Ok(Member { card, name, clock: Arc::default() })
        };
        Ok(Self {
            bus,
            members: cards.into_iter().map(member).collect::<Result<_, _>>()?,
            cores: Vec::new(),
            on_loss: OnLoss::default(),
            spread: PairPlacement::default(),
            weights: Weights::default(),
            keeps_for: None,
            held: Mutex::default(),
        })
    }

    /// From the beginning of its load a run can be taken up by another controller, for which
    /// agents wait so long.
    #[must_use]
    pub fn kept_for(self, keeps_for: Duration) -> Self {
        Self { keeps_for: Some(keeps_for), ..self }
    }

    /// Gives the agents' threads these cores of this machine in turn.
    #[must_use]
    pub fn on_cores(self, cores: Vec<usize>) -> Self {
        Self { cores, ..self }
    }

    /// What becomes of a run that loses an agent under load; it goes on unless set.
    #[must_use]
    pub fn on_loss(self, on_loss: OnLoss) -> Self {
        Self { on_loss, ..self }
    }

    /// Divides clients by these weights, and places those that exchange messages so.
    #[must_use]
    pub fn spread(self, spread: PairPlacement, weights: Weights) -> Self {
        Self { spread, weights, ..self }
    }

    /// Generator threads of all agents.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.members.iter().map(|member| member.card.threads).sum()
    }

    /// Whether some agent runs on this machine.
    #[must_use]
    pub fn is_on_this_machine(&self) -> bool {
        let own = boot();
        own.is_some() && self.members.iter().any(|member| member.card.boot == own)
    }

    /// The agents' names.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.members.iter().map(|member| member.card.name.clone())
    }

    /// The agents' cards.
    pub fn cards(&self) -> impl Iterator<Item = &AgentCard> {
        self.members.iter().map(|member| &member.card)
    }

    /// Divides the plan, hires the agents, has them prepare, and starts the phases.
    ///
    /// # Errors
    /// The plan cannot be divided, or an agent does not take its part; no load was made.
    pub fn start(&self, plan: Plan, stop: &AtomicBool) -> Result<DividedRun, FleetError> {
        let (division, inputs) = self.divide(plan)?;
        let run = run_name()?;
        let kept = self.keeps_for.map(|_| KeptRun::begin(&self.bus, &run, stop)).transpose()?;
        match self.begin(division, inputs, &run, stop) {
            Ok((engine, seats)) => {
                let _clocks = self.watch_clocks()?;
                Ok(DividedRun { engine, seats, kept, _clocks })
            }
            Err(error) => {
                // There is nothing to take up. A log that cannot be deleted is empty.
                let _ = kept.map(|kept| kept.collected());
                Err(error)
            }
        }
    }

    fn begin(
        &self,
        division: Division,
        inputs: Vec<ShareInput>,
        run: &Name,
        stop: &AtomicBool,
    ) -> Result<(Engine, Vec<Seat>), FleetError> {
        let clients = division.clients();
        let mut seats = Vec::with_capacity(self.members.len());
        for ((member, input), clients) in self.members.iter().zip(inputs).zip(clients) {
            seats.push(Seat { clients: clients as u64, ..self.hire(member, run, input)? });
        }
        let mut first_thread = 0;
        for (at, (member, seat)) in self.members.iter().zip(&seats).enumerate() {
            let offset = member.clock().begin(&*self.bus, &member.card, EXCHANGES)?;
            let own = first_thread..first_thread + member.card.threads;
            first_thread = own.end;
            let core = |thread: usize| self.cores[thread % self.cores.len()];
            let prepare = ToAgent::Prepare {
                assignment: division.assignment(at)?,
                clock_shift_ns: offset.shift_ns,
                cores: if self.cores.is_empty() { Vec::new() } else { own.map(core).collect() },
                keep: self.keeps_for.map(|keeps_for| Keep {
                    share: at as u16,
                    within_ms: keeps_for.as_millis() as u64,
                }),
            };
            seat.link.send(&encode(&prepare))?;
        }
        let deadline = Instant::now() + PREPARE_WITHIN;
        for (member, seat) in self.members.iter().zip(&seats) {
            seat.wait_ready(member, deadline, stop)?;
        }
        Ok((division.start(orders(&seats), self.on_loss)?, seats))
    }

    fn divide(&self, plan: Plan) -> Result<(Division, Vec<ShareInput>), FleetError> {
        let processes = self.members.iter().map(|member| self.process(member));
        let processes = processes.collect::<Result<Vec<_>, _>>()?;
        Ok(Division::spread(plan, &processes, self.spread)?)
    }

    fn watch_clocks(&self) -> std::io::Result<ClockWatch> {
        let clocks = self.members.iter();
        let clocks = clocks.map(|member| (member.card.clone(), Arc::clone(&member.clock)));
        ClockWatch::start(Arc::clone(&self.bus), clocks.collect())
    }

    fn process(&self, member: &Member) -> Result<Process, FleetError> {
        let (threads, calibrated) =
            (member.card.threads, member.card.calibrated_messages_per_s.filter(|rate| *rate > 0.0));
        let capacity = match self.weights {
            Weights::Threads => threads as f64,
            Weights::Equal => 1.0,
            Weights::Calibrated => calibrated
                .ok_or_else(|| FleetError::NotCalibrated { agent: member.name.to_string() })?,
        };
        Ok(Process { name: format!("agent {}", member.name), threads, capacity })
    }

    /// Opens the link to an agent and hires it.
    fn hire(&self, member: &Member, run: &Name, input: ShareInput) -> Result<Seat, FleetError> {
        let seat = self.seat(member, (run, 0), input)?;
        let hire = Hire { run: run.clone(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let subject = agent_subject(&member.name, "hire")?;
        let answer = match self.bus.request(&subject, encode(&hire), HIRE_WITHIN) {
            Err(BusError::NoResponder { .. } | BusError::TimedOut { .. }) => {
                return Err(FleetError::Gone { agent: member.name.to_string() });
            }
            answer => answer?,
        };
        let refused = |why| FleetError::Refused { agent: member.name.to_string(), why };
        let hired: Hired = decode(&answer)
            .ok_or_else(|| refused("it answered what this version does not know".to_owned()))?;
        hired.map_err(refused)?;
        Ok(seat)
    }

    /// Opens the link of this attempt to an agent.
    fn seat(
        &self,
        member: &Member,
        (run, attempt): (&Name, u32),
        input: ShareInput,
    ) -> Result<Seat, FleetError> {
        let LinkEnds { own, other } = link_ends(run, attempt, &member.name)?;
        let ends = LinkEnds { own: other, other: own };
        let (sender, prepared) = mpsc::sync_channel(4);
        let counters: Arc<Mutex<Option<AgentCounters>>> = Arc::default();
        let told = Arc::clone(&counters);
        let on_event = move |event| take(event, &input, &sender, &told);
        let limits = LinkLimits { silence: SILENCE, ..LinkLimits::default() };
        let link = Arc::new(Link::open(Arc::clone(&self.bus), ends, limits, on_event)?);
        let told = Told { counters, link: Arc::downgrade(&link) };
        Ok(Seat { link, prepared, told, clients: 0 })
    }

    /// What the record of `run`, which is over, says about the agents.
    #[must_use]
    pub fn records(&self, run: &DividedRun) -> Vec<AgentRecord> {
        let records = self.members.iter().zip(&run.seats).map(|(member, seat)| {
            let mut clock = member.clock();
            // One that is lost does not answer: what is known of its clock has to do.
            let _ = clock.follow(&*self.bus, &member.card, EXCHANGES_AFTER);
            AgentRecord {
                name: member.card.name.clone(),
                threads: member.card.threads as u64,
                clients: seat.clients,
                clock: clock.record(&member.card),
                lost: None,
            }
        });
        records.collect()
    }
}

impl Member {
    fn clock(&self) -> MutexGuard<'_, FollowedClock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("members", &self.members).finish_non_exhaustive()
    }
}

/// A run on a fleet. Dropping it ends the run, and with it the agents' work for it.
pub struct DividedRun {
    // Ends before the links.
    engine: Engine,
    seats: Vec<Seat>,
    /// What lets another controller take it up.
    kept: Option<KeptRun>,
    /// Ends with the run.
    _clocks: ClockWatch,
}

impl DividedRun {
    /// The engine, as of any run.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What each agent has used so far.
    pub(crate) fn samples(&self) -> Vec<AgentSample> {
        self.seats.iter().map(|seat| seat.told.sample()).collect()
    }

    /// Bytes that the controller has sent to and received from all agents.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let all = self.seats.iter().map(|seat| seat.link.bytes());
        all.fold((0, 0), |sum, bytes| (sum.0 + bytes.0, sum.1 + bytes.1))
    }
}

/// An agent in a run.
struct Seat {
    link: Arc<Link>,
    /// Whether it is ready, or why not.
    prepared: mpsc::Receiver<Result<(), String>>,
    told: Told,
    /// Its clients.
    clients: u64,
}

impl Seat {
    fn wait_ready(
        &self,
        member: &Member,
        deadline: Instant,
        stop: &AtomicBool,
    ) -> Result<(), FleetError> {
        let agent = || member.name.to_string();
        while !stop.load(Ordering::Relaxed) {
            match self.prepared.recv_timeout(LOOK_EVERY) {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(why)) => return Err(FleetError::Refused { agent: agent(), why }),
                Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(_) => {
                    let waited_s = PREPARE_WITHIN.as_secs();
                    return Err(FleetError::NotReady { agent: agent(), waited_s });
                }
            }
        }
        Err(FleetError::Stopped)
    }
}

/// The way of orders to each agent.
fn orders(seats: &[Seat]) -> Vec<SendOrder> {
    let send = seats.iter().map(|seat| {
        let link = Arc::clone(&seat.link);
        let send = move |order: &[u8]| link.send(&encode(&ToAgent::Order(order.to_vec()))).is_ok();
        Box::new(send) as SendOrder
    });
    send.collect()
}

/// Takes what a link tells.
fn take(
    event: LinkEvent,
    input: &ShareInput,
    prepared: &mpsc::SyncSender<Result<(), String>>,
    counters: &Mutex<Option<AgentCounters>>,
) {
    // Answers after the first are of no interest.
    let answer = |answer| {
        let _ = prepared.try_send(answer);
    };
    let lost = |why: String| {
        answer(Err(why.clone()));
        input.lost(why);
    };
    match event {
        LinkEvent::Message(message) => match decode(&message) {
            Some(ToController::Ready) => answer(Ok(())),
            Some(ToController::Refused(why)) => answer(Err(why)),
            Some(ToController::Reports(reports)) => {
                if input.take(&reports).is_err() {
                    lost("it reported what does not fit the run".to_owned());
                }
            }
            Some(ToController::Counters(now)) => {
                *counters.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
            }
            Some(ToController::Failed(why)) => lost(why),
            None => lost("it sent what this version does not know".to_owned()),
        },
        LinkEvent::Ended(why) | LinkEvent::Silent(why) => lost(why),
    }
}

/// The agents of a run: those with labels first, so that others do not take them.
fn choose(all: Vec<AgentCard>, wanted: &[Wanted]) -> Result<Vec<AgentCard>, FleetError> {
    let mut reasons = String::new();
    let mut free: BTreeMap<String, AgentCard> = BTreeMap::new();
    for card in all {
        let own = env!("CARGO_PKG_VERSION");
        if card.version != own {
            reasons += &format!("; {} has version {}, not {own}", card.name, card.version);
        } else if let Some(run) = &card.run {
            reasons += &format!("; {} works for run {run}", card.name);
        } else {
            free.insert(card.name.clone(), card);
        }
    }
    let mut chosen = Vec::new();
    let (labelled, others): (Vec<_>, Vec<_>) =
        wanted.iter().partition(|wanted| wanted.label.is_some());
    for wanted in labelled.into_iter().chain(others) {
        let has = |card: &&AgentCard| {
            wanted.label.as_ref().is_none_or(|(name, value)| card.has_label(name, value))
        };
        let names: Vec<String> =
            free.values().filter(has).map(|card| card.name.clone()).take(wanted.count).collect();
        if names.len() < wanted.count {
            let (found, wanted) = (names.len(), wanted.clone());
            return Err(FleetError::TooFew { found, wanted, reasons });
        }
        chosen.extend(names.iter().filter_map(|name| free.remove(name)));
    }
    Ok(chosen)
}

/// A name that no other run has.
fn run_name() -> Result<Name, BusError> {
    let now = Timestamp::now();
    let (nanoseconds, process) = (now.subsecond_ns(), std::process::id());
    Name::parse(&format!("{process:x}-{nanoseconds:x}-{:x}", fastrand::u32(..)))
}
