//! Keep-alive, session expiry, will, takeover.

use tacho_session::server::{DisconnectEffects, End, TimeoutEvent};
use tacho_session::{WillState, session_expiry_s};

use super::*;

const NORMAL: End = End::Normal { expiry_override: None };

fn with_will(delay_s: u32, session_expiry_s: u32) -> ConnectParams<&'static str> {
    let will = Some(WillState { message: "will", delay_s });
    ConnectParams { session_expiry_s, will, ..params() }
}

fn session(params: ConnectParams<&'static str>) -> Session<&'static str> {
    connected_with(SessionLimits::default(), params)
}

fn events(session: &mut Session<&'static str>, now_ns: u64) -> Vec<TimeoutEvent<&'static str>> {
    std::iter::from_fn(|| session.handle_timeout(now_ns)).collect()
}

const fn effects(
    publish_will: Option<&'static str>,
    session_ended: bool,
) -> DisconnectEffects<&'static str> {
    DisconnectEffects { publish_will, session_ended, error: None }
}

// 12
// [MQTT-3.1.2-22]
// [MQTT-3.1.1: 3.1.2-24]
#[test]
fn keep_alive_closes_at_one_and_a_half_times_without_inbound_packets() {
    let mut session = session(ConnectParams { keep_alive_s: 10, ..params() });
    assert_eq!(session.next_timeout(), Some(15 * SECOND_NS));
    session.handle_activity(10 * SECOND_NS);
    // Outbound packets do not count.
    offer(&mut session, QoS::AtMostOnce, "a");
    assert_eq!(session.next_timeout(), Some(25 * SECOND_NS));
    assert_eq!(events(&mut session, 25 * SECOND_NS - 1), []);
    assert_eq!(events(&mut session, 25 * SECOND_NS), [TimeoutEvent::KeepAliveExpired]);
    assert!(session.is_connected(), "the owner closes the connection");
}

// 12
#[test]
fn keep_alive_0_never_closes() {
    let mut session = session(params());
    assert_eq!(session.next_timeout(), None);
    assert_eq!(events(&mut session, u64::MAX), []);
}

#[test]
fn keep_alive_ends_with_the_connection() {
    let mut session = session(ConnectParams { keep_alive_s: 10, ..params() });
    session.disconnect(0, End::Lost);
    assert_eq!(session.next_timeout(), None);
}

// 7
// [MQTT-3.2.2-2] [MQTT-3.2.2-3]
// [MQTT-3.1.1: 3.2.2-1] [MQTT-3.1.1: 3.2.2-2] [MQTT-3.1.1: 3.2.2-3]
#[test]
fn session_present_only_if_state_exists() {
    let mut session: Session<&str> = Session::new(SessionLimits::default());
    assert!(!session.exists());
    assert!(!session.connect(0, params()).session_present);
    session.disconnect(0, End::Lost);
    assert!(session.connect(0, params()).session_present);
    session.disconnect(0, End::Lost);
    assert!(!session.connect(0, ConnectParams { clean_start: true, ..params() }).session_present);
    session.disconnect(0, NORMAL);
    assert!(session.connect(0, ConnectParams { session_expiry_s: 0, ..params() }).session_present);
    assert!(session.disconnect(0, NORMAL).session_ended);
    assert!(!session.connect(0, params()).session_present);
}

// 9
// [MQTT-3.1.2-23] [MQTT-4.1.0-1] [MQTT-4.1.0-2]
#[test]
fn the_expiry_timer_starts_at_each_disconnect() {
    let mut session = session(ConnectParams { session_expiry_s: 10, ..params() });
    assert_eq!(session.next_timeout(), None);
    session.disconnect(5 * SECOND_NS, End::Lost);
    assert_eq!(session.next_timeout(), Some(15 * SECOND_NS));
    session.connect(14 * SECOND_NS, ConnectParams { session_expiry_s: 10, ..params() });
    assert_eq!(session.next_timeout(), None);
    session.disconnect(20 * SECOND_NS, End::Lost);
    assert_eq!(events(&mut session, 30 * SECOND_NS - 1), []);
    assert_eq!(events(&mut session, 30 * SECOND_NS), [TimeoutEvent::SessionExpired]);
    assert!(!session.connect(31 * SECOND_NS, params()).session_present);
}

// 9, 45
// [MQTT-4.1.0-2]
#[test]
fn undelivered_messages_of_an_expired_session_can_be_taken_and_are_not_resumed() {
    for take in [true, false] {
        let mut session = session(ConnectParams { session_expiry_s: 1, ..params() });
        session.disconnect(0, End::Lost);
        offer(&mut session, QoS::AtLeastOnce, "a");
        assert_eq!(events(&mut session, SECOND_NS), [TimeoutEvent::SessionExpired]);
        assert!(!session.exists());
        if take {
            let left = session.take_undelivered(&mut InMemory);
            assert_eq!(left.into_iter().map(|d| d.message).collect::<Vec<_>>(), ["a"]);
        } else {
            session.connect(SECOND_NS, params());
        }
        assert_eq!((session.queue_len(), session.inflight_len()), (0, 0));
    }
}

// 9
#[test]
fn expiry_0xffffffff_is_never_and_its_neighbours_do_not_overflow() {
    let mut forever = session(params());
    forever.disconnect(u64::MAX - 1, End::Lost);
    assert_eq!(forever.next_timeout(), None);
    let mut long = session(ConnectParams { session_expiry_s: u32::MAX - 1, ..params() });
    long.disconnect(7, End::Lost);
    assert_eq!(long.next_timeout(), Some(7 + u64::from(u32::MAX - 1) * SECOND_NS));
    long.connect(8, ConnectParams { session_expiry_s: u32::MAX - 1, ..params() });
    long.disconnect(u64::MAX - 5, End::Lost);
    assert_eq!(events(&mut long, u64::MAX - 4), []);
}

// 10
#[test]
fn disconnect_may_change_the_expiry() {
    let mut shorter = session(ConnectParams { session_expiry_s: 100, ..params() });
    shorter.disconnect(0, End::Normal { expiry_override: Some(10) });
    assert_eq!(shorter.next_timeout(), Some(10 * SECOND_NS));
    let mut ended = session(ConnectParams { session_expiry_s: 100, ..params() });
    let end = End::Normal { expiry_override: Some(0) };
    assert_eq!(ended.disconnect(0, end), effects(None, true));
}

// 10
#[test]
fn disconnect_cannot_set_an_expiry_after_connect_set_none() {
    let mut session = session(with_will(0, 0));
    let effects = session.disconnect(0, End::Normal { expiry_override: Some(5) });
    assert_eq!(effects.error.expect("refused").reason(), ReasonCode::PROTOCOL_ERROR);
    assert!(effects.session_ended);
    assert_eq!(effects.publish_will, Some("will"), "the end was not normal");
}

// 9, 11
#[test]
fn expiry_requested_by_each_version() {
    let table = [
        (Version::V311, true, None, u32::MAX, 0),
        (Version::V311, false, None, u32::MAX, EXPIRY_NEVER),
        (Version::V31, false, None, 3_600, 3_600),
        (Version::V5, true, None, u32::MAX, 0),
        (Version::V5, true, Some(60), u32::MAX, 60),
        (Version::V5, false, Some(u32::MAX), 3_600, 3_600),
        (Version::V5, false, None, u32::MAX, 0),
    ];
    for (version, clean_start, property_s, expiry_s_max, expected_s) in table {
        let expiry_s = session_expiry_s(version, clean_start, property_s, expiry_s_max);
        assert_eq!(expiry_s, expected_s, "{version:?} {clean_start} {property_s:?}");
    }
}

// 53
// [MQTT-3.1.2-8] [MQTT-3.1.2-10] [MQTT-3.14.4-3]
// [MQTT-3.1.1: 3.1.2-8] [MQTT-3.1.1: 3.1.2-10] [MQTT-3.1.1: 3.14.4-3]
#[test]
fn the_will_is_published_on_every_end_but_a_normal_disconnect() {
    let ends = [
        (NORMAL, None),
        (End::WithWill { expiry_override: None }, Some("will")),
        (End::Lost, Some("will")),
        (End::TakenOver { clean_start: false }, Some("will")),
        (End::ProtocolError, Some("will")),
        (End::ServerShutdown, Some("will")),
    ];
    for (end, expected) in ends {
        let mut session = session(with_will(0, EXPIRY_NEVER));
        assert_eq!(session.disconnect(0, end), effects(expected, false), "{end:?}");
        assert_eq!(session.disconnect(0, End::Lost), effects(None, false), "not twice");
        assert_eq!(events(&mut session, u64::MAX - 1), []);
    }
}

// 54
// [MQTT-3.1.2-8] [MQTT-3.1.2-10]
#[test]
fn a_delayed_will_fires_after_its_delay() {
    let mut session = session(with_will(10, 60));
    assert_eq!(session.disconnect(0, End::Lost), effects(None, false));
    assert_eq!(session.next_timeout(), Some(10 * SECOND_NS));
    assert_eq!(events(&mut session, 10 * SECOND_NS), [TimeoutEvent::PublishWill("will")]);
    assert_eq!(session.next_timeout(), Some(60 * SECOND_NS));
    assert_eq!(events(&mut session, 60 * SECOND_NS), [TimeoutEvent::SessionExpired]);
}

// 54
// [MQTT-3.1.2-8]
#[test]
fn a_delayed_will_fires_at_session_expiry_if_that_is_earlier() {
    let mut session = session(with_will(60, 10));
    session.disconnect(0, End::Lost);
    let expected = [TimeoutEvent::PublishWill("will"), TimeoutEvent::SessionExpired];
    assert_eq!(events(&mut session, 10 * SECOND_NS), expected);
}

// 54
#[test]
fn a_delayed_will_fires_at_once_if_the_session_ends_with_the_connection() {
    let mut session = session(with_will(60, 0));
    assert_eq!(session.disconnect(0, End::Lost), effects(Some("will"), true));
}

// 54
// [MQTT-3.1.3-9]
#[test]
fn a_resume_cancels_a_delayed_will() {
    let mut session = session(with_will(10, 60));
    session.disconnect(0, End::Lost);
    let connected = session.connect(5 * SECOND_NS, params());
    assert_eq!((connected.session_present, connected.publish_will), (true, None));
    session.disconnect(6 * SECOND_NS, NORMAL);
    assert_eq!(events(&mut session, u64::MAX - 1), []);
}

/// It was cancelled if CONNECT arrived before `handle_timeout` was called, as right after a
/// restart.
#[test]
fn a_resume_after_the_delay_does_not_cancel_a_will() {
    let mut session = session(with_will(10, 60));
    session.disconnect(0, End::Lost);
    let connected = session.connect(10 * SECOND_NS, params());
    assert_eq!((connected.session_present, connected.publish_will), (true, Some("will")));
    assert_eq!(events(&mut session, 20 * SECOND_NS), []);
}

// 54
#[test]
fn a_clean_start_fires_a_delayed_will_at_once() {
    let mut session = session(with_will(10, 60));
    session.disconnect(0, End::Lost);
    let clean = ConnectParams { clean_start: true, ..params() };
    assert_eq!(session.connect(5 * SECOND_NS, clean).publish_will, Some("will"));
    assert_eq!(events(&mut session, 50 * SECOND_NS), []);
}

// 8, 54
// [MQTT-3.1.3-9]
#[test]
fn a_takeover_publishes_the_will_unless_it_is_delayed_and_the_session_goes_on() {
    let table = [
        (0, EXPIRY_NEVER, false, Some("will"), false),
        (10, EXPIRY_NEVER, false, None, false),
        (10, EXPIRY_NEVER, true, Some("will"), true),
        (10, 0, false, Some("will"), true),
    ];
    for (delay_s, expiry_s, clean_start, will, session_ended) in table {
        let mut session = session(with_will(delay_s, expiry_s));
        let taken_over = session.disconnect(0, End::TakenOver { clean_start });
        assert_eq!(taken_over, effects(will, session_ended));
        let connected = session.connect(0, ConnectParams { clean_start, ..params() });
        assert_eq!(connected.session_present, !session_ended);
        assert_eq!(connected.publish_will, None);
    }
}

// 10, 54
// [MQTT-3.1.2-8]
#[test]
fn an_expiry_shortened_by_disconnect_advances_the_will() {
    let mut shorter = session(with_will(60, 100));
    let end = End::WithWill { expiry_override: Some(10) };
    assert_eq!(shorter.disconnect(0, end), effects(None, false));
    let expected = [TimeoutEvent::PublishWill("will"), TimeoutEvent::SessionExpired];
    assert_eq!(events(&mut shorter, 10 * SECOND_NS), expected);
    let mut ended = session(with_will(60, 100));
    let end = End::WithWill { expiry_override: Some(0) };
    assert_eq!(ended.disconnect(0, end), effects(Some("will"), true));
}

// 54
#[test]
fn a_will_whose_delay_and_session_never_end_is_never_published() {
    let mut session = session(with_will(u32::MAX, EXPIRY_NEVER));
    session.disconnect(u64::MAX - 10, End::Lost);
    assert_eq!(events(&mut session, u64::MAX - 1), []);
}
