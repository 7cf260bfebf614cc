use fastrand::Rng;

use super::*;
use crate::id::{MessageId, QueueId};

fn id(number: u64) -> MessageId {
    MessageId::new(number).expect("not 0")
}

/// One of each kind, with numbers of all lengths.
fn records() -> Vec<Vec<u8>> {
    let queue = QueueId::new(300);
    let message = id(u64::MAX);
    let records = [
        Record::Message { id: id(1), body: &[] },
        Record::Message { id: message, body: &[b"one", b"", b"two"] },
        Record::Entry { queue, seq: 1 << 40, message, state: u32::MAX, meta: b"meta" },
        Record::State { queue, seq: 0, state: 7, keep_message: true },
        Record::State { queue, seq: 127, state: 128, keep_message: false },
        Record::Remove { queue, seq: u64::MAX },
        Record::Put { queue, key: b"", version: 0, value: b"", message: None },
        Record::Put { queue, key: b"key", version: 9, value: b"value", message: Some(message) },
        Record::Delete { queue: QueueId::COMMON, key: b"key", version: 10 },
        Record::DropQueue { queue },
        Record::Open { message, meta: b"meta" },
        Record::Done { message },
    ];
    let mut all: Vec<Vec<u8>> = records
        .iter()
        .map(|record| {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            bytes
        })
        .collect();
    let mut bytes = Vec::new();
    let opened = [(&b"meta"[..], &[1, 300][..]), (b"", &[])];
    encode_open_state(5, 3, opened.into_iter(), &mut bytes);
    all.push(bytes);
    all
}

#[test]
fn records_survive_encoding_and_decoding() {
    let all = records();
    let bytes = all.concat();
    let decoded: Vec<_> = Records::new(&bytes).map(|located| located.expect("decoded")).collect();
    assert_eq!(decoded.len(), all.len());
    for (located, expected) in decoded.iter().zip(&all) {
        assert_eq!(located.bytes, &expected[..]);
        assert_eq!(located.bytes, &bytes[located.offset..located.offset + expected.len()]);
    }
    let body = decoded[1].record.whole_body(id(u64::MAX));
    assert_eq!(body, Some(&b"onetwo"[..]));
    let entry = Decoded::Entry {
        queue: 300,
        seq: 1 << 40,
        message: u64::MAX,
        state: u32::MAX,
        meta: b"meta",
    };
    assert_eq!(decoded[2].record, entry);
    let put = Decoded::Put { queue: 300, key: b"", version: 0, value: b"", message: 0 };
    assert_eq!(decoded[6].record, put);
    let Some(Decoded::OpenState { message, times, opened }) = decoded.last().map(|d| d.record)
    else {
        panic!("the last record is an open message");
    };
    assert_eq!((message.get(), times), (5, 3));
    let opened: Vec<_> = opened.iter().collect();
    assert_eq!(opened, [(&b"meta"[..], vec![1, 300]), (&b""[..], vec![])]);
}

#[test]
fn an_entry_takes_few_bytes() {
    let mut bytes = Vec::new();
    let (queue, seq) = (QueueId::new(1_000), 5_000);
    Record::Entry { queue, seq, message: id(1_000_000), state: 1, meta: &[] }.encode(&mut bytes);
    assert_eq!(bytes.len(), 10);
}

#[test]
fn a_damaged_message_body_is_detected() {
    let mut bytes = Vec::new();
    Record::Message { id: id(7), body: &[b"body"] }.encode(&mut bytes);
    let (record, _) = decode(&bytes).expect("whole");
    assert_eq!(record.whole_body(id(7)), Some(&b"body"[..]));
    assert_eq!(record.whole_body(id(8)), None);
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Ok((record, _)) = decode(&changed) {
            assert_eq!(record.whole_body(id(7)), None, "bit {bit}");
        }
    }
}

#[test]
fn truncated_records_are_malformed() {
    for bytes in records() {
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]), Err(RecordError::Malformed), "{bytes:?} {len}");
        }
    }
}

#[test]
fn unknown_kinds_are_reported() {
    assert_eq!(decode(&[0, 1, 2]), Err(RecordError::Kind(0)));
    assert_eq!(decode(&[200]), Err(RecordError::Kind(200)));
}

#[test]
fn impossible_numbers_are_malformed() {
    // More than 64 bits, a state of more than 32, message 0, lengths beyond the end.
    let too_long = [&[10][..], &[0xff; 10]].concat();
    let too_large = [&[3, 1, 1][..], &[0xff, 0xff, 0xff, 0xff, 0x7f]].concat();
    let no_message = [10, 0];
    let no_body = [&[1, 1][..], &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0; 10]].concat();
    let many_opened = [&[11, 1, 1][..], &[0xff; 9], &[1]].concat();
    for bytes in [&too_long[..], &too_large, &no_message, &no_body, &many_opened] {
        assert_eq!(decode(bytes), Err(RecordError::Malformed), "{bytes:?}");
    }
}

#[test]
fn any_bytes_are_records_or_an_error() {
    let seeds = records().concat();
    let mut rng = Rng::with_seed(1);
    for _ in 0..200_000 {
        let mut bytes: Vec<u8> = if rng.bool() {
            (0..rng.usize(..40)).map(|_| rng.u8(..)).collect()
        } else {
            let start = rng.usize(..seeds.len());
            seeds[start..(start + rng.usize(..60)).min(seeds.len())].to_vec()
        };
        if let Some(last) = bytes.len().checked_sub(1) {
            let at = rng.usize(..=last);
            bytes[at] = rng.u8(..);
        }
        let mut length = 0;
        for located in Records::new(&bytes).map_while(Result::ok) {
            length += located.bytes.len();
            if let Decoded::OpenState { opened, .. } = located.record {
                let served: usize = opened.iter().map(|(_, served)| served.len()).sum();
                assert!(served <= bytes.len());
            }
        }
        assert!(length <= bytes.len());
    }
}
