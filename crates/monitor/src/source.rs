//! Sources of rows: the syntax of `--monitor`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::row::LOCAL;

/// Default sampling interval.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Default port of collectd's network protocol.
const COLLECTD_PORT: u16 = 25_826;

/// One `--monitor` option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorSpec {
    /// The scenario target whose host this is; absent for the only target, or for all.
    pub target: Option<String>,
    /// The source of the rows.
    pub source: SourceSpec,
    /// Sampling interval.
    pub interval: Duration,
    /// Processes to watch on that host (collectd and Prometheus endpoints select their own).
    pub processes: Vec<WatchedProcess>,
    /// The broker's data directory on that host, to describe its disk (agents, and this machine).
    pub data_dir: Option<PathBuf>,
}

/// The kind of a source, and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceSpec {
    /// The local machine.
    Local,
    /// A remote `tacho monitor --listen`.
    Agent {
        /// `host:port`.
        address: String,
        /// Where to find the token.
        token: TokenSource,
    },
    /// A Prometheus endpoint: node_exporter's, or a broker's own.
    Prometheus {
        /// `http://host:port/path`.
        url: String,
    },
    /// collectd's network protocol, received here.
    Collectd {
        /// UDP address to listen on.
        listen: SocketAddr,
        /// Accept only this host's values, by the name that its collectd sends.
        host: Option<String>,
    },
}

/// Where to find an agent's token.
#[derive(Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// In the environment variable [`crate::TOKEN_VARIABLE`].
    Environment,
    /// In a file.
    File(PathBuf),
    /// Given literally.
    Given(String),
}

/// How to find a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessSelector {
    /// By its id.
    Pid(u32),
    /// By its name.
    Name(String),
    /// By the TCP port that it listens on.
    Port(u16),
}

/// A process to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedProcess {
    /// How to find it.
    pub selector: ProcessSelector,
    /// The scenario target whose broker it is.
    pub target: Option<String>,
    /// Selected by default and not by the user: not finding it is no error.
    pub optional: bool,
}

/// An invalid `--monitor`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid monitor '{text}': {why}")]
pub struct SourceError {
    text: String,
    why: String,
}

impl fmt::Debug for TokenSource {
    /// Never shows a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("Environment"),
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Given(_) => f.write_str("Given"),
        }
    }
}

impl fmt::Display for SourceSpec {
    /// In the syntax of `--monitor`, without a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str(LOCAL),
            Self::Agent { address, .. } => write!(f, "agent://{address}"),
            Self::Prometheus { url } => write!(f, "prometheus+{url}"),
            Self::Collectd { listen, host: None } => write!(f, "collectd://{listen}"),
            Self::Collectd { listen, host: Some(host) } => {
                write!(f, "collectd://{listen}?host={host}")
            }
        }
    }
}

impl fmt::Display for ProcessSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "a process with the id {pid}"),
            Self::Name(name) => write!(f, "a process named {name}"),
            Self::Port(port) => write!(f, "a process that listens on port {port}"),
        }
    }
}

impl MonitorSpec {
    /// The local machine.
    pub fn local(processes: Vec<WatchedProcess>) -> Self {
        let source = SourceSpec::Local;
        Self { target: None, source, interval: INTERVAL, processes, data_dir: None }
    }

    /// Parses `[TARGET=]SOURCE`, where a source is one of
    ///
    /// - `local[?data-dir=PATH]`
    /// - `agent://HOST:PORT[?token-file=PATH|token=TOKEN][&port=N|process=NAME|pid=N][&interval=T]
    ///   [&data-dir=PATH]`
    /// - `prometheus+http://HOST:PORT/PATH[#interval=T]`
    /// - `collectd://[ADDRESS][:PORT][?host=NAME]`
    ///
    /// # Errors
    /// An error that quotes the text, without secrets, and says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        parse(text).map_err(|why| SourceError { text: without_token(text), why })
    }
}

/// The text without secrets, for messages.
fn without_token(text: &str) -> String {
    if let (Some((scheme, rest)), true) = (text.split_once("://"), text.contains('@')) {
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        return format!("{scheme}://...@{host}");
    }
    match text.split_once("token=") {
        Some((before, after)) => {
            let rest = after.find('&').map_or("", |at| &after[at..]);
            format!("{before}token=...{rest}")
        }
        None => text.to_owned(),
    }
}

fn parse(text: &str) -> Result<MonitorSpec, String> {
    let name_char = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let (target, source) = match text.split_once('=') {
        Some((name, rest)) if !name.is_empty() && name.chars().all(name_char) => {
            (Some(name.to_owned()), rest)
        }
        _ => (None, text),
    };
    let mut spec = MonitorSpec {
        target,
        source: SourceSpec::Local,
        interval: INTERVAL,
        processes: Vec::new(),
        data_dir: None,
    };
    if source == LOCAL {
        return Ok(spec);
    }
    if let Some(options) = source.strip_prefix(LOCAL).and_then(|rest| rest.strip_prefix('?')) {
        for option in query(options) {
            match option? {
                ("data-dir", value) => spec.data_dir = Some(PathBuf::from(value)),
                (other, _) => return Err(format!("unknown option {other}; use data-dir")),
            }
        }
        return Ok(spec);
    }
    let (scheme, rest) = source.split_once("://").ok_or_else(|| {
        "write local, agent://HOST:PORT, prometheus+http://HOST:PORT/metrics or \
         collectd://ADDRESS:PORT, with NAME= in front to bind it to a target"
            .to_owned()
    })?;
    match scheme {
        "agent" => agent(rest, &mut spec)?,
        "prometheus+http" => prometheus(rest, &mut spec)?,
        "prometheus+https" => {
            return Err(
                "TLS to Prometheus endpoints is not supported; use http on a trusted network"
                    .to_owned(),
            );
        }
        "collectd" => spec.source = collectd(rest)?,
        other => {
            return Err(format!(
                "unknown scheme {other}://; use agent, prometheus+http or collectd"
            ));
        }
    }
    Ok(spec)
}

/// Splits `a=b&c=d`.
fn query(text: &str) -> impl Iterator<Item = Result<(&str, &str), String>> {
    text.split('&').filter(|part| !part.is_empty()).map(|part| {
        part.split_once('=').ok_or_else(|| format!("'{part}' has no value: write {part}=..."))
    })
}

fn agent(rest: &str, spec: &mut MonitorSpec) -> Result<(), String> {
    let (address, options) = rest.split_once('?').unwrap_or((rest, ""));
    let address = address.trim_end_matches('/');
    let port = address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if !matches!(port, Some(Ok(port)) if port > 0) {
        return Err("an agent needs a host and a port: agent://HOST:PORT".to_owned());
    }
    let mut token = TokenSource::Environment;
    for option in query(options) {
        let (key, value) = option?;
        let process =
            |selector| WatchedProcess { selector, target: spec.target.clone(), optional: false };
        match key {
            "token" => token = TokenSource::Given(value.to_owned()),
            "token-file" => token = TokenSource::File(PathBuf::from(value)),
            "interval" => spec.interval = interval(value)?,
            "data-dir" => spec.data_dir = Some(PathBuf::from(value)),
            "port" => spec.processes.push(process(ProcessSelector::Port(number(key, value)?))),
            "pid" => spec.processes.push(process(ProcessSelector::Pid(number(key, value)?))),
            "process" => {
                spec.processes.push(process(ProcessSelector::Name(value.to_owned())));
            }
            other => {
                return Err(format!(
                    "unknown option {other}; use token, token-file, port, pid, process, data-dir \
                     or interval"
                ));
            }
        }
    }
    spec.source = SourceSpec::Agent { address: address.to_owned(), token };
    Ok(())
}

fn prometheus(rest: &str, spec: &mut MonitorSpec) -> Result<(), String> {
    let (address, options) = rest.split_once('#').unwrap_or((rest, ""));
    for option in query(options) {
        match option? {
            ("interval", value) => spec.interval = interval(value)?,
            (other, _) => {
                return Err(format!("unknown option {other}; use #interval=T"));
            }
        }
    }
    let host = address.split(['/', '?']).next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return Err("the address has no host: write prometheus+http://HOST:PORT/metrics".to_owned());
    }
    if host.contains('@') {
        return Err("user names and passwords in the address are not supported".to_owned());
    }
    let path = if address.len() == host.len() { "/metrics" } else { "" };
    spec.source = SourceSpec::Prometheus { url: format!("http://{address}{path}") };
    Ok(())
}

fn collectd(rest: &str) -> Result<SourceSpec, String> {
    let (address, options) = rest.split_once('?').unwrap_or((rest, ""));
    let mut host = None;
    for option in query(options) {
        match option? {
            ("host", value) => host = Some(value.to_owned()),
            (other, _) => {
                return Err(format!("unknown option {other}; use host=NAME"));
            }
        }
    }
    let address = match address.trim_end_matches('/') {
        "" => format!("0.0.0.0:{COLLECTD_PORT}"),
        port if port.starts_with(':') => format!("0.0.0.0{port}"),
        host if host.parse::<std::net::IpAddr>().is_ok() => format!("{host}:{COLLECTD_PORT}"),
        whole => whole.to_owned(),
    };
    let listen = address.parse().map_err(|_| {
        format!("cannot listen on '{address}': write collectd://0.0.0.0:{COLLECTD_PORT}")
    })?;
    Ok(SourceSpec::Collectd { listen, host })
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{key}={value}: '{value}' is not a number in range"))
}

/// Parses `500ms`, `1s`, `1m`: from 100 ms to an hour.
pub fn interval(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let factor = match &text[digits..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        _ => return Err(format!("'{text}' is not an interval: write 500ms, 1s or 1m")),
    };
    let seconds = text[..digits]
        .parse::<f64>()
        .map_err(|_| format!("'{text}' is not an interval: write 500ms, 1s or 1m"))?
        * factor;
    if !(0.1..=3600.0).contains(&seconds) {
        return Err(format!("the interval {text} is not between 100ms and 60m"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_parsed() {
        let spec = MonitorSpec::parse("local").expect("local");
        assert_eq!((spec.target, spec.source), (None, SourceSpec::Local));

        let spec =
            MonitorSpec::parse("node1=agent://10.0.0.1:7777?token=abc&port=1883&interval=500ms")
                .expect("an agent");
        assert_eq!(spec.target.as_deref(), Some("node1"));
        assert_eq!(spec.interval, Duration::from_millis(500));
        assert_eq!(spec.processes[0].selector, ProcessSelector::Port(1883));
        assert_eq!(spec.processes[0].target.as_deref(), Some("node1"));
        let token = TokenSource::Given("abc".to_owned());
        assert_eq!(spec.source, SourceSpec::Agent { address: "10.0.0.1:7777".to_owned(), token });
        assert_eq!(spec.source.to_string(), "agent://10.0.0.1:7777");
        assert!(!format!("{spec:?}").contains("abc"), "a token must not be shown");

        let spec = MonitorSpec::parse("agent://[::1]:7?token-file=/t").expect("IPv6");
        let token = TokenSource::File("/t".into());
        assert_eq!(spec.source, SourceSpec::Agent { address: "[::1]:7".to_owned(), token });

        let url = |text: &str| match MonitorSpec::parse(text).expect(text).source {
            SourceSpec::Prometheus { url } => url,
            other => panic!("{other}"),
        };
        assert_eq!(url("prometheus+http://a:9100"), "http://a:9100/metrics");
        assert_eq!(url("b=prometheus+http://a:9100/x?y=z"), "http://a:9100/x?y=z");

        let listen = |text: &str| match MonitorSpec::parse(text).expect(text).source {
            SourceSpec::Collectd { listen, host } => (listen.to_string(), host),
            other => panic!("{other}"),
        };
        assert_eq!(listen("collectd://"), ("0.0.0.0:25826".to_owned(), None));
        assert_eq!(listen("collectd://:1"), ("0.0.0.0:1".to_owned(), None));
        assert_eq!(
            listen("collectd://127.0.0.1?host=h1"),
            ("127.0.0.1:25826".to_owned(), Some("h1".to_owned()))
        );
    }

    #[test]
    fn invalid_monitors_are_explained_without_tokens() {
        for (text, word) in [
            ("", "write local"),
            ("broker.example", "write local"),
            ("agent://a", "host and a port"),
            ("agent://a:0", "host and a port"),
            ("agent://a:1?colour=red", "colour"),
            ("agent://a:1?port=70000", "70000"),
            ("agent://a:1?interval=1h", "interval"),
            ("agent://a:1?interval=1ms", "between"),
            ("prometheus+https://a/metrics", "TLS"),
            ("prometheus+http:///metrics", "no host"),
            ("prometheus+http://me:secret@a/metrics", "passwords"),
            ("collectd://name:1", "listen"),
            ("ftp://a", "ftp"),
        ] {
            let error = MonitorSpec::parse(text).expect_err(text).to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        let error = MonitorSpec::parse("agent://a:1?token=secret&x=1").expect_err("x").to_string();
        assert!(!error.contains("secret"), "{error}");
        let error = MonitorSpec::parse("prometheus+http://me:secret@a/").expect_err("a password");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
