use proptest::prelude::*;

use super::*;

/// Made by the arithmetic of mosquitto from the password `secret` and the salt 00 01 .. 0b.
const SHA512: &str = "$6$AAECAwQFBgcICQoL$JqsxEv/ucyxjA5DKsQ+Y8CDWaQDNQI9FpAkmfwAqWfwZLk/JEGgM0Epyl\
                      rJHAZKKyFQjJeZ3nFaHjPzOzPPmPw==";
const PBKDF2: &str = "$7$101$AAECAwQFBgcICQoL$Xr99N9ym9ys8TWxis5ajETJq6EVYzmc6nb8t3pUYnPBbCAbICS4x\
                      ejTltonXWCtJNBvA+By+TXUqU6qCblO00w==";
/// By the reference implementation of Argon2 from `password`, `somesalt`, t=2, m=256, p=1.
const ARGON2: &str = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1b\
                      MCHGi/4";

#[test]
fn hashes_of_other_programs_are_verified() {
    for (text, password) in [(SHA512, "secret"), (PBKDF2, "secret"), (ARGON2, "password")] {
        let stored = StoredPassword::parse(text).expect(text);
        let mut memory = Memory::default();
        assert!(stored.verify(password.as_bytes(), &mut memory), "{text}");
        assert!(!stored.verify(b"Secret", &mut memory), "{text}");
        assert!(!stored.verify(b"", &mut memory), "{text}");
        assert_eq!(stored.to_string(), text);
    }
}

#[test]
fn made_hashes_have_a_salt_of_their_own_and_are_verified() {
    let cheap = Scheme::Argon2id { memory_kib: 64, passes: 1, lanes: 2 };
    let iterations = NonZeroU32::new(3).unwrap();
    for scheme in [Scheme::Sha512, Scheme::Pbkdf2 { iterations }, cheap] {
        let made = StoredPassword::make(b"pass:word", scheme).expect("randomness");
        let again = StoredPassword::make(b"pass:word", scheme).expect("randomness");
        assert_ne!(made, again);
        let read = StoredPassword::parse(&made.to_string()).expect("its own text");
        assert_eq!(read, made);
        // Memory of a larger verification is used again.
        let mut memory = Memory(vec![Block::new(); 300]);
        assert!(read.verify(b"pass:word", &mut memory));
        assert!(!read.verify(b"pass:wor", &mut memory));
    }
}

#[test]
fn wrong_texts_are_refused_by_name() {
    let salt = STANDARD.encode([7; 12]);
    let (short, hash) = (STANDARD.encode([7; 4]), STANDARD.encode([9; 64]));
    for (text, error) in [
        (String::new(), HashError::Plain),
        ("secret".to_owned(), HashError::Plain),
        ("$".to_owned(), HashError::UnknownFormat),
        (format!("$5${salt}${hash}"), HashError::UnknownFormat),
        (format!("$argon2i$v=19$m=64,t=1,p=1${salt}${hash}"), HashError::UnknownFormat),
        ("$6$AAAA".to_owned(), HashError::Fields),
        (format!("$6$!${hash}"), HashError::Base64),
        (format!("$6${salt}$ab$cd"), HashError::Base64),
        (format!("$6${short}${hash}"), HashError::Length),
        (format!("$6${salt}${salt}"), HashError::Length),
        (format!("$7${salt}${hash}"), HashError::Parameter),
        (format!("$7$0${salt}${hash}"), HashError::Parameter),
        (format!("$7$+5${salt}${hash}"), HashError::Parameter),
        (format!("$7$4000000000${salt}${hash}"), HashError::Parameter),
        ("$argon2id$v=16$m=64,t=1,p=1$AAAA$AAAA".to_owned(), HashError::Parameter),
        ("$argon2id$v=19$m=9999999,t=1,p=1$AAAA$AAAA".to_owned(), HashError::Parameter),
        ("$argon2id$v=19$m=64,t=1$AAAA$AAAA".to_owned(), HashError::Parameter),
        ("$argon2id$v=19$m=64,t=1,p=1,x=1$AAAA$AAAA".to_owned(), HashError::Fields),
        ("$argon2id$v=19$m=64,t=1,p=1$AAAA".to_owned(), HashError::Fields),
        ("$argon2id$v=19$m=64,t=1,p=1$AAAA$AAAA".to_owned(), HashError::Length),
    ] {
        assert_eq!(StoredPassword::parse(&text), Err(error), "{text}");
    }
}

#[test]
fn no_hash_is_shown_for_debugging() {
    let stored = StoredPassword::parse(SHA512).expect("valid");
    assert_eq!(format!("{stored:?}"), "StoredPassword { scheme: Sha512, .. }");
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC*", fields in "[$a-z0-9=,+/]{0,80}") {
        let _ = StoredPassword::parse(&text);
        let _ = StoredPassword::parse(&format!("$argon2id${fields}"));
        let _ = StoredPassword::parse(&format!("$7${fields}"));
    }
}
