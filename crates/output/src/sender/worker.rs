//! The thread of a target: encodes, posts, waits, tries again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answer::{Service, Uptake};
use super::backoff::Backoff;
use super::file::FileSink;
use super::http::HttpSink;
use super::mailbox::{Mailbox, Order};
use super::{OutputAccount, OutputStartError};
use crate::encode::{Encode, OutputBody, encoder};
use crate::target::{OutputTarget, TargetKind};

/// Records of a request; a batch that reaches it is sent before its time.
const RECORDS_MAX: u64 = 5_000;
/// Packed bodies that wait for a service; beyond it the oldest are lost.
const BACKLOG_BYTES_MAX: usize = 32 << 20;
/// A service that took nothing for so long has failed, where that ends the run.
const PATIENCE: Duration = Duration::from_secs(15);

/// Where packed bodies go.
#[derive(Debug)]
enum Sink {
    Http(HttpSink),
    File(FileSink),
}

/// Encodes and delivers for one target.
#[derive(Debug)]
pub(super) struct Worker {
    target: OutputTarget,
    mailbox: Arc<Mailbox>,
    encoder: Box<dyn Encode>,
    sink: Sink,
    backlog: VecDeque<OutputBody>,
    backlog_bytes: usize,
    backlog_bytes_max: usize,
    backoff: Backoff,
    /// When the backlog may be tried again.
    retry_at: Option<Instant>,
    /// Since when every attempt failed.
    failing_since: Option<Instant>,
    /// When the next body is due.
    due: Instant,
    account: OutputAccount,
}

impl Worker {
    /// Opens the target's file, or reads its secrets.
    pub(super) fn open(
        target: &OutputTarget,
        mailbox: Arc<Mailbox>,
    ) -> Result<Self, OutputStartError> {
        let http = |service, kind, http| HttpSink::new(service, kind, http).map(Sink::Http);
        let sink = match &target.kind {
            TargetKind::Influx { http: to, .. } => http(Service::Influx, "influxdb", to)?,
            TargetKind::Prometheus { http: to, .. } => http(Service::Prometheus, "prometheus", to)?,
            TargetKind::Otlp { http: to, .. } => http(Service::Otlp, "otlp", to)?,
            TargetKind::Json(path) | TargetKind::Csv(path) => {
                let create = |source| OutputStartError::Create { path: path.clone(), source };
                Sink::File(FileSink::create(path).map_err(create)?)
            }
        };
        Ok(Self {
            encoder: encoder(target),
            sink,
            mailbox,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            backlog_bytes_max: BACKLOG_BYTES_MAX,
            backoff: Backoff::default(),
            retry_at: None,
            failing_since: None,
            due: Instant::now() + target.every,
            account: OutputAccount { target: target.to_string(), ..OutputAccount::default() },
            target: target.clone(),
        })
    }

    /// How long one delivery takes at most.
    pub(super) fn delivery_max(&self) -> Duration {
        match &self.sink {
            Sink::Http(sink) => sink.timeout(),
            Sink::File(_) => Duration::from_secs(1),
        }
    }

    /// Works until it is told to end.
    pub(super) fn work(mut self) {
        loop {
            match self.mailbox.next(self.wake_at()) {
                Order::Take(items) => items.iter().for_each(|item| self.encoder.take(item)),
                Order::Settle { until } => self.settle(until),
                Order::Nothing => {}
                Order::Quit => return,
            }
            let now = Instant::now();
            if now >= self.due || self.encoder.pending() >= RECORDS_MAX {
                self.due = now + self.target.every;
                self.encode();
            }
            if self.retry_at.is_none_or(|at| at <= now) {
                self.deliver_one();
            }
        }
    }

    /// When there is something to do without news.
    fn wake_at(&self) -> Instant {
        match (self.backlog.is_empty(), self.retry_at) {
            (true, _) => self.due,
            (false, None) => Instant::now(),
            (false, Some(at)) => at.min(self.due),
        }
    }

    /// Moves what was encoded to the backlog.
    fn encode(&mut self) {
        let left_out = self.encoder.left_out();
        if left_out > 0 {
            self.account.unsent += left_out;
            self.trouble("too many series, or points out of order".to_owned());
        }
        let Some(body) = self.encoder.body() else { return };
        let records = body.records;
        let bytes = match &self.sink {
            Sink::Http(sink) => sink.pack(body.bytes),
            Sink::File(_) => body.bytes,
        };
        self.backlog_bytes += bytes.len();
        self.backlog.push_back(OutputBody { bytes, records });
        while self.backlog_bytes > self.backlog_bytes_max && self.backlog.len() > 1 {
            if let Some(oldest) = self.take_oldest() {
                self.account.unsent += oldest.records;
                self.failed("it took nothing for too long".to_owned());
            }
        }
    }

    fn take_oldest(&mut self) -> Option<OutputBody> {
        let oldest = self.backlog.pop_front()?;
        self.backlog_bytes -= oldest.bytes.len();
        Some(oldest)
    }

    /// Delivers the oldest body of the backlog. Returns whether it was taken or refused.
    fn deliver_one(&mut self) -> bool {
        let Some(body) = self.backlog.front() else { return true };
        let uptake = match &mut self.sink {
            Sink::Http(sink) => sink.deliver(&body.bytes, body.records),
            Sink::File(sink) => sink.deliver(&body.bytes),
        };
        let records = body.records;
        match uptake {
            Uptake::Later { why, after } => {
                let pause = self.backoff.failed(after, fastrand::f64());
                let now = Instant::now();
                self.retry_at = Some(now + pause);
                self.account.repeated += 1;
                let since = *self.failing_since.get_or_insert(now);
                match now.duration_since(since) >= PATIENCE {
                    true => self.failed(why),
                    false => self.trouble(why),
                }
                return false;
            }
            Uptake::Taken { refused, why } => {
                self.account.taken += records - refused.min(records);
                self.account.refused += refused.min(records);
                if let Some(why) = why {
                    self.failed(why);
                }
            }
            Uptake::Refused { why } => {
                self.account.refused += records;
                self.failed(why);
            }
        }
        self.take_oldest();
        self.backoff.succeeded();
        (self.retry_at, self.failing_since) = (None, None);
        true
    }

    /// Sends everything, or as much as is possible until the time is over, and reports. A service
    /// that has taken nothing of this gets one more attempt.
    fn settle(&mut self, until: Instant) {
        self.encode();
        while !self.backlog.is_empty() {
            if self.deliver_one() {
                continue;
            }
            let retry_at = self.retry_at.unwrap_or(until);
            if self.account.taken == 0 || retry_at >= until {
                break;
            }
            std::thread::sleep(retry_at.saturating_duration_since(Instant::now()));
        }
        self.account.unsent += self.backlog.iter().map(|body| body.records).sum::<u64>();
        self.backlog.clear();
        self.backlog_bytes = 0;
        let next = OutputAccount { target: self.target.to_string(), ..OutputAccount::default() };
        self.mailbox.settled(std::mem::replace(&mut self.account, next));
    }

    /// Remembers an error that may pass.
    fn trouble(&mut self, why: String) {
        self.mailbox.trouble(&why);
        self.account.last_error = Some(why);
    }

    /// Remembers a loss; it ends the run where the target says so.
    fn failed(&mut self, why: String) {
        if self.target.ends_run {
            self.mailbox.failed(&why);
        }
        self.trouble(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{OutputItem, OutputNote, PointTags};

    fn note(at_ms: u64) -> OutputItem {
        let text = "t".repeat(50);
        OutputItem::Note(OutputNote { at_ms, tags: PointTags::default(), kind: "phase", text })
    }

    /// Encodes a body of its own.
    fn add(worker: &mut Worker, at_ms: u64) {
        worker.encoder.take(&note(at_ms));
        worker.encode();
    }

    fn times(worker: &Worker) -> Vec<u64> {
        let time = |body: &OutputBody| {
            let line = String::from_utf8_lossy(&body.bytes).into_owned();
            line.trim().rsplit(' ').next().and_then(|time| time.parse().ok()).expect("a time")
        };
        worker.backlog.iter().map(time).collect()
    }

    #[test]
    fn a_backlog_that_is_full_loses_the_oldest_and_counts_them() {
        // Nothing listens there.
        let target = "influxdb=http://127.0.0.1:1/d?gzip=off&on-failure=end";
        let target = OutputTarget::parse(target).expect("a target");
        let mailbox = Arc::new(Mailbox::default());
        let mut worker = Worker::open(&target, Arc::clone(&mailbox)).expect("opens");
        add(&mut worker, 10);
        worker.backlog_bytes_max = 3 * worker.backlog_bytes;
        (11..13).for_each(|at_ms| add(&mut worker, at_ms));
        assert_eq!((times(&worker), worker.account.unsent), (vec![10, 11, 12], 0));
        assert_eq!((mailbox.take_trouble(), mailbox.failure()), (None, None));
        (13..20).for_each(|at_ms| add(&mut worker, at_ms));
        assert_eq!((times(&worker), worker.account.unsent), (vec![17, 18, 19], 7));
        assert_eq!(worker.backlog_bytes, worker.backlog_bytes_max);
        assert_eq!(mailbox.failure().as_deref(), Some("it took nothing for too long"));
        // One body may be larger than the limit: it is sent rather than never.
        worker.backlog_bytes_max = 1;
        add(&mut worker, 20);
        assert_eq!((times(&worker), worker.account.unsent), (vec![20], 10));
        let now = Instant::now();
        mailbox.ask_to_settle(now);
        worker.settle(now);
        let account = mailbox.await_settled(now).expect("a report");
        assert_eq!((account.taken, account.refused, account.unsent), (0, 0, 11));
        assert_eq!((worker.backlog.len(), worker.backlog_bytes), (0, 0));
    }
}
