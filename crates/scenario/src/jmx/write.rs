//! Thread groups as the text of a scenario file.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::bridge;
use super::credentials::{self, RowsTaken};
use super::error::PlanError;
use super::group::{Broker, ConnectSampler, Content, Stream, Subscription, ThreadGroup};
use super::number::number_text;
use super::quoted::quoted;
use super::timer::Mode;
use super::value::Value;
use super::values::{Values, Variable, scenario_name};
use super::walk::Walked;
use crate::jmx_options::{Pacing, PayloadStyle};
use crate::{Adjustment, Scenario, SourceText, VarValue};

/// Length of the measured phase of a plan that says nothing about it.
const MEASURE_S: u32 = 30;
/// Length of the warm-up when nothing else is said.
const WARMUP_S: u32 = 5;
/// Messages under way of a publisher that nothing paces and that waits for nothing.
const WINDOW_UNPACED: u32 = 100;

/// Writes the scenario; its notes are in the text and returned.
///
/// # Errors
/// When a value cannot be written.
pub(super) fn write(
    walked: Walked,
    plan: &SourceText,
    adjustment: &Adjustment,
) -> Result<(String, Vec<String>), PlanError> {
    let threads = walked.groups.iter().map(|group| u64::from(group.threads)).sum();
    let mut writer = Writer {
        adjustment,
        machines: adjustment.machines.unwrap_or(1).max(1),
        threads,
        values: walked.values,
        brokers: Vec::new(),
        streams_end_after_s: Vec::new(),
        rows_taken: RowsTaken::new(),
        text: String::new(),
    };
    for group in &walked.groups {
        if let Some(connect) = &group.connect {
            writer.broker(&connect.broker)?;
        }
    }
    let mut names = BTreeSet::new();
    for group in &walked.groups {
        let name = unique(&scenario_name(&group.name), &mut names);
        writer.group(&name, group)?;
    }
    let groups = std::mem::take(&mut writer.text);
    writer.phases(&walked.groups);
    let phases = std::mem::take(&mut writer.text);
    let mut targets = writer.targets()?;
    targets.push_str(&writer.bridges(&walked.groups)?);
    Ok(document(plan, writer, &[&targets, &phases, &groups]))
}

/// Puts the parts of the file together.
fn document(plan: &SourceText, writer: Writer<'_>, parts: &[&str]) -> (String, Vec<String>) {
    let file = plan.name.rsplit(['/', '\\']).next().unwrap_or(&plan.name);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let machines = writer.machines;
    let (notes, variables) = writer.values.finish();
    let mut text = format!("# From the JMeter plan {file}.\n");
    for note in &notes {
        let _ = writeln!(text, "#\n# {}", note.replace('\n', "\n# "));
    }
    let _ = writeln!(text, "\nname = {}", quoted(&scenario_name(&stem.to_lowercase())));
    let _ = writeln!(text, "description = {}", quoted(&format!("JMeter plan {file}")));
    if machines > 1 {
        let _ = writeln!(text, "machines = {machines}");
    }
    text.push_str(&variable_section(&variables));
    for part in parts {
        text.push_str(part);
    }
    (text, notes)
}

/// `[vars]`, with descriptions as comments; nothing without variables.
pub(super) fn variable_section(variables: &[Variable]) -> String {
    let mut text = String::new();
    if !variables.is_empty() {
        text.push_str("\n[vars]\n");
    }
    for variable in variables {
        let value = match &variable.value {
            VarValue::Text(value) => quoted(value),
            // `{:?}` of a float always has a point.
            VarValue::Float(value) => format!("{value:?}"),
            other => other.to_string(),
        };
        let description = variable.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let comment =
            if description.is_empty() { String::new() } else { format!("  # {description}") };
        let _ = writeln!(text, "{} = {value}{comment}", variable.name);
    }
    text
}

struct Writer<'a> {
    adjustment: &'a Adjustment,
    machines: u32,
    /// Threads of all groups.
    threads: u64,
    values: Values,
    brokers: Vec<(String, Broker)>,
    /// For each stream, when it has sent all that it has to send, if ever.
    streams_end_after_s: Vec<Option<f64>>,
    rows_taken: RowsTaken,
    text: String,
}

/// The rate of a stream, in the scenario's words and as a number.
struct StreamRate {
    key: &'static str,
    written: String,
    per_client: f64,
    from: Timed,
}

/// Which timer gives a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timed {
    Throughput,
    Arrivals,
    Pause,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Gives a broker a name, if it has none yet.
    fn broker(&mut self, broker: &Broker) -> Result<(), PlanError> {
        if self.brokers.iter().any(|(_, known)| known == broker) {
            return Ok(());
        }
        let taken = |name: &str| self.brokers.iter().any(|(known, _)| known == name);
        let number = self.brokers.len() + 1;
        let name = match broker.server.variable() {
            Some(name) if !taken(name) && name != Scenario::DEFAULT_TARGET => name.to_owned(),
            _ => format!("node{number}"),
        };
        let name = if taken(&name) { format!("broker-{number}") } else { name };
        if broker.server.fixed().is_none() || broker.port.fixed().is_none() {
            return Err(PlanError::new("a broker's address cannot differ from client to client"));
        }
        if matches!(broker.scheme, "mqtts" | "wss") {
            self.values.note(
                "Certificates of the broker are not verified, as in mqtt-jmeter: the target has \
                 tls.insecure = true.",
            );
        }
        self.brokers.push((name, broker.clone()));
        Ok(())
    }

    /// `[target]`, or `[targets.*]` for several brokers.
    fn targets(&self) -> Result<String, PlanError> {
        let mut text = String::new();
        for (name, broker) in &self.brokers {
            let _ = match self.brokers.len() {
                1 => writeln!(text, "\n[target]"),
                _ => writeln!(text, "\n[targets.{name}]"),
            };
            // An address of IPv6 has colons of its own.
            let bare = |host: &String| host.contains(':') && !host.starts_with('[');
            let server = template(&broker.server)?;
            let url = format!(
                "{}://{}:{}{}",
                broker.scheme,
                if broker.server.fixed().is_some_and(|host| bare(&host)) {
                    format!("[{server}]")
                } else {
                    server
                },
                template(&broker.port)?,
                broker.path
            );
            let _ = writeln!(text, "broker = {}", quoted(&url));
            let _ = writeln!(text, "version = {}", quoted(broker.version));
            if matches!(broker.scheme, "mqtts" | "wss") {
                let _ = writeln!(text, "tls = {{ insecure = true }}");
            }
        }
        Ok(text)
    }

    /// `[[bridges]]`: the forwarding that the plan assumes.
    fn bridges(&mut self, groups: &[ThreadGroup]) -> Result<String, PlanError> {
        let broker_of = |group: &ThreadGroup| {
            let broker = &group.connect.as_ref()?.broker;
            self.brokers.iter().position(|(_, known)| known == broker)
        };
        let bridges = bridge::implied(groups, broker_of).map_err(PlanError::new)?;
        let mut text = String::new();
        for bridge in bridges {
            let (from, to) = (&self.brokers[bridge.from].0, &self.brokers[bridge.to].0);
            let _ = writeln!(text, "\n[[bridges]]\nfrom = {}\nto = {}", quoted(from), quoted(to));
            let _ = writeln!(text, "filter = {}", quoted(&bridge.filter));
            for (key, value) in [("strip", &bridge.strip), ("prefix", &bridge.prefix)] {
                if !value.is_empty() {
                    let _ = writeln!(text, "{key} = {}", quoted(value));
                }
            }
            let (from, to) = (from.clone(), to.clone());
            let change = match (bridge.strip.as_str(), bridge.prefix.as_str()) {
                ("", "") => "unchanged".to_owned(),
                ("", prefix) => format!("prefixed with '{prefix}'"),
                (strip, _) => format!("without '{strip}'"),
            };
            self.values.note(format!(
                "Broker {from} must forward '{}' to {to}, {change}: subscribers there expect it.",
                bridge.filter
            ));
        }
        Ok(text)
    }

    fn group(&mut self, name: &str, group: &ThreadGroup) -> Result<(), PlanError> {
        // Invariant: groups without a connect sampler are not in the list.
        let Some(connect) = &group.connect else { return Ok(()) };
        let error = |error: PlanError| match error.line {
            None => error.on_line(group.line),
            Some(_) => error,
        };
        self.line(&format!("\n[groups.{name}]"));
        match connect.connections {
            1 => self.line(&format!("clients = {}", group.threads_written)),
            connections => {
                let clients = u64::from(group.threads) * u64::from(connections);
                self.line(&format!("clients = {clients}"));
                self.values.note(format!(
                    "Group '{}': {} threads with {connections} connections each are {clients} \
                     clients.",
                    group.name, group.threads
                ));
            }
        }
        self.credentials(group, connect)?;
        if self.brokers.len() > 1
            && let Some((broker, _)) = self.brokers.iter().find(|(_, b)| *b == connect.broker)
        {
            let line = format!("target = {}", quoted(broker));
            self.line(&line);
        }
        self.inflight(group);
        self.connect(group, connect).map_err(|e| e.on_line(connect.line))?;
        for stream in &group.streams {
            self.stream(name, group, stream).map_err(error)?;
        }
        for subscription in &group.subscriptions {
            self.subscription(name, subscription).map_err(error)?;
        }
        Ok(())
    }

    /// How many messages of a client may be without acknowledgement.
    fn inflight(&mut self, group: &ThreadGroup) {
        let acknowledged = |stream: &&Stream| stream.qos.fixed().as_deref() != Some("0");
        let mut streams = group.streams.iter().filter(acknowledged).peekable();
        if streams.peek().is_none() {
            return;
        }
        match (self.adjustment.jmx.inflight, streams.any(|stream| stream.waits)) {
            (Some(1), _) | (None, true) => self.line(
                "inflight = 1  # each message waits for the acknowledgement of the previous one",
            ),
            (Some(window), _) => self.line(&format!("inflight = {window}")),
            (None, false) => self.values.note(
                "Samplers with mqtt.pub_inflight publish without waiting for acknowledgements. The \
                 public mqtt-jmeter plugin does not know this setting: its threads wait for each \
                 acknowledgement. --jmx-inflight 1 does so too.",
            ),
        }
    }

    /// Whether each message of a stream waits for the acknowledgement of the one before.
    fn waits(&self, stream: &Stream) -> bool {
        self.adjustment.jmx.inflight.map_or(stream.waits, |window| window == 1)
    }

    /// Client ids, and the file that has them or the credentials.
    fn credentials(
        &mut self,
        group: &ThreadGroup,
        connect: &ConnectSampler,
    ) -> Result<(), PlanError> {
        if connect.client_id.column().is_none() {
            let line = format!("client_id = {}", quoted(&template(&connect.client_id)?));
            self.line(&line);
        }
        let threads = u64::from(group.threads);
        let sets = self.values.data_sets();
        let lines = credentials::lines(connect, threads, self.machines, sets, &mut self.rows_taken)
            .map_err(|title| PlanError::new(title).on_line(connect.line))?;
        lines.iter().for_each(|line| self.line(line));
        Ok(())
    }

    fn connect(&mut self, group: &ThreadGroup, connect: &ConnectSampler) -> Result<(), PlanError> {
        let ramp = self.ramp(group);
        self.line(&format!("connect.ramp = {}", quoted(&ramp)));
        self.line(&format!("connect.clean_start = {}", connect.clean_session));
        let keep_alive = match connect.keep_alive_s.is_blank() {
            true => "0s".to_owned(),
            false => format!("{}s", template(&connect.keep_alive_s)?.trim()),
        };
        self.line(&format!("connect.keep_alive = {}", quoted(&keep_alive)));
        if connect.attempts > 0 {
            self.line(&format!("reconnect.attempts = {}", connect.attempts));
        }
        for (key, value) in [("username", &connect.username), ("password", &connect.password)] {
            if !value.is_blank() && value.column().is_none() {
                let line = format!("connect.{key} = {}", quoted(&template(value)?));
                self.line(&line);
            }
        }
        Ok(())
    }

    /// How long all clients of the group take to start: JMeter rounds the step between two
    /// threads of a machine to whole milliseconds.
    fn ramp(&self, group: &ThreadGroup) -> String {
        let threads = u64::from(group.threads / self.machines).max(1);
        let (ramp_ms, written) = match self.adjustment.ramp_up {
            Some(span) => (span.0.as_secs_f64() * 1e3, None),
            None => (f64::from(group.ramp_s) * 1e3, group.ramp_written.as_ref()),
        };
        let step_ms = (ramp_ms / threads as f64).round();
        let rounded_ms = step_ms * threads as f64;
        match written {
            Some(written) if rounded_ms == ramp_ms => format!("{written}s"),
            _ => format!("{}ms", number_text(rounded_ms)),
        }
    }

    fn stream(
        &mut self,
        name: &str,
        group: &ThreadGroup,
        stream: &Stream,
    ) -> Result<(), PlanError> {
        self.note_one_machine(&stream.topic);
        self.line(&format!("\n[[groups.{name}.publish]]"));
        self.line(&format!("topic = {}", quoted(&template(&stream.topic)?)));
        self.line(&format!("qos = {}", number(&stream.qos, "QoS")?));
        if stream.retain {
            self.line("retain = true");
        }
        let rate = self.rate(group, stream);
        let end = match (&rate, stream.count) {
            (Some(rate), Some(count)) => Some(count as f64 / rate.per_client),
            _ => None,
        };
        self.streams_end_after_s.push(end);
        match rate {
            Some(rate) => {
                self.line(&format!("rate = {{ {} = {} }}", rate.key, rate.written));
                self.model(stream, &rate);
            }
            None => {
                let own = if stream.waits { 1 } else { WINDOW_UNPACED };
                let window = self.adjustment.jmx.inflight.map_or(own, u32::from);
                self.values.note(format!(
                    "Group '{}': no timer paces its messages: each client keeps {window} in flight.",
                    group.name
                ));
                self.line(&format!("model = \"closed\"\nwindow = {window}"));
            }
        }
        self.payload(stream)
    }

    /// How messages follow each other at that rate, where that is not evenly.
    fn model(&mut self, stream: &Stream, rate: &StreamRate) {
        match rate.from {
            Timed::Arrivals => self.line("model = \"poisson\""),
            Timed::Throughput if self.adjustment.jmx.pacing == Pacing::Jmeter => {
                let wait = self.waits(stream);
                self.line(&format!("model = \"jmeter\"\nwait = {wait}"));
            }
            Timed::Throughput | Timed::Pause => {}
        }
    }

    fn payload(&mut self, stream: &Stream) -> Result<(), PlanError> {
        let jmeter = self.adjustment.jmx.payload == PayloadStyle::Jmeter;
        let text = match &stream.content {
            Content::Random(size) => {
                let size = number(size, "a message's length")?;
                if jmeter {
                    let timestamp = stream.timestamp;
                    self.line(&format!(
                        "payload = {{ kind = \"jmeter\", size = {size}, timestamp = {timestamp} }}"
                    ));
                    return Ok(());
                }
                if stream.timestamp {
                    self.values.note(
                        "Messages have as many bytes as the plan says. JMeter puts a time stamp of \
                         24 bytes in front; --jmx-payload jmeter does so too.",
                    );
                }
                self.line(&format!("payload = {{ size = {size} }}"));
                return Ok(());
            }
            Content::Text(text) => template(text)?,
            Content::Bytes(text) => text.clone(),
        };
        self.values.note(
            "Messages of given text have 44 more characters behind it: they tell which message it \
             is, so that deliveries are verified.",
        );
        let stamp = if jmeter && stream.timestamp { "{{time_ms}}ts_sep_flag" } else { "" };
        self.line(&format!("payload = {{ text = {} }}", quoted(&format!("{stamp}{text}"))));
        Ok(())
    }

    /// The rate that the timers give a stream; `None` when there are none.
    fn rate(&mut self, group: &ThreadGroup, stream: &Stream) -> Option<StreamRate> {
        let timed = self.timed_rate(group, stream);
        let pause_ms = stream.pace.pause_ms;
        if pause_ms <= 0.0 {
            return timed;
        }
        if stream.pace.random_pause {
            self.values.note(
                "Random pauses become constant ones of the same mean; JMeter draws each pause.",
            );
        }
        let per_client = 1e3 / pause_ms;
        match timed {
            Some(rate) if rate.per_client <= per_client => Some(rate),
            _ => Some(StreamRate {
                key: "per_client",
                written: number_text(per_client),
                per_client,
                from: Timed::Pause,
            }),
        }
    }

    fn timed_rate(&mut self, group: &ThreadGroup, stream: &Stream) -> Option<StreamRate> {
        let machines = f64::from(self.machines);
        let threads = f64::from(group.threads.max(1));
        let total = |per_second: f64, from| StreamRate {
            key: "total",
            written: number_text(per_second),
            per_client: per_second / threads,
            from,
        };
        let from = Timed::Throughput;
        if let Some((throughput, shared_by)) = &stream.pace.throughput {
            let shared_by = f64::from((*shared_by).max(1));
            let each_machine = !throughput.shared_by_machines && throughput.mode != Mode::Thread;
            let factor = if each_machine { machines } else { 1.0 } / shared_by;
            if each_machine && self.machines > 1 {
                self.values.note(format!(
                    "Group '{}': each of the {} machines has the whole throughput, since the plan \
                     does not divide it by __xmeterThroughput.",
                    group.name, self.machines
                ));
            }
            let per_second = throughput.per_minute / 60.0 * factor;
            let written = match factor == 1.0 {
                true => quoted_if_text(&throughput.per_second_text()),
                false => number_text(per_second),
            };
            return Some(match throughput.mode {
                Mode::Thread => {
                    StreamRate { key: "per_client", written, per_client: per_second, from }
                }
                Mode::Group => StreamRate { written, ..total(per_second, from) },
                Mode::AllGroups => total(per_second * threads / self.threads.max(1) as f64, from),
            });
        }
        let (per_second, shared_by) = stream.pace.arrivals?;
        Some(total(per_second * machines / f64::from(shared_by.max(1)), Timed::Arrivals))
    }

    fn subscription(&mut self, name: &str, subscription: &Subscription) -> Result<(), PlanError> {
        self.note_one_machine(&subscription.filter);
        self.line(&format!("\n[[groups.{name}.subscribe]]"));
        self.line(&format!("filter = {}", quoted(&template(&subscription.filter)?)));
        self.line(&format!("qos = {}", number(&subscription.qos, "QoS")?));
        Ok(())
    }

    fn note_one_machine(&mut self, topic: &Value) {
        if self.machines == 1 && topic.holds("machine") && !topic.holds("i + 1") {
            self.values.note(
                "Topics have the machine's name and no thread number: on one machine all clients \
                 share one topic. --machines N divides them over N virtual machines, as the load \
                 service of the plan's authors did.",
            );
        }
    }

    fn phases(&mut self, groups: &[ThreadGroup]) {
        let timeout_s = groups
            .iter()
            .filter_map(|group| group.connect.as_ref())
            .map(|connect| connect.timeout_s)
            .fold(1.0, f64::max);
        let ends: Option<Vec<f64>> = self.streams_end_after_s.iter().copied().collect();
        let last_end = ends.and_then(|ends| ends.into_iter().reduce(f64::max));
        self.line("\n[phases]");
        self.line(&format!(
            "connect_timeout = {}",
            quoted(&format!("{}s", number_text(timeout_s)))
        ));
        let scheduled = groups.iter().filter_map(|group| group.duration_s).max();
        if self.adjustment.jmx.pacing == Pacing::Jmeter && last_end.is_none() {
            // JMeter's threads begin to publish within the ramp-up, faster than afterwards.
            let own_s = groups.iter().map(|group| group.ramp_s).max().unwrap_or(0);
            let ramp_s = self.adjustment.ramp_up.map_or(own_s, |ramp| ramp.0.as_secs() as u32 + 1);
            self.line(&format!("warmup = \"{}s\"", ramp_s + WARMUP_S));
            let warmup = self.adjustment.warmup;
            if let Some(warmup) = warmup.filter(|warmup| warmup.0.as_secs() < u64::from(ramp_s)) {
                self.values.note(format!(
                    "The warm-up of {} s is shorter than the ramp-up of {ramp_s} s: publishers still \
                     start in the measured phase, whose figures are those of a growing load.",
                    warmup.0.as_secs_f64()
                ));
            }
        }
        if groups.iter().any(|group| !group.subscriptions.is_empty()) {
            self.values.note(
                "All clients connect, then all subscribe, then every publisher sends one message \
                 over each of its paths, which is not counted; then the load begins. JMeter's \
                 threads go through their samplers each for itself. In a converted file \
                 phases.ready_probe = false leaves that message out.",
            );
        }
        if let Some(end_s) = last_end {
            self.values.note(
                "The plan's loops end by themselves: what they send is measured from the first \
                 message, without a warm-up.",
            );
            let end_s = scheduled.map_or(end_s, |seconds| end_s.min(f64::from(seconds)));
            self.line("warmup = \"0s\"");
            self.line(&format!("measure = \"{}ms\"", (end_s * 1e3).round().max(100.0)));
        } else {
            if let Some(seconds) = scheduled {
                self.values.note(format!(
                    "The scheduler's duration of {seconds} s is the measured phase, after ramp-up \
                     and warm-up. In JMeter it counts from the start of the thread group."
                ));
            }
            let seconds = scheduled.unwrap_or(MEASURE_S);
            self.line(&format!("measure = \"{seconds}s\""));
        }
    }
}

/// A name that none before it had.
fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut unique = name.to_owned();
    let mut number = 2;
    while !taken.insert(unique.clone()) {
        unique = format!("{name}-{number}");
        number += 1;
    }
    unique
}

fn template(value: &Value) -> Result<String, PlanError> {
    value.template().map_err(PlanError::new)
}

/// A number, or the variable that holds it.
fn number(value: &Value, what: &str) -> Result<String, PlanError> {
    let fixed = value.fixed().unwrap_or_default();
    if fixed.trim().parse::<u32>().is_err() {
        return Err(PlanError::new(format!("{what} cannot be '{fixed}'")));
    }
    Ok(match value.variable() {
        Some(name) => format!("\"{{{{{name}}}}}\""),
        None => fixed.trim().to_owned(),
    })
}

/// Quotes everything except numbers.
fn quoted_if_text(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(_) => text.to_owned(),
        Err(_) => quoted(text),
    }
}
