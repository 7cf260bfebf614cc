//! The commands of a loop: the methods of [`Net`] for handlers.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use mio::Interest;
use socket2::{Domain, Protocol, Socket, Type};

use crate::budget::TurnBudget;
use crate::conn::{ClientEnd, Closed, Conn, ConnId, Demand, Filtering, Phase};
use crate::counters::Counters;
use crate::filter::Filter;
use crate::handover::Detached;
use crate::listener::{LISTENERS_MAX, Listener, token_of};
use crate::net::{Handler, Net};
use crate::output::Output;
use crate::peer_certificates::PeerCertificates;
use crate::pool::BufferPool;
use crate::stream::Stream;
use crate::timers::TimerId;

/// Time and load.
impl<H: Handler> Net<H> {
    /// The time of this turn ([`clock::now_ns`](crate::clock::now_ns)), read once when it began.
    #[must_use]
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// How long the previous turn took, from its beginning until the loop slept or this turn began.
    /// 0 in the first turn.
    #[must_use]
    #[inline]
    pub fn last_turn_ns(&self) -> u64 {
        self.last_turn_ns
    }

    /// The expected wait of a connection that becomes ready now, until it has its answer: the
    /// duration of the previous turn, times the number of turns that the connections need which
    /// that turn had no time to read or to write to.
    #[must_use]
    #[inline]
    pub fn wait_ns(&self) -> u64 {
        self.last_turn_ns.saturating_mul(1 + self.turns_due as u64)
    }

    /// Charges work to this turn's budget and says whether there is time for more: see
    /// [`TurnBudget::charge`].
    #[inline]
    pub fn charge(&mut self, units: u32) -> bool {
        self.budget.charge(units)
    }

    /// Begins another kind of work in [`Handler::turn`]: it has a share of the turn's time even if
    /// the kinds before it have used up theirs, so that none starves.
    #[inline]
    pub fn begin_work(&mut self) {
        self.budget.begin_work();
    }

    /// Has another turn begin without a sleep: for work that is left when no time is.
    #[inline]
    pub fn turn_again(&mut self) {
        self.turns_again = true;
    }

    /// What is left of this turn, or of the part of it that is the handler's now.
    #[must_use]
    #[inline]
    pub fn budget(&self) -> &TurnBudget {
        &self.budget
    }

    /// Bytes that this loop's connections hold in memory, as allocated: output that their sockets
    /// have not accepted, and input that their handler has not consumed. Output by reference does
    /// not count, and output appended in this turn counts from the next one on.
    #[must_use]
    #[inline]
    pub fn buffered_bytes(&self) -> usize {
        self.buffered_bytes
    }

    /// Totals since the loop was created.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { wakes: self.mail.woken, ..self.counters }
    }

    /// Calls [`Handler::timer`] with `token` at `deadline_ns` or up to about a millisecond later.
    pub fn set_timer(&mut self, deadline_ns: u64, token: u64) -> TimerId {
        self.wheel.set(deadline_ns, token)
    }

    /// Cancels a timer. False if it has fired already.
    pub fn cancel_timer(&mut self, timer: TimerId) -> bool {
        self.wheel.cancel(timer)
    }

    /// Has [`Handler::idle`] called after this turn if the loop has no work then. The loop polls
    /// once more before it sleeps, so this costs a system call in turns that are followed by sleep.
    #[inline]
    pub fn tell_idle(&mut self) {
        self.tells_idle = true;
    }

    /// Ends the loop after this turn: appended output is flushed once more, then all connections
    /// are dropped without calling `closed`.
    pub fn stop(&mut self) {
        self.stopping = true;
    }
}

/// Other shards.
impl<H: Handler> Net<H> {
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

    /// Posts a mail to `shard` (which may be this one). All mails of a turn leave at its end,
    /// together and in order, and before its output is written: once a peer reads that output, they
    /// are in the mailboxes. A mail to a loop that has ended is dropped.
    ///
    /// # Panics
    /// If there is no such shard.
    #[inline]
    pub fn post(&mut self, shard: usize, mail: H::Mail) {
        self.mail.post(shard, mail);
    }

    /// Mails posted to `shard` by all senders and not delivered yet; those of the receiver's
    /// current turn are included.
    #[must_use]
    pub fn mailbox_len(&self, shard: usize) -> usize {
        self.mail.len(shard)
    }

    /// True when more mails wait for `shard` than [`LoopConfig::mailbox_high_len`]: their sources
    /// should be slowed down.
    ///
    /// [`LoopConfig::mailbox_high_len`]: crate::LoopConfig::mailbox_high_len
    #[must_use]
    pub fn congested(&self, shard: usize) -> bool {
        self.mail.len(shard) > self.limits.mailbox_high_len
    }
}

/// The beginning and the end of connections.
impl<H: Handler> Net<H> {
    /// Begins to connect to `addr`, from `local` if given (port 0: any). [`Handler::connected`]
    /// receives the result; output may be appended before. To give up earlier than the system does,
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

    /// Inserts a filter between the socket and the handler. To be called at the beginning of a
    /// connection's life, in `accepted` or `connected`: output written before is not filtered.
    pub fn set_filter(&mut self, conn: ConnId, filter: Box<dyn Filter>) {
        if let Some(found) = self.conns.get_mut(conn) {
            let mut filtering = Filtering::new(filter);
            std::mem::swap(&mut filtering.wire, &mut found.output);
            found.filter = Some(Box::new(filtering));
            self.push_dirty(conn);
        }
    }

    /// Has a connection begin with a header of the PROXY protocol. To be called in `accepted`,
    /// instead of [`set_filter`](Self::set_filter): [`Handler::proxied`] follows, and a filter is
    /// set there. A connection with another beginning fails with a
    /// [`HeaderError`](crate::proxy::HeaderError).
    pub fn expect_proxy_header(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn) {
            found.header_due = true;
        }
    }

    /// Marks a connection as a newcomer, as accepted and attached ones are from the beginning: it
    /// is served after those that are established, see [`LoopConfig::newcomers_budget_ns`].
    ///
    /// [`LoopConfig::newcomers_budget_ns`]: crate::LoopConfig::newcomers_budget_ns
    pub fn newcomer(&mut self, conn: ConnId) {
        let newcomers_wait = self.limits.newcomers_budget_ns > 0;
        if let Some(found) = self.conns.get_mut(conn) {
            found.newcomer = newcomers_wait;
        }
    }

    /// Marks a connection as no longer a newcomer: from now on it is served before those, see
    /// [`LoopConfig::newcomers_budget_ns`].
    ///
    /// [`LoopConfig::newcomers_budget_ns`]: crate::LoopConfig::newcomers_budget_ns
    pub fn established(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn) {
            found.newcomer = false;
        }
    }

    /// Sets the minimum time between two connections that a listener accepts here; 0, the initial
    /// value, accepts as many as a turn allows. Other peers wait in the kernel's backlog.
    pub fn pace_accepts(&mut self, gap_ns: u64) {
        self.accept_gap_ns = gap_ns;
    }

    /// Accepts connections from a socket: [`Handler::accepted`] gets `index` with them. The one
    /// that had the index before is closed. Not to be called from [`Handler::accepted`].
    ///
    /// # Errors
    /// The index is too large, or the system refuses.
    pub fn listen(&mut self, index: usize, socket: TcpListener) -> io::Result<()> {
        if index >= LISTENERS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many listeners"));
        }
        let mut listener = Listener::new(socket)?;
        if let Some(registry) = &self.registry {
            registry.register(&mut listener.socket, token_of(index), Interest::READABLE)?;
        }
        self.close_listener(index);
        if index >= self.listeners.len() {
            self.listeners.resize_with(index + 1, || None);
        }
        // Invariant: there are more than `index` places.
        self.listeners[index] = Some(listener);
        Ok(())
    }

    /// Closes a listening socket of this loop. Peers in its backlog are refused once no other loop
    /// has a clone of it. Not to be called from [`Handler::accepted`].
    pub fn close_listener(&mut self, index: usize) {
        let Some(mut listener) = self.listeners.get_mut(index).and_then(Option::take) else {
            return;
        };
        if let Some(registry) = &self.registry {
            // The kernel would report events as long as another loop has a clone. A socket that it
            // does not know reports none.
            let _ = registry.deregister(&mut listener.socket);
        }
    }

    /// Closes all listening sockets of this loop; none can be opened again. Peers in the backlog
    /// are refused once no other loop has a clone of the socket.
    pub fn stop_listening(&mut self) {
        self.listening = false;
        self.listeners.clear();
    }

    /// Closes a connection after its output. Input stops at once; `closed` with [`Closed::ByUs`] is
    /// called before this turn ends, or in a later one if its time is used up. Then the loop
    /// continues to write the remaining output, sends FIN and waits for the peer's, for at most
    /// [`LoopConfig::linger_ns`].
    ///
    /// [`LoopConfig::linger_ns`]: crate::LoopConfig::linger_ns
    pub fn close(&mut self, conn: ConnId) {
        match self.conns.get(conn).map(|found| found.phase) {
            Some(Phase::Open) => self.end(conn, Closed::ByUs),
            Some(Phase::Connecting) => self.abort(conn),
            Some(Phase::Ending | Phase::Aborting | Phase::Lingering) | None => {}
        }
    }

    /// Closes a connection without writing its output and resets it (the peer sees RST). `closed`
    /// with [`Closed::ByUs`] is called as after [`close`](Self::close).
    pub fn abort(&mut self, conn: ConnId) {
        self.fail(conn, Closed::ByUs);
    }

    /// Takes a connection out of this loop, with its filter and its unwritten output. `unread` is
    /// the part of the bytes being passed to `input` right now that the next owner receives; it is
    /// empty outside `input` (bytes kept by the loop move along anyway).
    ///
    /// `closed` is not called. `None` if the connection is not open.
    pub fn detach(&mut self, conn: ConnId, unread: &[u8]) -> Option<Detached<H::Shared>> {
        if !self.is_open(conn) {
            return None;
        }
        let mut conn = self.conns.remove(conn)?;
        self.buffered_bytes -= conn.output_counted + conn.input_counted;
        self.later_bytes -= conn.later_bytes;
        conn.stream.deregister(self.registry.as_ref());
        Some(Detached::new(conn, unread))
    }

    /// Continues a connection of another loop here. Its unread bytes are passed to `input` in this
    /// turn or, when called after the reads, in the next one; reading is not paused.
    pub fn attach(&mut self, detached: Detached<H::Shared>) -> ConnId {
        let id = self.insert(detached.into_conn());
        self.newcomer(id);
        self.push_ready(id);
        self.push_dirty(id);
        id
    }
}

/// Open connections.
impl<H: Handler> Net<H> {
    /// True until the connection is closed by either side, as far as the loop knows.
    #[must_use]
    #[inline]
    pub fn is_open(&self, conn: ConnId) -> bool {
        self.conns.get(conn).is_some_and(|conn| conn.phase == Phase::Open)
    }

    /// Number of connections, including closed ones whose last output is being written.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.conns.len()
    }

    /// All connections that are open.
    pub fn open_connections(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.conns.ids().filter(|&id| self.is_open(id))
    }

    /// The peer's address, if the connection exists and the system still knows it; behind a proxy
    /// the client's, see [`expect_proxy_header`](Self::expect_proxy_header).
    #[must_use]
    pub fn peer_addr(&self, conn: ConnId) -> Option<SocketAddr> {
        self.conns.get(conn)?.peer_addr().ok()
    }

    /// The certificates of the peer, if the connection has TLS and the peer has proved to have any.
    #[must_use]
    pub fn peer_certificates(&self, conn: ConnId) -> Option<PeerCertificates<'_>> {
        self.conns.get(conn)?.filter.as_ref()?.filter.peer_certificates()
    }

    /// The common name in the certificate that the client has shown to the proxy of this
    /// connection, as its header tells it: verified by the proxy, and text only if that is so.
    #[must_use]
    pub fn proxied_certificate_name(&self, conn: ConnId) -> Option<&[u8]> {
        self.conns.get(conn)?.client.as_ref()?.certificate_name.as_deref()
    }

    /// Has [`peer_addr`](Self::peer_addr) know the peer's address for as long as the connection
    /// exists: the system forgets it when the peer resets the connection.
    pub fn keep_peer_addr(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn)
            && found.client.is_none()
            && let Ok(address) = found.stream.peer_addr()
        {
            let client = ClientEnd { address: Some(address), certificate_name: None };
            found.client = Some(Box::new(client));
        }
    }

    /// The local address of this connection.
    #[must_use]
    pub fn local_addr(&self, conn: ConnId) -> Option<SocketAddr> {
        self.conns.get(conn)?.stream.local_addr().ok()
    }

    /// Where to append output for `conn`. It leaves at the end of this turn, or in its order in a
    /// later one if this one's time is used up. Output for a connection that does not exist, is
    /// being closed or can no longer be written to is dropped.
    #[inline]
    pub fn out(&mut self, conn: ConnId) -> &mut Output<H::Shared> {
        if let Some(found) = self.conns.get_mut(conn)
            && found.takes_output()
        {
            // Also while the socket is blocked: the flush counts the output held.
            if !found.on_dirty {
                found.on_dirty = true;
                self.dirty.push_back(conn);
            }
            found.output.prepare(&mut self.pool);
            return &mut found.output;
        }
        no_output(&mut self.scrap, &mut self.pool)
    }

    /// The same for `bytes` of output that many connections get at once. It leaves behind the
    /// output of [`out`](Self::out), and while it waits, more may be appended: then all leaves with
    /// one write. See [`later_bytes`](Self::later_bytes) for how much waits.
    #[inline]
    pub fn out_later(&mut self, conn: ConnId, bytes: usize) -> &mut Output<H::Shared> {
        if let Some(found) = self.conns.get_mut(conn)
            && found.takes_output()
        {
            if !found.on_later {
                found.on_later = true;
                self.later.push_back(conn);
            }
            if !found.write_side.is_blocked() {
                found.later_bytes += bytes;
                self.later_bytes += bytes;
            }
            found.output.prepare(&mut self.pool);
            return &mut found.output;
        }
        no_output(&mut self.scrap, &mut self.pool)
    }

    /// Bytes of [`out_later`](Self::out_later) that no write was tried for yet. A handler that
    /// would append more without limit stops for this turn when they are many.
    #[must_use]
    #[inline]
    pub fn later_bytes(&self) -> usize {
        self.later_bytes
    }

    /// Writes the output of `conn` now, ahead of its order, unless its socket is full: for a
    /// connection that gets much in one turn. Mail that was posted leaves before. Returns what is
    /// left unwritten.
    pub fn write_early(&mut self, conn: ConnId) -> usize {
        let Some(found) = self.conns.get(conn) else { return 0 };
        if found.phase == Phase::Open && !found.write_side.is_blocked() {
            self.mail.send();
            self.write_ahead(conn);
        }
        self.output_bytes(conn)
    }

    /// Bytes that the socket of `conn` has not accepted yet. The loop does not bound them: a
    /// handler checks this and stops writing, or closes the connection.
    #[must_use]
    #[inline]
    pub fn output_bytes(&self, conn: ConnId) -> usize {
        self.conns.get(conn).map_or(0, Conn::output_bytes)
    }

    /// Bytes that no socket has accepted yet, those of connections that are closing included.
    #[must_use]
    pub fn unwritten_bytes(&self) -> usize {
        self.conns.ids().map(|conn| self.output_bytes(conn)).sum()
    }

    /// Requests one [`Handler::drained`] when the connection's unwritten output has fallen to the
    /// low-water mark, even if it never was above the high one. A handler that produces output at
    /// the pace at which it leaves calls this between two portions.
    pub fn await_drained(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn)
            && found.phase == Phase::Open
        {
            found.drained_due = true;
            self.push_dirty(conn);
        }
    }

    /// Whether this side does not take the peer's input at present: the connection is paused, or
    /// resumed and not read since. A handler does not blame such a peer for its silence.
    #[must_use]
    #[inline]
    pub fn is_held_back(&self, conn: ConnId) -> bool {
        self.conns.get(conn).is_some_and(|found| found.demand != Demand::Flowing)
    }

    /// To be called within [`Handler::input`] by a handler that leaves the beginning of a unit of
    /// `len` bytes unconsumed, and cannot do anything before all of it is there. If it is large,
    /// the loop reads the rest without passing it, in pieces of 64 KiB, and then passes the whole
    /// unit alone; [`Handler::unit_grew`] is called meanwhile. What is kept counts in
    /// [`Self::buffered_bytes`] as it arrives.
    #[inline]
    pub fn expect_unit(&mut self, len: usize) {
        self.unit_len = len;
    }

    /// Within [`Handler::input`]: the allocation that the input is in, if it is large and has one
    /// of its own. A handler that wants to keep a part of it may keep a handle instead of a copy.
    #[must_use]
    #[inline]
    pub const fn shared_input(&self) -> Option<&Arc<Vec<u8>>> {
        self.shared_input.as_ref()
    }

    /// Stops passing input. Readiness that the kernel reports meanwhile is remembered.
    pub fn pause_read(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn)
            && found.phase == Phase::Open
        {
            found.demand = Demand::Paused;
            if found.write_side.is_broken() {
                // Without reads the failed write would never be reported.
                self.push_ready(conn);
            }
        }
    }

    /// Passes input again, beginning with the bytes that the handler has left over. If the
    /// connection is not paused, the left-over bytes are passed again without new ones.
    pub fn resume_read(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(conn)
            && found.phase == Phase::Open
        {
            found.demand = Demand::Again;
            self.push_ready(conn);
        }
    }
}

/// Takes output that goes nowhere.
fn no_output<'a, S: AsRef<[u8]>>(
    scrap: &'a mut Output<S>,
    pool: &mut BufferPool,
) -> &'a mut Output<S> {
    scrap.clear(pool);
    scrap.prepare(pool);
    scrap
}
