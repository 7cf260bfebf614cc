//! Loops without sockets, threads and clock: for tests that want the same run again.
//!
//! A [`Simulation`] holds several loops with their [`Handler`]s in one thread. Connections are
//! memory, the test holds their other ends ([`Peer`]); time passes when the test says so; who takes
//! the next turn, how much of its mail and events it sees in it, and how much a read or write moves
//! is drawn from a seed. A handler cannot tell it from a [`Loop`](crate::Loop): timers, filters,
//! output, mailboxes and the steps of a turn are the very same code.
//!
//! What a real loop guarantees holds here too: mails that one turn posted are in the mailboxes
//! before its output can be received, and a mailbox hands out mails in the order in which they came
//! in (unless [`Faults::mail_overtakes`]).

mod socket;

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::conn::{Conn, Phase};
use crate::mailbox::{Batch, MailRoom};
use crate::reading::ReadBuffer;
use crate::stream::Stream;
use crate::{Handler, LoopConfig, Mailbox, Net, Next};

pub use socket::Peer;
pub(crate) use socket::Socket;

/// What goes wrong, and how often. All percentages are of turns, unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Turns that see only a part of their mail, possibly none of it.
    pub mail_delay_percent: u8,
    /// Delayed mails of one sender may be overtaken by those of another. Each sender's own order
    /// stays. Real mailboxes do not do that.
    pub mail_overtakes: bool,
    /// Chance of each connection in each turn that its events are reported in a later turn.
    pub event_delay_percent: u8,
    /// Reads and writes that move less than they could.
    pub short_io_percent: u8,
    /// A turn may have begun up to this long before what it sees happened: its time is that of its
    /// beginning.
    pub turn_ns_max: u64,
    /// Turns after which the loop is not given another one for up to [`Faults::stall_ns_max`].
    pub stall_percent: u8,
    /// See [`Faults::stall_percent`].
    pub stall_ns_max: u64,
    /// New connections that are refused as if descriptors had run out.
    pub refuse_percent: u8,
}

/// Connections that the handler of a loop has begun, and nobody has taken yet.
#[derive(Default)]
pub(crate) struct Outgoing {
    begun: Vec<(SocketAddr, Peer)>,
    short_percent: u8,
    seed: u64,
    connections: u32,
}

impl Outgoing {
    /// The loop's end; the other one waits for the test.
    pub(crate) fn connect(&mut self, addr: SocketAddr) -> Socket {
        self.connections += 1;
        self.seed = self.seed.wrapping_add(1);
        let (socket, peer) = socket::pair(self.connections, self.short_percent, self.seed);
        self.begun.push((addr, peer));
        socket
    }
}

/// Several loops, their handlers, and the time they share.
pub struct Simulation<H: Handler> {
    members: Vec<Member<H>>,
    now_ns: u64,
    faults: Faults,
    rng: fastrand::Rng,
    connections: u32,
}

struct Member<H: Handler> {
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
        let member = |(config, mailbox, mut handler): (LoopConfig, _, H)| {
            let mut net = Net::new(&config, MailRoom::new(mailbox), None, now_ns);
            net.outgoing.short_percent = faults.short_io_percent;
            net.outgoing.seed = !seed ^ ((net.shard() as u64) << 32);
            handler.started(&mut net);
            Member {
                buffer: ReadBuffer::new(net.limits.read_buffer_bytes),
                net: Some(net),
                handler,
                next: Next::Again,
                backlog: VecDeque::new(),
                withheld: VecDeque::new(),
                stalled_until_ns: 0,
            }
        };
        let members = shards.into_iter().map(member).collect();
        let rng = fastrand::Rng::with_seed(seed);
        Self { members, now_ns, faults, rng, connections: 0 }
    }

    /// The time.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Lets time pass. Whatever becomes due is done in turns afterwards.
    pub fn advance(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    /// Changes what goes wrong from now on; connections keep their short reads and writes.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// A peer connects to a listener of a shard. It is accepted in one of the shard's next turns.
    pub fn connect(&mut self, shard: usize, listener: usize) -> Peer {
        self.connections += 1;
        let seed = self.rng.u64(..);
        let (socket, peer) = socket::pair(self.connections, self.faults.short_io_percent, seed);
        let member = &mut self.members[shard];
        if member.net.as_ref().is_some_and(|net| net.listening) {
            member.backlog.push_back((socket, listener));
        }
        peer
    }

    /// The connections that a shard has begun since this was asked last, as their peers have them,
    /// and where they were to go. Each is established, as if it waited to be accepted, unless its
    /// peer is dropped before the shard's next turn: then it is refused.
    pub fn begun(&mut self, shard: usize) -> Vec<(SocketAddr, Peer)> {
        let net = self.members[shard].net.as_mut();
        net.map(|net| std::mem::take(&mut net.outgoing.begun)).unwrap_or_default()
    }

    /// A shard takes no turns for a while.
    pub fn stall(&mut self, shard: usize, ns: u64) {
        self.members[shard].stalled_until_ns = self.now_ns + ns;
    }

    /// Ends all stalls.
    pub fn end_stalls(&mut self) {
        self.members.iter_mut().for_each(|member| member.stalled_until_ns = 0);
    }

    /// One of the shards that have something to do takes a turn. False if none has, for now.
    pub fn step(&mut self) -> bool {
        let now_ns = self.now_ns;
        let mut runnable =
            (0..self.members.len()).filter(|&shard| self.members[shard].is_runnable(now_ns));
        let count = runnable.clone().count();
        if count == 0 {
            return false;
        }
        let chosen = self.rng.usize(..count);
        // Invariant: `chosen` is below the number of runnable shards.
        let shard = runnable.nth(chosen).expect("one of those counted");
        self.turn(shard);
        true
    }

    /// One turn of a shard, whether it has anything to do or not.
    pub fn turn(&mut self, shard: usize) {
        let Self { members, now_ns, faults, rng, .. } = self;
        let member = &mut members[shard];
        member.turn(*now_ns, faults, rng);
        if rng.u8(..100) < faults.stall_percent {
            member.stalled_until_ns = *now_ns + rng.u64(..=faults.stall_ns_max);
        }
    }

    /// When the first timer or planned turn of any shard is due; the present if one has work.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let deadlines = self.members.iter().filter_map(|member| member.deadline_ns(self.now_ns));
        deadlines.min().filter(|&deadline_ns| deadline_ns != u64::MAX)
    }

    /// A shard's handler.
    #[must_use]
    pub fn handler(&self, shard: usize) -> &H {
        &self.members[shard].handler
    }

    /// A shard's loop; `None` once it has stopped.
    #[must_use]
    pub fn net(&self, shard: usize) -> Option<&Net<H>> {
        self.members[shard].net.as_ref()
    }
}

impl<H: Handler> Member<H> {
    fn is_runnable(&self, now_ns: u64) -> bool {
        self.stalled_until_ns <= now_ns && self.deadline_ns(now_ns).is_some_and(|at| at <= now_ns)
    }

    /// When it has something to do.
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
        // A turn's time does not go back, and timers need it to have come.
        let begun_ns = now_ns - rng.u64(..=faults.turn_ns_max.min(now_ns));
        net.now_ns = net.now_ns.max(begun_ns);
        if net.deadline_ns(self.next) <= now_ns {
            net.now_ns = now_ns;
        }
        net.counters.turns += 1;
        hand_out_mail(net, &mut self.withheld, faults, rng);
        report_edges(net, faults, rng);
        let backlog = &mut self.backlog;
        self.next = net.turn(&mut self.handler, &mut self.buffer, |net, handler| {
            accept(net, handler, backlog, faults, rng);
        });
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

/// Lets a loop see its mail, or a part of it.
fn hand_out_mail<H: Handler>(
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
            net.mail.give(batch);
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
    for _ in 0..net.limits.accepts_per_turn_max {
        let Some((socket, listener)) = backlog.pop_front() else { return };
        if rng.u8(..100) < faults.refuse_percent {
            net.counters.refused += 1;
            continue;
        }
        net.counters.accepted += 1;
        let mut conn = Conn::new(Stream::Virtual(socket), Phase::Open);
        conn.newcomer = net.limits.newcomers_budget_ns > 0;
        let id = net.insert(conn);
        handler.accepted(net, id, listener);
    }
}
