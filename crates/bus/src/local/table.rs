//! Tables in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{limit, lock};
use crate::bus::check_size;
use crate::{BusError, Expected, Name, Revision, Table, Value};

const KEYS_MAX: usize = 65_536;

#[derive(Clone, Debug)]
pub(super) struct LocalTable {
    lease: Option<Duration>,
    rows: Arc<Mutex<Rows>>,
}

#[derive(Debug, Default)]
struct Rows {
    /// Revision of the last write.
    last: u64,
    rows: BTreeMap<Name, Row>,
}

#[derive(Debug)]
struct Row {
    value: Value,
    /// When its lease ends.
    end: Option<Instant>,
}

impl Rows {
    /// Forgets rows whose lease has ended.
    fn expire(&mut self, now: Instant) {
        self.rows.retain(|_, row| row.end.is_none_or(|end| now < end));
    }

    fn check(&self, key: &Name, expected: Expected) -> Result<(), BusError> {
        let found = self.rows.get(key).map(|row| row.value.revision);
        let is_met = match expected {
            Expected::Any => true,
            Expected::Absent => found.is_none(),
            Expected::Revision(revision) => found == Some(revision),
        };
        if is_met { Ok(()) } else { Err(BusError::Conflict { key: key.to_string() }) }
    }
}

impl LocalTable {
    pub(super) fn new(lease: Option<Duration>) -> Self {
        Self { lease, rows: Arc::default() }
    }

    pub(super) fn check_lease(
        &self,
        name: &Name,
        wanted: Option<Duration>,
    ) -> Result<(), BusError> {
        if self.lease == wanted {
            return Ok(());
        }
        let why = format!("the table '{name}' exists with another lease");
        Err(BusError::Refused { why })
    }
}

impl Table for LocalTable {
    fn get(&self, key: &Name) -> Result<Option<Value>, BusError> {
        let mut rows = lock(&self.rows);
        rows.expire(Instant::now());
        Ok(rows.rows.get(key).map(|row| row.value.clone()))
    }

    fn put(&self, key: &Name, value: Bytes, expected: Expected) -> Result<Revision, BusError> {
        check_size(&value)?;
        let mut rows = lock(&self.rows);
        let now = Instant::now();
        rows.expire(now);
        rows.check(key, expected)?;
        if !rows.rows.contains_key(key) && rows.rows.len() >= KEYS_MAX {
            return Err(limit("keys in this table", KEYS_MAX));
        }
        rows.last += 1;
        let revision = Revision(rows.last);
        let row = Row {
            value: Value { revision, payload: value },
            end: self.lease.map(|lease| now + lease),
        };
        rows.rows.insert(key.clone(), row);
        Ok(revision)
    }

    fn delete(&self, key: &Name, expected: Expected) -> Result<(), BusError> {
        let mut rows = lock(&self.rows);
        rows.expire(Instant::now());
        rows.check(key, expected)?;
        rows.rows.remove(key);
        Ok(())
    }

    fn keys(&self) -> Result<Vec<Name>, BusError> {
        let mut rows = lock(&self.rows);
        rows.expire(Instant::now());
        Ok(rows.rows.keys().cloned().collect())
    }
}
