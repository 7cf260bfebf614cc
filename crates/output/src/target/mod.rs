//! Where points go: targets as `--out` states them.
//!
//! `KIND=ADDRESS?option=value&option=value`. Secrets come from files or from the environment; a
//! target holds only where they are, so that it can be shown and recorded.

mod access;
mod error;
mod options;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ureq::http::Uri;

pub(crate) use access::{Access, AccessHeaders};
pub use error::TargetError;
use options::OptionList;

/// The environment variable with targets, separated by white space.
pub const OUTPUTS_VARIABLE: &str = "TACHO_OUT";

/// Targets at a time.
pub const TARGETS_MAX: usize = 16;

/// What stays in a query as it is.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A place that points are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputTarget {
    pub(crate) kind: TargetKind,
    /// Time between two requests, or between two writes to a file.
    pub(crate) every: Duration,
    /// Does a failure end the run?
    pub(crate) ends_run: bool,
    /// The target without its options.
    shown: String,
}

/// The kinds of targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    Influx { http: HttpTarget, schema: InfluxSchema },
    Prometheus { http: HttpTarget, histograms: bool },
    Otlp { http: HttpTarget, temporality: Temporality },
    Json(PathBuf),
    Csv(PathBuf),
}

/// A service behind HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpTarget {
    /// Where requests go.
    pub(crate) url: String,
    pub(crate) access: Access,
    /// How long one request may take.
    pub(crate) timeout: Duration,
    /// Are requests compressed by gzip?
    pub(crate) gzip: bool,
    /// Certificates to trust instead of the system's.
    pub(crate) ca_file: Option<PathBuf>,
}

/// How figures are called in InfluxDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InfluxSchema {
    /// By our own names.
    Own,
    /// As JMeter's backend listener calls them.
    JMeter { application: Option<String> },
    /// As InfluxDB's collectd listener calls figures of hosts.
    Collectd,
}

/// What a sum means in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Temporality {
    /// Since the start of the series.
    Cumulative,
    /// Since the last request.
    Delta,
}

impl OutputTarget {
    /// Reads `KIND=ADDRESS?options`.
    ///
    /// # Errors
    /// When it makes no sense; nothing is opened or asked yet.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        let (kind, rest) =
            text.split_once('=').ok_or_else(|| TargetError::NoKind(text.to_owned()))?;
        let (address, options) = rest.split_once('?').unwrap_or((rest, ""));
        let kind = match kind {
            "influxdb" => "influxdb",
            "prometheus" => "prometheus",
            "otlp" => "otlp",
            "json" => "json",
            "csv" => "csv",
            unknown => return Err(TargetError::UnknownKind(unknown.to_owned())),
        };
        let mut options = OptionList::parse(kind, options)?;
        let every = options.time(
            "every",
            Duration::from_secs(1),
            (Duration::from_secs(1), Duration::from_secs(60)),
            "write a time from 1s to 60s",
        )?;
        let endings = [("go-on", false), ("end", true)];
        let ends_run = options.choice("on-failure", &endings, "write go-on or end")?;
        let target = match kind {
            "influxdb" => influx(address, &mut options)?,
            "prometheus" => prometheus(address, &mut options)?,
            "otlp" => otlp(address, &mut options)?,
            _ if address.is_empty() => return Err(TargetError::NoFile(kind)),
            "json" => TargetKind::Json(PathBuf::from(address)),
            _ => TargetKind::Csv(PathBuf::from(address)),
        };
        options.end()?;
        Ok(Self { kind: target, every, ends_run, shown: format!("{kind}={address}") })
    }

    /// Reads what `--out` was given: a target, or with an `@` in front a file that has a target per
    /// line, where empty lines and lines that begin with `#` are left out.
    ///
    /// # Errors
    /// When the file cannot be read, or a target makes no sense.
    pub fn parse_argument(text: &str) -> Result<Vec<Self>, TargetError> {
        let Some(path) = text.strip_prefix('@') else { return Ok(vec![Self::parse(text)?]) };
        let path = Path::new(path);
        let list = |why: String| TargetError::List { path: path.to_owned(), why };
        let text = std::fs::read_to_string(path).map_err(|error| list(error.to_string()))?;
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let targets: Result<Vec<Self>, TargetError> = lines
            .map(|(index, line)| {
                Self::parse(line).map_err(|error| list(format!("line {}: {error}", index + 1)))
            })
            .collect();
        targets
    }

    /// Reads the targets in the value of [`OUTPUTS_VARIABLE`].
    ///
    /// # Errors
    /// When one of them makes no sense.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, TargetError> {
        let targets: Result<Vec<Vec<Self>>, TargetError> =
            text.split_whitespace().map(Self::parse_argument).collect();
        Ok(targets?.into_iter().flatten().collect())
    }
}

impl OutputTarget {
    /// Has it something for the metrics of a broker? A table and the schemas of other tools have
    /// figures of runs and hosts only, and a broker does not end because of an output.
    pub fn suits_brokers(&self) -> bool {
        let is_of_runs = match &self.kind {
            TargetKind::Influx { schema, .. } => *schema != InfluxSchema::Own,
            TargetKind::Csv(_) => true,
            TargetKind::Prometheus { .. } | TargetKind::Otlp { .. } | TargetKind::Json(_) => false,
        };
        !is_of_runs && !self.ends_run
    }
}

impl fmt::Display for OutputTarget {
    /// The target without its options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.shown)
    }
}

/// A URL of HTTP without a query: where it leads, and its path without a `/` at the end.
fn url(
    kind: &'static str,
    address: &str,
    example: &'static str,
) -> Result<(String, String), TargetError> {
    let wrong = |why: &str| TargetError::Address {
        kind,
        address: address.to_owned(),
        why: why.to_owned(),
        example,
    };
    let scheme = ["http", "https"]
        .into_iter()
        .find(|scheme| address.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://")))
        .ok_or_else(|| wrong("it does not begin with http:// or https://"))?;
    let uri: Uri = address.parse().map_err(|error| wrong(&format!("it is no URL ({error})")))?;
    let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
    if authority.as_str().contains('@') {
        return Err(TargetError::UserInAddress(kind));
    }
    if authority.host().is_empty() {
        return Err(wrong("it names no host"));
    }
    Ok((format!("{scheme}://{authority}"), uri.path().trim_end_matches('/').to_owned()))
}

fn http(
    kind: &'static str,
    scheme: &'static str,
    url: String,
    options: &mut OptionList,
) -> Result<HttpTarget, TargetError> {
    Ok(HttpTarget {
        url,
        access: Access::of(kind, scheme, options)?,
        timeout: options.time(
            "timeout",
            Duration::from_secs(10),
            (Duration::from_millis(100), Duration::from_secs(60)),
            "write a time from 100ms to 60s",
        )?,
        gzip: false,
        ca_file: options.path("ca-file")?,
    })
}

fn influx(address: &str, options: &mut OptionList) -> Result<TargetKind, TargetError> {
    const KIND: &str = "influxdb";
    const EXAMPLE: &str = "http://HOST:8086/DATABASE, or http://HOST:8086?org=ORG&bucket=BUCKET";
    let (base, path) = url(KIND, address, EXAMPLE)?;
    let (db, rp) = (options.text("db")?, options.text("rp")?);
    let (org, bucket) = (options.text("org")?, options.text("bucket")?);
    let encoded = |text: &str| utf8_percent_encode(text, QUERY).to_string();
    let missing = |what, remedy: &str| {
        Err(TargetError::Missing { kind: KIND, what, remedy: remedy.to_owned() })
    };
    let url = match (bucket, org) {
        (Some(_), _) if db.is_some() || rp.is_some() => {
            let (option, value) = ("bucket".to_owned(), "...".to_owned());
            let expected = "a target has a bucket, or a database with its retention policy";
            return Err(TargetError::Value { kind: KIND, option, value, expected });
        }
        (Some(bucket), org) => {
            let org = org.map_or_else(String::new, |org| format!("org={}&", encoded(&org)));
            format!("{base}{path}/api/v2/write?{org}bucket={}&precision=ms", encoded(&bucket))
        }
        (None, Some(_)) => return missing("the bucket", "add bucket=BUCKET"),
        (None, None) => {
            let (path, db) = match (db, path.rsplit_once('/')) {
                (Some(db), _) => (path.clone(), db),
                (None, Some((path, db))) if !db.is_empty() => (path.to_owned(), db.to_owned()),
                _ => return missing("the database", EXAMPLE),
            };
            let rp = rp.map_or_else(String::new, |rp| format!("&rp={}", encoded(&rp)));
            format!("{base}{path}/write?db={}{rp}&precision=ms", encoded(&db))
        }
    };
    let application = options.text("application")?;
    #[derive(Clone, Copy)]
    enum Chosen {
        Own,
        JMeter,
        Collectd,
    }
    let schemas =
        [("tacho", Chosen::Own), ("jmeter", Chosen::JMeter), ("collectd", Chosen::Collectd)];
    let schema = match options.choice("schema", &schemas, "write tacho, jmeter or collectd")? {
        Chosen::JMeter => InfluxSchema::JMeter { application },
        _ if application.is_some() => {
            let (option, value) = ("application".to_owned(), application.unwrap_or_default());
            let expected = "only schema=jmeter has an application";
            return Err(TargetError::Value { kind: KIND, option, value, expected });
        }
        Chosen::Own => InfluxSchema::Own,
        Chosen::Collectd => InfluxSchema::Collectd,
    };
    let gzip = options.switch("gzip", true)?;
    let http = HttpTarget { gzip, ..http(KIND, "Token", url, options)? };
    Ok(TargetKind::Influx { http, schema })
}

fn prometheus(address: &str, options: &mut OptionList) -> Result<TargetKind, TargetError> {
    const KIND: &str = "prometheus";
    let (base, path) = url(KIND, address, "http://HOST:9090/api/v1/write")?;
    let path = if path.is_empty() { "/api/v1/write" } else { &path };
    let histograms = options.switch("histograms", true)?;
    let http = http(KIND, "Bearer", format!("{base}{path}"), options)?;
    Ok(TargetKind::Prometheus { http, histograms })
}

fn otlp(address: &str, options: &mut OptionList) -> Result<TargetKind, TargetError> {
    const KIND: &str = "otlp";
    let (base, path) = url(KIND, address, "http://HOST:4318")?;
    let path = if path.is_empty() { "/v1/metrics" } else { &path };
    let choices = [("cumulative", Temporality::Cumulative), ("delta", Temporality::Delta)];
    let temporality = options.choice("temporality", &choices, "write cumulative or delta")?;
    let gzip = options.switch("gzip", true)?;
    let http = HttpTarget { gzip, ..http(KIND, "Bearer", format!("{base}{path}"), options)? };
    Ok(TargetKind::Otlp { http, temporality })
}
