//! The console's gate: each request has a token, and those that change something come from its own
//! pages or from no page at all.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use tacho_http::{ApiError, Role, bearer};

use crate::access::Access;

/// The cookie of a browser that has followed a link with a token.
const COOKIE: &str = "tacho_token";
/// Addresses that need no token: scripts and styles, which say nothing about runs.
const OPEN: &str = "/assets/";
/// The API, whose errors are JSON.
const API: &str = "/api/";
/// The only operation whose content is no JSON.
const UPLOADS: &str = "/api/v1/uploads";

/// The page of a request without a token.
const NO_TOKEN: &str = include_str!("no_token.html");

/// Lets requests in.
pub(crate) async fn check(
    State(access): State<Arc<Access>>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    if path.starts_with(OPEN) {
        return next.run(request).await;
    }
    if let Some(token) = token_in_address(&request) {
        return follow_link(&access, &request, &token);
    }
    let is_api = path.starts_with(API);
    let Some(role) = given(request.headers()).and_then(|token| access.role(&token)) else {
        return refused(is_api, StatusCode::UNAUTHORIZED, "This needs the token of the console.");
    };
    if let Err((status, why)) = may(role, &request) {
        return refused(is_api, status, why);
    }
    request.extensions_mut().insert(role);
    next.run(request).await
}

/// Whether a request with that role may do what it asks for.
fn may(role: Role, request: &Request) -> Result<(), (StatusCode, &'static str)> {
    let method = request.method();
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    if role < Role::Operator {
        return Err((StatusCode::FORBIDDEN, "Only operators may do this: this token may look."));
    }
    if !is_from_here(request.headers()) {
        return Err((StatusCode::FORBIDDEN, "Requests from pages of others are refused."));
    }
    // No form of a page can send these types.
    let wanted = match request.uri().path() {
        UPLOADS => "application/octet-stream",
        _ => "application/json",
    };
    let kind = text(request.headers(), &header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.split(';').next()).map_or("", str::trim);
    match *method == Method::DELETE || kind.eq_ignore_ascii_case(wanted) {
        true => Ok(()),
        false if wanted == "application/json" => {
            Err((StatusCode::BAD_REQUEST, "Send the header content-type: application/json."))
        }
        false => Err((
            StatusCode::BAD_REQUEST,
            "Send the file itself, with the header content-type: application/octet-stream.",
        )),
    }
}

/// Whether a request comes from a page of this server, or from a program.
fn is_from_here(headers: &HeaderMap) -> bool {
    let host = text(headers, &header::HOST).unwrap_or("");
    match text(headers, &header::ORIGIN) {
        Some(origin) => origin.strip_prefix("http://") == Some(host),
        None => text(headers, &HeaderName::from_static("sec-fetch-site"))
            .is_none_or(|site| matches!(site, "same-origin" | "none")),
    }
}

/// The token that a request brings.
fn given(headers: &HeaderMap) -> Option<String> {
    let cookie = || {
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = all.flat_map(|line| line.split(';'));
        pairs.find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == COOKIE).then(|| value.to_owned())
        })
    };
    bearer(headers).map(str::to_owned).or_else(cookie)
}

/// `?token=...` of a page.
fn token_in_address(request: &Request) -> Option<String> {
    let is_page = *request.method() == Method::GET && !request.uri().path().starts_with(API);
    let query = request.uri().query().filter(|_| is_page)?;
    query.split('&').find_map(|pair| pair.strip_prefix("token=")).map(str::to_owned)
}

/// Keeps the token of a link in the browser, and leads to the same page without it.
fn follow_link(access: &Access, request: &Request, token: &str) -> Response {
    if access.role(token).is_none() {
        return refused(false, StatusCode::UNAUTHORIZED, "");
    }
    let query = request.uri().query().unwrap_or("");
    let rest: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("token=")).collect();
    // A path that begins with two slashes would lead to another host.
    let path = format!("/{}", request.uri().path().trim_start_matches('/'));
    let place = if rest.is_empty() { path } else { format!("{path}?{}", rest.join("&")) };
    let cookie = format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000");
    let values = HeaderValue::from_str(&place).ok().zip(HeaderValue::from_str(&cookie).ok());
    let Some((place, cookie)) = values else {
        return refused(false, StatusCode::UNAUTHORIZED, "");
    };
    (StatusCode::SEE_OTHER, [(header::LOCATION, place), (header::SET_COOKIE, cookie)])
        .into_response()
}

fn refused(is_api: bool, status: StatusCode, why: &str) -> Response {
    if !is_api {
        let status = if why.is_empty() { StatusCode::UNAUTHORIZED } else { status };
        return (status, Html(NO_TOKEN)).into_response();
    }
    ApiError::new(status, why).into_response()
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).expect("is a request")
    }

    #[test]
    fn changes_need_an_operator_and_come_from_here() {
        let (host, json) = (("host", "127.0.0.1:1"), ("content-type", "application/json"));
        let allowed = |role, method, path, headers: &[(&str, &str)]| {
            may(role, &request(method, path, headers)).is_ok()
        };
        assert!(allowed(Role::Viewer, "GET", "/api/v1/runs", &[host]));
        assert!(!allowed(Role::Viewer, "POST", "/api/v1/runs", &[host, json]));
        assert!(allowed(Role::Operator, "POST", "/api/v1/runs", &[host, json]));
        let own = ("origin", "http://127.0.0.1:1");
        assert!(allowed(Role::Operator, "POST", "/api/v1/runs", &[host, json, own]));
        for foreign in [
            ("origin", "http://127.0.0.1:2"),
            ("origin", "null"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "cross-site"),
        ] {
            assert!(
                !allowed(Role::Operator, "POST", "/api/v1/runs", &[host, json, foreign]),
                "{foreign:?}"
            );
            assert!(
                !allowed(Role::Operator, "DELETE", "/api/v1/runs/x", &[host, foreign]),
                "{foreign:?}"
            );
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            let kind = ("content-type", kind);
            assert!(!allowed(Role::Operator, "POST", "/api/v1/runs", &[host, kind]), "{kind:?}");
            assert!(!allowed(Role::Operator, "POST", UPLOADS, &[host, kind]), "{kind:?}");
        }
        let bytes = ("content-type", "application/octet-stream");
        assert!(allowed(Role::Operator, "POST", UPLOADS, &[host, bytes]));
        assert!(allowed(Role::Operator, "DELETE", "/api/v1/runs/x", &[host]));
    }

    #[test]
    fn tokens_come_from_headers_cookies_and_links() {
        let of = |headers: &[(&str, &str)]| given(request("GET", "/", headers).headers());
        assert_eq!(of(&[("authorization", "Bearer abc")]).as_deref(), Some("abc"));
        assert_eq!(of(&[("cookie", "a=b; tacho_token=abc; c=d")]).as_deref(), Some("abc"));
        assert_eq!(of(&[("authorization", "Basic abc")]), None);
        assert_eq!(of(&[("cookie", "xtacho_token=abc")]), None);
        let link = |path| token_in_address(&request("GET", path, &[]));
        assert_eq!(link("/runs?q=1&token=abc").as_deref(), Some("abc"));
        assert_eq!(link("/api/v1/runs?token=abc"), None, "the API takes headers");
        assert_eq!(link("/runs?xtoken=abc"), None);
    }

    #[test]
    fn a_link_leads_to_the_same_page_on_the_same_host() {
        let place = tempfile::tempdir().expect("a folder");
        let access = Access::open(place.path(), None).expect("is made");
        let token = access.own().to_owned();
        let follow = |path: &str, token: &str| {
            let path = format!("{path}token={token}");
            let response = follow_link(&access, &request("GET", &path, &[]), token);
            let header = |name| text(response.headers(), &name).map(str::to_owned);
            (response.status().as_u16(), header(header::LOCATION), header(header::SET_COOKIE))
        };
        let (status, place, cookie) = follow("/runs?q=a&", &token);
        assert_eq!((status, place.as_deref()), (303, Some("/runs?q=a")));
        let cookie = cookie.expect("is set");
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        assert_eq!(follow("//evil.example/?", &token).1.as_deref(), Some("/evil.example/"));
        assert_eq!(follow("/?", "wrong"), (401, None, None));
    }
}
