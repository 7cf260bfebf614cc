//! A backend of logins as an operator meets it: what the log says of it, and what nothing says.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use tacho_codec::{Connect, ReasonCode, Version};
use tacho_testkit::http::{StubAnswer, StubReply, StubService};
use tacho_testkit::{Client, connect, line_with, listening_address, runtime_folder};
use tempfile::TempDir;

/// In a file, in the environment, in a CONNECT, and in an answer of the backend.
const SECRETS: [&str; 4] = ["file-s3cret", "environment-s3cret", "client-s3cret", "answer-s3cret"];

fn assert_no_secret(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

/// A configuration with a backend there, and the file of its secret.
fn configuration(folder: &TempDir, url: &str, keys: &str) -> PathBuf {
    let secret = folder.path().join("secret");
    fs::write(&secret, "file-s3cret\n").expect("writes");
    let path = folder.path().join("broker.toml");
    let text = format!(
        "listen = ['127.0.0.1:0']\nshards = 1\nsys_interval_s = 0\n[access.http]\nurl = '{url}'\n\
         {keys}\n[access.http.fields]\nuser = '%u'\npassword = '%P'\n\
         [access.http.secret_headers]\n\
         authorization = {{ file = {secret:?}, prefix = 'Bearer ' }}\nx-key = {{ env = 'BACKEND_KEY' }}\n"
    );
    fs::write(&path, text).expect("writes");
    path
}

fn tacho(config: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.args(["broker", "--verbose", "--config"]).arg(config);
    command.env("BACKEND_KEY", "environment-s3cret").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}

/// A broker whose log is read line by line; killed when dropped.
struct Broker {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    address: SocketAddr,
}

impl Broker {
    fn start(config: &Path) -> Self {
        let mut child = tacho(config).spawn().expect("starts");
        let log = BufReader::new(child.stderr.take().expect("is piped")).lines();
        let mut broker = Self { child, log, address: SocketAddr::from(([0; 4], 0)) };
        broker.address = listening_address(&broker.line_with("listening on "));
        broker
    }

    /// The next line of the log that has these words; no line has a secret.
    fn line_with(&mut self, words: &str) -> String {
        line_with(
            &mut self.log.by_ref().inspect(|line| {
                assert_no_secret(line.as_ref().expect("is text"));
            }),
            words,
        )
    }

    fn answer(&self, user: &str) -> ReasonCode {
        let (username, password) = (Some(user), Some(&b"client-s3cret"[..]));
        let connect = Connect { username, password, ..connect(user, Version::V5) };
        Client::open(self.address, Version::V5).connect(&connect).1
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_log_tells_once_that_the_backend_fails_and_when_it_answers_again() {
    let folder = TempDir::new().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let service = StubService::answering(listener, |request| {
        assert_eq!(request.header("authorization"), "Bearer file-s3cret");
        assert_eq!(request.header("x-key"), "environment-s3cret");
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let answer = |body: &str| StubReply::Answer(StubAnswer::new(200, body));
        match body.contains("ann") {
            true => answer(r#"{"result":"allow"}"#),
            false if body.contains("eve") => answer(r#"{"result":"deny"}"#),
            // Even an answer is not repeated.
            false => answer("answer-s3cret client-s3cret"),
        }
    });
    let url = format!("http://{}/login", service.address());
    let mut broker =
        Broker::start(&configuration(&folder, &url, "method = 'get'\nretries_max = 0"));
    let command = fs::read(format!("/proc/{}/cmdline", broker.child.id())).expect("is there");
    assert_no_secret(&String::from_utf8_lossy(&command));
    // The fields are in the query, and the body is empty.
    assert_eq!(broker.answer("ann"), ReasonCode::SERVER_UNAVAILABLE);
    let line = broker.line_with("does not answer as it should");
    assert!(line.contains(&format!("http://{}", service.address())), "{line}");
    assert!(line.contains("no JSON object") && line.contains("are refused"), "{line}");
    let line = broker.line_with("login refused");
    assert!(line.contains("the backend of logins does not answer"), "{line}");
    drop(broker);
    let mut broker = Broker::start(&configuration(&folder, &url, "retries_max = 0"));
    assert_eq!(broker.answer("otto"), ReasonCode::SERVER_UNAVAILABLE);
    broker.line_with("does not answer as it should");
    assert_eq!(broker.answer("eve"), ReasonCode::BAD_USER_NAME_OR_PASSWORD);
    broker.line_with("answers again");
    let line = broker.line_with("login refused");
    assert!(line.contains("the backend of logins refuses it") && line.contains("eve"), "{line}");
    assert_eq!(broker.answer("ann"), ReasonCode::SUCCESS);
}

#[test]
fn neither_the_configuration_nor_an_error_shows_a_secret() {
    let folder = TempDir::new().expect("a folder");
    let config = configuration(&folder, "https://auth.example/login", "");
    let checked = tacho(&config).arg("--check-config").output().expect("runs");
    assert!(checked.status.success(), "{}", said(&checked));
    let text = said(&checked);
    assert_no_secret(&text);
    assert!(text.contains("env = \"BACKEND_KEY\"") && text.contains("fields"), "{text}");
    let refused = |command: &mut Command, words: &str| {
        for more in [&["--check-config"][..], &[]] {
            let output = command.args(more).output().expect("runs");
            let text = said(&output);
            assert_eq!(output.status.code(), Some(104), "{text}");
            assert!(text.contains(words), "{words}: {text}");
            assert_no_secret(&text);
        }
    };
    refused(tacho(&config).env_remove("BACKEND_KEY"), "the variable BACKEND_KEY");
    fs::write(folder.path().join("secret"), "file-s3cret\nfile-s3cret\n").expect("writes");
    refused(&mut tacho(&config), "secret has characters that a header cannot have");
    fs::remove_file(folder.path().join("secret")).expect("is there");
    refused(&mut tacho(&config), "secret: cannot read it");
    let ca = configuration(&folder, "https://auth.example", "ca_file = '/no/ca.pem'");
    refused(&mut tacho(&ca), "/no/ca.pem (`ca_file`) cannot be used");
    let text = fs::read_to_string(&config).expect("is there");
    let text = text.replace("ca_file = '/no/ca.pem'", "");
    fs::write(&config, text.replace("{ env = 'BACKEND_KEY' }", "'file-s3cret'")).expect("writes");
    refused(&mut tacho(&config), "`x-key` must be { file =");
    fs::write(&config, text.replace("%u", "ann")).expect("writes");
    refused(&mut tacho(&config), "a field must have `%u`");
}

/// `tacho acl explain` about ann; the exit code must be this one. What it says has no secret.
fn explain(config: &Path, more: &[&str], input: &str, code: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["acl", "explain", "--config"]).arg(config).args(["-u", "ann"]).args(more);
    command.env("BACKEND_KEY", "environment-s3cret");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("is piped");
    // It may not want any.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("ends");
    let text = said(&output);
    assert_eq!(output.status.code(), Some(code), "{more:?}: {text}");
    assert_no_secret(&text);
    text
}

/// A backend to which ann has this password, and which brings rules.
fn service_of_ann() -> StubService {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    StubService::answering(listener, |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        StubReply::Answer(match body {
            body if body.contains("client-s3cret") => StubAnswer::new(
                200,
                r#"{"result":"allow","expire_at":4000000000,"more":"answer-s3cret","acl":
                   [{"permission":"allow","action":"publish","topic":"up/${clientid}"},
                    {"permission":"deny","action":"all","topics":["up/#"]}]}"#,
            ),
            body if body.contains("odd") => StubAnswer::new(200, "answer-s3cret"),
            body if body.contains("unknown") => StubAnswer::new(200, r#"{"result":"ignore"}"#),
            _ => StubAnswer::new(200, r#"{"result":"deny"}"#),
        })
    })
}

#[test]
fn acl_explain_says_that_the_backend_would_be_asked_and_asks_it_if_it_should() {
    let folder = TempDir::new().expect("a folder");
    let service = service_of_ann();
    let config = configuration(&folder, &format!("http://{}/", service.address()), "");
    let own = ["-i", "c1", "publish", "up/c1"];
    let ask = |more: &[&str], input: &str, code| {
        explain(&config, &[&["--ask"][..], more].concat(), input, code)
    };
    let said = explain(&config, &own, "", 0);
    assert!(said.contains("would be asked about user ann"), "{said}");
    assert!(service.requests().is_empty());
    let said = ask(&own, "client-s3cret\n", 0);
    for words in [
        "allows the login, until 4000000000 s since 1970",
        "its rules: allow publish up/%c",
        "its rules: deny all up/#",
        "allowed: by the rules that the login has brought",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let password = folder.path().join("password");
    fs::write(&password, "client-s3cret\nmore\n").expect("writes");
    let password = password.to_str().expect("is text");
    let other = ["--password-file", password, "-i", "c1", "publish", "up/c2"];
    let said = ask(&other, "", 99);
    assert!(said.contains("denied: by the rules that the login has brought"), "{said}");
    let said = ask(&["--password-file", password, "publish", "down"], "", 0);
    assert!(said.contains("no rule that the login has brought is about it"), "{said}");
    let said = ask(&["--password-file", password, "subscribe", "up/x"], "", 99);
    assert!(said.contains("not up/x: by the rules that the login"), "{said}");
    // A name that would widen its rules.
    let said = ask(&["--password-file", password, "-i", "a/b", "publish", "down"], "", 99);
    assert!(said.contains("denied: user name or client identifier contain"), "{said}");
    for (input, words) in [
        ("wrong\n", "refuses the login"),
        ("odd\n", "gives no answer that counts: the answer is no JSON object"),
        ("unknown\n", "neither the backend nor a password file knows the user"),
        ("\n", "no password"),
    ] {
        let said = ask(&own, input, 99);
        assert!(said.contains(words), "{input}: {said}");
    }
    let request = &service.requests()[0];
    assert_eq!(request.header("authorization"), "Bearer file-s3cret");
    // Without a user, or without a configuration, there is nothing to ask.
    let none = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["acl", "explain", "--ask", "--acl-file", "x", "publish", "a"])
        .output()
        .expect("runs");
    assert_eq!(none.status.code(), Some(1));
    let said = ask(&["--password-file", "/no/such", "publish", "a"], "", 104);
    assert!(said.contains("cannot read /no/such"), "{said}");
}

#[test]
fn acl_explain_knows_which_step_of_which_listener_decides() {
    let folder = TempDir::new().expect("a folder");
    let service = service_of_ann();
    let users = folder.path().join("users");
    let stored = tacho_access::StoredPassword::make(b"ann", tacho_access::Scheme::Sha512);
    let text = tacho_access::set_user("", "ann", &stored.expect("hashes"));
    fs::write(&users, text).expect("writes");
    let entry = |name: &str, keys: &str| {
        format!(
            "[[access.http]]\nname = '{name}'\nurl = 'http://{}/{name}'\n{keys}\n\
             fields = {{ u = '%u', p = '%P' }}\n",
            service.address()
        )
    };
    let listener = |port: u16, name: &str, file: &str| {
        format!("[[listeners]]\naddress = '127.0.0.1:{port}'\nlogin_backend = '{name}'\n{file}\n")
    };
    let file = format!("password_file = {users:?}");
    let config = folder.path().join("broker.toml");
    let text = [
        entry("last", ""),
        entry("first", "order = 'first'"),
        listener(1, "last", &file),
        listener(2, "first", &file),
        listener(3, "last", ""),
    ];
    fs::write(&config, text.concat()).expect("writes");
    let said = explain(&config, &["publish", "a"], "", 0);
    for words in
        ["127.0.0.1:1: ", "127.0.0.1:2: the backend first", "127.0.0.1:3: the backend last"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("users decides about user ann, not the backend last"), "{said}");
    let said = explain(&config, &["--ask", "publish", "a"], "x\n", 104);
    assert!(said.contains("choose one with --listener"), "{said}");
    let said =
        explain(&config, &["--ask", "--listener", "127.0.0.1:1", "publish", "a"], "x\n", 104);
    assert!(said.contains("no listener would ask a backend about ann"), "{said}");
    // The file decides where the backend says that it does not know the user.
    let second = ["--ask", "--listener", "127.0.0.1:2", "publish", "a"];
    let said = explain(&config, &second, "unknown\n", 0);
    assert!(said.contains("does not know the client (ignore)"), "{said}");
    explain(&config, &["--ask", "--listener", "127.0.0.1:3", "publish", "a"], "unknown\n", 99);
    let paths: Vec<String> = service.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/first", "/last"]);
}
