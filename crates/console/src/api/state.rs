//! What all requests share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::broadcast;

use super::answers::{ApiError, no_run};
use crate::broker_door::BrokerDoor;
use crate::error::ConsoleError;
use crate::files::is_plain;
use crate::page_key::PageKey;
use crate::queue::RunQueue;
use crate::run_state::RunState;
use crate::runs::{RunChange, RunIndex, RunRow};
use crate::told::in_chinese;
use crate::toolbox::Toolbox;
use crate::uploads::Uploads;
use crate::watchers::Watchers;

/// Events that a page of lists may be behind; it then reads the list again.
const BEHIND_MAX: usize = 256;
/// Pages that follow events at a time; one more displaces the oldest.
const WATCHERS_MAX: usize = 32;
/// Time between two looks at the folder while a page follows its changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How old what is known of the folder may be.
const FRESH_FOR: Duration = Duration::from_millis(500);

/// The state of the API.
#[derive(Clone)]
pub(crate) struct Api {
    shared: Arc<ApiShared>,
}

struct ApiShared {
    folder: PathBuf,
    index: Mutex<Fresh>,
    queue: OnceLock<RunQueue>,
    toolbox: Arc<dyn Toolbox>,
    broker: Option<BrokerDoor>,
    uploads: Uploads,
    news: broadcast::Sender<Arc<str>>,
    watchers: Watchers,
    key: PageKey,
    /// Held while runs move to and from the trash, so that none comes back while it is removed.
    trash: Mutex<()>,
}

struct Fresh {
    index: RunIndex,
    read_at: Instant,
}

/// What lists are told.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ListNews<'a> {
    Run {
        row: &'a RunRow,
    },
    Removed {
        id: &'a str,
    },
    Queue {
        running: Option<Box<RunRow>>,
        queued: Vec<RunRow>,
        held_by: Option<String>,
        held_by_zh: Option<String>,
    },
}

impl Api {
    /// Of a folder; goes on with the runs that an earlier console has left.
    /// `key` makes the tokens of their pages.
    pub(crate) fn open(
        folder: &Path,
        (toolbox, broker): (Arc<dyn Toolbox>, Option<BrokerDoor>),
        key: PageKey,
    ) -> Result<Self, ConsoleError> {
        let index = RunIndex::open(folder)?;
        let unfinished: Vec<String> =
            index.rows().filter(|row| row.is_unfinished()).map(|row| row.id.clone()).collect();
        let (news, _) = broadcast::channel(BEHIND_MAX);
        let api = Self {
            shared: Arc::new(ApiShared {
                folder: folder.to_owned(),
                index: Mutex::new(Fresh { index, read_at: Instant::now() }),
                queue: OnceLock::new(),
                toolbox: Arc::clone(&toolbox),
                broker,
                uploads: Uploads::new(folder),
                news,
                watchers: Watchers::new(WATCHERS_MAX),
                key: key.clone(),
                trash: Mutex::default(),
            }),
        };
        // The queue's thread must not keep alive what it is part of.
        let weak = Arc::downgrade(&api.shared);
        let told = Mutex::new(None);
        let look = move || {
            if let Some(shared) = weak.upgrade() {
                Self { shared }.look(&told);
            }
        };
        let queue = RunQueue::start(folder, (toolbox, key), &unfinished, look);
        let queue = queue.map_err(ConsoleError::Serve)?;
        let _ = api.shared.queue.set(queue);
        Ok(api)
    }

    /// The folder of runs.
    pub(crate) fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// The program.
    pub(crate) fn toolbox(&self) -> &dyn Toolbox {
        &*self.shared.toolbox
    }

    /// The broker that is given.
    pub(crate) fn broker(&self) -> Option<&BrokerDoor> {
        self.shared.broker.as_ref()
    }

    /// Uploaded files.
    pub(crate) fn uploads(&self) -> &Uploads {
        &self.shared.uploads
    }

    /// Runs that wait.
    pub(crate) fn queue(&self) -> Result<&RunQueue, ApiError> {
        self.shared.queue.get().ok_or_else(|| ApiError::internal("the console is just starting"))
    }

    /// Pages that follow events.
    pub(crate) fn watchers(&self) -> &Watchers {
        &self.shared.watchers
    }

    /// The right to move runs to and from the trash.
    pub(crate) fn trash(&self) -> MutexGuard<'_, ()> {
        self.shared.trash.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token of the page of a run.
    pub(crate) fn page_token(&self, id: &str) -> String {
        self.shared.key.token(id)
    }

    /// Further news for lists.
    pub(crate) fn news(&self) -> broadcast::Receiver<Arc<str>> {
        self.shared.news.subscribe()
    }

    /// How many runs there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().index.rows().count()
    }

    /// The directory of a run that is there.
    pub(crate) fn directory(&self, id: &str) -> Result<PathBuf, ApiError> {
        let directory = self.shared.folder.join(id);
        let is_own =
            is_plain(id) && std::fs::symlink_metadata(&directory).is_ok_and(|at| at.is_dir());
        if is_own { Ok(directory) } else { Err(no_run(id)) }
    }

    /// Calls `read` with the rows, which are not older than a moment and have no places in the
    /// queue yet.
    pub(crate) fn with_rows<T>(
        &self,
        read: impl FnOnce(&mut dyn Iterator<Item = &RunRow>) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let mut fresh = self.lock();
        if fresh.read_at.elapsed() > FRESH_FOR {
            self.refresh(&mut fresh)?;
        }
        read(&mut fresh.index.rows())
    }

    /// The row of a run as it is now, from its directory alone.
    pub(crate) fn row(&self, id: &str) -> Result<RunRow, ApiError> {
        self.placed(RunRow::read(&self.directory(id)?, id))
    }

    /// The same after a change, which lists are told.
    pub(crate) fn changed_row(&self, id: &str) -> Result<RunRow, ApiError> {
        self.refreshed()?;
        self.row(id)
    }

    /// The same row with its place in the queue.
    pub(crate) fn placed(&self, mut row: RunRow) -> Result<RunRow, ApiError> {
        if row.state == RunState::Queued {
            let waiting = self.queue()?.waiting();
            row.position = waiting.iter().position(|id| *id == row.id).map(|place| place + 1);
        }
        Ok(row)
    }

    /// Reads what has changed, and tells lists about it.
    pub(crate) fn refreshed(&self) -> Result<(), ApiError> {
        Ok(self.refresh(&mut self.lock())?)
    }

    fn refresh(&self, fresh: &mut Fresh) -> Result<(), ConsoleError> {
        let changes = fresh.index.refresh()?;
        fresh.read_at = Instant::now();
        for RunChange { id, row } in &changes {
            self.tell(&match row {
                Some(row) => ListNews::Run { row },
                None => ListNews::Removed { id },
            });
        }
        Ok(())
    }

    /// Looks for changes while a page follows them, and when another run has its turn.
    fn look(&self, told: &Mutex<Option<(Option<String>, Vec<String>)>>) {
        let Ok(queue) = self.queue() else { return };
        let now = (queue.current(), queue.waiting());
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = told.as_ref() != Some(&now);
        let mut fresh = self.lock();
        // Seldom: on this machine something is measured.
        let is_due = fresh.read_at.elapsed() > LOOK_EVERY && self.shared.news.receiver_count() > 0;
        if is_news || is_due {
            // A folder that cannot be read now is an error of the next request.
            let _ = self.refresh(&mut fresh);
        }
        drop(fresh);
        if is_news {
            let row = |id: &String| self.row(id).ok();
            let held_by = queue.held_by().map(|holder| holder.to_string());
            self.tell(&ListNews::Queue {
                running: now.0.as_ref().and_then(row).map(Box::new),
                queued: now.1.iter().filter_map(row).collect(),
                held_by_zh: held_by.as_deref().and_then(in_chinese),
                held_by,
            });
            *told = Some(now);
        }
    }

    fn tell(&self, news: &ListNews<'_>) {
        if let Ok(json) = serde_json::to_string(news) {
            // Fails only while no page listens.
            let _ = self.shared.news.send(json.into());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Fresh> {
        self.shared.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does what may take time where others need not wait for it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ApiError::internal(error.to_string())),
    }
}
