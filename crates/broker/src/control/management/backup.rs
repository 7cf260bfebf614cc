//! Backups of the journal, made while it is written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use tacho_http::{ApiError, body, json};
use tacho_journal::{Backup, BackupError};
use tacho_net::clock;

use super::Api;
use super::gate::Caller;
use crate::access::AuditEvent;

/// Where a backup is to be made.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BackupRequest {
    directory: PathBuf,
}

/// How far a backup is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum BackupPhase {
    /// None was made by this process.
    #[default]
    None,
    Running,
    Done,
    Failed,
}

/// The last backup.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct BackupStatus {
    phase: BackupPhase,
    directory: Option<String>,
    /// Why there is none.
    problem: Option<String>,
    /// Every commit up to this one is in it.
    commit: Option<u64>,
    segments: Option<u64>,
    linked_bytes: Option<u64>,
    copied_bytes: Option<u64>,
    took_ms: Option<u64>,
}

/// The last backup, shared with what makes it.
#[derive(Clone, Default)]
pub(super) struct LastBackup(Arc<Mutex<BackupStatus>>);

impl LastBackup {
    fn get(&self) -> BackupStatus {
        self.lock().clone()
    }

    /// One begins; false if another one is under way.
    fn begin(&self, directory: &Path) -> bool {
        let mut status = self.lock();
        if status.phase == BackupPhase::Running {
            return false;
        }
        let (phase, directory) = (BackupPhase::Running, Some(directory.display().to_string()));
        *status = BackupStatus { phase, directory, ..BackupStatus::default() };
        true
    }

    fn end(&self, result: &Result<Backup, BackupError>, took_ms: u64) {
        let mut status = self.lock();
        let directory = status.directory.take();
        let took_ms = Some(took_ms);
        *status = match result {
            Ok(backup) => BackupStatus {
                phase: BackupPhase::Done,
                directory,
                problem: None,
                commit: Some(backup.commit.get()),
                segments: Some(backup.segments),
                linked_bytes: Some(backup.linked_bytes),
                copied_bytes: Some(backup.copied_bytes),
                took_ms,
            },
            Err(error) => BackupStatus {
                phase: BackupPhase::Failed,
                directory,
                problem: Some(error.to_string()),
                took_ms,
                ..BackupStatus::default()
            },
        };
    }

    fn lock(&self) -> MutexGuard<'_, BackupStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) async fn status(State(api): State<Api>) -> Json<BackupStatus> {
    Json(api.0.backup.get())
}

/// Begins a backup; it goes on in a thread of its own.
pub(super) async fn begin(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Json<BackupStatus>, ApiError> {
    let BackupRequest { directory } = json(&body(bytes)?)?;
    if !directory.is_absolute() {
        let message = "write the path of a directory on the broker's host, beginning with /";
        return Err(ApiError::about("directory", message));
    }
    let Some(journal) = api.view().journal.clone() else {
        let message = "this broker has no journal: it has no `data_dir`";
        return Err(ApiError::not_found(message));
    };
    let last = api.0.backup.clone();
    if !last.begin(&directory) {
        return Err(ApiError::conflict(BackupError::Busy.to_string()));
    }
    let why = Some(directory.display().to_string());
    api.note(&caller, "backup", AuditEvent { why, ..AuditEvent::default() });
    // It reads and writes files, and outlives a request that is given up.
    tokio::task::spawn_blocking(move || {
        let begun_ns = clock::now_ns();
        let result = journal.back_up(&directory);
        let took_ms = clock::now_ns().saturating_sub(begun_ns) / 1_000_000;
        let shown = directory.display();
        match &result {
            Ok(backup) => tracing::info!(
                "backup in {shown}: {} segments up to commit {}, {} bytes linked, {} copied, \
                 {took_ms} ms",
                backup.segments,
                backup.commit.get(),
                backup.linked_bytes,
                backup.copied_bytes
            ),
            Err(error) => tracing::error!("no backup in {shown}: {error}"),
        }
        last.end(&result, took_ms);
    });
    Ok(Json(api.0.backup.get()))
}
