//! Draining: the broker takes no more clients and sends its own away bit by bit, so that others can
//! take them. Then it ends, or waits for its operator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tacho_net::clock;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::View;
use super::listening::CannotListen;
use crate::events::{Event, EventKind, Events};
use crate::mail::Mail;
use crate::query::Query;

/// How often clients are sent away.
const TICK: Duration = Duration::from_millis(20);
/// How long a broker that is drained waits before it ends: who follows the drain learns its end.
const ENDS_AFTER: Duration = Duration::from_secs(1);

/// How the broker is drained.
#[derive(Clone, Debug)]
pub(super) struct DrainPlan {
    /// Until the first client is sent away.
    pub(super) wait: Duration,
    /// Clients per second that are sent away, or more where the deadline needs it.
    pub(super) rate_per_s: u32,
    /// From the beginning until no client is left.
    pub(super) deadline: Duration,
    /// Where clients of 5.0 are told to go.
    pub(super) server_reference: Option<Arc<str>>,
    /// The broker does not end.
    pub(super) keep: bool,
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DrainPhase {
    /// There is none.
    #[default]
    Off,
    /// No client is taken any more.
    Waiting,
    /// Clients are sent away.
    Disconnecting,
    /// None are left.
    Drained,
}

/// A drain as operators see it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DrainStatus {
    phase: DrainPhase,
    clients_left: u64,
    /// Clients that were sent away.
    disconnected: u64,
    /// The broker ends when no client is left.
    ends: bool,
    server_reference: Option<String>,
    /// Until the deadline.
    left_s: Option<u64>,
}

/// The drain of a broker.
#[derive(Default)]
pub(super) struct Drain {
    state: Mutex<DrainState>,
    /// Held while a drain is begun or ended.
    change: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct DrainState {
    phase: DrainPhase,
    plan: Option<DrainPlan>,
    ends_ns: Option<u64>,
    disconnected: u64,
    /// Sends the clients away.
    task: Option<AbortHandle>,
}

impl Drain {
    pub(super) fn phase(&self) -> DrainPhase {
        self.lock().phase
    }

    fn begin(&self, plan: DrainPlan) {
        let ends_ns = Some(clock::now_ns().saturating_add(plan.deadline.as_nanos() as u64));
        let (phase, plan) = (DrainPhase::Waiting, Some(plan));
        *self.lock() = DrainState { phase, plan, ends_ns, ..DrainState::default() };
    }

    /// No client is sent away any more.
    fn stop(&self) {
        let mut state = self.lock();
        if let Some(task) = state.task.take() {
            task.abort();
        }
        state.phase = DrainPhase::Drained;
    }

    fn enter(&self, phase: DrainPhase) {
        self.lock().phase = phase;
    }

    fn lock(&self) -> MutexGuard<'_, DrainState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View {
    pub(super) fn drain_status(&self) -> DrainStatus {
        let state = self.drain.lock();
        let ends_ns = state.ends_ns.filter(|_| state.phase != DrainPhase::Drained);
        let left = ends_ns.map(|at| between(clock::now_ns(), at));
        let plan = state.plan.as_ref();
        DrainStatus {
            phase: state.phase,
            clients_left: self.clients_connected(),
            disconnected: state.disconnected,
            ends: plan.is_some_and(|plan| !plan.keep),
            server_reference: plan
                .and_then(|plan| plan.server_reference.as_deref().map(str::to_owned)),
            left_s: left.map(|left| left.as_secs()),
        }
    }

    /// Clients that are connected, without this broker's own links to others.
    fn clients_connected(&self) -> u64 {
        let links: usize = self.bridges.status().iter().map(|bridge| bridge.connected).sum();
        self.total(|stats| &stats.sessions_connected).saturating_sub(links as u64)
    }

    /// Takes no more clients from now on, and sends those that are here away as planned. False if a
    /// drain is under way already.
    pub(super) async fn begin_drain(
        self: &Arc<Self>,
        plan: DrainPlan,
        events: Arc<Events>,
    ) -> Result<bool, CannotListen> {
        let _one_at_a_time = self.drain.change.lock().await;
        if self.drain.phase() != DrainPhase::Off {
            return Ok(false);
        }
        self.drain.begin(plan.clone());
        if let Err(error) = self.take_no_clients(plan.server_reference.as_ref()).await {
            // What can be undone is; the caller is told what went wrong.
            let _ = self.take_clients().await;
            return Err(error);
        }
        tell(&events, "begun: no client is taken any more");
        tracing::info!(
            "drain: listeners are closed; clients are disconnected in {} s, {} per second, within \
             {} s from now",
            plan.wait.as_secs(),
            plan.rate_per_s,
            plan.deadline.as_secs()
        );
        let task = tokio::spawn(Arc::clone(self).drain(plan, events));
        self.drain.lock().task = Some(task.abort_handle());
        Ok(true)
    }

    /// Takes clients again; false if there was no drain.
    pub(super) async fn end_drain(&self, events: &Events) -> Result<bool, CannotListen> {
        let _one_at_a_time = self.drain.change.lock().await;
        if self.drain.phase() == DrainPhase::Off {
            return Ok(false);
        }
        self.take_clients().await?;
        tell(events, "ended: clients are taken again");
        tracing::info!("the drain has ended: clients are taken again");
        Ok(true)
    }

    /// Where this fails, the broker stays drained, and it can be tried again.
    async fn take_clients(&self) -> Result<(), CannotListen> {
        self.drain.stop();
        for shard in 0..self.stats.len() {
            self.ask(shard, Query::EndDrain).await?;
        }
        self.open_listeners().await?;
        *self.drain.lock() = DrainState::default();
        Ok(())
    }

    async fn take_no_clients(&self, reference: Option<&Arc<str>>) -> Result<(), CannotListen> {
        for shard in 0..self.stats.len() {
            let reference = reference.cloned();
            self.ask(shard, |reply| Query::BeginDrain(reference, reply)).await?;
        }
        Ok(self.close_listeners().await?)
    }

    async fn drain(self: Arc<Self>, plan: DrainPlan, events: Arc<Events>) {
        sleep(plan.wait).await;
        self.drain.enter(DrainPhase::Disconnecting);
        tell(&events, "clients are disconnected");
        self.send_all_away(&plan).await;
        self.drain.enter(DrainPhase::Drained);
        tell(&events, "no client is left");
        let status = self.drain_status();
        let (sent, left) = (status.disconnected, status.clients_left);
        tracing::info!("drained: {sent} clients were disconnected, {left} are left");
        if !plan.keep {
            sleep(ENDS_AFTER).await;
            tracing::info!("the broker ends, since it is drained");
            for shard in 0..self.stats.len() {
                self.remote.post(shard, Mail::Shutdown);
            }
        }
    }

    /// Returns when no client is left, or at the deadline if the broker ends then: its end sends
    /// away those that are left.
    async fn send_all_away(&self, plan: &DrainPlan) {
        let (ends_ns, shards) = (self.drain.lock().ends_ns, self.stats.len());
        let mut pace = Pace::new(plan.rate_per_s);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut last_ns, mut first, mut is_silent) = (clock::now_ns(), 0, false);
        loop {
            ticks.tick().await;
            let now_ns = clock::now_ns();
            let left_time = ends_ns.map_or(Duration::MAX, |at| between(now_ns, at));
            if left_time.is_zero() && !plan.keep {
                return;
            }
            let mut due = pace.due(between(last_ns, now_ns), self.clients_connected(), left_time);
            (last_ns, first) = (now_ns, (first + 1) % shards);
            let mut none_left = true;
            for at in 0..shards {
                let share = due.div_ceil(shards - at);
                let shard = (first + at) % shards;
                match self.ask(shard, |reply| Query::SendAway(share, reply)).await {
                    Ok(sent) => {
                        due = due.saturating_sub(sent.count);
                        pace.sent(sent.count);
                        self.drain.lock().disconnected += sent.count as u64;
                        none_left &= sent.none_left;
                    }
                    Err(error) => {
                        none_left = false;
                        if !std::mem::replace(&mut is_silent, true) {
                            tracing::warn!("drain: {error}; trying again");
                        }
                    }
                }
            }
            if none_left {
                return;
            }
        }
    }
}

fn between(from_ns: u64, to_ns: u64) -> Duration {
    Duration::from_nanos(to_ns.saturating_sub(from_ns))
}

fn tell(events: &Events, what: &str) {
    let unix_ms = (clock::unix_ns() / 1_000_000) as i64;
    events.tell(Event { reason: Some(what.to_owned()), ..Event::new(EventKind::Drain, unix_ms) });
}

/// How many clients are due to be sent away.
struct Pace {
    rate_per_s: f64,
    owed: f64,
}

impl Pace {
    fn new(rate_per_s: u32) -> Self {
        Self { rate_per_s: rate_per_s.into(), owed: 0.0 }
    }

    /// So many are due after this time. With this many clients, and this much time until the
    /// deadline, the rate may be higher than asked for. What could not be sent away in time lapses,
    /// but for one tick's.
    fn due(&mut self, elapsed: Duration, left: u64, left_time: Duration) -> usize {
        if left_time.is_zero() {
            return usize::MAX;
        }
        let rate = self.rate_per_s.max(left as f64 / left_time.as_secs_f64());
        let more = rate * elapsed.as_secs_f64();
        self.owed = (self.owed + more).min((2.0 * more).max(1.0));
        self.owed as usize
    }

    fn sent(&mut self, count: usize) {
        self.owed = (self.owed - count as f64).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(20);

    /// Clients that are sent away in so many ticks, if all can be.
    fn sent(pace: &mut Pace, ticks: usize, left: u64, left_s: u64) -> usize {
        let each = |_| {
            let due = pace.due(TICK, left, Duration::from_secs(left_s));
            pace.sent(due);
            due
        };
        (0..ticks).map(each).sum()
    }

    #[test]
    fn a_second_sends_away_as_many_as_the_rate_says_also_a_low_one() {
        for rate in [1, 7, 500, 20_000] {
            let sent = sent(&mut Pace::new(rate), 50, 1, 1_000) as f64;
            assert!((sent - f64::from(rate)).abs() <= 1.0, "{rate}: {sent}");
        }
    }

    #[test]
    fn a_deadline_raises_the_rate_and_what_is_left_then_goes_at_once() {
        let mut pace = Pace::new(1);
        let raised = sent(&mut pace, 50, 1_000, 10);
        assert!((99..=101).contains(&raised), "{raised}");
        assert_eq!(pace.due(TICK, 3, Duration::ZERO), usize::MAX);
    }

    #[test]
    fn what_could_not_be_sent_away_does_not_come_all_at_once() {
        let mut pace = Pace::new(500);
        for _ in 0..100 {
            pace.due(TICK, 1, Duration::MAX);
        }
        assert_eq!(pace.due(TICK, 1, Duration::MAX), 20);
    }
}
