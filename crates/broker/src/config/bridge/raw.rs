//! `[[bridges]]` as in the configuration file, and its checks.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tacho_codec::{QoS, Version};
use tacho_net::tls::TlsClientSettings;
use tacho_topic::{Filter, TopicFilter};
use toml::Spanned;

use super::overlap::overlap;
use super::{BridgeConfig, EgressRule, IngressRule, Mapping, Password, Remote, Secret, Template};
use crate::config::ConfigError;

/// One entry of `[[bridges]]`. Values know their position in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawBridge {
    /// See [`BridgeConfig`], also for the other keys.
    pub name: Spanned<String>,
    /// `mqtt://host:port` or `mqtts://host:port`.
    pub address: Spanned<String>,
    /// `"3.1.1"` or `"5"`.
    pub version: Option<Spanned<String>>,
    /// Client identifier.
    pub client_id: Option<Spanned<String>>,
    /// User name.
    pub username: Option<String>,
    /// Password in the configuration itself.
    pub password: Option<Spanned<Secret>>,
    /// File that contains only the password.
    pub password_file: Option<Spanned<PathBuf>>,
    /// Discard the session at each connection.
    pub clean_start: Option<bool>,
    /// Expiry of the session at the remote broker.
    pub session_expiry_s: Option<Spanned<u64>>,
    /// Keep alive.
    pub keep_alive_s: Option<Spanned<u64>>,
    /// Timeout for CONNACK.
    pub connect_timeout_s: Option<Spanned<u64>>,
    /// Number of links.
    pub connections: Option<Spanned<u64>>,
    /// Unacknowledged messages per link.
    pub inflight: Option<Spanned<u64>>,
    /// Bytes of queued messages of all links.
    pub buffer_bytes_max: Option<Spanned<u64>>,
    /// Time that a message may be queued.
    pub buffer_ttl_s: Option<Spanned<u64>>,
    /// First backoff.
    pub retry_first_s: Option<Spanned<u64>>,
    /// Longest backoff.
    pub retry_longest_s: Option<Spanned<u64>>,
    /// Silence before a PINGREQ.
    pub health_check_s: Option<Spanned<u64>>,
    /// Time that a message may be unacknowledged.
    pub ack_timeout_s: Option<Spanned<u64>>,
    /// Bridges that a message may pass.
    pub hops_max: Option<Spanned<u64>>,
    /// 3.1.1: sets the bridge bit.
    pub bridge_flag: Option<Spanned<bool>>,
    /// The bridge from the remote broker to this one.
    pub counterpart: Option<Spanned<String>>,
    /// Whether it runs when the broker starts.
    pub enabled: Option<bool>,
    /// Certificates.
    pub tls: Option<Spanned<RawBridgeTls>>,
    /// Rules to the remote broker.
    #[serde(default)]
    pub egress: Vec<RawRule>,
    /// Rules from the remote broker.
    #[serde(default)]
    pub ingress: Vec<RawRule>,
}

/// `[bridges.tls]` as in the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawBridgeTls {
    /// PEM file of certificates to trust, instead of the system's.
    pub ca: Option<PathBuf>,
    /// PEM file of the client certificate, with its chain.
    pub cert: Option<PathBuf>,
    /// PEM file of its private key.
    pub key: Option<PathBuf>,
    /// Name in the certificate of the remote broker, if it is not the host in `address`.
    pub server_name: Option<String>,
    /// Accept any certificate.
    #[serde(default)]
    pub insecure: bool,
    /// Application protocols to offer.
    #[serde(default)]
    pub alpn: Vec<String>,
}

/// One entry of `[[bridges.egress]]` or `[[bridges.ingress]]` as in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRule {
    /// Topics on the source side.
    pub filter: Spanned<String>,
    /// Topic on the target side.
    pub topic: Option<Spanned<String>>,
    /// Payload on the target side.
    pub payload: Option<Spanned<String>>,
    /// `"keep"`, 0, 1 or 2.
    pub qos: Option<Spanned<toml::Value>>,
    /// `"keep"`, true or false.
    pub retain: Option<Spanned<toml::Value>>,
}

/// The file that a configuration was read from, for errors with line numbers.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// Path as given.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

impl SourceText {
    fn place(&self, at: usize) -> String {
        format!("{}:{}: ", self.path, line_of(&self.text, at))
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The line of an error, if the line may contain a password.
pub(in crate::config) fn line_of_password(text: &str, at: Option<Range<usize>>) -> Option<usize> {
    let number = line_of(text, at?.start);
    let line = text.lines().nth(number - 1)?;
    let key = line.split('=').next().unwrap_or_default();
    let key = key.trim_matches(|c: char| c.is_whitespace() || "\"'".contains(c));
    (key == "password").then_some(number)
}

const NAME_LEN_MAX: usize = 64;
/// Far above the published workload, which has 64.
const CONNECTIONS_MAX: u64 = 1_024;
/// Default of `inflight` for 5.0, where the remote broker announces its receive maximum.
const INFLIGHT: u64 = 100;
/// The default limit of mosquitto, which loses acknowledged messages of 3.1.1 clients beyond it.
const INFLIGHT_V311: u64 = 20;
/// Default of `hops_max`: five brokers in a row. With more, a loop of bridges makes more copies.
const HOPS_MAX: u64 = 4;
const DAY_S: u64 = 86_400;
const FOREVER_S: u64 = u32::MAX as u64;

/// Checks every bridge, and that bridges do not conflict.
pub(in crate::config) fn resolve(
    raw: Vec<RawBridge>,
    source: Option<&SourceText>,
) -> Result<Vec<BridgeConfig>, ConfigError> {
    let mut bridges: Vec<BridgeConfig> = Vec::with_capacity(raw.len());
    for bridge in raw {
        let name = bridge.name.clone();
        let twice = bridges.iter().any(|other| other.name == *name.get_ref());
        let resolved = match twice {
            true => Err(problem(name.span(), "there is another bridge with this name".to_owned())),
            false => bridge.resolve(),
        };
        let resolved = resolved.and_then(|bridge| {
            match bridges
                .iter()
                .find_map(|other| bridge.identifier_shared_with(other).map(|id| (id, &other.name)))
            {
                None => Ok(bridge),
                Some((id, other)) => Err(problem(
                    name.span(),
                    format!(
                        "bridge `{other}` uses the client identifier `{id}` at the same broker, so \
                     they would disconnect each other: set another `client_id`"
                    ),
                )),
            }
        });
        bridges.push(resolved.map_err(|Problem { at, what }| ConfigError::Bridge {
            place: source.map(|source| source.place(at.start)).unwrap_or_default(),
            name: name.into_inner(),
            what,
        })?);
    }
    Ok(bridges)
}

/// A problem and its position in the file.
struct Problem {
    at: Range<usize>,
    what: String,
}

fn problem(at: Range<usize>, what: impl Into<String>) -> Problem {
    Problem { at, what: what.into() }
}

/// A number, checked against its range, or the default.
fn number(
    key: &str,
    value: Option<Spanned<u64>>,
    default: u64,
    (min, max): (u64, u64),
) -> Result<u64, Problem> {
    let Some(value) = value else { return Ok(default) };
    let (at, value) = (value.span(), value.into_inner());
    match (min..=max).contains(&value) {
        true => Ok(value),
        false => Err(problem(at, format!("`{key}` is {value}, but must be from {min} to {max}"))),
    }
}

fn number_u32(
    key: &str,
    value: Option<Spanned<u64>>,
    default: u64,
    range: (u64, u64),
) -> Result<u32, Problem> {
    // Invariant: the ranges of all such keys are within `u32`.
    number(key, value, default, range).map(|value| u32::try_from(value).unwrap_or(u32::MAX))
}

fn number_u16(
    key: &str,
    value: Option<Spanned<u64>>,
    default: u64,
    range: (u64, u64),
) -> Result<u16, Problem> {
    // Invariant: the ranges of all such keys are within `u16`.
    number(key, value, default, range).map(|value| u16::try_from(value).unwrap_or(u16::MAX))
}

impl RawBridge {
    fn resolve(self) -> Result<BridgeConfig, Problem> {
        self.check_name_and_rules()?;
        let here = self.name.span();
        let version = version(self.version)?;
        check_version(version, self.session_expiry_s.as_ref(), self.bridge_flag.as_ref())?;
        let password = password(self.password, self.password_file)?;
        if password.is_some() && self.username.is_none() && !version.is_v5() {
            return Err(problem(here, "3.1.1 allows no password without a `username`"));
        }
        let clean_start = self.clean_start.unwrap_or(false);
        let session_expiry_default = if version.is_v5() && !clean_start { DAY_S } else { 0 };
        let inflight_default = if version.is_v5() { INFLIGHT } else { INFLIGHT_V311 };
        let (retry_first_s, retry_longest_s) =
            backoff(&here, self.retry_first_s, self.retry_longest_s)?;
        let range = (65_536, u64::MAX >> 1);
        let buffer_bytes_max = number("buffer_bytes_max", self.buffer_bytes_max, 1 << 30, range)?;
        let session_expiry_s = number_u32(
            "session_expiry_s",
            self.session_expiry_s,
            session_expiry_default,
            (0, FOREVER_S),
        )?;
        let connections = number_u16("connections", self.connections, 1, (1, CONNECTIONS_MAX))?;
        let health_check_s = number_u32("health_check_s", self.health_check_s, 15, (0, 65_535))?;
        let connect_timeout_s =
            number_u32("connect_timeout_s", self.connect_timeout_s, 10, (1, 3_600))?;
        Ok(BridgeConfig {
            remote: remote(self.address, self.tls)?,
            version,
            client_id: client_id(self.client_id, self.name.get_ref())?,
            username: self.username,
            password,
            clean_start,
            session_expiry_s,
            keep_alive_s: number_u16("keep_alive_s", self.keep_alive_s, 60, (0, 65_535))?,
            connect_timeout_s,
            connections,
            inflight: number_u16("inflight", self.inflight, inflight_default, (1, 65_535))?,
            buffer_bytes_max,
            buffer_ttl_s: number_u32("buffer_ttl_s", self.buffer_ttl_s, 0, (0, FOREVER_S))?,
            retry_first_s,
            retry_longest_s,
            health_check_s,
            hops_max: number_u32("hops_max", self.hops_max, HOPS_MAX, (0, 255))?,
            ack_timeout_s: number_u32("ack_timeout_s", self.ack_timeout_s, 15, (0, DAY_S))?,
            bridge_flag: self.bridge_flag.map_or_else(|| !version.is_v5(), Spanned::into_inner),
            counterpart: counterpart(self.counterpart)?,
            enabled: self.enabled.unwrap_or(true),
            is_stored: false,
            egress: egress(self.egress)?,
            ingress: ingress(self.ingress, version)?,
            name: self.name.into_inner(),
        })
    }

    fn check_name_and_rules(&self) -> Result<(), Problem> {
        let name = self.name.get_ref();
        // Characters without a meaning in topics, file names and labels.
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > NAME_LEN_MAX || !name.chars().all(plain) {
            let what = "`name` must be 1 to 64 letters, digits, `.`, `_` or `-`";
            return Err(problem(self.name.span(), what));
        }
        if self.egress.is_empty() && self.ingress.is_empty() {
            let what = "it has no rules: add [[bridges.egress]] or [[bridges.ingress]]";
            return Err(problem(self.name.span(), what));
        }
        Ok(())
    }
}

/// Checks settings that only one of the versions has.
fn check_version(
    version: Version,
    session_expiry_s: Option<&Spanned<u64>>,
    bridge_flag: Option<&Spanned<bool>>,
) -> Result<(), Problem> {
    match (version.is_v5(), session_expiry_s, bridge_flag) {
        (false, Some(expiry), _) => {
            let what = "`session_expiry_s` requires version 5: a 3.1.1 session ends with its \
                        connection (clean_start = true) or never";
            Err(problem(expiry.span(), what))
        }
        (true, _, Some(flag)) => Err(problem(flag.span(), "`bridge_flag` requires version 3.1.1")),
        _ => Ok(()),
    }
}

/// The first and the longest backoff. `here` is the position of the bridge.
fn backoff(
    here: &Range<usize>,
    first_s: Option<Spanned<u64>>,
    longest_s: Option<Spanned<u64>>,
) -> Result<(u32, u32), Problem> {
    let first_s = number_u32("retry_first_s", first_s, 1, (1, DAY_S))?;
    let longest_at = longest_s.as_ref().map_or_else(|| here.clone(), Spanned::span);
    let default_s = u64::from(first_s).max(30);
    let longest_s = number_u32("retry_longest_s", longest_s, default_s, (1, DAY_S))?;
    if longest_s < first_s {
        return Err(problem(longest_at, "`retry_longest_s` is shorter than `retry_first_s`"));
    }
    Ok((first_s, longest_s))
}

fn counterpart(id: Option<Spanned<String>>) -> Result<Option<String>, Problem> {
    match id {
        Some(id) if id.get_ref().is_empty() => {
            Err(problem(id.span(), "`counterpart` must not be empty: omit it for none"))
        }
        id => Ok(id.map(Spanned::into_inner)),
    }
}

fn version(version: Option<Spanned<String>>) -> Result<Version, Problem> {
    let Some(version) = version else { return Ok(Version::V5) };
    match version.get_ref().as_str() {
        "5" | "5.0" => Ok(Version::V5),
        "3.1.1" => Ok(Version::V311),
        other => {
            let what = format!("`version` is \"{other}\", but must be \"5\" or \"3.1.1\"");
            Err(problem(version.span(), what))
        }
    }
}

fn remote(address: Spanned<String>, tls: Option<Spanned<RawBridgeTls>>) -> Result<Remote, Problem> {
    let (mut remote, secure) = Remote::parse(address.get_ref())
        .map_err(|what| problem(address.span(), format!("`address`: {what}")))?;
    match tls {
        Some(tls) if !secure => {
            Err(problem(tls.span(), "it has [bridges.tls], but its address is not mqtts://"))
        }
        None if !secure => Ok(remote),
        tls => {
            let at = tls.as_ref().map_or_else(|| address.span(), Spanned::span);
            let tls = tls.map(Spanned::into_inner).unwrap_or_default();
            if tls.cert.is_some() != tls.key.is_some() {
                return Err(problem(at, "`cert` and `key` must be set together"));
            }
            if tls.insecure && tls.ca.is_some() {
                return Err(problem(
                    at,
                    "`insecure` accepts any certificate, so `ca` has no effect",
                ));
            }
            remote.tls = Some(TlsClientSettings {
                ca: tls.ca,
                cert: tls.cert,
                key: tls.key,
                insecure: tls.insecure,
                server_name: tls.server_name.unwrap_or_else(|| remote.host.clone()),
                alpn: tls.alpn,
                full_handshakes: false,
            });
            Ok(remote)
        }
    }
}

fn password(
    given: Option<Spanned<Secret>>,
    file: Option<Spanned<PathBuf>>,
) -> Result<Option<Password>, Problem> {
    match (given, file) {
        (None, None) => Ok(None),
        (Some(secret), None) => Ok(Some(Password { secret: secret.into_inner(), file: None })),
        (Some(_), Some(file)) => {
            Err(problem(file.span(), "set `password` or `password_file`, not both"))
        }
        (None, Some(file)) => {
            let secret =
                read_password(file.get_ref()).map_err(|what| problem(file.span(), what))?;
            Ok(Some(Password { secret, file: Some(file.into_inner()) }))
        }
    }
}

/// A password of 65,535 bytes and a line end: no more is read.
const PASSWORD_FILE_MAX: u64 = 65_537;

fn read_password(path: &Path) -> Result<Secret, String> {
    use std::io::Read as _;
    let cannot = |error| format!("cannot read the `password_file` {}: {error}", path.display());
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(PASSWORD_FILE_MAX).read_to_string(&mut text))
        .map_err(cannot)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    match line {
        "" => Err(format!("the `password_file` {} is empty", path.display())),
        _ if line.contains('\n') || line.len() > 65_535 => {
            Err(format!("the `password_file` {} contains more than a password", path.display()))
        }
        _ => Ok(Secret::new(line)),
    }
}

/// Longer ones are refused by brokers with low limits, ours included.
const CLIENT_ID_LEN_MAX: usize = 1_000;

fn client_id(given: Option<Spanned<String>>, name: &str) -> Result<String, Problem> {
    let Some(id) = given else { return Ok(format!("tacho-{name}")) };
    let text = id.get_ref();
    match text.is_empty() || text.len() > CLIENT_ID_LEN_MAX || text.contains('\0') {
        true => {
            Err(problem(id.span(), "`client_id` must have 1 to 1000 bytes and no null character"))
        }
        false => Ok(id.into_inner()),
    }
}

fn egress(raw: Vec<RawRule>) -> Result<Vec<EgressRule>, Problem> {
    let mut rules: Vec<EgressRule> = Vec::with_capacity(raw.len());
    for rule in raw {
        let (at, text) = (rule.filter.span(), rule.filter.get_ref().clone());
        if text.starts_with("$share/") {
            let what = "an egress `filter` cannot be a shared subscription: each message \
                            leaves by the bridge once in any case";
            return Err(problem(at, what));
        }
        let filter = TopicFilter::parse(&text)
            .map_err(|error| problem(at.clone(), format!("`filter` is \"{text}\": {error}")))?;
        let others = rules.iter().map(|rule| rule.filter.as_str());
        check_alone(&text, others, at)?;
        rules.push(EgressRule { filter, mapping: rule.mapping()? });
    }
    Ok(rules)
}

fn ingress(raw: Vec<RawRule>, version: Version) -> Result<Vec<IngressRule>, Problem> {
    let mut rules: Vec<IngressRule> = Vec::with_capacity(raw.len());
    for rule in raw {
        let (at, text) = (rule.filter.span(), rule.filter.get_ref().clone());
        let filter = Filter::parse(&text)
            .map_err(|error| problem(at.clone(), format!("`filter` is \"{text}\": {error}")))?;
        if filter.is_shared() && !version.is_v5() {
            return Err(problem(at, "a shared subscription as `filter` requires version 5"));
        }
        let others = rules.iter().map(|rule| rule.filter.topic_filter().as_str());
        check_alone(filter.topic_filter().as_str(), others, at)?;
        let topic_at = rule.topic.as_ref().map_or_else(|| rule.filter.span(), Spanned::span);
        let mapping = rule.mapping()?;
        if mapping.topic.to_string().starts_with("$SYS/") {
            return Err(problem(topic_at, "`topic`: `$SYS/` is reserved for this broker"));
        }
        rules.push(IngressRule { filter, mapping });
    }
    Ok(rules)
}

/// At most one rule applies to a message, so that its mapping is unambiguous.
fn check_alone<'a>(
    filter: &str,
    mut others: impl Iterator<Item = &'a str>,
    at: Range<usize>,
) -> Result<(), Problem> {
    match others.find(|other| overlap(filter, other)) {
        None => Ok(()),
        Some(other) => Err(problem(
            at,
            format!(
                "the filters `{other}` and `{filter}` overlap: make them disjoint, or use two \
                 bridges"
            ),
        )),
    }
}

impl RawRule {
    fn mapping(self) -> Result<Mapping, Problem> {
        let topic = template("topic", self.topic, Template::same_topic(), true)?;
        let payload = template("payload", self.payload, Template::same_payload(), false)?;
        Ok(Mapping { topic, payload, qos: qos(self.qos)?, retain: retain(self.retain)? })
    }
}

fn template(
    key: &str,
    given: Option<Spanned<String>>,
    default: Template,
    is_topic: bool,
) -> Result<Template, Problem> {
    let Some(text) = given else { return Ok(default) };
    let parsed: Result<Template, _> = text.get_ref().parse();
    let checked = parsed.and_then(|template| {
        if is_topic {
            template.check_topic()?;
        }
        Ok(template)
    });
    checked.map_err(|error| {
        problem(text.span(), format!("`{key}` is \"{}\": {error}", text.get_ref()))
    })
}

fn qos(given: Option<Spanned<toml::Value>>) -> Result<Option<QoS>, Problem> {
    let Some(value) = given else { return Ok(None) };
    let level = |level: i64| u8::try_from(level).ok().and_then(QoS::from_u8);
    match value.get_ref() {
        toml::Value::String(word) if word == "keep" => Ok(None),
        toml::Value::Integer(number) if level(*number).is_some() => Ok(level(*number)),
        other => {
            let what = format!("`qos` is {other}, but must be \"keep\", 0, 1 or 2");
            Err(problem(value.span(), what))
        }
    }
}

fn retain(given: Option<Spanned<toml::Value>>) -> Result<Option<bool>, Problem> {
    let Some(value) = given else { return Ok(None) };
    match value.get_ref() {
        toml::Value::String(word) if word == "keep" => Ok(None),
        toml::Value::Boolean(flag) => Ok(Some(*flag)),
        other => {
            let what = format!("`retain` is {other}, but must be \"keep\", true or false");
            Err(problem(value.span(), what))
        }
    }
}
