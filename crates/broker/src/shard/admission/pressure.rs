//! What a shard knows of a client that is or was slow, or that sends much while others are behind.

use super::budget::BudgetHold;
use super::overload::Inflow;
use super::slow::ToldDrops;
use crate::shard::last_told::LastTold;

/// The pressure that one session's client is under or causes. It takes memory from the first time
/// on that there is any.
#[derive(Debug, Default)]
pub(in crate::shard) struct ClientPressure(Option<Box<Pressure>>);

#[derive(Debug, Default)]
struct Pressure {
    inflow: Inflow,
    hold: BudgetHold,
    drops: ToldDrops,
    /// When the log last named the session as full.
    told_full: LastTold,
    /// The session is about to end because its queue is full.
    ends: bool,
    /// Bytes of its unread input that were looked at ahead of their turn.
    read_ahead_len: u32,
    /// Since when its output is above its limit.
    blocked_since_ns: Option<u64>,
    /// QoS 0 messages it did not get because the shard sheds load.
    shed: u64,
    ping: PingAnswer,
}

/// Whether the client's PINGREQs are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PingAnswer {
    #[default]
    Sent,
    /// One came while the output was full: one PINGRESP follows once it is not.
    Owed,
}

impl ClientPressure {
    /// The client's output is above its limit.
    pub(in crate::shard) fn output_blocked(&mut self, now_ns: u64) {
        self.get_or_make().blocked_since_ns.get_or_insert(now_ns);
    }

    /// The client's output is below its limit again: for how long it was above.
    pub(in crate::shard) fn output_unblocked(&mut self, now_ns: u64) -> u64 {
        let since_ns = self.0.as_mut().and_then(|pressure| pressure.blocked_since_ns.take());
        since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns))
    }

    /// For how long the client's output has been above its limit; 0 while it is not.
    pub(in crate::shard) fn blocked_ms(&self, now_ns: u64) -> u64 {
        let since_ns = self.0.as_ref().and_then(|pressure| pressure.blocked_since_ns);
        since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns) / 1_000_000)
    }

    /// A QoS 0 message for the client was dropped to shed load.
    pub(in crate::shard) fn message_shed(&mut self) {
        self.get_or_make().shed += 1;
    }

    /// A message of the client was taken in: it is not the one at which it was held back before.
    #[inline]
    pub(in crate::shard) fn message_taken(&mut self) {
        if let Some(pressure) = &mut self.0 {
            pressure.hold = BudgetHold::default();
        }
    }

    /// When the log last named the session as full.
    pub(super) fn told_full(&mut self) -> &mut LastTold {
        &mut self.get_or_make().told_full
    }

    /// The session is to end because its queue is full. False if that was known.
    pub(super) fn ends(&mut self) -> bool {
        !std::mem::replace(&mut self.get_or_make().ends, true)
    }

    /// What the log has said of messages that the client missed.
    pub(super) fn drops(&mut self) -> &mut ToldDrops {
        &mut self.get_or_make().drops
    }

    /// QoS 0 messages that the client did not get because the shard sheds load.
    pub(in crate::shard) fn shed_total(&self) -> u64 {
        self.0.as_ref().map_or(0, |pressure| pressure.shed)
    }

    /// A PINGREQ came that cannot be answered before the output drains.
    pub(super) fn ping_waits(&mut self) {
        self.get_or_make().ping = PingAnswer::Owed;
    }

    /// Whether a PINGRESP is owed, which the caller sends now.
    pub(super) fn take_owed_ping(&mut self) -> bool {
        let ping = self.0.as_mut().map(|pressure| std::mem::take(&mut pressure.ping));
        ping == Some(PingAnswer::Owed)
    }

    /// Bytes of the client's unread input that were looked at ahead of their turn.
    #[inline]
    pub(in crate::shard) fn read_ahead_len(&self) -> usize {
        self.0.as_ref().map_or(0, |pressure| pressure.read_ahead_len as usize)
    }

    /// So much of what is left unread was looked at.
    pub(in crate::shard) fn read_ahead(&mut self, bytes: usize) {
        self.get_or_make().read_ahead_len = bytes as u32;
    }

    /// A new connection of a client starts with the full hold time and nothing read ahead.
    pub(in crate::shard) fn client_connected(&mut self) {
        if let Some(pressure) = &mut self.0 {
            pressure.hold = BudgetHold::default();
            pressure.read_ahead_len = 0;
            pressure.ping = PingAnswer::Sent;
        }
    }

    /// A new connection of a bridge's link starts with nothing read ahead.
    pub(in crate::shard) fn link_connected(&mut self) {
        if let Some(pressure) = &mut self.0 {
            pressure.read_ahead_len = 0;
        }
    }

    pub(super) fn inflow(&mut self) -> &mut Inflow {
        &mut self.get_or_make().inflow
    }

    pub(super) fn hold(&mut self) -> &mut BudgetHold {
        &mut self.get_or_make().hold
    }

    fn get_or_make(&mut self) -> &mut Pressure {
        self.0.get_or_insert_default()
    }
}
