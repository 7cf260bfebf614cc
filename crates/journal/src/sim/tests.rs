use super::*;
use crate::storage::write_all_at;

fn disk_with(seed: u64, content: &[u8]) -> (Disk, Arc<dyn StorageFile>) {
    let disk = Disk::new(seed);
    let file = disk.create("a").expect("created");
    write_all_at(&*file, 0, content).expect("written");
    file.sync().expect("synced");
    disk.sync_names().expect("synced");
    (disk, file)
}

#[test]
fn synced_data_survives_a_power_cut() {
    for seed in 0..50 {
        let (disk, file) = disk_with(seed, b"abc");
        let after = disk.power_cut();
        assert_eq!(after.content("a").as_deref(), Some(&b"abc"[..]));
        assert!(file.size().is_err(), "a handle from before the power cut");
        assert!(disk.list().is_err());
        assert_eq!(after.list().expect("names"), ["a"]);
    }
}

#[test]
fn unsynced_data_may_be_torn_at_sectors() {
    let mut outcomes = [0; 3];
    for seed in 0..200 {
        let (disk, file) = disk_with(seed, &[1; 2048]);
        write_all_at(&*file, 0, &[2; 2048]).expect("written");
        let content = disk.power_cut().content("a").expect("the file is there");
        let new = content.chunks(512).filter(|sector| sector[0] == 2).count();
        assert!(content.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        outcomes[usize::from(new > 0) + usize::from(new == 4)] += 1;
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[test]
fn later_writes_may_arrive_without_earlier_ones() {
    let lonely = (0..200).any(|seed| {
        let (disk, file) = disk_with(seed, &[0; 1024]);
        write_all_at(&*file, 0, &[1; 512]).expect("written");
        write_all_at(&*file, 512, &[2; 512]).expect("written");
        let content = disk.power_cut().content("a").expect("the file is there");
        content[0] == 0 && content[512] == 2
    });
    assert!(lonely);
}

#[test]
fn unsynced_names_may_revert() {
    let mut outcomes = [0; 2];
    for seed in 0..50 {
        let (disk, _) = disk_with(seed, b"abc");
        disk.rename("a", "b").expect("renamed");
        let names = disk.power_cut().list().expect("names");
        assert_eq!(names.len(), 1);
        outcomes[usize::from(names[0] == "b")] += 1;
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[test]
fn a_killed_process_loses_no_written_data() {
    let (disk, file) = disk_with(1, b"abc");
    write_all_at(&*file, 3, b"def").expect("written");
    let after = disk.kill();
    assert_eq!(after.content("a").as_deref(), Some(&b"abcdef"[..]));
    assert!(write_all_at(&*file, 0, b"x").is_err());
}

#[test]
fn a_sync_after_a_failed_one_proves_nothing() {
    let lost = (0..100).any(|seed| {
        let (disk, file) = disk_with(seed, b"abc");
        write_all_at(&*file, 0, b"xyz").expect("written");
        disk.set_faults(Faults { sync_error: 1.0, ..Faults::default() });
        assert!(file.sync().is_err());
        disk.set_faults(Faults::default());
        file.sync().expect("the second sync reports success");
        assert_eq!(disk.content("a").as_deref(), Some(&b"xyz"[..]));
        disk.power_cut().content("a").as_deref() == Some(&b"abc"[..])
    });
    assert!(lost);
}

#[test]
fn a_full_disk_accepts_what_fits_and_overwrites() {
    let (disk, file) = disk_with(1, &[0; 1000]);
    disk.set_capacity(Some(1500));
    write_all_at(&*file, 0, &[1; 1000]).expect("these blocks are there");
    assert_eq!(file.write_at(1000, &[1; 1000]).expect("a part"), 500);
    let error = file.write_at(1500, &[1; 10]).expect_err("full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(disk.create("b").is_err());
    disk.remove("a").expect("removed");
    disk.create("b").expect("there is space again");
}
