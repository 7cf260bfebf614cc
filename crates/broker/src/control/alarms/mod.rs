//! Alarms: what needs an operator to look at the broker, with hysteresis, current and past.
//!
//! An alarm begins when a value is past its threshold, and ends when all has been well for a while
//! by a margin: one that goes up and down is one alarm. Looks are on a thread of their own, since a
//! disk may not answer.

mod book;
mod look;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tacho_net::clock;
use tokio::time::MissedTickBehavior;

use super::View;
use super::exposition::{Exposition, Kind};
use crate::certificates::Certificates;
use crate::config::{AlarmSettings, Config};
use crate::events::{Event, EventKind};
use crate::shard::Shared;

use book::{AlarmBook, AlarmChange};
pub(super) use book::{AlarmKind, AlarmRow};
use look::Looker;

/// The alarms of a broker, for all that tell of them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alarms(Arc<Mutex<AlarmBook>>);

impl Alarms {
    fn book(&self) -> MutexGuard<'_, AlarmBook> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current ones, the newest first.
    pub(super) fn active(&self) -> Vec<AlarmRow> {
        self.book().active()
    }

    /// Those that have ended, the newest first.
    pub(super) fn past(&self) -> Vec<AlarmRow> {
        self.book().past()
    }

    /// How many there are of each kind, and how many there were.
    fn counts(&self) -> [(AlarmKind, usize, u64); AlarmKind::ALL.len()] {
        let book = self.book();
        AlarmKind::ALL.map(|kind| (kind, book.active_of(kind), book.raised_of(kind)))
    }

    /// The metrics.
    pub(super) fn write(&self, exposition: &mut Exposition) {
        let counts = self.counts();
        let help = "Current alarms.";
        let mut family = exposition.family("tacho_alarms", help, Kind::Gauge);
        for (kind, active, _) in counts {
            family.sample(&[("alarm", &kind.name())], active);
        }
        let help = "Alarms that have begun.";
        let mut family = exposition.family("tacho_alarms_raised_total", help, Kind::Counter);
        for (kind, _, raised) in counts {
            family.sample(&[("alarm", &kind.name())], raised);
        }
    }

    /// `$SYS` topics and their payloads, always in the same order.
    pub(super) fn sys_values(&self) -> Vec<(String, String)> {
        let counts = self.counts();
        let total: usize = counts.iter().map(|(_, active, _)| active).sum();
        let own = counts
            .iter()
            .map(|(kind, active, _)| (format!("alarms/{}", kind.name()), active.to_string()));
        [("alarms/active".to_owned(), total.to_string())].into_iter().chain(own).collect()
    }
}

/// What looks at the broker.
pub(super) struct AlarmWatch {
    settings: AlarmSettings,
    certificates: Certificates,
    data_dir: Option<PathBuf>,
    shared: Arc<Shared>,
}

impl AlarmWatch {
    pub(super) fn new(config: &Config, certificates: Certificates, shared: Arc<Shared>) -> Self {
        let (settings, data_dir) = (config.alarms.clone(), config.data_dir.clone());
        Self { settings, certificates, data_dir, shared }
    }

    /// Looks again and again, forever.
    pub(super) async fn go_on(self, view: &Arc<View>) {
        let Self { settings, certificates, data_dir, shared } = self;
        if settings.check_s == 0 {
            return std::future::pending().await;
        }
        let mut ticks = tokio::time::interval(Duration::from_secs(settings.check_s.into()));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (events, clear_ms) = (Arc::clone(&shared.events), u64::from(settings.clear_s) * 1_000);
        let looker = Looker::new(settings, certificates, data_dir, shared);
        let looker = Arc::new(Mutex::new(looker));
        loop {
            ticks.tick().await;
            let (looker, seen) = (Arc::clone(&looker), Arc::clone(view));
            let look = tokio::task::spawn_blocking(move || {
                looker.lock().unwrap_or_else(PoisonError::into_inner).look(&seen)
            });
            // One that panics is only missed.
            let Ok(findings) = look.await else { continue };
            let now_ms = clock::unix_ns() / 1_000_000;
            let changes = view.alarms.book().take(findings, now_ms, clear_ms);
            for change in changes {
                tell(&change);
                if events.are_watched() {
                    events.tell(event_of(change, now_ms));
                }
            }
        }
    }
}

fn tell(change: &AlarmChange) {
    let AlarmRow { alarm, subject, text, .. } = change.row();
    let subject = if subject.is_empty() { String::new() } else { format!(" {subject}") };
    match change {
        AlarmChange::Raised(_) => tracing::warn!("alarm {}{subject}: {text}", alarm.name()),
        AlarmChange::Ended(_) => {
            tracing::info!("alarm {}{subject} has ended: {text}", alarm.name())
        }
    }
}

fn event_of(change: AlarmChange, now_ms: u64) -> Event {
    let (kind, row) = match change {
        AlarmChange::Raised(row) => (EventKind::AlarmRaised, row),
        AlarmChange::Ended(row) => (EventKind::AlarmEnded, row),
    };
    let AlarmRow { alarm, subject, text, .. } = row;
    let reason = if subject.is_empty() { text } else { format!("{subject}: {text}") };
    Event {
        alarm: Some(alarm.name()),
        reason: Some(reason),
        ..Event::new(kind, now_ms.cast_signed())
    }
}
