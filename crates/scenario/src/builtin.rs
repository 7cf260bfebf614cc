//! The scenarios that come with the program.

use super::error::{SourceText, closest};

/// A scenario that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// The name to run it by.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

/// All of them.
pub const BUILTIN: [Builtin; 18] = [
    Builtin { name: "symmetric", text: include_str!("../scenarios/symmetric.toml") },
    Builtin { name: "fan-in", text: include_str!("../scenarios/fan-in.toml") },
    Builtin { name: "fan-out", text: include_str!("../scenarios/fan-out.toml") },
    Builtin { name: "bridge", text: include_str!("../scenarios/bridge.toml") },
    Builtin { name: "bridge-restart", text: include_str!("../scenarios/bridge-restart.toml") },
    Builtin { name: "connect", text: include_str!("../scenarios/connect.toml") },
    Builtin { name: "login", text: include_str!("../scenarios/login.toml") },
    Builtin { name: "persistent", text: include_str!("../scenarios/persistent.toml") },
    Builtin { name: "reconnect-storm", text: include_str!("../scenarios/reconnect-storm.toml") },
    Builtin { name: "takeover", text: include_str!("../scenarios/takeover.toml") },
    Builtin { name: "churn", text: include_str!("../scenarios/churn.toml") },
    Builtin { name: "retained-flood", text: include_str!("../scenarios/retained-flood.toml") },
    Builtin { name: "will-storm", text: include_str!("../scenarios/will-storm.toml") },
    Builtin { name: "wildcard", text: include_str!("../scenarios/wildcard.toml") },
    Builtin { name: "slow-consumer", text: include_str!("../scenarios/slow-consumer.toml") },
    Builtin { name: "request-response", text: include_str!("../scenarios/request-response.toml") },
    Builtin { name: "soak", text: include_str!("../scenarios/soak.toml") },
    Builtin { name: "mixed", text: include_str!("../scenarios/mixed.toml") },
];

impl Builtin {
    /// The scenario called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        BUILTIN.iter().find(|builtin| builtin.name == name)
    }

    /// The scenario whose name `typed` most resembles, if it is a slip.
    pub fn closest(typed: &str) -> Option<&'static str> {
        closest(typed, BUILTIN.iter().map(|builtin| builtin.name))
    }

    /// Its text, under the name that messages use.
    pub fn source(&self) -> SourceText {
        SourceText::new(&format!("{}.toml (built in)", self.name), self.text)
    }
}
