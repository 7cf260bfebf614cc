//! Load shedding in steps, raised while the loop lags or buffer memory is short.
//!
//! Lag is the mean time that an event which arrives at a random moment waits, doubled: the sum of
//! each turn's duration times the wait of what arrives in it, divided by the length of the window.
//! That wait is the turn's duration, or several of them if the turn leaves connections unread or
//! unwritten. One long turn among idle ones hardly counts; turns without a pause between them count
//! in full.
//!
//! A shard whose lag stays above a second is unhealthy, although it makes progress.

use tacho_codec::ReasonCode;
use tacho_net::ConnId;
use tacho_session::server::End;

use crate::config;
use crate::ending::Ending;
use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};

/// A client that has sent less in a window is not held back for load: the mean may be less where
/// all others are.
const LIGHT_BYTES: u64 = 1024;
/// A loop that lags more than this is unhealthy.
const LAG_US_MAX: u64 = 1_000_000;

/// The step of load shedding; each step includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OverloadLevel {
    Normal,
    SlowAccepts,
    ShedQos0,
    Throttle,
    Refuse,
}

impl OverloadLevel {
    const ALL: [Self; 5] =
        [Self::Normal, Self::SlowAccepts, Self::ShedQos0, Self::Throttle, Self::Refuse];

    const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::SlowAccepts => "slow accepts",
            Self::ShedQos0 => "shed QoS 0",
            Self::Throttle => "throttle publishers",
            Self::Refuse => "refuse connections",
        }
    }
}

/// The decision on the step, from turn durations and memory.
#[derive(Debug)]
struct Ladder {
    settings: config::Overload,
    level: OverloadLevel,
    /// Number of the window, to distinguish its counts from those of earlier windows.
    window: u32,
    window_began_ns: u64,
    /// Sum of each turn's duration times the wait of what arrived in it, in square microseconds.
    waits_us: u64,
    lag_us: u64,
    /// Since when the lag has been above what is healthy.
    lagging_since_ns: Option<u64>,
    memory_percent: u64,
    calm_windows: u64,
}

impl Ladder {
    pub(super) fn new(settings: &config::Overload) -> Self {
        Self {
            settings: settings.clone(),
            level: OverloadLevel::Normal,
            window: 0,
            window_began_ns: 0,
            waits_us: 0,
            lag_us: 0,
            lagging_since_ns: None,
            memory_percent: 0,
            calm_windows: 0,
        }
    }

    /// Adds a turn's duration and the wait of what arrived in it; true at the end of the window.
    #[inline]
    fn turned(&mut self, now_ns: u64, turn_ns: u64, wait_ns: u64) -> bool {
        let (turn_us, wait_us) = (turn_ns / 1_000, wait_ns / 1_000);
        self.waits_us = self.waits_us.saturating_add(turn_us.saturating_mul(wait_us));
        now_ns >= self.window_ends_ns()
    }

    const fn window_ends_ns(&self) -> u64 {
        self.window_began_ns + self.settings.window_ms as u64 * 1_000_000
    }

    /// Ends the window; returns the previous step if it changes.
    fn look(&mut self, now_ns: u64, memory_percent: u64) -> Option<OverloadLevel> {
        let window_ns = u64::from(self.settings.window_ms) * 1_000_000;
        // The first window began before the clock was known.
        let began_ns = if self.window == 0 { now_ns - window_ns } else { self.window_began_ns };
        let elapsed_ns = (now_ns - began_ns).max(1);
        self.lag_us = self.waits_us.saturating_mul(1_000) / elapsed_ns;
        self.lagging_since_ns =
            (self.lag_us > LAG_US_MAX).then(|| self.lagging_since_ns.unwrap_or(began_ns));
        self.memory_percent = memory_percent;
        (self.waits_us, self.window_began_ns) = (0, now_ns);
        self.window = self.window.wrapping_add(1).max(1);
        let before = self.level;
        if self.reached(false) > before {
            self.level = OverloadLevel::ALL[before as usize + 1];
            self.calm_windows = 0;
        } else if self.reached(true) >= before {
            self.calm_windows = 0;
        } else {
            // A loop that slept has passed several windows at once.
            self.calm_windows += elapsed_ns / window_ns;
            if self.calm_windows >= u64::from(self.settings.calm_windows) {
                self.level = OverloadLevel::ALL[before as usize - 1];
                self.calm_windows = 0;
            }
        }
        (self.level != before).then_some(before)
    }

    /// The highest step whose threshold is met; when `eased`, half of the lag threshold or four
    /// fifths of the memory threshold suffice.
    fn reached(&self, eased: bool) -> OverloadLevel {
        let lags_ms = self.settings.lags_ms();
        let percents = self.settings.memory_percents();
        let is_met = |step: &usize| {
            let (lag_us, percent) = (u64::from(lags_ms[*step]) * 1_000, percents[*step].into());
            let (lag_us, percent) =
                if eased { (lag_us / 2, percent * 4 / 5) } else { (lag_us, percent) };
            self.lag_us >= lag_us || self.memory_percent >= percent
        };
        let step = (0..4).rev().find(is_met);
        step.map_or(OverloadLevel::Normal, |step| OverloadLevel::ALL[step + 1])
    }

    /// Whether lag, rather than memory, is the reason for refusing connections.
    fn is_lag(&self) -> bool {
        self.lag_us >= u64::from(self.settings.lag_refuse_ms) * 1_000 / 2
    }
}

/// The load shedding of a shard.
#[derive(Debug)]
pub(super) struct LoadShedding {
    ladder: Ladder,
    /// Unsent bytes above which a reader gets no QoS 0; `usize::MAX` without shedding.
    shed_above_bytes: usize,
    /// All buffers together are at their limit: a connection that would hold more is closed.
    buffers_full: bool,
    /// Slow readers to be closed for that reason.
    ending: Vec<ConnId>,
    /// Bytes that publishers sent in this window, and the number of these publishers.
    bytes_in: u64,
    publishers: u64,
    /// The mean bytes per publisher in the last window; a publisher above it counts as heavy.
    fair_bytes: u64,
}

impl LoadShedding {
    pub(super) fn new(settings: &config::Overload) -> Self {
        Self {
            ladder: Ladder::new(settings),
            shed_above_bytes: usize::MAX,
            buffers_full: false,
            ending: Vec::new(),
            bytes_in: 0,
            publishers: 0,
            fair_bytes: u64::MAX,
        }
    }

    #[inline]
    pub(super) fn buffers_full(&self) -> bool {
        self.buffers_full
    }

    #[inline]
    pub(super) fn shed_above_bytes(&self) -> usize {
        self.shed_above_bytes
    }

    /// Records whether all buffers together are at their limit.
    pub(super) fn set_buffers_full(&mut self, is_full: bool) {
        self.buffers_full = is_full;
    }

    /// The end of the window, so that an idle shard also leaves a step in time.
    pub(super) fn next_look_ns(&self) -> Option<u64> {
        let looks =
            self.ladder.level > OverloadLevel::Normal || self.ladder.lagging_since_ns.is_some();
        looks.then(|| self.ladder.window_ends_ns())
    }
}

/// The bytes that one client sent in the current window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inflow {
    window: u32,
    bytes: u64,
}

impl Shard {
    /// Called once per turn: reports the shard's memory and decides on the step at the end of a
    /// window.
    #[inline]
    pub(in crate::shard) fn watch_load(&mut self, net: &mut Net) {
        self.settle_memory(net);
        self.report_drops(net.now_ns());
        let (turn_ns, wait_ns) = (net.last_turn_ns(), net.wait_ns());
        if self.admission.overload.ladder.turned(net.now_ns(), turn_ns, wait_ns) {
            self.look_at_load(net);
        }
        if !self.admission.overload.ending.is_empty() {
            self.end_slow_readers(net);
        }
    }

    #[cold]
    fn look_at_load(&mut self, net: &mut Net) {
        let memory = &self.shared.memory;
        let percent = memory.buffers().saturating_mul(100) / memory.buffers_max.max(1);
        self.admission.overload.fair_bytes = match self.admission.overload.publishers {
            0 => u64::MAX,
            publishers => self.admission.overload.bytes_in / publishers,
        };
        (self.admission.overload.bytes_in, self.admission.overload.publishers) = (0, 0);
        let left = self.admission.overload.ladder.look(net.now_ns(), percent);
        let ladder = &self.admission.overload.ladder;
        self.stats.loop_lag_us.set(ladder.lag_us);
        self.stats.loop_lag_us_max.set(ladder.lag_us.max(self.stats.loop_lag_us_max.value()));
        self.stats.note_lagging(ladder.lagging_since_ns);
        if let Some(left) = left {
            self.overload_changed(net, left);
        }
    }

    fn overload_changed(&mut self, net: &mut Net, left: OverloadLevel) {
        let ladder = &self.admission.overload.ladder;
        let level = ladder.level;
        let settings = &self.shared.overload;
        tracing::warn!(
            shard = self.id,
            lag_ms = ladder.lag_us / 1_000,
            buffers_percent = ladder.memory_percent,
            "overload: {} -> {}",
            left.name(),
            level.name(),
        );
        self.tell_overload(net.now_ns(), (left.name(), level.name()));
        self.stats.overload_changes_total.increment();
        self.stats.overload_level.set(level as u64);
        let slow = level >= OverloadLevel::SlowAccepts;
        let gap_ns = 1_000_000_000 / u64::from(settings.slow_accepts_per_s);
        net.pace_accepts(if slow { gap_ns } else { 0 });
        let sheds = level >= OverloadLevel::ShedQos0;
        self.admission.overload.shed_above_bytes =
            if sheds { settings.slow_reader_bytes } else { usize::MAX };
    }

    /// Whether a client that has just sent `bytes` has used its share while publishers are
    /// throttled.
    #[inline]
    pub(in crate::shard) fn is_heavy(&mut self, slot: SessionSlot, bytes: usize) -> bool {
        let overload = &mut self.admission.overload;
        overload.ladder.level != OverloadLevel::Normal && self.count_inflow(slot, bytes)
    }

    fn count_inflow(&mut self, slot: SessionSlot, bytes: usize) -> bool {
        let overload = &mut self.admission.overload;
        let inflow = self.sessions[slot].pressure.inflow();
        if inflow.window != overload.ladder.window {
            *inflow = Inflow { window: overload.ladder.window, bytes: 0 };
            overload.publishers += 1;
        }
        inflow.bytes += bytes as u64;
        overload.bytes_in += bytes as u64;
        overload.throttles() && inflow.bytes >= overload.fair_bytes.max(LIGHT_BYTES)
    }

    /// The reason to refuse a CONNECT for load, if any.
    pub(in crate::shard) fn overloaded(&self) -> Option<ReasonCode> {
        if self.admission.overload.ladder.level < OverloadLevel::Refuse {
            return None;
        }
        self.stats.refused_overload_total.increment();
        let lag = self.admission.overload.ladder.is_lag();
        Some(if lag { ReasonCode::CONNECTION_RATE_EXCEEDED } else { ReasonCode::QUOTA_EXCEEDED })
    }

    /// A reader would hold more output although all buffers together are full: its connection is
    /// closed at the end of the turn, and its unacknowledged messages wait in its session.
    #[cold]
    pub(in crate::shard) fn end_slow_reader(&mut self, conn: ConnId) {
        if self.admission.overload.ending.last() != Some(&conn) {
            self.admission.overload.ending.push(conn);
        }
    }

    #[cold]
    fn end_slow_readers(&mut self, net: &mut Net) {
        for conn in std::mem::take(&mut self.admission.overload.ending) {
            if let Some(session) = self.connections.session_of(conn) {
                self.stats.ended_slow_readers_total.increment();
                self.note_end(net, session, Ending::SlowReader);
                self.connections.close(conn);
                // Aborted, not closed: frees the unread output at once.
                net.abort(conn);
                self.session_disconnected(net, session, End::Lost);
            }
        }
    }
}

impl LoadShedding {
    /// Whether the heaviest publishers are throttled.
    pub(in crate::shard) fn throttles(&self) -> bool {
        self.ladder.level >= OverloadLevel::Throttle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs turns of this length without a pause for `windows` windows; returns the step after
    /// them.
    fn busy(ladder: &mut Ladder, now_ns: &mut u64, turn_ms: u64, windows: u32) -> OverloadLevel {
        let until = ladder.window + windows;
        while ladder.window < until {
            *now_ns += turn_ms.max(1) * MS;
            if ladder.turned(*now_ns, turn_ms * MS, turn_ms * MS) {
                ladder.look(*now_ns, 0);
            }
        }
        ladder.level
    }

    fn ladder() -> (Ladder, u64) {
        let mut ladder = Ladder::new(&config::Overload::default());
        let mut now_ns = 1_000_000 * MS;
        busy(&mut ladder, &mut now_ns, 0, 1);
        (ladder, now_ns)
    }

    #[test]
    fn a_busy_loop_with_short_turns_is_healthy() {
        let (mut ladder, mut now_ns) = ladder();
        assert_eq!(busy(&mut ladder, &mut now_ns, 40, 100), OverloadLevel::Normal);
    }

    #[test]
    fn one_long_pause_is_no_more_than_slower_accepting() {
        let (mut ladder, mut now_ns) = ladder();
        now_ns += 1_500 * MS;
        assert!(ladder.turned(now_ns, 1_500 * MS, 1_500 * MS));
        ladder.look(now_ns, 0);
        assert_eq!(ladder.level, OverloadLevel::SlowAccepts);
        busy(&mut ladder, &mut now_ns, 0, 20);
        assert_eq!(ladder.level, OverloadLevel::Normal);
    }

    #[test]
    fn steps_are_climbed_in_order_and_left_in_order() {
        let (mut ladder, mut now_ns) = ladder();
        let mut seen = Vec::new();
        for _ in 0..6 {
            seen.push(busy(&mut ladder, &mut now_ns, 3_000, 1));
        }
        assert_eq!(seen[..4], OverloadLevel::ALL[1..]);
        assert_eq!(seen[5], OverloadLevel::Refuse);
        let mut left = vec![ladder.level];
        for _ in 0..40 {
            let level = busy(&mut ladder, &mut now_ns, 0, 1);
            if left.last() != Some(&level) {
                left.push(level);
            }
        }
        left.reverse();
        assert_eq!(left, OverloadLevel::ALL);
    }

    #[test]
    fn what_a_short_turn_leaves_unread_waits_for_the_turns_that_it_needs() {
        let (mut ladder, mut now_ns) = ladder();
        // Turns of a millisecond without a pause, and a hundred of them until all are served.
        for _ in 0..1_000 {
            now_ns += MS;
            if ladder.turned(now_ns, MS, 100 * MS) {
                ladder.look(now_ns, 0);
                assert_eq!(ladder.lag_us, 100_000);
            }
        }
        assert_eq!(ladder.level, OverloadLevel::SlowAccepts);
    }

    #[test]
    fn lag_above_a_second_is_unhealthy_since_its_window_began_and_until_it_is_below() {
        let (mut ladder, mut now_ns) = ladder();
        busy(&mut ladder, &mut now_ns, 900, 3);
        assert_eq!(ladder.lagging_since_ns, None);
        let since_ns = now_ns;
        for _ in 0..3 {
            busy(&mut ladder, &mut now_ns, 1_500, 1);
            assert_eq!(ladder.lagging_since_ns, Some(since_ns));
        }
        busy(&mut ladder, &mut now_ns, 100, 1);
        assert_eq!(ladder.lagging_since_ns, None);
    }

    #[test]
    fn between_threshold_and_half_of_it_nothing_changes() {
        let (mut ladder, mut now_ns) = ladder();
        busy(&mut ladder, &mut now_ns, 300, 2);
        assert_eq!(ladder.level, OverloadLevel::ShedQos0);
        assert_eq!(busy(&mut ladder, &mut now_ns, 200, 100), OverloadLevel::ShedQos0);
        assert_eq!(busy(&mut ladder, &mut now_ns, 60, 100), OverloadLevel::SlowAccepts);
    }

    #[test]
    fn memory_climbs_too_and_a_long_sleep_calms() {
        let (mut ladder, mut now_ns) = ladder();
        for percent in [55, 65, 80, 95] {
            now_ns += 250 * MS;
            ladder.look(now_ns, percent);
        }
        assert_eq!((ladder.level, ladder.is_lag()), (OverloadLevel::Refuse, false));
        for _ in 0..4 {
            now_ns += 60_000 * MS;
            ladder.look(now_ns, 0);
        }
        assert_eq!(ladder.level, OverloadLevel::Normal);
    }
}
