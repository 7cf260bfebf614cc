//! Access to the pages: browsers opened here by their user, not requests made by other sites'
//! pages.

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Policy for Tacho's own pages: resources from this server only, and no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// The same for the page from which a user connects to brokers by WebSocket. Their addresses are
/// chosen while the page is open, and the policy of an open page cannot change: it names no hosts.
pub(crate) const SOCKET_POLICY: &str = "default-src 'none'; script-src 'self'; \
    style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self' ws: wss:; \
    frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Policy for reports: their own scripts, in an origin separate from these pages.
pub(crate) const REPORT_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'self'; sandbox allow-scripts allow-downloads allow-popups";

/// Which names of this server are accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    /// Does it listen on loopback only?
    pub(crate) loopback: bool,
}

impl Guard {
    /// Refuses requests that a foreign page made a browser send: those with a foreign host
    /// name (DNS rebinding) and those from another origin.
    pub(crate) async fn check(State(guard): State<Self>, request: Request, next: Next) -> Response {
        let mut response = match guard.verdict(request.headers()) {
            Ok(()) => next.run(request).await,
            Err(sentence) => (StatusCode::FORBIDDEN, format!("{sentence}\n")).into_response(),
        };
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::CACHE_CONTROL, "no-store"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ] {
            headers.entry(name).or_insert(HeaderValue::from_static(value));
        }
        response
    }

    fn verdict(self, headers: &HeaderMap) -> Result<(), &'static str> {
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or(""));
        let host = text(header::HOST).unwrap_or("");
        if !tacho_net::is_own_name(host, self.loopback) {
            return Err("This server answers to its address only: open the address that it \
                        printed, or localhost.");
        }
        let foreign = match text(header::ORIGIN) {
            Some(origin) => origin.strip_prefix("http://") != Some(host),
            None => text(HeaderName::from_static("sec-fetch-site"))
                .is_some_and(|site| site == "cross-site"),
        };
        // Following a link to a page from elsewhere is harmless; everything else is not.
        let navigates = text(HeaderName::from_static("sec-fetch-mode")) == Some("navigate");
        if foreign && !navigates {
            return Err("Requests from pages of others are refused.");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(loopback: bool, headers: &[(&'static str, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Guard { loopback }.verdict(&map).is_err()
    }

    #[test]
    fn names_that_dns_could_point_here_are_refused() {
        assert!(!refused(true, &[("host", "127.0.0.1:9740")]));
        assert!(refused(true, &[("host", "evil.example:9740")]));
        assert!(refused(true, &[]));
        assert!(!refused(false, &[("host", "10.0.0.1:9740")]));
        assert!(refused(false, &[("host", "evil.example:9740")]));
    }

    #[test]
    fn the_page_with_connections_may_open_web_sockets_and_nothing_else_more() {
        let widened = POLICY.replace("connect-src 'self'", "connect-src 'self' ws: wss:");
        assert_eq!(SOCKET_POLICY, widened);
    }

    #[test]
    fn pages_of_others_are_refused() {
        let host = ("host", "127.0.0.1:9740");
        assert!(!refused(true, &[host, ("origin", "http://127.0.0.1:9740")]));
        assert!(refused(true, &[host, ("origin", "http://127.0.0.1:9741")]));
        assert!(refused(true, &[host, ("origin", "https://evil.example")]));
        assert!(refused(true, &[host, ("origin", "null")]));
        assert!(refused(true, &[host, ("sec-fetch-site", "cross-site")]));
        assert!(!refused(true, &[host, ("sec-fetch-site", "none")]));
        let link = [host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert!(!refused(true, &link));
    }
}
