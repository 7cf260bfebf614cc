//! Topic aliases in both directions.

use std::num::NonZeroU16;

use tacho_session::server::End;
use tacho_session::{AliasOut, ProtocolError};

use super::*;

fn alias(value: u16) -> Option<NonZeroU16> {
    NonZeroU16::new(value)
}

fn use_alias(value: u16) -> AliasOut {
    AliasOut::Use(alias(value).expect("not zero"))
}

fn define(value: u16) -> AliasOut {
    AliasOut::Define(alias(value).expect("not zero"))
}

/// The topic that a PUBLISH means.
fn topic(
    session: &mut Session<&'static str>,
    topic: &str,
    value: u16,
) -> Result<String, ProtocolError> {
    let known = session.resolve_alias(topic, alias(value))?;
    Ok(known.as_deref().unwrap_or(topic).to_owned())
}

fn reason(result: Result<String, ProtocolError>) -> ReasonCode {
    result.expect_err("refused").reason()
}

#[test]
fn inbound_aliases_are_defined_used_and_redefined() {
    let mut session = connected_with(
        SessionLimits::default(),
        ConnectParams { topic_alias_maximum_in: 2, ..params() },
    );
    for (sent, value, meant) in [
        ("plain", 0, "plain"),
        ("one", 1, "one"),
        ("", 1, "one"),
        ("two", 2, "two"),
        ("other", 1, "other"),
        ("", 1, "other"),
        ("", 2, "two"),
    ] {
        assert_eq!(topic(&mut session, sent, value).expect("legal"), meant);
    }
}

#[test]
fn inbound_aliases_out_of_range_or_unknown_are_refused() {
    let mut session = connected_with(
        SessionLimits::default(),
        ConnectParams { topic_alias_maximum_in: 2, ..params() },
    );
    assert_eq!(reason(topic(&mut session, "a", 3)), ReasonCode::TOPIC_ALIAS_INVALID);
    assert_eq!(reason(topic(&mut session, "", 3)), ReasonCode::TOPIC_ALIAS_INVALID);
    assert_eq!(reason(topic(&mut session, "", 1)), ReasonCode::PROTOCOL_ERROR);
    assert_eq!(reason(topic(&mut session, "", 0)), ReasonCode::PROTOCOL_ERROR);
    let mut none = connected();
    assert_eq!(reason(topic(&mut none, "a", 1)), ReasonCode::TOPIC_ALIAS_INVALID);
}

#[test]
fn aliases_end_with_the_connection() {
    let with_aliases =
        || ConnectParams { topic_alias_maximum_in: 2, topic_alias_maximum_out: 2, ..params() };
    let mut session = connected_with(SessionLimits::default(), with_aliases());
    topic(&mut session, "one", 1).expect("legal");
    assert_eq!(session.assign_alias("sensors"), define(1));
    assert_eq!(session.assign_alias("sensors"), use_alias(1));
    session.disconnect(0, End::Lost);
    session.connect(0, with_aliases());
    assert_eq!(reason(topic(&mut session, "", 1)), ReasonCode::PROTOCOL_ERROR);
    assert_eq!(session.assign_alias("sensors"), define(1));
}

#[test]
fn outbound_aliases_keep_the_clients_maximum() {
    let mut none = connected();
    assert_eq!(none.assign_alias("sensors"), AliasOut::None);
    let mut session = connected_with(
        SessionLimits::default(),
        ConnectParams { topic_alias_maximum_out: 2, ..params() },
    );
    assert_eq!(session.assign_alias("a/b"), AliasOut::None, "too short to gain anything");
    assert_eq!(session.assign_alias("topic/1"), define(1));
    assert_eq!(session.assign_alias("topic/2"), define(2));
    // Both are in use: they get a second chance before one is redefined.
    assert_eq!(session.assign_alias("topic/3"), AliasOut::None);
    assert_eq!(session.assign_alias("topic/3"), AliasOut::None);
    assert_eq!(session.assign_alias("topic/3"), define(1));
    assert_eq!(session.assign_alias("topic/3"), use_alias(1));
    assert_eq!(session.assign_alias("topic/2"), use_alias(2));
    assert_eq!(session.assign_alias("topic/1"), AliasOut::None);
}
