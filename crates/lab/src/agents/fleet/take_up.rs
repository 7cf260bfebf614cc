//! A run that another controller has begun, taken up.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tacho_bus::{Bus, BusError, Log, Name};
use tacho_load::division::{Division, LostThen, PastRun};
use tacho_load::{LoadBegun, Plan};

use super::kept::{KeptRun, RunTicket};
use super::{DividedRun, Fleet, FleetError, LOOK_EVERY, Member, Seat, orders};
use crate::agents::protocol::{
    Attach, Attached, LogPiece, agent_subject, decode, encode, log_name, mark,
};

/// Time for one answer of an agent that is asked to work for this controller.
const ATTACH_WITHIN: Duration = Duration::from_secs(3);
/// Time for agents to answer at all: one whose bus was away first waits for that.
const ALL_WITHIN: Duration = Duration::from_secs(20);
/// Time for the log to have what agents say that they have put into it.
const LOGGED_WITHIN: Duration = Duration::from_secs(20);
/// Entries of the log that are read at once.
const ENTRIES_MAX: usize = 64;
/// Exchanges with a clock when a run is taken up.
const EXCHANGES: usize = 20;

/// What is known of the run since it began, beside its reports.
#[derive(Clone, Debug)]
pub(crate) struct Since {
    pub(crate) begun: LoadBegun,
    pub(crate) lost: Vec<LostThen>,
}

impl Fleet {
    /// The agents of a run that another controller has begun, and the lease on it. That of a
    /// controller that has just been killed is waited for.
    ///
    /// # Errors
    /// The bus has no log of the run, another controller has it, or the bus does not work.
    pub fn of_run(
        bus: Arc<dyn Bus>,
        ticket: &RunTicket,
        stop: &AtomicBool,
    ) -> Result<Self, FleetError> {
        if bus.find_log(&log_name(&ticket.run)?)?.is_none() {
            let why = "the bus has no log of the run: it was collected, or it is another bus";
            return Err(FleetError::NotTakenUp { why: why.to_owned() });
        }
        let held = KeptRun::hold(&bus, &ticket.run, ticket.attempt + 1, stop)?;
        Ok(Self { held: Mutex::new(Some(held)), ..Self::of(bus, ticket.cards())? })
    }

    /// Takes up a run that another controller has begun: it goes on with the agents that still work
    /// for it.
    pub(crate) fn take_up(
        &self,
        plan: Plan,
        ticket: &RunTicket,
        since: Since,
        stop: &AtomicBool,
    ) -> Result<DividedRun, FleetError> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        let kept = held.filter(|held| held.run == ticket.run && held.attempt == ticket.attempt);
        let kept = kept.ok_or_else(|| not_taken_up("the lease on the run is not held"))?;
        let missing = || not_taken_up("the bus has no log of the run any more");
        let log = self.bus.find_log(&log_name(&ticket.run)?)?.ok_or_else(missing)?;
        let (division, inputs) = self.divide(plan)?;
        let clients = division.clients();
        let deadline = Instant::now() + ALL_WITHIN;
        let (mut seats, mut logged) = (Vec::new(), Vec::new());
        for (at, (member, input)) in self.members.iter().zip(&inputs).enumerate() {
            let run = (&ticket.run, ticket.attempt);
            let seat = self.seat(member, run, input.clone())?;
            let is_lost = since.lost.iter().any(|lost| lost.share == at);
            let attached = match is_lost {
                true => Err("it was lost before".to_owned()),
                false => self.attach(member, run, &division.identity(at)?, deadline, stop)?,
            };
            if let Some(agent) = ticket.agents.get(at).filter(|_| attached.is_ok()) {
                member.clock().go_on(&*self.bus, &member.card, agent.clock, EXCHANGES)?;
            }
            logged.push(attached);
            seats.push(Seat { clients: clients.get(at).map_or(0, |count| *count as u64), ..seat });
        }
        let reports = read_log(&*log, &mut logged, stop)?;
        let is_worked_on = logged.iter().any(Attached::is_ok);
        let engine = self.go_on(
            division,
            &seats,
            PastRun { begun: since.begun, reports, lost: since.lost },
        )?;
        for (input, logged) in inputs.iter().zip(logged) {
            if let Err(why) = logged {
                input.lost(why);
            }
        }
        let _clocks = self.watch_clocks()?;
        Ok(DividedRun { engine, seats, kept: Some(kept.worked_on(is_worked_on)), _clocks })
    }

    fn go_on(
        &self,
        division: Division,
        seats: &[Seat],
        past: PastRun,
    ) -> Result<tacho_load::Engine, FleetError> {
        Ok(division.take_up(orders(seats), self.on_loss, past)?)
    }

    /// Asks an agent to work for this controller; says how much it has put into the log, or why it
    /// does not.
    fn attach(
        &self,
        member: &Member,
        (run, attempt): (&Name, u32),
        identity: &[u8],
        deadline: Instant,
        stop: &AtomicBool,
    ) -> Result<Attached, FleetError> {
        let subject = agent_subject(&member.name, "attach")?;
        let attach = encode(&Attach {
            run: run.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            attempt,
            assignment: mark(identity),
        });
        loop {
            match self.bus.request(&subject, attach.clone(), ATTACH_WITHIN) {
                Ok(answer) => {
                    let unknown = "it answered what this version does not know";
                    return Ok(decode(&answer).unwrap_or_else(|| Err(unknown.to_owned())));
                }
                Err(BusError::NoResponder { .. } | BusError::TimedOut { .. })
                    if Instant::now() >= deadline =>
                {
                    return Ok(Err("it does not answer any more".to_owned()));
                }
                Err(BusError::NoResponder { .. } | BusError::TimedOut { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            if stop.load(Ordering::Relaxed) {
                return Err(FleetError::Stopped);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Reads what each share has put into the log, up to what it says it has. One whose pieces do not
/// arrive there is lost, from its first missing one on.
fn read_log(
    log: &dyn Log,
    logged: &mut [Attached],
    stop: &AtomicBool,
) -> Result<Vec<VecDeque<Vec<u8>>>, FleetError> {
    let mut shares: Vec<SharePieces> = logged.iter().map(|_| SharePieces::default()).collect();
    let deadline = Instant::now() + LOGGED_WITHIN;
    let mut next = 1;
    loop {
        let entries = log.read(next, ENTRIES_MAX)?;
        for entry in &entries {
            if next == 1 && entry.seq != 1 {
                return Err(not_taken_up("the log of the run has lost its beginning"));
            }
            next = entry.seq + 1;
            let piece = postcard::from_bytes::<LogPiece<'_>>(&entry.payload);
            let piece = piece.map_err(|_| not_taken_up("the log of the run is damaged"))?;
            if let Some(share) = shares.get_mut(usize::from(piece.share)) {
                share.take(&piece);
            }
        }
        let is_whole = logged.iter().zip(&shares).all(|(logged, share)| match logged {
            Ok(pieces) => share.next >= *pieces,
            Err(_) => true,
        });
        if entries.is_empty() && (is_whole || Instant::now() >= deadline) {
            break;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(FleetError::Stopped);
        }
        if entries.is_empty() {
            std::thread::sleep(LOOK_EVERY);
        }
    }
    for (logged, share) in logged.iter_mut().zip(&mut shares) {
        if let Ok(pieces) = logged {
            // What came behind it comes over the link, too.
            share.batches.truncate(share.batches_until(*pieces));
            if share.next < *pieces {
                *logged = Err("a part of its reports is missing in the log".to_owned());
            }
        }
    }
    Ok(shares.into_iter().map(|share| share.batches).collect())
}

/// The pieces of one share.
#[derive(Debug, Default)]
struct SharePieces {
    /// Number of the next piece.
    next: u64,
    partial: Vec<u8>,
    batches: VecDeque<Vec<u8>>,
    /// Number of the piece behind each batch.
    ends: Vec<u64>,
}

impl SharePieces {
    /// Takes a piece in its turn; one that comes twice, or behind a gap, is ignored.
    fn take(&mut self, piece: &LogPiece<'_>) {
        if piece.number != self.next {
            return;
        }
        self.next += 1;
        self.partial.extend_from_slice(piece.bytes);
        if piece.last {
            self.batches.push_back(std::mem::take(&mut self.partial));
            self.ends.push(self.next);
        }
    }

    /// How many batches end within so many pieces.
    fn batches_until(&self, pieces: u64) -> usize {
        self.ends.iter().take_while(|end| **end <= pieces).count()
    }
}

fn not_taken_up(why: &str) -> FleetError {
    FleetError::NotTakenUp { why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together_once_and_in_order() {
        let mut share = SharePieces::default();
        let piece = |number, last, bytes| LogPiece { share: 0, number, last, bytes };
        share.take(&piece(0, true, b"one"));
        share.take(&piece(1, false, b"tw"));
        share.take(&piece(0, true, b"one"));
        share.take(&piece(2, true, b"o"));
        share.take(&piece(2, true, b"o"));
        // A gap: what is behind it is of no use.
        share.take(&piece(4, true, b"four"));
        assert_eq!(share.batches, [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!((share.next, share.batches_until(1), share.batches_until(3)), (3, 1, 2));
    }
}
