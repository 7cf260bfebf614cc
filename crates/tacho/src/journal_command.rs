//! `tacho journal`: inspects a data directory while no broker uses it.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tacho_broker::{KeptRecord, visit_records};
use tacho_journal::Inspection;

use crate::exit::{self, Failure};
use crate::ownership::give_to_user_of_place;

/// Queues that `inspect` names.
const QUEUES_SHOWN: usize = 20;

/// Inspect a broker's data directory while no broker uses it, or a backup.
///
/// The directory is only read; several of these commands can read it at once.
#[derive(Args, Debug)]
pub(crate) struct JournalArguments {
    #[command(subcommand)]
    command: JournalCommand,
}

#[derive(Subcommand, Debug)]
enum JournalCommand {
    /// Show its contents: sessions, messages, retained messages, segments, disk use.
    Inspect {
        /// The data directory.
        directory: PathBuf,
    },
    /// Read everything and report damage.
    ///
    /// Exit code 0: the directory is sound. 99: records are lost; each line names the file and,
    /// where it is known, the byte. A log that ends within a commit, as after a power cut, is
    /// sound.
    Check {
        /// The data directory.
        directory: PathBuf,
    },
    /// Make a data directory of a backup that `tacho ctl backup` has made.
    ///
    /// All of it is read and checked. Exit code 0: it is sound; 99: it is restored, and some of it
    /// is damaged; 104: it is no complete backup, or the directory is there already. What root
    /// restores belongs to the user of the directory that it is put in.
    Restore {
        /// The backup.
        backup: PathBuf,
        /// The data directory, which must not be there or be empty.
        directory: PathBuf,
    },
    /// Write all records to standard output: a JSON object per line.
    Export {
        /// The data directory.
        directory: PathBuf,
    },
}

/// Runs the command; its exit code.
pub(crate) fn journal(arguments: &JournalArguments) -> Result<u8, Failure> {
    match &arguments.command {
        JournalCommand::Inspect { directory } => inspect(directory),
        JournalCommand::Check { directory } => check(directory),
        JournalCommand::Restore { backup, directory } => restore(backup, directory),
        JournalCommand::Export { directory } => export(directory),
    }
}

fn open(directory: &Path) -> Result<Inspection, Failure> {
    Inspection::open(directory).map_err(|error| Failure::new(exit::INVALID_CONFIG, error))
}

/// Totals of a data directory.
#[derive(Default)]
struct Counts {
    sessions: u64,
    connected: u64,
    subscriptions: u64,
    wills: u64,
    inbound: u64,
    retained: u64,
    groups: u64,
    unknown: u64,
    starts: u64,
    queues: BTreeMap<u64, Queue>,
}

#[derive(Default)]
struct Queue {
    name: Option<String>,
    queued: u64,
    unacknowledged: u64,
}

impl Counts {
    fn of(inspection: &Inspection) -> Result<Self, Failure> {
        let mut counts = Self::default();
        visit_records(inspection, false, &mut |record| counts.take(record))
            .map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
        Ok(counts)
    }

    fn take(&mut self, record: KeptRecord) {
        match record {
            KeptRecord::Session { queue, client_id, connected, .. } => {
                self.sessions += 1;
                self.connected += u64::from(connected);
                self.queues.entry(queue).or_default().name = Some(client_id);
            }
            KeptRecord::Group { queue, filter } => {
                self.groups += 1;
                self.queues.entry(queue).or_default().name = Some(filter);
            }
            KeptRecord::Entry { queue, stage, .. } => {
                let queue = self.queues.entry(queue).or_default();
                match stage {
                    "queued" => queue.queued += 1,
                    _ => queue.unacknowledged += 1,
                }
            }
            KeptRecord::Subscription { .. } => self.subscriptions += 1,
            KeptRecord::Will { .. } => self.wills += 1,
            KeptRecord::Inbound { .. } => self.inbound += 1,
            KeptRecord::Retained { .. } => self.retained += 1,
            KeptRecord::Unknown { .. } => self.unknown += 1,
            KeptRecord::Starts { starts } => self.starts = starts,
            _ => {}
        }
    }
}

fn inspect(directory: &Path) -> Result<u8, Failure> {
    let inspection = open(directory)?;
    let counts = Counts::of(&inspection)?;
    let summary = inspection.summary();
    let report = inspection.report();
    let queued: u64 = counts.queues.values().map(|queue| queue.queued).sum();
    let unacknowledged: u64 = counts.queues.values().map(|queue| queue.unacknowledged).sum();
    let mut out = io::stdout().lock();
    let mut line = |name: &str, value: String| writeln!(out, "{name:<22} {value}");
    let written = (|| {
        line("format", summary.format.to_string())?;
        line("starts", counts.starts.to_string())?;
        line("sessions", format!("{}, {} connected", counts.sessions, counts.connected))?;
        line("subscriptions", counts.subscriptions.to_string())?;
        line("messages queued", queued.to_string())?;
        line("unacknowledged", unacknowledged.to_string())?;
        line("incoming QoS 2", counts.inbound.to_string())?;
        line("wills", counts.wills.to_string())?;
        line("retained messages", counts.retained.to_string())?;
        line("shared queues", counts.groups.to_string())?;
        line("open messages", summary.open_messages.to_string())?;
        line("message bodies", summary.messages.to_string())?;
        line("log", format!("{} bytes, {} live", summary.log_bytes, summary.live_bytes))?;
        line("last commit", summary.last_commit.to_string())?;
        if counts.unknown > 0 {
            line("not understood", counts.unknown.to_string())?;
        }
        if let Some(torn) = &report.torn {
            line("ends within a commit", format!("{} at byte {}", torn.file, torn.offset))?;
        }
        for damage in &report.damage {
            line("damaged", damage.to_string())?;
        }
        for segment in &summary.segments {
            let (live, damaged) = (segment.live_bytes, segment.is_damaged);
            let damaged = if damaged { ", damaged" } else { "" };
            line(&segment.file, format!("{} bytes, {live} live{damaged}", segment.bytes))?;
        }
        let mut queues: Vec<_> = counts.queues.iter().collect();
        queues.sort_by_key(|(id, queue)| (u64::MAX - queue.queued - queue.unacknowledged, **id));
        for (id, queue) in queues.iter().take(QUEUES_SHOWN) {
            let name = queue.name.as_deref().unwrap_or("(no owner)");
            let (queued, sent) = (queue.queued, queue.unacknowledged);
            line(
                &format!("queue {id}"),
                format!("{name}: {queued} queued, {sent} unacknowledged"),
            )?;
        }
        match queues.len().checked_sub(QUEUES_SHOWN) {
            Some(more @ 1..) => line("", format!("and {} more", counted(more as u64, "queue"))),
            _ => Ok(()),
        }
    })();
    done(written)
}

fn check(directory: &Path) -> Result<u8, Failure> {
    let inspection = open(directory)?;
    let mut problems: Vec<String> = inspection.check().iter().map(ToString::to_string).collect();
    problems.extend(orphans(&inspection)?);
    let report = inspection.report();
    let mut out = io::stdout().lock();
    let written = (|| {
        if let Some(torn) = &report.torn {
            let (file, offset) = (&torn.file, torn.offset);
            writeln!(out, "{file}: ends within a commit at byte {offset}: it was never complete")?;
        }
        for problem in &problems {
            writeln!(out, "{problem}")?;
        }
        if problems.is_empty() {
            let segments = counted(report.segments, "segment");
            let commits = counted(report.frames, "commit");
            writeln!(out, "sound: {segments}, {commits}")?;
        }
        Ok(())
    })();
    done(written)?;
    Ok(if problems.is_empty() { exit::OK } else { exit::THRESHOLD })
}

fn restore(backup: &Path, directory: &Path) -> Result<u8, Failure> {
    let restored = tacho_journal::restore(backup, directory);
    let (made, problems) = restored.map_err(|error| Failure::new(exit::INVALID_CONFIG, error))?;
    give_to_user_of_place(directory).map_err(|error| {
        let shown = directory.display();
        let why = format!("{shown} is restored, but is not the user's of its place: {error}");
        Failure::new(exit::UNEXPECTED, why)
    })?;
    let mut out = io::stdout().lock();
    let written = (|| {
        for problem in &problems {
            writeln!(out, "{problem}")?;
        }
        let (segments, commit) = (counted(made.segments, "segment"), made.commit.get());
        writeln!(out, "restored in {}: {segments} up to commit {commit}", directory.display())
    })();
    done(written)?;
    Ok(if problems.is_empty() { exit::OK } else { exit::THRESHOLD })
}

/// Queues without the record of their owner: the segment with that record is missing as a whole,
/// and the log does not reveal that its oldest segment is missing.
fn orphans(inspection: &Inspection) -> Result<Vec<String>, Failure> {
    let counts = Counts::of(inspection)?;
    let orphans = counts.queues.iter().filter(|(_, queue)| queue.name.is_none());
    let sentence = |(id, queue): (&u64, &Queue)| {
        let messages = queue.queued + queue.unacknowledged;
        let messages = counted(messages, "message");
        format!("queue {id}: the record of its owner is lost, and with it {messages}")
    };
    Ok(orphans.map(sentence).collect())
}

fn export(directory: &Path) -> Result<u8, Failure> {
    let inspection = open(directory)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let mut each = |record: KeptRecord| {
        if written.is_ok() {
            written = serde_json::to_writer(&mut out, &record)
                .map_err(io::Error::from)
                .and_then(|()| out.write_all(b"\n"));
        }
    };
    visit_records(&inspection, true, &mut each)
        .map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    done(written.and_then(|()| out.flush()))
}

/// A number of things, with the word for one of them or for several.
fn counted(count: u64, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}

/// The exit code after writing. A reader that closes the pipe early is no error.
fn done(written: io::Result<()>) -> Result<u8, Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(exit::UNEXPECTED, format!("cannot write: {error}")))
        }
        _ => Ok(exit::OK),
    }
}
