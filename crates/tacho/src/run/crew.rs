//! The agents that make the load of a stage.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tacho_bus::{Bus, LocalBus};
use tacho_lab::agents::{Fleet, FleetError, RunTicket, Wanted};
use tacho_rig::{Companion, Cores};

use super::broker::Broker;
use super::crew_arguments::{CrewArguments, CrewChoice};
use super::keeping::Keeping;
use super::local_agents::LocalAgents;
use crate::exit::{self, Failure};

/// Time for agents of this machine to start.
const START_WITHIN: Duration = Duration::from_secs(20);
/// Time for agents that have just ended a run to be free again.
const FREE_WITHIN: Duration = Duration::from_secs(5);

/// Time for agents that a command of the user starts.
const PROVISION_WITHIN: Duration = Duration::from_secs(120);
/// How often such a command is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The agents that make the load of a stage.
#[derive(Debug)]
pub(super) struct Crew {
    fleet: Arc<Fleet>,
    /// Processes that this one has started; they end with this value.
    local: Option<LocalAgents>,
    /// Commands of the user that have started them; they end with this value.
    _provisions: Vec<Companion>,
}

impl Crew {
    /// Starts or chooses the agents that the arguments ask for.
    pub(super) fn gather(
        arguments: &CrewArguments,
        brokers: &[Broker],
        (cores, keeping): (&Cores, &Keeping),
        stop: &AtomicBool,
    ) -> Result<Option<Self>, Failure> {
        let gather = |bus: Arc<dyn Bus>, wanted: &[Wanted], patience| {
            Ok::<_, FleetError>(arguments.arrange(Fleet::gather(bus, wanted, patience, stop)?))
        };
        Ok(match arguments.choice()? {
            None => None,
            Some(CrewChoice::OnBus(address)) => {
                if let Keeping::TakenUp(_, fleet) = keeping {
                    return Ok(Some(Self::on_bus(Arc::clone(fleet), Vec::new())));
                }
                let bus = arguments.login.connect(address)?;
                let wanted = arguments.wanted();
                let mut provisions = provide(&arguments.provisions())?;
                let fleet = match provisions.is_empty() {
                    true => gather(bus, &wanted, FREE_WITHIN).map_err(|error| failure(&error))?,
                    false => {
                        provided(&mut provisions, || gather(Arc::clone(&bus), &wanted, LOOK_EVERY))?
                    }
                };
                let is_kept = matches!(keeping, Keeping::Kept)
                    && provisions.is_empty()
                    && !brokers.iter().any(Broker::is_started);
                let fleet = match arguments.resume_within().filter(|_| is_kept) {
                    Some(within) => fleet.kept_for(within),
                    None => fleet,
                };
                Some(Self::on_bus(Arc::new(fleet), provisions))
            }
            Some(CrewChoice::Local(count)) => {
                let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
                let addresses = brokers.iter().flat_map(Broker::addresses);
                let targets: BTreeSet<IpAddr> = addresses.map(|target| target.addr.ip()).collect();
                let threads = cores.generator().len().max(count);
                let shares: Vec<usize> = (0..count)
                    .map(|at| (at + 1) * threads / count - at * threads / count)
                    .collect();
                let local = LocalAgents::start(&bus, &shares, &targets)?;
                let wanted = [Wanted { label: None, count }];
                let fleet = gather(bus, &wanted, START_WITHIN).map_err(|error| failure(&error))?;
                let fleet = Arc::new(fleet.on_cores(cores.generator().to_vec()));
                Some(Self { fleet, local: Some(local), _provisions: Vec::new() })
            }
        })
    }

    const fn on_bus(fleet: Arc<Fleet>, provisions: Vec<Companion>) -> Self {
        Self { fleet, local: None, _provisions: provisions }
    }

    pub(super) fn fleet(&self) -> Arc<Fleet> {
        Arc::clone(&self.fleet)
    }

    /// Whether this process has started them.
    pub(super) const fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// Whether some of them run on this machine.
    pub(super) fn is_here(&self) -> bool {
        self.is_local() || self.fleet.is_on_this_machine()
    }
}

/// The agents of a run whose controller is gone, for the command that made it.
pub(super) fn of_run(arguments: &CrewArguments, ticket: &RunTicket) -> Result<Fleet, Failure> {
    let Some(CrewChoice::OnBus(address)) = arguments.choice()? else {
        return Err(Failure::new(exit::INVALID_CONFIG, "the run has no agents on a bus"));
    };
    let bus = arguments.login.connect(address)?;
    // Until the run goes on a signal ends the process.
    let fleet = Fleet::of_run(bus, ticket, &AtomicBool::new(false));
    Ok(arguments.arrange(fleet.map_err(|error| failure(&error))?))
}

/// Starts the commands of the user that start agents.
fn provide(commands: &[String]) -> Result<Vec<Companion>, Failure> {
    let started = commands.iter().map(|command| Companion::start(command));
    started.collect::<Result<_, _>>().map_err(|error| Failure::new(exit::UNEXPECTED, error))
}

/// Waits for the agents that commands start, as long as none of these has ended.
fn provided(
    provisions: &mut [Companion],
    gather: impl Fn() -> Result<Fleet, FleetError>,
) -> Result<Fleet, Failure> {
    let deadline = Instant::now() + PROVISION_WITHIN;
    loop {
        match gather() {
            Err(FleetError::TooFew { .. }) if Instant::now() < deadline => {}
            gathered => return gathered.map_err(|error| failure(&error)),
        }
        if let Some(ended) = provisions.iter_mut().find_map(Companion::ended) {
            let why = format!("{ended} before all agents were on the bus (--provision)");
            return Err(Failure::new(exit::UNEXPECTED, why));
        }
    }
}

/// An error of a fleet with its exit code.
pub(super) fn failure(error: &FleetError) -> Failure {
    let code = match error {
        FleetError::TooFew { .. }
        | FleetError::Refused { .. }
        | FleetError::NotCalibrated { .. }
        | FleetError::NotTakenUp { .. }
        | FleetError::Divide(_) => exit::INVALID_CONFIG,
        FleetError::Stopped => exit::ABORTED,
        _ => exit::UNEXPECTED,
    };
    Failure::new(code, error)
}
