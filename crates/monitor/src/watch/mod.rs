//! Background sources: a thread each, merged into one stream of rows.

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
use crate::{HostDescription, HostRow, MonitorSpec, ProcRoot, SourceSpec};

use collectd::HostFeed;
use feed::{Feed, FeedState, feed};

/// All sources of a run.
///
/// The rows of every source go through a bounded queue; rows that are not taken in time are dropped
/// and counted. A failing source retries and counts its errors: monitoring never ends a run.
/// Dropping the watch stops its threads.
#[derive(Debug)]
pub struct Watch {
    sources: Vec<Source>,
    threads: Vec<JoinHandle<()>>,
    /// The source of each host name, to tell apart two sources with the same host.
    names: HashMap<String, usize>,
}

#[derive(Debug)]
struct Source {
    spec: MonitorSpec,
    rows: Receiver<HostRow>,
    state: std::sync::Arc<FeedState>,
    taken: u64,
    clock_error_ns_max: Option<u64>,
}

/// Statistics of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    /// The source, without tokens.
    pub source: String,
    /// The scenario target that it is bound to.
    pub target: Option<String>,
    /// Rows delivered.
    pub rows: u64,
    /// Rows dropped because they were not taken in time.
    pub dropped: u64,
    /// Failed requests and invalid data.
    pub errors: u64,
    /// The last error.
    pub last_error: Option<String>,
    /// The largest clock error bound of its rows.
    pub clock_error_ns_max: Option<u64>,
    /// What its host is; agents tell.
    pub description: Option<HostDescription>,
}

/// A source that cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot monitor {source_name}: {why}")]
pub struct WatchError {
    source_name: String,
    why: String,
}

impl Watch {
    /// Starts all sources. Remote sources must respond now.
    ///
    /// # Errors
    /// A source cannot be reached or refuses the connection, an address cannot be bound, or a
    /// thread cannot be started.
    pub fn start(specs: &[MonitorSpec]) -> Result<Self, WatchError> {
        let mut watch = Self { sources: Vec::new(), threads: Vec::new(), names: HashMap::new() };
        let mut collectd: BTreeMap<SocketAddr, Vec<HostFeed>> = BTreeMap::new();
        for spec in specs {
            let (feed, rows, state) = feed();
            watch.sources.push(Source {
                spec: spec.clone(),
                rows,
                state,
                taken: 0,
                clock_error_ns_max: None,
            });
            if let SourceSpec::Collectd { listen, host } = &spec.source {
                // Several hosts may send to one address.
                collectd.entry(*listen).or_default().push(HostFeed { host: host.clone(), feed });
                continue;
            }
            let thread = start(spec, feed)
                .map_err(|why| WatchError { source_name: spec.source.to_string(), why })?;
            watch.threads.push(thread);
        }
        for (address, feeds) in collectd {
            let thread = collectd::Listener::new(address)
                .and_then(|mut listener| spawn("monitor-collectd", move || listener.watch(&feeds)))
                .map_err(|why| WatchError { source_name: format!("collectd://{address}"), why })?;
            watch.threads.push(thread);
        }
        Ok(watch)
    }

    /// The rows received since the last call, ordered by time.
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

    /// Statistics of the sources so far.
    pub fn reports(&self) -> Vec<SourceReport> {
        self.sources
            .iter()
            .map(|source| {
                let (dropped, errors, last_error) = source.state.counts();
                SourceReport {
                    source: source.spec.source.to_string(),
                    target: source.spec.target.clone(),
                    rows: source.taken,
                    dropped,
                    errors,
                    last_error,
                    clock_error_ns_max: source.clock_error_ns_max,
                    description: source.state.description(),
                }
            })
            .collect()
    }

    /// Stops all sources and returns their statistics.
    pub fn stop(mut self) -> Vec<SourceReport> {
        self.end();
        self.reports()
    }

    fn end(&mut self) {
        for source in &self.sources {
            source.state.stop();
        }
        for thread in self.threads.drain(..) {
            // The panic of a source has already been printed; the run continues.
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts the thread of a source that has its own.
fn start(spec: &MonitorSpec, feed: Feed) -> Result<JoinHandle<()>, String> {
    let interval = spec.interval;
    match &spec.source {
        SourceSpec::Agent { address, token } => {
            let token = Token::from_source(token).map_err(|error| error.to_string())?;
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
        .map_err(|error| format!("cannot start a thread: {error}"))
}
