//! The offset of an agent's clock, from exchanges over the bus.

use std::time::Duration;

use tacho_bus::{Bus, BusError, Bytes, Name};
use tacho_monitor::{ClockMap, Exchange, now_ns};

use super::card::{AgentCard, boot};
use super::protocol::{ClockReading, agent_subject, decode};

/// Time for one exchange.
const EXCHANGE_WITHIN: Duration = Duration::from_secs(2);

/// How an agent's clock stands to this machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    if card.boot.is_some() && card.boot == boot() {
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
