//! Loops without sockets, threads and clock, for tests with reproducible runs.
//!
//! A [`Simulation`] holds several loops with their [`Handler`]s in one thread. Connections are in
//! memory and the test holds the peers' ends ([`Peer`]); time advances on the test's command. A
//! seed determines which loop takes the next turn, which part of its mail and events it sees, and
//! how much a read or write moves. A handler cannot distinguish it from a [`Loop`](crate::Loop):
//! timers, filters, output, mailboxes and the steps of a turn are the same code.
//!
//! The guarantees of a real loop hold here too: mails of a turn are in the mailboxes before its
//! output can be received, and a mailbox delivers mails in the order in which they were posted
//! (unless [`Faults::mail_overtakes`]).

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::config::LoopConfig;
use crate::conn::{Conn, Phase};
use crate::mailbox::{Batch, MailRoom, Mailbox};
use crate::net::{Handler, Net, Next};
use crate::reading::ReadBuffer;
use crate::stream::Stream;
use crate::turn::NEWCOMER_UNITS;
use crate::virtual_socket::{self, Socket};

pub use crate::virtual_socket::Peer;

/// Which faults occur, and how often. Percentages are of turns unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Turns that see only part of their mail, possibly none.
    pub mail_delay_percent: u8,
    /// Delayed mails of one sender may be overtaken by those of another; the order per sender
    /// stays. Real mailboxes never do that.
    pub mail_overtakes: bool,
    /// Probability per connection and turn that its events are reported in a later turn.
    pub event_delay_percent: u8,
    /// Share of reads and writes that move fewer bytes than possible.
    pub short_io_percent: u8,
    /// A turn may have begun up to this long before the events that it sees: its time is that of
    /// its beginning.
    pub turn_ns_max: u64,
    /// Turns after which the loop takes no other for up to [`Faults::stall_ns_max`].
    pub stall_percent: u8,
    /// See [`Faults::stall_percent`].
    pub stall_ns_max: u64,
    /// A unit of work takes a time drawn from 0 to this, so that turns reach their time limit. It
    /// is a matter of turns only: [`Simulation::now_ns`] does not advance.
    pub unit_ns_max: u64,
    /// Share of new connections that are refused as if descriptors had run out.
    pub refuse_percent: u8,
}

/// Several loops and their handlers in virtual time.
pub struct Simulation<H: Handler> {
    shards: Vec<Shard<H>>,
    now_ns: u64,
    faults: Faults,
    rng: fastrand::Rng,
    connections: u32,
}

struct Shard<H: Handler> {
    /// `None` once the handler has stopped its loop.
    net: Option<Net<H>>,
    handler: H,
    buffer: ReadBuffer,
    next: Next,
    backlog: VecDeque<(Socket, usize)>,
    withheld: VecDeque<Batch<H::Mail>>,
    stalled_until_ns: u64,
}

impl<H: Handler> Simulation<H> {
    /// Loops with their mailboxes and handlers, in the order of the shards' numbers; each
    /// [`Handler::started`] is called. Listening sockets and the settings for spinning and pinning
    /// are ignored.
    pub fn new(
        seed: u64,
        faults: Faults,
        now_ns: u64,
        shards: impl IntoIterator<Item = (LoopConfig, Mailbox<H::Mail>, H)>,
    ) -> Self {
        let start = |(config, mailbox, mut handler): (LoopConfig, _, H)| {
            let mut net = Net::new(&config, MailRoom::new(mailbox), None, now_ns);
            net.outgoing.short_percent = faults.short_io_percent;
            net.outgoing.seed = !seed ^ ((net.shard() as u64) << 32);
            net.budget.draw(net.outgoing.seed);
            handler.started(&mut net);
            Shard {
                buffer: ReadBuffer::new(net.limits.read_buffer_bytes),
                net: Some(net),
                handler,
                next: Next::Again,
                backlog: VecDeque::new(),
                withheld: VecDeque::new(),
                stalled_until_ns: 0,
            }
        };
        let shards = shards.into_iter().map(start).collect();
        let rng = fastrand::Rng::with_seed(seed);
        Self { shards, now_ns, faults, rng, connections: 0 }
    }

    /// The virtual time.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Advances the time. Timers that become due fire in later turns.
    pub fn advance(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    /// Replaces the faults from now on; existing connections keep their share of short reads and
    /// writes.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// A peer connects to a listener of a shard. It is accepted in one of the shard's next turns.
    pub fn connect(&mut self, shard: usize, listener: usize) -> Peer {
        self.connections += 1;
        let seed = self.rng.u64(..);
        let (socket, peer) =
            virtual_socket::pair(self.connections, self.faults.short_io_percent, seed);
        let shard = &mut self.shards[shard];
        if shard.net.as_ref().is_some_and(|net| net.listening) {
            shard.backlog.push_back((socket, listener));
        }
        peer
    }

    /// The peers' ends of the connections that a shard has begun since the last call, with their
    /// destinations. Each is established, as if it waited to be accepted, unless its peer is
    /// dropped before the shard's next turn: then it is refused.
    pub fn begun(&mut self, shard: usize) -> Vec<(SocketAddr, Peer)> {
        let net = self.shards[shard].net.as_mut();
        net.map(|net| std::mem::take(&mut net.outgoing.begun)).unwrap_or_default()
    }

    /// A shard takes no turns for this time.
    pub fn stall(&mut self, shard: usize, ns: u64) {
        self.shards[shard].stalled_until_ns = self.now_ns + ns;
    }

    /// Ends all stalls.
    pub fn end_stalls(&mut self) {
        self.shards.iter_mut().for_each(|shard| shard.stalled_until_ns = 0);
    }

    /// One of the shards that have work takes a turn. False if none has work at present.
    pub fn step(&mut self) -> bool {
        let now_ns = self.now_ns;
        let mut runnable =
            (0..self.shards.len()).filter(|&shard| self.shards[shard].is_runnable(now_ns));
        let count = runnable.clone().count();
        if count == 0 {
            return false;
        }
        let chosen = self.rng.usize(..count);
        // Invariant: `chosen` is below the number of runnable shards.
        let shard = runnable.nth(chosen).expect("a runnable shard");
        self.turn(shard);
        true
    }

    /// One turn of a shard, whether it has work or not.
    pub fn turn(&mut self, shard: usize) {
        let Self { shards, now_ns, faults, rng, .. } = self;
        let shard = &mut shards[shard];
        shard.turn(*now_ns, faults, rng);
        if rng.u8(..100) < faults.stall_percent {
            shard.stalled_until_ns = *now_ns + rng.u64(..=faults.stall_ns_max);
        }
    }

    /// When the first timer or scheduled turn of any shard is due; the present if one has work.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let deadlines = self.shards.iter().filter_map(|shard| shard.deadline_ns(self.now_ns));
        deadlines.min().filter(|&deadline_ns| deadline_ns != u64::MAX)
    }

    /// A shard's handler.
    #[must_use]
    pub fn handler(&self, shard: usize) -> &H {
        &self.shards[shard].handler
    }

    /// A shard's loop; `None` once it has stopped.
    #[must_use]
    pub fn net(&self, shard: usize) -> Option<&Net<H>> {
        self.shards[shard].net.as_ref()
    }
}

impl<H: Handler> Shard<H> {
    fn is_runnable(&self, now_ns: u64) -> bool {
        self.stalled_until_ns <= now_ns && self.deadline_ns(now_ns).is_some_and(|at| at <= now_ns)
    }

    /// When its next turn is due; `None` once its loop has stopped.
    fn deadline_ns(&self, now_ns: u64) -> Option<u64> {
        let net = self.net.as_ref()?;
        let has_edges = |id| {
            net.conns.get(id).is_some_and(|conn| match &conn.stream {
                Stream::Virtual(socket) => socket.has_edges(),
                Stream::Tcp(_) => false,
            })
        };
        let busy = net.is_busy()
            || net.mail.has_mail()
            || !self.backlog.is_empty()
            || net.conns.ids().any(has_edges);
        let deadline_ns = if busy { now_ns } else { net.deadline_ns(self.next).max(now_ns) };
        Some(match self.next {
            Next::Rest { until_ns, .. } => deadline_ns.max(until_ns),
            _ => deadline_ns,
        })
    }

    fn turn(&mut self, now_ns: u64, faults: &Faults, rng: &mut fastrand::Rng) {
        let Some(net) = &mut self.net else { return };
        // Time does not go back between turns, and deadlines that are due must have passed.
        let begun_ns = now_ns - rng.u64(..=faults.turn_ns_max.min(now_ns));
        net.now_ns = net.now_ns.max(begun_ns);
        if net.deadline_ns(self.next) <= now_ns {
            net.now_ns = now_ns;
        }
        net.counters.turns += 1;
        net.budget.begin_drawn_turn(net.now_ns, faults.unit_ns_max);
        net.note_lateness();
        release_mail(net, &mut self.withheld, faults, rng);
        report_edges(net, faults, rng);
        net.polled(false);
        let backlog = &mut self.backlog;
        self.next = net.turn(&mut self.handler, &mut self.buffer, |net, handler| {
            accept(net, handler, backlog, faults, rng);
        });
        net.budget.end_drawn_turn(&mut net.counters);
        if !net.listening {
            self.backlog.clear();
        }
        if net.stopping {
            self.net = None;
            self.backlog.clear();
            self.withheld.clear();
            return;
        }
        let tells_idle = std::mem::take(&mut net.tells_idle);
        if tells_idle
            && self.deadline_ns(now_ns).is_none_or(|at_ns| at_ns > now_ns)
            && let Some(net) = &mut self.net
        {
            self.handler.idle(net);
        }
    }
}

/// Makes the mail of a loop visible to it, or a part of it.
fn release_mail<H: Handler>(
    net: &Net<H>,
    withheld: &mut VecDeque<Batch<H::Mail>>,
    faults: &Faults,
    rng: &mut fastrand::Rng,
) {
    net.mail.withhold(withheld);
    if withheld.is_empty() {
        return;
    }
    let delayed = rng.u8(..100) < faults.mail_delay_percent;
    let mut blocked: Vec<usize> = Vec::new();
    for batch in std::mem::take(withheld) {
        let behind = !blocked.is_empty() && !faults.mail_overtakes
            || blocked.contains(&batch.from)
            || delayed && rng.bool();
        if behind {
            blocked.push(batch.from);
            withheld.push_back(batch);
        } else {
            net.mail.return_batch(batch);
        }
    }
}

fn report_edges<H: Handler>(net: &mut Net<H>, faults: &Faults, rng: &mut fastrand::Rng) {
    let ids: Vec<_> = net.conns.ids().collect();
    for id in ids {
        if rng.u8(..100) < faults.event_delay_percent {
            continue;
        }
        let edges = match net.conns.get(id).map(|conn| &conn.stream) {
            Some(Stream::Virtual(socket)) => socket.take_edges(),
            _ => continue,
        };
        if !edges.is_empty() {
            net.note_event(id.index(), &edges);
        }
    }
}

fn accept<H: Handler>(
    net: &mut Net<H>,
    handler: &mut H,
    backlog: &mut VecDeque<(Socket, usize)>,
    faults: &Faults,
    rng: &mut fastrand::Rng,
) {
    if !net.listening {
        return;
    }
    for attempt in 0..net.limits.accepts_per_turn_max {
        if attempt > 0 && !net.budget.charge(NEWCOMER_UNITS) {
            return;
        }
        let Some((socket, listener)) = backlog.pop_front() else { return };
        if rng.u8(..100) < faults.refuse_percent {
            net.counters.refused += 1;
            continue;
        }
        net.counters.accepted += 1;
        let id = net.insert(Conn::new(Stream::Virtual(socket), Phase::Open));
        net.newcomer(id);
        handler.accepted(net, id, listener);
    }
}
