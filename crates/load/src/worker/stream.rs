//! One publisher stream on its thread.

use tacho_codec::{EncodeError, Publish, PublishHead, QoS, Version};

use crate::payload::Content;
use crate::plan::{CatchUp, Client, Group, Pace, PublishBlock, Stream, StreamIndex};
use crate::schedule::Schedule;
use crate::verifier::{Hole, Mark, StreamEnds, Tracker};
use crate::window::Window;

/// Marks a stream that has sent no message of the window yet.
const NOTHING: u64 = u64::MAX;

/// How the loss of a stream's messages is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Judgement {
    /// Every loss at QoS 1 and 2 is a violation.
    Strict,
    /// Some messages were refused, or unacknowledged when their session ended: only the loss of
    /// acknowledged messages is a violation.
    Lenient,
    /// The same, because the publisher's connection failed.
    Failed,
}

/// Everything that a [`VirtualStream`] is made from.
#[derive(Debug)]
pub(super) struct StreamOrigin<'a> {
    pub(super) index: StreamIndex,
    /// Position among the streams of its block.
    pub(super) ordinal: u64,
    /// The client's number on this thread.
    pub(super) local_client: u32,
    pub(super) cell: u16,
    pub(super) group: &'a Group,
    pub(super) client: &'a Client,
    pub(super) stream: &'a Stream,
    /// Deliveries that each message causes.
    pub(super) receivers: u32,
}

/// A topic that one client publishes to.
#[derive(Debug)]
pub(super) struct VirtualStream {
    /// The number of its client on this thread.
    pub(super) client: u32,
    /// The cell of its client.
    pub(super) cell: u16,
    pub(super) index: StreamIndex,
    /// Position among the streams of its block, and how many there are.
    pub(super) ordinal: u64,
    pub(super) siblings: u64,
    pub(super) block: usize,
    pub(super) pace: Pace,
    pub(super) version: Version,
    pub(super) qos: QoS,
    pub(super) retain: bool,
    /// Size of all payloads; `None` where it varies.
    pub(super) fixed_bytes: Option<usize>,
    /// Size of the largest payload.
    pub(super) payload_bytes: u64,
    /// Size of the largest packet.
    pub(super) packet_bytes_max: usize,
    /// Deliveries that each message causes.
    pub(super) receivers: u64,
    /// The PUBLISH up to its payload.
    pub(super) head: PublishHead,
    pub(super) schedule: Option<Schedule>,
    /// Sequence number of the next message.
    pub(super) next_seq: u64,
    /// Closed mode: deliveries (QoS 0) or messages (QoS 1 and 2) in flight.
    pub(super) in_flight: u64,
    /// Closed mode: it is in the list of willing streams, or waits with its client.
    pub(super) is_willing: bool,
    /// Closed mode: it made progress since the last check.
    pub(super) progressed: bool,
    pub(super) judgement: Judgement,
    /// The messages with their last acknowledgement.
    acks: Tracker,
    /// Intended time of the last message.
    last_ns: u64,
    settled: u64,
    window_from: u64,
    window_to: u64,
}

impl VirtualStream {
    pub(super) fn new(origin: &StreamOrigin<'_>) -> Self {
        let StreamOrigin { group, stream, .. } = origin;
        let block = &group.publish[stream.block];
        let bytes_max = block.payload.bytes_max(&origin.client.id, &stream.topic);
        // Invariant: `Plan::check` bounds topic and payload.
        let head = head(stream, group.version, block, bytes_max)
            .expect("a checked plan fits into packets");
        Self {
            client: origin.local_client,
            cell: origin.cell,
            index: origin.index,
            ordinal: origin.ordinal,
            siblings: 0,
            block: stream.block,
            pace: block.pace.clone(),
            version: group.version,
            qos: block.qos,
            retain: block.retain,
            // Every request has its own correlation data.
            fixed_bytes: Content::new(&block.payload, "")
                .fixed_bytes()
                .filter(|_| stream.response_topic.is_none()),
            payload_bytes: bytes_max as u64,
            packet_bytes_max: head.frame_len()
                + stream.response_topic.as_ref().map_or(0, |topic| topic.len() + 32),
            receivers: origin.receivers.into(),
            head,
            schedule: None,
            next_seq: 0,
            in_flight: 0,
            is_willing: false,
            progressed: false,
            judgement: Judgement::Strict,
            acks: Tracker::default(),
            last_ns: 0,
            settled: 0,
            window_from: NOTHING,
            window_to: 0,
        }
    }

    pub(super) const fn catch_up(&self) -> CatchUp {
        self.pace.catch_up()
    }

    /// Intended time of the next message of an open stream.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.schedule.as_ref().map_or(u64::MAX, Schedule::next_ns)
    }

    /// Takes the next sequence number, for a message with this intended time.
    #[inline]
    pub(super) const fn number(&mut self, intended_ns: u64, window: &Window) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.last_ns = intended_ns;
        if window.contains(intended_ns) {
            if self.window_from == NOTHING {
                self.window_from = seq;
            }
            self.window_to = self.next_seq;
        }
        seq
    }

    /// Whether closed mode allows a further message.
    #[inline]
    pub(super) const fn may_send_closed(&self) -> bool {
        match self.pace {
            Pace::Closed { window } => match self.qos {
                QoS::AtMostOnce => {
                    self.in_flight + self.receivers <= window as u64 * self.receivers
                }
                _ => self.in_flight < window as u64,
            },
            _ => false,
        }
    }

    /// What one message adds to `in_flight`.
    pub(super) const fn cost(&self) -> u64 {
        match self.qos {
            QoS::AtMostOnce => self.receivers,
            _ => 1,
        }
    }

    /// From now on only the loss of acknowledged messages is a violation.
    pub(super) fn relax_judgement(&mut self) {
        self.judgement = self.judgement.max(Judgement::Lenient);
    }

    /// The last acknowledgement of a message was received.
    #[inline]
    pub(super) fn acknowledged(&mut self, seq: u32) {
        // A message that a resumed session retransmits may be acknowledged twice.
        self.acks.observe(seq, Mark::default());
    }

    /// The messages sent since the last [`VirtualStream::settle`]. Messages that are unacknowledged
    /// now never count as acknowledged.
    pub(super) fn ends(&mut self) -> StreamEnds {
        let mut unacknowledged = Vec::new();
        if self.qos != QoS::AtMostOnce {
            let take = |hole: Hole| unacknowledged.push(hole.from..hole.to);
            self.acks.settle(self.next_seq, Mark::default(), take);
        }
        let (window_from, window_to) = match self.window_from {
            NOTHING => (self.next_seq, self.next_seq),
            from => (from, self.window_to),
        };
        StreamEnds {
            from: self.settled,
            window_from,
            window_to,
            to: self.next_seq,
            last_ns: self.last_ns,
            failed: self.judgement > Judgement::Strict,
            unacknowledged,
            unknown: false,
        }
    }

    /// Closes the books.
    pub(super) const fn settle(&mut self) {
        self.settled = self.next_seq;
        self.window_from = NOTHING;
    }
}

fn head(
    stream: &Stream,
    version: Version,
    block: &PublishBlock,
    payload_bytes: usize,
) -> Result<PublishHead, EncodeError> {
    // Only the length of the payload goes into the head.
    let payload = vec![0; payload_bytes];
    let publish = Publish {
        qos: block.qos,
        retain: block.retain,
        topic: &stream.topic,
        payload: &payload,
        ..Publish::default()
    };
    let mut head = PublishHead::new();
    head.encode(&publish, version)?;
    Ok(head)
}
