//! A request to the backend of logins, repeated while it gets no answer and there is time.

use std::sync::Arc;
use std::time::Duration;

use tacho_access::{BackendAnswer, FilledRequest};
use tacho_net::clock;
use ureq::http::Response;
use ureq::http::header::CONTENT_TYPE;
use ureq::{Body, Timeout};

use super::agents::{Agents, BackendLink};
use super::health::{BackendHealth, BackendResult, Change};
use crate::config::{BodyFormat, HttpMethod, HttpSettings, OnUnavailable};
use crate::login_answer::BackendLogin;

/// Rules of a thousand filters have about 100 KB.
const BODY_BYTES_MAX: u64 = 256 * 1024;
/// Before the first repetition; it doubles with each further one.
const RETRY: Duration = Duration::from_millis(20);

/// Makes requests.
pub(super) struct BackendExchange {
    settings: HttpSettings,
    agents: Agents,
    health: Arc<BackendHealth>,
}

/// How a request to a backend of logins went.
#[derive(Debug)]
pub enum BackendOutcome {
    /// It has answered.
    Answer(BackendAnswer),
    /// The backend is there, but what it says cannot be used, and why.
    Unusable(String),
    /// It gave no answer, and why.
    Silence(String),
}

impl BackendOutcome {
    pub(super) const fn is_silence(&self) -> bool {
        matches!(self, Self::Silence(_))
    }

    const fn result(&self) -> BackendResult {
        match self {
            Self::Answer(BackendAnswer::Allow { .. }) => BackendResult::Allow,
            Self::Answer(BackendAnswer::Deny | BackendAnswer::Expired) => BackendResult::Deny,
            Self::Answer(BackendAnswer::Ignore) => BackendResult::Ignore,
            Self::Unusable(_) => BackendResult::Unusable,
            Self::Silence(_) => BackendResult::NoAnswer,
        }
    }

    pub(super) fn into_login(self) -> BackendLogin {
        match self {
            Self::Answer(BackendAnswer::Allow { acl, expires_unix_s }) => {
                BackendLogin::Allow { rules: acl.map(Arc::new), expires_unix_s }
            }
            Self::Answer(BackendAnswer::Deny) => BackendLogin::Deny,
            Self::Answer(BackendAnswer::Expired) => BackendLogin::Expired,
            Self::Answer(BackendAnswer::Ignore) => BackendLogin::Ignore,
            Self::Unusable(_) | Self::Silence(_) => BackendLogin::Unavailable,
        }
    }
}

impl BackendExchange {
    pub(super) const fn new(
        settings: HttpSettings,
        agents: Agents,
        health: Arc<BackendHealth>,
    ) -> Self {
        Self { settings, agents, health }
    }

    /// Asks, and asks again.
    pub(super) fn run(&self, request: &FilledRequest, begun_ns: u64) -> BackendOutcome {
        let end_ns = begun_ns + u64::from(self.settings.timeout_ms) * 1_000_000;
        let (mut retries, mut now_ns) = (0, begun_ns);
        loop {
            let link = self.agents.current(now_ns);
            let left = Duration::from_nanos(end_ns.saturating_sub(now_ns));
            let outcome = self.once(&link, request, left);
            if !outcome.is_silence() {
                return outcome;
            }
            let pause = RETRY * (1 << retries);
            now_ns = clock::now_ns() + pause.as_nanos() as u64;
            if retries >= self.settings.retries_max || now_ns >= end_ns {
                return outcome;
            }
            retries += 1;
            self.health.retried();
            std::thread::sleep(pause);
        }
    }

    /// Counts how a request went, and tells the log if that is new.
    pub(super) fn tell(&self, outcome: &BackendOutcome, is_paused: bool, now_ns: u64) {
        let (BackendOutcome::Unusable(why) | BackendOutcome::Silence(why)) = outcome else {
            if self.health.ended(outcome.result(), is_paused, now_ns) == Some(Change::AnswersAgain)
            {
                tracing::info!("the backend of logins {} answers again", self.settings.shown());
            }
            return;
        };
        if self.health.ended(outcome.result(), is_paused, now_ns) == Some(Change::Fails) {
            let follows = match self.settings.on_unavailable {
                OnUnavailable::Refuse => "logins that need it are refused",
                OnUnavailable::Ignore => "logins go on without it",
            };
            tracing::error!(
                "the backend of logins {} does not answer as it should, {follows}: {why}",
                self.settings.shown()
            );
        }
    }

    fn once(
        &self,
        link: &Arc<BackendLink>,
        request: &FilledRequest,
        left: Duration,
    ) -> BackendOutcome {
        let HttpSettings { url, method, format, .. } = &self.settings;
        let answer = match method {
            HttpMethod::Get => {
                let joint = if url.contains('?') { '&' } else { '?' };
                let mut get = link.agent.get(format!("{url}{joint}{}", request.query));
                for (name, value) in &link.headers {
                    get = get.header(name, value);
                }
                get.config().timeout_global(Some(left)).build().call()
            }
            HttpMethod::Post => {
                let kind = match format.unwrap_or_default() {
                    BodyFormat::Json => "application/json",
                    BodyFormat::Form => "application/x-www-form-urlencoded",
                };
                let mut post = link.agent.post(url).header(CONTENT_TYPE, kind);
                for (name, value) in &link.headers {
                    post = post.header(name, value);
                }
                let post = post.config().timeout_global(Some(left)).build();
                post.send(request.body.as_bytes())
            }
        };
        match answer {
            Ok(answer) => self.read(link, answer),
            Err(error) => self.failure(link, &error),
        }
    }

    fn read(&self, link: &Arc<BackendLink>, mut answer: Response<Body>) -> BackendOutcome {
        let status = answer.status().as_u16();
        // Also where it does not count: a connection with an unread answer is not used again.
        let body = answer.body_mut().with_config().limit(BODY_BYTES_MAX).read_to_vec();
        match status {
            200 => match body {
                Ok(body) => match BackendAnswer::parse(&body, clock::unix_ns() / 1_000_000_000) {
                    Ok(answer) => BackendOutcome::Answer(answer),
                    Err(error) => BackendOutcome::Unusable(error.to_string()),
                },
                Err(error) => self.failure(link, &error),
            },
            204 => BackendOutcome::Answer(BackendAnswer::Allow { acl: None, expires_unix_s: None }),
            401 | 403 => BackendOutcome::Answer(BackendAnswer::Deny),
            429 | 502..=504 => {
                BackendOutcome::Silence(format!("the answer is {}", answer.status()))
            }
            _ => BackendOutcome::Unusable(format!("the answer is {}", answer.status())),
        }
    }

    /// A connection has failed: no other one is used that was there before.
    fn failure(&self, link: &Arc<BackendLink>, error: &ureq::Error) -> BackendOutcome {
        let outcome = self.outcome_of(error);
        if outcome.is_silence() {
            self.agents.renew(link);
        }
        outcome
    }

    /// Without what was sent, which some errors repeat.
    fn outcome_of(&self, error: &ureq::Error) -> BackendOutcome {
        use ureq::Error;
        match error {
            Error::Timeout(Timeout::Resolve | Timeout::Connect) => BackendOutcome::Silence(
                format!("no connection within {} ms", self.settings.connect_timeout_ms),
            ),
            Error::Timeout(_) => {
                BackendOutcome::Silence(format!("no answer within {} ms", self.settings.timeout_ms))
            }
            Error::BadUri(_) | Error::Http(_) => {
                BackendOutcome::Unusable("the request cannot be sent".to_owned())
            }
            Error::BodyExceedsLimit(_) => BackendOutcome::Unusable(format!(
                "the answer has more than {} KiB",
                BODY_BYTES_MAX / 1024
            )),
            Error::LargeResponseHeader(..) | Error::Protocol(_) => {
                BackendOutcome::Unusable(error.to_string())
            }
            _ => BackendOutcome::Silence(error.to_string()),
        }
    }
}
