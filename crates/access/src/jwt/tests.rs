use std::collections::BTreeMap;

use proptest::prelude::*;
use ring::hmac;
use serde_json::json;

use super::*;

const NOW: u64 = 1_800_000_000;
const SECRET: &str = "a secret that is long enough for all of these";

/// Made by PyJWT.
fn fixture() -> Value {
    serde_json::from_str(include_str!("../../tests/fixtures/tokens.json")).expect("is JSON")
}

fn rules() -> TokenRules {
    TokenRules {
        user_claim: "sub".to_owned(),
        issuer: Some("https://id.example".to_owned()),
        audience: Some("mqtt".to_owned()),
        claims: BTreeMap::new(),
        acl_claim: Some("acl".to_owned()),
        attributes_claim: Some("client_attrs".to_owned()),
        leeway_s: 30,
        needs_expiry: true,
    }
}

const CLIENT: TokenClient<'_> = TokenClient { client_id: "c1", user: Some("a%b") };

fn verifier(text: &str, rules: TokenRules) -> TokenVerifier {
    TokenVerifier::parse("keys", text, rules).expect("has keys")
}

fn encode(value: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(value.to_string())
}

fn sign(header: &Value, claims: &Value) -> String {
    let signed = format!("{}.{}", encode(header), encode(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = hmac::sign(&key, signed.as_bytes());
    format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref()))
}

/// Claims that are right, with a change.
fn claims(change: impl FnOnce(&mut Value)) -> Value {
    let mut claims = json!({
        "sub": "ann", "iss": "https://id.example", "aud": "mqtt", "exp": NOW + 60,
    });
    change(&mut claims);
    claims
}

/// The answer to a token with these claims.
fn answer(rules: TokenRules, claims: &Value) -> Result<VerifiedToken, TokenError> {
    let token = sign(&json!({"alg": "HS256"}), claims);
    verifier(SECRET, rules).verify(&token, &CLIENT, NOW)
}

#[test]
fn tokens_of_another_library_are_verified_with_keys_in_each_form() {
    let fixture = fixture();
    let jwks = verifier(&fixture["jwks"].to_string(), rules());
    let expected = VerifiedToken {
        user: "ann".to_owned(),
        expires_unix_s: Some(4_102_444_800 + 30),
        acl: None,
    };
    let tokens = fixture["tokens"].as_object().expect("has tokens");
    assert_eq!(tokens.len(), 12);
    for (name, token) in tokens {
        let token = token.as_str().expect("is text");
        let file = match &name[..2] {
            "HS" => fixture["secret"].as_str(),
            "RS" | "PS" => fixture["pem"]["RS"].as_str(),
            _ => fixture["pem"][name].as_str(),
        };
        let one = verifier(&format!("{}\n", file.expect("has one")), rules());
        assert_eq!(one.verify(token, &CLIENT, NOW).as_ref(), Ok(&expected), "{name}");
        // The secret of the set is for HS256 only.
        let by_set = match name.as_str() {
            "HS384" | "HS512" => Err(TokenError::Algorithm),
            _ => Ok(expected.clone()),
        };
        assert_eq!(jwks.verify(token, &CLIENT, NOW), by_set, "{name}");
        let (signed, signature) = token.rsplit_once('.').expect("has parts");
        let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(signature).expect("is base64url");
        bytes[7] ^= 1;
        let forged = format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(bytes));
        assert_eq!(one.verify(&forged, &CLIENT, NOW), Err(TokenError::Signature), "{name}");
        for (other, key) in fixture["pem"].as_object().expect("has keys") {
            let is_rsa = name.starts_with("RS") || name.starts_with("PS");
            if name != other && !(is_rsa && other == "RS") {
                let other = verifier(key.as_str().expect("is text"), rules());
                assert_eq!(other.verify(token, &CLIENT, NOW), Err(TokenError::Algorithm), "{name}");
            }
        }
    }
}

/// RFC 7515, A.1.
#[test]
fn the_example_of_the_specification_is_verified() {
    let key = r#"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}"#;
    let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let claims = BTreeMap::from([("http://example.com/is_root".to_owned(), "true".to_owned())]);
    let rules = TokenRules {
        user_claim: "iss".to_owned(),
        issuer: None,
        audience: None,
        claims,
        acl_claim: None,
        attributes_claim: None,
        leeway_s: 0,
        needs_expiry: true,
    };
    let verifier = verifier(key, rules);
    let expected =
        VerifiedToken { user: "joe".to_owned(), expires_unix_s: Some(1_300_819_380), acl: None };
    assert_eq!(verifier.verify(token, &CLIENT, 1_300_819_379), Ok(expected));
    assert_eq!(verifier.verify(token, &CLIENT, 1_300_819_380), Err(TokenError::Expired));
}

/// CVE-2015-9235 and its kin: the token must not choose how it is verified.
#[test]
fn a_public_key_is_no_secret_and_none_is_no_algorithm() {
    let fixture = fixture();
    let pem = fixture["pem"]["RS"].as_str().expect("is text");
    let public = verifier(pem, rules());
    let signed = format!("{}.{}", encode(&json!({"alg": "HS256"})), encode(&claims(|_| {})));
    let key = hmac::Key::new(hmac::HMAC_SHA256, pem.as_bytes());
    let signature = BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()).as_ref());
    let forged = format!("{signed}.{signature}");
    assert_eq!(public.verify(&forged, &CLIENT, NOW), Err(TokenError::Algorithm));
    for alg in ["none", "None", "", "HS1"] {
        let token = format!("{}.{}.", encode(&json!({"alg": alg})), encode(&claims(|_| {})));
        assert_eq!(public.verify(&token, &CLIENT, NOW), Err(TokenError::Algorithm));
        assert_eq!(
            verifier(SECRET, rules()).verify(&token, &CLIENT, NOW),
            Err(TokenError::Algorithm)
        );
    }
    let crit = sign(&json!({"alg": "HS256", "crit": ["b64"], "b64": false}), &claims(|_| {}));
    assert_eq!(verifier(SECRET, rules()).verify(&crit, &CLIENT, NOW), Err(TokenError::Malformed));
}

#[test]
fn a_token_that_names_a_key_is_verified_by_that_key_only() {
    let secret = BASE64_URL_SAFE_NO_PAD.encode(SECRET);
    let keys = json!({"keys": [
        {"kty": "oct", "kid": "a", "k": secret},
        {"kty": "oct", "kid": "b", "k": BASE64_URL_SAFE_NO_PAD.encode("x".repeat(32))},
    ]});
    let verifier = verifier(&keys.to_string(), rules());
    for (kid, expected) in [
        (json!("a"), None),
        (json!("b"), Some(TokenError::Signature)),
        (json!("c"), Some(TokenError::Key)),
        (json!(null), None),
        (json!(7), Some(TokenError::Malformed)),
    ] {
        let token = sign(&json!({"alg": "HS256", "kid": kid}), &claims(|_| {}));
        assert_eq!(verifier.verify(&token, &CLIENT, NOW).err(), expected, "{kid}");
    }
}

#[test]
fn times_are_checked_with_leeway() {
    for (name, value, expected) in [
        ("exp", json!(NOW - 30), Some(TokenError::Expired)),
        ("exp", json!(NOW - 29), None),
        ("exp", json!(NOW as f64 + 0.5), None),
        ("exp", json!(1e300), None),
        ("exp", json!((NOW + 60).to_string()), Some(TokenError::Malformed)),
        ("exp", json!(-1), Some(TokenError::Malformed)),
        ("exp", json!(null), Some(TokenError::Malformed)),
        ("nbf", json!(NOW + 30), None),
        ("nbf", json!(NOW + 31), Some(TokenError::NotYetValid)),
        ("iat", json!(NOW + 31), Some(TokenError::NotYetValid)),
    ] {
        let claims = claims(|claims| claims[name] = value.clone());
        assert_eq!(answer(rules(), &claims).err(), expected, "{name} {value}");
    }
    let endless = claims(|claims| drop(claims.as_object_mut().map(|claims| claims.remove("exp"))));
    assert_eq!(answer(rules(), &endless), Err(TokenError::NoExpiry));
    let verified = answer(TokenRules { needs_expiry: false, ..rules() }, &endless);
    assert_eq!(verified.map(|verified| verified.expires_unix_s), Ok(None));
}

#[test]
fn issuer_audience_and_user_are_checked() {
    for (name, value, expected) in [
        ("iss", json!("https://other.example"), Some(TokenError::Issuer)),
        ("iss", json!(null), Some(TokenError::Issuer)),
        ("aud", json!("other"), Some(TokenError::Audience)),
        ("aud", json!(["other", "mqtt"]), None),
        ("aud", json!([]), Some(TokenError::Audience)),
        ("aud", json!(null), Some(TokenError::Audience)),
        ("sub", json!(""), Some(TokenError::User("sub".to_owned()))),
        ("sub", json!("a\nb"), Some(TokenError::User("sub".to_owned()))),
        ("sub", json!(7), Some(TokenError::User("sub".to_owned()))),
    ] {
        let claims = claims(|claims| claims[name] = value.clone());
        assert_eq!(answer(rules(), &claims).err(), expected, "{name} {value}");
    }
    // A token for an audience is not for a broker that names none (RFC 7519, 4.1.3).
    let open = TokenRules { audience: None, issuer: None, ..rules() };
    assert_eq!(answer(open, &claims(|_| {})), Err(TokenError::Audience));
}

#[test]
fn own_claims_are_compared_with_their_templates_filled() {
    for (wanted, value, is_right) in [
        ("%c", json!("c1"), true),
        ("%c", json!("c2"), false),
        ("%c", json!(null), false),
        ("device-%c/%u", json!("device-c1/a%b"), true),
        ("%%c", json!("%c"), true),
        ("%%%c%%", json!("%c1%"), true),
        ("3", json!(3), true),
        ("true", json!(true), true),
        ("[1]", json!([1]), false),
    ] {
        let rules = TokenRules {
            claims: BTreeMap::from([("own".to_owned(), wanted.to_owned())]),
            ..rules()
        };
        let expected = (!is_right).then(|| TokenError::Claim("own".to_owned()));
        let claims = claims(|claims| claims["own"] = value.clone());
        assert_eq!(answer(rules, &claims).err(), expected, "{wanted} {value}");
        assert!(is_claim_template(wanted));
    }
    for wrong in ["%", "%x", "a%", "%%%"] {
        assert!(!is_claim_template(wrong), "{wrong}");
    }
    let own = BTreeMap::from([("own".to_owned(), "%u".to_owned())]);
    let verifier = verifier(SECRET, TokenRules { claims: own, ..rules() });
    let token = sign(&json!({"alg": "HS256"}), &claims(|claims| claims["own"] = json!("")));
    let nameless = TokenClient { client_id: "c1", user: None };
    assert!(matches!(verifier.verify(&token, &nameless, NOW), Err(TokenError::Claim(_))));
}

#[test]
fn rules_in_a_token_are_read_only_from_the_claim_that_has_them() {
    let with = claims(|claims| claims["acl"] = json!({"sub": ["a"]}));
    let has_rules = |rules| answer(rules, &with).map(|verified| verified.acl.is_some());
    assert_eq!(has_rules(rules()), Ok(true));
    assert_eq!(has_rules(TokenRules { acl_claim: None, ..rules() }), Ok(false));
    assert_eq!(has_rules(TokenRules { acl_claim: Some("other".to_owned()), ..rules() }), Ok(false));
    let wrong = claims(|claims| claims["acl"] = json!({"sub": "a"}));
    assert!(matches!(answer(rules(), &wrong), Err(TokenError::Acl(..))));
}

#[test]
fn files_without_usable_keys_are_refused() {
    let fixture = fixture();
    let pem = fixture["pem"]["RS"].as_str().expect("is text");
    let short_rsa = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}).to_string();
    for (text, words) in [
        ("", "less than 16 bytes"),
        ("short\n", "less than 16 bytes"),
        ("{", "no valid set"),
        (r#"{"keys": []}"#, "no key that"),
        (r#"{"keys": [{"kty": "EC", "crv": "P-521"}]}"#, "no key that"),
        (r#"{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}"#, "wrong length"),
        (r#"{"kty": "oct", "k": "!"}"#, "the key 1: a member is no base64url"),
        (r#"{"kty": "oct", "kid": "k7"}"#, "the key k7: a member is missing"),
        (r#"{"kty": "OKP", "crv": "Ed25519", "x": "AA", "d": "AA"}"#, "private"),
        (&short_rsa, "2048"),
        ("-----BEGIN PRIVATE KEY-----\n", "private key"),
        ("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", "no PUBLIC KEY"),
        ("-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n", "cannot be read"),
        (&pem.repeat(33), "more than 32"),
    ] {
        let error = TokenVerifier::parse("keys", text, rules()).expect_err(text).to_string();
        assert!(error.starts_with("keys: ") && error.contains(words), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_answered(token in "[a-zA-Z0-9_.-]{0,200}|\\PC{0,50}", claims in "\\PC{0,80}") {
        let verifier = verifier(SECRET, rules());
        prop_assert!(verifier.verify(&token, &CLIENT, NOW).is_err());
        looks_like_token(&token);
        let signed = format!(
            "{}.{}", encode(&json!({"alg": "HS256"})), BASE64_URL_SAFE_NO_PAD.encode(claims)
        );
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        let signature = hmac::sign(&key, signed.as_bytes());
        let token = format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref()));
        prop_assert!(looks_like_token(&token));
        prop_assert!(verifier.verify(&token, &CLIENT, NOW).is_err());
    }
}
