//! Logs as streams of JetStream.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::{DeleteStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Stream};
use bytes::Bytes;
use futures_util::StreamExt;

use super::{NatsConnection, refused};
use crate::bus::check_size;
use crate::{BusError, Log, LogEntry, LogLimits, Name};

/// After this time without a call the server forgets a reader that could not say goodbye.
const READER_IDLE: Duration = Duration::from_secs(10);

pub(super) struct NatsLog {
    connection: Arc<NatsConnection>,
    subject: String,
    stream: Stream,
}

impl NatsLog {
    pub(super) fn open(
        connection: &Arc<NatsConnection>,
        name: &Name,
        limits: LogLimits,
    ) -> Result<Self, BusError> {
        let subject = subject_of(name);
        let config = Config {
            name: stream_of(name),
            subjects: vec![subject.clone()],
            max_bytes: i64::try_from(limits.bytes_max).unwrap_or(i64::MAX),
            max_age: limits.age_max.unwrap_or_default(),
            discard: DiscardPolicy::Old,
            num_replicas: connection.replicas,
            ..Config::default()
        };
        let jetstream = connection.jetstream.clone();
        let stream = connection.wait_kept(async move {
            jetstream.get_or_create_stream(config).await.map_err(refused)
        })?;
        Ok(Self { connection: Arc::clone(connection), subject, stream })
    }

    pub(super) fn find(
        connection: &Arc<NatsConnection>,
        name: &Name,
    ) -> Result<Option<Self>, BusError> {
        let (jetstream, stream) = (connection.jetstream.clone(), stream_of(name));
        let found = connection.wait_kept(async move {
            match jetstream.get_stream(stream).await {
                Ok(stream) => Ok(Some(stream)),
                Err(error) => match error.kind() {
                    GetStreamErrorKind::JetStream(error) if is_missing(&error) => Ok(None),
                    _ => Err(refused(error)),
                },
            }
        })?;
        let (connection, subject) = (Arc::clone(connection), subject_of(name));
        Ok(found.map(|stream| Self { connection, subject, stream }))
    }

    pub(super) fn delete(connection: &NatsConnection, name: &Name) -> Result<(), BusError> {
        let (jetstream, stream) = (connection.jetstream.clone(), stream_of(name));
        connection.wait_kept(async move {
            match jetstream.delete_stream(stream).await {
                Ok(_) => Ok(()),
                Err(error) => match error.kind() {
                    DeleteStreamErrorKind::JetStream(error) if is_missing(&error) => Ok(()),
                    _ => Err(refused(error)),
                },
            }
        })
    }
}

fn subject_of(name: &Name) -> String {
    format!("tacho-log.{name}")
}

fn stream_of(name: &Name) -> String {
    format!("tacho-log-{name}")
}

/// Whether the server says that there is no such stream.
fn is_missing(error: &async_nats::jetstream::Error) -> bool {
    error.error_code() == ErrorCode::STREAM_NOT_FOUND
}

impl Log for NatsLog {
    fn append(&self, entry: Bytes) -> Result<u64, BusError> {
        check_size(&entry)?;
        let (jetstream, subject) = (self.connection.jetstream.clone(), self.subject.clone());
        self.connection.wait_kept(async move {
            let accepted = jetstream.publish(subject, entry).await.map_err(refused)?;
            Ok(accepted.await.map_err(refused)?.sequence)
        })
    }

    fn read(&self, from: u64, entries_max: usize) -> Result<Vec<LogEntry>, BusError> {
        let stream = self.stream.clone();
        self.connection.wait_kept(async move {
            let config = pull::Config {
                deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from.max(1) },
                ack_policy: AckPolicy::None,
                inactive_threshold: READER_IDLE,
                memory_storage: true,
                ..pull::Config::default()
            };
            let reader = stream.create_consumer(config).await.map_err(refused)?;
            let fetch = reader.fetch().max_messages(entries_max);
            let mut messages = fetch.messages().await.map_err(refused)?;
            let mut entries = Vec::new();
            while let Some(message) = messages.next().await {
                let message = message.map_err(refused)?;
                let seq = message.info().map_err(refused)?.stream_sequence;
                entries.push(LogEntry { seq, payload: message.message.payload });
            }
            // The server forgets it anyway.
            let _ = stream.delete_consumer(&reader.cached_info().name).await;
            Ok(entries)
        })
    }
}

impl fmt::Debug for NatsLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsLog").field("subject", &self.subject).finish_non_exhaustive()
    }
}
