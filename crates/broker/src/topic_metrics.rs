//! Messages of topic filters that an operator has chosen, counted. Shards look at a flag while
//! there are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use tacho_topic::TopicFilter;

/// Filters that are counted at once: each has a bit of [`TopicBits`].
pub(crate) const TOPIC_METRICS_MAX: usize = TopicBits::BITS as usize;

/// Some of the filters, by their places in a [`TopicMetrics`].
pub(crate) type TopicBits = u16;

/// Counters of one filter. All shards write them: there are few, and only while they are wanted.
#[derive(Debug)]
pub(crate) struct TopicMetric {
    filter: TopicFilter,
    since_ms: u64,
    messages_in: AtomicU64,
    bytes_in: AtomicU64,
    messages_out: AtomicU64,
    bytes_out: AtomicU64,
    dropped: AtomicU64,
}

/// What the counters of a filter say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TopicMetricRow {
    pub(crate) filter: String,
    /// Since when it is counted, in milliseconds since 1970.
    pub(crate) since_ms: u64,
    /// Messages that the broker took in, wills and those of bridges included.
    pub(crate) messages_in: u64,
    /// Bytes of their payloads.
    pub(crate) bytes_in: u64,
    /// Messages that it sent, once per receiver and transmission.
    pub(crate) messages_out: u64,
    pub(crate) bytes_out: u64,
    /// Messages that a session was offered and did not keep.
    pub(crate) dropped: u64,
}

impl TopicMetric {
    pub(crate) fn new(filter: TopicFilter, since_ms: u64) -> Self {
        let [messages_in, bytes_in, messages_out, bytes_out, dropped] =
            std::array::from_fn(|_| AtomicU64::new(0));
        Self { filter, since_ms, messages_in, bytes_in, messages_out, bytes_out, dropped }
    }

    pub(crate) const fn filter(&self) -> &TopicFilter {
        &self.filter
    }

    pub(crate) fn row(&self) -> TopicMetricRow {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TopicMetricRow {
            filter: self.filter.as_str().to_owned(),
            since_ms: self.since_ms,
            messages_in: value(&self.messages_in),
            bytes_in: value(&self.bytes_in),
            messages_out: value(&self.messages_out),
            bytes_out: value(&self.bytes_out),
            dropped: value(&self.dropped),
        }
    }
}

/// All filters that are counted at a time. A change makes another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopicMetrics {
    /// Counts changes, from 1 on.
    pub(crate) version: u32,
    all: Vec<Arc<TopicMetric>>,
}

impl TopicMetrics {
    /// The same with one more; `None` if it is there already or there are too many.
    pub(crate) fn with(&self, metric: TopicMetric) -> Option<Self> {
        if self.all.len() == TOPIC_METRICS_MAX || self.has(metric.filter()) {
            return None;
        }
        let mut all = self.all.clone();
        all.push(Arc::new(metric));
        Some(Self { version: self.version.wrapping_add(1), all })
    }

    /// The same without a filter; `None` if it is not there.
    pub(crate) fn without(&self, filter: &TopicFilter) -> Option<Self> {
        if !self.has(filter) {
            return None;
        }
        let mut all = self.all.clone();
        all.retain(|metric| metric.filter != *filter);
        Some(Self { version: self.version.wrapping_add(1), all })
    }

    pub(crate) fn has(&self, filter: &TopicFilter) -> bool {
        self.all.iter().any(|metric| metric.filter == *filter)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn rows(&self) -> Vec<TopicMetricRow> {
        self.all.iter().map(|metric| metric.row()).collect()
    }

    /// Those that a topic belongs to.
    pub(crate) fn of_topic(&self, topic: &str) -> TopicBits {
        let matching = self.all.iter().enumerate().filter(|(_, m)| m.filter.matches(topic));
        matching.fold(0, |bits, (place, _)| bits | 1 << place)
    }

    /// A message was taken in.
    pub(crate) fn count_in(&self, bits: TopicBits, payload_bytes: usize) {
        for metric in self.iter(bits) {
            metric.messages_in.fetch_add(1, Ordering::Relaxed);
            metric.bytes_in.fetch_add(payload_bytes as u64, Ordering::Relaxed);
        }
    }

    /// A message was sent.
    pub(crate) fn count_out(&self, bits: TopicBits, payload_bytes: usize) {
        for metric in self.iter(bits) {
            metric.messages_out.fetch_add(1, Ordering::Relaxed);
            metric.bytes_out.fetch_add(payload_bytes as u64, Ordering::Relaxed);
        }
    }

    /// A session did not keep a message.
    pub(crate) fn count_dropped(&self, bits: TopicBits) {
        for metric in self.iter(bits) {
            metric.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn iter(&self, bits: TopicBits) -> impl Iterator<Item = &TopicMetric> {
        let places = self.all.iter().enumerate();
        places.filter(move |(place, _)| bits >> place & 1 == 1).map(|(_, metric)| &**metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_for_every_filter_that_its_topic_matches() {
        let filter = |text: &str| TopicFilter::parse(text).expect("a filter");
        let metric = |text: &str| TopicMetric::new(filter(text), 7);
        let one = TopicMetrics::default().with(metric("a/#")).expect("there is room");
        let two = one.with(metric("a/+")).expect("there is room");
        assert_eq!((one.version, two.version), (1, 2));
        assert!(two.with(metric("a/#")).is_none(), "it is there");
        two.count_in(two.of_topic("a/b"), 5);
        two.count_in(two.of_topic("a/b/c"), 2);
        two.count_out(two.of_topic("a/b"), 5);
        two.count_dropped(two.of_topic("b"));
        let rows = two.rows();
        assert_eq!([rows[0].messages_in, rows[1].messages_in], [2, 1]);
        assert_eq!((rows[0].bytes_in, rows[1].bytes_out, rows[0].dropped), (7, 5, 0));
        let rest = two.without(&filter("a/#")).expect("is there");
        assert_eq!((rest.rows().len(), rest.of_topic("a/b")), (1, 1));
        assert!(rest.without(&filter("a/#")).is_none());
        let mut full = TopicMetrics::default();
        for number in 0..TOPIC_METRICS_MAX {
            full = full.with(metric(&number.to_string())).expect("there is room");
        }
        assert!(full.with(metric("x")).is_none());
        assert_eq!(full.of_topic("15"), 1 << 15);
    }
}
