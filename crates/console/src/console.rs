//! The console: pages and API of a folder of runs.

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tokio::sync::oneshot;

use crate::access::Access;
use crate::address::Listen;
use crate::api::{self, Api, ApiError};
use crate::broker_door::BrokerDoor;
use crate::error::ConsoleError;
use crate::page_key::PageKey;
use crate::server::Server;
use crate::told::tell_errors;
use crate::toolbox::Toolbox;
use crate::{gate, shell, uploads};

/// The file by which a console has a folder for itself.
const LOCK: &str = ".console-lock";
/// Bytes of a request: an upload and its head.
const REQUEST_BYTES_MAX: usize = uploads::BYTES_MAX + (64 << 10);

/// What a console is about.
pub struct ConsoleSettings<'a> {
    /// The folder with the runs.
    pub folder: &'a Path,
    /// Where to listen.
    pub listen: Listen,
    /// A file of further tokens, a role and a token per line.
    pub token_file: Option<&'a Path>,
    /// The program that makes runs.
    pub toolbox: Arc<dyn Toolbox>,
    /// A broker to look into and to operate, too.
    pub broker: Option<BrokerDoor>,
}

/// The console's server; dropping it ends it. Runs go on.
#[derive(Debug)]
pub struct Console {
    server: Server,
    count: usize,
    token: String,
    /// Gone once it is to end.
    end: Option<oneshot::Sender<()>>,
    /// Keeps a second console off the folder, where it can be written to.
    _lock: Option<File>,
}

impl Console {
    /// Serves a folder, and goes on with the queue that an earlier console has left there.
    ///
    /// # Errors
    /// When the folder or the file of tokens cannot be read, the folder is a run directory itself,
    /// or the address cannot be taken.
    pub fn start(settings: &ConsoleSettings<'_>) -> Result<Self, ConsoleError> {
        let ConsoleSettings { folder, listen, token_file, toolbox, broker } = settings;
        if folder.join("summary.json").is_file() {
            return Err(ConsoleError::IsRun(folder.to_path_buf()));
        }
        std::fs::read_dir(folder)
            .map_err(|error| ConsoleError::Folder { folder: folder.to_path_buf(), error })?;
        let lock = only_one(folder)?;
        let listener = listen.bind()?;
        let access = Access::open(folder, *token_file)?;
        let token = access.own().to_owned();
        let tools = (Arc::clone(toolbox), broker.clone());
        let api = Api::open(folder, tools, PageKey::new(&token))?;
        let count = api.count();
        let router = router(api, access);
        let (end, ended) = oneshot::channel::<()>();
        let server = Server::start_for_uploads(listener, router, REQUEST_BYTES_MAX, async {
            let _ = ended.await;
        })?;
        Ok(Self { server, count, token, end: Some(end), _lock: lock })
    }

    /// Runs that there were at the start.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL to open in a browser once, with the token.
    pub fn url(&self) -> String {
        format!("{}?token={}", self.server.url(), self.token)
    }
}

/// A lock on the folder: two consoles would start what waits there twice.
fn only_one(folder: &Path) -> Result<Option<File>, ConsoleError> {
    let opened = File::options().create(true).append(true).open(folder.join(LOCK));
    // Nothing waits in a folder that cannot be written to.
    let Ok(file) = opened else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(ConsoleError::Served(folder.to_owned())),
        _ => Ok(Some(file)),
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.end = None;
        self.server.join();
    }
}

fn router(api: Api, access: Access) -> Router {
    api::router()
        .merge(shell::router())
        .with_state(api)
        .fallback(nothing)
        .layer(from_fn_with_state(Arc::new(access), gate::check))
        .layer(from_fn(tell_errors))
}

async fn nothing(uri: Uri) -> Response {
    if !uri.path().starts_with(api::BASE) {
        return (StatusCode::NOT_FOUND, "Page not found.\n").into_response();
    }
    let message = "there is no such operation: /api/v1/openapi.json lists all";
    ApiError::new(StatusCode::NOT_FOUND, message).into_response()
}
