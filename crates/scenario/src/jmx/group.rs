//! Thread groups and their samplers.

use super::timer::Throughput;
use super::value::Value;
use super::values::Values;
use super::xml::Element;

/// Length of a client identifier with a random suffix, as mqtt-jmeter makes it.
const CLIENT_ID_CHARS: usize = 23;

/// An enabled thread group.
#[derive(Debug)]
pub(super) struct ThreadGroup {
    pub(super) name: String,
    pub(super) line: u32,
    /// Threads, and how a scenario writes them.
    pub(super) threads: u32,
    pub(super) threads_written: String,
    /// Ramp-up in seconds, and how a scenario writes it when it is a variable.
    pub(super) ramp_s: u32,
    pub(super) ramp_written: Option<String>,
    /// How long the plan's scheduler lets it run.
    pub(super) duration_s: Option<u32>,
    pub(super) connect: Option<ConnectSampler>,
    pub(super) streams: Vec<Stream>,
    pub(super) subscriptions: Vec<Subscription>,
}

/// A connect sampler.
#[derive(Debug)]
pub(super) struct ConnectSampler {
    pub(super) line: u32,
    pub(super) broker: Broker,
    pub(super) client_id: Value,
    pub(super) username: Value,
    pub(super) password: Value,
    pub(super) keep_alive_s: Value,
    pub(super) clean_session: bool,
    pub(super) timeout_s: f64,
    /// Attempts after the end of a connection, or to open it; 0 is none.
    pub(super) attempts: u32,
    /// Connections of each thread, and whether they come from the sampler for several.
    pub(super) connections: u32,
    pub(super) is_efficient: bool,
    /// Settings that it requests and that are not supported.
    pub(super) problem: Option<String>,
}

/// Which broker, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broker {
    pub(super) server: Value,
    pub(super) port: Value,
    pub(super) scheme: &'static str,
    pub(super) path: String,
    pub(super) version: &'static str,
}

/// A pub sampler.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) topic: Value,
    pub(super) qos: Value,
    pub(super) retain: bool,
    pub(super) content: Content,
    /// Time stamp and separator in front, where messages look as JMeter's.
    pub(super) timestamp: bool,
    /// The next message waits for the acknowledgement of the last one.
    pub(super) waits: bool,
    pub(super) pace: Pace,
    /// Messages that each client sends; without end when absent.
    pub(super) count: Option<u64>,
}

/// The content of publications.
#[derive(Debug)]
pub(super) enum Content {
    /// Random text of this length.
    Random(Value),
    /// This text.
    Text(Value),
    /// This text, which the plan has in hexadecimal digits.
    Bytes(String),
}

/// The pacing of a stream by its timers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pace {
    /// A rate, and how many samplers share it.
    pub(super) throughput: Option<(Throughput, u32)>,
    /// Random arrivals per second of the group, and how many samplers share them.
    pub(super) arrivals: Option<(f64, u32)>,
    /// Pauses of one turn of the loop.
    pub(super) pause_ms: f64,
    /// Pauses are drawn anew each time.
    pub(super) random_pause: bool,
}

/// A topic of a sub sampler.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) filter: Value,
    pub(super) qos: Value,
}

impl ThreadGroup {
    /// Reads the properties of a thread group.
    ///
    /// # Errors
    /// A sentence, when a property cannot be evaluated.
    pub(super) fn read(element: &Element, values: &mut Values) -> Result<Self, String> {
        let (threads, threads_variable) = count(element, "ThreadGroup.num_threads", values)?;
        let (ramp_s, ramp_variable) = count(element, "ThreadGroup.ramp_time", values)?;
        let ramp_written = ramp_variable.map(|name| format!("{{{{{name}}}}}"));
        let scheduled = element.flag("ThreadGroup.scheduler");
        let duration = match scheduled && !element.text("ThreadGroup.duration").trim().is_empty() {
            true => Some(count(element, "ThreadGroup.duration", values)?.0),
            false => None,
        };
        if scheduled && !matches!(element.text("ThreadGroup.delay").trim(), "" | "0") {
            values.note(format!(
                "Thread group '{}': its start-up delay is left out; load begins when all clients \
                 are ready.",
                element.name
            ));
        }
        Ok(Self {
            name: element.name.clone(),
            line: element.line,
            threads,
            threads_written: threads_variable
                .map_or_else(|| threads.to_string(), |name| format!("\"{{{{{name}}}}}\"")),
            ramp_s,
            ramp_written,
            duration_s: duration.filter(|seconds| *seconds > 0),
            connect: None,
            streams: Vec::new(),
            subscriptions: Vec::new(),
        })
    }
}

/// A whole number as JMeter reads it: other text is 0.
fn count(
    element: &Element,
    property: &str,
    values: &mut Values,
) -> Result<(u32, Option<String>), String> {
    let text = element.text(property);
    let value = values.evaluate(text)?;
    let fixed = value.fixed().ok_or_else(|| format!("'{text}' differs from client to client"))?;
    if fixed.is_empty() {
        return Ok((0, None));
    }
    match fixed.parse::<i32>() {
        Ok(number) => Ok((
            u32::try_from(number).unwrap_or(0),
            value.variable().filter(|_| number >= 0).map(str::to_owned),
        )),
        Err(_) => {
            let what = property.trim_start_matches("ThreadGroup.");
            values.note(format!(
                "Line {}: thread group '{}': {what} '{text}' is '{fixed}', which is not a whole \
                 number. JMeter takes 0, and so does this run.",
                element.line, element.name
            ));
            Ok((0, None))
        }
    }
}

impl ConnectSampler {
    /// Reads a connect sampler of a group of `threads` clients.
    ///
    /// # Errors
    /// A sentence, when a property cannot be evaluated or is not supported.
    pub(super) fn read(element: &Element, values: &mut Values) -> Result<Self, String> {
        let connections = connections(element, values)?;
        let keep_alive_s = values.evaluate(element.text("mqtt.conn_keep_alive"))?;
        let timeout = values.fixed(element.text("mqtt.conn_timeout"))?;
        let attempts = attempts(element, values)?;
        let broker = Broker::read(element, values)?;
        let encrypted = matches!(broker.scheme, "mqtts" | "wss");
        let problem = match encrypted && element.flag("mqtt.dual_ssl_authentication") {
            true => Some(no_certificate(&values.fixed(element.text("mqtt.clientcert_file_path"))?)),
            false => None,
        };
        let clean_session = values.fixed(element.text("mqtt.conn_clean_session"))?;
        Ok(Self {
            line: element.line,
            broker,
            client_id: client_id(element, values)?,
            attempts,
            connections,
            is_efficient: element.class == EFFICIENT,
            username: values.evaluate(element.text("mqtt.user_name"))?,
            password: values.evaluate(element.text("mqtt.password"))?,
            keep_alive_s,
            clean_session: !clean_session.trim().eq_ignore_ascii_case("false"),
            timeout_s: timeout.trim().parse().unwrap_or(10.0),
            problem,
        })
    }
}

/// Class of the sampler with which a thread opens several connections.
pub(super) const EFFICIENT: &str = "net.xmeter.samplers.EfficientConnectSampler";

/// Most connections of a thread; there is no use for more.
const CONNECTIONS_MAX: u32 = 1_000_000;

/// Connections that a thread opens; from now on its number is that of all of them.
fn connections(element: &Element, values: &mut Values) -> Result<u32, String> {
    if element.class != EFFICIENT {
        return Ok(1);
    }
    let text = values.fixed(element.get("mqtt.conn_capacity").unwrap_or("1"))?;
    match text.trim().parse() {
        Ok(count @ 1..=CONNECTIONS_MAX) => {
            values.share_threads(count);
            Ok(count)
        }
        _ => Err(format!(
            "'mqtt.conn_capacity' is '{text}', not a number of connections up to {CONNECTIONS_MAX}"
        )),
    }
}

/// The more generous of the two numbers of attempts: a client has one. Older plans have the names
/// misspelt.
fn attempts(element: &Element, values: &mut Values) -> Result<u32, String> {
    let mut most = 0;
    for (fixed, misspelt) in [
        ("mqtt.conn_attempt_max", "mqtt.conn_attampt_max"),
        ("mqtt.reconn_attempt_max", "mqtt.reconn_attampt_max"),
    ] {
        let text = element.get(fixed).or_else(|| element.get(misspelt)).unwrap_or("0");
        let text = values.fixed(text)?;
        let attempts = match text.trim() {
            "" => 0,
            "-1" => u32::MAX,
            text => text.parse().map_err(|_| {
                format!("'{fixed}' is '{text}': write a number, or -1 for attempts without end")
            })?,
        };
        most = most.max(attempts);
    }
    if most > 0 {
        values.note(format!(
            "Line {}: '{}': clients connect again, with pauses that double from 100 ms to 10 s; \
             the larger one of the plan's two numbers of attempts holds.",
            element.line, element.name
        ));
    }
    Ok(most)
}

fn no_certificate(file: &str) -> String {
    format!(
        "its client certificate '{file}' is a PKCS#12 file, which is not read. Convert it: 'openssl \
         pkcs12 -in FILE -nokeys -out cert.pem' and 'openssl pkcs12 -in FILE -nocerts -nodes -out \
         key.pem'; then 'tacho convert --ignore-unknown' the plan and give its target tls = {{ \
         insecure = true, cert = \"cert.pem\", key = \"key.pem\" }}"
    )
}

impl Broker {
    fn read(element: &Element, values: &mut Values) -> Result<Self, String> {
        let protocol = values.fixed(element.text("mqtt.protocol"))?;
        let scheme = match protocol.trim().to_ascii_uppercase().as_str() {
            "" | "TCP" => "mqtt",
            "SSL" => "mqtts",
            "WS" => "ws",
            "WSS" => "wss",
            _ => return Err(format!("there is no protocol '{protocol}'")),
        };
        let path = match scheme {
            "ws" | "wss" => values.fixed(element.text("mqtt.ws_path"))?.trim().to_owned(),
            _ => String::new(),
        };
        let version = values.fixed(element.text("mqtt.version"))?;
        Ok(Self {
            server: values.evaluate(element.text("mqtt.server"))?,
            port: values.evaluate(element.text("mqtt.port"))?,
            scheme,
            path: if path.is_empty() || path.starts_with('/') { path } else { format!("/{path}") },
            version: match version.trim() {
                "3.1" => "3.1",
                "" | "3.1.1" => "3.1.1",
                "5" | "5.0" => "5",
                _ => return Err(format!("there is no MQTT version '{version}'")),
            },
        })
    }
}

fn client_id(element: &Element, values: &mut Values) -> Result<Value, String> {
    let prefix = values.evaluate(element.text("mqtt.client_id_prefix"))?;
    if !element.flag("mqtt.client_id_suffix") {
        return match prefix.is_blank() {
            true => Ok(values.hex(CLIENT_ID_CHARS)),
            false if element.class == EFFICIENT => {
                let number = values.connection_of_thread();
                Ok(prefix.then(Value::text("-xmeter-suffix-")).then(number))
            }
            false => Ok(prefix),
        };
    }
    let Some(fixed) = prefix.fixed() else {
        // How long it gets is not known here; eight digits keep clients apart.
        return Ok(prefix.then(values.hex(8)));
    };
    match CLIENT_ID_CHARS.checked_sub(fixed.chars().count()) {
        Some(0) => Ok(prefix),
        Some(digits) => Ok(prefix.then(values.hex(digits))),
        None => Err(format!(
            "its client id prefix '{fixed}' is longer than {CLIENT_ID_CHARS} characters"
        )),
    }
}

impl Stream {
    /// Reads a pub sampler; its pace comes from the timers around it.
    ///
    /// # Errors
    /// A sentence, when a property cannot be evaluated or is not supported.
    pub(super) fn read(element: &Element, values: &mut Values) -> Result<Self, String> {
        let kind = values.fixed(element.text("mqtt.message_type"))?;
        let content = match kind.trim() {
            "" | "String" => Content::Text(values.message(element.text("mqtt.message_to_sent"))?),
            "Hex string" => {
                let digits = values.fixed(element.text("mqtt.message_to_sent"))?;
                Content::Bytes(text_of_hex(digits.trim())?)
            }
            "Random string with fixed length" => {
                Content::Random(values.evaluate(element.text("mqtt.message_type_fixed_length"))?)
            }
            other => return Err(format!("there is no message type '{other}'")),
        };
        Ok(Self {
            topic: topic(element, values)?,
            qos: values.evaluate(element.text("mqtt.qos_level"))?,
            retain: element.flag("mqtt.retained_message"),
            content,
            timestamp: element.flag("mqtt.add_timestamp"),
            waits: !element.flag("mqtt.pub_inflight"),
            pace: Pace::default(),
            count: None,
        })
    }
}

/// The text that hexadecimal digits stand for.
fn text_of_hex(digits: &str) -> Result<String, String> {
    let broken = || "its message is not a string of hexadecimal pairs".to_owned();
    let values: Vec<u8> = digits
        .chars()
        .map(|digit| digit.to_digit(16).map(|value| value as u8))
        .collect::<Option<_>>()
        .ok_or_else(broken)?;
    let (pairs, rest) = values.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(broken());
    }
    let bytes = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains("{{"))
        .ok_or_else(|| "its message is not text; use a scenario with payload.file".to_owned())
}

impl Subscription {
    /// Reads the topics of a sub sampler.
    ///
    /// # Errors
    /// A sentence, when a property cannot be evaluated.
    pub(super) fn read(element: &Element, values: &mut Values) -> Result<Vec<Self>, String> {
        let qos = values.evaluate(element.text("mqtt.qos_level"))?;
        let filters = topic(element, values)?.split(',');
        let filters = filters.into_iter().filter(|filter| !filter.is_blank());
        Ok(filters.map(|filter| Self { filter, qos: qos.clone() }).collect())
    }
}

fn topic(element: &Element, values: &mut Values) -> Result<Value, String> {
    let topic = values.evaluate(element.text("mqtt.topic_name"))?;
    match topic.is_blank() {
        true => Err("it has no topic".to_owned()),
        false => Ok(topic),
    }
}
