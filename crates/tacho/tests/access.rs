//! Access control as an operator meets it: `tacho passwd`, `tacho acl explain`, the broker's flags
//! and SIGHUP.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tacho_access::{Memory, Users};
use tacho_codec::{Connect, QoS, ReasonCode, Version};
use tacho_testkit::{Client, connect, line_with, listening_address, runtime_folder};
use tempfile::TempDir;

/// Runs `tacho` with this on standard input.
fn tacho(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    // A command that needs no input may have ended.
    let _ = child.stdin.take().expect("is piped").write_all(input.as_bytes());
    child.wait_with_output().expect("ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs, checks the exit code, and gives back what was said.
fn said(arguments: &[&str], input: &str, code: i32) -> String {
    let output = tacho(arguments, input);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

fn has(file: &Path, user: &str, password: &str) -> bool {
    let text = fs::read_to_string(file).expect("is there");
    let users = Users::parse("users", &text).expect("valid");
    users.verify(user, password.as_bytes(), &mut Memory::default())
}

/// A path in a folder, as text.
fn at(folder: &TempDir, name: &str) -> (PathBuf, String) {
    let path = folder.path().join(name);
    let shown = path.to_str().expect("is text").to_owned();
    (path, shown)
}

#[test]
fn passwd_makes_changes_and_deletes_users() {
    let folder = TempDir::new().expect("a folder");
    let (path, file) = at(&folder, "users");
    said(&["passwd", "-c", &file, "ann"], "secret one\n", 0);
    assert!(has(&path, "ann", "secret one"));
    let mode = fs::metadata(&path).expect("is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    said(&["passwd", "-b", &file, "bob", "two"], "", 0);
    assert!(has(&path, "ann", "secret one") && has(&path, "bob", "two"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("is ours");
    said(&["passwd", &file, "ann"], "changed\r\n", 0);
    assert!(has(&path, "ann", "changed") && !has(&path, "ann", "secret one"));
    let mode = fs::metadata(&path).expect("is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    said(&["passwd", "-D", &file, "ann"], "", 0);
    assert!(!has(&path, "ann", "changed") && has(&path, "bob", "two"));
    let entries = fs::read_dir(folder.path()).expect("is there").count();
    assert_eq!(entries, 1, "no file is left behind");
}

#[test]
fn a_new_password_file_is_for_the_group_of_a_folder_that_is() {
    let folder = TempDir::new().expect("a folder");
    for (of_folder, of_file) in [(0o700, 0o600), (0o750, 0o600), (0o2755, 0o600), (0o2750, 0o640)] {
        let place = folder.path().join(format!("{of_folder:o}"));
        fs::create_dir(&place).expect("makes");
        fs::set_permissions(&place, fs::Permissions::from_mode(of_folder)).expect("is ours");
        let file = place.join("users");
        said(&["passwd", "-c", "-b", file.to_str().expect("is text"), "ann", "one"], "", 0);
        let mode = fs::metadata(&file).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, of_file, "in a folder of {of_folder:o}");
    }
}

#[test]
fn passwd_stores_the_keys_of_scram() {
    let folder = TempDir::new().expect("a folder");
    let (path, file) = at(&folder, "users");
    let line = |number: usize| {
        let text = fs::read_to_string(&path).expect("is there");
        text.lines().nth(number).unwrap_or_default().to_owned()
    };
    said(&["passwd", "-c", "--scram", "sha256", &file, "ann"], "secret one\n", 0);
    assert!(line(0).starts_with("ann:$scram-sha256$10000$"), "{}", line(0));
    let more = ["passwd", "--scram", "sha512", "--iterations", "4096", &file, "bob"];
    said(&more, "two\n", 0);
    assert!(line(1).starts_with("bob:$scram-sha512$4096$"), "{}", line(1));
    assert!(has(&path, "ann", "secret one") && has(&path, "bob", "two"));
    assert!(!has(&path, "ann", "two"));
    fs::write(&path, "eve:plain\n").expect("writes");
    said(&["passwd", "-U", "--scram", "sha256", &file], "", 0);
    assert!(line(0).starts_with("eve:$scram-sha256$") && has(&path, "eve", "plain"));
    for (wrong, input, words) in [
        (&["--scram", "sha1", &file, "x"][..], "a\n", "sha256 or sha512"),
        (&["--scram", "sha256", "--iterations", "100", &file, "x"], "a\n", "4096"),
        (&["--iterations", "5000", &file, "x"], "a\n", "--scram"),
        (&["--scram", "sha256", "-D", &file, "eve"], "", "cannot be used"),
    ] {
        let answer = said(&[&["passwd"][..], wrong].concat(), input, 1);
        assert!(answer.contains(words), "{wrong:?}: {answer}");
    }
    let answer = said(&["passwd", "--scram", "sha256", &file, "\u{2168}"], "a\n", 104);
    assert!(answer.contains("`IX`"), "{answer}");
    let answer = said(&["passwd", "--scram", "sha256", &file, "x"], "a\u{7}\n", 104);
    assert!(answer.contains("character"), "{answer}");
}

#[test]
fn users_of_emqx_are_imported_and_plain_passwords_hashed() {
    let folder = TempDir::new().expect("a folder");
    let (path, file) = at(&folder, "users");
    let (csv_path, csv) = at(&folder, "emqx.csv");
    // SHA-256 of `salt-of-emqxsecret`.
    let hash = "45000c7123d94b996c26ee7b803185bcc1b6738489da725881048baa34f1056a";
    let lines = format!(
        "user_id,password_hash,salt,is_superuser\nann,{hash},salt-of-emqx,true\n\
         bob,{hash},salt-of-emqx,false\n"
    );
    fs::write(&csv_path, lines).expect("writes");
    fs::write(&path, "# kept\nann:old one\neve:plain word\n").expect("writes");
    let import = ["passwd", "--import-emqx", &csv, "--hash", "sha256:prefix", &file];
    let told = said(&import, "", 0);
    assert!(told.contains("1 users added, 1 changed"), "{told}");
    assert!(told.contains("1 were superusers (ann)"), "{told}");
    assert!(told.contains("will not take this file"), "eve is plain: {told}");
    let told = said(&["passwd", "-U", &file], "", 0);
    assert!(told.contains("1 plain passwords hashed"), "{told}");
    assert!(has(&path, "ann", "secret") && has(&path, "bob", "secret"));
    assert!(has(&path, "eve", "plain word") && !has(&path, "ann", "old one"));
    assert!(fs::read_to_string(&path).expect("is there").starts_with("# kept\nann:$digest$"));
    let before = fs::read(&path).expect("is there");
    assert!(
        said(&import[..3].iter().chain(&[&*file]).copied().collect::<Vec<_>>(), "", 104)
            .contains("emqx.csv:2: the user `ann`: the password is hashed: say how with --hash")
    );
    assert!(said(&["passwd", "--hash", "md5", &file], "", 1).contains("not a hash of EMQX"));
    said(&["passwd", "-U", &file, "ann"], "", 1);
    said(&["passwd", &file], "", 1);
    assert_eq!(fs::read(&path).expect("is there"), before);
}

#[test]
fn passwd_refuses_what_a_broker_could_not_read() {
    let folder = TempDir::new().expect("a folder");
    let (path, file) = at(&folder, "users");
    assert!(said(&["passwd", &file, "ann"], "x\n", 104).contains("-c creates it"));
    assert!(said(&["passwd", "-c", &file, "a:b"], "x\n", 104).contains("`:`"));
    assert!(said(&["passwd", "-c", &file, "ann"], "\n", 104).contains("bytes"));
    assert!(said(&["passwd", "-c", &file, "ann"], "", 104).contains("bytes"));
    assert!(!path.exists());
    said(&["passwd", "-c", &file, "ann"], "x\n", 0);
    assert!(said(&["passwd", "-D", &file, "eve"], "", 104).contains("`eve` is not in"));
    said(&["passwd", "-c", "-D", &file, "ann"], "", 1);
    said(&["passwd", "-b", &file, "ann"], "", 1);
    said(&["passwd", &file, "ann", "password"], "", 1);
    // Other lines are not touched, but told.
    fs::write(&path, "eve:plain\n").expect("writes");
    let warning = said(&["passwd", &file, "ann"], "x\n", 0);
    assert!(warning.contains(":1: ") && !warning.contains("eve:plain"), "{warning}");
}

#[test]
fn acl_explain_names_the_line() {
    let folder = TempDir::new().expect("a folder");
    let (path, file) = at(&folder, "acl");
    fs::write(&path, "user ann\ntopic read a/#\ntopic deny a/b\npattern write dev/%c\n").expect("");
    let explain = |rest: &[&str], code: i32| {
        let arguments = [&["acl", "explain", "--acl-file", &file, "--client-id", "c1"][..], rest];
        said(&arguments.concat(), "", code)
    };
    for (rest, code, words) in [
        (&["--user", "ann", "receive", "a/x"][..], 0, ":2: topic read a/#"),
        (&["--user", "ann", "receive", "a/b"], 99, ":3: topic deny a/b"),
        (&["--user", "ann", "publish", "a/x"], 99, "no entry"),
        (&["publish", "dev/c1"], 0, ":4: pattern write dev/%c"),
        (&["publish", "$SYS/x"], 99, "belong to the broker"),
        (&["--user", "ann", "subscribe", "a/+/x"], 0, "every topic"),
        (&["--user", "ann", "subscribe", "a/#"], 99, "not every topic"),
        (&["--user", "ann", "subscribe", "a/#"], 99, ": not a/b: "),
        (&["--user", "ann", "subscribe", "a/#"], 99, ":3: topic deny a/b"),
        (&["--user", "ann", "subscribe", "#"], 99, ": not x: no entry of"),
        (&["--user", "ann", "subscribe", "$share/g/a/c"], 0, "every topic"),
        (&["subscribe", "a/#/b"], 104, "'#'"),
        (&["publish", "a/#"], 104, "not a topic name"),
    ] {
        let answer = explain(rest, code);
        assert!(answer.contains(words), "{rest:?}: {answer}");
    }
    let (users, users_shown) = at(&folder, "users");
    fs::write(&users, "").expect("writes");
    let (config, config_shown) = at(&folder, "broker.toml");
    let sections = format!(
        "[access]\nacl_file = '{file}'\npassword_file = '{users_shown}'\nsubscribe = 'filtered'\n"
    );
    fs::write(&config, sections).expect("writes");
    let rest = ["acl", "explain", "--config", &config_shown, "-u", "ann", "subscribe", "a/#"];
    let answer = said(&rest, "", 0);
    assert!(answer.contains("user ann is not in") && answer.contains("left out"), "{answer}");
    said(&["acl", "explain", "publish", "a"], "", 1);
    fs::write(&path, "user ann\ntopc a\n").expect("writes");
    assert!(explain(&["publish", "a"], 104).contains("acl:2: "));
}

#[test]
fn acl_explain_names_the_rule_of_a_rules_file() {
    let folder = TempDir::new().expect("a folder");
    let (path, file) = at(&folder, "rules.toml");
    let rules = "[users]\nann = 'staff'\n[roles.staff]\n\
                 [[rules]]\ndeny = 'connect'\naddresses = '10.0.0.0/8'\n\
                 [[rules]]\nallow = 'connect'\nlisteners = '1883'\n\n\
                 [[rules]]\nallow = ['publish', 'subscribe']\ntopics = 'a/#'\nroles = 'staff'\n\
                 qos = [0, 1]\nretain = false\n# the end\n\
                 [[rules]]\nallow = 'subscribe'\ntopics = 'jobs/%c'\nshared = true\n";
    fs::write(&path, rules).expect("writes");
    let explain = |rest: &[&str], code: i32| {
        let arguments = [&["acl", "explain", "--rules-file", &file][..], rest];
        said(&arguments.concat(), "", code)
    };
    let staff = "rules.toml:11: allow = ['publish', 'subscribe']; topics = 'a/#'; roles = 'staff'";
    for (rest, code, words) in [
        (&["-u", "ann", "publish", "a/x"][..], 0, staff),
        (&["-u", "ann", "publish", "a/x"], 0, "roles: staff"),
        (&["-u", "ann", "publish", "a/x", "--qos", "2"], 99, "no rule of"),
        (&["-u", "ann", "publish", "a/x", "--retain"], 99, "no rule of"),
        (&["-u", "bob", "publish", "a/x"], 99, "no rule of"),
        (&["-u", "ann", "subscribe", "a/#"], 0, "every topic"),
        (&["-u", "ann", "subscribe", "a/x"], 0, staff),
        (&["-u", "ann", "receive", "a/x"], 0, staff),
        (&["subscribe", "jobs/client"], 99, "no rule of"),
        (&["subscribe", "$share/g/jobs/client"], 0, "rules.toml:18: "),
        (&["subscribe", "$share/g/jobs/+"], 99, "not every topic"),
        (&["subscribe", "$share/g/jobs/+"], 99, ": not jobs/x: no rule of"),
        (&["-i", "c/1", "receive", "jobs/c/1"], 99, "control character"),
        (&["connect", "--address", "10.1.1.1"], 99, "rules.toml:4: deny = 'connect'"),
        (&["connect", "--address", "::1", "--listener", "127.0.0.1:1883"], 0, "rules.toml:7: "),
        (&["connect", "--address", "::1", "--listener", "127.0.0.1:1884"], 99, "no rule of"),
        (&["publish"], 1, "TOPIC"),
    ] {
        let answer = explain(rest, code);
        assert!(answer.contains(words), "{rest:?}: {answer}");
    }
    let limited = "[roles.default]\nqos_max = 1\ntopic_levels_max = 2\n\
                   [[rules]]\nallow = 'all'\ntopics = '#'\n";
    fs::write(&path, limited).expect("writes");
    assert!(explain(&["publish", "a", "--qos", "2"], 99).contains("its QoS is higher"));
    assert!(explain(&["publish", "a/b/c"], 99).contains("more levels"));
    explain(&["publish", "a/b"], 0);
    assert!(explain(&["subscribe", "a/+/c"], 99).contains("more levels"));
    // A subscription gets the QoS that the role allows, and is judged by that.
    let high = "[[rules]]\ndeny = 'subscribe'\ntopics = '#'\nqos = 2\n";
    let capped = limited.replacen("[[rules]]", &format!("{high}[[rules]]"), 1);
    fs::write(&path, &capped).expect("writes");
    explain(&["subscribe", "a/+", "--qos", "2"], 0);
    fs::write(&path, capped.replace("qos_max = 1\n", "")).expect("writes");
    explain(&["subscribe", "a/+", "--qos", "2"], 99);
    fs::write(&path, rules).expect("writes");
    let (config, config_shown) = at(&folder, "broker.toml");
    let listen = |port: u16| format!("listen = [{port}]\n[access]\nrules_file = '{file}'\n");
    let rest = ["acl", "explain", "--config", &config_shown, "-u", "ann", "publish", "a/x"];
    fs::write(&config, listen(1883)).expect("writes");
    assert!(said(&rest, "", 0).contains(staff));
    // What the rules name must be there.
    fs::write(&config, listen(1884)).expect("writes");
    assert!(said(&rest, "", 104).contains("rules.toml:9: `listeners`: no listener"));
    fs::write(&path, "[[rules]]\nallow = 'all'\n").expect("writes");
    assert!(explain(&["publish", "a"], 104).contains("rules.toml:1: `topics` is missing"));
}

/// A broker whose log is read line by line; killed when dropped.
struct Broker {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    address: SocketAddr,
}

impl Broker {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.env("XDG_RUNTIME_DIR", runtime_folder());
        command.args(["broker", "--listen", "0", "--sys-interval-s", "0", "--shards", "1"]);
        command.args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let log = BufReader::new(child.stderr.take().expect("is piped")).lines();
        let mut broker = Self { child, log, address: SocketAddr::from(([0; 4], 0)) };
        let line = broker.line_with("listening on ");
        broker.address = listening_address(&line);
        broker
    }

    /// The next line of the log that has these words.
    fn line_with(&mut self, words: &str) -> String {
        line_with(&mut self.log, words)
    }

    fn client(&self, user: &str, password: &str) -> (Client, ReasonCode) {
        let mut client = Client::open(self.address, Version::V5);
        let (username, password) = (Some(user), Some(password.as_bytes()));
        let connect = Connect { username, password, ..connect(user, Version::V5) };
        let (_, reason) = client.connect(&connect);
        (client, reason)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn acl_explain_says_which_user_a_certificate_names() {
    let folder = TempDir::new().expect("a folder");
    let files = tacho_broker::self_signed(folder.path(), []).expect("writes");
    let (acl_path, acl) = at(&folder, "acl");
    fs::write(&acl_path, "user Tacho test broker\ntopic read a\n").expect("writes");
    let (path, config) = at(&folder, "broker.toml");
    let listener = |user: &str| {
        format!(
            "[access]\nacl_file = {acl:?}\n[tls]\ncert = {:?}\nkey = {:?}\nclient_ca = {:?}\n\
             [[listeners]]\naddress = 1883\ntransport = 'tls'\ncertificate_user = '{user}'\n",
            files.cert, files.key, files.ca
        )
    };
    let cert = files.cert.to_str().expect("is text");
    let explain = |more: &[&str], code| {
        let arguments = ["acl", "explain", "--config", &config, "--certificate", cert];
        said(&[&arguments[..], more].concat(), "", code)
    };
    fs::write(&path, listener("cn")).expect("writes");
    let answer = explain(&["subscribe", "a"], 0);
    assert!(answer.contains("user Tacho test broker by ") && answer.contains("tls://"), "{answer}");
    explain(&["subscribe", "b"], 99);
    fs::write(&path, listener("san_email")).expect("writes");
    let answer = explain(&["subscribe", "a"], 99);
    assert!(answer.contains("no e-mail address") && answer.contains("names no user"), "{answer}");
    fs::write(&path, "").expect("writes");
    let answer = explain(&["subscribe", "a"], 104);
    assert!(answer.contains("certificate_user"), "{answer}");
}

#[test]
fn the_flags_close_a_loopback_listener_and_sighup_changes_users_and_rules() {
    let folder = TempDir::new().expect("a folder");
    let (_, users) = at(&folder, "users");
    let (acl, acl_shown) = at(&folder, "acl");
    said(&["passwd", "-c", &users, "ann"], "secret word\n", 0);
    fs::write(&acl, "user ann\ntopic a/#\n").expect("writes");
    let mut broker = Broker::start(&["--password-file", &users, "--acl-file", &acl_shown]);
    let mut anonymous = Client::open(broker.address, Version::V311);
    let (_, reason) = anonymous.connect(&connect("x", Version::V311));
    assert_eq!(reason, ReasonCode::NOT_AUTHORIZED);
    let (_, reason) = broker.client("ann", "guessed word");
    assert_eq!(reason, ReasonCode::BAD_USER_NAME_OR_PASSWORD);
    let line = broker.line_with("unknown user or wrong password");
    assert!(line.contains("login refused") && line.contains("ann"), "{line}");
    assert!(!line.contains("guessed"), "{line}");
    let (mut ann, reason) = broker.client("ann", "secret word");
    assert_eq!(reason, ReasonCode::SUCCESS);
    assert_eq!(ann.subscribe("a/#", QoS::AtMostOnce), ReasonCode::SUCCESS);
    let refused = ann.try_publish("b", b"x", QoS::AtLeastOnce);
    assert_eq!(refused, ReasonCode::NOT_AUTHORIZED);
    let line = broker.line_with("not allowed");
    assert!(line.contains("no entry of the access list allows it"), "{line}");

    fs::write(&acl, "user ann\ntopic a/#\ntopic denied b\n").expect("writes");
    let signal = |broker: &Broker| {
        kill_process(Pid::from_child(&broker.child), Signal::HUP).expect("is sent");
    };
    signal(&broker);
    let line = broker.line_with("cannot be used");
    assert!(line.contains(":3: "), "{line}");
    broker.line_with("the old ones stay in force");
    ann.publish("a/1", b"still", QoS::AtMostOnce, false);
    assert_eq!(ann.receive().payload, b"still");

    fs::write(&acl, "user ann\ntopic b\n").expect("writes");
    signal(&broker);
    assert_eq!(ann.expect_disconnect(), ReasonCode::NOT_AUTHORIZED);
    broker.line_with("users and access rules: reloaded");
    let (mut ann, _) = broker.client("ann", "secret word");
    assert_eq!(ann.subscribe("a/#", QoS::AtMostOnce), ReasonCode::NOT_AUTHORIZED);
}

#[test]
fn files_that_change_are_applied_without_a_signal() {
    let folder = TempDir::new().expect("a folder");
    // As containers mount them: a link to a folder that is replaced as a whole.
    let link = folder.path().join("files");
    let switch_to = |name: &str, users: &[&str]| {
        let version = folder.path().join(name);
        fs::create_dir(&version).expect("is new");
        for (at, user) in users.iter().enumerate() {
            let (file, create) = (version.join("users"), if at == 0 { "-c" } else { "-b" });
            let file = file.to_str().expect("is text");
            match create {
                "-c" => said(&["passwd", "-c", file, user], "word\n", 0),
                _ => said(&["passwd", "-b", file, user, "word"], "", 0),
            };
        }
        if users.is_empty() {
            fs::write(version.join("users"), "ann:plain\n").expect("writes");
        }
        let new = folder.path().join("new");
        std::os::unix::fs::symlink(&version, &new).expect("is new");
        fs::rename(&new, &link).expect("is replaced");
    };
    switch_to("1", &["ann"]);
    let (config, config_shown) = at(&folder, "broker.toml");
    let users = link.join("users");
    fs::write(&config, format!("[access]\npassword_file = {users:?}\ncheck_s = 1\n")).expect("");
    let mut broker = Broker::start(&["--config", &config_shown]);
    let (mut ann, reason) = broker.client("ann", "word");
    assert_eq!(reason, ReasonCode::SUCCESS);
    switch_to("2", &["ann", "bob"]);
    broker.line_with("users and access rules: reloaded");
    let (mut bob, reason) = broker.client("bob", "word");
    assert_eq!(reason, ReasonCode::SUCCESS);
    switch_to("3", &[]);
    let line = broker.line_with("the old ones stay in force");
    assert!(line.contains("users:1: ") && !line.contains("plain"), "{line}");
    bob.ping();
    switch_to("4", &["ann"]);
    broker.line_with("users and access rules: reloaded");
    assert_eq!(bob.expect_disconnect(), ReasonCode::NOT_AUTHORIZED);
    ann.ping();
}

#[test]
fn the_audit_log_has_every_refused_login_or_counts_it() {
    let folder = TempDir::new().expect("a folder");
    let (acl, acl_shown) = at(&folder, "acl");
    let (_, users) = at(&folder, "users");
    let (audit, audit_shown) = at(&folder, "audit.jsonl");
    said(&["passwd", "-c", &users, "ann"], "secret word\n", 0);
    fs::write(&acl, "user ann\ntopic a/#\n").expect("writes");
    let flags = ["--password-file", &users, "--acl-file", &acl_shown, "--audit-file", &audit_shown];
    let mut broker = Broker::start(&flags);
    let mode = fs::metadata(&audit).expect("is made").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (_, reason) = broker.client("ann", "guessed word");
    assert_eq!(reason, ReasonCode::BAD_USER_NAME_OR_PASSWORD);
    let (mut ann, _) = broker.client("ann", "secret word");
    assert_eq!(ann.subscribe("a/x", QoS::AtMostOnce), ReasonCode::SUCCESS);
    // Moved away, as `logrotate` does; SIGHUP opens a new one, and changes the rules.
    let moved = folder.path().join("moved");
    fs::rename(&audit, &moved).expect("is there");
    fs::write(&acl, "user ann\ntopic b\n").expect("writes");
    let signal = |broker: &Broker, signal: Signal| {
        kill_process(Pid::from_child(&broker.child), signal).expect("is sent");
    };
    signal(&broker, Signal::HUP);
    broker.line_with("users and access rules: reloaded");
    assert_eq!(ann.expect_disconnect(), ReasonCode::NOT_AUTHORIZED);
    let refused = 60;
    for _ in 0..refused {
        let mut anonymous = Client::open(broker.address, Version::V311);
        let (_, reason) = anonymous.connect(&connect("x", Version::V311));
        assert_eq!(reason, ReasonCode::NOT_AUTHORIZED);
    }
    signal(&broker, Signal::TERM);
    assert!(broker.child.wait().expect("ends").success());
    let lines = |path: &Path| -> Vec<serde_json::Value> {
        let text = fs::read_to_string(path).expect("is there");
        assert!(!text.contains("guessed") && !text.contains("secret"), "{text}");
        text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
    };
    let [first] = &lines(&moved)[..] else { panic!("{:?}", lines(&moved)) };
    for (key, value) in [
        ("event", "login_refused"),
        ("client_id", "ann"),
        ("user", "ann"),
        ("listener", &*broker.address.to_string()),
        ("protocol", "5.0"),
        ("reason", "0x86"),
        ("why", "unknown user or wrong password"),
    ] {
        assert_eq!(first[key], value, "{first}");
    }
    assert!(first["address"].as_str().is_some_and(|address| address.starts_with("127.0.0.1:")));
    let later = lines(&audit);
    let of = |kind: &'static str| later.iter().filter(move |line| line["event"] == kind);
    assert_eq!(of("rules_changed").count(), 1);
    let ended: Vec<_> = of("subscription_ended").chain(of("client_disconnected")).collect();
    assert_eq!(ended.len(), 2);
    assert_eq!((&ended[0]["topic_filter"], &ended[0]["user"]), (&"a/x".into(), &"ann".into()));
    let left_out: u64 = of("left_out").filter_map(|line| line["count"].as_u64()).sum();
    assert_eq!(of("login_refused").count() as u64 + left_out, refused);
}

#[test]
fn a_ban_file_that_changes_ends_the_connection() {
    let folder = TempDir::new().expect("a folder");
    let (bans, shown) = at(&folder, "bans.toml");
    let (audit, audit_shown) = at(&folder, "audit.jsonl");
    let (config, config_shown) = at(&folder, "broker.toml");
    fs::write(&bans, "").expect("writes");
    fs::write(&config, "[access]\ncheck_s = 1\n").expect("writes");
    let flags = ["--config", &config_shown, "--ban-file", &shown, "--audit-file", &audit_shown];
    let mut broker = Broker::start(&flags);
    let (mut ann, reason) = broker.client("ann", "word");
    assert_eq!(reason, ReasonCode::SUCCESS);
    fs::write(&bans, "[[bans]]\nclient_id = 'ann'\nreason = 'broken'\n").expect("writes");
    assert_eq!(ann.expect_disconnect(), ReasonCode::ADMINISTRATIVE_ACTION);
    let (_, reason) = broker.client("ann", "word");
    assert_eq!(reason, ReasonCode::BANNED);
    let line = broker.line_with("login refused");
    assert!(line.contains("the client identifier is banned: broken"), "{line}");
    fs::write(&bans, "[[bans]]\nclient_id = 'ann'\nuntil = 'soon'\n").expect("writes");
    let line = broker.line_with("the old ones stay in force");
    assert!(line.contains("bans.toml:3: "), "{line}");
    let (_, reason) = broker.client("ann", "word");
    assert_eq!(reason, ReasonCode::BANNED);
    kill_process(Pid::from_child(&broker.child), Signal::TERM).expect("is sent");
    assert!(broker.child.wait().expect("ends").success());
    let told = fs::read_to_string(&audit).expect("is there");
    let with = |words: &str| told.lines().filter(|line| line.contains(words)).count();
    let why = r#""why":"the client identifier is banned: broken""#;
    assert_eq!((with(why), with("client_disconnected")), (3, 1), "{told}");
    // The same file ends a start.
    for more in [&["--check-config"][..], &[]] {
        let start = [&["broker", "--listen", "0", "--ban-file", &shown], more].concat();
        assert!(said(&start, "", 104).contains("bans.toml:3: "));
    }
}

#[test]
fn an_audit_log_that_cannot_be_written_ends_the_start() {
    let folder = TempDir::new().expect("a folder");
    let (_, shown) = at(&folder, "nowhere/audit");
    for (path, words) in [
        (&*shown, "nowhere/audit cannot be used"),
        (folder.path().to_str().expect("is text"), "it is no ordinary file"),
    ] {
        for more in [&["--check-config"][..], &[]] {
            let flags = ["broker", "--listen", "0", "--audit-file", path];
            let answer = said(&[&flags[..], more].concat(), "", 104);
            assert!(answer.contains(words), "{answer}");
        }
    }
}

#[test]
fn files_that_cannot_be_used_end_the_start() {
    let folder = TempDir::new().expect("a folder");
    let (path, file) = at(&folder, "file");
    fs::write(&path, "ann:hunter2\n").expect("writes");
    let start = |flag: &str, more: &[&str]| {
        let arguments = [&["broker", "--listen", "0", flag, &file][..], more].concat();
        said(&arguments, "", 104)
    };
    let answer = start("--password-file", &[]);
    assert!(answer.contains("file:1: ") && !answer.contains("hunter2"), "{answer}");
    assert!(start("--acl-file", &["--check-config"]).contains("file:1: "));
    assert!(start("--rules-file", &["--check-config"]).contains("file:1: "));
    let two = start("--rules-file", &["--acl-file", &file, "--check-config"]);
    assert!(two.contains("--acl-file") && two.contains("--rules-file"), "{two}");
    let missing = ["broker", "--listen", "0", "--acl-file", "/nowhere"];
    assert!(said(&missing, "", 104).contains("/nowhere: cannot read it"));
    let both = start("--password-file", &["--allow-anonymous", "--check-config"]);
    assert!(both.contains("allow_anonymous"), "{both}");
    let (config, config_shown) = at(&folder, "broker.toml");
    fs::write(&config, format!("[access.jwt]\nkey_file = {file:?}\n")).expect("writes");
    fs::write(&path, "hunter2\n").expect("writes");
    for more in [&["--check-config"][..], &[]] {
        let flags = ["broker", "--listen", "0", "--config", &config_shown];
        let answer = said(&[&flags[..], more].concat(), "", 104);
        assert!(answer.contains("file: the secret has less than 16 bytes"), "{answer}");
        assert!(!answer.contains("hunter2"), "{answer}");
    }
    // Off loopback without users, and with them.
    let open = ["broker", "--check-config", "--listen", "0.0.0.0:0"];
    assert!(said(&open, "", 104).contains("--password-file"));
    said(&["passwd", "-c", &file, "ann"], "x\n", 0);
    said(&[&open[..], &["--password-file", &file]].concat(), "", 0);
}
