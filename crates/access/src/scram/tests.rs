use proptest::prelude::*;

use super::*;
use crate::hash::{Memory, StoredPassword};
use crate::users::set_user;

const CLIENT_NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
/// The user `user` with the password `pencil` and the salt of RFC 7677, 3. The keys were derived by
/// Python's hashlib, which also gives the messages of that RFC for SHA-256.
const USER_256: &str = "user:$scram-sha256$4096$W22ZaJ0SNY7soEsUEjb6gQ$\
                        WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY$\
                        wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU\n";
const USER_512: &str = "user:$scram-sha512$4096$W22ZaJ0SNY7soEsUEjb6gQ$\
                        6AAub3065EYRmyFpM2RNwqK+eGnrkYuEWbXn19LsEmBqzu8QaCXNc1Fw\
                        pnX9NhH2hK/60dzj9DoO5DvVkOHbvg$\
                        jZHbYjC1aHh0/hKbxyBuGFjDrgjgKTT1esA7awWiKcRZ0o/0b1yWEebB\
                        eSVkkCFewf91nLDfKF24mvD5nmE6rA\n";
const PROOF_256: &str = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
const PROOF_512: &str = "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC\
                         6wdp6dybEmDYXYTxwnYPJQ==";
const FINAL_256: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
const FINAL_512: &str = "v=ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4\
                         +5ZxXnJq199RVG2rR7N7Zw==";

fn users(text: &str) -> Users {
    Users::parse("users", text).unwrap()
}

fn begin(
    users: &Users,
    hash: ScramHash,
    first: &str,
) -> Result<(ScramExchange, String), ScramError> {
    let key = ProcessKey::new().unwrap();
    let begun = ScramExchange::begin_with(users, hash, &key, first.as_bytes(), SERVER_NONCE);
    begun.map(|(exchange, answer)| (exchange, String::from_utf8(answer).unwrap()))
}

/// The last message with this proof.
fn last(binding: &str, proof: &str) -> String {
    format!("c={binding},r={CLIENT_NONCE}{SERVER_NONCE},p={proof}")
}

#[test]
fn the_exchange_of_rfc_7677_and_that_of_sha_512_succeed() {
    for (hash, text, proof, server_final) in [
        (ScramHash::Sha256, USER_256, PROOF_256, FINAL_256),
        (ScramHash::Sha512, USER_512, PROOF_512, FINAL_512),
    ] {
        let users = users(text);
        let first = format!("n,,n=user,r={CLIENT_NONCE}");
        let (exchange, answer) = begin(&users, hash, &first).unwrap();
        let expected = format!("r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        assert_eq!(answer, expected);
        let success = exchange.finish(last("biws", proof).as_bytes()).unwrap();
        assert_eq!((&*success.user, &*success.server_final), ("user", server_final.as_bytes()));
        // The keys are those of the password, which may also be verified by itself.
        let stored = users.get("user").unwrap();
        assert!(stored.verify(b"pencil", &mut Memory::default()));
        assert!(!stored.verify(b"pencils", &mut Memory::default()));
        assert_eq!(format!("user:{stored}\n"), text);
    }
}

#[test]
fn the_client_says_what_rfc_7677_has_and_believes_only_a_proof() {
    for (hash, proof, server_final) in
        [(ScramHash::Sha256, PROOF_256, FINAL_256), (ScramHash::Sha512, PROOF_512, FINAL_512)]
    {
        let begin = || ScramClient::begin_with(hash, "user", CLIENT_NONCE).unwrap();
        assert_eq!(begin().1, format!("n,,n=user,r={CLIENT_NONCE}").into_bytes());
        let server_first =
            format!("r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let answer = |password: &[u8], known| {
            begin().0.answer(server_first.as_bytes(), password, known).unwrap()
        };
        let (said, expected, salted) = answer(b"pencil", None);
        assert_eq!(said, last("biws", proof).into_bytes());
        assert_eq!(expected.check(server_final.as_bytes()), Ok(()));
        assert_eq!(expected.check(b"v=AAAA"), Err(ScramError::ServerUnproved));
        assert_eq!(expected.check(b"e=invalid-proof"), Err(ScramError::Wrong));
        assert!(matches!(expected.check(b"hello"), Err(ScramError::Malformed(_))));
        // A salted password of the same salt stands for the password.
        assert_eq!(answer(b"another", Some(salted.clone())).0, said);
        assert_ne!(answer(b"another", None).0, said);
        assert!(!format!("{salted:?} {expected:?}").contains("salted:"));
    }
}

#[test]
fn a_client_answers_no_server_that_breaks_the_rules() {
    let answer = |server_first: &str| {
        let (client, _) = ScramClient::begin_with(ScramHash::Sha256, "a,b=c", "abc").unwrap();
        client.answer(server_first.as_bytes(), b"p", None).unwrap_err()
    };
    for text in [
        "",
        "r=abc,s=AAAA,i=4096",
        "r=abx9,s=AAAA,i=4096",
        "r=abc9,i=4096,s=AAAA",
        "r=abc9,s=!,i=4096",
        "r=abc9,s=AAAA,i=0",
        "r=abc9,s=AAAA,i=-1",
        "r=abc9,s=AAAA",
    ] {
        assert!(matches!(answer(text), ScramError::Malformed(_)), "{text}");
    }
    assert_eq!(answer("r=abc9,s=AAAA,i=4000000000"), ScramError::Iterations(4_000_000_000));
    assert_eq!(answer("m=x,r=abc9,s=AAAA,i=4096"), ScramError::Extension);
    let first = ScramClient::begin_with(ScramHash::Sha256, "a,b=c", "abc").unwrap().1;
    assert_eq!(first, b"n,,n=a=2Cb=3Dc,r=abc");
    assert!(ScramClient::begin(ScramHash::Sha256, "a\u{7}").is_err());
}

#[test]
fn both_sides_agree() {
    let users = users(&format!("{USER_256}{USER_512}").replacen("user:", "ann:", 1));
    let key = ProcessKey::new().unwrap();
    for (hash, user) in [(ScramHash::Sha256, "ann"), (ScramHash::Sha512, "user")] {
        for (password, right) in [("pencil", true), ("pencils", false)] {
            let (client, first) = ScramClient::begin(hash, user).unwrap();
            let (exchange, answer) = ScramExchange::begin(&users, hash, &key, &first).unwrap();
            let (last, proof, _) = client.answer(&answer, password.as_bytes(), None).unwrap();
            match exchange.finish(&last) {
                Ok(success) => assert!(right && proof.check(&success.server_final).is_ok()),
                Err(error) => assert!(!right && error == ScramError::Wrong),
            }
        }
    }
}

#[test]
fn a_wrong_proof_or_one_of_another_exchange_is_refused() {
    let users = users(USER_256);
    let first = format!("n,,n=user,r={CLIENT_NONCE}");
    let malformed = |error| matches!(error, ScramError::Malformed(_));
    let attempt = |text: String| {
        let (exchange, _) = begin(&users, ScramHash::Sha256, &first).unwrap();
        exchange.finish(text.as_bytes()).unwrap_err()
    };
    let wrong = PROOF_256.replacen("dH", "dI", 1);
    assert_eq!(attempt(last("biws", &wrong)), ScramError::Wrong);
    // `y,,` instead of `n,,`; a part of the nonce; a proof that is no proof.
    assert!(malformed(attempt(last("eSws", PROOF_256))));
    assert!(malformed(attempt(last("biws", PROOF_256).replace("hNlF", "hNlf"))));
    assert!(malformed(attempt(format!("c=biws,r={CLIENT_NONCE},p={PROOF_256}"))));
    for proof in ["", "x", "AAAA", PROOF_512] {
        assert!(malformed(attempt(last("biws", proof))), "{proof}");
    }
    // What is added to a message is a part of what is proved.
    let more = last("biws", PROOF_256).replace(",p=", ",x=1,p=");
    assert_eq!(attempt(more), ScramError::Wrong);
}

#[test]
fn a_user_that_does_not_exist_goes_through_the_same_exchange() {
    let argon = StoredPassword::make(b"pencil", Scheme::Sha512).unwrap();
    let text = set_user(&set_user(USER_256, "other", &argon), "third", &argon);
    let users = users(&text);
    let key = ProcessKey::new().unwrap();
    let ask = |key: &ProcessKey, name: &str| {
        let first = format!("n,,n={name},r={CLIENT_NONCE}");
        let begun = ScramExchange::begin_with(
            &users,
            ScramHash::Sha256,
            key,
            first.as_bytes(),
            SERVER_NONCE,
        );
        let (exchange, answer) = begun.unwrap();
        (exchange, String::from_utf8(answer).unwrap())
    };
    // Neither does one whose password is stored otherwise.
    for name in ["unknown", "other"] {
        let (exchange, answer) = ask(&key, name);
        let (again, same) = ask(&key, name);
        assert_eq!(answer, same);
        assert!(answer.ends_with(",i=4096"), "{answer}");
        let salt = answer.split(",s=").nth(1).unwrap().split(',').next().unwrap();
        assert_eq!(STANDARD.decode(salt).unwrap().len(), 16);
        for exchange in [exchange, again] {
            let error = exchange.finish(last("biws", PROOF_256).as_bytes()).unwrap_err();
            assert_eq!(error, ScramError::Wrong);
        }
        let other_key = ProcessKey::new().unwrap();
        assert_ne!(ask(&other_key, name).1, answer);
    }
    assert_ne!(ask(&key, "unknown").1, ask(&key, "other").1);
    // Also where no user has such a password.
    let none = Users::parse("users", "").unwrap();
    let (_, answer) = begin(&none, ScramHash::Sha512, "n,,n=a,r=b").unwrap();
    assert!(answer.ends_with(&format!(",i={SCRAM_ITERATIONS}")), "{answer}");
}

#[test]
fn what_is_malformed_or_demanded_in_vain_is_refused() {
    let users = users(USER_256);
    let refused = |first: &str| begin(&users, ScramHash::Sha256, first).err();
    assert_eq!(refused("p=tls-exporter,,n=user,r=x"), Some(ScramError::ChannelBinding));
    assert_eq!(refused("n,a=admin,n=user,r=x"), Some(ScramError::OtherUser));
    assert_eq!(refused("n,,m=x,n=user,r=x"), Some(ScramError::Extension));
    for allowed in ["y,,n=user,r=x", "n,a=user,n=user,r=x", "n,,n=user,r=x,e=1,f=2"] {
        assert_eq!(refused(allowed), None, "{allowed}");
    }
    let long = format!("n,,n=user,r={}", "x".repeat(600));
    let longer = format!("n,,n=user,r=x,e={}", "x".repeat(5_000));
    for malformed in [
        "",
        "n",
        "n,",
        "n,,",
        "x,,n=user,r=x",
        "p,,n=user,r=x",
        "n,,n=,r=x",
        "n,,n=user",
        "n,,n=user,r=",
        "n,,r=x,n=user",
        "n,,n=us=er,r=x",
        "n,,n=us=2cer,r=x",
        "n,,n=user,r=a b",
        "n,,n=user,r=\u{e9}",
        "n,,n=user,r=x,",
        "n,,n=user,r=x,e",
        "n,,n=u\0r,r=x",
        "n,b=user,n=user,r=x",
        "n,,n=u\u{7}r,r=x",
        &long,
        &longer,
    ] {
        let error = refused(malformed);
        assert!(matches!(error, Some(ScramError::Malformed(_))), "{malformed:?}: {error:?}");
    }
    let key = ProcessKey::new().unwrap();
    let bytes =
        ScramExchange::begin(&users, ScramHash::Sha256, &key, b"n,,n=\xff,r=x").unwrap_err();
    assert!(matches!(bytes, ScramError::Malformed(_)));
}

#[test]
fn names_are_unescaped_and_saslprepared() {
    let parse = |first: &str| ClientFirst::parse(first.as_bytes()).map(|first| first.user);
    assert_eq!(parse("n,,n=a=2Cb=3Dc,r=x").as_deref(), Ok("a,b=c"));
    assert_eq!(parse("n,a==3D,n==3D,r=x").as_deref(), Ok("="));
    // RFC 4013, 3.
    assert_eq!(saslprepared("I\u{ad}X").as_deref(), Some("IX"));
    assert_eq!(saslprepared("\u{aa}").as_deref(), Some("a"));
    assert_eq!(saslprepared("\u{2168}").as_deref(), Some("IX"));
    assert_eq!((saslprepared("\u{7}"), saslprepared("\u{627}1")), (None, None));
    // One password in two spellings.
    let scheme = Scheme::Scram { hash: ScramHash::Sha256, iterations: SCRAM_ITERATIONS };
    let stored = StoredPassword::make("IX".as_bytes(), scheme).unwrap();
    assert!(stored.verify("\u{2168}".as_bytes(), &mut Memory::default()));
}

#[test]
fn nonces_are_random_and_begin_with_the_clients() {
    let (users, key) = (users(USER_256), ProcessKey::new().unwrap());
    let ask = || {
        let begun = ScramExchange::begin(&users, ScramHash::Sha256, &key, b"n,,n=user,r=abc");
        String::from_utf8(begun.unwrap().1).unwrap()
    };
    let (first, second) = (ask(), ask());
    assert!(first.starts_with("r=abc") && second.starts_with("r=abc") && first != second);
    assert!(first.split(',').next().unwrap().len() >= "r=abc".len() + 24);
}

#[test]
fn stored_passwords_have_bounds() {
    for (from, to) in [
        ("$4096$", "$4095$"),
        ("$4096$", "$10000001$"),
        ("$4096$", "$-1$"),
        ("$4096$", "$"),
        ("sha256", "sha1"),
        ("WG5d", "5d"),
        ("W22ZaJ0SNY7soEsUEjb6gQ", "W22Z"),
    ] {
        let text = USER_256.replacen(from, to, 1);
        assert!(Users::parse("users", &text).is_err(), "{text}");
    }
}

proptest! {
    /// Messages that are changed anywhere are refused or prove nothing, and nothing panics.
    #[test]
    fn changed_messages_never_succeed(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..80),
        in_first in any::<bool>(),
    ) {
        let (users, key) = (users(USER_256), ProcessKey::new().unwrap());
        let mut first = format!("n,,n=user,r={CLIENT_NONCE}").into_bytes();
        let mut final_message = last("biws", PROOF_256).into_bytes();
        let honest = (first.clone(), final_message.clone());
        let changed = if in_first { &mut first } else { &mut final_message };
        let at = at.index(changed.len());
        changed[at] = byte;
        let hash = ScramHash::Sha256;
        let begun = ScramExchange::begin_with(&users, hash, &key, &first, SERVER_NONCE);
        if let Ok((exchange, _)) = begun {
            let is_same = honest == (first.clone(), final_message.clone());
            // The last character of base64 may differ in bits that mean nothing: those are refused.
            prop_assert_eq!(exchange.finish(&final_message).is_ok(), is_same);
        }
        let cut = cut.index(honest.1.len());
        for message in [&noise[..], &honest.0[..cut.min(honest.0.len())], &honest.1[..cut]] {
            let _ = ClientFirst::parse(message);
            let _ = ClientFinal::parse(message);
            let _ = ScramExchange::begin(&users, hash, &key, message);
            let (exchange, _) = ScramExchange::begin_with(
                &users, hash, &key, &honest.0, SERVER_NONCE,
            ).unwrap();
            prop_assert!(exchange.finish(message).is_err());
        }
    }
}
