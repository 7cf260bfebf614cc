//! Asks the management API.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use ureq::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use ureq::http::{Request, Response, StatusCode};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, Body};

use super::target::CtlTarget;
use super::unix::UnixConnector;
use crate::exit::{self, Failure};

/// How long the broker may be silent. A stream without events has a comment every 15 s.
const PATIENCE: Duration = Duration::from_secs(45);
/// Bytes of an answer: a page of a thousand clients with long names.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// Rows of one request.
const PAGE_ROWS: usize = 1_000;
/// Where all operations are.
const BASE: &str = "/api/v1";
/// What stands in a path or behind a `?` as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A parameter of a request that may be absent.
pub(super) type Parameter<'a> = (&'a str, Option<&'a str>);

/// Asks one broker.
pub(super) struct CtlClient {
    agent: Agent,
    /// What comes before the paths of operations.
    base: String,
    key: Option<String>,
    /// What is asked, for errors.
    name: String,
}

/// Rows of several pages.
pub(super) struct Rows {
    pub(super) rows: Vec<Value>,
    /// There are more.
    pub(super) has_more: bool,
}

/// A text within an address.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

impl CtlClient {
    pub(super) fn new(target: CtlTarget) -> Self {
        // Errors are answers, too; and a proxy has no business here.
        let config = Agent::config_builder().http_status_as_error(false).proxy(None);
        match target {
            CtlTarget::Socket(path) => {
                let name = path.display().to_string();
                let connector = UnixConnector { path, patience: PATIENCE };
                let resolver = DefaultResolver::default();
                let agent = Agent::with_parts(config.build(), connector, resolver);
                Self { agent, base: format!("http://127.0.0.1{BASE}"), key: None, name }
            }
            CtlTarget::Http { url, key, tls } => {
                let config = match tls {
                    Some(tls) => config.tls_config(tls),
                    None => config,
                };
                let config = config.timeout_recv_response(Some(PATIENCE));
                let config = config.timeout_connect(Some(PATIENCE));
                let agent = Agent::new_with_config(config.build());
                Self { agent, base: format!("{url}{BASE}"), key: Some(key), name: url }
            }
        }
    }

    /// Asks for something.
    pub(super) fn get(&self, path: &str, query: &[Parameter<'_>]) -> Result<Value, Failure> {
        self.json(self.call("GET", path, query, None)?)
    }

    /// The same for a text.
    pub(super) fn text(&self, path: &str) -> Result<String, Failure> {
        self.body(self.checked(self.call("GET", path, &[], None)?)?)
    }

    pub(super) fn delete(&self, path: &str, query: &[Parameter<'_>]) -> Result<Value, Failure> {
        self.json(self.call("DELETE", path, query, None)?)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.json(self.call("POST", path, &[], Some(body))?)
    }

    /// The same of what takes no body.
    pub(super) fn post_nothing(&self, path: &str) -> Result<Value, Failure> {
        self.json(self.call("POST", path, &[], None)?)
    }

    /// Rows of a list, from page to page, up to `rows_max`; each page is handed to `also`.
    pub(super) fn rows(
        &self,
        path: &str,
        (query, key): (&[Parameter<'_>], &str),
        rows_max: usize,
        mut also: impl FnMut(&Value),
    ) -> Result<Rows, Failure> {
        let mut rows: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let limit = (rows_max - rows.len()).min(PAGE_ROWS).to_string();
            let mut query = query.to_vec();
            query.push(("limit", Some(&limit)));
            query.push(("cursor", cursor.as_deref()));
            let mut page = self.get(path, &query)?;
            also(&page);
            if let Some(Value::Array(more)) = page.get_mut(key).map(Value::take) {
                rows.extend(more);
            }
            cursor = page.get("next").and_then(Value::as_str).map(str::to_owned);
            let has_more = cursor.is_some();
            if !has_more || rows.len() >= rows_max {
                return Ok(Rows { rows, has_more });
            }
        }
    }

    /// The lines of an answer without an end, until `take` says that it has enough.
    pub(super) fn lines(
        &self,
        path: &str,
        query: &[Parameter<'_>],
        mut take: impl FnMut(&str) -> bool,
    ) -> Result<(), Failure> {
        let answer = self.checked(self.call("GET", path, query, None)?)?;
        for line in BufReader::new(answer.into_body().into_reader()).lines() {
            let line = line.map_err(|error| self.unreachable(&error.to_string()))?;
            if !take(&line) {
                return Ok(());
            }
        }
        Err(self.unreachable("the broker has ended"))
    }

    fn call(
        &self,
        method: &str,
        path: &str,
        query: &[Parameter<'_>],
        body: Option<&Value>,
    ) -> Result<Response<Body>, Failure> {
        let given = query.iter().filter_map(|(name, value)| Some((name, (*value)?)));
        let query: Vec<String> =
            given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let address = match query.is_empty() {
            true => format!("{}{path}", self.base),
            false => format!("{}{path}?{}", self.base, query.join("&")),
        };
        let mut request = Request::builder().method(method).uri(address);
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        let answer = match body {
            Some(body) => {
                let request = request.header(CONTENT_TYPE, "application/json");
                request.body(body.to_string()).map_err(Into::into).and_then(|r| self.agent.run(r))
            }
            None => {
                // Else the end of a body without a length would follow, maybe behind the answer.
                let request = match method {
                    "POST" => request.header(CONTENT_LENGTH, "0"),
                    _ => request,
                };
                request.body(()).map_err(Into::into).and_then(|r| self.agent.run(r))
            }
        };
        answer.map_err(|error: ureq::Error| self.unreachable(&error.to_string()))
    }

    /// The answer, if it is none of an error.
    fn checked(&self, answer: Response<Body>) -> Result<Response<Body>, Failure> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = self.body(answer)?;
        let error: Value = serde_json::from_str(&text).unwrap_or_default();
        let message = match error["error"]["message"].as_str() {
            Some(message) => message.to_owned(),
            // Another program may answer there.
            None => format!("{} answers {status}: is it the management API?", self.name),
        };
        let message = match error["error"]["field"].as_str() {
            Some(field) => format!("{field}: {message}"),
            None => message,
        };
        let code = match status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => exit::TARGET_UNREACHABLE,
            StatusCode::TOO_MANY_REQUESTS => exit::UNEXPECTED,
            status if status.is_client_error() => exit::INVALID_CONFIG,
            _ => exit::UNEXPECTED,
        };
        Err(Failure::new(code, message))
    }

    fn body(&self, answer: Response<Body>) -> Result<String, Failure> {
        let body = answer.into_body().into_with_config().limit(ANSWER_BYTES_MAX);
        body.read_to_string().map_err(|error| self.unreachable(&error.to_string()))
    }

    fn json(&self, answer: Response<Body>) -> Result<Value, Failure> {
        let text = self.body(self.checked(answer)?)?;
        if text.is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        serde_json::from_str(&text).map_err(|error| {
            let sentence = format!("{} answers something else than JSON: {error}", self.name);
            Failure::new(exit::TARGET_UNREACHABLE, sentence)
        })
    }

    fn unreachable(&self, why: &str) -> Failure {
        let sentence = format!("the broker at {} does not answer: {why}", self.name);
        Failure::new(exit::TARGET_UNREACHABLE, sentence)
    }
}
