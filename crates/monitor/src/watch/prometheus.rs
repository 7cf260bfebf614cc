//! Scrapes a Prometheus endpoint.

use std::time::Duration;

use super::feed::Feed;
use crate::clock::{next_tick_ns, now_ns};
use crate::prometheus::Endpoint;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Limit on the response: node_exporter's has a few hundred kilobytes on large machines.
const RESPONSE_BYTES_MAX: u64 = 16 << 20;

/// Scrapes an endpoint at a fixed interval.
#[derive(Debug)]
pub(super) struct Scraper {
    url: String,
    agent: ureq::Agent,
    endpoint: Endpoint,
}

impl Scraper {
    /// Scrapes once, so that a wrong address is reported immediately.
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).build();
        let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        let mut scraper = Self {
            url: url.to_owned(),
            agent: config.into(),
            endpoint: Endpoint::new(host.to_owned()),
        };
        scraper.scrape(&mut |_| ())?;
        Ok(scraper)
    }

    /// Scrapes once; the row goes to `deliver`.
    fn scrape(&mut self, deliver: &mut dyn FnMut(crate::HostRow)) -> Result<(), String> {
        let asked_ns = now_ns();
        let text = self
            .agent
            .get(&self.url)
            .call()
            .and_then(|mut response| {
                response.body_mut().with_config().limit(RESPONSE_BYTES_MAX).read_to_string()
            })
            .map_err(|error| error.to_string())?;
        let round_trip_ns = now_ns().saturating_sub(asked_ns);
        // The values were read at some time between request and response.
        if let Some(mut row) = self.endpoint.parse(&text, asked_ns + round_trip_ns / 2)? {
            row.clock_error_ns = Some(round_trip_ns / 2);
            deliver(row);
        }
        Ok(())
    }

    /// Scrapes until stopped.
    pub(super) fn watch(&mut self, feed: &Feed, interval: Duration) {
        let mut due_ns = next_tick_ns(now_ns(), interval, now_ns());
        loop {
            feed.sleep_until(due_ns);
            if feed.stopping() {
                return;
            }
            if let Err(error) = self.scrape(&mut |row| feed.row(row)) {
                feed.error(error);
            }
            due_ns = next_tick_ns(due_ns, interval, now_ns());
        }
    }
}
