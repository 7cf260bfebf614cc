//! Logs.

use tacho_bus::{BusError, Bytes, MESSAGE_BYTES_MAX};

use crate::{Connect, Test, Verdict, name};

pub(crate) const TESTS: &[Test] = &[
    ("a_log_numbers_its_entries_and_gives_them_back", numbered),
    ("a_log_keeps_the_newest_entries_within_its_bound", bounded),
];

fn numbered(connect: &Connect, _: &'static str) -> Verdict {
    let log = connect().log(&name("numbered"), 1 << 20);
    drop(log?);
    // What opens it later goes on behind what was there.
    let (bus, later) = (connect(), connect());
    let log = bus.log(&name("numbered"), 1 << 20)?;
    assert_eq!(log.read(1, 10)?, []);
    for number in 1..=20 {
        assert_eq!(log.append(Bytes::from(number.to_string()))?, number);
    }
    let log = later.log(&name("numbered"), 1 << 20)?;
    let entries = log.read(5, 10)?;
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(numbers, (5..15).collect::<Vec<_>>());
    assert!(entries.iter().all(|entry| entry.payload == entry.seq.to_string()));
    assert_eq!(log.read(20, 10)?.len(), 1);
    assert_eq!(log.read(21, 10)?, []);
    let error = log.append(Bytes::from(vec![0; MESSAGE_BYTES_MAX + 1]));
    assert!(matches!(error, Err(BusError::TooLarge { .. })), "{error:?}");
    Ok(())
}

fn bounded(connect: &Connect, _: &'static str) -> Verdict {
    let bus = connect();
    let log = bus.log(&name("bounded"), 64 * 1024)?;
    for number in 1..=200 {
        assert_eq!(log.append(Bytes::from(vec![number as u8; 1_000]))?, number);
    }
    let entries = log.read(1, 1_000)?;
    let first = entries.first().expect("the newest are kept").seq;
    assert!((100..200).contains(&first), "{first}");
    assert_eq!(entries.last().map(|entry| entry.seq), Some(200));
    assert_eq!(entries.len() as u64, 201 - first);
    Ok(())
}
