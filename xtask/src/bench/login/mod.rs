//! Logins per second and their latency, by the way in which clients log in.
//!
//! Each way has two cases: `_most`, in which 50 users log in again as soon as they may, and the
//! rate is what broker or generator carry; and `_paced`, whose rate is far below, for the latency.

mod backend;
mod method;
pub(super) mod table;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::certificates::{P256, ServerCertificates, openssl};
use super::figures::Sample;
use crate::brokers::on_chosen_port;
use crate::shell;
use backend::Backend;
pub(super) use method::Method;

/// The password of all users.
const PASSWORD: &str = "open sesame";
/// Users in each password file.
const USERS: u64 = 15_000;

/// The part of the cases' names that is common to all.
pub(super) const PART: &str = "login";

/// The broker and the credentials of a case, prepared in files.
pub(super) struct Site {
    /// Arguments of `tacho run`: the command of the broker, and what clients present.
    pub(super) arguments: Vec<String>,
    /// Ends with the case.
    _backend: Option<Backend>,
}

/// The programs that are measured.
#[derive(Clone, Copy)]
pub(super) struct Programs<'a> {
    pub(super) tacho: &'a Path,
    pub(super) mosquitto: Option<&'a Path>,
}

impl Site {
    /// Writes the files of a way to log in to `folder`, and starts what it needs beside the broker.
    pub(super) fn prepare(method: Method, programs: Programs<'_>, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).context("cannot create a folder")?;
        let site = Preparation { programs, folder };
        let tacho = format!("{} broker --quiet --shards 1", programs.tacho.display());
        let listen = "--listen 127.0.0.1:{port}";
        let (command, credentials, backend) = match method {
            Method::Argon2First | Method::Argon2Again => {
                let users = site.users(&site.line_of_tacho(&[])?)?;
                (format!("{tacho} {listen} --password-file {users}"), site.password()?, None)
            }
            Method::Scram => {
                let users = site.users(&site.line_of_tacho(&["--scram", "sha256"])?)?;
                let mut credentials = site.password()?;
                credentials.extend(["--scram", "sha256"].map(str::to_owned));
                (format!("{tacho} {listen} --password-file {users}"), credentials, None)
            }
            Method::Pbkdf2 => {
                let users = site.users(&site.line_of_mosquitto()?)?;
                // Every login is verified, as mosquitto does it.
                let access = format!("password_file = '{users}'\nremembered_logins_max = 0\n");
                let config = site.file("broker.toml", &format!("[access]\n{access}"))?;
                (format!("{tacho} {listen} --config {config}"), site.password()?, None)
            }
            Method::Mosquitto => (site.mosquitto()?, site.password()?, None),
            Method::Hs256 | Method::Es256 => {
                let (config, key) = site.tokens(method == Method::Es256)?;
                (
                    format!("{tacho} {listen} --config {config}"),
                    vec!["--token-key".to_owned(), key],
                    None,
                )
            }
            Method::Certificate => {
                let (command, credentials) = site.certificates(&tacho)?;
                (command, credentials, None)
            }
            Method::Backend => {
                let backend = Backend::start()?;
                let fields = "fields = { username = '%u', password = '%P', clientid = '%c' }";
                let url = format!("url = 'http://{}/login'", backend.address());
                let text = format!("[access.http]\n{url}\n{fields}\nremember_allowed_s = 0\n");
                let config = site.file("broker.toml", &text)?;
                (format!("{tacho} {listen} --config {config}"), site.password()?, Some(backend))
            }
        };
        let mut arguments = vec![format!("--broker-cmd={command}")];
        arguments.extend(credentials);
        Ok(Self { arguments, _backend: backend })
    }
}

/// Writes the files of one case.
#[derive(Clone, Copy)]
struct Preparation<'a> {
    programs: Programs<'a>,
    folder: &'a Path,
}

impl Preparation<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file and returns its path as text.
    fn file(&self, name: &str, text: &str) -> Result<String> {
        let path = self.path(name);
        fs::write(&path, text).with_context(|| format!("cannot write {path:?}"))?;
        Ok(path.display().to_string())
    }

    /// What clients with the password present.
    fn password(&self) -> Result<Vec<String>> {
        let file = self.file("password", PASSWORD)?;
        let words = ["--username", "user{{i}}", "--password-file", &file];
        Ok(words.map(str::to_owned).to_vec())
    }

    /// What a line of a password file of Tacho has behind the name.
    fn line_of_tacho(&self, scheme: &[&str]) -> Result<String> {
        let path = self.path("one");
        let mut passwd = shell::command(self.programs.tacho);
        passwd.args(["passwd", "--batch", "--create"]).args(scheme).arg(&path);
        shell::output(passwd.args(["user0", PASSWORD]))?;
        stored(&path)
    }

    /// The same of mosquitto.
    fn line_of_mosquitto(&self) -> Result<String> {
        let path = self.path("one");
        let program =
            shell::find("mosquitto_passwd").context("no mosquitto_passwd on this machine")?;
        let mut passwd = shell::command(program);
        passwd.args(["-b", "-c"]).arg(&path);
        shell::output(passwd.args(["user0", PASSWORD]))?;
        stored(&path)
    }

    /// A password file in which all users have what is stored for one: hashing the password for
    /// each would take minutes, and a broker verifies each the same.
    fn users(&self, stored: &str) -> Result<String> {
        let line = |user: u64| format!("user{user}:{stored}\n");
        self.file("users", &(0..USERS).map(line).collect::<String>())
    }

    fn mosquitto(&self) -> Result<String> {
        let program = self.programs.mosquitto.context("no mosquitto on this machine")?;
        let users = self.users(&self.line_of_mosquitto()?)?;
        // Started by root, it reads the users as another user otherwise.
        let config = format!(
            "allow_anonymous false\npassword_file {users}\nuser root\nset_tcp_nodelay true\n\
             persistence false\nlog_type error\n"
        );
        let config = self.file("mosquitto.conf", &config)?;
        Ok(format!("{} -c {config} -p {{port}}", program.display()))
    }

    /// The configuration of a broker that takes tokens, and the key that signs them.
    fn tokens(&self, by_ecdsa: bool) -> Result<(String, String)> {
        let (verifies, signs) = match by_ecdsa {
            false => {
                let key = self.file("token.key", "a secret of the benchmark, 32 bytes and more")?;
                (key.clone(), key)
            }
            true => {
                let [private, public] =
                    ["es256.key", "es256.pem"].map(|name| self.path(name).display().to_string());
                openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", P256, "-out", &private])?;
                openssl(&["pkey", "-in", &private, "-pubout", "-out", &public])?;
                (public, private)
            }
        };
        let config =
            self.file("broker.toml", &format!("[access.jwt]\nkey_file = '{verifies}'\n"))?;
        Ok((config, signs))
    }

    /// The command of a broker that takes certificates, and what clients present.
    fn certificates(&self, tacho: &str) -> Result<(String, Vec<String>)> {
        let ServerCertificates { ca, ca_key, cert, key } = ServerCertificates::make(self.folder)?;
        let config = self.file(
            "tls.toml",
            &format!(
                "[tls]\ncert = '{cert}'\nkey = '{key}'\nclient_ca = '{ca}'\n[[listeners]]\n\
                 address = '127.0.0.1:PORT'\ntransport = 'tls'\n\
                 require_client_certificate = true\ncertificate_user = 'cn'\n"
            ),
        )?;
        let now = self.path("now.toml").display().to_string();
        // A listener with such a user is in no flag.
        let command = on_chosen_port(&config, &now, &format!("{tacho} --config"));
        let words = ["--transport", "tls", "--ca", &ca, "--test-ca", &ca, "--test-ca-key", &ca_key];
        Ok((command, words.map(str::to_owned).to_vec()))
    }
}

/// What the only line of a password file has behind the name.
fn stored(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path:?}"))?;
    let (_, stored) =
        text.trim().split_once(':').with_context(|| format!("no user in {path:?}"))?;
    Ok(stored.to_owned())
}

/// The figures of a run, from its summary.
pub(super) fn figures(sample: &mut Sample, summary: &Value) -> Result<()> {
    let logins = summary.pointer("/steps/0/logins").context("the summary has no logins")?;
    let figure = |path: &str| logins.pointer(path).and_then(Value::as_f64);
    let decided_per_s = figure("/decided_per_s").filter(|rate| *rate > 0.0);
    sample.set("logins_per_s", decided_per_s);
    sample.set("login_us_p50", figure("/kinds/0/accepted_us/p50"));
    sample.set("login_us_p99", figure("/kinds/0/accepted_us/p99"));
    let decided = figure("/kinds/0/accepted").zip(figure("/kinds/0/refused"));
    let undecided = figure("/kinds/0/due").zip(decided);
    sample.set("logins_undecided", undecided.map(|(due, (yes, no))| due - yes - no));
    sample.set("logins_misjudged", figure("/misjudged"));
    let cpu = summary.pointer("/steps/0/broker_cpu_percent").and_then(Value::as_f64);
    sample.set("cpu_us_per_login", cpu.zip(decided_per_s).map(|(cpu, rate)| cpu * 1e4 / rate));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_those_of_right_credentials() {
        let kind = json!({
            "kind": "right", "due": 100, "accepted": 90, "refused": 2,
            "accepted_us": { "p50": 300, "p99": 900 },
        });
        let logins = json!({ "decided_per_s": 50.0, "misjudged": 2, "kinds": [kind] });
        let summary = json!({ "steps": [{ "broker_cpu_percent": 25.0, "logins": logins }] });
        let mut sample = Sample::new("x", 1);
        figures(&mut sample, &summary).expect("has logins");
        let figure = |name| sample.metrics.get(name).copied();
        assert_eq!((figure("logins_per_s"), figure("logins_undecided")), (Some(50.0), Some(8.0)));
        assert_eq!((figure("login_us_p50"), figure("login_us_p99")), (Some(300.0), Some(900.0)));
        assert_eq!(figure("cpu_us_per_login"), Some(5000.0));
        assert!(figures(&mut sample, &json!({ "steps": [{}] })).is_err());
    }
}
