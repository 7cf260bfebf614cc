//! The state of a loop, and the trait of what it drives. Each is defined in terms of the other, so
//! they share this module.
//!
//! The methods of [`Net`] are in other modules: commands for handlers in `commands`, the steps of a
//! turn in `turn`, `reading` and `writing`, the end of connections in `closing`.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use mio::{Registry, Token};

use crate::batch::WriteBatch;
use crate::budget::TurnBudget;
use crate::catch_up::{CatchUp, LATE_NS};
use crate::config::LoopConfig;
use crate::conn::{Closed, Conn, ConnId, Phase, ReadSide};
use crate::connections::Connections;
use crate::counters::Counters;
use crate::listener::Listener;
use crate::mailbox::MailRoom;
use crate::output::Output;
use crate::pool::BufferPool;
use crate::timers::Wheel;

/// The logic above a loop. All methods run on the loop's thread and must not block.
///
/// Any method may issue any command for any connection through [`Net`]: write, close, pause,
/// detach. The loop calls [`closed`](Self::closed) exactly once for each connection that was
/// accepted, connected or attached, unless it was detached; an index is not reused before that.
pub trait Handler: Sized {
    /// Messages between shards.
    type Mail: Send + 'static;
    /// Large output that several connections share by reference. Cheap to clone, for instance an
    /// `Arc`.
    type Shared: AsRef<[u8]> + Send + 'static;

    /// The loop is about to take its first turn.
    fn started(&mut self, net: &mut Net<Self>) {
        let _ = net;
    }

    /// A peer has connected to the listener with this index in
    /// [`LoopConfig::listeners`](crate::LoopConfig::listeners).
    fn accepted(&mut self, net: &mut Net<Self>, conn: ConnId, listener: usize);

    /// The header of [`Net::expect_proxy_header`] is complete, and [`Net::peer_addr`] is the
    /// client's address. What came behind it is passed on after this call, through a filter that is
    /// set in it.
    fn proxied(&mut self, net: &mut Net<Self>, conn: ConnId) {
        let _ = (net, conn);
    }

    /// [`Net::connect`] has succeeded or failed. After a failure the connection no longer exists
    /// and `closed` is not called for it.
    fn connected(&mut self, net: &mut Net<Self>, conn: ConnId, result: io::Result<()>) {
        let _ = (net, conn, result);
    }

    /// The handshake of this connection's [`Filter`](crate::Filter) is complete: output written
    /// from now on reaches the peer without delay. Called once, and only if the filter has a
    /// handshake.
    fn ready(&mut self, net: &mut Net<Self>, conn: ConnId) {
        let _ = (net, conn);
    }

    /// Bytes have arrived. Returns how many were consumed; the loop keeps the rest and passes it
    /// again, followed by the next bytes.
    ///
    /// After `close`, `abort`, `detach` or `pause_read` for this connection the loop passes no more
    /// input. [`Net::resume_read`] passes the rest again without waiting for more bytes.
    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize;

    /// The unit of [`Net::expect_unit`] has grown to `len` bytes, and is not whole yet.
    /// [`Net::buffered_bytes`] includes the memory that it takes.
    fn unit_grew(&mut self, net: &mut Net<Self>, conn: ConnId, len: usize) {
        let _ = (net, conn, len);
    }

    /// The connection has ended. All bytes that had arrived before were passed to `input`. Where
    /// many end at once, the calls may take several turns.
    fn closed(&mut self, net: &mut Net<Self>, conn: ConnId, why: Closed);

    /// Unwritten output has fallen to the low-water mark after it was above the high one. A handler
    /// that stops writing because [`Net::output_bytes`] exceeds
    /// [`LoopConfig::output_high_bytes`](crate::LoopConfig::output_high_bytes) is therefore always
    /// called back, possibly at the end of the same turn.
    fn drained(&mut self, net: &mut Net<Self>, conn: ConnId) {
        let _ = (net, conn);
    }

    /// A timer of [`Net::set_timer`] is due.
    fn timer(&mut self, net: &mut Net<Self>, token: u64) {
        let _ = (net, token);
    }

    /// A message from shard `from`, or from [`OUTSIDE`](crate::OUTSIDE) all loops. Messages of one
    /// sender arrive in the order in which they were posted.
    fn mail(&mut self, net: &mut Net<Self>, from: usize, mail: Self::Mail) {
        let _ = (net, from, mail);
    }

    /// All events of this turn have been handled and nothing was flushed yet. Returns when the next
    /// turn begins if no event comes first.
    fn turn(&mut self, net: &mut Net<Self>) -> Next {
        let _ = net;
        Next::Sleep
    }

    /// The turn is over and its output was flushed, so [`Net::counters`] are up to date while the
    /// loop sleeps. Output appended here leaves in the next turn, which may be far away.
    fn turn_ended(&mut self, net: &mut Net<Self>) {
        let _ = net;
    }

    /// [`Net::tell_idle`] was called in this turn, and the loop has found no further work: it
    /// sleeps next. Output appended here leaves in the next turn.
    fn idle(&mut self, net: &mut Net<Self>) {
        let _ = net;
    }
}

/// When the next turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When an event arrives.
    Sleep,
    /// At once: there is work left.
    Again,
    /// At this time ([`clock::now_ns`](crate::clock::now_ns)), or when an event arrives before. The
    /// wake-up is as precise as the kernel's timers.
    At(u64),
    /// Not before `until_ns`, even if events arrive; then as [`Next::At`] `at_ns`. Events that
    /// arrive meanwhile are handled together, which takes less CPU than one turn for each. A
    /// spinning loop does not rest.
    Rest {
        /// The earliest beginning.
        until_ns: u64,
        /// Polls the clock until then instead of sleeping: it takes the core, and the turn begins
        /// on time. Counted as [`Counters::polled_rest_ns`].
        polls: bool,
        /// The latest; `u64::MAX` for none.
        at_ns: u64,
    },
}

/// The bounds of [`LoopConfig`] that apply while the loop runs.
pub(crate) struct Limits {
    pub(crate) read_buffer_bytes: usize,
    pub(crate) events_per_turn_max: usize,
    pub(crate) connections_per_turn_max: usize,
    pub(crate) accepts_per_turn_max: usize,
    pub(crate) mails_per_turn_max: usize,
    pub(crate) timers_per_turn_max: usize,
    pub(crate) output_high_bytes: usize,
    pub(crate) output_low_bytes: usize,
    pub(crate) mailbox_high_len: usize,
    pub(crate) linger_ns: u64,
    pub(crate) lingering_max: usize,
    pub(crate) newcomers_budget_ns: u64,
}

impl Limits {
    fn new(config: &LoopConfig) -> Self {
        Self {
            read_buffer_bytes: config.read_buffer_bytes.max(1),
            events_per_turn_max: config.events_per_turn_max.max(1),
            connections_per_turn_max: config.connections_per_turn_max.max(1),
            accepts_per_turn_max: config.accepts_per_turn_max.max(1),
            mails_per_turn_max: config.mails_per_turn_max.max(1),
            timers_per_turn_max: config.timers_per_turn_max.max(1),
            output_high_bytes: config.output_high_bytes,
            output_low_bytes: config.output_low_bytes.min(config.output_high_bytes),
            mailbox_high_len: config.mailbox_high_len,
            linger_ns: config.linger_ns,
            lingering_max: config.lingering_max.max(1),
            newcomers_budget_ns: config.newcomers_budget_ns,
        }
    }
}

/// The commands that a [`Handler`] gives to its loop.
///
/// Commands for a connection that no longer exists have no effect.
pub struct Net<H: Handler> {
    pub(crate) now_ns: u64,
    pub(crate) conns: Connections<H::Shared>,
    pub(crate) pool: BufferPool,
    /// Takes the output for connections that do not exist.
    pub(crate) scrap: Output<H::Shared>,
    /// Connections with input to read or to pass again, first come, first served.
    pub(crate) ready: VecDeque<ConnId>,
    /// The same for connections that are not established.
    pub(crate) newcomers: VecDeque<ConnId>,
    /// The same for established ones whose end the kernel has reported: however many leave at once,
    /// those that stay are served first.
    pub(crate) leavers: VecDeque<ConnId>,
    /// Connections with output to write, first come, first served.
    pub(crate) dirty: VecDeque<ConnId>,
    /// The same for output that may wait.
    pub(crate) later: VecDeque<ConnId>,
    /// Bytes of that output.
    pub(crate) later_bytes: usize,
    /// Connections for which `closed` is due.
    pub(crate) ending: VecDeque<(ConnId, Closed)>,
    /// Lingering connections with the time at which they are dropped, in order of time.
    pub(crate) lingering: VecDeque<(u64, ConnId)>,
    /// Connections whose output has fallen to the low-water mark.
    pub(crate) drained: VecDeque<ConnId>,
    pub(crate) wheel: Wheel,
    pub(crate) mail: MailRoom<H::Mail>,
    pub(crate) limits: Limits,
    pub(crate) counters: Counters,
    /// Listening sockets by their numbers; `None` where one is closed. Simulations have none.
    pub(crate) listeners: Vec<Option<Listener>>,
    /// Cleared by `stop_listening`.
    pub(crate) listening: bool,
    /// Set by `stop`.
    pub(crate) stopping: bool,
    /// Set by `tell_idle`, for this turn.
    pub(crate) tells_idle: bool,
    /// Set by `turn_again`, until the next turn begins.
    pub(crate) turns_again: bool,
    /// A turn is in progress; it began at `now_ns`.
    in_turn: bool,
    pub(crate) last_turn_ns: u64,
    /// Turns like the last one that the connections which it has left ready or unwritten need.
    pub(crate) turns_due: usize,
    pub(crate) budget: TurnBudget,
    /// `None` where writes are made one after the other.
    pub(crate) batch: Option<Box<WriteBatch>>,
    pub(crate) catch_up: CatchUp,
    /// Bytes of output and of incomplete input held at present.
    pub(crate) buffered_bytes: usize,
    /// The length of the unit of which the handler has just been passed the beginning; 0: not
    /// known.
    pub(crate) unit_len: usize,
    /// The input that is being passed, if it is in an allocation of its own.
    pub(crate) shared_input: Option<Arc<Vec<u8>>>,
    /// See [`Self::pace_accepts`].
    pub(crate) accept_gap_ns: u64,
    /// `None` in a simulation, whose sockets need no registration.
    pub(crate) registry: Option<Registry>,
    #[cfg(feature = "sim")]
    pub(crate) outgoing: crate::virtual_socket::Outgoing,
}

impl<H: Handler> Net<H> {
    pub(crate) fn new(
        config: &LoopConfig,
        mail: MailRoom<H::Mail>,
        registry: Option<Registry>,
        now_ns: u64,
    ) -> Self {
        Self {
            now_ns,
            conns: Connections::new(),
            pool: BufferPool::default(),
            scrap: Output::new(),
            ready: VecDeque::new(),
            newcomers: VecDeque::new(),
            leavers: VecDeque::new(),
            dirty: VecDeque::new(),
            later: VecDeque::new(),
            later_bytes: 0,
            ending: VecDeque::new(),
            lingering: VecDeque::new(),
            drained: VecDeque::new(),
            wheel: Wheel::new(now_ns),
            mail,
            limits: Limits::new(config),
            counters: Counters::default(),
            listeners: Vec::new(),
            listening: true,
            stopping: false,
            tells_idle: false,
            turns_again: false,
            in_turn: false,
            last_turn_ns: 0,
            turns_due: 0,
            budget: TurnBudget::new(config.turn_ns_max),
            batch: None,
            catch_up: CatchUp::default(),
            buffered_bytes: 0,
            unit_len: 0,
            shared_input: None,
            accept_gap_ns: 0,
            registry,
            #[cfg(feature = "sim")]
            outgoing: crate::virtual_socket::Outgoing::default(),
        }
    }

    pub(crate) fn begin_turn(&mut self, now_ns: u64) {
        self.end_turn(now_ns);
        self.now_ns = now_ns;
        self.in_turn = true;
        self.counters.turns += 1;
        self.budget.begin_turn(now_ns);
        self.note_lateness();
    }

    /// Notes whether this turn is late.
    pub(crate) fn note_lateness(&mut self) {
        if self.wheel.next_expiry_ns().saturating_add(LATE_NS) < self.now_ns {
            // Each connection has one event, and they take turns being reported.
            self.catch_up.begin(1 + self.conns.len() / self.limits.events_per_turn_max);
        }
    }

    /// Records how long the turn took, unless that was done already. A loop that does not sleep
    /// reads the clock once per turn: each turn ends where the next one begins.
    pub(crate) fn end_turn(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.in_turn) {
            self.last_turn_ns = now_ns.saturating_sub(self.now_ns);
            self.counters.busy_ns += self.last_turn_ns;
            self.budget.end_turn(self.last_turn_ns, &mut self.counters);
        }
    }

    /// Whether sockets and time are simulated.
    #[cfg(feature = "sim")]
    pub(crate) const fn is_simulated(&self) -> bool {
        self.registry.is_none()
    }

    /// Adds a connection and registers it for all events, once for its whole life.
    pub(crate) fn insert(&mut self, conn: Conn<H::Shared>) -> ConnId {
        let id = self.conns.insert(conn);
        if let Some(conn) = self.conns.get_mut(id) {
            let registered = conn.stream.register(self.registry.as_ref(), Token(id.index()));
            if let Err(error) = registered {
                self.fail(id, Closed::Error(error));
            }
        }
        id
    }

    #[inline]
    pub(crate) fn push_ready(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id)
            && !conn.on_ready
        {
            conn.on_ready = true;
            let leaves = conn.read_side == ReadSide::EndPending && !self.catch_up.is_under_way();
            let list = match (conn.newcomer, leaves) {
                (true, _) => &mut self.newcomers,
                (false, true) => &mut self.leavers,
                (false, false) => &mut self.ready,
            };
            list.push_back(id);
        }
    }

    /// All events of a poll were recorded; `is_full` if there may be more.
    pub(crate) fn polled(&mut self, is_full: bool) {
        if self.catch_up.is_under_way() {
            // A farewell that has arrived in time is read before deadlines are judged, too.
            self.ready.append(&mut self.leavers);
            self.catch_up.polled(is_full, self.ready.len(), self.newcomers.len());
        }
    }

    #[inline]
    pub(crate) fn push_dirty(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id)
            && !conn.on_dirty
            && !conn.write_side.is_blocked()
        {
            conn.on_dirty = true;
            self.dirty.push_back(id);
        }
    }

    /// Updates the loop's total by the unconsumed input of a connection.
    #[inline]
    pub(crate) fn count_input(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id)
            && conn.phase == Phase::Open
        {
            let bytes = conn.input_bytes();
            if bytes != conn.input_counted {
                self.buffered_bytes = self.buffered_bytes - conn.input_counted + bytes;
                conn.input_counted = bytes;
            }
        }
    }

    /// Updates the loop's total by the unwritten output of a connection.
    #[inline]
    pub(crate) fn count_output(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id) {
            let bytes = conn.output_owned_bytes();
            if bytes != conn.output_counted {
                self.buffered_bytes = self.buffered_bytes - conn.output_counted + bytes;
                conn.output_counted = bytes;
            }
        }
    }
}
