//! A segment file with any content: it is opened, and what it is opened as stays so.

use std::collections::BTreeMap;

use tacho_journal::sim::Disk;
use tacho_journal::{Journal, Level, MessageId, Options, QueueId, Record, Step, Urgency, Visitor};

const SEGMENT: &str = "0000000000000001.segment";
/// This byte in front: the rest is the records of one frame, whose header is legal.
const RECORDS: u8 = 1;
const HEADER_BYTES: usize = 72;
const BLOCK: usize = 4096;
const SALT: u64 = 0x5eed;
/// A queue that no input knows.
const PROBE: QueueId = QueueId::new(u64::MAX - 1);

/// A first byte of 1: second byte the number of records, then the records of a frame. Otherwise the
/// input is the whole file.
pub fn check(data: &[u8]) {
    let content = match data {
        [RECORDS, count, records @ ..] => frame(*count, records),
        whole => whole.to_vec(),
    };
    let disk = Disk::new(1);
    disk.put(SEGMENT, content);
    let Some(first) = open(&disk, false) else { return };
    // What was read is written again as far as it was not known to be synced, and is the same.
    let again = open(&disk.kill(), true).expect("what was opened opens again");
    assert_eq!(first, again);
    let mut with_probe = open(&disk.kill(), false).expect("and with a new record");
    assert!(with_probe.remove(&(PROBE.get(), b"probe".to_vec())), "an acknowledged record");
    assert_eq!(first, with_probe);
}

/// Everything that is live, and with `commits` one record more; `None` if it is refused.
fn open(disk: &Disk, commits: bool) -> Option<Content> {
    let options = Options {
        segment_bytes: 64 << 10,
        first_segment_bytes: 16 << 10,
        segments_ready: 1,
        ..Options::default()
    };
    let mut opened = Journal::open_on(disk.clone(), options).ok()?;
    let mut content = Content::default();
    opened.recovered.visit(&mut content).expect("what is indexed can be visited");
    for (_, body) in opened.journal.read(&content.messages) {
        // Damaged or missing bodies are found, not invented.
        drop(body);
    }
    if commits {
        let (key, value): (&[u8], &[u8]) = (b"probe", b"x");
        let probe = Record::Put { queue: PROBE, key, version: 0, value, message: None };
        let commit = opened.journal.writer().append(probe, Level::Fsynced, Urgency::Forces);
        let step = opened.committer.step();
        assert_eq!(step, Step::Committed(commit));
    }
    Some(content)
}

/// The message, the state and the metadata of an entry.
type EntrySeen = (Option<u64>, u32, Vec<u8>);

/// Everything that is live.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    keys: BTreeMap<(u64, Vec<u8>), (u64, Vec<u8>)>,
    entries: BTreeMap<(u64, u64), EntrySeen>,
    opens: Vec<(u64, Vec<u8>, Vec<u8>)>,
    messages: Vec<MessageId>,
}

impl Content {
    fn remove(&mut self, key: &(u64, Vec<u8>)) -> bool {
        self.keys.remove(key).is_some()
    }
}

impl Visitor for Content {
    fn key(
        &mut self,
        queue: QueueId,
        key: &[u8],
        version: u64,
        value: &[u8],
        message: Option<(MessageId, &[u8])>,
    ) {
        self.keys.insert((queue.get(), key.to_vec()), (version, value.to_vec()));
        self.messages.extend(message.map(|(id, _)| id));
    }

    fn entry(
        &mut self,
        queue: QueueId,
        seq: u64,
        message: Option<MessageId>,
        state: u32,
        meta: &[u8],
    ) {
        let entry = (message.map(MessageId::get), state, meta.to_vec());
        self.entries.insert((queue.get(), seq), entry);
        self.messages.extend(message);
    }

    fn open(&mut self, message: MessageId, body: &[u8], meta: &[u8], _served: &[QueueId]) {
        self.opens.push((message.get(), body.to_vec(), meta.to_vec()));
        self.messages.push(message);
    }
}

/// A frame as the log's format has it (`crates/journal/src/frame.rs`), made by hand.
fn frame(count: u8, records: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; HEADER_BYTES];
    let mut put = |at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"tjnl");
    put(4, &1_u16.to_le_bytes());
    put(6, &7_u16.to_le_bytes());
    put(12, &crc32fast::hash(records).to_le_bytes());
    put(16, &(records.len() as u32).to_le_bytes());
    put(20, &u32::from(count).to_le_bytes());
    // The segment and the number of the frame.
    put(24, &1_u64.to_le_bytes());
    put(32, &1_u64.to_le_bytes());
    // The greatest numbers of messages and queues.
    put(48, &(u64::MAX / 2).to_le_bytes());
    put(56, &(u64::MAX / 2).to_le_bytes());
    put(64, &SALT.to_le_bytes());
    let crc = crc32fast::hash(&frame);
    frame[8..12].copy_from_slice(&crc.to_le_bytes());
    frame.extend_from_slice(records);
    frame.resize(frame.len().next_multiple_of(BLOCK), 0);
    frame
}
