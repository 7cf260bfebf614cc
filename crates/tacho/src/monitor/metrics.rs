//! The figures of hosts as `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use tacho_console::MetricsPage;
use tacho_lab::points::HostClock;
use tacho_monitor::{HostRow, now_ns};
use tacho_output::exposition;

use crate::exit::{self, Failure};

/// Hosts at most: the port of collectd takes values of every sender.
const HOSTS_MAX: usize = 1_000;

/// Intervals after which a host that is silent is shown no more.
const SILENT_INTERVALS: u32 = 5;

/// The last row of each host, offered for scraping.
pub(super) struct HostMetrics {
    page: MetricsPage,
    clock: HostClock,
    silent_ns: u64,
    rows: BTreeMap<String, HostRow>,
    /// Something has changed since the text was written.
    is_stale: bool,
}

impl HostMetrics {
    /// Serves at `address`; rows come every `interval`.
    pub(super) fn start(address: SocketAddr, interval: Duration) -> Result<Self, Failure> {
        let page = MetricsPage::start(address)
            .map_err(|error| Failure::new(exit::INVALID_CONFIG, error.to_string()))?;
        eprintln!("metrics at http://{}/metrics", page.address());
        let silent = (interval * SILENT_INTERVALS).max(Duration::from_secs(5));
        Ok(Self {
            page,
            clock: HostClock::now(),
            silent_ns: u64::try_from(silent.as_nanos()).unwrap_or(u64::MAX),
            rows: BTreeMap::new(),
            is_stale: true,
        })
    }

    /// Takes a row.
    pub(super) fn take(&mut self, row: &HostRow) {
        if self.rows.len() < HOSTS_MAX || self.rows.contains_key(&row.host) {
            self.rows.insert(row.host.clone(), row.clone());
            self.is_stale = true;
        }
    }

    /// Writes the text anew, where rows have come or hosts have fallen silent.
    pub(super) fn update(&mut self) {
        let (now_ns, before) = (now_ns(), self.rows.len());
        let silent_ns = self.silent_ns;
        self.rows.retain(|_, row| {
            // A host may have an interval of its own: collectd sends every 10 s, and a row is
            // complete when the next one begins.
            let own_ns = row.length_ns.saturating_mul(u64::from(SILENT_INTERVALS));
            now_ns.saturating_sub(row.at_ns) < silent_ns.max(own_ns)
        });
        if !self.is_stale && self.rows.len() == before {
            return;
        }
        self.is_stale = false;
        let items: Vec<_> = self.rows.values().map(|row| self.clock.point(row)).collect();
        let mut text = exposition(&items);
        let _ = writeln!(text, "# TYPE tacho_monitor_hosts gauge");
        let _ = writeln!(text, "tacho_monitor_hosts {}", self.rows.len());
        self.page.set(text);
    }
}
