//! `[access.http]`: a backend behind HTTP says whether a client may log in. There may be
//! [several](super::HttpBackends).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use tacho_access::{FieldPlace, LoginFields};
use ureq::http::{HeaderName, HeaderValue, Uri};

use super::{ConfigError, check_range};

/// Headers with secrets: in the configuration they would be shown.
const SECRET_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];
/// Headers that the request has anyway.
const OWN_HEADERS: [&str; 5] =
    ["content-length", "content-type", "host", "transfer-encoding", "connection"];

/// `[access.http]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// What listeners choose it by; without one it is for all listeners that choose none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the backend is.
    pub url: String,
    /// How it is asked.
    #[serde(default)]
    pub method: HttpMethod,
    /// How the body of a POST is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<BodyFormat>,
    /// Certificates to trust there (PEM), instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Certificate of the broker (PEM), with its chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// The private key of that certificate (PEM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Milliseconds that an answer may take, with all repetitions of the request.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u32,
    /// Milliseconds that a connection may take, with the handshake of TLS.
    #[serde(default = "connect_timeout_ms")]
    pub connect_timeout_ms: u32,
    /// Repetitions of a request that gets no answer.
    #[serde(default = "retries_max")]
    pub retries_max: u32,
    /// Requests at once, and connections.
    #[serde(default = "connections_max")]
    pub connections_max: u32,
    /// Logins that wait for these connections; more are refused.
    #[serde(default = "waiting_max")]
    pub waiting_max: u32,
    /// Seconds after which the address is looked up anew, and connections and secrets are renewed.
    #[serde(default = "reconnect_s")]
    pub reconnect_s: u32,
    /// Seconds that an answer counts that allows a login; 0: each login is asked about.
    #[serde(default = "remember_allowed_s")]
    pub remember_allowed_s: u32,
    /// The same of one that does not.
    #[serde(default = "remember_denied_s")]
    pub remember_denied_s: u32,
    /// Answers of all shards that are remembered.
    #[serde(default = "remembered_max")]
    pub remembered_max: u32,
    /// Requests without an answer, one after the other, after which none is made for a while; 0:
    /// no such pause.
    #[serde(default = "failures_max")]
    pub failures_max: u32,
    /// Seconds of that pause.
    #[serde(default = "pause_s")]
    pub pause_s: u32,
    /// What follows when there is no answer.
    #[serde(default)]
    pub on_unavailable: OnUnavailable,
    /// When the backend is asked about a user.
    #[serde(default)]
    pub order: BackendOrder,
    /// What it is sent.
    pub fields: BTreeMap<String, String>,
    /// Headers of the requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_headers: BTreeMap<String, SecretHeader>,
}

/// How a backend is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpMethod {
    /// The fields are in the body.
    #[default]
    Post,
    /// They are in the query of the URL.
    Get,
}

/// How the body of a POST is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyFormat {
    /// An object of JSON.
    #[default]
    Json,
    /// As HTML forms have it.
    Form,
}

/// What follows when a backend gives no answer that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnavailable {
    /// The login is refused (0x88).
    #[default]
    Refuse,
    /// As if it did not know the client: the next step decides.
    Ignore,
}

/// When a backend is asked about a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendOrder {
    /// Only about users that the password file does not have.
    #[default]
    Last,
    /// Before the password file, which is for clients that the backend does not know.
    First,
}

/// Where the secret value of a header is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SecretHeader {
    /// In a file.
    File {
        /// Its path.
        file: PathBuf,
        /// Before it.
        #[serde(skip_serializing_if = "String::is_empty")]
        prefix: String,
    },
    /// In a variable of the environment.
    Env {
        /// Its name.
        env: String,
        /// Before it.
        #[serde(skip_serializing_if = "String::is_empty")]
        prefix: String,
    },
    /// Something else was given, perhaps the secret itself: it is not kept.
    #[serde(skip)]
    Unknown,
}

impl<'de> Deserialize<'de> for SecretHeader {
    /// Takes anything, since an error of the parser would show it.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct SecretSource {
            file: Option<PathBuf>,
            env: Option<String>,
            #[serde(default)]
            prefix: String,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum GivenSecret {
            Source(SecretSource),
            Unknown(IgnoredAny),
        }
        Ok(match GivenSecret::deserialize(from)? {
            GivenSecret::Source(SecretSource { file: Some(file), env: None, prefix }) => {
                Self::File { file, prefix }
            }
            GivenSecret::Source(SecretSource { file: None, env: Some(env), prefix }) => {
                Self::Env { env, prefix }
            }
            GivenSecret::Source(_) | GivenSecret::Unknown(_) => Self::Unknown,
        })
    }
}

const fn timeout_ms() -> u32 {
    5_000
}

const fn connect_timeout_ms() -> u32 {
    2_000
}

const fn retries_max() -> u32 {
    2
}

const fn connections_max() -> u32 {
    8
}

const fn waiting_max() -> u32 {
    1_000
}

const fn reconnect_s() -> u32 {
    60
}

const fn remember_allowed_s() -> u32 {
    60
}

const fn remember_denied_s() -> u32 {
    5
}

const fn remembered_max() -> u32 {
    100_000
}

const fn failures_max() -> u32 {
    10
}

const fn pause_s() -> u32 {
    10
}

impl HttpSettings {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.check_url().map_err(|what| ConfigError::Http(what.to_owned()))?;
        self.check_headers().map_err(ConfigError::Http)?;
        self.fields()?;
        for (key, value, min, max, expected) in [
            ("access.http.timeout_ms", self.timeout_ms, 10, 60_000, "from 10 to 60000"),
            (
                "access.http.connect_timeout_ms",
                self.connect_timeout_ms,
                10,
                60_000,
                "from 10 to 60000",
            ),
            ("access.http.retries_max", self.retries_max, 0, 10, "at most 10"),
            ("access.http.connections_max", self.connections_max, 1, 64, "from 1 to 64"),
            ("access.http.waiting_max", self.waiting_max, 1, 100_000, "from 1 to 100000"),
            ("access.http.reconnect_s", self.reconnect_s, 1, 86_400, "from 1 to 86400"),
            ("access.http.remember_allowed_s", self.remember_allowed_s, 0, 86_400, "at most 86400"),
            ("access.http.remember_denied_s", self.remember_denied_s, 0, 86_400, "at most 86400"),
            ("access.http.remembered_max", self.remembered_max, 0, 10_000_000, "at most 10000000"),
            ("access.http.failures_max", self.failures_max, 0, 1_000, "at most 1000"),
            ("access.http.pause_s", self.pause_s, 1, 3_600, "from 1 to 3600"),
        ] {
            check_range(key, value.into(), min, max, expected)?;
        }
        Ok(())
    }

    /// What the backend is sent.
    ///
    /// # Errors
    /// A field cannot be filled in.
    pub fn fields(&self) -> Result<LoginFields, ConfigError> {
        let place = match (self.method, self.format.unwrap_or_default()) {
            (HttpMethod::Get, _) => FieldPlace::Query,
            (HttpMethod::Post, BodyFormat::Json) => FieldPlace::Json,
            (HttpMethod::Post, BodyFormat::Form) => FieldPlace::Form,
        };
        LoginFields::parse(&self.fields, place)
            .map_err(|error| ConfigError::Http(format!("`fields`: {error}")))
    }

    /// Whether requests are encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// Where the backend is, without what the URL has behind that: for the log.
    pub fn origin(&self) -> &str {
        let after_scheme = self.url.find("://").map_or(0, |at| at + 3);
        let end = self.url[after_scheme..].find(['/', '?']).map(|at| after_scheme + at);
        &self.url[..end.unwrap_or(self.url.len())]
    }

    /// The backend by its name, if it has one, and by where it is: for the log.
    pub fn shown(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.origin()),
            None => self.origin().to_owned(),
        }
    }

    fn check_url(&self) -> Result<(), &'static str> {
        const MALFORMED: &str = "`url` must begin with https:// (or http://) and a host";
        if self.url.contains('#') {
            return Err("`url` has a fragment (#...), which no server gets");
        }
        let uri: Uri = self.url.parse().map_err(|_| MALFORMED)?;
        let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
        if !is_known || uri.host().is_none_or(str::is_empty) {
            return Err(MALFORMED);
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("`url` has a user or a password, which would be visible: use \
                        `secret_headers`");
        }
        if self.method == HttpMethod::Get && self.format.is_some() {
            return Err("`format` has no use with method = \"get\": the fields are in the query");
        }
        if self.cert_file.is_some() != self.key_file.is_some() {
            return Err("`cert_file` and `key_file` belong together");
        }
        let has_tls = self.ca_file.is_some() || self.cert_file.is_some();
        match has_tls && !self.is_encrypted() {
            true => Err("`ca_file` and `cert_file` have no use without https://"),
            false => Ok(()),
        }
    }

    fn check_headers(&self) -> Result<(), String> {
        for name in self.headers.keys().chain(self.secret_headers.keys()) {
            let known = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("`{}` is no name of a header", name.escape_debug()))?;
            if OWN_HEADERS.contains(&known.as_str()) {
                return Err(format!("the header `{name}` is the request's own"));
            }
        }
        for (name, value) in &self.headers {
            if SECRET_HEADERS.contains(&&*name.to_ascii_lowercase()) {
                return Err(format!(
                    "the header `{name}` is a secret, which would be visible: name a file or a \
                     variable in `secret_headers`"
                ));
            }
            HeaderValue::from_str(value)
                .map_err(|_| format!("the value of the header `{name}` has a control character"))?;
        }
        let unknown = |(_, source): &(&String, &SecretHeader)| **source == SecretHeader::Unknown;
        match self.secret_headers.iter().find(unknown) {
            Some((name, _)) => Err(format!(
                "`secret_headers`: `{name}` must be {{ file = \"PATH\" }} or {{ env = \"NAME\" }}, \
                 with `prefix` if wanted"
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
