//! Brokers that the user has given a name: `@NAME` stands for an address with credentials and
//! certificates.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tacho_scenario::{BrokerUrl, Password, Scheme, Template, TlsOptions};

/// The environment variable with the broker.
pub(crate) const TARGET: &str = "TACHO_TARGET";
/// The environment variable with the path of another file.
const FILE: &str = "TACHO_TARGETS";

/// A broker, and how its clients log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) url: BrokerUrl,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Password>,
    pub(crate) tls: TlsOptions,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProfile {
    url: String,
    username: Option<String>,
    password_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    server_name: Option<String>,
    #[serde(default)]
    insecure: bool,
}

impl From<BrokerUrl> for Profile {
    /// Without credentials.
    fn from(url: BrokerUrl) -> Self {
        Self { url, username: None, password: None, tls: TlsOptions::default() }
    }
}

/// A broker by host and port, by default `localhost` and the port of the kind of connection.
pub(crate) fn address(host: Option<&str>, port: Option<u16>, (tls, ws): (bool, bool)) -> BrokerUrl {
    let scheme = match (tls, ws) {
        (false, false) => Scheme::Mqtt,
        (true, false) => Scheme::Mqtts,
        (false, true) => Scheme::Ws,
        (true, true) => Scheme::Wss,
    };
    let host = host.unwrap_or("localhost");
    let host = host.trim_start_matches('[').trim_end_matches(']');
    BrokerUrl::new(scheme, host, port.unwrap_or_else(|| scheme.default_port()))
}

impl Profile {
    /// The broker of a URL, or of `@NAME`.
    ///
    /// # Errors
    /// A sentence, when there is no such broker or its entry is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some(name) = text.strip_prefix('@') else {
            return BrokerUrl::parse(text).map(Self::from);
        };
        let path =
            path().ok_or("neither XDG_CONFIG_HOME nor HOME says where brokers with names are")?;
        let content = fs::read_to_string(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                format!(
                    "there is no broker @{name}: {} would have it, and is missing",
                    path.display()
                )
            }
            _ => format!("cannot read {}: {error}", path.display()),
        })?;
        find(name, &content, &path)
    }
}

/// Where brokers with names are.
fn path() -> Option<PathBuf> {
    if let Some(path) = env::var_os(FILE) {
        return Some(path.into());
    }
    let folder = env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
    let folder = folder.map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".config"));
    Some(folder.or_else(home)?.join("tacho/targets.toml"))
}

/// The entry of a file's content; other files that it names are beside it.
fn find(name: &str, content: &str, path: &Path) -> Result<Profile, String> {
    let shown = path.display();
    let mut all: BTreeMap<String, RawProfile> = toml::from_str(content)
        .map_err(|error| format!("{shown}: {}", error.to_string().trim_end()))?;
    let Some(raw) = all.remove(name) else {
        let known: Vec<String> = all.keys().map(|name| format!("@{name}")).collect();
        return Err(match known.is_empty() {
            true => format!("there is no broker @{name}: {shown} has none"),
            false => format!("there is no broker @{name}: {shown} has {}", known.join(", ")),
        });
    };
    let wrong = |why: String| format!("{shown}, [{name}]: {why}");
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let literal = |file: &PathBuf| Template::literal(folder.join(file).to_string_lossy());
    if raw.cert.is_some() != raw.key.is_some() {
        return Err(wrong("'cert' and 'key' belong together".to_owned()));
    }
    let password = raw.password_file.map(|file| Password::read(&folder.join(file))).transpose();
    Ok(Profile {
        url: BrokerUrl::parse(&raw.url).map_err(wrong)?,
        username: raw.username,
        password: password.map_err(wrong)?,
        tls: TlsOptions {
            ca: raw.ca.map(|file| folder.join(file)),
            cert: raw.cert.as_ref().map(literal),
            key: raw.key.as_ref().map(literal),
            insecure: raw.insecure,
            server_name: raw.server_name,
            ..TlsOptions::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_address_credentials_and_certificates() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("secret"), "hunter2\n").expect("is written");
        let path = folder.path().join("targets.toml");
        let content = "[lab]\nurl = \"mqtts://lab.example\"\nusername = \"load\"\n\
                       password_file = \"secret\"\nca = \"/etc/lab.pem\"\n";
        let profile = find("lab", content, &path).expect("is there");
        assert_eq!(profile.url, BrokerUrl::parse("mqtts://lab.example:8883").expect("a URL"));
        assert_eq!(profile.username.as_deref(), Some("load"));
        assert_eq!(profile.password.expect("is read").reveal(), Some("hunter2"));
        assert_eq!(profile.tls.ca, Some("/etc/lab.pem".into()));
    }

    #[test]
    fn errors_name_the_file_and_the_broker() {
        let path = Path::new("/targets.toml");
        let error = |content| find("lab", content, path).expect_err("is wrong");
        let other = "[field]\nurl = \"h:1\"\n";
        assert_eq!(error(other), "there is no broker @lab: /targets.toml has @field");
        assert_eq!(error(""), "there is no broker @lab: /targets.toml has none");
        for (content, why) in [
            ("[lab]\nurl = \"ftp://h\"\n", "/targets.toml, [lab]: "),
            ("[lab]\nurl = \"h\"\ncert = \"c\"\n", "belong together"),
            ("[lab]\nurl = \"h\"\npassword_file = \"no-such-file\"\n", "no-such-file"),
            ("[lab]\nurl = \"h\"\nuser = \"u\"\n", "unknown field"),
            ("[lab\n", "/targets.toml: "),
        ] {
            let said = error(content);
            assert!(said.contains(why), "{said}");
        }
    }
}
