//! What a handler can do: the commands of a loop.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use mio::{Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

use crate::conn::{Conn, Connections, Phase};
use crate::filter::Filtering;
use crate::handover::Detached;
use crate::mailbox::MailRoom;
use crate::pool::BufferPool;
use crate::stream::Stream;
use crate::timers::{TimerId, Wheel};
use crate::{Closed, ConnId, Counters, Filter, Handler, LoopConfig, Output};

/// Closing a socket takes microseconds, and after a storm thousands are due at one time.
const LINGERING_DROPPED_PER_TURN_MAX: usize = 256;

/// The bounds that are needed after the loop was set up.
pub(crate) struct Limits {
    pub(crate) read_buffer_bytes: usize,
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

/// The commands that a [`Handler`] gives to its loop.
///
/// Commands for a connection that does not exist any more do nothing.
pub struct Net<H: Handler> {
    pub(crate) now_ns: u64,
    pub(crate) conns: Connections<H::Shared>,
    pub(crate) pool: BufferPool,
    /// Takes output for connections that do not exist.
    pub(crate) scrap: Output<H::Shared>,
    /// Connections with something to read or to hand, first come, first served.
    pub(crate) ready: VecDeque<ConnId>,
    /// The same for connections that are not established.
    pub(crate) newcomers: VecDeque<ConnId>,
    /// Connections with something to write.
    pub(crate) dirty: Vec<ConnId>,
    /// The other of the two lists that take turns in being `dirty`.
    pub(crate) flushing: Vec<ConnId>,
    /// Connections whose end the handler does not know yet.
    pub(crate) ending: VecDeque<(ConnId, Closed)>,
    /// Connections that are closed for the handler but not yet for the kernel, with the time at
    /// which that ends. In order of time.
    pub(crate) lingering: VecDeque<(u64, ConnId)>,
    /// Connections whose output has drained in this flush.
    pub(crate) drained: Vec<ConnId>,
    pub(crate) wheel: Wheel,
    pub(crate) mail: MailRoom<H::Mail>,
    pub(crate) limits: Limits,
    pub(crate) counters: Counters,
    pub(crate) listening: bool,
    pub(crate) stopping: bool,
    /// The handler wants to know when there is nothing to do.
    pub(crate) tells_idle: bool,
    /// A turn is in progress; it began at `now_ns`.
    in_turn: bool,
    last_turn_ns: u64,
    /// What output and incomplete input hold at present.
    pub(crate) buffered_bytes: usize,
    /// See [`Self::pace_accepts`].
    pub(crate) accept_gap_ns: u64,
    /// Until when this turn may serve newcomers; 0 before the first one.
    pub(crate) newcomers_until_ns: u64,
    /// Where sockets are registered; simulated ones are not.
    registry: Option<Registry>,
    /// Where simulated connections go.
    #[cfg(feature = "sim")]
    pub(crate) outgoing: crate::sim::Outgoing,
}

impl<H: Handler> Net<H> {
    pub(crate) fn new(
        config: &LoopConfig,
        mail: MailRoom<H::Mail>,
        registry: Option<Registry>,
        now_ns: u64,
    ) -> Self {
        let limits = Limits {
            read_buffer_bytes: config.read_buffer_bytes.max(1),
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
        };
        Self {
            now_ns,
            conns: Connections::new(),
            pool: BufferPool::default(),
            scrap: Output::new(),
            ready: VecDeque::new(),
            newcomers: VecDeque::new(),
            dirty: Vec::new(),
            flushing: Vec::new(),
            ending: VecDeque::new(),
            lingering: VecDeque::new(),
            drained: Vec::new(),
            wheel: Wheel::new(now_ns),
            mail,
            limits,
            counters: Counters::default(),
            listening: true,
            stopping: false,
            tells_idle: false,
            in_turn: false,
            last_turn_ns: 0,
            buffered_bytes: 0,
            accept_gap_ns: 0,
            newcomers_until_ns: 0,
            registry,
            #[cfg(feature = "sim")]
            outgoing: crate::sim::Outgoing::default(),
        }
    }

    /// The time of this turn ([`clock::now_ns`](crate::clock::now_ns)), read once when it began.
    #[must_use]
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The number of this shard.
    #[must_use]
    #[inline]
    pub fn shard(&self) -> usize {
        self.mail.shard()
    }

    /// The number of shards that [`post`](Self::post) reaches, this one included.
    #[must_use]
    #[inline]
    pub fn shards(&self) -> usize {
        self.mail.shards()
    }

    /// Where to append output for `conn`. It leaves at the end of this turn. Output for a
    /// connection that does not exist, is being closed or can no longer be written to is dropped.
    #[inline]
    pub fn out(&mut self, conn: ConnId) -> &mut Output<H::Shared> {
        if let Some(found) = self.conns.get_mut(conn)
            && found.takes_output()
        {
            // Also when the kernel takes nothing at present: the flush counts what is held.
            if !found.on_dirty {
                found.on_dirty = true;
                self.dirty.push(conn);
            }
            found.output.prepare(&mut self.pool);
            return &mut found.output;
        }
        self.scrap.clear(&mut self.pool);
        self.scrap.prepare(&mut self.pool);
        &mut self.scrap
    }

    /// Bytes that the socket of `conn` has not taken yet. The loop does not bound them; the handler
    /// looks here and stops writing, or closes.
    #[must_use]
    #[inline]
    pub fn output_bytes(&self, conn: ConnId) -> usize {
        self.conns.get(conn).map_or(0, Conn::output_bytes)
    }

    /// Bytes that this loop's connections hold in memory: output that their sockets have not taken,
    /// and input that their handler has not consumed. Output by reference does not count, and what
    /// this turn has appended counts from the next one on.
    #[must_use]
    #[inline]
    pub fn buffered_bytes(&self) -> usize {
        self.buffered_bytes
    }

    /// How long whoever became ready now would wait: as long as the turn before this one took,
    /// times the number of turns that the list of ready connections needs.
    #[must_use]
    #[inline]
    pub fn wait_ns(&self) -> u64 {
        let turns = 1 + self.ready.len() / self.limits.connections_per_turn_max;
        self.last_turn_ns * turns as u64
    }

    /// A connection that was accepted or attached is no newcomer any more: from now on it is served
    /// before those, see [`LoopConfig::newcomers_budget_ns`].
    pub fn established(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn) {
            found.newcomer = false;
        }
    }

    /// Lets this much time pass between two connections that a listener accepts here; 0, as in the
    /// beginning, accepts as many as a turn allows. Others wait in the kernel's backlog.
    pub fn pace_accepts(&mut self, gap_ns: u64) {
        self.accept_gap_ns = gap_ns;
    }

    /// True until the connection is closed by either side, as far as the loop knows.
    #[must_use]
    #[inline]
    pub fn is_open(&self, conn: ConnId) -> bool {
        self.conns.get(conn).is_some_and(|conn| conn.phase == Phase::Open)
    }

    /// Number of connections, also those that are only waiting for their last output to leave.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.conns.len()
    }

    /// All connections that are open.
    pub fn open_connections(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.conns.ids().filter(|&id| self.is_open(id))
    }

    /// The peer's address, if the connection exists and the system still knows it.
    #[must_use]
    pub fn peer_addr(&self, conn: ConnId) -> Option<SocketAddr> {
        self.conns.get(conn)?.stream.peer_addr().ok()
    }

    /// Our own address of this connection.
    #[must_use]
    pub fn local_addr(&self, conn: ConnId) -> Option<SocketAddr> {
        self.conns.get(conn)?.stream.local_addr().ok()
    }

    /// Closes a connection after its output. Input stops at once; `closed` with [`Closed::ByUs`] is
    /// called before this turn ends. Then the loop goes on writing what is left, sends FIN and
    /// waits for the peer's, for at most [`LoopConfig::linger_ns`].
    pub fn close(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn) {
            match found.phase {
                Phase::Open => self.end(conn, Closed::ByUs),
                Phase::Connecting => self.abort(conn),
                Phase::Ending | Phase::Lingering => {}
            }
        }
    }

    /// Closes a connection without writing its output and resets it (the peer sees RST). `closed`
    /// with [`Closed::ByUs`] is called before this turn ends.
    pub fn abort(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn) {
            match found.phase {
                Phase::Open | Phase::Connecting => {
                    found.abort = true;
                    self.end(conn, Closed::ByUs);
                }
                Phase::Ending => found.abort = true,
                Phase::Lingering => {}
            }
        }
    }

    /// Stops handing input. What the kernel reports meanwhile is remembered.
    pub fn pause_read(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn)
            && found.phase == Phase::Open
        {
            found.paused = true;
            if found.broken.is_some() {
                // Nobody would ever find out that it is gone.
                self.push_ready(conn);
            }
        }
    }

    /// Hands input again, beginning with what the handler has left over. For a connection that is
    /// not paused it means: hand the left-over bytes again although nothing new has come.
    pub fn resume_read(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn)
            && found.phase == Phase::Open
        {
            found.paused = false;
            found.hand_partial = true;
            self.push_ready(conn);
        }
    }

    /// Asks for one [`Handler::drained`](crate::Handler::drained) when the connection's unwritten
    /// output has fallen to the low-water mark, also if it never was above the high one. Who
    /// produces output at the pace at which it leaves calls this between two portions.
    pub fn await_drained(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn)
            && found.phase == Phase::Open
        {
            found.above_high = true;
            self.push_dirty(conn);
        }
    }

    /// Puts a filter between the socket and the handler. It belongs at the beginning of a
    /// connection's life, in `accepted` or `connected`: what was written before goes out as it is.
    pub fn set_filter(&mut self, conn: ConnId, filter: Box<dyn Filter>) {
        if let Some(found) = self.conns.get_mut(conn) {
            let mut filtering = Filtering::new(filter);
            std::mem::swap(&mut filtering.wire, &mut found.output);
            found.filter = Some(Box::new(filtering));
            self.push_dirty(conn);
        }
    }

    /// Takes a connection out of this loop, with its filter and its unwritten output. `unread` are
    /// the bytes, of those that are being handed to `input` right now, which the next owner shall
    /// see; outside `input` it is empty (bytes that the loop keeps come along by themselves).
    ///
    /// `closed` is not called. `None` if the connection is not open.
    pub fn detach(&mut self, conn: ConnId, unread: &[u8]) -> Option<Detached<H::Shared>> {
        if !self.is_open(conn) {
            return None;
        }
        let mut conn = self.conns.remove(conn)?;
        self.buffered_bytes -= conn.output_counted + conn.partial_counted;
        conn.stream.deregister(self.registry.as_ref());
        Some(Detached::new(conn, unread))
    }

    /// Continues a connection of another loop here. Its unread bytes are handed to `input` in this
    /// turn or, when called after the reads, in the next one; reading is not paused.
    pub fn attach(&mut self, detached: Detached<H::Shared>) -> ConnId {
        let mut conn = detached.into_conn();
        conn.newcomer = self.limits.newcomers_budget_ns > 0;
        let id = self.insert(conn);
        self.push_ready(id);
        self.push_dirty(id);
        id
    }

    /// Calls [`Handler::timer`] with `token` at `deadline_ns` or up to about a millisecond later.
    pub fn set_timer(&mut self, deadline_ns: u64, token: u64) -> TimerId {
        self.wheel.set(deadline_ns, token)
    }

    /// Forgets a timer. False if it has fired already.
    pub fn cancel_timer(&mut self, timer: TimerId) -> bool {
        self.wheel.cancel(timer)
    }

    /// Posts a mail to `shard` (which may be this one). All mails of a turn go out at its end,
    /// together and in order, and before its output is written: whoever reads that output finds
    /// them in the mailboxes already. A mail to a loop that has ended is dropped.
    ///
    /// # Panics
    /// If there is no such shard.
    #[inline]
    pub fn post(&mut self, shard: usize, mail: H::Mail) {
        self.mail.post(shard, mail);
    }

    /// Mails posted to `shard` by anyone and not delivered yet; those of the receiver's current
    /// turn are included.
    #[must_use]
    pub fn mailbox_len(&self, shard: usize) -> usize {
        self.mail.len(shard)
    }

    /// True when more mails wait for `shard` than [`LoopConfig::mailbox_high_len`]: time to slow
    /// down those who cause them.
    #[must_use]
    pub fn congested(&self, shard: usize) -> bool {
        self.mail.len(shard) > self.limits.mailbox_high_len
    }

    /// Begins to connect to `addr`, from `local` if given (port 0: any). [`Handler::connected`]
    /// tells the result; output may be appended before. To give up earlier than the system does,
    /// call [`abort`](Self::abort); then `closed` is called, and `connected` is not.
    ///
    /// # Errors
    /// When it fails at once, for instance because descriptors or local ports have run out.
    pub fn connect(&mut self, addr: SocketAddr, local: Option<SocketAddr>) -> io::Result<ConnId> {
        #[cfg(feature = "sim")]
        if self.is_simulated() {
            let stream = Stream::Virtual(self.outgoing.connect(addr));
            return Ok(self.insert(Conn::new(stream, Phase::Connecting)));
        }
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        if let Some(local) = local {
            socket.bind(&local.into())?;
        }
        match socket.connect(&addr.into()) {
            Ok(()) => {}
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    || error.raw_os_error()
                        == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        let stream = Stream::Tcp(mio::net::TcpStream::from_std(socket.into()));
        Ok(self.insert(Conn::new(stream, Phase::Connecting)))
    }

    /// Closes the listening sockets of this loop. Peers that wait to be accepted are refused once
    /// no other loop has a clone of the socket.
    pub fn stop_listening(&mut self) {
        self.listening = false;
    }

    /// Ends the loop after this turn: what is appended is flushed once more, then all connections
    /// are dropped without calling `closed`.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Has [`Handler::idle`] called after this turn if the loop has nothing to do then. It looks
    /// once more before it sleeps, so this costs a system call in turns that are followed by sleep.
    #[inline]
    pub fn tell_idle(&mut self) {
        self.tells_idle = true;
    }

    /// How long the turn before this one took, from its beginning to the loop's going to sleep or
    /// to this turn. 0 in the first turn.
    #[must_use]
    #[inline]
    pub fn last_turn_ns(&self) -> u64 {
        self.last_turn_ns
    }

    /// What this loop has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { wakes: self.mail.woken, ..self.counters }
    }
}

/// For the loop itself.
impl<H: Handler> Net<H> {
    pub(crate) fn begin_turn(&mut self, now_ns: u64) {
        self.end_turn(now_ns);
        self.now_ns = now_ns;
        self.in_turn = true;
        self.counters.turns += 1;
    }

    /// Notes how long the turn took, unless that was done. A loop that does not sleep needs no
    /// further look at the clock: its turns end where the next ones begin.
    pub(crate) fn end_turn(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.in_turn) {
            self.last_turn_ns = now_ns.saturating_sub(self.now_ns);
            self.counters.busy_ns += self.last_turn_ns;
        }
    }

    /// Takes a connection in and registers it for all events, once for its whole life.
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

    /// Whether there are neither sockets nor a clock.
    pub(crate) const fn is_simulated(&self) -> bool {
        self.registry.is_none()
    }

    #[inline]
    pub(crate) fn push_ready(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id)
            && !conn.on_ready
        {
            conn.on_ready = true;
            let list = if conn.newcomer { &mut self.newcomers } else { &mut self.ready };
            list.push_back(id);
        }
    }

    /// Counts what a connection holds of unwritten output.
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

    #[inline]
    pub(crate) fn push_dirty(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id)
            && !conn.on_dirty
            && !conn.write_blocked
        {
            conn.on_dirty = true;
            self.dirty.push(id);
        }
    }

    /// The connection is over: `closed` will be called.
    pub(crate) fn end(&mut self, id: ConnId, why: Closed) {
        if let Some(conn) = self.conns.get_mut(id)
            && matches!(conn.phase, Phase::Open | Phase::Connecting)
        {
            conn.phase = Phase::Ending;
            conn.partial = Vec::new();
            self.buffered_bytes -= std::mem::take(&mut conn.partial_counted);
            self.ending.push_back((id, why));
        }
    }

    /// The socket is of no use any more: `closed` will be called and nothing more is written.
    pub(crate) fn fail(&mut self, id: ConnId, why: Closed) {
        if let Some(conn) = self.conns.get_mut(id) {
            conn.abort = true;
            self.end(id, why);
        }
    }

    /// Drops a connection that the handler does not know any more.
    pub(crate) fn drop_conn(&mut self, id: ConnId) {
        let Some(mut conn) = self.conns.remove(id) else { return };
        self.buffered_bytes -= conn.output_counted + conn.partial_counted;
        conn.output.clear(&mut self.pool);
        if let Some(mut filtering) = conn.filter.take() {
            filtering.wire.clear(&mut self.pool);
        }
        if conn.abort {
            conn.stream.reset_when_dropped();
        }
    }

    /// Tells the handler about connections that are over. False if there was none.
    pub(crate) fn report_ended(&mut self, handler: &mut H) -> bool {
        let mut any = false;
        while let Some((id, why)) = self.ending.pop_front() {
            any = true;
            handler.closed(self, id, why);
            let Some(conn) = self.conns.get_mut(id) else { continue };
            if conn.abort {
                self.drop_conn(id);
            } else {
                conn.phase = Phase::Lingering;
                self.lingering.push_back((self.now_ns + self.limits.linger_ns, id));
                self.push_dirty(id);
                self.push_ready(id);
            }
        }
        any
    }

    /// Drops lingering connections whose time is over, or for whom there are too many. The loop
    /// does not sleep while there are more of them.
    pub(crate) fn expire_lingering(&mut self) {
        for _ in 0..LINGERING_DROPPED_PER_TURN_MAX {
            let Some(&(until_ns, id)) = self.lingering.front() else { return };
            let too_many = self.lingering.len() > self.limits.lingering_max;
            if until_ns > self.now_ns && self.conns.get(id).is_some() && !too_many {
                break;
            }
            self.lingering.pop_front();
            if let Some(conn) = self.conns.get_mut(id) {
                // A peer that does not read shall not hold our memory in the kernel either.
                conn.abort = conn.output_bytes() > 0;
                self.drop_conn(id);
            }
        }
    }
}
