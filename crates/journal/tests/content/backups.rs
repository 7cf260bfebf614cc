//! Backups of a journal that is written meanwhile, in directories of the file system.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tacho_journal::{
    BackupError, Inspection, Journal, OpenError, Opened, Options, Problem, QueueId, Record, restore,
};

use super::directory::Running;
use super::model::Seen;
use super::options;

const QUEUE: QueueId = QueueId::new(1_000_001);
/// Entries that are in the queue at a time.
const LIVE: u64 = 40;

fn seen(directory: &Path) -> Seen {
    let inspection = Inspection::open(directory).expect("can be read");
    assert_eq!(inspection.check(), []);
    assert_eq!(inspection.report().torn, None, "it ends with a whole commit");
    let mut seen = Seen::default();
    inspection.visit(&mut seen).expect("can be read");
    seen
}

/// The numbers in the queue: a gapless part of all that were appended.
fn numbers(directory: &Path) -> Vec<u64> {
    let numbers: Vec<u64> = seen(directory).entries.keys().map(|(_, seq)| *seq).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    numbers
}

#[test]
fn a_backup_has_all_that_was_committed_before_it_and_stays_as_it_is() {
    let outer = tempfile::tempdir().expect("a directory");
    let (data, done) = (outer.path().join("data"), AtomicBool::new(false));
    let mut running = Running::open(&data);
    // A first one, so that the log has a beginning.
    let (_, commit) = running.publish(QUEUE, 0, b"first");
    running.wait(commit);
    let (journal, committed) = (running.journal.clone(), AtomicU64::new(0));
    let backups: Vec<_> = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // Until segments have been freed many times after the last backup.
            let mut seq = 1;
            let mut freed_at_end = None;
            loop {
                let (_, commit) = running.publish(QUEUE, seq, &[seq as u8; 3_000]);
                if seq >= LIVE {
                    running.append(Record::Remove { queue: QUEUE, seq: seq - LIVE });
                }
                running.wait(commit);
                committed.store(seq, Ordering::SeqCst);
                seq += 1;
                let freed = running.journal.stats().freed_segments.get();
                if done.load(Ordering::SeqCst) && freed >= *freed_at_end.get_or_insert(freed) + 20 {
                    return;
                }
            }
        });
        let backups = (0..12)
            .map(|number| {
                let directory = outer.path().join(format!("backup-{number}"));
                let before = committed.load(Ordering::SeqCst);
                let backup = journal.back_up(&directory).expect("is made");
                assert!(backup.segments > 0 && backup.copied_bytes > 0);
                let content = numbers(&directory);
                let newest = content.last().copied().unwrap_or(0);
                assert!(newest >= before, "{before} was committed, {newest} is the newest");
                assert!(content.len() as u64 <= LIVE + 1, "{content:?}");
                (directory, content, backup)
            })
            .collect();
        done.store(true, Ordering::SeqCst);
        writer.join().expect("no panic");
        backups
    });
    assert!(backups.iter().any(|(.., backup)| backup.linked_bytes > 0), "files are shared");
    assert!(running.thread.stop());
    drop((journal, running.journal, running.writer, running.recovered));
    // Another process begins with the files that are left, and uses what it frees again.
    let mut running = Running::open_with(&data, Options { log_bytes_min: 0, ..options() });
    for seq in 10_000..10_060 {
        let (_, commit) = running.publish(QUEUE, seq, &[1; 3_000]);
        running.append(Record::Remove { queue: QUEUE, seq });
        running.wait(commit);
    }
    for (directory, content, backup) in backups {
        assert_eq!(numbers(&directory), content, "nothing has written to its files");
        let restored = outer.path().join("restored");
        let (copy, problems) = restore(&directory, &restored).expect("is restored");
        assert_eq!((copy.commit, copy.linked_bytes, problems), (backup.commit, 0, vec![]));
        assert_eq!(numbers(&restored), content);
        // A journal goes on there, and shares nothing.
        let mut again = Running::open(&restored);
        let (_, commit) = again.publish(QUEUE, 1_000_000, b"later");
        again.wait(commit);
        assert!(again.thread.stop());
        drop((again.journal, again.writer, again.recovered));
        assert_eq!(numbers(&directory), content);
        fs::remove_dir_all(&restored).expect("removed");
    }
    assert!(running.thread.stop());
}

/// A journal with a few segments, stopped, and a backup of it in `backup`.
fn with_backup(outer: &Path) {
    let mut running = Running::open(&outer.join("data"));
    for seq in 0..60 {
        let (_, commit) = running.publish(QUEUE, seq, &[seq as u8; 3_000]);
        running.wait(commit);
    }
    running.journal.back_up(&outer.join("backup")).expect("is made");
    assert!(running.thread.stop());
}

#[test]
fn closed_segments_are_shared_and_removed_instead_of_used_again() {
    let outer = tempfile::tempdir().expect("a directory");
    with_backup(outer.path());
    let shared = || {
        let files = fs::read_dir(outer.path().join("backup")).expect("is there");
        let files = files.map(|file| file.expect("an entry").metadata().expect("is there"));
        files.filter(|file| file.nlink() == 2).count()
    };
    assert!(shared() >= 2, "{}", shared());
    let mode = fs::metadata(outer.path().join("backup")).expect("is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // Everything is removed, so that all of the old segments become free.
    let options = Options { log_bytes_min: 0, ..options() };
    let mut running = Running::open_with(&outer.path().join("data"), options);
    running.append(Record::DropQueue { queue: QUEUE });
    let mut seq = 100;
    super::directory::eventually("they are freed", || {
        let (_, commit) = running.publish(QueueId::new(7), seq, &[0; 3_000]);
        running.append(Record::DropQueue { queue: QueueId::new(7) });
        running.wait(commit);
        seq += 1;
        shared() == 0
    });
    assert!(running.thread.stop());
    assert_eq!(numbers(&outer.path().join("backup")).len(), 60);
}

#[test]
fn no_journal_is_opened_in_a_backup_and_none_is_made_where_something_is() {
    let outer = tempfile::tempdir().expect("a directory");
    with_backup(outer.path());
    let (data, backup) = (outer.path().join("data"), outer.path().join("backup"));
    let Err(error) = Journal::open(&backup, options()) else { panic!("it is a backup") };
    assert!(matches!(error, OpenError::Backup { .. }));
    assert!(error.to_string().contains("tacho journal restore"), "{error}");
    let Opened { journal, .. } = Journal::open(&data, options()).expect("opens");
    let refused = |directory: &str| {
        journal.back_up(&outer.path().join(directory)).expect_err("is refused").to_string()
    };
    assert!(refused("backup").contains("is there already"));
    assert!(refused("no/such").contains("cannot create"));
    fs::create_dir(outer.path().join("half.part")).expect("made");
    assert!(refused("half").contains("half.part was left by a backup"));
    fs::create_dir(outer.path().join("empty")).expect("made");
    journal.back_up(&outer.path().join("empty")).expect("is made");
    assert_eq!(journal.stats().backups.get(), 1);
    assert_eq!(numbers(&outer.path().join("empty")).len(), 60);
    let error = restore(&data, &outer.path().join("r")).expect_err("is no backup");
    assert!(matches!(error, BackupError::NoBackup(_)), "{error}");
    let error = restore(&backup, &data).expect_err("is there");
    assert!(matches!(error, BackupError::Exists(_)), "{error}");
}

#[test]
fn what_is_missing_or_damaged_in_a_backup_is_named() {
    let outer = tempfile::tempdir().expect("a directory");
    with_backup(outer.path());
    let (backup, restored) = (outer.path().join("backup"), outer.path().join("restored"));
    let mut segments: Vec<_> = fs::read_dir(&backup)
        .expect("is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some())
        .collect();
    segments.sort();
    let first = segments[0].clone();
    let name = first.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    // A file of its own, so that the journal keeps what it has.
    let content = fs::read(&first).expect("is there");
    fs::remove_file(&first).expect("removed");
    let problems = Inspection::open(&backup).expect("can be read").check();
    assert!(
        problems.iter().any(|problem| matches!(problem, Problem::Incomplete(_))
            && problem.to_string().contains(&name)),
        "{problems:?}"
    );
    let error = restore(&backup, &restored).expect_err("a file is missing").to_string();
    assert!(error.contains("not complete") && error.contains(&name), "{error}");
    fs::write(&first, &content[..content.len() / 2]).expect("written");
    let error = restore(&backup, &restored).expect_err("a file is short").to_string();
    assert!(error.contains("bytes instead of"), "{error}");
    assert!(!restored.exists() && !outer.path().join("restored.part").exists());
    let mut damaged = content.clone();
    damaged[9_000] ^= 1;
    fs::write(&first, &damaged).expect("written");
    let (_, problems) = restore(&backup, &restored).expect("the rest is restored");
    assert!(matches!(problems[..], [Problem::Damage(_), ..]), "{problems:?}");
    fs::remove_dir_all(&restored).expect("removed");
    fs::write(&first, &content).expect("written");
    let list = backup.join("backup");
    let text = fs::read_to_string(&list).expect("is there");
    fs::write(&list, &text[..text.len() / 2]).expect("written");
    let error = restore(&backup, &restored).expect_err("the list is cut").to_string();
    assert!(error.contains("list is"), "{error}");
}
