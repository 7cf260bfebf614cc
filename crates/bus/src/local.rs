//! The engine inside the process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::bus::check_size;
use crate::subscription::{Feed, Offered, queue};
use crate::{Bus, BusError, Log, LogLimits, Message, Name, Pattern, Subject, Subscription, Table};

mod log;
mod table;

use log::LocalLog;
use table::LocalTable;

const SUBSCRIPTIONS_MAX: usize = 4_096;
const LOGS_MAX: usize = 64;
const TABLES_MAX: usize = 64;

/// An engine inside the process: nothing survives its last handle. Handles share one engine.
#[derive(Clone, Debug, Default)]
pub struct LocalBus(Arc<LocalState>);

#[derive(Debug, Default)]
struct LocalState {
    subscribers: Mutex<BTreeMap<u64, (Pattern, Feed)>>,
    logs: Mutex<BTreeMap<Name, LocalLog>>,
    tables: Mutex<BTreeMap<Name, LocalTable>>,
    /// Numbers of subscriptions and of reply subjects.
    next: AtomicU64,
}

impl LocalBus {
    /// Sends a message; returns how many subscriptions wanted it.
    fn deliver(&self, message: &Message) -> usize {
        let mut subscribers = lock(&self.0.subscribers);
        let mut wanted = 0;
        subscribers.retain(|_, (pattern, feed)| {
            if !pattern.matches(&message.subject) {
                return true;
            }
            let is_open = feed.offer(message.clone()) == Offered::Yes;
            wanted += usize::from(is_open);
            is_open
        });
        wanted
    }

    fn next(&self) -> u64 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }
}

impl Bus for LocalBus {
    fn publish(&self, subject: &Subject, payload: Bytes) -> Result<(), BusError> {
        check_size(&payload)?;
        self.deliver(&Message { subject: subject.clone(), reply: None, payload });
        Ok(())
    }

    fn subscribe(&self, pattern: &Pattern, capacity: usize) -> Result<Subscription, BusError> {
        let (feed, subscription) = queue(capacity);
        let number = self.next();
        let mut subscribers = lock(&self.0.subscribers);
        if subscribers.len() >= SUBSCRIPTIONS_MAX {
            return Err(limit("subscriptions", SUBSCRIPTIONS_MAX));
        }
        subscribers.insert(number, (pattern.clone(), feed));
        drop(subscribers);
        let shared = Arc::downgrade(&self.0);
        Ok(subscription.on_end(move || {
            if let Some(shared) = shared.upgrade() {
                lock(&shared.subscribers).remove(&number);
            }
        }))
    }

    fn request(
        &self,
        subject: &Subject,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, BusError> {
        check_size(&payload)?;
        let reply = Subject::parse(&format!("_reply.{}", self.next()))?;
        let answers = self.subscribe(&reply.clone().into(), 1)?;
        let request = Message { subject: subject.clone(), reply: Some(reply), payload };
        if self.deliver(&request) == 0 {
            return Err(BusError::NoResponder { subject: subject.to_string() });
        }
        let answer = answers.next(timeout)?;
        let timed_out = || BusError::TimedOut {
            from: format!("'{subject}'"),
            waited_ms: timeout.as_millis() as u64,
        };
        answer.map(|answer| answer.payload).ok_or_else(timed_out)
    }

    fn log(&self, name: &Name, limits: LogLimits) -> Result<Box<dyn Log>, BusError> {
        let mut logs = lock(&self.0.logs);
        if !logs.contains_key(name) && logs.len() >= LOGS_MAX {
            return Err(limit("logs", LOGS_MAX));
        }
        let log = logs.entry(name.clone()).or_insert_with(|| LocalLog::new(limits));
        Ok(Box::new(log.clone()))
    }

    fn find_log(&self, name: &Name) -> Result<Option<Box<dyn Log>>, BusError> {
        let found = lock(&self.0.logs).get(name).cloned();
        Ok(found.map(|log| Box::new(log) as Box<dyn Log>))
    }

    fn delete_log(&self, name: &Name) -> Result<(), BusError> {
        if let Some(log) = lock(&self.0.logs).remove(name) {
            log.delete();
        }
        Ok(())
    }

    fn table(&self, name: &Name, lease: Option<Duration>) -> Result<Box<dyn Table>, BusError> {
        let mut tables = lock(&self.0.tables);
        if !tables.contains_key(name) && tables.len() >= TABLES_MAX {
            return Err(limit("tables", TABLES_MAX));
        }
        let table = tables.entry(name.clone()).or_insert_with(|| LocalTable::new(lease));
        table.check_lease(name, lease)?;
        Ok(Box::new(table.clone()))
    }
}

fn limit(what: &str, max: usize) -> BusError {
    BusError::Limit { what: what.to_owned(), max }
}

/// The state is consistent between any two statements, so a panic elsewhere does no harm.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
