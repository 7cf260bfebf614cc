//! Keys of tokens that come from a URL: fetched by a thread of their own, again and again. While
//! that fails, the keys of the last time stay in use.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use tacho_net::clock;
use tacho_output::tls_config;

use super::AccessControl;
use crate::config::{ConfigError, JwtSettings, KeyUrl};

/// A set of 32 keys has some 20 KB.
const BODY_BYTES_MAX: u64 = 256 * 1024;
/// Of one request, from the name of the host to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Between two requests: a token that names an unknown key has the next one made early, and anyone
/// can make up such tokens.
const BETWEEN: Duration = Duration::from_secs(5);
/// After the first failure; it doubles with each further one, up to the usual time.
const RETRY: Duration = Duration::from_secs(1);

/// Asks for the keys earlier than usual, from any thread.
pub(crate) type KeysWanted = SyncSender<()>;

/// What fetches keys, before its thread is started.
pub(crate) struct KeyFetcher {
    url: KeyUrl,
    refresh: Duration,
    agent: ureq::Agent,
    wanted: (KeysWanted, Receiver<()>),
}

/// The thread that fetches keys; asked to end when dropped.
pub(crate) struct KeyThread {
    stop: Arc<AtomicBool>,
    wake: KeysWanted,
}

impl KeyFetcher {
    /// Where the keys of tokens come from a URL; nothing is asked yet.
    pub(crate) fn new(jwt: Option<&JwtSettings>) -> Result<Option<Self>, ConfigError> {
        let Some((url, jwt)) = jwt.and_then(|jwt| Some((jwt.key_url.clone()?, jwt))) else {
            return Ok(None);
        };
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // Keys are believed: only of the address that is configured.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(TIMEOUT));
        if url.secret().starts_with("https://") {
            let ca_file: Option<&Path> = jwt.key_ca_file.as_deref();
            config = config.tls_config(tls_config(ca_file, None).map_err(|why| {
                let path = ca_file.map(|path| path.display().to_string()).unwrap_or_default();
                ConfigError::KeyAuthority { path, why }
            })?);
        }
        let refresh = Duration::from_secs(jwt.key_refresh_s.into());
        Ok(Some(Self { url, refresh, agent: config.build().into(), wanted: sync_channel(1) }))
    }

    /// To ask for the keys early.
    pub(crate) fn wanted(&self) -> KeysWanted {
        self.wanted.0.clone()
    }

    /// Starts the thread, which gives the keys to `access`.
    pub(crate) fn start(self, access: AccessControl) -> io::Result<KeyThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = KeyThread { stop: Arc::clone(&stop), wake: self.wanted() };
        std::thread::Builder::new()
            .name("token-keys".to_owned())
            .spawn(move || self.run(&access, &stop))?;
        Ok(thread)
    }

    fn run(self, access: &AccessControl, stop: &AtomicBool) {
        let mut failed = 0_u32;
        loop {
            let begun_ns = clock::now_ns();
            let next = match self.fetch(access) {
                Ok(()) => {
                    failed = 0;
                    self.refresh
                }
                Err(why) => {
                    access.key_fetches().failed();
                    failed = failed.saturating_add(1);
                    if failed == 1 {
                        tracing::error!(
                            "cannot fetch the keys of tokens from {}, those of the last time stay \
                             in use: {why}",
                            self.url
                        );
                    }
                    RETRY.saturating_mul(1 << failed.saturating_sub(1).min(16)).min(self.refresh)
                }
            };
            if !self.wait(begun_ns, next, stop) {
                return;
            }
        }
    }

    /// Waits for the next request, which may be wanted early; false if there is to be none.
    fn wait(&self, begun_ns: u64, next: Duration, stop: &AtomicBool) -> bool {
        let since = || Duration::from_nanos(clock::now_ns().saturating_sub(begun_ns));
        let mut due = next;
        loop {
            match self.wanted.1.recv_timeout(due.saturating_sub(since())) {
                Ok(()) if stop.load(Ordering::Relaxed) => return false,
                Ok(()) if since() >= BETWEEN => return true,
                Ok(()) => due = due.min(BETWEEN),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    fn fetch(&self, access: &AccessControl) -> Result<(), String> {
        let fetches = access.key_fetches();
        fetches.begun();
        let answer = self.agent.get(self.url.secret()).call();
        let mut answer = answer.map_err(|error| self.without_secret(&error))?;
        if answer.status().as_u16() != 200 {
            return Err(format!("the answer is {}", answer.status()));
        }
        let body = answer.body_mut().with_config().limit(BODY_BYTES_MAX).read_to_string();
        let body = body.map_err(|error| self.without_secret(&error))?;
        let shown = self.url.to_string();
        let is_new = access.keys_fetched(&shown, &body).map_err(|error| error.to_string())?;
        let is_first = fetches.succeeded(clock::now_ns());
        if is_new || is_first {
            tracing::info!("keys of tokens fetched from {}", self.url);
        }
        Ok(())
    }

    /// An error may repeat the URL.
    fn without_secret(&self, error: &ureq::Error) -> String {
        error.to_string().replace(self.url.secret(), &self.url.to_string())
    }
}

impl Drop for KeyThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // One that waits already wakes it as well. A request that is under way ends by itself.
        let _ = self.wake.try_send(());
    }
}
