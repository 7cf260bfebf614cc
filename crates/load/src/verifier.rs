//! The verifier judges every delivery: expected, lost, duplicate, out of order, damaged, foreign.
//!
//! A [`Verifier`] belongs to one generator thread and serves its receiving clients. The plan's
//! routes say which streams each receiver must receive; [`Verifier::observe`] judges one delivery,
//! [`Verifier::settle`] closes the books of a window at the end of its drain.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tacho_codec::QoS;
use tacho_net::clock;

use crate::events::{Delivery, Violations};
use crate::payload::{Content, Contents, Header};
use crate::plan::{ClientIndex, Plan, Receiver, StreamIndex};
use crate::window::Window;

mod routes;
mod settle;
mod shared;
mod tracker;

use shared::SharedTracker;
use tracker::Observation;
pub(crate) use tracker::{Absence, Hole, Mark, Tracker};

use settle::Policy;
pub(crate) use settle::{Books, MemberCount, StreamEnds, settle_shared};

use routes::{Entry, ReceiverTable, SharedEntry};

/// The streams, as all threads see them.
#[derive(Debug)]
pub(crate) struct Streams {
    /// The run's number as payloads carry it.
    pub(crate) run: u32,
    pub(crate) contents: Contents,
    pub(crate) infos: Vec<StreamInfo>,
    /// Payloads and clients of wills, by topic.
    wills: HashMap<Box<str>, (Vec<u8>, ClientIndex)>,
    responders: Responders,
}

/// Whether all responders could answer every request that reached them. Otherwise it is unknown
/// which answers the broker has received.
#[derive(Debug, Default)]
struct Responders {
    /// Number of responders that are away from their sessions.
    away: AtomicU32,
    /// Whether some answers were given up.
    owe: AtomicBool,
}

/// The correlation data of a request.
pub(crate) fn correlation(stream: StreamIndex, seq: u32) -> [u8; 8] {
    (u64::from(stream.number()) << 32 | u64::from(seq)).to_be_bytes()
}

/// A stream, as its receivers must see it.
#[derive(Debug)]
pub(crate) struct StreamInfo {
    pub(crate) topic: Box<str>,
    /// Response topic, if its messages are requests.
    pub(crate) response: Option<Box<str>>,
    /// Further topics under which bridges between brokers, or answers, deliver its messages.
    passed_on_as: Box<[Box<str>]>,
    pub(crate) content: Content,
}

impl StreamInfo {
    fn is_answer(&self, received: &Received<'_>) -> bool {
        self.response.as_deref() == Some(received.topic)
    }

    /// Whether an answer has the correlation data of its request; true for other messages.
    #[inline]
    fn is_correlated(&self, header: &Header, received: &Received<'_>) -> bool {
        !self.is_answer(received)
            || received.correlation == Some(&correlation(header.stream, header.seq)[..])
    }

    /// All topics under which its messages may arrive.
    #[inline]
    fn topics(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.topic).chain(self.passed_on_as.iter().map(|topic| &**topic))
    }
}

impl Streams {
    #[cfg(test)]
    pub(crate) fn new(plan: &Plan) -> Self {
        Self::at(plan, unix_offset_ns())
    }

    /// The streams of a plan; `unix_offset_ns` is Unix time minus the run's clock.
    pub(crate) fn at(plan: &Plan, unix_offset_ns: u64) -> Self {
        let infos: Vec<StreamInfo> = plan
            .clients()
            .flat_map(|(group, client)| {
                client.streams.iter().map(move |stream| StreamInfo {
                    topic: stream.topic.as_str().into(),
                    response: stream.response_topic.as_deref().map(Box::from),
                    passed_on_as: plan
                        .bridged(group, &stream.topic)
                        .map(|(_, topic)| topic.into())
                        .chain(stream.response_topic.as_deref().map(Box::from))
                        .collect(),
                    content: Content::new(&group.publish[stream.block].payload, &client.id),
                })
            })
            .collect();
        let all = infos.iter().map(|info| &info.content);
        let contents = Contents::new(plan.seed, unix_offset_ns, all);
        let wills =
            ClientIndex::all().zip(plan.clients()).filter_map(|(index, (group, client))| {
                let (will, topic) = group.will.as_ref().zip(client.will_topic.as_deref())?;
                Some((topic.into(), (will.payload.clone(), index)))
            });
        let responders = Responders::default();
        Self { run: plan.run_id & 0x00FF_FFFF, contents, infos, wills: wills.collect(), responders }
    }

    /// Whether answers to the stream's requests may be missing that the broker never received.
    fn owes_answers(&self, stream: StreamIndex) -> bool {
        let Responders { away, owe } = &self.responders;
        self.infos[stream.index()].response.is_some()
            && (owe.load(Ordering::Relaxed) || away.load(Ordering::Relaxed) > 0)
    }

    /// The client of the plan whose will this is.
    fn will_of(&self, received: &Received<'_>) -> Option<ClientIndex> {
        let (payload, client) = self.wills.get(received.topic)?;
        (payload == received.payload).then_some(*client)
    }
}

/// Unix time minus CLOCK_MONOTONIC, for payloads that carry the time.
pub(crate) fn unix_offset_ns() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (unix.as_nanos() as u64).wrapping_sub(clock::now_ns())
}

/// A received PUBLISH, as far as it matters to the verifier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'a> {
    pub(crate) topic: &'a str,
    pub(crate) payload: &'a [u8],
    pub(crate) dup: bool,
    /// The correlation data of an answer.
    pub(crate) correlation: Option<&'a [u8]>,
}

/// The result of [`Verifier::observe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A first delivery, to be recorded.
    Delivered {
        header: Header,
        /// Deliveries of the stream that are now settled: this one, and those that it revealed as
        /// missing. 0 for a delivery that was revealed as missing before.
        settled: u64,
    },
    /// The first readiness probe of a stream at a receiver.
    Probe { stream: StreamIndex, receiver: Receiver },
    /// The will of a client.
    Will { of: ClientIndex },
    /// Counted; nothing to record.
    Other,
}

/// What the tracker of a route says about a delivery.
#[derive(Debug, Clone, Copy)]
struct Tracked {
    observation: Observation,
    qos: QoS,
    overlapping: bool,
}

/// Counts inside or outside of the window.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    delivery: Delivery,
    violations: Violations,
}

/// Judges the deliveries to the receivers of one thread.
#[derive(Debug)]
pub(crate) struct Verifier {
    streams: Arc<Streams>,
    clients: Vec<ClientState>,
    entries: Vec<Entry>,
    shared: Vec<ReceiverTable>,
    shared_entries: Vec<SharedEntry>,
    window: Window,
    /// Buffer for regenerated text payloads, which received ones are compared with.
    scratch: Vec<u8>,
    /// By cell: outside and inside the window.
    tallies: Vec<[Tally; 2]>,
}

#[derive(Debug)]
struct ClientState {
    index: ClientIndex,
    /// The cell of its group and broker.
    cell: usize,
    routes: ReceiverTable,
    /// The shared groups of which it is a member.
    groups: Vec<Membership>,
    /// Whether it has any route.
    receives: bool,
    /// Its connection failed: what it misses is no violation.
    failed: bool,
    /// A session of it has ended: messages that its shared groups miss may have been for it.
    has_left: bool,
    /// It is a responder.
    answers: bool,
    /// When it returned from its last absence.
    back_ns: u64,
    /// It is away from its session, or has none.
    is_away: bool,
    policy: Policy,
    received_in_window: u64,
    /// Position of the header in the last text.
    header_hint: usize,
}

/// A client's membership in a shared group.
#[derive(Debug, Clone, Copy)]
struct Membership {
    /// Table in `shared`.
    table: u32,
    received_in_window: u64,
}

impl Verifier {
    /// Sets the measured window.
    pub(crate) const fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    pub(crate) const fn window(&self) -> Window {
        self.window
    }

    /// The client's connection failed: messages that it misses are counted but are no violation.
    pub(crate) fn set_failed(&mut self, client: usize) {
        self.clients[client].failed = true;
        if self.clients[client].answers {
            self.note_given_up_answer();
        }
    }

    /// An answer to a delivered request was given up.
    pub(crate) fn note_given_up_answer(&self) {
        self.streams.responders.owe.store(true, Ordering::Relaxed);
    }

    fn set_is_away(&mut self, client: usize, is_away: bool) {
        let state = &mut self.clients[client];
        if state.answers && state.is_away != is_away {
            let away = &self.streams.responders.away;
            match is_away {
                true => away.fetch_add(1, Ordering::Relaxed),
                false => away.fetch_sub(1, Ordering::Relaxed),
            };
        }
        state.is_away = is_away;
    }

    pub(crate) fn is_failed(&self, client: usize) -> bool {
        self.clients[client].failed
    }

    /// The client is away from its session, until [`Verifier::set_back`].
    pub(crate) fn set_away(&mut self, client: usize) {
        self.set_is_away(client, true);
    }

    /// The client has returned to its session, which holds the messages published meanwhile.
    pub(crate) fn set_back(&mut self, client: usize, now_ns: u64) {
        self.set_is_away(client, false);
        let state = &mut self.clients[client];
        state.back_ns = now_ns;
        for entry in &mut self.entries[state.routes.range()] {
            entry.absence = entry.absence.max(Absence::Kept);
        }
    }

    /// The client's session ends. No delivery is due of messages in flight to it, and of messages
    /// published until [`Verifier::renew`].
    pub(crate) fn end_session(&mut self, client: usize) {
        self.set_is_away(client, true);
        let state = &mut self.clients[client];
        state.has_left = true;
        for entry in &mut self.entries[state.routes.range()] {
            entry.absence = Absence::Ended;
        }
        if state.answers {
            self.note_given_up_answer();
        }
    }

    /// The client has its subscriptions again, if its session had ended.
    pub(crate) fn renew(&mut self, client: usize, now_ns: u64) {
        if self.clients[client].is_away {
            self.set_is_away(client, false);
            self.clients[client].back_ns = now_ns;
        }
    }

    /// The streams that the client must receive by its own filters.
    pub(crate) fn streams_to(&self, client: usize) -> impl Iterator<Item = StreamIndex> {
        self.entries[self.clients[client].routes.range()].iter().map(|entry| entry.stream)
    }

    /// Marks the client's routes as probed; returns those that were not.
    pub(crate) fn unprobed(&mut self, client: usize) -> Vec<(StreamIndex, Receiver)> {
        let table = &self.clients[client].routes;
        self.entries[table.range()]
            .iter_mut()
            .filter_map(|entry| {
                let first = !std::mem::replace(&mut entry.probed, true);
                first.then_some((entry.stream, table.receiver))
            })
            .collect()
    }

    /// The broker granted `qos` for a filter, which bounds the QoS of its routes.
    pub(crate) fn set_granted(&mut self, client: usize, filter: &str, qos: QoS) {
        let state = &self.clients[client];
        let shared = filter.strip_prefix("$share/").and_then(|rest| rest.split_once('/'));
        let streams = &self.streams.infos;
        let matches = |stream: StreamIndex, filter: &str| {
            streams[stream.index()].topics().any(|topic| tacho_topic::matches(filter, topic))
        };
        let mut is_lower = false;
        match shared {
            None => {
                for entry in &mut self.entries[state.routes.range()] {
                    if matches(entry.stream, filter) {
                        is_lower |= qos < entry.qos;
                        entry.qos = entry.qos.min(qos);
                    }
                }
            }
            Some((_, filter)) => {
                for group in &state.groups {
                    let table = &self.shared[group.table as usize];
                    for entry in &mut self.shared_entries[table.range()] {
                        if matches(entry.stream, filter) {
                            is_lower |= qos < entry.qos;
                            entry.qos = entry.qos.min(qos);
                        }
                    }
                }
            }
        }
        // Its answers then have a lower QoS, too, and may be lost.
        if is_lower && state.answers {
            self.note_given_up_answer();
        }
    }

    /// Judges one delivery to `client` (its position on this thread).
    #[inline]
    pub(crate) fn observe(
        &mut self,
        now_ns: u64,
        client: usize,
        received: &Received<'_>,
    ) -> Verdict {
        let (run, hint) = (self.streams.run, &mut self.clients[client].header_hint);
        let Some(header) = self.streams.contents.decode(received.payload, run, hint) else {
            return self.observe_without_header(now_ns, client, received);
        };
        if !self.is_intact(&header, received) {
            let tally = self.now_tally(client, now_ns);
            tally.delivery.corrupted += 1;
            tally.violations.corrupted += 1;
            return Verdict::Other;
        }
        if header.probe {
            return self.observe_probe(client, header.stream);
        }
        let inside = self.window.contains(header.intended_ns);
        let tracked = self.track(client, &header, inside);
        let state = &mut self.clients[client];
        let Tally { delivery, violations } = &mut self.tallies[state.cell][usize::from(inside)];
        let Some(Tracked { observation, qos, overlapping }) = tracked else {
            delivery.unexpected += 1;
            return Verdict::Other;
        };
        let settled = match observation {
            Observation::New { skipped } => 1 + skipped,
            Observation::OutOfOrder => {
                // The answers of several responders have no common order.
                if !self.streams.infos[header.stream.index()].is_answer(received) {
                    delivery.out_of_order += 1;
                    violations.out_of_order += u64::from(!state.failed);
                }
                0
            }
            Observation::Duplicate => {
                delivery.duplicates += 1;
                delivery.duplicates_flagged += u64::from(received.dup);
                violations.duplicates +=
                    u64::from(qos != QoS::AtLeastOnce && !overlapping && !state.failed);
                return Verdict::Other;
            }
            Observation::Late => {
                delivery.late += 1;
                return Verdict::Other;
            }
        };
        state.received_in_window += u64::from(inside);
        delivery.negative += u64::from(header.intended_ns > now_ns);
        Verdict::Delivered { header, settled }
    }

    /// Updates the tracker of the message's route; `None` when the client has no route for it.
    #[inline]
    fn track(&mut self, client: usize, header: &Header, inside: bool) -> Option<Tracked> {
        let state = &mut self.clients[client];
        let mut tracked = None;
        if let Some(at) = state.routes.find(header.stream) {
            let entry = &mut self.entries[at];
            let mark = Mark { inside, absence: entry.absence };
            let observation = entry.tracker.observe(header.seq, mark);
            if entry.absence != Absence::None
                && !state.is_away
                && header.intended_ns >= state.back_ns
            {
                entry.absence = Absence::None;
            }
            let (qos, overlapping) = (entry.qos, entry.overlapping);
            tracked = Some(Tracked { observation, qos, overlapping });
        }
        // A client may have a plain subscription and be a member of a shared group too: a second
        // copy is then the group's.
        let is_first = |tracked: &Tracked| {
            matches!(tracked.observation, Observation::New { .. } | Observation::OutOfOrder)
        };
        if tracked.as_ref().is_some_and(is_first) {
            return tracked;
        }
        for group in &mut state.groups {
            if let Some(at) = self.shared[group.table as usize].find(header.stream) {
                let entry = &mut self.shared_entries[at];
                let observation = entry.tracker.observe(header.seq);
                tracked = Some(Tracked { observation, qos: entry.qos, overlapping: false });
                if matches!(observation, Observation::New { .. }) {
                    group.received_in_window += u64::from(inside);
                    break;
                }
            }
        }
        tracked
    }

    /// Judges a message without our header: the will of a client of the plan, or foreign.
    #[cold]
    fn observe_without_header(
        &mut self,
        now_ns: u64,
        client: usize,
        received: &Received<'_>,
    ) -> Verdict {
        let will_of = self.streams.will_of(received);
        let delivery = &mut self.now_tally(client, now_ns).delivery;
        let Some(of) = will_of else {
            delivery.unexpected += 1;
            return Verdict::Other;
        };
        delivery.wills += 1;
        Verdict::Will { of }
    }

    #[inline]
    fn is_intact(&mut self, header: &Header, received: &Received<'_>) -> bool {
        let Streams { contents, infos, .. } = &*self.streams;
        let payload = received.payload;
        infos.get(header.stream.index()).is_some_and(|info| {
            info.topics().any(|topic| topic == received.topic)
                && info.is_correlated(header, received)
                && contents.is_intact(
                    &info.content,
                    &info.topic,
                    header,
                    payload,
                    &mut self.scratch,
                )
        })
    }

    fn observe_probe(&mut self, client: usize, stream: StreamIndex) -> Verdict {
        let state = &self.clients[client];
        if let Some(at) = state.routes.find(stream)
            && !std::mem::replace(&mut self.entries[at].probed, true)
        {
            return Verdict::Probe { stream, receiver: Receiver::Client(state.index) };
        }
        for group in &state.groups {
            let table = &self.shared[group.table as usize];
            if let Some(at) = table.find(stream)
                && !std::mem::replace(&mut self.shared_entries[at].probed, true)
            {
                return Verdict::Probe { stream, receiver: table.receiver };
            }
        }
        Verdict::Other
    }

    /// The tally of messages without a trustworthy intended time: that of the window once it has
    /// begun.
    fn now_tally(&mut self, client: usize, now_ns: u64) -> &mut Tally {
        let inside = usize::from(now_ns >= self.window.start_ns);
        &mut self.tallies[self.clients[client].cell][inside]
    }
}

#[cfg(test)]
mod tests;
