//! Scenarios defined by their name: `1.2k_1.2k_qos2_p32_100mps`, as the BifroMQ report has
//! them.

use super::error::SourceText;
use super::limits::PAYLOAD_BYTES_MIN;

/// A name of the grammar `[true_|false_][share_]<pubs>_<subs>_qos<q>_p<bytes>_<n>mps`, taken apart.
///
/// `k` stands for a thousand, decimals are allowed. `true_` and `false_` say whether sessions are
/// clean; without either they are. Prefixes may come in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkName {
    /// As written.
    pub name: String,
    /// Clean session.
    pub clean_session: bool,
    /// All subscribers share one subscription.
    pub share: bool,
    /// Publishing clients.
    pub publishers: u32,
    /// Subscribing clients.
    pub subscribers: u32,
    /// QoS of publications and subscriptions.
    pub qos: u8,
    /// Bytes.
    pub payload_size: u32,
    /// Messages per second of each publisher.
    pub per_publisher: f64,
}

/// How the names are built, for messages.
pub const BENCHMARK_GRAMMAR: &str = "[true_|false_][share_]<publishers>_<subscribers>_qos<0|1|2>_p<bytes>_<messages per \
     second of each publisher>mps";

/// Connections per second while the clients of such a scenario connect.
const CONNECTS_PER_SECOND: u32 = 2000;

impl BenchmarkName {
    /// Takes a name apart; `None` when it does not look like one at all.
    ///
    /// # Errors
    /// A sentence that names the part that is wrong.
    pub fn parse(name: &str) -> Option<Result<Self, String>> {
        let (prefixes, parts) = split(name);
        let number = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
        let counts = parts.iter().take(2).filter(|part| number(part)).count();
        let looks_like_one = !name.contains(['/', '\\'])
            && (counts == 2 || (counts == 1 && parts.iter().any(|part| part.starts_with("qos"))));
        looks_like_one.then(|| {
            Self::from_parts(name, &prefixes, &parts)
                .map_err(|sentence| format!("'{name}': {sentence}; names are {BENCHMARK_GRAMMAR}"))
        })
    }

    fn from_parts(name: &str, prefixes: &[&str], parts: &[&str]) -> Result<Self, String> {
        let (mut clean_session, mut share) = (None, false);
        for prefix in prefixes {
            match *prefix {
                "share" if !share => share = true,
                "true" if clean_session.is_none() => clean_session = Some(true),
                "false" if clean_session.is_none() => clean_session = Some(false),
                _ => return Err(format!("unexpected prefix '{prefix}_'")),
            }
        }
        if let Some(extra) = parts.get(5) {
            return Err(format!("unexpected '{extra}' after the rate"));
        }
        let part = |index: usize, what: &str| {
            parts.get(index).copied().ok_or_else(|| format!("{what} is missing at the end"))
        };
        let publishers = count(part(0, "the number of publishers")?, "the number of publishers")?;
        let subscribers =
            count(part(1, "the number of subscribers")?, "the number of subscribers")?;
        let qos = part(2, "the QoS ('qos1')")?;
        let qos = match qos.strip_prefix("qos") {
            Some("0") => 0,
            Some("1") => 1,
            Some("2") => 2,
            Some(other) => return Err(format!("there is no QoS '{other}', only 0, 1 and 2")),
            None => return Err(format!("expected the QoS ('qos1'), not '{qos}'")),
        };
        let payload = part(3, "the payload ('p1024')")?;
        let payload_size = match payload.strip_prefix('p').map(value) {
            Some(Some(bytes)) => whole(bytes).ok_or_else(|| {
                format!("'{payload}' is not a payload: it must be a whole number of bytes")
            })?,
            _ => return Err(format!("expected the payload ('p1024'), not '{payload}'")),
        };
        if u64::from(payload_size) < PAYLOAD_BYTES_MIN {
            return Err(format!(
                "a payload of {payload_size} bytes is too small to measure, at least {} are needed",
                PAYLOAD_BYTES_MIN
            ));
        }
        let rate = part(4, "the rate ('50mps')")?;
        let per_publisher = match rate.strip_suffix("mps").map(value) {
            Some(Some(rate)) if rate > 0.0 => rate,
            Some(Some(_)) => return Err("at a rate of 0 no messages are published".to_owned()),
            _ => return Err(format!("expected the rate ('50mps'), not '{rate}'")),
        };
        Ok(Self {
            name: name.to_owned(),
            clean_session: clean_session.unwrap_or(true),
            share,
            publishers,
            subscribers,
            qos,
            payload_size,
            per_publisher,
        })
    }

    /// The scenario as a file.
    ///
    /// As many publishers as subscribers are pairs; of more subscribers than publishers each one
    /// listens to one publisher, and the other way round; with `share_` the subscribers share all
    /// messages among them.
    pub fn source(&self) -> SourceText {
        let Self { name, publishers, subscribers, qos, payload_size, per_publisher, .. } = self;
        let (how, topic, filter) = if self.share {
            ("each message goes to one of all subscribers", "{{i}}", "+")
        } else if publishers == subscribers {
            ("each publisher has its own subscriber", "{{i}}", "{{i}}")
        } else if publishers < subscribers {
            ("each subscriber listens to one publisher", "{{i}}", "{{i % publishers}}")
        } else {
            ("each subscriber listens to several publishers", "{{i % subscribers}}", "{{i}}")
        };
        let share = if self.share { "$share/group/" } else { "" };
        let (session, expiry) = match self.clean_session {
            true => ("clean sessions", "0s"),
            false => ("sessions that outlive their connections", "1h"),
        };
        let clean = self.clean_session;
        let ramp = publishers.max(subscribers).div_ceil(CONNECTS_PER_SECOND).max(2);
        let text = format!(
            r#"# {publishers} publishers, {subscribers} subscribers: {how}.

name = "{name}"
description = "{publishers} to {subscribers}, QoS {qos}, {payload_size} bytes, {per_publisher}/s each, {session}."

[vars]
publishers = {publishers}  # clients that publish
subscribers = {subscribers}  # clients that subscribe
qos = {qos}  # of the publications: 0, 1 or 2
payload_size = {payload_size}  # bytes, at least 24
rate = {per_publisher}  # messages per second of each publisher
ramp_up = "{ramp}s"     # all clients connect within this time
warmup = "5s"           # sent and received, but not counted
duration = "30s"        # counted

[target]
version = "3.1.1"

[groups.pub]
clients = "{{{{publishers}}}}"
client_id = "{name}_pub_{{{{machine}}}}_{{{{i}}}}"
connect = {{ ramp = "{{{{ramp_up}}}}", clean_start = {clean}, session_expiry = "{expiry}" }}

[[groups.pub.publish]]
topic = "{name}/{topic}"
qos = "{{{{qos}}}}"
rate = {{ per_client = "{{{{rate}}}}" }}
payload = {{ size = "{{{{payload_size}}}}" }}

[groups.sub]
clients = "{{{{subscribers}}}}"
client_id = "{name}_sub_{{{{machine}}}}_{{{{i}}}}"
connect = {{ ramp = "{{{{ramp_up}}}}", clean_start = {clean}, session_expiry = "{expiry}" }}

[[groups.sub.subscribe]]
filter = "{share}{name}/{filter}"
qos = "{{{{qos}}}}"

[phases]
warmup = "{{{{warmup}}}}"
measure = "{{{{duration}}}}"
"#
        );
        SourceText::new(&format!("{name}.toml (by its name)"), &text)
    }
}

/// The prefixes that are words, and the rest.
fn split(name: &str) -> (Vec<&str>, Vec<&str>) {
    let mut parts: Vec<&str> = name.split('_').collect();
    let prefixes = parts
        .iter()
        .take_while(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphabetic()))
        .count();
    let rest = parts.split_off(prefixes);
    (parts, rest)
}

/// `100`, `1k`, `1.2k`.
fn value(text: &str) -> Option<f64> {
    let (digits, factor) = text.strip_suffix(['k', 'K']).map_or((text, 1.0), |rest| (rest, 1e3));
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    digits.parse::<f64>().ok().filter(|_| plain).map(|number| number * factor)
}

fn whole(value: f64) -> Option<u32> {
    let rounded = value.round();
    ((value - rounded).abs() < 1e-6 && rounded <= 1e9).then_some(rounded as u32)
}

fn count(text: &str, what: &str) -> Result<u32, String> {
    match value(text).and_then(whole) {
        Some(0) => Err(format!("{what} cannot be 0")),
        Some(count) => Ok(count),
        None => Err(format!("'{text}' is not {what}: write 100, 1k or 1.2k")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Result<BenchmarkName, String> {
        BenchmarkName::parse(name).expect(name)
    }

    #[test]
    fn names_are_taken_apart() {
        let name = parse("1.2k_1.2k_qos2_p32_100mps").expect("parses");
        assert_eq!((name.publishers, name.subscribers, name.qos), (1200, 1200, 2));
        assert_eq!((name.payload_size, name.per_publisher), (32, 100.0));
        assert!(name.clean_session && !name.share);
        let name = parse("false_share_5k_50_qos0_p1k_0.5mps").expect("parses");
        assert!(!name.clean_session && name.share);
        assert_eq!((name.subscribers, name.payload_size, name.per_publisher), (50, 1000, 0.5));
        assert!(parse("true_1_1k_qos1_p32_1mps").expect("parses").clean_session);
    }

    #[test]
    fn prefixes_come_in_any_order() {
        let published = parse("share_false_5k_50_qos0_p1k_0.5mps").expect("parses");
        assert!(!published.clean_session && published.share);
    }

    #[test]
    fn wrong_names_are_explained() {
        for (name, words) in [
            ("1k_1k_qos3_p32_1mps", "no QoS '3'"),
            ("1k_1k_q1_p32_1mps", "expected the QoS ('qos1'), not 'q1'"),
            ("1k_1k_qos1_32_1mps", "expected the payload ('p1024'), not '32'"),
            ("1k_1k_qos1_p32", "the rate ('50mps') is missing"),
            ("1k_1k_qos1_p32_1", "expected the rate ('50mps'), not '1'"),
            ("1k_1k_qos1_p32_0mps", "at a rate of 0"),
            ("1k_1k_qos1_p8_1mps", "8 bytes is too small"),
            ("1k_1k_qos1_p32.5_1mps", "whole number of bytes"),
            ("1k_1k_qos1_p32_1mps_more", "unexpected 'more' after the rate"),
            ("1x_1k_qos1_p32_1mps", "'1x' is not the number of publishers"),
            ("1k_0_qos1_p32_1mps", "the number of subscribers cannot be 0"),
            ("1k_qos1_p32_1mps", "'qos1' is not the number of subscribers"),
            ("maybe_1k_1k_qos1_p32_1mps", "unexpected prefix 'maybe_'"),
            ("share_share_1k_1k_qos1_p32_1mps", "unexpected prefix 'share_'"),
            ("true_false_1k_1k_qos1_p32_1mps", "unexpected prefix 'false_'"),
            ("1.0001_1k_qos1_p32_1mps", "'1.0001' is not the number of publishers"),
        ] {
            let error = parse(name).expect_err(name);
            assert!(error.contains(words) && error.contains("names are"), "{name}: {error}");
        }
    }

    #[test]
    fn other_names_are_left_alone() {
        for other in ["symmetric", "fan-in", "my_test.toml", "runs/1k_1k_qos1_p32_1mps", "7"] {
            assert!(BenchmarkName::parse(other).is_none(), "{other}");
        }
    }
}
