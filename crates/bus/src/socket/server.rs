//! Serves a bus on a Unix socket.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::frame::{self, Answer, Ask, Call, ENTRIES_BYTES_MAX, Frame};
use crate::{Bus, BusError, Log, LogEntry, Name, Subscription, Table};

const CLIENTS_MAX: usize = 512;
/// Subscriptions, open logs and open tables of one client, each.
const HELD_MAX: usize = 256;
/// Requests of one client that wait for their answers.
const REQUESTS_MAX: usize = 32;
/// A client that does not read for so long is cut off.
const WRITE_WITHIN: Duration = Duration::from_secs(10);
/// How often a thread looks whether its subscription or the server has ended.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Serves a bus on a Unix socket until it is dropped. The folder of the socket decides who may use
/// it.
#[derive(Debug)]
pub struct SocketServer {
    path: PathBuf,
    shared: Arc<ServerState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct ServerState {
    bus: Arc<dyn Bus>,
    ended: AtomicBool,
    /// The connections, to end them.
    clients: Mutex<HashMap<u64, UnixStream>>,
}

impl SocketServer {
    /// Serves `bus` at `path`, where nothing may be yet.
    ///
    /// # Errors
    /// The socket cannot be made, or no thread started.
    pub fn start(bus: Arc<dyn Bus>, path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let clients = Mutex::default();
        let shared = Arc::new(ServerState { bus, ended: AtomicBool::new(false), clients });
        let serving = Arc::clone(&shared);
        let accept = move || {
            for (number, stream) in (0..).zip(listener.incoming()) {
                if serving.ended.load(Ordering::Relaxed) {
                    return;
                }
                // A client that left before it was accepted is none.
                let Ok(stream) = stream else { continue };
                serve(&serving, number, stream);
            }
        };
        let thread = Builder::new().name("bus-socket".to_owned()).spawn(accept)?;
        Ok(Self { path: path.to_owned(), shared, thread: Some(thread) })
    }

    /// Where it serves.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = UnixStream::connect(&self.path);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
        for stream in lock(&self.shared.clients).values() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Starts the thread of a client; one too many is closed.
fn serve(shared: &Arc<ServerState>, number: u64, stream: UnixStream) {
    let (Ok(mine), Ok(theirs)) = (stream.try_clone(), stream.try_clone()) else { return };
    let mut clients = lock(&shared.clients);
    if clients.len() >= CLIENTS_MAX || mine.set_write_timeout(Some(WRITE_WITHIN)).is_err() {
        return;
    }
    clients.insert(number, stream);
    drop(clients);
    let served = Arc::clone(shared);
    let work = move || {
        let mut client = Client::new(Arc::clone(&served.bus), mine);
        client.serve(theirs);
        client.writer.end();
        lock(&served.clients).remove(&number);
    };
    if Builder::new().name("bus-client".to_owned()).spawn(work).is_err() {
        lock(&shared.clients).remove(&number);
    }
}

/// The writing half of a connection, shared by the threads that answer.
#[derive(Clone, Debug)]
struct Writer {
    stream: Arc<Mutex<UnixStream>>,
    ended: Arc<AtomicBool>,
}

impl Writer {
    fn write(&self, frame: &Frame) {
        let mut stream = lock(&self.stream);
        if frame::write(&mut *stream, frame).is_err() {
            self.ended.store(true, Ordering::Relaxed);
            // Wakes the thread that reads.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = lock(&self.stream).shutdown(std::net::Shutdown::Both);
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// One client and what it has opened.
struct Client {
    bus: Arc<dyn Bus>,
    writer: Writer,
    /// Set when a subscription is to end.
    subscriptions: HashMap<u64, Arc<AtomicBool>>,
    logs: HashMap<Name, Box<dyn Log>>,
    tables: HashMap<Name, Box<dyn Table>>,
    requests: Arc<AtomicUsize>,
}

impl Client {
    fn new(bus: Arc<dyn Bus>, stream: UnixStream) -> Self {
        let writer = Writer { stream: Arc::new(Mutex::new(stream)), ended: Arc::default() };
        Self {
            bus,
            writer,
            subscriptions: HashMap::new(),
            logs: HashMap::new(),
            tables: HashMap::new(),
            requests: Arc::default(),
        }
    }

    /// Answers calls until the client ends, or sends what is no frame.
    fn serve(&mut self, stream: UnixStream) {
        let mut reader = BufReader::new(stream);
        while let Ok(Some(Call { number, ask })) = frame::read(&mut reader) {
            if let Some(answer) = self.answer(number, ask) {
                self.writer.write(&Frame::Answer { number, answer });
            }
            if self.writer.has_ended() {
                break;
            }
        }
        self.subscriptions.values().for_each(|end| end.store(true, Ordering::Relaxed));
    }

    fn find_log(&mut self, name: Name) -> Result<Answer, BusError> {
        self.check_held("logs", self.logs.len())?;
        let found = self.bus.find_log(&name)?;
        let is_found = found.is_some();
        self.logs.extend(found.map(|log| (name, log)));
        Ok(Answer::Found(is_found))
    }

    /// The answer to a call; `None` where there is none, or another thread gives it.
    fn answer(&mut self, number: u64, ask: Ask) -> Option<Result<Answer, BusError>> {
        Some(match ask {
            Ask::Publish { subject, payload } => {
                // As with every engine, a publisher does not learn what becomes of a message.
                let _ = self.bus.publish(&subject, payload);
                return None;
            }
            Ask::Unsubscribe { subscription } => {
                let ended = self.subscriptions.remove(&subscription);
                ended.inspect(|end| end.store(true, Ordering::Relaxed));
                return None;
            }
            Ask::Request { subject, payload, timeout } => {
                return self.request(number, move |bus| bus.request(&subject, payload, timeout));
            }
            Ask::Subscribe { subscription, pattern, capacity } => {
                let held = self.check_held("subscriptions", self.subscriptions.len());
                let begun = held.and_then(|()| self.bus.subscribe(&pattern, capacity as usize));
                begun.and_then(|begun| self.pass_on(subscription, begun))
            }
            Ask::OpenLog { name, limits } => {
                let held = self.check_held("logs", self.logs.len());
                held.and_then(|()| self.bus.log(&name, limits)).map(|log| {
                    self.logs.insert(name, log);
                    Answer::Done
                })
            }
            Ask::FindLog { name } => self.find_log(name),
            Ask::DeleteLog { name } => {
                self.logs.remove(&name);
                self.bus.delete_log(&name).map(|()| Answer::Done)
            }
            Ask::OpenTable { name, lease } => {
                let held = self.check_held("tables", self.tables.len());
                held.and_then(|()| self.bus.table(&name, lease)).map(|table| {
                    self.tables.insert(name, table);
                    Answer::Done
                })
            }
            Ask::Append { log, entry } => {
                opened(&self.logs, &log).and_then(|log| log.append(entry)).map(Answer::Appended)
            }
            Ask::Read { log, from, entries_max } => opened(&self.logs, &log)
                .and_then(|log| log.read(from, entries_max as usize))
                .map(|entries| Answer::Entries(that_fit(entries))),
            Ask::Get { table, key } => {
                opened(&self.tables, &table).and_then(|table| table.get(&key)).map(Answer::Value)
            }
            Ask::Put { table, key, value, expected } => opened(&self.tables, &table)
                .and_then(|table| table.put(&key, value, expected))
                .map(Answer::Written),
            Ask::Delete { table, key, expected } => opened(&self.tables, &table)
                .and_then(|table| table.delete(&key, expected))
                .map(|()| Answer::Done),
            Ask::Keys { table } => {
                opened(&self.tables, &table).and_then(|table| table.keys()).map(Answer::Keys)
            }
        })
    }

    fn check_held(&self, what: &str, held: usize) -> Result<(), BusError> {
        if held < HELD_MAX {
            return Ok(());
        }
        Err(BusError::Limit { what: format!("{what} of one client"), max: HELD_MAX })
    }

    /// Waits for the answer to a request on a thread of its own.
    fn request(
        &self,
        number: u64,
        ask: impl FnOnce(&dyn Bus) -> Result<bytes::Bytes, BusError> + Send + 'static,
    ) -> Option<Result<Answer, BusError>> {
        let full = || BusError::Full { what: format!("{REQUESTS_MAX} requests") };
        if self.requests.fetch_add(1, Ordering::Relaxed) >= REQUESTS_MAX {
            self.requests.fetch_sub(1, Ordering::Relaxed);
            return Some(Err(full()));
        }
        let (bus, writer) = (Arc::clone(&self.bus), self.writer.clone());
        let requests = Arc::clone(&self.requests);
        let work = move || {
            let answer = ask(&*bus).map(Answer::Payload);
            requests.fetch_sub(1, Ordering::Relaxed);
            writer.write(&Frame::Answer { number, answer });
        };
        let spawned = Builder::new().name("bus-request".to_owned()).spawn(work);
        if spawned.is_err() {
            self.requests.fetch_sub(1, Ordering::Relaxed);
            return Some(Err(full()));
        }
        None
    }

    /// Passes the messages of a subscription on, on a thread of its own.
    fn pass_on(&mut self, subscription: u64, begun: Subscription) -> Result<Answer, BusError> {
        let end = Arc::new(AtomicBool::new(false));
        let (writer, ended) = (self.writer.clone(), Arc::clone(&end));
        let work = move || {
            while !ended.load(Ordering::Relaxed) && !writer.has_ended() {
                match begun.next(LOOK_EVERY) {
                    Ok(Some(message)) => {
                        let dropped = begun.dropped();
                        writer.write(&Frame::Message { subscription, dropped, message });
                    }
                    Ok(None) => {}
                    Err(_) => return writer.end(),
                }
            }
        };
        let spawned = Builder::new().name("bus-subscription".to_owned()).spawn(work);
        spawned.map_err(|error| BusError::Refused { why: error.to_string() })?;
        self.subscriptions.insert(subscription, end);
        Ok(Answer::Done)
    }
}

fn opened<'a, T: ?Sized>(all: &'a HashMap<Name, Box<T>>, name: &Name) -> Result<&'a T, BusError> {
    let missing = || BusError::Refused { why: format!("'{name}' has not been opened") };
    all.get(name).map(|found| &**found).ok_or_else(missing)
}

/// The first entries, as many as one frame can carry.
fn that_fit(mut entries: Vec<LogEntry>) -> Vec<LogEntry> {
    let mut bytes = 0;
    let fit = entries.iter().take_while(|entry| {
        bytes += entry.payload.len() + 16;
        bytes <= ENTRIES_BYTES_MAX
    });
    let count = fit.count();
    entries.truncate(count);
    entries
}

/// The state is consistent between any two statements, so a panic elsewhere does no harm.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
