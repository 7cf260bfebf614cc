//! The scenario `login`, end to end, against this broker with users.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tacho_testkit::runs::is_fair;
use tacho_testkit::{line_with, listening_address, runtime_folder};
use tempfile::TempDir;

const PASSWORD: &str = "l0gin-s3cret";

fn tacho() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("TACHO_PASSWORD").env_remove("TACHO_USERNAME");
    command
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}

/// A broker that ends with the test.
struct Broker {
    child: Child,
    address: SocketAddr,
}

impl Broker {
    fn start(arguments: &[&str]) -> Self {
        let mut broker = tacho();
        broker.args(["broker", "--listen", "0", "--shards", "1", "--sys-interval-s", "0"]);
        broker.args(arguments).stdout(Stdio::null());
        let mut child = broker.spawn().expect("starts");
        let mut log = BufReader::new(child.stderr.take().expect("is piped")).lines();
        let address = listening_address(&line_with(&mut log, "listening on "));
        std::thread::spawn(move || log.for_each(drop));
        Self { child, address }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with the files `users`, in which some users have the password, and `password`.
fn folder(users: &[&str]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("password"), PASSWORD).expect("writes");
    for user in users {
        let file = folder.path().join("users");
        let mut passwd = tacho();
        passwd.args(["passwd", "-b", "--scram", "sha256", "--iterations", "4096"]);
        passwd.args(if file.exists() { &[][..] } else { &["-c"] });
        let output = passwd.arg(&file).args([user, PASSWORD]).output().expect("starts");
        assert!(output.status.success(), "{}", said(&output));
    }
    folder
}

struct Run {
    output: Output,
    record: Value,
    page: String,
}

/// Runs `login` with five users, all with the password, for a second.
fn run(folder: &Path, broker: &Broker, more: &[&str]) -> Run {
    let password = folder.join("password");
    let credentials =
        ["--username", "user{{i}}", "--password-file", password.to_str().expect("a name")];
    run_as(folder, broker, &[&credentials, more].concat())
}

/// The same with other credentials.
fn run_as(folder: &Path, broker: &Broker, more: &[&str]) -> Run {
    let directory = folder.join("run");
    let mut run = tacho();
    run.args(["run", "login", "--var", "users=5", "--var", "rate=100/s", "--var", "warmup=500ms"]);
    run.args(["--hold", "1s", "--broker", &format!("mqtt://{}", broker.address)]);
    run.args(more).arg("--dir").arg(&directory);
    let output = run.output().expect("starts");
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    let record = serde_json::from_str(&read("summary.json"));
    let record = record.unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    Run { output, record, page: read("report.html") }
}

/// The rows of a table of the run, by column.
fn rows_of(folder: &Path, name: &str) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(folder.join("run").join(name)).expect("reads");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let head: Vec<String> = lines.next().expect("a head").collect();
    lines.map(|cells| head.iter().cloned().zip(cells).collect()).collect()
}

fn kind<'v>(logins: &'v Value, name: &str) -> &'v Value {
    let kinds = logins["kinds"].as_array().expect("kinds");
    kinds.iter().find(|of| of["kind"] == name).unwrap_or_else(|| panic!("no {name}: {logins:#}"))
}

const USERS: [&str; 5] = ["user0", "user1", "user2", "user3", "user4"];

#[test]
fn expected_refusals_are_no_failures() {
    let folder = folder(&USERS);
    let users = folder.path().join("users");
    let broker = Broker::start(&["--password-file", users.to_str().expect("a name")]);
    let shares = ["--var", "wrong_share=0.1", "--var", "unknown_share=0.1"];
    let Run { output, record, page } = run(folder.path(), &broker, &shares);
    assert!(is_fair(&record), "{record:#}");
    let logins = &record["steps"][0]["logins"];
    let due = |name: &str| kind(logins, name)["due"].as_u64().expect("a count");
    let all = ["right", "wrong_password", "unknown_user"].map(due);
    assert_eq!(all.iter().sum::<u64>(), 100, "{logins:#}");
    assert_eq!(
        (&kind(logins, "right")["accepted"], &logins["misjudged"]),
        (&all[0].into(), &0.into())
    );
    for name in ["wrong_password", "unknown_user"] {
        let of = kind(logins, name);
        assert_eq!((&of["accepted"], &of["refused"]), (&0.into(), &of["due"]), "{of:#}");
        let reasons = of["reasons"].as_object().expect("reasons");
        assert_eq!(reasons.keys().collect::<Vec<_>>(), ["bad user name or password (0x86)"]);
        assert_eq!(of["refused_us"]["count"], of["due"]);
    }
    assert_eq!(record["client_failures"], 0);
    for entry in fs::read_dir(folder.path().join("run")).expect("a folder").flatten() {
        let bytes = fs::read(entry.path()).unwrap_or_default();
        let found = bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes());
        assert!(!found, "the password is in {}", entry.path().display());
    }
    let table = said(&output);
    for words in ["LOGINS", "wrong password", "logins decided as they must be", "(0x86)"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(page.contains("<h3>Logins</h3>") && page.contains("unknown user"));
    // Charts of logins instead of empty ones of messages.
    assert!(
        page.contains("<figcaption>Logins per second")
            && page.contains("<figcaption>Login latency")
    );
    assert!(!page.contains("<figcaption>Messages per second") && !page.contains("class=\"empty\""));
    let seconds = rows_of(folder.path(), "timeseries.csv");
    let sum = |column: &str| -> f64 {
        let number = |name: &str, row: &BTreeMap<String, String>| row[name].parse::<f64>();
        let per_row = seconds
            .iter()
            .map(|row| Some(number(column, row).ok()? * number("length_s", row).ok()?));
        per_row.map(|value| value.expect("a number")).sum()
    };
    // Those of the warm-up, too.
    let (accepted, refused) = (sum("login_accepted_per_s"), sum("login_refused_per_s"));
    assert!((accepted - 120.0).abs() < 10.0, "{accepted}");
    assert!((accepted + refused - 150.0).abs() < 2.0, "{accepted} {refused}");
    assert!(seconds.iter().any(|row| !row["login_p50_us"].is_empty()), "{seconds:?}");
    let steps = rows_of(folder.path(), "steps.csv");
    let accepted = all[0].to_string();
    assert_eq!((&steps[0]["logins_accepted"], &steps[0]["login_count"]), (&accepted, &accepted));
    let headlines = record["headlines"].as_array().expect("headlines");
    let named = |name: &str| headlines.iter().find(|headline| headline["name"] == name);
    assert_eq!(named("logins_right").expect("is there")["value"], 100.0);
    assert!(named("logins_per_second").expect("is there")["value"].as_f64() > Some(0.0));
}

#[test]
fn wrong_decisions_are_a_violation_with_a_finding() {
    // One of the users is not the broker's.
    let some = folder(&USERS[..4]);
    let users = some.path().join("users");
    let broker = Broker::start(&["--password-file", users.to_str().expect("a name")]);
    let Run { output, record, .. } = run(some.path(), &broker, &[]);
    assert_eq!(output.status.code(), Some(110), "{}", said(&output));
    assert_eq!(record["verdict"], "login_violation", "{record:#}");
    let right = kind(&record["steps"][0]["logins"], "right");
    assert_eq!((&right["refused"], &right["accepted"]), (&20.into(), &80.into()));
    let table = said(&output);
    assert!(table.contains("refused 20 with right ones, the first: login_4"), "{table}");
    // A broker without users accepts whatever comes.
    let open = Broker::start(&[]);
    let all = folder(&[]);
    let Run { output, record, page } = run(all.path(), &open, &["--var", "wrong_share=0.1"]);
    assert_eq!(output.status.code(), Some(110), "{}", said(&output));
    let wrong = kind(&record["steps"][0]["logins"], "wrong_password");
    assert_eq!((&wrong["accepted"], &wrong["refused"]), (&wrong["due"], &0.into()));
    let codes = record["findings"].as_array().expect("findings").iter().map(|of| &of["code"]);
    assert!(codes.into_iter().any(|code| code == "logins_misjudged"), "{record:#}");
    assert!(page.contains("decided logins wrongly"));
}

/// A broker that bans the generator says nothing about passwords.
#[test]
fn a_ban_of_the_generator_is_told() {
    let folder = folder(&USERS);
    let config = folder.path().join("broker.toml");
    let users = folder.path().join("users");
    let text = format!("[access]\npassword_file = '{}'\nlogin_failures_max = 5\n", users.display());
    fs::write(&config, text).expect("writes");
    let broker = Broker::start(&["--config", config.to_str().expect("a name")]);
    let Run { output, .. } = run(folder.path(), &broker, &["--var", "wrong_share=0.2"]);
    let table = said(&output);
    assert!(table.contains("has banned the generator"), "{table}");
}

#[test]
fn wrong_logins_without_right_ones_are_refused_before_the_run() {
    let mut run = tacho();
    let output = run.args(["run", "login", "--var", "wrong_share=0.1"]).output().expect("starts");
    assert_eq!(output.status.code(), Some(104), "{}", said(&output));
    assert!(said(&output).contains("use --credentials, --password-file"), "{}", said(&output));
}

const SECRET: &str = "t0ken-s3cret of a sufficient length";

/// Runs a scenario of these groups for a second, and returns its only step.
fn run_groups(folder: &Path, broker: &Broker, groups: &str, hold: &str) -> Value {
    let scenario = folder.join("own.toml");
    let phases = "[phases]\nwarmup = '500ms'\nmeasure = '1s'\ndrain = '3s'\n";
    fs::write(&scenario, format!("name = 'own'\n{phases}{groups}")).expect("writes");
    let directory = folder.join("run");
    let mut run = tacho();
    run.arg("run").arg(&scenario).args(["--force", "--hold", hold, "--dir"]).arg(&directory);
    run.args(["--broker", &format!("mqtt://{}", broker.address)]);
    let output = run.output().expect("starts");
    let text = fs::read_to_string(directory.join("summary.json")).unwrap_or_default();
    let record: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}", said(&output)));
    assert!(is_fair(&record), "{record:#}");
    assert_eq!(record["client_failures"], 0, "{record:#}");
    for entry in fs::read_dir(&directory).expect("a folder").flatten() {
        let bytes = fs::read(entry.path()).unwrap_or_default();
        for secret in [PASSWORD, SECRET, "BEGIN PRIVATE", "eyJ"] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {}", entry.path().display());
        }
    }
    record["steps"][0].clone()
}

/// All right logins are accepted, and the wrong ones refused.
fn assert_decided(step: &Value) {
    let logins = &step["logins"];
    let [right, wrong] = ["right", "wrong_password"].map(|name| kind(logins, name));
    assert_eq!((&right["accepted"], &wrong["refused"]), (&right["due"], &wrong["due"]));
    assert!(wrong["due"].as_u64() > Some(0), "{logins:#}");
}

#[test]
fn clients_log_in_by_scram() {
    let folder = folder(&USERS);
    let users = folder.path().join("users");
    let broker = Broker::start(&["--password-file", users.to_str().expect("a name")]);
    let group = format!(
        "[groups.user]\nclients = 5\nlogin = {{ rate = 40, wrong_share = 0.2, unknown_share = 0.1 }}\n\
         connect = {{ username = 'user{{{{i}}}}', password = '{PASSWORD}', scram = 'sha256' }}\n"
    );
    let step = run_groups(folder.path(), &broker, &group, "1s");
    assert_decided(&step);
    let unknown = kind(&step["logins"], "unknown_user");
    assert_eq!(unknown["refused"], unknown["due"]);
    assert!(step["rtt_us"]["count"].as_u64() > Some(0), "round trips log in, too: {step:#}");
}

/// A broker that takes tokens of this key.
fn token_broker(folder: &Path, key: &str) -> Broker {
    fs::write(folder.join("verify.key"), key).expect("writes");
    let config = folder.join("broker.toml");
    let text = format!(
        "[access.jwt]\nkey_file = '{}'\naudience = 'mqtt'\nleeway_s = 0\n",
        folder.join("verify.key").display()
    );
    fs::write(&config, text).expect("writes");
    Broker::start(&["--config", config.to_str().expect("a name")])
}

#[test]
fn clients_log_in_by_tokens_of_each_kind_of_key() {
    let rsa = include_str!("../../access/tests/fixtures/rsa.pem");
    let public = include_str!("../../access/tests/fixtures/rsa.pub.pem");
    for (key, verification_key, place) in
        [(SECRET, SECRET, "password"), (rsa, public, "auth"), (SECRET, SECRET, "auth")]
    {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("sign.key"), key).expect("writes");
        let broker = token_broker(folder.path(), verification_key);
        let group = format!(
            "[groups.user]\nclients = 5\nlogin = {{ rate = 40, wrong_share = 0.2 }}\n\
             connect.token = {{ key_file = 'sign.key', claims = {{ aud = 'mqtt' }}, \
             place = '{place}' }}\n"
        );
        let step = run_groups(folder.path(), &broker, &group, "1s");
        assert_decided(&step);
    }
}

/// The broker ends the connection of a token that has ended.
#[test]
fn tokens_are_renewed_before_they_end() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("sign.key"), SECRET).expect("writes");
    let broker = token_broker(folder.path(), SECRET);
    let group = "[groups.g]\nclients = 3\n\
         connect.token = { key_file = 'sign.key', claims = { aud = 'mqtt' }, lifetime = '2s', \
         place = 'auth' }\n\
         [[groups.g.publish]]\ntopic = 't/{{i}}'\nqos = 1\nrate = { per_client = 20 }\n\
         [[groups.g.subscribe]]\nfilter = 't/{{i}}'\n";
    let step = run_groups(folder.path(), &broker, group, "5s");
    assert_eq!((&step["received"], &step["lost"]), (&300.into(), &0.into()), "{step:#}");
}

#[test]
fn tokens_that_would_end_and_keys_that_cannot_sign_are_refused() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("sign.key"), SECRET).expect("writes");
    fs::write(folder.path().join("short.key"), "too short").expect("writes");
    for (token, words) in [
        ("key_file = 'sign.key', lifetime = '5s'", "end before the run does"),
        ("key_file = 'short.key'", "less than 16 bytes"),
        ("key_file = 'none.key'", "cannot read the token key"),
        ("key_file = 'sign.key', algorithm = 'RS256'", "is not for a secret"),
        ("key_file = 'sign.key', place = 'header'", "'place' cannot be 'header'"),
        ("key_file = 'sign.key', claims = { exp = 1 }", "follows from the lifetime"),
        ("key_file = 'sign.key', place = 'auth'", "needs MQTT 5"),
    ] {
        let scenario = folder.path().join("own.toml");
        let version = if words.contains("MQTT 5") { "version = '3.1.1'\n" } else { "" };
        let text = format!(
            "name = 'own'\n[groups.g]\nclients = 1\n{version}connect.token = {{ {token} }}\n"
        );
        fs::write(&scenario, text).expect("writes");
        let mut check = tacho();
        let output = check.args(["scenario", "check"]).arg(&scenario).output().expect("starts");
        assert_eq!(output.status.code(), Some(104), "{token}: {}", said(&output));
        assert!(said(&output).contains(words), "{token}: {}", said(&output));
        assert!(!said(&output).contains("too short"), "{}", said(&output));
    }
}

#[test]
fn flags_have_clients_log_in_by_scram_and_by_tokens() {
    let folder = folder(&USERS);
    let users = folder.path().join("users");
    let broker = Broker::start(&["--password-file", users.to_str().expect("a name")]);
    let wrong = ["--var", "wrong_share=0.2"];
    let by_scram = run(folder.path(), &broker, &[&["--scram", "sha256"][..], &wrong].concat());
    assert_decided(&by_scram.record["steps"][0]);
    let resolved = fs::read_to_string(folder.path().join("run/scenario.toml")).expect("reads");
    assert!(resolved.contains("scram = \"sha256\""), "{resolved}");

    let folder = TempDir::new().expect("a folder");
    let key = folder.path().join("sign.key");
    fs::write(&key, SECRET).expect("writes");
    let broker = token_broker(folder.path(), SECRET);
    let key = key.to_str().expect("a name");
    let token = ["--token-key", key, "--token-claim", "aud=mqtt", "--token-place", "auth"];
    let by_token = run_as(folder.path(), &broker, &[&token[..], &wrong].concat());
    assert_decided(&by_token.record["steps"][0]);
    let resolved = fs::read_to_string(folder.path().join("run/scenario.toml")).expect("reads");
    assert!(resolved.contains("place = \"auth\"") && !resolved.contains(SECRET), "{resolved}");
}

#[test]
fn flags_of_logins_that_contradict_each_other_are_refused() {
    let folder = folder(&[]);
    let file = |name: &str| folder.path().join(name).to_str().expect("a name").to_owned();
    fs::write(file("sign.key"), SECRET).expect("writes");
    let (key, password) = (file("sign.key"), file("password"));
    for (arguments, code, words) in [
        (&["--scram", "sha256", "--token-key", &key][..], 1, "cannot be used with"),
        (&["--scram", "md5"], 1, "md5"),
        (&["--token-claim", "aud=mqtt"], 1, "--token-key"),
        (&["--token-key", &key, "--token-claim", "exp=1"], 1, "follows from the lifetime"),
        (&["--token-key", &key, "--token-claim", "=x"], 1, "NAME=VALUE"),
        (&["--token-key", &key, "--token-place", "header"], 1, "password, username or auth"),
        (&["--token-key", &key, "--token-lifetime", "0s"], 1, "at least a second"),
        (&["--token-key", &key, "--token-algorithm", "RS256"], 104, "is not for a secret"),
        (&["--token-key", "/nowhere"], 104, "cannot read the token key '/nowhere'"),
        (&["--token-key", &key, "--password-file", &password], 104, "beside --token-key"),
        (&["--token-key", &key, "--var", "unknown_share=0.1"], 104, "'unknown_share'"),
        (&["--scram", "sha256"], 104, "log in by SCRAM and have no user name"),
        (&["--scram", "sha256", "--username", "u"], 104, "log in by SCRAM and have no password"),
        (
            &[
                "--scram",
                "sha256",
                "--username",
                "u",
                "--password-file",
                &password,
                "--var",
                "version=3.1.1",
            ],
            104,
            "needs MQTT 5",
        ),
    ] {
        let output = tacho().args(["run", "login"]).args(arguments).output().expect("starts");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{arguments:?}: {}", said(&output));
        assert!(!said(&output).contains(SECRET), "{}", said(&output));
    }
}
