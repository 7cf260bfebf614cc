//! The clocks of agents, from exchanges over the bus: measured before a run, and followed while it
//! goes on.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tacho_bus::{Bus, BusError, Bytes, Name};
use tacho_monitor::{ClockMap, Exchange, now_ns};
use tacho_record::AgentClock;

use super::card::{AgentCard, boot};
use super::protocol::{ClockReading, agent_subject, decode};

/// Time for one exchange.
const EXCHANGE_WITHIN: Duration = Duration::from_secs(2);
/// How often a clock is read while a run goes on.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// How an agent's clock stands to this machine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// What is to be added to the agent's clock to get this machine's.
    pub shift_ns: i64,
    /// Bound of its error in either direction.
    pub error_ns: u64,
}

impl ClockOffset {
    /// Processes of one machine share its clock.
    const SAME: Self = Self { shift_ns: 0, error_ns: 0 };
}

/// Measures the offset of an agent's clock by so many exchanges; earlier ones are in `map`.
///
/// # Errors
/// The agent does not answer, or not with the times of a clock.
pub fn clock_offset(
    bus: &dyn Bus,
    card: &AgentCard,
    map: &mut ClockMap,
    exchanges: usize,
) -> Result<ClockOffset, BusError> {
    if shares_clock(card) {
        return Ok(ClockOffset::SAME);
    }
    let subject = agent_subject(&Name::parse(&card.name)?, "clock")?;
    let damaged = || BusError::Refused { why: format!("{} has no usable clock", card.name) };
    let mut there_ns = 0;
    for _ in 0..exchanges.max(1) {
        let asked_ns = now_ns();
        let answer = bus.request(&subject, Bytes::new(), EXCHANGE_WITHIN)?;
        let done_ns = now_ns();
        let ClockReading { received_ns, answered_ns } = decode(&answer).ok_or_else(damaged)?;
        map.add(Exchange { asked_ns, received_ns, answered_ns, done_ns });
        there_ns = answered_ns;
    }
    let here = map.map(there_ns).ok_or_else(damaged)?;
    let shift_ns = i128::from(here.at_ns) - i128::from(there_ns);
    let shift_ns = i64::try_from(shift_ns).map_err(|_| damaged())?;
    Ok(ClockOffset { shift_ns, error_ns: here.error_ns })
}

fn shares_clock(card: &AgentCard) -> bool {
    card.boot.is_some() && card.boot == boot()
}

/// The clock of an agent over all runs, and what a run made of it.
#[derive(Debug, Default)]
pub(super) struct FollowedClock {
    map: ClockMap,
    exchanges: u64,
    /// What the agent adds to its clock in this run.
    applied: ClockOffset,
    /// The largest bound of the error of its times in this run.
    error_ns_max: u64,
}

impl FollowedClock {
    /// Measures before a run; the agent has to add the result to its clock.
    pub(super) fn begin(
        &mut self,
        bus: &dyn Bus,
        card: &AgentCard,
        exchanges: usize,
    ) -> Result<ClockOffset, BusError> {
        self.applied = self.measure(bus, card, exchanges)?;
        self.error_ns_max = self.applied.error_ns;
        Ok(self.applied)
    }

    /// Goes on with what another controller has measured.
    pub(super) fn go_on(
        &mut self,
        bus: &dyn Bus,
        card: &AgentCard,
        applied: ClockOffset,
        exchanges: usize,
    ) -> Result<(), BusError> {
        (self.applied, self.error_ns_max) = (applied, applied.error_ns);
        self.follow(bus, card, exchanges)
    }

    /// What the agent adds to its clock in this run.
    pub(super) const fn applied(&self) -> ClockOffset {
        self.applied
    }

    /// Measures during a run. The agent's times are off by what its clock has drifted since the
    /// run began, and by what is not known.
    pub(super) fn follow(
        &mut self,
        bus: &dyn Bus,
        card: &AgentCard,
        exchanges: usize,
    ) -> Result<(), BusError> {
        let now = self.measure(bus, card, exchanges)?;
        let error_ns = now.error_ns + now.shift_ns.abs_diff(self.applied.shift_ns);
        self.error_ns_max = self.error_ns_max.max(error_ns);
        Ok(())
    }

    fn measure(
        &mut self,
        bus: &dyn Bus,
        card: &AgentCard,
        exchanges: usize,
    ) -> Result<ClockOffset, BusError> {
        let offset = clock_offset(bus, card, &mut self.map, exchanges)?;
        if !shares_clock(card) {
            self.exchanges += exchanges.max(1) as u64;
        }
        Ok(offset)
    }

    /// What the record of a run says.
    pub(super) fn record(&self, card: &AgentCard) -> AgentClock {
        if shares_clock(card) {
            return AgentClock { same: true, ..AgentClock::default() };
        }
        let (drift, drift_error) = self.map.drift();
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        AgentClock {
            same: false,
            ahead_ms: round(-self.applied.shift_ns as f64 / 1e6),
            drift_ppm: round(drift * 1e6),
            drift_error_ppm: round(drift_error * 1e6),
            error_us: self.error_ns_max.div_ceil(1_000),
            exchanges: self.exchanges,
        }
    }
}

/// Reads the clocks of agents until it is dropped. One that does not answer is left out.
#[derive(Debug)]
pub(super) struct ClockWatch {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ClockWatch {
    pub(super) fn start(
        bus: Arc<dyn Bus>,
        mut clocks: Vec<(AgentCard, Arc<Mutex<FollowedClock>>)>,
    ) -> io::Result<Self> {
        clocks.retain(|(card, _)| !shares_clock(card));
        if clocks.is_empty() {
            return Ok(Self { stop: None, thread: None });
        }
        let (stop, stopped) = mpsc::channel::<()>();
        let work = move || {
            while stopped.recv_timeout(FOLLOW_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                clocks.retain(|(card, clock)| {
                    let mut clock = clock.lock().unwrap_or_else(PoisonError::into_inner);
                    clock.follow(&*bus, card, 1).is_ok()
                });
            }
        };
        let thread = Builder::new().name("agent-clocks".to_owned()).spawn(work)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for ClockWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}
