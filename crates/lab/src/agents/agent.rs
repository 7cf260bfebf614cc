//! An agent: waits on a bus, and runs its share of what it is hired for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tacho_bus::{Bus, BusError, Expected, Message, Name, Pattern, Revision, Subscription, Table};
use tacho_load::division::clock_ns;

use super::card::AgentCard;
use super::job::Job;
use super::limits::AgentLimits;
use super::protocol::{
    Attach, Attached, ClockReading, Hire, Hired, RENEW_EVERY, decode, encode, table,
};

/// How long the agent waits for a request before it looks at its other duties.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Requests that may wait.
const REQUESTS_MAX: usize = 256;

/// What an agent is, and what it lets controllers do.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// What it tells about itself.
    pub card: AgentCard,
    /// What it lets controllers do.
    pub limits: AgentLimits,
}

/// Why an agent ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The bus does not work.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Another agent has its name.
    #[error("an agent named '{name}' is on this bus already; give this one another --name")]
    NameTaken {
        /// The name.
        name: String,
    },
}

/// An agent that is on a bus.
#[derive(Debug)]
pub struct Agent {
    bus: Arc<dyn Bus>,
    settings: AgentSettings,
    name: Name,
    requests: Subscription,
    table: Box<dyn Table>,
    revision: Revision,
    renewed: Instant,
    job: Option<Job>,
}

impl Agent {
    /// Registers an agent; [`Agent::serve`] makes it work.
    ///
    /// # Errors
    /// Its name is taken, or the bus does not work.
    pub fn register(bus: Arc<dyn Bus>, settings: AgentSettings) -> Result<Self, AgentError> {
        let name = Name::parse(&settings.card.name)?;
        let pattern = Pattern::parse(&format!("tacho.agent.{name}.*"))?;
        let requests = bus.subscribe(&pattern, REQUESTS_MAX)?;
        let table = table(&*bus)?;
        let revision = table.put(&name, encode(&settings.card), Expected::Absent);
        let revision = revision.map_err(|error| taken(error, &name))?;
        let renewed = Instant::now();
        Ok(Self { bus, settings, name, requests, table, revision, renewed, job: None })
    }

    /// Answers controllers and works for them, until `stop` or the end of the bus. `tell` gets a
    /// line when a run begins or ends here.
    ///
    /// # Errors
    /// The bus has ended, or another agent has taken the name while this one could not reach it.
    pub fn serve(mut self, stop: &AtomicBool, tell: &dyn Fn(&str)) -> Result<(), AgentError> {
        while !stop.load(Ordering::Relaxed) {
            if let Some(request) = self.requests.next(LOOK_EVERY)? {
                self.answer(&request, tell);
            }
            if let Some(job) = self.job.take_if(|job| job.has_ended()) {
                tell(&format!("run {}: {}", job.run(), job.outcome()));
                self.renew()?;
            } else if self.renewed.elapsed() >= RENEW_EVERY {
                self.renew()?;
            }
        }
        if let Some(job) = self.job.take() {
            job.stop();
        }
        // Otherwise its lease ends soon.
        let _ = self.table.delete(&self.name, Expected::Revision(self.revision));
        Ok(())
    }

    /// Writes the card anew. A bus that is away for a while is waited for.
    fn renew(&mut self) -> Result<(), AgentError> {
        self.renewed = Instant::now();
        let mut card = self.settings.card.clone();
        card.run = self.job.as_ref().map(|job| job.run().to_string());
        let card = encode(&card);
        let own = Expected::Revision(self.revision);
        let written = match self.table.put(&self.name, card.clone(), own) {
            // The lease has ended meanwhile.
            Err(BusError::Conflict { .. }) => self.table.put(&self.name, card, Expected::Absent),
            written => written,
        };
        match written {
            Ok(revision) => {
                self.revision = revision;
                Ok(())
            }
            Err(error @ (BusError::Closed { .. } | BusError::Conflict { .. })) => {
                Err(taken(error, &self.name))
            }
            Err(_) => Ok(()),
        }
    }

    fn answer(&mut self, request: &Message, tell: &dyn Fn(&str)) {
        let received_ns = clock_ns();
        let Some(reply) = &request.reply else { return };
        let answer = match request.subject.last() {
            "clock" => encode(&ClockReading { received_ns, answered_ns: clock_ns() }),
            "hire" => {
                let hired = match decode(&request.payload) {
                    Some(hire) => self.hire(&hire),
                    None => Err("it does not understand the request".to_owned()),
                };
                if let (Ok(()), Some(job)) = (&hired, &self.job) {
                    tell(&format!("run {}: hired", job.run()));
                }
                encode(&hired)
            }
            "attach" => {
                let attached = match decode(&request.payload) {
                    Some(attach) => self.attach(attach),
                    None => Err("it does not understand the request".to_owned()),
                };
                if let (Ok(_), Some(job)) = (&attached, &self.job) {
                    tell(&format!("run {}: taken up by another controller", job.run()));
                }
                encode(&attached)
            }
            _ => return,
        };
        // A controller without an answer asks again, or gives up.
        let _ = self.bus.publish(reply, answer);
    }

    fn check_version(&self, other: &str) -> Result<(), String> {
        match &*self.settings.card.version {
            own if own == other => Ok(()),
            own => Err(format!("it is version {own}, and the controller is {other}")),
        }
    }

    fn attach(&self, attach: Attach) -> Attached {
        self.check_version(&attach.version)?;
        match &self.job {
            Some(job) if *job.run() == attach.run && !job.has_ended() => job.attach(attach),
            _ => Err("it does not work for the run any more".to_owned()),
        }
    }

    fn hire(&mut self, hire: &Hire) -> Hired {
        self.check_version(&hire.version)?;
        if let Some(job) = self.job.as_ref().filter(|job| !job.has_ended()) {
            return Err(format!("it works for run {}", job.run()));
        }
        let job = Job::start(&self.bus, &hire.run, &self.name, self.settings.limits.clone());
        self.job = Some(job.map_err(|error| error.to_string())?);
        Ok(())
    }
}

fn taken(error: BusError, name: &Name) -> AgentError {
    match error {
        BusError::Conflict { .. } => AgentError::NameTaken { name: name.to_string() },
        error => AgentError::Bus(error),
    }
}
