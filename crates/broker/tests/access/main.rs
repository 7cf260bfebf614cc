//! Access control: logins, access rules, their reload, and whose a session is.

#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod attributes;
mod backend;
mod ban_file;
mod bans;
mod certificates;
mod delayed_answers;
mod late_logins;
mod logins;
mod owners;
mod reload;
mod role_limits;
mod rules;
mod rules_file;
mod scram;
mod tokens;
mod wills;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

use tacho_access::{Scheme, StoredPassword, set_user};
use tacho_codec::{Connect, ReasonCode, Version};
use tacho_testkit::{Client, TestBroker, connect};
use tempfile::TempDir;

/// Files of access control.
struct Files(TempDir);

impl Files {
    /// Users with these passwords, and an access list.
    fn new(users: &[(&str, &str)], acl: Option<&str>) -> Self {
        let files = Self(TempDir::new().unwrap());
        files.set_users(users);
        if let Some(acl) = acl {
            files.set_acl(acl);
        }
        files
    }

    fn set_users(&self, users: &[(&str, &str)]) {
        let mut text = String::new();
        for (name, password) in users {
            let stored = StoredPassword::make(password.as_bytes(), Scheme::Sha512).unwrap();
            text = set_user(&text, name, &stored);
        }
        fs::write(self.path("users"), text).unwrap();
    }

    fn set_acl(&self, text: &str) {
        fs::write(self.path("acl"), text).unwrap();
    }

    /// Users whose password is their name, and rules in TOML.
    fn with_rules(users: &[&str], rules: &str) -> Self {
        let users: Vec<(&str, &str)> = users.iter().map(|user| (*user, *user)).collect();
        let files = Self::new(&users, None);
        files.set_rules(rules);
        files
    }

    fn set_rules(&self, text: &str) {
        fs::write(self.path("rules.toml"), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The section of the configuration.
    fn section(&self) -> String {
        let mut text = format!("[access]\npassword_file = {:?}\n", self.path("users"));
        if self.path("acl").exists() {
            text.push_str(&format!("acl_file = {:?}\n", self.path("acl")));
        }
        if self.path("rules.toml").exists() {
            text.push_str(&format!("rules_file = {:?}\n", self.path("rules.toml")));
        }
        text
    }

    /// A broker with them; `more` are further keys of the section.
    fn broker(&self, shards: usize, more: &str) -> TestBroker {
        TestBroker::configured(&format!("shards = {shards}\n{}{more}", self.section()))
    }
}

/// A CONNECT with credentials.
fn login<'a>(id: &'a str, version: Version, user: &'a str, password: &'a str) -> Connect<'a> {
    Connect { username: Some(user), password: Some(password.as_bytes()), ..connect(id, version) }
}

/// A client that logs in; its password is the user name.
fn logged_in(broker: &TestBroker, client_id: &str, version: Version, user: &str) -> Client {
    let mut client = broker.client(version);
    let (_, reason) = client.connect(&login(client_id, version, user, user));
    assert_eq!(reason, ReasonCode::SUCCESS, "{client_id} as {user}");
    client
}

/// The reason of CONNACK.
fn answer(broker: &TestBroker, connect: &Connect<'_>) -> ReasonCode {
    broker.client(connect.version).connect(connect).1
}

/// A metric by its name, with its labels.
fn metric(broker: &TestBroker, name: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(broker.metrics_address()).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    answer.lines().find_map(value)
}
