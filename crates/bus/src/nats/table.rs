//! Tables as key-value buckets of JetStream.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::{
    Config, CreateErrorKind, Operation, Store, UpdateError, UpdateErrorKind,
};
use bytes::Bytes;
use futures_util::TryStreamExt;

use super::{NatsConnection, refused};
use crate::bus::check_size;
use crate::{BusError, Expected, Name, Revision, Table, Value};

pub(super) struct NatsTable {
    connection: Arc<NatsConnection>,
    store: Store,
}

impl NatsTable {
    pub(super) fn open(
        connection: &Arc<NatsConnection>,
        name: &Name,
        lease: Option<Duration>,
    ) -> Result<Self, BusError> {
        let bucket = format!("tacho-{name}");
        let jetstream = connection.jetstream.clone();
        let replicas = connection.replicas;
        let lease = lease.unwrap_or_default();
        let config = Config {
            bucket: bucket.clone(),
            history: 1,
            max_age: lease,
            num_replicas: replicas,
            ..Config::default()
        };
        let store = connection.wait_kept(async move {
            match jetstream.get_key_value(bucket.clone()).await {
                Ok(store) => Ok(store),
                // Two programs may create it at once; both want the same.
                Err(_) => jetstream.create_key_value(config).await.map_err(refused),
            }
        })?;
        if store.stream.cached_info().config.max_age != lease {
            let why = format!("the table '{name}' exists with another lease");
            return Err(BusError::Refused { why });
        }
        Ok(Self { connection: Arc::clone(connection), store })
    }
}

impl Table for NatsTable {
    fn get(&self, key: &Name) -> Result<Option<Value>, BusError> {
        let (store, key) = (self.store.clone(), key.to_string());
        self.connection.wait_kept(async move {
            let entry = store.entry(key).await.map_err(refused)?;
            let written = entry.filter(|entry| entry.operation == Operation::Put);
            Ok(written
                .map(|entry| Value { revision: Revision(entry.revision), payload: entry.value }))
        })
    }

    fn put(&self, key: &Name, value: Bytes, expected: Expected) -> Result<Revision, BusError> {
        check_size(&value)?;
        let (store, key) = (self.store.clone(), key.to_string());
        self.connection.wait_kept(async move {
            let revision = match expected {
                Expected::Any => store.put(&key, value).await.map_err(refused)?,
                Expected::Absent => {
                    store.create(&key, value).await.map_err(|error| match error.kind() {
                        CreateErrorKind::AlreadyExists => BusError::Conflict { key },
                        _ => refused(error),
                    })?
                }
                Expected::Revision(Revision(revision)) => {
                    let updated = store.update(&key, value, revision).await;
                    updated.map_err(|error| conflict_or(error, &key))?
                }
            };
            Ok(Revision(revision))
        })
    }

    fn delete(&self, key: &Name, expected: Expected) -> Result<(), BusError> {
        if expected == Expected::Absent {
            return match self.get(key)? {
                None => Ok(()),
                Some(_) => Err(BusError::Conflict { key: key.to_string() }),
            };
        }
        let (store, key) = (self.store.clone(), key.to_string());
        self.connection.wait_kept(async move {
            let revision = match expected {
                Expected::Revision(Revision(revision)) => Some(revision),
                _ => None,
            };
            let deleted = store.delete_expect_revision(&key, revision).await;
            deleted.map_err(|error| conflict_or(error, &key))
        })
    }

    fn keys(&self) -> Result<Vec<Name>, BusError> {
        let store = self.store.clone();
        let keys = self.connection.wait_kept(async move {
            let keys = store.keys().await.map_err(refused)?;
            keys.try_collect::<Vec<String>>().await.map_err(refused)
        })?;
        // Keys of other programs in the bucket are not ours.
        let mut names: Vec<Name> = keys.iter().filter_map(|key| Name::parse(key).ok()).collect();
        names.sort();
        Ok(names)
    }
}

fn conflict_or(error: UpdateError, key: &str) -> BusError {
    match error.kind() {
        UpdateErrorKind::WrongLastRevision => BusError::Conflict { key: key.to_owned() },
        _ => refused(error),
    }
}

impl fmt::Debug for NatsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsTable").field("name", &self.store.name).finish_non_exhaustive()
    }
}
