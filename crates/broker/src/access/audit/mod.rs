//! The audit log: a file with a JSON object per line for each login that is refused, each client
//! or subscription that rules end, and each change of the rules.
//!
//! Shards hand events to a thread through a bounded queue and never wait for it: an event that
//! finds no room is counted, and the count is written later.

mod file;
mod throttle;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Serialize, Serializer};
use tacho_net::clock;
use time::OffsetDateTime;

pub(crate) use file::AuditFile;
use throttle::AuditThrottle;

/// Events that wait to be written; each holds at most about a KiB.
const WAITING_MAX: usize = 1_024;
const SECOND_NS: u64 = 1_000_000_000;
/// Of names that clients choose.
const NAME_CHARS_MAX: usize = 256;

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditKind {
    /// A client may not connect.
    #[default]
    LoginRefused,
    /// A client is disconnected because users or rules have changed.
    ClientDisconnected,
    /// A subscription ends because the rules have changed.
    SubscriptionEnded,
    /// A will that is due is not published: its user may not publish it any more.
    WillRefused,
    /// An address is banned for failed logins or for flapping.
    AddressBanned,
    /// A client identifier is banned for flapping.
    ClientIdBanned,
    /// New users and rules are in force.
    RulesChanged,
    /// New users and rules cannot be used.
    RulesUnusable,
    /// An operator has changed something through the management API.
    Managed,
    /// Events that are not in the log: too many came at once.
    LeftOut,
}

/// A line of the audit log. Never has a password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct AuditEvent {
    pub(crate) event: AuditKind,
    /// Of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) listener: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic_filter: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic: Option<Name>,
    /// The reason code of MQTT 5.0, as `0x86`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// An address, or a range, that an operator has banned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) banned_address: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bridge: Option<Name>,
    /// What an operator has done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action: Option<&'static str>,
    /// The operator's key, or `socket`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<Name>,
    /// How many events were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
}

/// A name that a client chose, cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    pub(crate) fn new(name: &str) -> Self {
        match name.char_indices().nth(NAME_CHARS_MAX) {
            None => Self(name.to_owned()),
            Some((end, _)) => Self(format!("{}...", &name[..end])),
        }
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// What became of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuditOutcome {
    Written,
    /// Too many of one address, or of all, in a second.
    LeftOut,
    /// The thread could not follow, or the file could not be written.
    Lost,
}

impl AuditOutcome {
    pub(crate) const ALL: [(Self, &'static str); 3] =
        [(Self::Written, "written"), (Self::LeftOut, "left_out"), (Self::Lost, "lost")];
}

/// Shared by the thread and all handles.
#[derive(Debug, Default)]
struct AuditState {
    outcomes: [AtomicU64; AuditOutcome::ALL.len()],
    /// The file is to be opened anew. No job: it must not wait for room in the queue.
    must_reopen: AtomicBool,
}

impl AuditState {
    fn add(&self, outcome: AuditOutcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self, outcome: AuditOutcome) -> u64 {
        self.outcomes[outcome as usize].load(Ordering::Relaxed)
    }
}

enum AuditJob {
    Write(Box<AuditEvent>),
    End,
}

/// Takes events for the audit log, if there is one. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Audit(Option<(SyncSender<AuditJob>, Arc<AuditState>)>);

impl Audit {
    /// Starts the thread that writes to a file.
    pub(crate) fn start(file: AuditFile) -> io::Result<(Self, AuditThread)> {
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let state = Arc::new(AuditState::default());
        let writer = Writer {
            file,
            state: Arc::clone(&state),
            throttle: AuditThrottle::default(),
            lost_told: 0,
        };
        let thread = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || writer.run(&waiting))?;
        Ok((Self(Some((jobs.clone(), state))), AuditThread { jobs, thread }))
    }

    /// Whether there is an audit log: else there is no need to make events.
    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Hands over an event, or counts it as lost.
    pub(crate) fn note(&self, event: AuditEvent) {
        if let Some((jobs, state)) = &self.0
            && jobs.try_send(AuditJob::Write(Box::new(event))).is_err()
        {
            state.add(AuditOutcome::Lost);
        }
    }

    /// Opens the file anew before the next event: it may have been moved away.
    pub(crate) fn reopen(&self) {
        if let Some((_, state)) = &self.0 {
            state.must_reopen.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn count(&self, outcome: AuditOutcome) -> u64 {
        self.0.as_ref().map_or(0, |(_, state)| state.get(outcome))
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("is_on", &self.is_on()).finish()
    }
}

/// The thread of the audit log. It ends with [`AuditThread::end`], or with the last [`Audit`].
pub(crate) struct AuditThread {
    jobs: SyncSender<AuditJob>,
    thread: JoinHandle<()>,
}

impl AuditThread {
    /// Waits until all events so far are written.
    pub(crate) fn end(self) {
        // A thread that has ended already has nothing to write.
        let _ = self.jobs.send(AuditJob::End);
        drop(self.jobs);
        let _ = self.thread.join();
    }
}

/// What the thread owns.
struct Writer {
    file: AuditFile,
    state: Arc<AuditState>,
    throttle: AuditThrottle,
    /// Of the lost events those whose loss is in the log.
    lost_told: u64,
}

impl Writer {
    fn run(mut self, jobs: &Receiver<AuditJob>) {
        let mut ends_ns = clock::now_ns() + SECOND_NS;
        loop {
            let wait_ns = ends_ns.saturating_sub(clock::now_ns());
            let job = match self.has_untold() {
                true => jobs.recv_timeout(Duration::from_nanos(wait_ns)),
                false => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let now_ns = clock::now_ns();
            if now_ns >= ends_ns {
                self.tell_left_out();
                ends_ns = now_ns + SECOND_NS;
            }
            match job {
                Ok(AuditJob::Write(event)) => self.take(&event),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(AuditJob::End) | Err(RecvTimeoutError::Disconnected) => {
                    return self.tell_left_out();
                }
            }
        }
    }

    fn has_untold(&self) -> bool {
        self.throttle.has_left_out() || self.state.get(AuditOutcome::Lost) > self.lost_told
    }

    fn take(&mut self, event: &AuditEvent) {
        let is_change = matches!(
            event.event,
            AuditKind::RulesChanged | AuditKind::RulesUnusable | AuditKind::Managed
        );
        if !is_change && !self.throttle.admits(event.address.map(|address| address.ip())) {
            return self.state.add(AuditOutcome::LeftOut);
        }
        let outcome = match self.write(event) {
            true => AuditOutcome::Written,
            false => AuditOutcome::Lost,
        };
        self.state.add(outcome);
    }

    /// Ends a second: writes how many events were left out in it, by address.
    fn tell_left_out(&mut self) {
        let event = |address, count, why: &str| AuditEvent {
            event: AuditKind::LeftOut,
            address,
            count: Some(count),
            why: Some(why.to_owned()),
            ..AuditEvent::default()
        };
        for (ip, count) in self.throttle.end_of_second() {
            let address = ip.map(|ip| SocketAddr::new(ip, 0));
            self.write(&event(address, count, "too many events in a second"));
        }
        let lost = self.state.get(AuditOutcome::Lost);
        if lost > self.lost_told {
            let why = "the audit log could not follow, or its file could not be written";
            if self.write(&event(None, lost - self.lost_told, why)) {
                self.lost_told = lost;
            }
        }
    }

    fn write(&mut self, event: &AuditEvent) -> bool {
        // Invariant: strings and numbers only, which JSON can always express.
        let text = serde_json::to_string(event).unwrap_or_default();
        let since_1970 = time::Duration::nanoseconds(clock::unix_ns() as i64);
        let now = OffsetDateTime::UNIX_EPOCH + since_1970;
        let line = format!(
            "{{\"time\":\"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z\",{}\n",
            now.year(),
            u8::from(now.month()),
            now.day(),
            now.hour(),
            now.minute(),
            now.second(),
            now.millisecond(),
            text.strip_prefix('{').unwrap_or_default()
        );
        if self.state.must_reopen.swap(false, Ordering::Relaxed) {
            self.file.reopen();
        }
        self.file.write(&line)
    }
}

/// Whether an audit log could be written to this path.
///
/// # Errors
/// It could not.
pub(crate) fn check_audit_path(path: &Path) -> io::Result<()> {
    if path.exists() {
        return AuditFile::open(path.to_owned(), u64::MAX).map(drop);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.is_none_or(Path::is_dir) {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::NotFound, "there is no such folder")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_written_or_counted() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("audit");
        let file = AuditFile::open(path.clone(), 1 << 20).expect("opens");
        let (audit, thread) = Audit::start(file).expect("starts");
        let refused = AuditEvent {
            address: Some(SocketAddr::from(([192, 0, 2, 7], 4_000))),
            user: Some(Name::new(&"\u{fc}\n".repeat(200))),
            ..AuditEvent::default()
        };
        let sent = 5_000;
        for _ in 0..sent {
            audit.note(refused.clone());
        }
        audit.note(AuditEvent { event: AuditKind::RulesChanged, ..AuditEvent::default() });
        thread.end();
        let text = std::fs::read_to_string(&path).expect("is there");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
        let of = |kind: &'static str| lines.iter().filter(move |line| line["event"] == kind);
        let written = of("login_refused").count() as u64 + of("rules_changed").count() as u64;
        let untold: u64 = of("left_out").filter_map(|line| line["count"].as_u64()).sum();
        assert_eq!(written + untold, sent + 1, "{text}");
        let counted = AuditOutcome::ALL.map(|(outcome, _)| audit.count(outcome));
        assert_eq!((counted[0], counted[1] + counted[2]), (written, untold));
        assert!(untold > 0, "a second has fewer lines than these");
        let user = lines[0]["user"].as_str().expect("has one");
        assert_eq!(user, format!("{}...", "\u{fc}\n".repeat(128)));
        assert_eq!(lines[0]["address"], "192.0.2.7:4000");
        assert!(lines[0]["time"].as_str().is_some_and(|time| time.ends_with('Z')));
    }
}
