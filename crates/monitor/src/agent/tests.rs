use super::token::{Side, Token, TokenError, nonce};

const TEXT: &str = "correct horse battery";

#[test]
fn a_proof_is_bound_to_token_side_and_nonces() {
    let token = Token::new(TEXT).expect("long enough");
    let proof = token.proof(Side::Client, ["a", "b"]);
    let same = Token::new(&format!("  {TEXT}\n")).expect("white space does not count");
    assert!(same.verify(Side::Client, ["a", "b"], &proof));
    assert!(!token.verify(Side::Agent, ["a", "b"], &proof));
    assert!(!token.verify(Side::Client, ["b", "a"], &proof));
    let other = Token::new("correct horse batterx").expect("long enough");
    assert!(!other.verify(Side::Client, ["a", "b"], &proof));
    for wrong in ["", "a", "zz", "äb", &proof[2..], &format!("{proof}00")] {
        assert!(!token.verify(Side::Client, ["a", "b"], wrong), "{wrong}");
    }
}

#[test]
fn short_tokens_are_refused_and_tokens_are_never_shown() {
    assert!(matches!(Token::new("short"), Err(TokenError::Length(5))));
    assert!(matches!(Token::new(&"x".repeat(2000)), Err(TokenError::Length(2000))));
    let (token, text) = Token::generate().expect("random numbers");
    assert_eq!(format!("{token:?}"), "Token");
    assert_eq!(text.len(), 64);
    let again = Token::new(&text).expect("a token").proof(Side::Agent, ["x", "y"]);
    assert!(token.verify(Side::Agent, ["x", "y"], &again));
    assert_ne!(nonce(), nonce());
    let missing = Token::read("/nonexistent/token".as_ref()).expect_err("no file").to_string();
    assert!(missing.contains("/nonexistent/token"), "{missing}");
}
