//! The caller of a request: the door that a request came by, the key that it brings, and what its
//! role allows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tacho_http::{ApiError, Role, bearer};
use tacho_net::clock;

use super::Api;
use crate::rate::{Bucket, Rate};

/// What the callers of the socket are called in the audit log.
const SOCKET: &str = "socket";

/// The caller of a request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    name: Arc<str>,
    role: Role,
}

impl Caller {
    /// The name of its key, or `socket`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn role(&self) -> Role {
        self.role
    }
}

/// Counts requests by key: there are as many entries as keys.
pub(super) struct KeyGate {
    rate: Rate,
    by_key: Mutex<HashMap<Arc<str>, Bucket>>,
    /// Those without a key that is known.
    strangers: Mutex<Bucket>,
}

impl KeyGate {
    pub(super) fn new(per_s_max: u32) -> Self {
        let rate = Rate::new(per_s_max, per_s_max);
        Self { rate, by_key: Mutex::default(), strangers: Mutex::default() }
    }

    /// Whether a key, or all strangers together, may ask once more.
    fn admits(&self, key: Option<&Arc<str>>) -> bool {
        let now_ns = clock::now_ns();
        let Some(key) = key else {
            let mut bucket = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
            return bucket.try_take(&self.rate, 1, now_ns);
        };
        let mut buckets = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.entry(Arc::clone(key)).or_default().try_take(&self.rate, 1, now_ns)
    }

    /// A key is no more.
    pub(super) fn forget(&self, key: &str) {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// A request by the socket: a process that may open it may do everything.
pub(super) async fn enter_by_socket(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Caller { name: SOCKET.into(), role: Role::Administrator });
    next.run(request).await
}

/// A request by HTTP needs a key.
pub(super) async fn enter_by_key(
    State(api): State<Api>,
    mut request: Request,
    next: Next,
) -> Response {
    let found = bearer(request.headers()).and_then(|key| api.broker().store.find_key(key));
    let name = found.as_ref().map(|(name, _)| name);
    if !api.gate().admits(name) {
        let message = "too many requests: wait a second";
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, message);
        return ([(header::RETRY_AFTER, "1")], error).into_response();
    }
    let Some((name, role)) = found else {
        let message = "this needs a key: `tacho ctl keys add` on the broker's host makes one; send \
                       it as `Authorization: Bearer KEY`";
        return ApiError::new(StatusCode::UNAUTHORIZED, message).into_response();
    };
    request.extensions_mut().insert(Caller { name, role });
    next.run(request).await
}

/// Lets through requests of callers with this role or a higher one.
pub(super) async fn require(State(role): State<Role>, request: Request, next: Next) -> Response {
    let own = request.extensions().get::<Caller>().map(Caller::role);
    if own.is_some_and(|own| own >= role) {
        return next.run(request).await;
    }
    let own = own.map_or("stranger", Role::name);
    let message = format!("only {role}s may do this: this key is of a {own}");
    ApiError::new(StatusCode::FORBIDDEN, message).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_asks_without_end_waits_and_others_do_not() {
        let gate = KeyGate::new(3);
        let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
        let taken = (0..100).filter(|_| gate.admits(Some(&ann))).count();
        assert!((3..100).contains(&taken), "{taken}");
        assert!(gate.admits(Some(&bob)));
        assert!(gate.admits(None), "strangers have a count of their own");
        gate.forget("ann");
        assert!(gate.admits(Some(&ann)), "another key of that name");
    }
}
