//! The keys of one bridge, and what they are here.

use super::{HoconValue, ImportKind, ImportNote, text_of};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Keys that have nothing like them here, and why that is no loss.
const NO_COUNTERPART: [(&str, &str); 16] = [
    ("mode", "the nodes of a cluster share it there; here one broker has it"),
    ("description", "comments are for that"),
    ("tags", "comments are for that"),
    ("resource_opts.batch_size", "messages leave one by one, many with one write"),
    ("resource_opts.batch_time", "messages leave at once"),
    ("resource_opts.buffer_mode", "the `data_dir` decides what survives a restart"),
    ("resource_opts.buffer_seg_bytes", "the `data_dir` decides what survives a restart"),
    ("resource_opts.start_after_created", "bridges connect when the broker starts"),
    ("resource_opts.start_timeout", "bridges connect when the broker starts"),
    ("resource_opts.resume_interval", "a connection is tried again by `retry_first_s`"),
    ("resource_opts.auto_restart_interval", "a connection is tried again by `retry_first_s`"),
    ("resource_opts.metrics_flush_interval", "figures are always up to date"),
    ("ssl.versions", "TLS 1.2 and 1.3"),
    ("ssl.ciphers", "the TLS library's"),
    ("ssl.depth", "the TLS library's"),
    ("ssl.reuse_sessions", "sessions are resumed"),
];

/// A rule of one direction, as far as it is known.
#[derive(Debug, Default)]
struct Rule {
    filter: Option<String>,
    topic: Option<String>,
    payload: Option<String>,
    qos: Option<String>,
    retain: Option<String>,
    /// It cannot be translated.
    is_lost: bool,
    /// Of its first key.
    line: usize,
}

/// One bridge on its way.
#[derive(Debug)]
pub(super) struct Translation {
    name: String,
    /// Of its first key.
    line: usize,
    notes: Vec<ImportNote>,
    server: Option<(String, usize)>,
    is_secure: bool,
    has_password: Option<usize>,
    /// Lines of the bridge, and of its TLS settings.
    lines: Vec<String>,
    tls: Vec<String>,
    connections: u64,
    inflight: Option<(u64, usize)>,
    is_sync: Option<usize>,
    buffer_bytes: Option<(u64, usize)>,
    workers: Option<(u64, usize)>,
    bridge_mode: Option<(bool, usize)>,
    egress: Rule,
    ingress: Rule,
}

impl Translation {
    pub(super) fn new(name: &str, line: usize) -> Self {
        Self {
            name: name.to_owned(),
            line,
            notes: Vec::new(),
            server: None,
            is_secure: false,
            has_password: None,
            lines: Vec::new(),
            tls: Vec::new(),
            connections: 1,
            inflight: None,
            is_sync: None,
            buffer_bytes: None,
            workers: None,
            bridge_mode: None,
            egress: Rule::default(),
            ingress: Rule::default(),
        }
    }

    /// Takes one value.
    pub(super) fn take(&mut self, key: &str, value: &HoconValue, line: usize) {
        let text = text_of(value);
        let taken = match key {
            "server" => {
                self.server = Some((text.clone(), line));
                Ok(())
            }
            "enable" => flag(&text).map(|is_on| self.line("enabled", is_on)),
            "ssl.enable" => flag(&text).map(|is_on| self.is_secure = is_on),
            "password" => {
                self.has_password = Some(line);
                Ok(())
            }
            _ if key.starts_with("resource_opts.") => self.resource(key, &text, line),
            _ if key.starts_with("ssl.") => self.tls(key, &text, line),
            _ if key.starts_with("egress.") || key.starts_with("ingress.") => {
                self.direction(key, &text, line)
            }
            _ => self.plain(key, &text, line),
        };
        if let Err(why) = taken {
            let shown: String = text.chars().take(60).collect();
            let what = format!("`{key} = {}`: {why}", shown.escape_debug());
            self.note(line, ImportKind::Malformed, what);
        }
    }

    fn plain(&mut self, key: &str, text: &str, line: usize) -> Result<(), String> {
        match key {
            "proto_ver" => match text {
                "v5" => self.line("version", quoted("5")),
                "v4" => self.line("version", quoted("3.1.1")),
                "v3" => {
                    self.line("version", quoted("3.1.1"));
                    let why = "`proto_ver = v3`: bridges here speak 3.1.1 and 5.0";
                    self.note(line, ImportKind::NoCounterpart, why.to_owned());
                }
                _ => return Err("write v3, v4 or v5".to_owned()),
            },
            "username" if text.is_empty() => {}
            "username" => self.line("username", quoted(text)),
            "clientid_prefix" => {
                let id = format!("{text}{}", self.name);
                let what = format!("the client identifier is `{id}`, with -1, -2, ... appended");
                self.note(line, ImportKind::Differs, what);
                self.line("client_id", quoted(&id));
            }
            "clean_start" => self.line("clean_start", flag(text)?.to_string()),
            "keepalive" => self.line("keep_alive_s", seconds(text)?.to_string()),
            "retry_interval" => {
                self.line("ack_timeout_s", seconds(text)?.to_string());
                let what = "`retry_interval` is `ack_timeout_s`: what is not acknowledged by then \
                            is sent again on a new connection, as MQTT allows";
                self.note(line, ImportKind::Differs, what.to_owned());
            }
            "connect_timeout" => self.line("connect_timeout_s", seconds(text)?.to_string()),
            "reconnect_interval" => self.line("retry_first_s", seconds(text)?.max(1).to_string()),
            "bridge_mode" => self.bridge_mode = Some((flag(text)?, line)),
            "max_inflight" => self.inflight.get_or_insert((number(text)?, line)).1 = line,
            _ => self.unknown(key, line),
        }
        Ok(())
    }

    fn resource(&mut self, key: &str, text: &str, line: usize) -> Result<(), String> {
        match key {
            "resource_opts.health_check_interval" => {
                self.line("health_check_s", seconds(text)?.to_string());
            }
            "resource_opts.request_ttl" | "resource_opts.request_timeout" => {
                let ttl_s = if text == "infinity" { 0 } else { seconds(text)?.max(1) };
                self.line("buffer_ttl_s", ttl_s.to_string());
            }
            "resource_opts.max_buffer_bytes" | "resource_opts.max_queue_bytes" => {
                self.buffer_bytes = Some((bytes(text)?, line));
            }
            "resource_opts.worker_pool_size" => self.workers = Some((number(text)?, line)),
            "resource_opts.inflight_window" | "resource_opts.async_inflight_window" => {
                self.inflight = Some((number(text)?, line));
            }
            "resource_opts.query_mode" => match text {
                "async" => {
                    let what = "`query_mode = async`: bridges here always go on while messages are \
                                not acknowledged, up to `inflight`";
                    self.note(line, ImportKind::Differs, what.to_owned());
                }
                "sync" => self.is_sync = Some(line),
                _ => return Err("write sync or async".to_owned()),
            },
            _ => self.unknown(key, line),
        }
        Ok(())
    }

    fn tls(&mut self, key: &str, text: &str, line: usize) -> Result<(), String> {
        match key {
            "ssl.cacertfile" => self.tls.push(format!("ca = {}", quoted(text))),
            "ssl.certfile" => self.tls.push(format!("cert = {}", quoted(text))),
            "ssl.keyfile" => self.tls.push(format!("key = {}", quoted(text))),
            "ssl.verify" => match text {
                "verify_none" => self.tls.push("insecure = true".to_owned()),
                "verify_peer" => {}
                _ => return Err("write verify_peer or verify_none".to_owned()),
            },
            "ssl.server_name_indication" if !matches!(text, "disable" | "auto" | "") => {
                self.tls.push(format!("server_name = {}", quoted(text)));
            }
            "ssl.server_name_indication" => {}
            "ssl.password" => {
                let what = "`ssl.password`: a private key with a passphrase cannot be read";
                self.note(line, ImportKind::NoCounterpart, what.to_owned());
            }
            _ => self.unknown(key, line),
        }
        Ok(())
    }

    fn direction(&mut self, key: &str, text: &str, line: usize) -> Result<(), String> {
        let (way, part) = key.split_once('.').unwrap_or((key, ""));
        if part == "pool_size" {
            // Both directions have the same connections here.
            self.connections = self.connections.max(number(text)?);
            return Ok(());
        }
        let is_egress = way == "egress";
        let rule = if is_egress { &mut self.egress } else { &mut self.ingress };
        if rule.line == 0 {
            rule.line = line;
        }
        // Where messages come from, and where they go to.
        let (from, to) = if is_egress { ("local", "remote") } else { ("remote", "local") };
        let (side, field) = part.split_once('.').unwrap_or(("", part));
        match field {
            "topic" if side == from => rule.filter = Some(text.to_owned()),
            "topic" if side == to => match template(text) {
                Ok(topic) => rule.topic = Some(topic),
                Err(variable) => {
                    rule.is_lost = true;
                    let what = format!(
                        "`{key}`: there is no {variable} here: the rule is left out; write one by \
                         hand"
                    );
                    self.note(line, ImportKind::NoCounterpart, what);
                }
            },
            "payload" if side == to => match template(text) {
                Ok(payload) => rule.payload = Some(payload),
                Err(variable) => {
                    let what =
                        format!("`{key}`: there is no {variable} here: payloads stay as they are");
                    self.note(line, ImportKind::NoCounterpart, what);
                }
            },
            "qos" if side == to => rule.qos = Some(qos(text)?),
            "retain" if side == to => rule.retain = Some(retain(text)?),
            "qos" if side == from && !is_egress => {
                let what = format!("`{key}`: bridges subscribe with the QoS of `qos`, or 2");
                self.note(line, ImportKind::Differs, what);
            }
            _ => self.unknown(key, line),
        }
        Ok(())
    }

    fn unknown(&mut self, key: &str, line: usize) {
        let known = NO_COUNTERPART.iter().find(|(known, _)| *known == key);
        let what = match known {
            Some((_, why)) => format!("`{key}`: {why}"),
            None => format!("`{key}` is not known here"),
        };
        self.note(line, ImportKind::NoCounterpart, what);
    }

    fn line(&mut self, key: &str, value: impl std::fmt::Display) {
        self.lines.retain(|line| !line.starts_with(&format!("{key} = ")));
        self.lines.push(format!("{key} = {value}"));
    }

    fn note(&mut self, line: usize, kind: ImportKind, text: String) {
        let text = format!("{}: {text}", self.name);
        self.notes.push(ImportNote { line, kind, text });
    }

    /// What several keys say together.
    fn settle(&mut self) {
        if self.connections > 1 {
            self.line("connections", self.connections);
        }
        if let Some((inflight, _)) = self.inflight {
            self.line("inflight", inflight.clamp(1, u64::from(u16::MAX)));
        }
        if let Some(line) = self.is_sync {
            self.line("inflight", 1);
            let what = "`query_mode = sync` is `inflight = 1`: a connection waits for each answer";
            self.note(line, ImportKind::Differs, what.to_owned());
        }
        if let Some((bytes, line)) = self.buffer_bytes {
            let workers = self.workers.map_or(1, |(workers, _)| workers.max(1));
            let total = bytes.saturating_mul(workers);
            self.line("buffer_bytes_max", total);
            if workers > 1 {
                let what = format!(
                    "{} MiB for each of {workers} buffer workers there are {} GiB for all \
                     connections here",
                    bytes / MIB,
                    total / GIB
                );
                self.note(line, ImportKind::Differs, what);
            }
        }
        self.settle_version();
        if let Some((_, line)) = self.workers {
            let what = "`worker_pool_size`: event loops send; there are no buffer workers";
            self.note(line, ImportKind::NoCounterpart, what.to_owned());
        }
        if let Some(line) = self.has_password {
            let what = "`password` is not written: put it into a file of its own, and name that as \
                        `password_file`";
            self.note(line, ImportKind::Differs, what.to_owned());
        }
    }

    fn settle_version(&mut self) {
        if self.lines.iter().all(|line| !line.starts_with("version = ")) {
            // What EMQX has unless it is said.
            self.line("version", quoted("3.1.1"));
        }
        let is_v5 = self.lines.contains(&format!("version = {}", quoted("5")));
        match self.bridge_mode {
            Some((flag, _)) if !is_v5 => self.line("bridge_flag", flag),
            Some((true, line)) => {
                let what = "`bridge_mode`: 5.0 has No Local instead, which bridges here ask for";
                self.note(line, ImportKind::Differs, what.to_owned());
            }
            _ => {}
        }
        if self.tls.iter().any(|line| line == "insecure = true") {
            self.tls.retain(|line| !line.starts_with("ca = "));
        }
    }

    /// The bridge in the format of the configuration file, empty if it is left out; and the notes.
    pub(super) fn finish(mut self) -> (String, Vec<ImportNote>) {
        self.settle();
        let Some((server, line)) = self.server.take() else {
            let text = format!("{}: it has no `server`: it is left out", self.name);
            let (line, kind) = (self.line, ImportKind::Malformed);
            self.notes.push(ImportNote { line, kind, text });
            return (String::new(), self.notes);
        };
        let rules = self.egress.text("egress") + &self.ingress.text("ingress");
        if rules.is_empty() {
            let what = "no rule of it is left: it is left out".to_owned();
            self.note(line, ImportKind::NoCounterpart, what);
            return (String::new(), self.notes);
        }
        let scheme = if self.is_secure { "mqtts" } else { "mqtt" };
        let mut text = format!(
            "\n[[bridges]]\nname = {}\naddress = {}\n",
            quoted(&self.name),
            quoted(&format!("{scheme}://{server}"))
        );
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        if self.is_secure && !self.tls.is_empty() {
            text.push_str(&format!("\n[bridges.tls]\n{}\n", self.tls.join("\n")));
        }
        (text + &rules, self.notes)
    }
}

impl Rule {
    fn text(&self, way: &str) -> String {
        let Some(filter) = self.filter.as_ref().filter(|_| !self.is_lost) else {
            return String::new();
        };
        let mut text = format!("\n[[bridges.{way}]]\nfilter = {}\n", quoted(filter));
        for (key, value) in [
            ("topic", self.topic.as_deref().map(quoted)),
            ("payload", self.payload.as_deref().map(quoted)),
            ("qos", self.qos.clone()),
            ("retain", self.retain.clone()),
        ] {
            if let Some(value) = value {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
        text
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A template with our variables, or the first one that there is not.
fn template(text: &str) -> Result<String, String> {
    let mut translated = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        translated.push_str(before);
        let Some((variable, after)) = after.split_once('}') else {
            return Err("end of `${`".to_owned());
        };
        translated.push_str(match variable {
            "topic" => "${topic}",
            "payload" => "${payload}",
            "qos" => "${qos}",
            "retain" | "flags.retain" => "${retain}",
            other => return Err(format!("`${{{other}}}`")),
        });
        rest = after;
    }
    Ok(translated + rest)
}

fn qos(text: &str) -> Result<String, String> {
    match text {
        "${qos}" => Ok(quoted("keep")),
        "0" | "1" | "2" => Ok(text.to_owned()),
        _ => Err("write 0, 1, 2 or \"${qos}\"".to_owned()),
    }
}

fn retain(text: &str) -> Result<String, String> {
    match text {
        "${retain}" | "${flags.retain}" => Ok(quoted("keep")),
        "true" | "false" => Ok(text.to_owned()),
        _ => Err("write true, false or \"${flags.retain}\"".to_owned()),
    }
}

fn flag(text: &str) -> Result<bool, String> {
    match text {
        "true" | "on" => Ok(true),
        "false" | "off" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a number".to_owned())
}

/// A number with a unit.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

fn seconds(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 6] = [
        // EMQX takes bare numbers for milliseconds.
        ("", 1),
        ("ms", 1),
        ("s", 1_000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
    ];
    let ms = with_unit(text, &UNITS).ok_or("write a time such as 15s")?;
    Ok(ms.div_ceil(1_000))
}

fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 4] = [("", 1), ("kb", 1 << 10), ("mb", MIB), ("gb", GIB)];
    with_unit(text, &UNITS).ok_or_else(|| "write a size such as 256MB".to_owned())
}
