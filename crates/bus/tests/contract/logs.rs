//! Logs.

use std::time::Duration;

use tacho_bus::{BusError, Bytes, LogLimits, MESSAGE_BYTES_MAX};

use crate::{Connect, Test, Verdict, name, until};

pub(crate) const TESTS: &[Test] = &[
    ("a_log_numbers_its_entries_and_gives_them_back", numbered),
    ("a_log_keeps_the_newest_entries_within_its_bound", bounded),
    ("a_log_forgets_what_is_old", aged),
    ("a_log_is_found_until_it_is_deleted", deleted),
];

fn numbered(connect: &Connect, _: &'static str) -> Verdict {
    let log = connect().log(&name("numbered"), LogLimits::of_bytes(1 << 20));
    drop(log?);
    // What opens it later goes on behind what was there.
    let (bus, later) = (connect(), connect());
    let log = bus.log(&name("numbered"), LogLimits::of_bytes(1 << 20))?;
    assert_eq!(log.read(1, 10)?, []);
    for number in 1..=20 {
        assert_eq!(log.append(Bytes::from(number.to_string()))?, number);
    }
    let log = later.log(&name("numbered"), LogLimits::of_bytes(1 << 20))?;
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
    let log = bus.log(&name("bounded"), LogLimits::of_bytes(64 * 1024))?;
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

fn aged(connect: &Connect, _: &'static str) -> Verdict {
    let bus = connect();
    let age_max = Some(Duration::from_millis(200));
    let log = bus.log(&name("aged"), LogLimits { bytes_max: 1 << 20, age_max })?;
    log.append(Bytes::from_static(b"old"))?;
    until("the entry is forgotten", || log.read(1, 10).is_ok_and(|entries| entries.is_empty()));
    assert_eq!(log.append(Bytes::from_static(b"new"))?, 2);
    Ok(())
}

fn deleted(connect: &Connect, _: &'static str) -> Verdict {
    let (bus, other) = (connect(), connect());
    assert!(bus.find_log(&name("deleted"))?.is_none());
    let log = bus.log(&name("deleted"), LogLimits::of_bytes(1 << 20))?;
    log.append(Bytes::from_static(b"kept"))?;
    let found = other.find_log(&name("deleted"))?.expect("it was created");
    assert_eq!(found.read(1, 10)?.len(), 1);
    other.delete_log(&name("deleted"))?;
    other.delete_log(&name("deleted"))?;
    assert!(bus.find_log(&name("deleted"))?.is_none());
    assert!(log.append(Bytes::from_static(b"late")).is_err());
    // One with the same name is another log.
    let log = bus.log(&name("deleted"), LogLimits::of_bytes(1 << 20))?;
    assert_eq!(log.append(Bytes::from_static(b"new"))?, 1);
    Ok(())
}
