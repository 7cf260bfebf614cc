//! What is asked of access rules, and what they say.

use crate::kinds::PublishKind;

/// What a client wants to do with the messages of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Publish them. Access lists of mosquitto and tokens make no difference between kinds.
    Publish(PublishKind),
    /// Receive them.
    Receive,
}

/// What the list says, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the client may.
    pub is_allowed: bool,
    /// Why.
    pub cause: Cause,
}

/// Why a list says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By the entry in this line of the access list.
    Line(u32),
    /// By the rule in this line of the rules file.
    Rule(u32),
    /// By the rules that its login has brought: of a token, or of a backend's answer.
    Token,
    /// No entry of the access list matches.
    NoEntry,
    /// No rule of the rules file decides.
    NoRule,
    /// The same, and the name or the identifier of the client contains `+`, `#`, `/` or a control
    /// character: such a client gets nothing from filters that use it.
    SpecialName,
    /// No entry of its own matches, and the name or the identifier of the client contains `+`, `#`,
    /// `/` or a control character: such a client gets nothing from patterns that use it.
    SpecialCharacters,
}
