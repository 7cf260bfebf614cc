//! The engine of many machines: NATS with JetStream.
//!
//! The client is asynchronous; it lives on a thread of its own with a small runtime, and calls wait
//! for it. Publishing goes through one bounded queue, so that order holds and a call never waits
//! for the network. While the connection is away the client connects again; the queue fills
//! meanwhile, and then calls fail.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc as blocking;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::jetstream;
use async_nats::{Client, ConnectErrorKind, Event, Request};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::bus::check_size;
use crate::subscription::{Offered, SUBSCRIPTION_MESSAGES_MAX, queue};
use crate::{Bus, BusError, Log, LogLimits, Message, Name, Pattern, Subject, Subscription, Table};

mod log;
mod settings;
mod table;

pub use settings::{Credentials, NatsSettings};

use log::NatsLog;
use table::NatsTable;

/// Messages that wait to be published.
const OUTGOING_MESSAGES_MAX: usize = 1_024;
/// Time for a call that the server answers. A new leader takes 4 to 9 s.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// Time to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How often the connection is tried, so that a silent end of it is noticed.
const PING_EVERY: Duration = Duration::from_secs(5);

/// An engine made of NATS servers with JetStream. Dropping it sends what waits, for a second at
/// most, and closes the connection.
pub struct NatsBus {
    connection: Arc<NatsConnection>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What calls, logs and tables share.
#[derive(Debug)]
struct NatsConnection {
    runtime: Handle,
    client: Client,
    jetstream: jetstream::Context,
    outgoing: mpsc::Sender<(Subject, Bytes)>,
    /// How many servers keep each log and table.
    replicas: usize,
    /// Messages that the client has dropped because it could not pass them on.
    dropped: Arc<AtomicU64>,
}

impl NatsBus {
    /// Connects to the server, or one of the cluster, that `settings` name.
    ///
    /// # Errors
    /// It cannot be reached, or does not accept the credentials.
    pub fn connect(settings: &NatsSettings) -> Result<Self, BusError> {
        let address = settings.address();
        let dropped = Arc::new(AtomicU64::new(0));
        let options = settings.options(&dropped)?;
        let failed = |why: String| BusError::Connect { address: settings.address_text(), why };
        let (stop, stopped) = oneshot::channel();
        let (ready, connected) = blocking::sync_channel(1);
        let work = move || {
            let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match built {
                Ok(runtime) => runtime,
                Err(error) => {
                    // The caller waits for it.
                    let _ = ready.send(Err(error.to_string()));
                    return;
                }
            };
            runtime.block_on(async move {
                let client = match options.connect(address).await {
                    Ok(client) => client,
                    Err(error) => {
                        let _ = ready.send(Err(connect_words(&error)));
                        return;
                    }
                };
                let (outgoing, waiting) = mpsc::channel(OUTGOING_MESSAGES_MAX);
                let sender = tokio::spawn(send_all(client.clone(), waiting));
                let _ = ready.send(Ok((Handle::current(), client.clone(), outgoing)));
                let _ = stopped.await;
                // The last handle of the queue is gone: the sender ends behind its last message.
                let _ = tokio::time::timeout(Duration::from_secs(1), async {
                    let _ = sender.await;
                    let _ = client.flush().await;
                })
                .await;
            });
        };
        let spawned = Builder::new().name("bus-nats".to_owned()).spawn(work);
        let thread = spawned.map_err(|error| failed(error.to_string()))?;
        let ended = || failed("the client ended".to_owned());
        let (runtime, client, outgoing) = connected.recv().map_err(|_| ended())?.map_err(failed)?;
        // The context starts a task.
        let inside = runtime.enter();
        let jetstream = jetstream::context::ContextBuilder::new()
            .timeout(ANSWER_WITHIN)
            .ack_timeout(ANSWER_WITHIN)
            .build(client.clone());
        drop(inside);
        let replicas = settings.replicas();
        let connection = NatsConnection { runtime, client, jetstream, outgoing, replicas, dropped };
        Ok(Self { connection: Arc::new(connection), stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for NatsBus {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // Logs and tables keep the connection's parts, but the thread ends: their calls fail.
        let (closed, _) = mpsc::channel(1);
        if let Some(connection) = Arc::get_mut(&mut self.connection) {
            connection.outgoing = closed;
        }
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for NatsBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsBus").finish_non_exhaustive()
    }
}

/// Publishes in order.
async fn send_all(client: Client, mut waiting: mpsc::Receiver<(Subject, Bytes)>) {
    while let Some((subject, payload)) = waiting.recv().await {
        if client.publish(subject.to_string(), payload).await.is_err() {
            return;
        }
        if waiting.is_empty() {
            // Otherwise the client gathers messages for a moment.
            let _ = client.flush().await;
        }
    }
}

/// The cause of a failed connect, without the address, which may hold secrets.
fn connect_words(error: &async_nats::ConnectError) -> String {
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation => {
            "it does not accept the credentials; give others with --bus-credentials".to_owned()
        }
        _ => error.to_string(),
    }
}

impl NatsConnection {
    /// Runs a call of the client to its end, or for `within`.
    fn wait<T, F>(&self, within: Duration, call: F) -> Result<T, BusError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, BusError>> + Send + 'static,
    {
        let (sender, result) = blocking::sync_channel(1);
        let task = self.runtime.spawn(async move {
            // The caller may have given up.
            let _ = sender.send(call.await);
        });
        result.recv_timeout(within).unwrap_or_else(|error| {
            task.abort();
            Err(match error {
                blocking::RecvTimeoutError::Timeout => BusError::TimedOut {
                    from: "the bus".to_owned(),
                    waited_ms: within.as_millis() as u64,
                },
                blocking::RecvTimeoutError::Disconnected => ended(),
            })
        })
    }

    /// The same for a call of JetStream, which not every server has.
    fn wait_kept<T, F>(&self, call: F) -> Result<T, BusError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, BusError>> + Send + 'static,
    {
        self.wait(ANSWER_WITHIN, call).map_err(|error| match error {
            BusError::Refused { .. } | BusError::TimedOut { .. }
                if !self.client.server_info().jetstream =>
            {
                refused("the NATS server has no JetStream: start it with -js")
            }
            error => error,
        })
    }
}

fn ended() -> BusError {
    BusError::Closed { why: "this program has closed it".to_owned() }
}

/// An error of the server that has no kind of its own.
fn refused(error: impl fmt::Display) -> BusError {
    BusError::Refused { why: error.to_string() }
}

impl Bus for NatsBus {
    fn publish(&self, subject: &Subject, payload: Bytes) -> Result<(), BusError> {
        check_size(&payload)?;
        match self.connection.outgoing.try_send((subject.clone(), payload)) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err(BusError::Full { what: format!("{OUTGOING_MESSAGES_MAX} messages") })
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(ended()),
        }
    }

    fn subscribe(&self, pattern: &Pattern, capacity: usize) -> Result<Subscription, BusError> {
        let client = self.connection.client.clone();
        let (feed, subscription) = queue(capacity);
        let pattern = pattern.to_string();
        let subscribed = self.connection.wait(ANSWER_WITHIN, async move {
            let mut messages = client.subscribe(pattern).await.map_err(refused)?;
            // The server knows of it before the call returns.
            client.flush().await.map_err(refused)?;
            let pass_on = async move {
                while let Some(message) = messages.next().await {
                    let Some(message) = taken(message) else { continue };
                    if feed.offer(message) == Offered::Ended {
                        return;
                    }
                }
            };
            Ok(tokio::spawn(pass_on).abort_handle())
        })?;
        let subscription = subscription.with_engine_drops(&self.connection.dropped);
        Ok(subscription.on_end(move || subscribed.abort()))
    }

    fn request(
        &self,
        subject: &Subject,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, BusError> {
        check_size(&payload)?;
        let client = self.connection.client.clone();
        let (to, from) = (subject.to_string(), format!("'{subject}'"));
        let waited_ms = timeout.as_millis() as u64;
        let request = Request::new().payload(payload).timeout(Some(timeout));
        let call = async move {
            let answer = client.send_request(to.clone(), request).await;
            answer.map(|answer| answer.payload).map_err(|error| match error.kind() {
                RequestErrorKind::NoResponders => BusError::NoResponder { subject: to },
                RequestErrorKind::TimedOut => BusError::TimedOut { from, waited_ms },
                _ => refused(error),
            })
        };
        self.connection.wait(timeout + Duration::from_secs(1), call)
    }

    fn log(&self, name: &Name, limits: LogLimits) -> Result<Box<dyn Log>, BusError> {
        Ok(Box::new(NatsLog::open(&self.connection, name, limits)?))
    }

    fn find_log(&self, name: &Name) -> Result<Option<Box<dyn Log>>, BusError> {
        let found = NatsLog::find(&self.connection, name)?;
        Ok(found.map(|log| Box::new(log) as Box<dyn Log>))
    }

    fn delete_log(&self, name: &Name) -> Result<(), BusError> {
        NatsLog::delete(&self.connection, name)
    }

    fn table(&self, name: &Name, lease: Option<Duration>) -> Result<Box<dyn Table>, BusError> {
        Ok(Box::new(NatsTable::open(&self.connection, name, lease)?))
    }
}

/// A message in the contract's form; `None` where its subject is not the contract's.
fn taken(message: async_nats::Message) -> Option<Message> {
    let subject = Subject::parse(&message.subject).ok()?;
    let reply = match &message.reply {
        None => None,
        Some(reply) => Some(Subject::parse(reply).ok()?),
    };
    Some(Message { subject, reply, payload: message.payload })
}

/// Counts what the client drops.
async fn note_event(event: Event, dropped: Arc<AtomicU64>) {
    if matches!(event, Event::SlowConsumer(_)) {
        dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Options that are the same for all.
fn bounded(options: async_nats::ConnectOptions) -> async_nats::ConnectOptions {
    options
        .name("tacho")
        .connection_timeout(CONNECT_WITHIN)
        .ping_interval(PING_EVERY)
        .client_capacity(OUTGOING_MESSAGES_MAX)
        .subscription_capacity(SUBSCRIPTION_MESSAGES_MAX)
}
