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

/// How a PUBLISH that is certainly written sends its topic.
fn assign(session: &mut Session<&'static str>, topic: &str) -> AliasOut {
    let plan = session.plan_alias(topic);
    if let AliasOut::Define(alias) = plan {
        session.define_alias(alias, &topic.into());
    }
    plan
}

/// The topic that a PUBLISH refers to.
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

// 46
// [MQTT-3.3.2-12]
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

// 46
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

// 46, 47
// [MQTT-3.3.2-7]
#[test]
fn aliases_end_with_the_connection() {
    let with_aliases =
        || ConnectParams { topic_alias_maximum_in: 2, topic_alias_maximum_out: 2, ..params() };
    let mut session = connected_with(SessionLimits::default(), with_aliases());
    topic(&mut session, "one", 1).expect("legal");
    assert_eq!(assign(&mut session, "sensors"), define(1));
    assert_eq!(assign(&mut session, "sensors"), use_alias(1));
    session.disconnect(0, End::Lost);
    session.connect(0, with_aliases());
    assert_eq!(reason(topic(&mut session, "", 1)), ReasonCode::PROTOCOL_ERROR);
    assert_eq!(assign(&mut session, "sensors"), define(1));
}

// 47
// [MQTT-3.1.2-26] [MQTT-3.1.2-27] [MQTT-3.3.2-11]
#[test]
fn outbound_aliases_keep_the_clients_maximum() {
    let mut none = connected();
    assert_eq!(assign(&mut none, "sensors"), AliasOut::None);
    let mut session = connected_with(
        SessionLimits::default(),
        ConnectParams { topic_alias_maximum_out: 2, ..params() },
    );
    assert_eq!(assign(&mut session, "a/b"), AliasOut::None, "too short to gain anything");
    assert_eq!(assign(&mut session, "topic/1"), define(1));
    assert_eq!(assign(&mut session, "topic/2"), define(2));
    assert_eq!(assign(&mut session, &"x".repeat(2_000)), AliasOut::None, "too long to keep");
    // A topic that is new redefines nothing; then both get a second chance.
    for _ in 0..3 {
        assert_eq!(assign(&mut session, "topic/3"), AliasOut::None);
    }
    assert_eq!(assign(&mut session, "topic/3"), define(1));
    assert_eq!(assign(&mut session, "topic/3"), use_alias(1));
    assert_eq!(assign(&mut session, "topic/2"), use_alias(2));
    assert_eq!(assign(&mut session, "topic/1"), AliasOut::None);
}

#[test]
fn topics_in_use_keep_their_aliases_and_topics_that_occur_once_get_none() {
    let mut session = connected_with(
        SessionLimits::default(),
        ConnectParams { topic_alias_maximum_out: 4, ..params() },
    );
    let known = ["busy/1", "busy/2", "busy/3", "busy/4"];
    for topic in known {
        assert!(matches!(assign(&mut session, topic), AliasOut::Define(_)));
    }
    let mut redefined = 0;
    for i in 0..2_000 {
        for topic in known {
            assert!(matches!(assign(&mut session, topic), AliasOut::Use(_)), "{topic}");
        }
        redefined += usize::from(assign(&mut session, &format!("once/{i}")) != AliasOut::None);
    }
    assert_eq!(redefined, 0);
    // Unused topics are replaced, but not by topics that occur once.
    for i in 0..2_000 {
        redefined += usize::from(assign(&mut session, &format!("again/{i}")) != AliasOut::None);
    }
    assert!((1..600).contains(&redefined), "{redefined}");
}

#[test]
fn a_planned_alias_that_is_not_sent_defines_nothing() {
    let mut session = connected_with(
        SessionLimits::default(),
        ConnectParams { topic_alias_maximum_out: 1, ..params() },
    );
    for _ in 0..3 {
        assert_eq!(session.plan_alias("dropped"), define(1));
    }
    assert_eq!(assign(&mut session, "sent/1"), define(1));
    assert_eq!(assign(&mut session, "sent/1"), use_alias(1));
    while session.plan_alias("dropped") == AliasOut::None {}
    // The alias still stands for the topic that was sent.
    assert_eq!(assign(&mut session, "sent/1"), use_alias(1));
}
