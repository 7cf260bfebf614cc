//! `tacho run` and `tacho broker` over TLS and WebSocket, as a user meets them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tacho_testkit::runs::assert_code;
use tacho_testkit::runtime_folder;

fn tacho(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn summary(directory: &Path) -> serde_json::Value {
    let text = fs::read_to_string(directory.join("summary.json")).expect("a summary");
    serde_json::from_str(&text).expect("is JSON")
}

const SMALL: [&str; 12] = [
    "--var",
    "publishers=5",
    "--var",
    "subscribers=5",
    "--var",
    "target_throughput=100",
    "--var",
    "ramp_up=0s",
    "--var",
    "warmup=0s",
    "--var",
    "duration=1s",
];

/// A small run; every message must arrive. Returns the record.
fn run(directory: &Path, arguments: &[&str]) -> serde_json::Value {
    let mut command = tacho(&["run", "symmetric", "--quiet", "--dir"]);
    let output = command.arg(directory).args(SMALL).args(arguments).output().expect("starts");
    let summary = summary(directory);
    // On a shared machine the generator may have been late; nothing else may be wrong.
    assert_code(output.status.code(), &summary, &[]);
    let step = &summary["steps"][0];
    for (name, value) in [("sent", 100), ("received", 100), ("lost", 0), ("duplicates", 0)] {
        assert_eq!(step[name], value, "{name}: {summary:#}");
    }
    summary
}

/// A run that cannot be: the exit code, and words that tell why.
fn fails(arguments: &[&str], code: i32, words: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = tacho(&["run", "symmetric", "--quiet", "--dir"]);
    let command = command.arg(folder.path().join("run")).args(SMALL).args(arguments);
    let Output { status, stderr, .. } = command.output().expect("starts");
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(code), "{arguments:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?}: no {word:?} in {said}");
    }
}

fn own_broker_over(transport: &str, scheme: &str, version: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    // The built-in scenario in another version, through a file of its own.
    let shown = tacho(&["scenario", "show", "symmetric"]).output().expect("starts");
    let text = String::from_utf8(shown.stdout).expect("UTF-8");
    let file = folder.path().join("scenario.toml");
    let changed = text.replace("version = \"5\"", &format!("version = \"{version}\""));
    fs::write(&file, changed).expect("writes");
    let dir = folder.path().join("run");
    let output = tacho(&["run", file.to_str().expect("UTF-8"), "--quiet", "--dir"])
        .arg(&dir)
        .args(SMALL)
        .args(["--transport", transport, "--shards", "2"])
        .output()
        .expect("starts");
    let summary = summary(&dir);
    assert_code(output.status.code(), &summary, &[]);
    let step = &summary["steps"][0];
    assert_eq!((&step["sent"], &step["received"]), (&100.into(), &100.into()), "{summary:#}");
    assert_eq!(step["lost"], 0, "{summary:#}");
    let target = &summary["target"];
    let broker = target["broker"].as_str().expect("an address");
    assert!(broker.starts_with(scheme), "{broker}");
    assert!(target["version"].as_str().expect("a version").starts_with(version), "{target}");
    let handshakes = if transport == "tcp" { 0 } else { 10 };
    assert_eq!(summary["handshake_us"]["count"], handshakes, "{summary:#}");
    let verified = match scheme {
        "mqtts://" | "wss://" => serde_json::Value::Bool(true),
        _ => serde_json::Value::Null,
    };
    assert_eq!(target["tls_verified"], verified);
    let resumed = if verified.is_null() { verified } else { serde_json::Value::Bool(false) };
    assert_eq!(target["tls_resumed"], resumed);
}

#[test]
fn own_broker_over_tls() {
    own_broker_over("tls", "mqtts://", "3.1");
}

#[test]
fn own_broker_over_web_socket() {
    own_broker_over("ws", "ws://", "3.1.1");
}

#[test]
fn own_broker_over_secure_web_socket() {
    own_broker_over("wss", "wss://", "5");
}

#[test]
fn own_broker_over_tcp() {
    own_broker_over("tcp", "mqtt://", "5");
}

/// Certificates in files.
struct Authority {
    ca: PathBuf,
    ca_key: PathBuf,
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let ca = folder.join(format!("{name}.pem"));
        fs::write(&ca, params.self_signed(&key).expect("signs").pem()).expect("writes");
        let ca_key = folder.join(format!("{name}.key"));
        fs::write(&ca_key, key.serialize_pem()).expect("writes");
        Self { ca, ca_key, folder: folder.to_owned(), issuer: Issuer::new(params, key) }
    }

    /// The files of a certificate and its key.
    fn issue(&self, file: &str) -> (String, String) {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        self.sign(file, &CertificateParams::new(names).expect("names"))
    }

    fn sign(&self, file: &str, params: &CertificateParams) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.issuer).expect("signs");
        let path = |extension: &str| self.folder.join(format!("{file}.{extension}"));
        fs::write(path("pem"), cert.pem()).expect("writes");
        fs::write(path("key"), key.serialize_pem()).expect("writes");
        (text(&path("pem")), text(&path("key")))
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// `tacho broker`, killed when dropped.
struct Broker {
    child: Child,
    log: std::io::Lines<BufReader<ChildStderr>>,
    /// `tls://127.0.0.1:port` and the like, of its listeners.
    listeners: Vec<String>,
}

impl Broker {
    fn start(arguments: &[&str]) -> Self {
        let mut child = tacho(&["broker"]).args(arguments).spawn().expect("starts");
        let stderr = child.stderr.take().expect("is piped");
        let mut broker = Self { child, log: BufReader::new(stderr).lines(), listeners: Vec::new() };
        let line = broker.wait_for("listening on ");
        let (_, rest) = line.split_once("listening on ").expect("is in it");
        let (list, _) = rest.split_once(" with ").expect("shards follow");
        broker.listeners = list.split(", ").map(str::to_owned).collect();
        broker
    }

    fn wait_for(&mut self, words: &str) -> String {
        let found = self.log.by_ref().map_while(Result::ok).find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("the broker never said {words:?}"))
    }

    /// The address of a listener for `tacho run`.
    fn url(&self, transport: &str) -> String {
        let prefix = format!("{transport}://");
        let found = self.listeners.iter().find(|listener| listener.starts_with(&prefix));
        found.expect("such a listener").replace("tls://", "mqtts://")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn certificates_of_both_sides_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "ca");
    let stranger = Authority::new(folder.path(), "stranger");
    let (cert, key) = authority.issue("server");
    let ca = text(&authority.ca);
    let broker = Broker::start(&[
        "--listen",
        "tls://127.0.0.1:0",
        "--listen",
        "wss://127.0.0.1:0/devices",
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--tls-client-ca",
        &ca,
        "--tls-require-client-certificate",
    ]);
    let (mine, my_key) = authority.issue("client");
    for transport in ["tls", "wss"] {
        let dir = folder.path().join(transport);
        let url = broker.url(transport);
        let flags = ["--broker", &url, "--ca", &ca, "--cert", &mine, "--key", &my_key];
        let summary = run(&dir, &flags);
        assert_eq!(summary["target"]["tls_verified"], true);
        // The resolved scenario has what the flags said, and is a scenario again.
        let resolved = fs::read_to_string(dir.join("scenario.toml")).expect("reads");
        assert!(resolved.contains("[target.tls]") && resolved.contains(&my_key), "{resolved}");
        let file = dir.join("scenario.toml");
        let again = tacho(&["scenario", "check"]).arg(file).output().expect("starts");
        assert_eq!(String::from_utf8_lossy(&again.stdout), resolved);
    }
    let url = broker.url("tls");
    let with = |more: &[&str], code: i32, words: &[&str]| {
        fails(&[&["--broker", &url][..], more].concat(), code, words);
    };
    with(&["--ca", &ca], 112, &["no client could connect", "requires a certificate"]);
    let (theirs, their_key) = stranger.issue("other");
    with(
        &["--ca", &ca, "--cert", &theirs, "--key", &their_key],
        112,
        &["does not trust the CA of our certificate"],
    );
    with(&["--ca", &text(&stranger.ca)], 112, &["not trusted", "issuer is unknown"]);
    with(&["--ca", &ca, "--server-name", "elsewhere"], 112, &["not valid for name \"elsewhere\""]);
    with(&["--ca", &mine, "--cert", &mine, "--key", &their_key], 104, &["cannot be used"]);
    with(&["--ca", "/nowhere/ca.pem"], 104, &["cannot read the CA certificate /nowhere/ca.pem"]);
    // Not the path of its WebSocket.
    let wrong = broker.url("wss").replace("/devices", "/mqtt");
    let flags = ["--broker", &wrong, "--ca", &ca, "--cert", &mine, "--key", &my_key];
    fails(&flags, 112, &["404 Not Found", "check the path"]);
}

#[test]
fn an_unverified_broker_is_noted() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificates = folder.path().join("certificates");
    let folder_text = text(&certificates);
    let broker = Broker::start(&["--listen", "tls://127.0.0.1:0", "--self-signed", &folder_text]);
    let url = broker.url("tls");
    let summary = run(&folder.path().join("run"), &["--broker", &url, "--insecure"]);
    assert_eq!(summary["target"]["tls_verified"], false);
    let notes = summary["notes"].to_string();
    assert!(notes.contains("was not verified"), "{notes}");
    fails(&["--broker", &url], 112, &["not trusted"]);
    let own = run(
        &folder.path().join("own"),
        &["--broker", &url, "--ca", &text(&certificates.join("ca.pem")), "--tls-resume"],
    );
    assert!(!own["notes"].to_string().contains("was not verified"), "{own:#}");
    assert_eq!(own["target"]["tls_resumed"], true);
}

#[test]
#[cfg(unix)]
fn sighup_reads_certificates_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (old, new) = (Authority::new(folder.path(), "old"), Authority::new(folder.path(), "new"));
    let (cert, key) = old.issue("server");
    let mut broker =
        Broker::start(&["--listen", "tls://127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &key]);
    let url = broker.url("tls");
    let pid = rustix::process::Pid::from_raw(broker.child.id() as i32).expect("a pid");
    let hang_up = || {
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("is alive");
    };
    fs::write(&key, "no key").expect("writes");
    hang_up();
    broker.wait_for("the old ones stay in use: there is no private key in");
    run(&folder.path().join("old"), &["--broker", &url, "--ca", &text(&old.ca)]);
    new.issue("server");
    hang_up();
    broker.wait_for("reloaded");
    run(&folder.path().join("new"), &["--broker", &url, "--ca", &text(&new.ca)]);
    fails(&["--broker", &url, "--ca", &text(&old.ca)], 112, &["not trusted"]);
    // Another CA of the same name.
    Authority::new(folder.path(), "new");
    fails(&["--broker", &url, "--ca", &text(&new.ca)], 112, &["created again"]);
}

#[test]
fn flags_that_would_do_nothing_are_refused() {
    for (arguments, words) in [
        (&["--transport", "quic"][..], "quic"),
        (&["--insecure"], "--insecure cannot be used here"),
        (&["--transport", "tls", "--ca", "x"], "--ca cannot be used here"),
        (&["--cert", "x"], "--key"),
        (&["--tls-resume"], "--tls-resume cannot be used here"),
        (&["--insecure", "--ca", "x"], "--ca"),
    ] {
        fails(arguments, 1, &[words]);
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("mqtt://{}", listener.local_addr().expect("an address"));
    fails(&["--broker", &url, "--transport", "tls"], 1, &["--transport cannot be used here"]);
    fails(&["--broker", &url, "--ca", "x"], 1, &["--ca cannot be used here"]);
    fails(
        &["--broker-cmd", "x {port}", "--transport", "wss", "--ca", "/nowhere"],
        104,
        &["cannot read the CA certificate /nowhere"],
    );
}

#[test]
fn bad_certificates_end_the_broker_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "ca");
    let (cert, key) = authority.issue("server");
    let (_, other_key) = authority.issue("other");
    let listen = ["broker", "--listen", "tls://127.0.0.1:0"];
    for (arguments, words) in [
        (&[][..], "has no certificate"),
        (&["--tls-cert", "/nowhere", "--tls-key", &key], "cannot read the certificate /nowhere"),
        (&["--tls-cert", &key, "--tls-key", &key], "there is no certificate in"),
        (&["--tls-cert", &cert, "--tls-key", &cert], "there is no private key in"),
        (&["--tls-cert", &cert, "--tls-key", &other_key], "cannot be used"),
        (
            &["--tls-cert", &cert, "--tls-key", &key, "--tls-require-client-certificate"],
            "requires client certificates",
        ),
    ] {
        for check in [&[][..], &["--check-config"]] {
            let output = tacho(&listen).args(arguments).args(check).output().expect("starts");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(104), "{arguments:?}: {said}");
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
    }
    let useless = tacho(&["broker", "--listen", "ws://127.0.0.1:0", "--self-signed", "x"]).output();
    assert_eq!(useless.expect("starts").status.code(), Some(104));
}

/// A broker whose clients must be those that their certificates name.
fn broker_with_certificate_step(folder: &Path, authority: &Authority) -> Broker {
    let (cert, key) = authority.issue("server");
    let config = folder.join("broker.toml");
    let tls = format!("cert = '{cert}'\nkey = '{key}'\nclient_ca = '{}'\n", text(&authority.ca));
    let listener = "address = '127.0.0.1:0'\ntransport = 'tls'\nrequire_client_certificate = true\n\
                    certificate_user = 'cn'\ncertificate_client_id = 'equal'\n";
    fs::write(&config, format!("[tls]\n{tls}[[listeners]]\n{listener}")).expect("writes");
    Broker::start(&["--config", &text(&config), "--shards", "1"])
}

/// Runs `login` with five users for a second.
fn login(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = tacho(&["run", "login", "--quiet", "--force", "--hold", "1s"]);
    command.env_remove("TACHO_USERNAME").env_remove("TACHO_PASSWORD");
    for var in ["users=5", "rate=50/s", "warmup=0s"] {
        command.args(["--var", var]);
    }
    command.arg("--dir").arg(directory).args(arguments).output().expect("starts")
}

/// All 50 were let in, each by a handshake of its own, and no key is in the results.
fn assert_all_let_in(directory: &Path) {
    let summary = summary(directory);
    let kinds = &summary["steps"][0]["logins"]["kinds"];
    assert_eq!((&kinds[0]["due"], &kinds[0]["accepted"]), (&50.into(), &50.into()), "{summary:#}");
    for entry in fs::read_dir(directory).expect("a folder").flatten() {
        let bytes = fs::read(entry.path()).unwrap_or_default();
        let found = bytes.windows(11).any(|window| window == b"PRIVATE KEY");
        assert!(!found, "a key is in {}", entry.path().display());
    }
}

#[test]
fn each_client_presents_a_certificate_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "ca");
    let broker = broker_with_certificate_step(folder.path(), &authority);
    for client in 0..5 {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("login_{client}"));
        authority.sign(&format!("client-{client}"), &params);
    }
    let (url, ca) = (broker.url("tls"), text(&authority.ca));
    let [cert, key] = ["pem", "key"]
        .map(|extension| text(&folder.path().join(format!("client-{{{{i}}}}.{extension}"))));
    let run = folder.path().join("run");
    let from_files = ["--broker", &url, "--ca", &ca, "--cert", &cert, "--key", &key];
    let output = login(&run, &from_files);
    assert_all_let_in(&run);
    assert!(matches!(output.status.code(), Some(0 | 105 | 111)), "{output:?}");
    // The resolved scenario gives the same certificates again.
    let resolved = run.join("scenario.toml");
    let check = tacho(&["scenario", "check"]).arg(&resolved).output().expect("starts");
    assert_eq!(
        String::from_utf8_lossy(&check.stdout),
        fs::read_to_string(&resolved).expect("reads")
    );
    // One certificate for all is that of one client only.
    let [one, its_key] = [&cert, &key].map(|path| path.replace("{{i}}", "1"));
    let output = login(&run, &["--broker", &url, "--ca", &ca, "--cert", &one, "--key", &its_key]);
    assert_eq!(output.status.code(), Some(110), "{output:?}");
    let refused = |words: &[&str]| {
        let output = login(&run, &from_files);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(104), "{said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
    };
    let file = |name: &str| folder.path().join(name);
    fs::copy(file("client-2.key"), file("client-3.key")).expect("copies");
    refused(&["the client 'login_3' has no certificate", "client-3.key", "cannot be used"]);
    fs::remove_file(file("client-3.pem")).expect("is there");
    refused(&["the client 'login_3' has no certificate", "cannot read", "client-3.pem"]);
}

#[test]
fn a_test_ca_signs_certificates_of_clients() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "ca");
    let stranger = Authority::new(folder.path(), "stranger");
    let broker = broker_with_certificate_step(folder.path(), &authority);
    let (url, ca, key) = (broker.url("tls"), text(&authority.ca), text(&authority.ca_key));
    let run = folder.path().join("run");
    let base = ["--broker", &url, "--ca", &ca, "--test-ca", &ca, "--test-ca-key"];
    let with = |key: &str, more: &[&str]| login(&run, &[&base[..], &[key], more].concat());
    with(&key, &[]);
    assert_all_let_in(&run);
    let resolved = fs::read_to_string(run.join("scenario.toml")).expect("reads");
    assert!(resolved.contains("test_ca") && resolved.contains(&key), "{resolved}");
    // Other names are not let in.
    let output = with(&key, &["--test-ca-name", "meter-{{i}}"]);
    assert_eq!(output.status.code(), Some(110), "{output:?}");
    for (key, words) in [
        (text(&stranger.ca_key), "cannot be used"),
        (ca.clone(), "there is no private key in"),
        ("/nowhere/ca.key".to_owned(), "cannot read the private key /nowhere/ca.key"),
    ] {
        let output = with(&key, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(104), "{said}");
        assert!(said.contains(words), "{words}: {said}");
    }
    let output = with(&key, &["--cert", &ca, "--key", &key]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--cert"), "{output:?}");
}

#[test]
fn certificates_come_from_one_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "ca");
    let (ca, key) = (text(&authority.ca), text(&authority.ca_key));
    let file = folder.path().join("own.toml");
    for (keys, words) in [
        (format!("test_ca = {{ cert = '{ca}' }}"), "the key 'key' is missing"),
        (
            format!("cert = '{ca}'\nkey = '{key}'\ntest_ca = {{ cert = '{ca}', key = '{key}' }}"),
            "from files or from a CA for tests",
        ),
        ("cert = 'client-{{j}}.pem'\nkey = 'k'".to_owned(), "'j'"),
        ("cert = 'client-{{i}}.pem'".to_owned(), "this certificate has no key"),
    ] {
        let scenario = format!("name = 'own'\n[target.tls]\n{keys}\n[groups.g]\nclients = 1\n");
        fs::write(&file, scenario).expect("writes");
        let output = tacho(&["scenario", "check"]).arg(&file).output().expect("starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(104), "{said}");
        assert!(said.contains(words), "{words}: {said}");
    }
}
