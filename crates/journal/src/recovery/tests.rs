//! Handmade segments: bodies that look like frames, formats, recycled files.

use super::*;
use crate::blocks::BLOCK;
use crate::frame::{FORMAT, Header};
use crate::id::{MessageId, QueueId};
use crate::record::Record;
use crate::sim::Disk;

/// A frame of segment 1.
fn frame(number: u64, synced: u64, salt: u64, records: &[u8]) -> Vec<u8> {
    let header = Header {
        segment: SegmentId::new(1),
        number,
        synced,
        owner: 0,
        message_ids: number,
        queue_ids: 0,
        salt,
        len: u32::try_from(records.len()).expect("small"),
        records: 1,
        crc: crc32fast::hash(records),
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(records);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

/// An entry with the message that it refers to.
fn entry(seq: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let message = MessageId::new(seq).expect("not 0");
    Record::Message { id: message, body: &[body] }.encode(&mut bytes);
    let queue = QueueId::new(1);
    Record::Entry { queue, seq, message, state: 0, meta: b"" }.encode(&mut bytes);
    bytes
}

fn disk(frames: &[Vec<u8>]) -> Disk {
    let disk = Disk::new(1);
    disk.put(&file_name(SegmentId::new(1)), frames.concat());
    disk
}

/// The entries that are live.
fn entries(recovery: &Recovery) -> Vec<u64> {
    (0..100).filter(|seq| recovery.index.entry(1, 1, *seq).is_some()).collect()
}

#[test]
fn a_body_that_looks_like_a_frame_is_a_body() {
    // A body whose second block is a frame that declares the surrounding frame synced.
    let mut body = vec![0xa5; 3 * BLOCK];
    let around = frame(2, 1, 5, &entry(2, &body));
    let forged = frame(3, 2, 6, &entry(3, b"forged"));
    let start = around.windows(64).position(|bytes| bytes == [0xa5; 64]).expect("the body");
    let offset = BLOCK - start % BLOCK;
    body[offset..offset + BLOCK].copy_from_slice(&forged);
    let mut around = frame(2, 1, 5, &entry(2, &body));
    let first = frame(1, 0, 5, &entry(1, b"x"));
    assert_eq!((first.len() + start + offset) % BLOCK, 0, "the forged frame begins at a block");
    let whole = read(&disk(&[first.clone(), around.clone()])).expect("read");
    assert_eq!(entries(&whole), [1, 2]);
    // The header was never written: only the body remains.
    around[..BLOCK].fill(0);
    let torn = read(&disk(&[first, around])).expect("read");
    assert_eq!((entries(&torn), &torn.report.damage[..]), (vec![1], &[][..]));
}

#[test]
fn a_missing_synced_frame_is_damage_and_an_unsynced_one_ends_the_log() {
    let frames = |synced| {
        let third = frame(3, synced, 5, &entry(3, b"x"));
        disk(&[frame(1, 0, 5, &entry(1, b"x")), vec![0; BLOCK], third])
    };
    let ends = read(&frames(1)).expect("read");
    assert_eq!((entries(&ends), ends.last_frame), (vec![1], 1));
    assert_eq!(ends.report.torn.as_ref().map(|torn| torn.frame), Some(2));
    assert_eq!(ends.report.damage, []);
    let damaged = read(&frames(2)).expect("read");
    assert_eq!((entries(&damaged), damaged.last_frame), (vec![1, 3], 3));
    let damage = &damaged.report.damage[..];
    assert_eq!((damage.len(), damage[0].first_frame, damage[0].last_frame), (1, 2, 2));
    assert_eq!(damage[0].offset, BLOCK as u64);
    let text = damage[0].to_string();
    assert!(text.contains(&file_name(SegmentId::new(1))) && text.contains("2 to 2"), "{text}");
}

#[test]
fn former_content_of_a_recycled_file_is_ignored() {
    let mut old = frame(2, 1, 5, &entry(2, b"x"));
    let header = Header { segment: SegmentId::new(9), ..header_of(&old) };
    old[..Header::BYTES].copy_from_slice(&header.encode());
    // Frames of this segment number, but with another salt.
    let other = frame(2, 1, 6, &entry(2, b"x"));
    for rest in [old, other] {
        let recovery = read(&disk(&[frame(1, 0, 5, &entry(1, b"x")), rest])).expect("read");
        assert_eq!((entries(&recovery), recovery.report.torn), (vec![1], None));
    }
}

/// Frames of two processes: the second segment begins with a number that the first one has too.
#[test]
fn frames_that_do_not_count_are_foreign_if_their_process_and_their_records_are_others() {
    let owned = |frame: Vec<u8>, segment, owner| {
        let header = Header { segment: SegmentId::new(segment), owner, ..header_of(&frame) };
        [&header.encode()[..], &frame[Header::BYTES..]].concat()
    };
    let read = |first: u16, again: &[u8], second: u16| {
        let of_first = [
            frame(1, 0, 5, &entry(1, b"x")),
            frame(2, 1, 5, &entry(2, b"x")),
            frame(3, 1, 5, &entry(3, b"x")),
        ];
        let disk = disk(&of_first.map(|frame| owned(frame, 1, first)));
        let of_second = owned(frame(2, 1, 5, again), 2, second);
        disk.put(&file_name(SegmentId::new(2)), of_second);
        let recovery = read(&disk).expect("read");
        let foreign = recovery.report.foreign.iter();
        foreign.map(|foreign| (foreign.first_frame, foreign.last_frame)).collect::<Vec<_>>()
    };
    let (same, other) = (entry(2, b"x"), entry(9, b"y"));
    assert_eq!(read(7, &same, 8), [(3, 3)], "it went on behind what was written again");
    assert_eq!(read(7, &other, 8), [(2, 3)]);
    assert_eq!(read(7, &other, 7), [], "the same process, after its file had failed");
    assert_eq!(read(0, &other, 8), [], "a version without owners");
    assert_eq!(read(7, &other, 0), []);
}

fn header_of(frame: &[u8]) -> Header {
    match Header::decode(frame) {
        crate::frame::Found::Header(header) => header,
        other => panic!("{other:?}"),
    }
}

#[test]
fn undecodable_records_are_damage() {
    let mut records = entry(1, b"x");
    records.extend_from_slice(&[99, 1, 2]);
    let recovery = read(&disk(&[frame(1, 0, 5, &records)])).expect("read");
    assert_eq!(entries(&recovery), [1], "earlier records are used");
    assert_eq!(recovery.report.damage.len(), 1);
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let mut bytes = frame(1, 0, 5, &entry(1, b"x"));
    bytes[4..6].copy_from_slice(&(FORMAT + 1).to_le_bytes());
    bytes[8..12].fill(0);
    let crc = crc32fast::hash(&bytes[..Header::BYTES]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    let error = read(&disk(&[bytes])).err().expect("refused");
    let text = error.to_string();
    assert!(text.contains(&format!("format {}", FORMAT + 1)), "{text}");
    assert!(text.contains(&format!("format {FORMAT}:")), "{text}");
}

#[test]
fn recovery_accepts_any_bytes() {
    let mut rng = fastrand::Rng::with_seed(1);
    let parts = [
        frame(1, 0, 5, &entry(1, &[1; 3_000])),
        frame(2, 1, 5, &entry(2, &[2; 9_000])),
        frame(3, 2, 5, &entry(3, b"x")),
        vec![0; BLOCK],
        (0..BLOCK).map(|_| rng.u8(..)).collect(),
    ];
    for round in 0..500 {
        let disk = Disk::new(round);
        for segment in 1..rng.u64(2..5) {
            let parts = (0..rng.usize(..6)).map(|_| parts[rng.usize(..parts.len())].clone());
            let mut bytes: Vec<u8> = parts.flatten().collect();
            for _ in 0..rng.usize(..6) {
                if let Some(last) = bytes.len().checked_sub(1) {
                    bytes[rng.usize(..=last)] = rng.u8(..);
                }
            }
            bytes.truncate(rng.usize(..=bytes.len()));
            disk.put(&file_name(SegmentId::new(segment)), bytes);
        }
        let recovery = recover(&disk, &Stats::default()).expect("any content is accepted");
        assert!(recovery.last_frame <= 3 && entries(&recovery).len() <= 3);
    }
}

/// A file abandoned after its first write failed, and not removable, is older than the segment that
/// received its frame instead.
#[test]
fn an_abandoned_oldest_file_is_no_damage() {
    let mut broken = frame(14, 13, 5, &entry(14, b"x"));
    broken[100] ^= 1;
    let disk = disk(&[broken]);
    let mut again = frame(14, 13, 6, &entry(14, b"x"));
    let header = Header { segment: SegmentId::new(2), ..header_of(&again) };
    again[..Header::BYTES].copy_from_slice(&header.encode());
    disk.put(&file_name(SegmentId::new(2)), again);
    let recovery = read(&disk).expect("read");
    assert_eq!((&recovery.report.damage[..], recovery.last_frame), (&[][..], 14));
    assert_eq!(recovery.unused, [file_name(SegmentId::new(1))]);
}

/// A lost tail may include all headers of a segment. Recovery once accepted the first bytes there
/// that looked like a frame, which may be the payload of a client.
#[test]
fn a_body_that_looks_like_a_frame_is_a_body_without_any_header_left() {
    let forged = frame(1, 0, 6, &entry(3, b"forged"));
    let with_body = |disk: &Disk| {
        let mut bytes = vec![0; BLOCK];
        bytes.extend_from_slice(&forged);
        disk.put(&file_name(SegmentId::new(1)), bytes);
    };
    let disk = Disk::new(1);
    let salt = Salt::make(&disk, SegmentId::new(1)).expect("made");
    with_body(&disk);
    let recovery = read(&disk).expect("read");
    assert_eq!((entries(&recovery), recovery.last_frame), (vec![], 0));
    // Frames with the right salt are accepted.
    let mut bytes = vec![0; BLOCK];
    let value = Salt::for_new_frames(Some(salt));
    bytes.extend_from_slice(&frame(2, 1, value, &entry(2, b"x")));
    bytes.extend_from_slice(&forged);
    disk.put(&file_name(SegmentId::new(1)), bytes);
    assert_eq!(entries(&read(&disk).expect("read")), [2]);
    // In segments older than the salt file the salt is taken from their own frames.
    let disk = Disk::new(2);
    Salt::make(&disk, SegmentId::new(2)).expect("made");
    with_body(&disk);
    assert_eq!(entries(&read(&disk).expect("read")), [3]);
}

#[test]
fn all_frames_of_a_data_directory_carry_its_salt() {
    use crate::journal::{Journal, Opened};
    use crate::options::{Level, Options, Urgency};
    let disk = Disk::new(1);
    for start in 1..=3 {
        let opened = Journal::open_on(disk.clone(), Options::default()).expect("opened");
        let Opened { journal, mut committer, .. } = opened;
        let id = journal.new_message_id();
        let record = Record::Message { id, body: &[b"x"] };
        journal.writer().append(record, Level::Fsynced, Urgency::Forces);
        committer.step();
        let (segment, last) = committer.shared.segments.last().expect("a segment");
        let header = crate::frame::header_at(&*last.file, 0).expect("read").expect("a frame");
        assert_eq!(header.segment, segment, "start {start}");
        let salt = Salt::read(&disk).expect("made with the first start");
        assert_eq!(header.salt, Salt::for_new_frames(Some(salt)));
    }
}

#[test]
fn an_incomplete_quarantine_copy_is_repeated() {
    let disk = disk(&[frame(1, 0, 5, &entry(1, b"x"))]);
    let name = file_name(SegmentId::new(1));
    let kept = kept_name(&name);
    // The process died during the copy.
    disk.put(&format!("{kept}.part"), vec![1; 10]);
    assert!(keep(&disk, &name).expect("copied"));
    assert_eq!(disk.content(&kept), disk.content(&name));
    assert_eq!(disk.content(&format!("{kept}.part")), None);
    assert!(!keep(&disk, &name).expect("there already"));
}
