//! Watching hosts in the background: a thread per source, one stream of rows.

mod agent;
mod collectd;
mod feed;
mod local;
mod prometheus;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use crate::agent::Token;
use crate::{HostRow, MonitorSpec, ProcRoot, SourceSpec};

use collectd::Wish;
pub(crate) use feed::{Feed, next_beat};
use feed::{Shared, feed};

/// All sources of a run.
///
/// Rows of every source go through a bounded channel; what nobody takes in time is dropped and
/// counted. A source that fails goes on trying and counts its errors: watching never ends a run.
/// Dropping the watch stops its threads.
#[derive(Debug)]
pub struct Watch {
    sources: Vec<Source>,
    threads: Vec<JoinHandle<()>>,
    /// Which source each host name belongs to, so that two sources with the same host differ.
    names: HashMap<String, usize>,
}

#[derive(Debug)]
struct Source {
    spec: MonitorSpec,
    rows: Receiver<HostRow>,
    shared: std::sync::Arc<Shared>,
    taken: u64,
    clock_error_ns_max: Option<u64>,
}

/// How a source behaved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    /// The source, without tokens.
    pub source: String,
    /// The target that it is bound to.
    pub target: Option<String>,
    /// Rows that were delivered.
    pub rows: u64,
    /// Rows that were dropped because nobody took them in time.
    pub dropped: u64,
    /// Times that it could not be asked or sent what could not be used.
    pub errors: u64,
    /// The last of these.
    pub last_error: Option<String>,
    /// The largest error bound of a row's time.
    pub clock_error_ns_max: Option<u64>,
}

/// A source that cannot be watched at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch {source_name}: {why}")]
pub struct WatchError {
    source_name: String,
    why: String,
}

impl Watch {
    /// Starts watching. Sources that need a partner must answer now.
    ///
    /// # Errors
    /// When a source cannot be reached or refuses us, an address cannot be bound, or a thread
    /// cannot be started.
    pub fn start(specs: &[MonitorSpec]) -> Result<Self, WatchError> {
        let mut watch = Self { sources: Vec::new(), threads: Vec::new(), names: HashMap::new() };
        let mut collectd: BTreeMap<SocketAddr, Vec<Wish>> = BTreeMap::new();
        for spec in specs {
            let (feed, rows, shared) = feed();
            watch.sources.push(Source {
                spec: spec.clone(),
                rows,
                shared,
                taken: 0,
                clock_error_ns_max: None,
            });
            if let SourceSpec::Collectd { listen, host } = &spec.source {
                // Several hosts may send to one address.
                collectd.entry(*listen).or_default().push(Wish { host: host.clone(), feed });
                continue;
            }
            let thread = start(spec, feed)
                .map_err(|why| WatchError { source_name: spec.source.to_string(), why })?;
            watch.threads.push(thread);
        }
        for (address, wishes) in collectd {
            let thread = collectd::Listener::new(address)
                .and_then(|mut listener| spawn("monitor-collectd", move || listener.watch(&wishes)))
                .map_err(|why| WatchError { source_name: format!("collectd://{address}"), why })?;
            watch.threads.push(thread);
        }
        Ok(watch)
    }

    /// The rows that have come since the last call, in the order of time.
    pub fn rows(&mut self) -> Vec<HostRow> {
        let mut all = Vec::new();
        for (index, source) in self.sources.iter_mut().enumerate() {
            for mut row in source.rows.try_iter() {
                source.taken += 1;
                source.clock_error_ns_max = source.clock_error_ns_max.max(row.clock_error_ns);
                row.source = source.spec.source.to_string();
                if let Some(target) = &source.spec.target {
                    row.target = Some(target.clone());
                }
                if *self.names.entry(row.host.clone()).or_insert(index) != index {
                    row.host = format!("{} ({})", row.host, row.source);
                }
                all.push(row);
            }
        }
        all.sort_by_key(|row| row.at_ns);
        all
    }

    /// How the sources have behaved so far.
    pub fn reports(&self) -> Vec<SourceReport> {
        self.sources
            .iter()
            .map(|source| {
                let (dropped, errors, last_error) = source.shared.counts();
                SourceReport {
                    source: source.spec.source.to_string(),
                    target: source.spec.target.clone(),
                    rows: source.taken,
                    dropped,
                    errors,
                    last_error,
                    clock_error_ns_max: source.clock_error_ns_max,
                }
            })
            .collect()
    }

    /// Stops, and says how the sources behaved.
    pub fn stop(mut self) -> Vec<SourceReport> {
        self.end();
        self.reports()
    }

    fn end(&mut self) {
        for source in &self.sources {
            source.shared.stop();
        }
        for thread in self.threads.drain(..) {
            // A source that panicked has nothing more to say; the run goes on.
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts the thread of one source that is not shared.
fn start(spec: &MonitorSpec, feed: Feed) -> Result<JoinHandle<()>, String> {
    let interval = spec.interval;
    match &spec.source {
        SourceSpec::Agent { address, token } => {
            let token = Token::of(token).map_err(|error| error.to_string())?;
            let mut stream = agent::Stream::new(address, token, spec)?;
            spawn("monitor-agent", move || stream.watch(&feed))
        }
        SourceSpec::Prometheus { url } => {
            let mut scraper = prometheus::Scraper::new(url)?;
            spawn("monitor-scraper", move || scraper.watch(&feed, interval))
        }
        SourceSpec::Local | SourceSpec::Collectd { .. } => {
            let mut local = local::Local::new(ProcRoot::default(), spec.processes.clone())?;
            spawn("monitor-local", move || local.watch(&feed, interval))
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| format!("no thread for it: {error}"))
}
