//! One virtual client: its connection's state and its session.

use std::collections::VecDeque;
use std::ops::Range;

use tacho_codec::{PacketId, ReasonCode, Version};
use tacho_net::{ConnId, TimerId};
use tacho_session::Payload;
use tacho_session::client::{ClientLimits, Session};

use super::act::Acting;
use super::answer::Answers;
use crate::plan::{ClientIndex, Group};

/// A message as the session keeps it until it is acknowledged. The payload is made again when
/// the message has to be repeated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// The stream's number on this thread.
    pub(super) stream: u32,
    pub(super) seq: u32,
    pub(super) probe: bool,
    pub(super) intended_ns: u64,
    pub(super) sent_ns: u64,
}

/// What the session keeps of a client's publication.
#[derive(Debug, Clone, Copy)]
pub(super) enum Published {
    /// A message of one of its streams.
    Message(Message),
    /// The answer with this number.
    Answer(u32),
}

impl Payload for Published {}

/// Where a client is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not connected yet.
    Idle,
    /// The connection is under way, since the time given: TCP, and what is to carry MQTT on it.
    Connecting { since_ns: u64 },
    /// CONNECT is sent; the time is still that of the first step.
    Greeting { since_ns: u64 },
    /// CONNACK came.
    Up,
    /// SUBSCRIBE is sent, so many SUBACKs are missing.
    Subscribing { since_ns: u64, missing: u32 },
    /// Not connected for now; its timer brings it back.
    Away,
    /// DISCONNECT is sent.
    Closing,
    /// Ended as planned.
    Closed,
    /// Ended otherwise.
    Failed,
}

impl State {
    pub(super) const fn is_up(self) -> bool {
        matches!(self, Self::Up | Self::Subscribing { .. })
    }

    /// Is it going to be up?
    pub(super) const fn is_on_its_way(self) -> bool {
        matches!(self, Self::Connecting { .. } | Self::Greeting { .. } | Self::Away)
    }
}

/// One client of the plan.
#[derive(Debug)]
pub(super) struct VirtualClient {
    pub(super) index: ClientIndex,
    /// Position of its group in the plan, and its own within the group.
    pub(super) group: usize,
    pub(super) rank: usize,
    pub(super) version: Version,
    /// Its group at its broker.
    pub(super) cell: u16,
    pub(super) conn: Option<ConnId>,
    pub(super) state: State,
    /// When the TCP connection was there, if something lies between it and MQTT.
    pub(super) opened_ns: u64,
    pub(super) session: Session<Published>,
    first_stream: u32,
    end_stream: u32,
    /// Streams that wait for the inflight window or the socket, in the order of their messages.
    pub(super) waiting: VecDeque<u32>,
    /// Is in the worker's list of blocked clients.
    pub(super) is_blocked: bool,
    /// Is in the worker's list of clients to go on with.
    pub(super) is_unblocked: bool,
    /// SUBSCRIBEs without SUBACK: identifier, first filter, number of filters.
    pub(super) subscribes: Vec<(PacketId, usize, usize)>,
    /// Had CONNACK before.
    pub(super) was_up: bool,
    /// The session of an earlier run was wiped (3.x only).
    pub(super) is_wiped: bool,
    /// Should have its subscriptions, and has them.
    pub(super) wants_subscriptions: bool,
    pub(super) is_subscribed: bool,
    /// Attempts to connect since it was connected last.
    pub(super) attempts: u32,
    /// Its timer: keep-alive or the end of an absence.
    pub(super) timer: Option<TimerId>,
    /// The last reason with which the broker refused a message.
    pub(super) refusal: Option<ReasonCode>,
    /// Its answers, if it answers requests.
    pub(super) answers: Option<Box<Answers>>,
    /// What an action did to it.
    pub(super) acting: Option<Box<Acting>>,
}

impl VirtualClient {
    pub(super) fn new(
        index: ClientIndex,
        group_index: usize,
        rank: usize,
        (group, cell): (&Group, u16),
        streams: Range<u32>,
    ) -> Self {
        let limits = ClientLimits { inflight_max: group.inflight_max, ..ClientLimits::default() };
        Self {
            index,
            group: group_index,
            rank,
            version: group.version,
            cell,
            conn: None,
            state: State::Idle,
            opened_ns: 0,
            session: Session::new(limits),
            first_stream: streams.start,
            end_stream: streams.end,
            waiting: VecDeque::new(),
            is_blocked: false,
            is_unblocked: false,
            subscribes: Vec::new(),
            was_up: false,
            is_wiped: false,
            wants_subscriptions: false,
            is_subscribed: false,
            attempts: 0,
            timer: None,
            refusal: None,
            answers: group.answers.then(Box::default),
            acting: None,
        }
    }

    /// Its streams' numbers on this thread.
    pub(super) const fn streams(&self) -> Range<usize> {
        self.first_stream as usize..self.end_stream as usize
    }
}
