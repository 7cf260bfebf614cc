//! `[[bridges]]` as typed, and how it becomes what will run.

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

/// One entry of `[[bridges]]`. Values know where they stand in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawBridge {
    /// See [`BridgeConfig`], also for the others.
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
    /// File that holds nothing but the password.
    pub password_file: Option<Spanned<PathBuf>>,
    /// Forget the session at each connection.
    pub clean_start: Option<bool>,
    /// Of the session there.
    pub session_expiry_s: Option<Spanned<u64>>,
    /// Towards the other broker.
    pub keep_alive_s: Option<Spanned<u64>>,
    /// Until CONNACK.
    pub connect_timeout_s: Option<Spanned<u64>>,
    /// How many.
    pub connections: Option<Spanned<u64>>,
    /// Per connection.
    pub inflight: Option<Spanned<u64>>,
    /// Over all connections.
    pub buffer_bytes_max: Option<Spanned<u64>>,
    /// Of a message.
    pub buffer_ttl_s: Option<Spanned<u64>>,
    /// First pause.
    pub retry_first_s: Option<Spanned<u64>>,
    /// Longest pause.
    pub retry_longest_s: Option<Spanned<u64>>,
    /// Silence that raises a question.
    pub health_check_s: Option<Spanned<u64>>,
    /// 3.1.1: says that it is a bridge.
    pub bridge_flag: Option<Spanned<bool>>,
    /// The other broker's own bridge to here.
    pub counterpart: Option<Spanned<String>>,
    /// Certificates.
    pub tls: Option<Spanned<RawBridgeTls>>,
    /// From here to there.
    #[serde(default)]
    pub egress: Vec<RawRule>,
    /// From there to here.
    #[serde(default)]
    pub ingress: Vec<RawRule>,
}

/// `[bridges.tls]` as typed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawBridgeTls {
    /// PEM file of certificates to trust, instead of the system's.
    pub ca: Option<PathBuf>,
    /// PEM file of the bridge's own certificate, with its chain.
    pub cert: Option<PathBuf>,
    /// PEM file of its private key.
    pub key: Option<PathBuf>,
    /// The name that the other broker's certificate must have, instead of the host in `address`.
    pub server_name: Option<String>,
    /// Take any certificate for good.
    #[serde(default)]
    pub insecure: bool,
    /// Application protocols to offer.
    #[serde(default)]
    pub alpn: Vec<String>,
}

/// One entry of `[[bridges.egress]]` or `[[bridges.ingress]]` as typed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRule {
    /// Which messages, on the side where they come from.
    pub filter: Spanned<String>,
    /// Their topic on the other side.
    pub topic: Option<Spanned<String>>,
    /// Their payload on the other side.
    pub payload: Option<Spanned<String>>,
    /// `"keep"`, 0, 1 or 2.
    pub qos: Option<Spanned<toml::Value>>,
    /// `"keep"`, true or false.
    pub retain: Option<Spanned<toml::Value>>,
}

/// The file that a configuration was read from, to say where in it something is wrong.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// As given.
    pub path: String,
    /// What it says.
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

/// The line with an error in it, if a password may stand there.
pub(in crate::config) fn line_of_password(text: &str, at: Option<Range<usize>>) -> Option<usize> {
    let number = line_of(text, at?.start);
    let line = text.lines().nth(number - 1)?;
    let key = line.split('=').next().unwrap_or_default();
    let key = key.trim_matches(|c: char| c.is_whitespace() || "\"'".contains(c));
    (key == "password").then_some(number)
}

const NAME_LEN_MAX: usize = 64;
/// What a broker is sure to hold open for one peer; the published workload has 64.
const CONNECTIONS_MAX: u64 = 1_024;
/// Messages in flight to a broker that says how many it takes, and to one that cannot.
const INFLIGHT: u64 = 100;
/// mosquitto's limit unless configured; 3.1.1 clients beyond it lose what it has acknowledged.
const INFLIGHT_V311: u64 = 20;
const DAY_S: u64 = 86_400;
const FOREVER_S: u64 = u32::MAX as u64;

/// Checks all bridges, each by itself and against the others.
pub(in crate::config) fn resolve(
    raw: Vec<RawBridge>,
    source: Option<&SourceText>,
) -> Result<Vec<BridgeConfig>, ConfigError> {
    let mut bridges: Vec<BridgeConfig> = Vec::with_capacity(raw.len());
    for bridge in raw {
        let name = bridge.name.clone();
        let twice = bridges.iter().any(|other| other.name == *name.get_ref());
        let resolved = match twice {
            true => Err(wrong(name.span(), "there is another bridge of this name".to_owned())),
            false => bridge.resolve(),
        };
        let resolved = resolved.and_then(|bridge| match bridges.iter().find_map(|other| {
            bridge.identifier_shared_with(other).map(|id| (id, &other.name))
        }) {
            None => Ok(bridge),
            Some((id, other)) => Err(wrong(
                name.span(),
                format!(
                    "bridge `{other}` has the client identifier `{id}` at the same broker, too: \
                     they would throw each other out; give this one another `client_id`"
                ),
            )),
        });
        bridges.push(resolved.map_err(|Wrong { at, what }| ConfigError::Bridge {
            place: source.map(|source| source.place(at.start)).unwrap_or_default(),
            name: name.into_inner(),
            what,
        })?);
    }
    Ok(bridges)
}

/// Something that cannot be, and where it stands.
struct Wrong {
    at: Range<usize>,
    what: String,
}

fn wrong(at: Range<usize>, what: impl Into<String>) -> Wrong {
    Wrong { at, what: what.into() }
}

/// A number within its range, or its default.
fn number(
    key: &str,
    value: Option<Spanned<u64>>,
    default: u64,
    (min, max): (u64, u64),
) -> Result<u64, Wrong> {
    let Some(value) = value else { return Ok(default) };
    let (at, value) = (value.span(), value.into_inner());
    match (min..=max).contains(&value) {
        true => Ok(value),
        false => Err(wrong(at, format!("`{key}` is {value}, but must be from {min} to {max}"))),
    }
}

impl RawBridge {
    fn resolve(self) -> Result<BridgeConfig, Wrong> {
        let here = self.name.span();
        let name = self.name.into_inner();
        // Letters and signs that mean nothing in topics, file names and labels.
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > NAME_LEN_MAX || !name.chars().all(plain) {
            let sentence = "`name` must be 1 to 64 letters, digits, `.`, `_` or `-`";
            return Err(wrong(here, sentence));
        }
        if self.egress.is_empty() && self.ingress.is_empty() {
            let sentence = "it moves nothing: add [[bridges.egress]] or [[bridges.ingress]]";
            return Err(wrong(here, sentence));
        }
        let version = version(self.version)?;
        let remote = remote(self.address, self.tls)?;
        let username = self.username;
        let password = password(self.password, self.password_file)?;
        if password.is_some() && username.is_none() && !version.is_v5() {
            return Err(wrong(here, "3.1.1 takes no password without a `username`"));
        }
        let clean_start = self.clean_start.unwrap_or(false);
        if let (Some(expiry), false) = (&self.session_expiry_s, version.is_v5()) {
            let sentence = "`session_expiry_s` needs version 5: a 3.1.1 session ends with its \
                            connection (clean_start = true) or not at all";
            return Err(wrong(expiry.span(), sentence));
        }
        if let (Some(flag), true) = (&self.bridge_flag, version.is_v5()) {
            return Err(wrong(flag.span(), "`bridge_flag` needs version 3.1.1"));
        }
        let bridge_flag = self.bridge_flag.map_or_else(|| !version.is_v5(), Spanned::into_inner);
        let retry_first_s = number("retry_first_s", self.retry_first_s, 1, (1, DAY_S))?;
        let longest_at = self.retry_longest_s.as_ref().map_or_else(|| here.clone(), Spanned::span);
        let default = retry_first_s.max(30);
        let retry_longest_s = number("retry_longest_s", self.retry_longest_s, default, (1, DAY_S))?;
        if retry_longest_s < retry_first_s {
            let sentence = "`retry_longest_s` is shorter than `retry_first_s`";
            return Err(wrong(longest_at, sentence));
        }
        let session_expiry_s = match (version.is_v5(), clean_start) {
            (true, false) => DAY_S,
            _ => 0,
        };
        let inflight = if version.is_v5() { INFLIGHT } else { INFLIGHT_V311 };
        let client_id = client_id(self.client_id, &name)?;
        // Invariant: the ranges say that the numbers fit.
        #[allow(clippy::cast_possible_truncation)]
        Ok(BridgeConfig {
            remote,
            version,
            client_id,
            username,
            password,
            clean_start,
            session_expiry_s: number(
                "session_expiry_s",
                self.session_expiry_s,
                session_expiry_s,
                (0, FOREVER_S),
            )? as u32,
            keep_alive_s: number("keep_alive_s", self.keep_alive_s, 60, (0, 65_535))? as u16,
            connect_timeout_s: number("connect_timeout_s", self.connect_timeout_s, 10, (1, 3_600))?
                as u32,
            connections: number("connections", self.connections, 1, (1, CONNECTIONS_MAX))? as u16,
            inflight: number("inflight", self.inflight, inflight, (1, 65_535))? as u16,
            buffer_bytes_max: number(
                "buffer_bytes_max",
                self.buffer_bytes_max,
                1 << 30,
                (65_536, u64::MAX >> 1),
            )?,
            buffer_ttl_s: number("buffer_ttl_s", self.buffer_ttl_s, 0, (0, FOREVER_S))? as u32,
            retry_first_s: retry_first_s as u32,
            retry_longest_s: retry_longest_s as u32,
            health_check_s: number("health_check_s", self.health_check_s, 15, (0, 65_535))? as u32,
            bridge_flag,
            counterpart: counterpart(self.counterpart)?,
            egress: egress(self.egress)?,
            ingress: ingress(self.ingress, version)?,
            name,
        })
    }
}

fn counterpart(id: Option<Spanned<String>>) -> Result<Option<String>, Wrong> {
    match id {
        Some(id) if id.get_ref().is_empty() => {
            Err(wrong(id.span(), "`counterpart` must not be empty: leave it out for none"))
        }
        id => Ok(id.map(Spanned::into_inner)),
    }
}

fn version(version: Option<Spanned<String>>) -> Result<Version, Wrong> {
    let Some(version) = version else { return Ok(Version::V5) };
    match version.get_ref().as_str() {
        "5" | "5.0" => Ok(Version::V5),
        "3.1.1" => Ok(Version::V311),
        other => {
            let sentence = format!("`version` is \"{other}\", but must be \"5\" or \"3.1.1\"");
            Err(wrong(version.span(), sentence))
        }
    }
}

fn remote(address: Spanned<String>, tls: Option<Spanned<RawBridgeTls>>) -> Result<Remote, Wrong> {
    let (mut remote, secure) = Remote::parse(address.get_ref())
        .map_err(|what| wrong(address.span(), format!("`address`: {what}")))?;
    match tls {
        Some(tls) if !secure => {
            Err(wrong(tls.span(), "it has [bridges.tls], but its address is not mqtts://"))
        }
        None if !secure => Ok(remote),
        tls => {
            let at = tls.as_ref().map_or_else(|| address.span(), Spanned::span);
            let tls = tls.map(Spanned::into_inner).unwrap_or_default();
            if tls.cert.is_some() != tls.key.is_some() {
                return Err(wrong(at, "`cert` and `key` go together"));
            }
            if tls.insecure && tls.ca.is_some() {
                return Err(wrong(at, "`insecure` takes any certificate, so `ca` has no use"));
            }
            remote.tls = Some(TlsClientSettings {
                ca: tls.ca,
                cert: tls.cert,
                key: tls.key,
                insecure: tls.insecure,
                server_name: tls.server_name.unwrap_or_else(|| remote.host.clone()),
                alpn: tls.alpn,
            });
            Ok(remote)
        }
    }
}

fn password(
    given: Option<Spanned<Secret>>,
    file: Option<Spanned<PathBuf>>,
) -> Result<Option<Password>, Wrong> {
    match (given, file) {
        (None, None) => Ok(None),
        (Some(secret), None) => Ok(Some(Password { secret: secret.into_inner(), file: None })),
        (Some(_), Some(file)) => {
            Err(wrong(file.span(), "`password` and `password_file` are the same thing twice"))
        }
        (None, Some(file)) => {
            let secret = read_password(file.get_ref()).map_err(|what| wrong(file.span(), what))?;
            Ok(Some(Password { secret, file: Some(file.into_inner()) }))
        }
    }
}

/// A password of 65,535 bytes and an end of line, beyond which nothing is read.
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
            Err(format!("the `password_file` {} holds more than a password", path.display()))
        }
        _ => Ok(Secret::new(line)),
    }
}

/// Longer ones are refused by brokers that keep to what everybody must take, or to our limits.
const CLIENT_ID_LEN_MAX: usize = 1_000;

fn client_id(given: Option<Spanned<String>>, name: &str) -> Result<String, Wrong> {
    let Some(id) = given else { return Ok(format!("tacho-{name}")) };
    let text = id.get_ref();
    match text.is_empty() || text.len() > CLIENT_ID_LEN_MAX || text.contains('\0') {
        true => Err(wrong(id.span(), "`client_id` must have 1 to 1000 bytes, none of them null")),
        false => Ok(id.into_inner()),
    }
}

fn egress(raw: Vec<RawRule>) -> Result<Vec<EgressRule>, Wrong> {
    let mut rules: Vec<EgressRule> = Vec::with_capacity(raw.len());
    for rule in raw {
        let (at, text) = (rule.filter.span(), rule.filter.get_ref().clone());
        if text.starts_with("$share/") {
            let sentence = "an egress `filter` cannot be a shared subscription: each message of \
                            the broker leaves by the bridge once anyway";
            return Err(wrong(at, sentence));
        }
        let filter = TopicFilter::parse(&text)
            .map_err(|error| wrong(at.clone(), format!("`filter` is \"{text}\": {error}")))?;
        let others = rules.iter().map(|rule| rule.filter.as_str());
        check_alone(&text, others, at)?;
        rules.push(EgressRule { filter, mapping: rule.mapping()? });
    }
    Ok(rules)
}

fn ingress(raw: Vec<RawRule>, version: Version) -> Result<Vec<IngressRule>, Wrong> {
    let mut rules: Vec<IngressRule> = Vec::with_capacity(raw.len());
    for rule in raw {
        let (at, text) = (rule.filter.span(), rule.filter.get_ref().clone());
        let filter = Filter::parse(&text)
            .map_err(|error| wrong(at.clone(), format!("`filter` is \"{text}\": {error}")))?;
        if filter.is_shared() && !version.is_v5() {
            return Err(wrong(at, "a shared subscription as `filter` needs version 5"));
        }
        let others = rules.iter().map(|rule| rule.filter.topic_filter().as_str());
        check_alone(filter.topic_filter().as_str(), others, at)?;
        let topic_at = rule.topic.as_ref().map_or_else(|| rule.filter.span(), Spanned::span);
        let mapping = rule.mapping()?;
        if mapping.topic.to_string().starts_with("$SYS/") {
            return Err(wrong(topic_at, "`topic`: `$SYS/` is this broker's own"));
        }
        rules.push(IngressRule { filter, mapping });
    }
    Ok(rules)
}

/// One message takes one rule, so that it is clear what becomes of it.
fn check_alone<'a>(
    filter: &str,
    mut others: impl Iterator<Item = &'a str>,
    at: Range<usize>,
) -> Result<(), Wrong> {
    match others.find(|other| overlap(filter, other)) {
        None => Ok(()),
        Some(other) => Err(wrong(
            at,
            format!(
                "the filters `{other}` and `{filter}` have topics in common: which of them goes \
                 for those? Make them disjoint, or make two bridges"
            ),
        )),
    }
}

impl RawRule {
    fn mapping(self) -> Result<Mapping, Wrong> {
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
) -> Result<Template, Wrong> {
    let Some(text) = given else { return Ok(default) };
    let parsed: Result<Template, _> = text.get_ref().parse();
    let checked = parsed.and_then(|template| {
        if is_topic {
            template.check_topic()?;
        }
        Ok(template)
    });
    checked
        .map_err(|error| wrong(text.span(), format!("`{key}` is \"{}\": {error}", text.get_ref())))
}

fn qos(given: Option<Spanned<toml::Value>>) -> Result<Option<QoS>, Wrong> {
    let Some(value) = given else { return Ok(None) };
    let level = |level: i64| u8::try_from(level).ok().and_then(QoS::from_u8);
    match value.get_ref() {
        toml::Value::String(word) if word == "keep" => Ok(None),
        toml::Value::Integer(number) if level(*number).is_some() => Ok(level(*number)),
        other => {
            let sentence = format!("`qos` is {other}, but must be \"keep\", 0, 1 or 2");
            Err(wrong(value.span(), sentence))
        }
    }
}

fn retain(given: Option<Spanned<toml::Value>>) -> Result<Option<bool>, Wrong> {
    let Some(value) = given else { return Ok(None) };
    match value.get_ref() {
        toml::Value::String(word) if word == "keep" => Ok(None),
        toml::Value::Boolean(flag) => Ok(Some(*flag)),
        other => {
            let sentence = format!("`retain` is {other}, but must be \"keep\", true or false");
            Err(wrong(value.span(), sentence))
        }
    }
}
