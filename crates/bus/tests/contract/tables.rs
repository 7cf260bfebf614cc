//! Tables: compare-and-set, leases.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tacho_bus::{Bus, BusError, Bytes, Expected};

use crate::{Connect, Test, Verdict, name, until};

pub(crate) const TESTS: &[Test] = &[
    ("a_key_is_written_only_in_the_expected_state", compared),
    ("of_writers_at_once_each_counts_once", counted),
    ("a_key_ends_with_its_lease_unless_it_is_written_again", leased),
    ("a_table_keeps_its_lease", one_lease),
];

fn compared(connect: &Connect, _: &'static str) -> Verdict {
    let (bus, other) = (connect(), connect());
    let (table, key) = (bus.table(&name("compared"), None)?, name("key"));
    let conflict = Err(BusError::Conflict { key: "key".to_owned() });
    assert_eq!(table.get(&key)?, None);
    let first = table.put(&key, Bytes::from_static(b"1"), Expected::Absent)?;
    assert_eq!(table.put(&key, Bytes::from_static(b"2"), Expected::Absent), conflict);
    let second = table.put(&key, Bytes::from_static(b"2"), Expected::Revision(first))?;
    assert!(second > first);
    assert_eq!(table.put(&key, Bytes::from_static(b"3"), Expected::Revision(first)), conflict);
    let seen = other.table(&name("compared"), None)?.get(&key)?.expect("written");
    assert_eq!((seen.revision, &seen.payload[..]), (second, &b"2"[..]));
    let third = table.put(&key, Bytes::from_static(b"3"), Expected::Any)?;
    table.put(&name("another"), Bytes::new(), Expected::Absent)?;
    assert_eq!(table.keys()?, [name("another"), key.clone()]);

    let conflict = Err(BusError::Conflict { key: "key".to_owned() });
    assert_eq!(table.delete(&key, Expected::Revision(second)), conflict);
    assert_eq!(table.delete(&key, Expected::Absent), conflict);
    table.delete(&key, Expected::Revision(third))?;
    assert_eq!(table.get(&key)?, None);
    assert_eq!(table.keys()?, [name("another")]);
    table.delete(&key, Expected::Absent)?;
    table.delete(&key, Expected::Any)?;
    let again = table.put(&key, Bytes::from_static(b"4"), Expected::Absent)?;
    assert!(again > third);
    Ok(())
}

fn counted(connect: &Connect, _: &'static str) -> Verdict {
    const EACH: u64 = 25;
    let bus = connect();
    let table = bus.table(&name("counted"), None)?;
    let key = name("count");
    table.put(&key, Bytes::from_static(b"0"), Expected::Absent)?;
    let buses: Vec<Arc<dyn Bus>> = (0..4).map(|_| connect()).collect();
    let threads = buses.into_iter().map(|bus| {
        thread::spawn(move || {
            let (table, key) = (bus.table(&name("counted"), None).expect("opens"), name("count"));
            let mut done = 0;
            while done < EACH {
                let now = table.get(&key).expect("answers").expect("is there");
                let count: u64 =
                    std::str::from_utf8(&now.payload).expect("text").parse().expect("a number");
                let next = Bytes::from((count + 1).to_string());
                match table.put(&key, next, Expected::Revision(now.revision)) {
                    Ok(_) => done += 1,
                    Err(BusError::Conflict { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().expect("counted"));
    assert_eq!(table.get(&key)?.expect("is there").payload, (4 * EACH).to_string());
    Ok(())
}

fn leased(connect: &Connect, _: &'static str) -> Verdict {
    let bus = connect();
    let table = bus.table(&name("leased"), Some(Duration::from_secs(1)))?;
    let (kept, left) = (name("kept"), name("left"));
    table.put(&left, Bytes::new(), Expected::Any)?;
    let mut revision = table.put(&kept, Bytes::new(), Expected::Absent)?;
    until("the lease ends", || {
        revision = table
            .put(&kept, Bytes::new(), Expected::Revision(revision))
            .expect("a key that is written again stays");
        table.get(&left).expect("answers").is_none()
    });
    assert_eq!(table.keys()?, std::slice::from_ref(&kept));
    table.put(&left, Bytes::new(), Expected::Absent)?;
    until("the other lease ends, too", || table.get(&kept).expect("answers").is_none());
    Ok(())
}

fn one_lease(connect: &Connect, _: &'static str) -> Verdict {
    let bus = connect();
    bus.table(&name("one_lease"), Some(Duration::from_secs(2)))?;
    bus.table(&name("one_lease"), Some(Duration::from_secs(2)))?;
    let error = bus.table(&name("one_lease"), None).map(|_| ()).expect_err("another lease");
    assert!(error.to_string().contains("another lease"), "{error}");
    Ok(())
}
