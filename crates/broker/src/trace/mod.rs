//! Traces: what the broker does with the packets of some clients or topics, for an operator that
//! looks for a fault. Bounded, and never waited for.
//!
//! A shard hands entries to the queue of a trace. One that finds no room is left out, and the next
//! one says how many were. Without traces a packet costs the look at a flag.

mod text;

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde::Serialize;
use tacho_access::AddressRange;
use tacho_topic::TopicFilter;
use tokio::sync::mpsc;

pub(crate) use text::{PayloadForm, PayloadShape, TraceText, escaped};

/// Traces at once: each has a bit of [`TraceBits`].
pub(crate) const TRACES_MAX: usize = TraceBits::BITS as usize;
/// Entries that wait for the reader of a trace.
const ENTRIES_MAX: usize = 4_096;
/// Bytes of those.
const ENTRIES_BYTES_MAX: usize = 4 << 20;
/// What an entry takes beside its texts.
const ENTRY_BYTES: usize = size_of::<TraceEntry>() + 64;
/// Of names that clients choose.
pub(crate) const NAME_CHARS_MAX: usize = 256;

/// Some of the traces, by their places in a [`TraceSet`].
pub(crate) type TraceBits = u8;

/// Which traces follow the client of a session, as noted when that was last asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TraceMark {
    /// Of the traces; 0 is never one.
    pub(crate) version: u32,
    pub(crate) bits: TraceBits,
}

/// A mark that changes while its session is only looked at.
pub(crate) type SessionTrace = Cell<TraceMark>;

/// What a trace follows: that for which everything given here holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceFilter {
    pub(crate) client_id: Option<String>,
    pub(crate) user: Option<String>,
    /// Where the client is connected from.
    pub(crate) addresses: Option<AddressRange>,
    /// Only messages of such topics, and what is decided about them.
    pub(crate) topic: Option<TopicFilter>,
}

impl TraceFilter {
    /// Whether it follows a client. The address is asked for only where it matters.
    pub(crate) fn follows(
        &self,
        (client_id, user): (&str, Option<&str>),
        address: impl FnOnce() -> Option<IpAddr>,
    ) -> bool {
        self.client_id.as_deref().is_none_or(|wanted| wanted == client_id)
            && self.user.as_deref().is_none_or(|wanted| user == Some(wanted))
            && self
                .addresses
                .as_ref()
                .is_none_or(|range| address().is_some_and(|address| range.contains(address)))
    }

    fn takes_topic(&self, topic: &str) -> bool {
        self.topic.as_ref().is_none_or(|filter| filter.matches(topic))
    }
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TraceKind {
    /// A packet from the client.
    In,
    /// A packet to the client.
    Out,
    /// Whether the client may do something.
    Auth,
    /// Where a message goes.
    Route,
    /// A message waits in the session's queue.
    Queue,
    /// The client does not get a message.
    Drop,
    /// The client is not read for a while.
    Hold,
    /// The connection has ended.
    End,
}

/// One entry of a trace; what it does not concern is absent. Texts of clients are escaped.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TraceEntry {
    pub(crate) kind: TraceKind,
    /// Microseconds since 1970, of the turn of the event loop.
    pub(crate) time_us: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<SocketAddr>,
    #[serde(flatten)]
    pub(crate) text: TraceText,
    /// Entries that were left out before this one.
    #[serde(skip)]
    pub(crate) missed: u64,
}

impl TraceEntry {
    fn bytes(&self) -> usize {
        let names = [&self.client_id, &self.user].map(|name| name.as_ref().map_or(0, String::len));
        ENTRY_BYTES + self.text.bytes() + names[0] + names[1]
    }
}

/// What its entries wait in.
#[derive(Debug, Default)]
struct TraceQueue {
    bytes: AtomicUsize,
    missed: AtomicU64,
}

/// A trace as shards see it.
#[derive(Debug)]
pub(crate) struct Trace {
    filter: TraceFilter,
    shape: PayloadShape,
    sender: mpsc::Sender<TraceEntry>,
    queue: Arc<TraceQueue>,
}

/// Where its entries arrive.
#[derive(Debug)]
pub(crate) struct TraceReader {
    receiver: mpsc::Receiver<TraceEntry>,
    queue: Arc<TraceQueue>,
}

impl Trace {
    /// A trace that no shard knows yet.
    pub(crate) fn new(filter: TraceFilter, shape: PayloadShape) -> (Self, TraceReader) {
        let (sender, receiver) = mpsc::channel(ENTRIES_MAX);
        let queue = Arc::<TraceQueue>::default();
        let reader = TraceReader { receiver, queue: Arc::clone(&queue) };
        (Self { filter, shape, sender, queue }, reader)
    }

    /// How payloads are shown.
    pub(crate) const fn shape(&self) -> &PayloadShape {
        &self.shape
    }

    /// Hands over an entry, or counts it as missed.
    pub(crate) fn tell(&self, mut entry: TraceEntry) {
        let bytes = entry.bytes();
        // Shards may exceed the bound by an entry each.
        let has_room = self.queue.bytes.load(Ordering::Relaxed) < ENTRIES_BYTES_MAX;
        let Some(place) = self.sender.try_reserve().ok().filter(|_| has_room) else {
            self.queue.missed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.queue.bytes.fetch_add(bytes, Ordering::Relaxed);
        entry.missed = self.queue.missed.swap(0, Ordering::Relaxed);
        place.send(entry);
    }
}

impl TraceReader {
    /// The next entry; `None` when the broker has ended.
    pub(crate) async fn next(&mut self) -> Option<TraceEntry> {
        let entry = self.receiver.recv().await?;
        self.took(&entry);
        Some(entry)
    }

    /// An entry that is here already.
    pub(crate) fn try_next(&mut self) -> Option<TraceEntry> {
        let entry = self.receiver.try_recv().ok()?;
        self.took(&entry);
        Some(entry)
    }

    /// Entries that were left out and that no later entry tells of.
    pub(crate) fn take_missed(&self) -> u64 {
        self.queue.missed.swap(0, Ordering::Relaxed)
    }

    fn took(&self, entry: &TraceEntry) {
        self.queue.bytes.fetch_sub(entry.bytes(), Ordering::Relaxed);
    }
}

/// All traces at a time. A change makes another set.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceSet {
    /// Counts changes, from 1 on: tells whether what a shard has noted still holds.
    pub(crate) version: u32,
    traces: [Option<Arc<Trace>>; TRACES_MAX],
    /// Those that follow everything of their clients, not only some topics.
    without_topic: TraceBits,
}

impl TraceSet {
    /// The same with one more; `None` where there is no place. Also its place.
    pub(crate) fn with(&self, trace: Arc<Trace>) -> Option<(Self, usize)> {
        let place = self.traces.iter().position(Option::is_none)?;
        let mut set = self.clone();
        set.traces[place] = Some(trace);
        set.changed();
        Some((set, place))
    }

    /// The same without the one at a place.
    pub(crate) fn without(&self, place: usize) -> Self {
        let mut set = self.clone();
        if let Some(trace) = set.traces.get_mut(place) {
            *trace = None;
        }
        set.changed();
        set
    }

    fn changed(&mut self) {
        // 0 is what sessions have noted that have never been looked at.
        self.version = self.version.wrapping_add(1).max(1);
        self.without_topic = self.bits(|filter| filter.topic.is_none());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.traces.iter().all(Option::is_none)
    }

    pub(crate) const fn without_topic(&self) -> TraceBits {
        self.without_topic
    }

    /// Those that take messages of a topic.
    pub(crate) fn of_topic(&self, topic: &str) -> TraceBits {
        self.bits(|filter| filter.takes_topic(topic))
    }

    /// Those whose filter is as wanted.
    pub(crate) fn bits(&self, wanted: impl Fn(&TraceFilter) -> bool) -> TraceBits {
        let places = self.traces.iter().enumerate();
        places
            .filter(|(_, trace)| trace.as_ref().is_some_and(|trace| wanted(&trace.filter)))
            .fold(0, |bits, (place, _)| bits | 1 << place)
    }

    /// These traces.
    pub(crate) fn iter(&self, bits: TraceBits) -> impl Iterator<Item = &Trace> {
        let places = self.traces.iter().enumerate();
        places.filter(move |(place, _)| bits >> place & 1 == 1).filter_map(|(_, t)| t.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(time_us: i64, text: &str) -> TraceEntry {
        TraceEntry {
            kind: TraceKind::Route,
            time_us,
            client_id: None,
            user: None,
            address: None,
            text: TraceText::of_words(text.to_owned()),
            missed: 0,
        }
    }

    fn filter(topic: Option<&str>) -> TraceFilter {
        let topic = topic.map(|topic| TopicFilter::parse(topic).expect("a filter"));
        TraceFilter { topic, ..TraceFilter::default() }
    }

    #[test]
    fn what_finds_no_room_is_left_out_and_the_next_entry_says_how_many() {
        let (trace, mut reader) = Trace::new(TraceFilter::default(), PayloadShape::default());
        for at in 0..ENTRIES_MAX as i64 + 3 {
            trace.tell(entry(at, ""));
        }
        assert_eq!(reader.try_next().map(|entry| (entry.time_us, entry.missed)), Some((0, 0)));
        trace.tell(entry(-1, ""));
        let rest: Vec<TraceEntry> = std::iter::from_fn(|| reader.try_next()).collect();
        assert_eq!(rest.len(), ENTRIES_MAX);
        assert_eq!(rest.last().map(|entry| (entry.time_us, entry.missed)), Some((-1, 3)));
        assert_eq!((reader.take_missed(), reader.queue.bytes.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn large_entries_are_bounded_in_bytes() {
        let (trace, mut reader) = Trace::new(TraceFilter::default(), PayloadShape::default());
        let text = "x".repeat(ENTRIES_BYTES_MAX / 4);
        for at in 0..10 {
            trace.tell(entry(at, &text));
        }
        let taken = std::iter::from_fn(|| reader.try_next()).count();
        assert!((3..=5).contains(&taken), "{taken}");
        assert_eq!(reader.take_missed(), 10 - taken as u64);
    }

    #[test]
    fn a_set_gives_each_trace_a_place_and_takes_it_back() {
        let trace = |topic| Arc::new(Trace::new(filter(topic), PayloadShape::default()).0);
        let mut set = TraceSet::default();
        assert!(set.is_empty());
        for place in 0..TRACES_MAX {
            let topic = (place % 2 == 0).then_some("a/+");
            let (with, at) = set.with(trace(topic)).expect("there is a place");
            assert_eq!((with.version, at), (set.version + 1, place));
            set = with;
        }
        assert!(set.with(trace(None)).is_none());
        assert_eq!(set.without_topic(), 0b1010_1010);
        assert_eq!((set.of_topic("a/b"), set.of_topic("b")), (0xff, 0b1010_1010));
        assert_eq!(set.iter(0b101).count(), 2);
        let set = set.without(1);
        assert_eq!((set.without_topic(), set.iter(0b10).count()), (0b1010_1000, 0));
        assert_eq!(set.with(trace(None)).map(|(_, place)| place), Some(1));
    }

    #[test]
    fn a_filter_follows_what_all_of_it_says() {
        let range = AddressRange::parse("192.0.2.0/24").expect("a range");
        let filter = TraceFilter {
            client_id: Some("c".to_owned()),
            user: Some("u".to_owned()),
            addresses: Some(range),
            topic: None,
        };
        let from = |text: &str| text.parse().ok();
        assert!(filter.follows(("c", Some("u")), || from("192.0.2.7")));
        assert!(!filter.follows(("d", Some("u")), || from("192.0.2.7")));
        assert!(!filter.follows(("c", None), || from("192.0.2.7")));
        assert!(!filter.follows(("c", Some("u")), || from("192.0.3.7")));
        assert!(!filter.follows(("c", Some("u")), || None));
        let everyone = TraceFilter::default();
        assert!(everyone.follows(("x", None), || panic!("the address does not matter")));
    }
}
