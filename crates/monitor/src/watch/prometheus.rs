//! Asking a Prometheus endpoint.

use std::time::Duration;

use super::Feed;
use super::feed::next_beat;
use crate::now_ns;
use crate::prometheus::Endpoint;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How large it may be: node_exporter's has a few hundred kilobytes on large machines.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// An endpoint that is asked at a steady rhythm.
#[derive(Debug)]
pub(super) struct Scraper {
    url: String,
    agent: ureq::Agent,
    endpoint: Endpoint,
}

impl Scraper {
    /// Asks once, so that a wrong address is told at once.
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).build();
        let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        let mut scraper = Self {
            url: url.to_owned(),
            agent: config.into(),
            endpoint: Endpoint::new(host.to_owned()),
        };
        scraper.ask(&mut |_| ())?;
        Ok(scraper)
    }

    /// One question; the answer's row goes to `deliver`.
    fn ask(&mut self, deliver: &mut dyn FnMut(crate::HostRow)) -> Result<(), String> {
        let asked_ns = now_ns();
        let text = self
            .agent
            .get(&self.url)
            .call()
            .and_then(|mut answer| {
                answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()
            })
            .map_err(|error| error.to_string())?;
        let round_trip_ns = now_ns().saturating_sub(asked_ns);
        // The values were read at some time between question and answer.
        if let Some(mut row) = self.endpoint.take(&text, asked_ns + round_trip_ns / 2)? {
            row.clock_error_ns = Some(round_trip_ns / 2);
            deliver(row);
        }
        Ok(())
    }

    /// Asks until it is stopped.
    pub(super) fn watch(&mut self, feed: &Feed, interval: Duration) {
        let mut due_ns = next_beat(now_ns(), interval, now_ns());
        loop {
            feed.sleep_until(due_ns);
            if feed.stopping() {
                return;
            }
            if let Err(error) = self.ask(&mut |row| feed.row(row)) {
                feed.error(error);
            }
            due_ns = next_beat(due_ns, interval, now_ns());
        }
    }
}
