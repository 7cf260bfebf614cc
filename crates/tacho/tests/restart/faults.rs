//! A disk that fails, is full, is slow, or does things by halves, under the real program.

use std::path::PathBuf;

use tacho_codec::{QoS, ReasonCode};
use tacho_testkit::{Client, DiskFault, DiskFaultsSeen, FaultyDisk};

use crate::process::Process;

const QOS1: QoS = QoS::AtLeastOnce;
const NONE: DiskFault =
    DiskFault { sync_error: 0, write_error: 0, full: 0, short: 0, read_error: 0, delay_us: 0 };

struct Place {
    _folder: tempfile::TempDir,
    data: PathBuf,
    disk: FaultyDisk,
}

impl Place {
    /// `None` where there can be no such disk.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let disk = FaultyDisk::new(&data, folder.path())?;
        Some(Self { _folder: folder, data, disk })
    }

    fn start(&self) -> Process {
        Process::over(&self.disk, &self.data, &["--shards", "2"])
    }

    /// A broker takes in twenty messages that are kept, and is killed.
    fn keep_twenty(&self) {
        let broker = self.start();
        subscribe(&broker);
        let mut publisher = broker.connected("publisher");
        (0..20).for_each(|number| publisher.publish("kept", &[number], QOS1, false));
        broker.kill();
    }
}

/// A durable subscriber of `kept`, which then leaves.
fn subscribe(broker: &Process) {
    let (mut receiver, _) = broker.lasting("receiver", 600);
    receiver.subscribe("kept", QOS1);
    receiver.disconnect();
}

fn receive(broker: &Process, numbers: std::ops::Range<u8>) -> Client {
    let (mut receiver, present) = broker.lasting("receiver", 600);
    assert!(present, "the session is there");
    for number in numbers {
        assert_eq!(receiver.receive_and_ack().payload[0], number);
    }
    receiver
}

/// What was acknowledged is there, nothing more is promised, and the error is named.
fn stops_promising(fault: DiskFault, error: &str, count: fn(DiskFaultsSeen) -> usize) {
    let Some(place) = Place::new() else { return };
    let broker = place.start();
    subscribe(&broker);
    let mut listener = broker.connected("listener");
    listener.subscribe("passing", QOS1);
    let mut publisher = broker.connected("publisher");
    (0..20).for_each(|number| publisher.publish("kept", &[number], QOS1, false));

    place.disk.set(fault);
    publisher.send_publish("kept", &[20], QOS1);
    let said = broker.wait_until_said("nothing durable is acknowledged");
    assert!(said.contains(error), "{said}");
    let mut other = broker.connected("other");
    assert_eq!(other.try_publish("kept", b"refused", QOS1), ReasonCode::QUOTA_EXCEEDED);
    // What needs no disk goes on.
    other.publish("passing", b"x", QOS1, false);
    assert_eq!(listener.receive_and_ack().topic, "passing");
    // Taken in before the failure was known: it waits.
    publisher.expect_nothing();

    place.disk.set(NONE);
    publisher.expect_ack(0x40);
    broker.wait_until_said("the journal commits again");
    other.publish("kept", &[21], QOS1, false);
    place.disk.set(fault);
    publisher.send_publish("kept", &[22], QOS1);
    broker.kill();

    place.disk.set(NONE);
    let broker = place.start();
    assert!(count(place.disk.seen()) > 0, "nothing has failed: {:?}", place.disk.seen());
    let mut receiver = receive(&broker, 0..22);
    // The last one may have been written or not.
    receiver.acknowledge_what_came();
    drop(receiver);
    broker.stop();
}

#[test]
fn after_a_failed_sync_nothing_is_promised_and_nothing_promised_is_lost() {
    stops_promising(DiskFault { sync_error: 1000, ..NONE }, "Input/output error", |seen| {
        seen.sync_errors
    });
}

#[test]
fn with_writes_that_fail_nothing_is_promised_and_nothing_promised_is_lost() {
    stops_promising(DiskFault { write_error: 1000, ..NONE }, "Input/output error", |seen| {
        seen.write_errors
    });
}

#[test]
fn on_a_full_disk_nothing_is_promised_and_nothing_promised_is_lost() {
    stops_promising(DiskFault { full: 1000, ..NONE }, "No space left on device", |seen| seen.full);
}

/// One sync in twenty fails, every other large write is short, and all are slow.
#[test]
fn a_disk_that_fails_now_and_then_costs_time_and_no_message() {
    let Some(place) = Place::new() else { return };
    let broker = place.start();
    subscribe(&broker);
    let mut publisher = broker.connected("publisher");
    place.disk.set(DiskFault { sync_error: 50, short: 500, delay_us: 300, ..NONE });
    let payload = |number: u8| vec![number; if number.is_multiple_of(4) { 60_000 } else { 100 }];
    let mut sent = 0;
    for number in 0..250 {
        let DiskFaultsSeen { sync_errors, short, .. } = place.disk.seen();
        if number >= 40 && sync_errors > 0 && short > 0 {
            break;
        }
        if number == 40 {
            // Nothing has failed so far: it will.
            place.disk.set(DiskFault { sync_error: 500, short: 500, ..NONE });
        }
        sent = number + 1;
        // Refused while the journal has not committed again.
        while publisher.try_publish("kept", &payload(number), QOS1) != ReasonCode::SUCCESS {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    let DiskFaultsSeen { sync_errors, short, .. } = place.disk.seen();
    assert!(sync_errors > 0 && short > 0, "{:?}", place.disk.seen());
    broker.kill();
    let broker = {
        place.disk.set(DiskFault { short: 500, delay_us: 300, ..NONE });
        place.start()
    };
    let (mut receiver, _) = broker.lasting("receiver", 600);
    for number in 0..sent {
        assert_eq!(receiver.receive_and_ack().payload, payload(number));
    }
    receiver.expect_nothing();
}

/// Reads are tried again.
#[test]
fn reads_that_fail_now_and_then_lose_nothing() {
    let Some(place) = Place::new() else { return };
    place.keep_twenty();
    place.disk.set(DiskFault { read_error: 50, ..NONE });
    let broker = place.start();
    receive(&broker, 0..20).disconnect();
    broker.kill();
    let mut starts = 1;
    while place.disk.seen().read_errors == 0 {
        assert!(starts < 200, "no read has failed");
        starts += 1;
        let broker = place.start();
        receive(&broker, 0..0);
        broker.kill();
    }
}

/// A disk that cannot be read is not taken for an empty one.
#[test]
fn a_disk_that_cannot_be_read_stops_the_start_and_is_left_as_it_is() {
    let Some(place) = Place::new() else { return };
    place.keep_twenty();
    place.disk.set(DiskFault { read_error: 1000, ..NONE });
    let (status, said) = Process::refused_over(&place.disk, &place.data);
    assert!(!status.success(), "{said}");
    assert!(said.contains("Input/output error"), "{said}");
    assert!(place.disk.seen().read_errors > 0);
    place.disk.set(NONE);
    let broker = place.start();
    receive(&broker, 0..20);
}
