//! Requests of every kind, and how long they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::api::Api;
use super::broker::name;

/// Between two requests: an operator, or a page that looks often.
const PAUSE: Duration = Duration::from_millis(50);
const PAGE: u64 = 1_000;

/// Requests that go on until they are ended.
pub(super) struct Asker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Requests>>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Requests {
    pub(super) count: u64,
    slowest_us: u64,
    slowest_path: String,
}

impl Asker {
    pub(super) fn start(api: &Api, sessions: u64) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let (stopped, api) = (Arc::clone(&stop), api.clone());
        let paths = paths(sessions);
        let thread = thread::spawn(move || {
            let mut requests = Requests::default();
            for path in paths.iter().cycle() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let begun = Instant::now();
                api.text(path)?;
                let took_us = begun.elapsed().as_micros() as u64;
                requests.count += 1;
                if took_us > requests.slowest_us {
                    (requests.slowest_us, requests.slowest_path) = (took_us, path.clone());
                }
                thread::sleep(PAUSE);
            }
            Ok(requests)
        });
        Self { stop, thread }
    }

    pub(super) fn end(self) -> Result<Requests> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the thread that asks panicked"))?
    }
}

/// All that can be asked for without a change.
fn paths(sessions: u64) -> Vec<String> {
    let some = name(sessions / 2);
    let mut paths: Vec<String> = [
        "/status",
        "/clients?limit=100",
        "/clients?state=connected&limit=1000",
        "/clients?user=none&limit=10",
        "/clients?address=192.0.2.0/24&limit=10",
        "/groups",
        "/retained?filter=%23",
        "/bans",
        "/users",
        "/roles",
        "/listeners",
        "/limits",
        "/bridges",
        "/config",
        "/metrics",
        "/receivers?topic=test/m1/1",
        "/subscribers?filter=test/m1/1",
    ]
    .map(str::to_owned)
    .into();
    paths.push(format!("/clients/{some}"));
    paths.push(format!("/clients/{some}/subscriptions"));
    // The last thousand of all.
    paths.push(format!("/clients?prefix={}&limit=1000", name(sessions - 1).trim_end_matches('9')));
    paths
}

/// Goes through the list of all clients; how long its pages take at the begin and at the end.
pub(super) fn all_pages(api: &Api, sessions: u64) -> Result<Value> {
    let begun = Instant::now();
    let (mut cursor, mut found, mut took_us) = (None::<String>, 0, Vec::new());
    loop {
        let after = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let asked = Instant::now();
        let page = api.json(&format!("/clients?limit={PAGE}{after}"))?;
        took_us.push(asked.elapsed().as_micros() as u64);
        found += page["clients"].as_array().context("a page without clients")?.len() as u64;
        cursor = page["next"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    ensure!(found >= sessions, "{found} of {sessions} sessions are listed");
    let mean_us = |part: &[u64]| part.iter().sum::<u64>() / part.len().max(1) as u64;
    let tenth = took_us.len().div_ceil(10);
    let (first, last) = (mean_us(&took_us[..tenth]), mean_us(&took_us[took_us.len() - tenth..]));
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "all {found} clients in {seconds:.1} s: pages take {first} us at first, {last} at last"
    );
    Ok(json!({
        "clients": found, "pages": took_us.len(), "seconds": seconds,
        "page_us_first_tenth": first, "page_us_last_tenth": last,
    }))
}
