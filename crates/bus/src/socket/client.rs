//! A bus that another process of this machine serves.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use bytes::Bytes;

use super::frame::{self, Answer, Ask, Call, Frame};
use crate::bus::check_size;
use crate::subscription::{Feed, Offered, queue};
use crate::{
    Bus, BusError, Expected, Log, LogEntry, LogLimits, Name, Pattern, Revision, Subject,
    Subscription, Table, Value,
};

/// Time for a call that the server answers by itself.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// Time for the socket to take a frame.
const WRITE_WITHIN: Duration = Duration::from_secs(10);

/// A bus that another process of this machine serves. When that process ends, calls and
/// subscriptions fail with [`BusError::Closed`].
pub struct SocketBus {
    connection: Arc<SocketConnection>,
    thread: Option<JoinHandle<()>>,
}

/// What calls, logs and tables share.
struct SocketConnection {
    stream: Mutex<UnixStream>,
    /// Ends the connection without waiting for a writer.
    handle: UnixStream,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
}

/// The calls and subscriptions of a connection; `None` once it has ended.
type Waiting = Option<(HashMap<u64, Answers>, HashMap<u64, Taker>)>;
type Answers = mpsc::SyncSender<Result<Answer, BusError>>;

/// A subscription and what the server has dropped of it.
struct Taker {
    feed: Feed,
    dropped: Arc<AtomicU64>,
}

impl SocketBus {
    /// Connects to the server at `path`.
    ///
    /// # Errors
    /// Nothing serves there.
    pub fn connect(path: &Path) -> Result<Self, BusError> {
        let failed = |error: io::Error| BusError::Connect {
            address: path.display().to_string(),
            why: error.to_string(),
        };
        let stream = UnixStream::connect(path).map_err(failed)?;
        stream.set_write_timeout(Some(WRITE_WITHIN)).map_err(failed)?;
        let reading = stream.try_clone().map_err(failed)?;
        let connection = Arc::new(SocketConnection {
            handle: stream.try_clone().map_err(failed)?,
            stream: Mutex::new(stream),
            next: AtomicU64::new(1),
            waiting: Mutex::new(Some(Default::default())),
        });
        let shared = Arc::clone(&connection);
        let work = move || {
            let mut reader = BufReader::new(reading);
            while let Ok(Some(frame)) = frame::read(&mut reader) {
                shared.take(frame);
            }
            shared.end();
        };
        let thread = Builder::new().name("bus-socket".to_owned()).spawn(work).map_err(failed)?;
        Ok(Self { connection, thread: Some(thread) })
    }
}

impl Drop for SocketBus {
    fn drop(&mut self) {
        self.connection.end();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

impl SocketConnection {
    /// Takes a frame from the server.
    fn take(&self, frame: Frame) {
        let mut waiting = lock(&self.waiting);
        let Some((calls, takers)) = waiting.as_mut() else { return };
        match frame {
            Frame::Answer { number, answer } => {
                if let Some(call) = calls.remove(&number) {
                    // The caller may have given up.
                    let _ = call.try_send(answer);
                }
            }
            Frame::Message { subscription, dropped, message } => {
                let Some(taker) = takers.get(&subscription) else { return };
                taker.dropped.store(dropped, Ordering::Relaxed);
                if taker.feed.offer(message) == Offered::Ended {
                    takers.remove(&subscription);
                }
            }
        }
    }

    /// Ends the connection: calls that wait fail, and subscriptions end.
    fn end(&self) {
        let _ = self.handle.shutdown(Shutdown::Both);
        *lock(&self.waiting) = None;
    }

    fn send(&self, number: u64, ask: Ask) -> Result<(), BusError> {
        let mut stream = lock(&self.stream);
        frame::write(&mut *stream, &Call { number, ask }).map_err(|error| {
            // What was written may be a part of a frame.
            self.end();
            BusError::Closed { why: error.to_string() }
        })
    }

    fn call(&self, ask: Ask, within: Duration) -> Result<Answer, BusError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = mpsc::sync_channel(1);
        match lock(&self.waiting).as_mut() {
            Some((calls, _)) => calls.insert(number, sender),
            None => return Err(closed()),
        };
        self.send(number, ask)?;
        answer.recv_timeout(within).unwrap_or_else(|error| match error {
            mpsc::RecvTimeoutError::Timeout => {
                if let Some((calls, _)) = lock(&self.waiting).as_mut() {
                    calls.remove(&number);
                }
                let waited_ms = within.as_millis() as u64;
                Err(BusError::TimedOut { from: "the bus".to_owned(), waited_ms })
            }
            mpsc::RecvTimeoutError::Disconnected => Err(closed()),
        })
    }
}

fn closed() -> BusError {
    BusError::Closed { why: "the program that serves it has ended".to_owned() }
}

/// An answer of another kind than the call's.
fn astray() -> BusError {
    BusError::Refused { why: "the server's answer does not fit the call".to_owned() }
}

impl Bus for SocketBus {
    fn publish(&self, subject: &Subject, payload: Bytes) -> Result<(), BusError> {
        check_size(&payload)?;
        self.connection.send(0, Ask::Publish { subject: subject.clone(), payload })
    }

    fn subscribe(&self, pattern: &Pattern, capacity: usize) -> Result<Subscription, BusError> {
        let number = self.connection.next.fetch_add(1, Ordering::Relaxed);
        let (feed, subscription) = queue(capacity);
        let dropped = Arc::new(AtomicU64::new(0));
        let subscription = subscription.with_engine_drops(&dropped);
        match lock(&self.connection.waiting).as_mut() {
            // Before the call: messages may arrive before its answer.
            Some((_, takers)) => takers.insert(number, Taker { feed, dropped }),
            None => return Err(closed()),
        };
        let connection = Arc::clone(&self.connection);
        let subscription = subscription.on_end(move || {
            if let Some((_, takers)) = lock(&connection.waiting).as_mut() {
                takers.remove(&number);
            }
            // Without a connection there is no subscription either.
            let _ = connection.send(0, Ask::Unsubscribe { subscription: number });
        });
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
        let ask = Ask::Subscribe { subscription: number, pattern: pattern.clone(), capacity };
        self.connection.call(ask, ANSWER_WITHIN)?;
        Ok(subscription)
    }

    fn request(
        &self,
        subject: &Subject,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, BusError> {
        check_size(&payload)?;
        let ask = Ask::Request { subject: subject.clone(), payload, timeout };
        match self.connection.call(ask, timeout + Duration::from_secs(1))? {
            Answer::Payload(payload) => Ok(payload),
            _ => Err(astray()),
        }
    }

    fn log(&self, name: &Name, limits: LogLimits) -> Result<Box<dyn Log>, BusError> {
        let ask = Ask::OpenLog { name: name.clone(), limits };
        self.connection.call(ask, ANSWER_WITHIN)?;
        Ok(Box::new(Opened { connection: Arc::clone(&self.connection), name: name.clone() }))
    }

    fn find_log(&self, name: &Name) -> Result<Option<Box<dyn Log>>, BusError> {
        match self.connection.call(Ask::FindLog { name: name.clone() }, ANSWER_WITHIN)? {
            Answer::Found(false) => Ok(None),
            Answer::Found(true) => {
                let connection = Arc::clone(&self.connection);
                Ok(Some(Box::new(Opened { connection, name: name.clone() })))
            }
            _ => Err(astray()),
        }
    }

    fn delete_log(&self, name: &Name) -> Result<(), BusError> {
        self.connection.call(Ask::DeleteLog { name: name.clone() }, ANSWER_WITHIN)?;
        Ok(())
    }

    fn table(&self, name: &Name, lease: Option<Duration>) -> Result<Box<dyn Table>, BusError> {
        let ask = Ask::OpenTable { name: name.clone(), lease };
        self.connection.call(ask, ANSWER_WITHIN)?;
        Ok(Box::new(Opened { connection: Arc::clone(&self.connection), name: name.clone() }))
    }
}

/// A log or a table that the server has opened.
struct Opened {
    connection: Arc<SocketConnection>,
    name: Name,
}

impl Opened {
    fn call(&self, ask: Ask) -> Result<Answer, BusError> {
        self.connection.call(ask, ANSWER_WITHIN)
    }
}

impl Log for Opened {
    fn append(&self, entry: Bytes) -> Result<u64, BusError> {
        check_size(&entry)?;
        match self.call(Ask::Append { log: self.name.clone(), entry })? {
            Answer::Appended(seq) => Ok(seq),
            _ => Err(astray()),
        }
    }

    fn read(&self, from: u64, entries_max: usize) -> Result<Vec<LogEntry>, BusError> {
        let entries_max = u32::try_from(entries_max).unwrap_or(u32::MAX);
        match self.call(Ask::Read { log: self.name.clone(), from, entries_max })? {
            Answer::Entries(entries) => Ok(entries),
            _ => Err(astray()),
        }
    }
}

impl Table for Opened {
    fn get(&self, key: &Name) -> Result<Option<Value>, BusError> {
        match self.call(Ask::Get { table: self.name.clone(), key: key.clone() })? {
            Answer::Value(value) => Ok(value),
            _ => Err(astray()),
        }
    }

    fn put(&self, key: &Name, value: Bytes, expected: Expected) -> Result<Revision, BusError> {
        check_size(&value)?;
        let (table, key) = (self.name.clone(), key.clone());
        match self.call(Ask::Put { table, key, value, expected })? {
            Answer::Written(revision) => Ok(revision),
            _ => Err(astray()),
        }
    }

    fn delete(&self, key: &Name, expected: Expected) -> Result<(), BusError> {
        let (table, key) = (self.name.clone(), key.clone());
        self.call(Ask::Delete { table, key, expected }).map(|_| ())
    }

    fn keys(&self) -> Result<Vec<Name>, BusError> {
        match self.call(Ask::Keys { table: self.name.clone() })? {
            Answer::Keys(keys) => Ok(keys),
            _ => Err(astray()),
        }
    }
}

impl fmt::Debug for SocketBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketBus").finish_non_exhaustive()
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The state is consistent between any two statements, so a panic elsewhere does no harm.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
