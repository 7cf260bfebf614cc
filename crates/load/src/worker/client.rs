//! One virtual client: its connection, its session, its streams.

use std::collections::VecDeque;
use std::ops::Range;

use tacho_codec::{PacketId, ReasonCode, Version};
use tacho_net::{ConnId, TimerId};
use tacho_session::client::{ClientLimits, Session};

use super::action::ActionEffect;
use super::answer::Answers;
use super::lifecycle::{SessionHistory, State, Subscriptions};
use super::message::Published;
use crate::authentication::Prover;
use crate::plan::{Authentication, ClientIndex, Group, LoginKind};

/// Where a client belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientPlace {
    pub(super) index: ClientIndex,
    /// Position of its group in the plan.
    pub(super) group: usize,
    /// Its position within the group.
    pub(super) rank: usize,
    pub(super) cell: u16,
}

/// A SUBSCRIBE without its SUBACK.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingSubscribe {
    pub(super) packet_id: PacketId,
    /// Position of its first filter among the client's subscriptions.
    pub(super) first_filter: usize,
    pub(super) filters: usize,
}

/// The logins of one client.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoginProgress {
    /// The number of its next login among those of its group.
    pub(super) next: u64,
    /// When the last one was due, and what it presents.
    pub(super) intended_ns: u64,
    pub(super) kind: LoginKind,
    /// When the one before ended.
    pub(super) free_ns: u64,
}

impl LoginProgress {
    /// Of the client at `rank` of its group.
    pub(super) fn new(rank: usize) -> Self {
        let next = rank as u64;
        Self { next, intended_ns: 0, kind: LoginKind::Right, free_ns: 0 }
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
    /// The cell of its group and broker.
    pub(super) cell: u16,
    pub(super) conn: Option<ConnId>,
    pub(super) state: State,
    /// When the TCP connection was established, if TLS or WebSocket is layered on it.
    pub(super) opened_ns: u64,
    pub(super) session: Session<Published>,
    first_stream: u32,
    end_stream: u32,
    /// Streams that wait for the inflight window or the socket, in the order of their messages.
    pub(super) waiting: VecDeque<u32>,
    /// Is in the worker's list of blocked clients.
    pub(super) is_blocked: bool,
    /// Is in the worker's list of unblocked clients.
    pub(super) is_unblocked: bool,
    /// SUBSCRIBEs without SUBACK.
    pub(super) pending_subscribes: Vec<PendingSubscribe>,
    pub(super) history: SessionHistory,
    pub(super) subscriptions: Subscriptions,
    /// Attempts to connect since the last connection.
    pub(super) attempts: u32,
    /// Its timer: keep-alive, or the end of an absence.
    pub(super) timer: Option<TimerId>,
    /// The reason of the last refused message.
    pub(super) refusal: Option<ReasonCode>,
    /// Its answers, if it answers requests.
    pub(super) answers: Option<Box<Answers>>,
    /// Its logins, if it logs in by a schedule.
    pub(super) login: Option<Box<LoginProgress>>,
    /// Its part of exchanges; `None` for user name and password.
    pub(super) prover: Option<Box<Prover>>,
    /// The timer of its next token.
    pub(super) renewal: Option<TimerId>,
    /// The last action on it.
    pub(super) effect: Option<Box<ActionEffect>>,
}

impl VirtualClient {
    pub(super) fn new(place: ClientPlace, group: &Group, streams: Range<u32>) -> Self {
        let ClientPlace { index, group: group_index, rank, cell } = place;
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
            pending_subscribes: Vec::new(),
            history: SessionHistory::Unknown,
            subscriptions: Subscriptions::Unwanted,
            attempts: 0,
            timer: None,
            refusal: None,
            answers: group.answers.then(Box::default),
            login: group.login.is_some().then(|| Box::new(LoginProgress::new(rank))),
            prover: match group.authentication {
                Authentication::Password => None,
                _ => Some(Box::default()),
            },
            renewal: None,
            effect: None,
        }
    }

    /// Whether it has been connected in this run.
    pub(super) fn was_up(&self) -> bool {
        self.history == SessionHistory::Established
    }

    /// The numbers of its streams on this thread.
    pub(super) const fn streams(&self) -> Range<usize> {
        self.first_stream as usize..self.end_stream as usize
    }
}
