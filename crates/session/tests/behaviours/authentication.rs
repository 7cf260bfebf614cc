//! When AUTH is legal, and which packet answers it.

use tacho_codec::ReasonCode;
use tacho_session::{AuthAnswer, AuthRequest, AuthVerdict, Authentication};

const CONTINUE: ReasonCode = ReasonCode::CONTINUE_AUTHENTICATION;
const AGAIN: ReasonCode = ReasonCode::REAUTHENTICATE;

fn accepted() -> Authentication {
    let mut rules = Authentication::new("m");
    assert_eq!(rules.handle_verdict(AuthVerdict::Success), Some(AuthAnswer::Accept));
    rules
}

fn is_refused(rules: &mut Authentication, reason: ReasonCode, method: Option<&str>) -> bool {
    let result = rules.handle_auth(reason, method);
    result.is_err_and(|error| error.reason() == ReasonCode::PROTOCOL_ERROR)
}

// 52
// [MQTT-4.12.0-2] [MQTT-4.12.0-3] [MQTT-4.12.0-4]
#[test]
fn client_and_method_take_turns_until_connack() {
    for (last, answer) in
        [(AuthVerdict::Success, AuthAnswer::Accept), (AuthVerdict::Failure, AuthAnswer::Refuse)]
    {
        let mut rules = Authentication::new("m");
        for _ in 0..3 {
            assert!(rules.awaits_method());
            let asked = rules.handle_verdict(AuthVerdict::Continue);
            assert_eq!(asked, Some(AuthAnswer::Auth(CONTINUE)));
            assert!(!rules.awaits_method());
            assert_eq!(rules.handle_auth(CONTINUE, Some("m")), Ok(AuthRequest::Continue));
        }
        assert_eq!(rules.handle_verdict(last), Some(answer));
        assert_eq!(rules.handle_verdict(last), None, "no verdict is pending");
    }
}

// 52
// [MQTT-4.12.1-1] [MQTT-4.12.1-2]
#[test]
fn authenticating_again_ends_with_auth_or_disconnect() {
    for (last, answer) in [
        (AuthVerdict::Success, AuthAnswer::Auth(ReasonCode::SUCCESS)),
        (AuthVerdict::Failure, AuthAnswer::Disconnect),
    ] {
        let mut rules = accepted();
        assert_eq!(rules.handle_auth(AGAIN, Some("m")), Ok(AuthRequest::Again));
        let asked = rules.handle_verdict(AuthVerdict::Continue);
        assert_eq!(asked, Some(AuthAnswer::Auth(CONTINUE)));
        assert_eq!(rules.handle_auth(CONTINUE, Some("m")), Ok(AuthRequest::Continue));
        assert_eq!(rules.handle_verdict(last), Some(answer));
    }
}

// 52
// [MQTT-4.12.0-5]
#[test]
fn another_method_or_the_wrong_time_is_a_protocol_error() {
    let mut rules = accepted();
    for method in [None, Some("other"), Some("")] {
        assert!(is_refused(&mut rules, AGAIN, method), "{method:?}");
    }
    assert!(is_refused(&mut rules, CONTINUE, Some("m")), "the server did not ask");
    let mut waits_for_method = Authentication::new("m");
    for reason in [CONTINUE, AGAIN, ReasonCode::SUCCESS] {
        assert!(is_refused(&mut waits_for_method, reason, Some("m")), "{reason}");
    }
    let mut waits_for_client = Authentication::new("m");
    waits_for_client.handle_verdict(AuthVerdict::Continue);
    assert!(is_refused(&mut waits_for_client, AGAIN, Some("m")));
}
