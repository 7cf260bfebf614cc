//! Records left out of a commit do not change the resulting index.

use fastrand::Rng;

use super::*;
use crate::frame::FramePlace;
use crate::id::{MessageId, QueueId, SegmentId};
use crate::index::FrameAt;
use crate::record::Record;

const QUEUES: u64 = 3;
const SEQS: u64 = 200;

fn id(number: u64) -> MessageId {
    MessageId::new(number).expect("not 0")
}

fn message(number: u64) -> Record<'static> {
    Record::Message { id: id(number), body: &[b"body"] }
}

fn entry(queue: u64, seq: u64, number: u64) -> Record<'static> {
    Record::Entry { queue: QueueId::new(queue), seq, message: id(number), state: 0, meta: &[] }
}

fn remove(queue: u64, seq: u64) -> Record<'static> {
    Record::Remove { queue: QueueId::new(queue), seq }
}

fn state(queue: u64, seq: u64, keep_message: bool) -> Record<'static> {
    Record::State { queue: QueueId::new(queue), seq, state: 7, keep_message }
}

fn encode(records: &[Record<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    records.iter().for_each(|record| record.encode(&mut bytes));
    bytes
}

fn apply(index: &mut Index, number: u64, records: &[u8]) {
    let place = FramePlace { segment: SegmentId::new(1), offset: number as u32 * 1_000_000 };
    index.apply(FrameAt::new(place, number), records).expect("records");
}

/// As writers buffer them: without the checksums of messages.
fn encode_unsealed(records: &[Record<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    records.iter().for_each(|record| record.encode_unsummed(&mut bytes));
    bytes
}

/// The remaining records of one commit, and the number left out.
fn rest_of(index: &Index, writers: &[&[Record<'_>]]) -> (Vec<u8>, u32) {
    let taken: Vec<_> = writers.iter().map(|records| encode_unsealed(records)).collect();
    let mut rest = Vec::new();
    let left_out = TransientFilter::default().append(index, &taken, &mut rest);
    let all: usize = taken.iter().map(Vec::len).sum();
    assert_eq!(rest.len() as u64 + left_out.bytes, all as u64);
    (rest, left_out.records)
}

#[test]
fn a_message_delivered_to_all_queues_is_left_out_with_its_records() {
    let ours = [
        message(1),
        entry(1, 5, 1),
        entry(2, 5, 1),
        message(2),
        entry(1, 6, 2),
        state(1, 5, true),
        remove(1, 5),
        remove(2, 5),
    ];
    let theirs = [message(3), entry(3, 1, 3), remove(3, 1), remove(3, 0)];
    let (rest, records) = rest_of(&Index::default(), &[&ours, &theirs]);
    assert_eq!(rest, encode(&[message(2), entry(1, 6, 2), remove(3, 0)]));
    assert_eq!(records, 9);
}

#[test]
fn records_that_others_depend_on_stay() {
    let key = b"key";
    let put = |message| Record::Put {
        queue: QueueId::COMMON,
        key,
        version: 0,
        value: &[],
        message: Some(id(message)),
    };
    let open = Record::Open { message: id(1), meta: &[] };
    let done = Record::Done { message: id(1) };
    let gone = [message(1), entry(1, 1, 1), remove(1, 1)];
    assert_eq!(rest_of(&Index::default(), &[&gone]).1, 3);
    for more in [put(1), open, done, entry(2, 9, 1), message(1), entry(1, 1, 1)] {
        let behind: Vec<_> = gone.into_iter().chain([more]).collect();
        assert_eq!(rest_of(&Index::default(), &[&behind]).1, 0, "{more:?}");
        for writers in [[&gone[..], &[more]], [&[more], &gone[..]]] {
            let (rest, records) = rest_of(&Index::default(), &writers);
            assert_eq!((rest, records), (encode(&writers.concat()), 0), "{more:?}");
        }
    }
    // Not delivered yet.
    assert_eq!(rest_of(&Index::default(), &[&[message(1)]]).1, 0);
    assert_eq!(rest_of(&Index::default(), &[&[message(1), entry(1, 1, 1)]]).1, 0);
    // It replaces another message.
    let mut index = Index::default();
    apply(&mut index, 1, &encode(&[message(9), entry(1, 1, 9)]));
    assert_eq!(rest_of(&index, &[&gone]).1, 0);
}

#[test]
fn undecodable_records_are_left_unchanged() {
    let records = [message(1), entry(1, 1, 1), remove(1, 1)];
    let (mut taken, mut bytes) = ([encode_unsealed(&records)], encode(&records));
    taken[0].push(0xff);
    bytes.push(0xff);
    let mut rest = Vec::new();
    let left_out = TransientFilter::default().append(&Index::default(), &taken, &mut rest);
    assert_eq!((rest, left_out), (bytes, LeftOut::default()));
}

#[test]
fn commits_without_savings_pause_the_search() {
    let mut transients = TransientFilter::default();
    let mut look = |records: &[Record<'_>]| {
        transients.append(&Index::default(), &[encode(records)], &mut Vec::new()).records
    };
    let gone = [message(1), entry(1, 1, 1), remove(1, 1)];
    assert_eq!(look(&gone), 3);
    assert_eq!(look(&[message(1)]), 0);
    let looks = (0..REST_COMMITS).map(|_| look(&gone)).sum::<u32>();
    assert_eq!((looks, look(&gone)), (0, 3));
    // Their messages still get checksums.
    let (records, mut rest) = ([message(1), entry(1, 1, 1), message(2)], Vec::new());
    let mut resting = TransientFilter { rest: 1, ..TransientFilter::default() };
    resting.append(&Index::default(), &[encode_unsealed(&records)], &mut rest);
    assert_eq!(rest, encode(&records));
}

/// The content of an index, without positions.
fn content(index: &Index) -> impl PartialEq + std::fmt::Debug {
    let messages: Vec<_> = index.messages().into_iter().map(|(id, _)| id.get()).collect();
    let places = (1..=QUEUES).flat_map(|queue| (0..SEQS).map(move |seq| (queue, seq)));
    let entries: Vec<_> = places.map(|(queue, seq)| index.entry(1, queue, seq)).collect();
    let opens: Vec<_> = index.opens().into_iter().map(|(id, opened)| (id, opened.len())).collect();
    let live = index.live();
    let mut sorted = messages;
    sorted.sort_unstable();
    let counts = (live.messages, live.entries, live.keys, live.queues, live.open);
    (sorted, entries, opens, index.keys().len(), counts)
}

/// Writers that follow the rules: each entry number is used once, and only committed messages are
/// referenced.
struct Writers {
    random: Rng,
    /// Live entries, and the writer that changes each.
    entries: Vec<(u64, u64, usize)>,
    next_message: u64,
    next_seq: u64,
}

impl Writers {
    fn commit(&mut self, known: &[u64]) -> Vec<Vec<u8>> {
        let mut taken = vec![Vec::new(); self.random.usize(1..=3)];
        let mut own = vec![Vec::new(); taken.len()];
        for _ in 0..self.random.usize(..25) {
            let writer = self.random.usize(..taken.len());
            let into = &mut taken[writer];
            match self.random.u8(..10) {
                0..4 => {
                    let new = self.next_message;
                    self.next_message += 1;
                    own[writer].push(new);
                    message(new).encode(into);
                    self.enter(writer, new, into);
                }
                4 => {
                    let of_both: Vec<_> = known.iter().chain(&own[writer]).copied().collect();
                    if let Some(number) = self.random.choice(of_both) {
                        self.enter(writer, number, into);
                    }
                }
                5 => {
                    if let Some(number) = self.random.choice(own[writer].clone()) {
                        let put = Record::Put {
                            queue: QueueId::new(self.random.u64(1..=QUEUES)),
                            key: &[self.random.u8(..3), writer as u8],
                            version: 0,
                            value: &[],
                            message: Some(id(number)),
                        };
                        put.encode(into);
                    }
                }
                6 => {
                    let number = self.next_message;
                    self.next_message += 1;
                    message(number).encode(into);
                    Record::Open { message: id(number), meta: &[] }.encode(into);
                    self.enter(writer, number, into);
                    if self.random.bool() {
                        Record::Done { message: id(number) }.encode(into);
                    }
                }
                _ => self.move_on(writer, into),
            }
        }
        taken
    }

    fn enter(&mut self, writer: usize, number: u64, into: &mut Vec<u8>) {
        if self.next_seq < SEQS {
            let queue = self.random.u64(1..=QUEUES);
            self.next_seq += 1;
            entry(queue, self.next_seq, number).encode(into);
            self.entries.push((queue, self.next_seq, writer));
        }
    }

    fn move_on(&mut self, writer: usize, into: &mut Vec<u8>) {
        let own = |entry: &(u64, u64, usize)| entry.2 == writer;
        let Some(at) = self.entries.iter().rposition(own) else { return };
        let (queue, seq, _) = self.entries[at];
        match self.random.u8(..4) {
            0 => state(queue, seq, self.random.bool()).encode(into),
            _ => {
                self.entries.remove(at);
                remove(queue, seq).encode(into);
            }
        }
    }
}

#[test]
fn the_index_is_the_same_with_and_without_transient_records() {
    let mut left_out = 0;
    for seed in 0..400 {
        let random = Rng::with_seed(seed);
        let mut writers = Writers { random, entries: Vec::new(), next_message: 1, next_seq: 0 };
        let (mut whole, mut thin) = (Index::default(), Index::default());
        for number in 1..12 {
            let known: Vec<_> = whole.messages().into_iter().map(|(id, _)| id.get()).collect();
            let taken = writers.commit(&known);
            let mut rest = Vec::new();
            left_out += TransientFilter::default().append(&thin, &taken, &mut rest).records;
            apply(&mut whole, number, &taken.concat());
            apply(&mut thin, number, &rest);
            assert_eq!(content(&thin), content(&whole), "seed {seed}, commit {number}");
        }
    }
    assert!(left_out > 1_000, "{left_out}");
}
