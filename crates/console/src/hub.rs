//! Between the run and the browsers: a bounded history, and a bounded queue for each browser.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::response::sse::Event;
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use serde::Serialize;
use tacho_record::StepAgent;
use tokio::sync::{broadcast, mpsc};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;

use crate::news::{ActionNews, EndNews, News, PhaseNews, RunNews, StepNews};
use crate::watchers::{WatcherPlace, Watchers};

/// Browsers at a time.
const SUBSCRIBERS_MAX: usize = 16;
/// Events that a browser may be behind; older ones are lost for it, and counted.
const BEHIND_MAX: usize = 256;
/// Rows that are kept for browsers that come later: an hour of one watched host.
const HISTORY_ROWS_MAX: usize = 7200;
/// Limits of the subscribers.
const HISTORY_BYTES_MAX: usize = 24 << 20;
/// Ended runs that are kept.
const STEPS_MAX: usize = 1000;
/// Timed actions that are kept: as many as a scenario has at most.
const ACTIONS_MAX: usize = 1000;
/// Failures of clients that are kept; the report has more.
const FAILURES_MAX: usize = 20;

/// The state sent to every browser.
#[derive(Clone, Debug)]
struct Message {
    kind: &'static str,
    json: Arc<str>,
}

/// Everything but rows.
#[derive(Debug, Default, Serialize)]
struct Known {
    name: String,
    kind: String,
    run: Option<RunNews>,
    phase: Option<PhaseNews>,
    /// Their parts of the last second, of the present run.
    agents: Vec<StepAgent>,
    failures: VecDeque<String>,
    failures_count: u64,
    actions: VecDeque<ActionNews>,
    steps: VecDeque<StepNews>,
    end: Option<EndNews>,
    /// Rows that are in the history no more.
    forgotten: u64,
    /// News that did not fit into the queue between run and server.
    overflow: u64,
}

#[derive(Debug)]
struct Inner {
    known: Known,
    rows: VecDeque<Message>,
    bytes: usize,
    /// Gone once everything has been told.
    out: Option<broadcast::Sender<Message>>,
}

/// Shared by the task that takes news and the requests for them, which are on one thread: the lock
/// is never waited for.
#[derive(Clone, Debug)]
pub(crate) struct Hub {
    inner: Arc<Mutex<Inner>>,
    watchers: Watchers,
    missed: Arc<AtomicU64>,
}

impl Hub {
    /// An empty one for the run `name`.
    pub(crate) fn new(name: &str, kind: &str) -> Self {
        let known = Known { name: name.to_owned(), kind: kind.to_owned(), ..Known::default() };
        let (out, _) = broadcast::channel(BEHIND_MAX);
        let inner = Inner { known, rows: VecDeque::new(), bytes: 0, out: Some(out) };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            watchers: Watchers::new(SUBSCRIBERS_MAX),
            missed: Arc::default(),
        }
    }

    /// Takes news until no more can come, then lets all browsers go.
    pub(crate) async fn pump(self, mut news: mpsc::Receiver<News>, overflow: Arc<AtomicU64>) {
        while let Some(news) = news.recv().await {
            let mut inner = self.lock();
            inner.known.overflow = overflow.load(Ordering::Relaxed);
            inner.take(news);
        }
        self.lock().out = None;
    }

    /// All events so far, then each new one, for a browser at `peer`. With [`SUBSCRIBERS_MAX`]
    /// others already, one of them is told that it is displaced, and its events end.
    pub(crate) fn subscribe(
        &self,
        peer: IpAddr,
    ) -> impl Stream<Item = Result<Event, Infallible>> + Send + use<> {
        let (place, displaced) = self.watchers.enter(peer);
        let inner = self.lock();
        let hello = Message { kind: "hello", json: json(&inner.known) };
        let past: Vec<Message> = std::iter::once(hello).chain(inner.rows.iter().cloned()).collect();
        let live = inner.out.as_ref().map(broadcast::Sender::subscribe);
        drop(inner);
        let missed = Arc::clone(&self.missed);
        let live = stream::iter(live).flat_map(BroadcastStream::new).map(move |item| match item {
            Ok(message) => message,
            Err(BroadcastStreamRecvError::Lagged(count)) => {
                missed.fetch_add(count, Ordering::Relaxed);
                Message { kind: "missed", json: count.to_string().into() }
            }
        });
        let ready = Message { kind: "ready", json: "{}".into() };
        let messages = stream::iter(past).chain(stream::iter([ready])).chain(live);
        let displaced = displaced.shared();
        let messages = messages.take_until(displaced.clone());
        let farewell = stream::once(async move {
            // Otherwise the news have come to their end.
            matches!(displaced.now_or_never(), Some(Ok(())))
                .then(|| Message { kind: "displaced", json: "{}".into() })
        });
        let messages = messages.chain(farewell.filter_map(std::future::ready));
        messages.map(move |message| Ok(message.event(&place)))
    }

    /// Rows that browsers lost since they were too slow.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Message {
    /// As it is sent; `_place` is held for as long as its browser is there.
    fn event(self, _place: &WatcherPlace) -> Event {
        Event::default().event(self.kind).data(&*self.json)
    }
}

impl Known {
    /// News of an action replaces earlier news of the same action.
    fn action(&mut self, action: ActionNews) {
        let key = |news: &ActionNews| (news.run, news.state.number);
        match self.actions.iter_mut().rev().find(|known| key(known) == key(&action)) {
            Some(known) => *known = action,
            None => self.actions.push_back(action),
        }
        if self.actions.len() > ACTIONS_MAX {
            self.actions.pop_front();
        }
    }
}

impl Inner {
    fn take(&mut self, news: News) {
        let known = &mut self.known;
        let message = match news {
            News::Second(second) => {
                return self.row(Message { kind: "second", json: json(&second) });
            }
            News::Host(row) => return self.row(Message { kind: "host", json: json(&row) }),
            News::Run(run) => {
                let message = Message { kind: "run", json: json(&run) };
                known.run = Some(run);
                known.phase = None;
                known.agents = Vec::new();
                message
            }
            News::Phase(phase) => {
                let message = Message { kind: "phase", json: json(&phase) };
                known.phase = Some(phase);
                message
            }
            News::Agents(agents) => {
                let message = Message { kind: "agents", json: json(&agents) };
                known.agents = agents;
                message
            }
            News::Failed(sentence) => {
                known.failures_count += 1;
                // Further ones are counted; the count is sent with the next of them.
                let failure = Failure { count: known.failures_count, sentence: &sentence };
                let message = Message { kind: "failed", json: json(&failure) };
                known.failures.push_back(sentence);
                if known.failures.len() > FAILURES_MAX {
                    known.failures.pop_front();
                }
                message
            }
            News::Action(action) => {
                let message = Message { kind: "action", json: json(&action) };
                known.action(action);
                message
            }
            News::Step(step) => {
                let message = Message { kind: "step", json: json(&step) };
                known.steps.push_back(step);
                if known.steps.len() > STEPS_MAX {
                    known.steps.pop_front();
                }
                message
            }
            News::End(end) => {
                let message = Message { kind: "end", json: json(&end) };
                known.end = Some(end);
                message
            }
        };
        self.send(message);
    }

    /// Keeps a row, forgets the oldest where there are too many, and sends it.
    fn row(&mut self, message: Message) {
        self.bytes += message.json.len();
        self.rows.push_back(message.clone());
        while self.rows.len() > HISTORY_ROWS_MAX || self.bytes > HISTORY_BYTES_MAX {
            let Some(oldest) = self.rows.pop_front() else { break };
            self.bytes -= oldest.json.len();
            self.known.forgotten += 1;
        }
        self.send(message);
    }

    fn send(&self, message: Message) {
        if let Some(out) = &self.out {
            // Fails only when no browser is connected.
            let _ = out.send(message);
        }
    }
}

#[derive(Serialize)]
struct Failure<'a> {
    count: u64,
    sentence: &'a str,
}

fn json<T: Serialize>(value: &T) -> Arc<str> {
    // Invariant: our structures have string keys and finite or optional numbers.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()).into()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::pin::pin;

    use tacho_record::{ActionEffect, ActionKind, ActionState, Consequence, SeriesRow};

    use super::*;
    use crate::news::{RunAbout, SecondNews};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn second(start_s: f64) -> News {
        let row = SeriesRow { start_s, ..SeriesRow::default() };
        News::Second(Box::new(SecondNews { clients: 1, parts: Vec::new(), row }))
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(future)
    }

    /// All events as text, once the hub has let go.
    async fn all(hub: &Hub) -> Vec<String> {
        hub.subscribe(HERE).map(|event| format!("{event:?}")).collect().await
    }

    #[test]
    fn history_is_replayed_and_bounded() {
        let hub = Hub::new("x", "run");
        for at in 0..HISTORY_ROWS_MAX + 3 {
            hub.lock().take(second(at as f64));
        }
        for number in 0..FAILURES_MAX + 5 {
            hub.lock().take(News::Failed(format!("client {number}")));
        }
        hub.lock().out = None;
        let events = block_on(all(&hub));
        assert_eq!(events.len(), 1 + HISTORY_ROWS_MAX + 1);
        assert!(
            events[0].contains("hello") && events[0].contains("forgotten\\\":3"),
            "{}",
            events[0]
        );
        let inner = hub.lock();
        assert_eq!(inner.known.failures.len(), FAILURES_MAX);
        assert_eq!(inner.known.failures_count, FAILURES_MAX as u64 + 5);
        assert_eq!(inner.bytes, inner.rows.iter().map(|row| row.json.len()).sum::<usize>());
    }

    #[test]
    fn agents_are_told_as_they_are_now_until_another_run_begins() {
        let hub = Hub::new("x", "capacity");
        let agents = |sent_per_s: f64| {
            let name = "load-1".to_owned();
            News::Agents(vec![StepAgent { name, sent_per_s, ..StepAgent::default() }])
        };
        hub.lock().take(agents(10.0));
        hub.lock().take(agents(20.0));
        let known: Vec<f64> =
            hub.lock().known.agents.iter().map(|agent| agent.sent_per_s).collect();
        assert_eq!(known, [20.0]);
        let run = RunNews { number: 2, about: RunAbout::default(), at_s: 0.0 };
        hub.lock().take(News::Run(run));
        assert!(hub.lock().known.agents.is_empty());
        hub.lock().take(agents(30.0));
        hub.lock().out = None;
        let events = block_on(all(&hub));
        assert!(events[0].contains("hello") && events[0].contains("load-1"), "{events:?}");
    }

    #[test]
    fn of_an_action_the_newest_counts_and_the_oldest_actions_are_forgotten() {
        let action = |run: u64, number: usize, clients: u64| {
            let effect = ActionEffect::BreakOff { group: "a".to_owned(), share: 1.0 };
            let state = ActionState {
                number,
                kind: ActionKind::from(&effect),
                effect,
                at_s: 1.0,
                length_s: None,
                clients: 5,
                consequences: vec![Consequence::Connected { clients, of: 5, last_us: None }],
            };
            News::Action(ActionNews::new(run, state))
        };
        let hub = Hub::new("x", "run");
        hub.lock().take(action(1, 7, 0));
        hub.lock().take(action(2, 7, 3));
        hub.lock().take(action(1, 7, 5));
        let followed = |inner: &Inner| -> Vec<String> {
            inner.known.actions.iter().map(|news| news.followed.clone()).collect()
        };
        assert_eq!(followed(&hub.lock()), ["5 of 5 back", "3 of 5 back"]);
        for number in 0..ACTIONS_MAX {
            hub.lock().take(action(3, number, 0));
        }
        let inner = hub.lock();
        assert_eq!((inner.known.actions.len(), inner.known.actions[0].run), (ACTIONS_MAX, 3));
    }

    #[test]
    fn a_slow_browser_loses_rows_and_is_told() {
        let hub = Hub::new("x", "run");
        let events = hub.subscribe(HERE);
        for at in 0..BEHIND_MAX + 10 {
            hub.lock().take(second(at as f64));
        }
        hub.lock().out = None;
        let events: Vec<String> =
            block_on(async { pin!(events).map(|event| format!("{event:?}")).collect().await });
        assert!(events.iter().any(|event| event.contains("missed")), "{events:?}");
        assert_eq!(hub.missed(), 10);
        assert_eq!(events.len(), 2 + 1 + BEHIND_MAX);
    }

    #[test]
    fn a_newcomer_displaces_a_browser_which_is_told_once() {
        let hub = Hub::new("x", "run");
        let mut all: Vec<_> =
            (0..=SUBSCRIBERS_MAX).map(|_| Box::pin(hub.subscribe(HERE))).collect();
        let displaced: Vec<String> = block_on(async {
            let first = all.remove(0);
            first.map(|event| format!("{event:?}")).collect().await
        });
        // What it was about to get is not sent any more.
        assert_eq!(displaced.len(), 1, "{displaced:?}");
        assert!(displaced[0].contains("displaced"), "{displaced:?}");
        hub.lock().out = None;
        for events in all {
            let events: Vec<_> = block_on(events.map(|event| format!("{event:?}")).collect());
            assert_eq!(events.len(), 2, "hello and ready: {events:?}");
        }
    }
}
