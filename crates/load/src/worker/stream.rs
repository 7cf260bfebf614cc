//! One publisher stream as its thread sees it.

use tacho_codec::{EncodeError, Publish, PublishHead, QoS, Version};

use crate::payload::Content;
use crate::plan::{CatchUp, Client, Group, Pace, PublishBlock, Stream, StreamIndex};
use crate::schedule::Schedule;
use crate::verifier::{Hole, Mark, StreamEnds, Tracker, Window};

/// Marks a stream that has sent nothing for the window yet.
const NOTHING: u64 = u64::MAX;

/// A topic that one client publishes to.
#[derive(Debug)]
pub(super) struct VirtualStream {
    /// Its client's number on this thread.
    pub(super) client: u32,
    /// Its client's group at its broker.
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
    /// Size of all payloads; `None` where each is another.
    pub(super) fixed_bytes: Option<usize>,
    /// Size of the largest packet.
    pub(super) packet_bytes_max: usize,
    /// Deliveries that each message causes.
    pub(super) receivers: u64,
    /// Everything of the PUBLISH before its payload.
    pub(super) head: PublishHead,
    pub(super) schedule: Option<Schedule>,
    /// Number of the next message.
    pub(super) next_seq: u64,
    /// Closed mode: what is under way, in deliveries at QoS 0 and else in messages.
    pub(super) under_way: u64,
    /// Closed mode: is in the list of willing streams, or waits for its client.
    pub(super) is_willing: bool,
    /// Closed mode: made progress since the last look.
    pub(super) progressed: bool,
    pub(super) failed: bool,
    /// Some of its messages had no acknowledgement when their session ended, or were refused: what
    /// was not acknowledged is not judged.
    pub(super) is_lenient: bool,
    /// Messages with their last acknowledgement.
    acks: Tracker,
    /// When the last message was due.
    last_ns: u64,
    settled: u64,
    window_from: u64,
    window_to: u64,
}

impl VirtualStream {
    pub(super) fn new(
        (client, cell): (u32, u16),
        index: StreamIndex,
        ordinal: u64,
        stream: &Stream,
        (group, client_of_plan, block): (&Group, &Client, &PublishBlock),
        receivers: u32,
    ) -> Self {
        let bytes_max = block.payload.bytes_max(&client_of_plan.id, &stream.topic);
        // Invariant: `Plan::check` bounds topic and payload.
        let head = head(stream, group.version, block, bytes_max)
            .expect("a checked plan fits into packets");
        Self {
            client,
            cell,
            index,
            ordinal,
            siblings: 0,
            block: stream.block,
            pace: block.pace.clone(),
            version: group.version,
            qos: block.qos,
            retain: block.retain,
            // The correlation data of each request is another.
            fixed_bytes: Content::new(&block.payload, "")
                .fixed_bytes()
                .filter(|_| stream.response_topic.is_none()),
            packet_bytes_max: head.frame_len()
                + stream.response_topic.as_ref().map_or(0, |topic| topic.len() + 32),
            receivers: receivers.into(),
            head,
            schedule: None,
            next_seq: 0,
            under_way: 0,
            is_willing: false,
            progressed: false,
            failed: false,
            is_lenient: false,
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

    /// When the next message of an open stream is due.
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

    /// Does closed mode allow a further message?
    #[inline]
    pub(super) const fn may_send_closed(&self) -> bool {
        match self.pace {
            Pace::Closed { window } => match self.qos {
                QoS::AtMostOnce => {
                    self.under_way + self.receivers <= window as u64 * self.receivers
                }
                _ => self.under_way < window as u64,
            },
            _ => false,
        }
    }

    /// What one message adds to `under_way`.
    pub(super) const fn cost(&self) -> u64 {
        match self.qos {
            QoS::AtMostOnce => self.receivers,
            _ => 1,
        }
    }

    /// The last acknowledgement of a message has come.
    #[inline]
    pub(super) fn acknowledged(&mut self, seq: u32) {
        // Sent again by a resumed session, a message may be acknowledged twice.
        self.acks.observe(seq, Mark::default());
    }

    /// What was sent since the last [`VirtualStream::settle`]. What is not acknowledged by now
    /// never counts as acknowledged.
    pub(super) fn ends(&mut self) -> StreamEnds {
        let mut unacknowledged = Vec::new();
        if self.qos != QoS::AtMostOnce {
            let take = |hole: Hole| unacknowledged.push((hole.from, hole.to));
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
            failed: self.failed || self.is_lenient,
            unacknowledged,
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
