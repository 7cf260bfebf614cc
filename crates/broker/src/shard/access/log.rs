//! Why a client was refused: a line in the log, a few per second, without secrets.

use std::fmt::{self, Display};

use tacho_access::{Access, Cause, Coverage, Steps};
use tacho_codec::QoS;
use tacho_topic::Filter;

use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};

/// Lines per second and shard: a flood of refusals must not become one of lines.
const LINES_PER_S: u32 = 10;
const SECOND_NS: u64 = 1_000_000_000;
/// Of topics and names in a line.
const SHOWN_CHARS: usize = 128;

/// Counts lines.
#[derive(Debug, Default)]
pub(super) struct LineLimit {
    since_ns: u64,
    told: u32,
    untold: u64,
}

impl LineLimit {
    /// Whether a line may be written, and how many were left out before it.
    pub(super) fn take(&mut self, now_ns: u64) -> Option<u64> {
        if now_ns.saturating_sub(self.since_ns) >= SECOND_NS {
            (self.since_ns, self.told) = (now_ns, 0);
        }
        if self.told >= LINES_PER_S {
            self.untold += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.untold))
    }
}

impl Shard {
    /// A client may not publish to, subscribe to or receive something.
    #[cold]
    pub(in crate::shard) fn log_denied(
        &mut self,
        net: &Net,
        slot: SessionSlot,
        action: &str,
        topic: &str,
        why: &dyn Display,
    ) {
        if self.is_traced(net, slot) {
            self.trace_denied(net, slot, (action, topic), &why.to_string());
        }
        let Some(untold) = self.access.line(net.now_ns()) else { return };
        let session = &self.sessions[slot];
        let client = (&*session.key().client_id, session.access.user_name());
        tell_denied(client, action, topic, why, untold);
    }

    /// A filter is not granted. One of its topics that may not be received is named.
    #[cold]
    pub(in crate::shard) fn log_not_granted(
        &mut self,
        net: &Net,
        slot: SessionSlot,
        subscription: (&Filter, QoS),
        coverage: Coverage,
        steps: &mut Steps,
    ) {
        let line = self.access.line(net.now_ns());
        if line.is_none() && !self.is_traced(net, slot) {
            return;
        }
        let mut beside = Steps::default();
        let why = match coverage {
            Coverage::Undecided => "filter and rules are too complex to decide".to_owned(),
            Coverage::Partial | Coverage::Whole => {
                let denied = self.denied_topic(slot, subscription, &mut beside);
                let named = denied.map(|(topic, decision)| match decision.is_allowed {
                    // It is not to be subscribed to.
                    true => format!(": not {}", Shown(&topic)),
                    false => format!(": not {} ({})", Shown(&topic), CauseShown(decision.cause)),
                });
                format!("not every topic of it may be received{}", named.unwrap_or_default())
            }
        };
        steps.add_work(beside);
        self.trace_denied(net, slot, ("subscribe", &subscription.0.to_string()), &why);
        let Some(untold) = line else { return };
        let session = &self.sessions[slot];
        let client = (&*session.key().client_id, session.access.user_name());
        tell_denied(client, "subscribe", &subscription.0.to_string(), &why, untold);
    }

    /// The cause of a refusal.
    pub(in crate::shard) fn cause_of(
        &self,
        slot: SessionSlot,
        access: Access,
        topic: &str,
    ) -> CauseShown {
        let session = &self.sessions[slot];
        let rules = self.access.rules_of(session.access.rules());
        CauseShown(rules.decide(&session.who(), access, topic).cause)
    }
}

/// The line itself, about a client identifier and its user; `untold` lines were left out before it.
pub(super) fn tell_denied(
    (client_id, user): (&str, Option<&str>),
    action: &str,
    topic: &str,
    why: &dyn Display,
    untold: u64,
) {
    tracing::info!(
        client = %Shown(client_id),
        user = %Shown(user.unwrap_or_default()),
        action,
        topic = %Shown(topic),
        why = %format_args!("\"{why}\""),
        untold,
        "not allowed"
    );
}

/// A cause, in words.
pub(in crate::shard) struct CauseShown(pub(in crate::shard) Cause);

impl Display for CauseShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cause::Line(line) => write!(f, "line {line} of the access list"),
            Cause::Rule(line) => write!(f, "the rule in line {line} of the rules file"),
            Cause::Token => f.write_str("the rules that its login has brought"),
            Cause::NoEntry => f.write_str("no entry of the access list allows it"),
            Cause::NoRule => f.write_str("no rule of the rules file allows it"),
            Cause::SpecialCharacters | Cause::SpecialName => {
                f.write_str("the name or identifier of the client contains +, #, / or worse")
            }
        }
    }
}

/// What clients choose: escaped, so that it forges no line, and cut.
pub(in crate::shard) struct Shown<'a>(pub(in crate::shard) &'a str);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.char_indices().nth(SHOWN_CHARS).map_or(self.0.len(), |(at, _)| at);
        write!(f, "{}", self.0[..end].escape_debug())?;
        if end < self.0.len() { f.write_str("...") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_limited_per_second_and_what_was_left_out_is_told() {
        let mut lines = LineLimit::default();
        for _ in 0..LINES_PER_S {
            assert_eq!(lines.take(5 * SECOND_NS), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(lines.take(6 * SECOND_NS - 1), None);
        }
        assert_eq!(lines.take(6 * SECOND_NS), Some(7));
        assert_eq!(lines.take(6 * SECOND_NS), Some(0));
    }

    #[test]
    fn names_are_escaped_and_cut() {
        assert_eq!(Shown("a\nb").to_string(), "a\\nb");
        assert_eq!(Shown(&"ü".repeat(200)).to_string(), format!("{}...", "ü".repeat(128)));
    }
}
