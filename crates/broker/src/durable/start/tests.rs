use tacho_journal::sim::Disk;
use tacho_journal::{Inspection, Opened, Step};

use super::*;

/// Regression: the key of a group without members has a version above 0, so a deletion with version
/// 0 had no effect.
#[test]
fn recovery_removes_groups_without_members() {
    let disk = Disk::new(1);
    let Ok(Filter::Shared(filter)) = Filter::parse("$share/g/a/#") else { panic!("a filter") };
    let commit = |opened: Opened| {
        let mut committer = opened.committer;
        while committer.step() != Step::Idle {}
    };

    let opened = Journal::open_on(disk.clone(), Options::default()).expect("it opens");
    let queue = opened.journal.new_queue_id();
    let key = keys::group(&filter);
    let value = keys::encode_queue(queue);
    let version = 1 << RETAINED_VERSION_BITS | 7;
    let put =
        Record::Put { queue: QueueId::COMMON, key: &key, version, value: &value, message: None };
    let mut writer = opened.journal.writer();
    note_start(&mut writer, 1, &[]);
    writer.append(put, Level::Fsynced, Urgency::Forces);
    commit(opened);
    drop(writer);
    assert_eq!(Inspection::open_on(&disk).expect("read").summary().keys, 2);

    let mut opened = Journal::open_on(disk.clone(), Options::default()).expect("it opens");
    let routes = RouteMap::default();
    let clocks = (WallClock::new(0, 0), 0);
    let raw = crate::config::RawConfig { shards: Some(1), ..Default::default() };
    let config = raw.resolve().expect("the defaults");
    let (bridges, memory) = (Bridges::default(), Memory::new(&config.limits));
    let context =
        RecoveryContext { config: &config, routes: &routes, bridges: &bridges, memory: &memory };
    let back = read_back(&opened.journal, &mut opened.recovered, &context, clocks);
    assert_eq!(back.expect("readable").starts, 2);
    commit(opened);
    // The number of starts is all that is left.
    assert_eq!(Inspection::open_on(&disk).expect("read").summary().keys, 1);
}
