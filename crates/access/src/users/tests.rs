use proptest::prelude::*;

use super::*;

const CHEAP: Scheme = Scheme::Argon2id { memory_kib: 16, passes: 1, lanes: 1 };

fn stored(password: &str) -> StoredPassword {
    StoredPassword::make(password.as_bytes(), Scheme::Sha512).expect("randomness")
}

fn fails(text: &str) -> (Option<usize>, String) {
    let error = Users::parse("users", text).expect_err(text);
    (error.line(), error.to_string())
}

#[test]
fn lines_are_read_as_mosquitto_reads_them() {
    let (a, b) = (stored("a"), stored("b"));
    let text = format!("# users\n\n alice : {a} :ignored\nno colon\r\nb:{b}\r\n#c:{a}\n");
    let users = Users::parse("users", &text).expect("valid");
    assert_eq!(users.len(), 2);
    let mut memory = Memory::default();
    assert!(users.verify("alice", b"a", &mut memory));
    assert!(users.verify("b", b"b", &mut memory));
    assert!(!users.verify("b", b"a", &mut memory));
    assert!(!users.verify("#c", b"a", &mut memory));
    assert_eq!(users.warnings(), ["users:4: a line without `:` is ignored"]);
    assert!(!format!("{users:?}").contains("alice"));
}

// A line without a password made a user without one (CVE-2018-12551).
#[test]
fn wrong_lines_fail_the_whole_file_and_show_no_secret() {
    let good = stored("x");
    for (text, line, what) in [
        (format!(":{good}"), 1, "empty"),
        (format!("a:{good}\nb:"), 2, "no password"),
        (format!("a:{good}\n\nb: \t"), 3, "no password"),
        (format!("a:{good}\na:{good}"), 2, "twice"),
        ("a:hunter2".to_owned(), 1, "not hashed"),
        ("a:$6$hunter2".to_owned(), 1, "fields"),
        (format!("a\u{7}b:{good}"), 1, "control character"),
    ] {
        let (at, sentence) = fails(&text);
        assert_eq!(at, Some(line), "{text}");
        assert!(sentence.contains(what), "{sentence}");
        assert!(!sentence.contains("hunter2") && !sentence.contains("$6$"), "{sentence}");
    }
}

#[test]
fn an_empty_file_has_no_users_and_lets_none_in() {
    let users = Users::parse("users", "").expect("valid");
    assert!(users.is_empty());
    assert!(!users.verify("", b"", &mut Memory::default()));
    assert!(!users.verify("a", b"", &mut Memory::default()));
}

#[test]
fn unknown_users_cost_as_much_as_the_costliest_known_one() {
    let costly = StoredPassword::make(b"c", CHEAP).expect("randomness");
    let text = format!("a:{}\nc:{costly}\nb:{}\n", stored("a"), stored("b"));
    let users = Users::parse("users", &text).expect("valid");
    assert_eq!(users.decoy.scheme(), CHEAP);
    // Known and cheap, or unknown: the memory of Argon2 was used.
    for name in ["a", "stranger"] {
        let mut memory = Memory::default();
        assert!(!users.verify(name, b"wrong", &mut memory));
        assert!(!format!("{memory:?}").contains("blocks: 0"), "{name}: {memory:?}");
    }
    // The decoy's password opens nothing.
    assert!(!users.verify("stranger", b"c", &mut Memory::default()));
}

#[test]
fn users_are_set_and_deleted_without_touching_other_lines() {
    let (a, b) = (stored("a"), stored("b"));
    let text = "# head\nmallory:$x\n\n";
    let text = set_user(text, "alice", &a);
    assert_eq!(text, format!("# head\nmallory:$x\n\nalice:{a}\n"));
    let text = set_user(&text, "mallory", &b);
    assert_eq!(text, format!("# head\nmallory:{b}\n\nalice:{a}\n"));
    assert_eq!(delete_user(&text, "bob"), None);
    assert_eq!(delete_user(&text, "mallory"), Some(format!("# head\n\nalice:{a}\n")));
}

#[test]
fn names_that_would_be_read_differently_are_refused() {
    for name in ["#a", " a", "a ", "a:b", "a\nb", "a\0"] {
        assert_eq!(check_name(name), Err(NameError::Characters), "{name:?}");
    }
    assert_eq!(check_name(""), Err(NameError::Empty));
    assert_eq!(check_name(&"x".repeat(70_000)), Err(NameError::TooLong));
    assert_eq!(check_name("grün 1/+#"), Ok(()));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "([a#: $\t]{0,5}\n?){0,20}", other in "\\PC*") {
        let _ = Users::parse("users", &text);
        let _ = Users::parse("users", &other);
    }

    #[test]
    fn what_is_set_is_read_back(name in "\\PC{1,20}", text in "([a-c]:?\n?){0,6}") {
        if check_name(&name).is_ok() {
            let stored = StoredPassword::make(b"p", Scheme::Sha512).unwrap();
            let changed = set_user(&text, &name, &stored);
            let entry = format!("{name}:{stored}");
            prop_assert!(changed.lines().any(|line| line == entry));
        }
    }
}

#[test]
fn many_users_are_set_at_once() {
    let [one, two] = [b"one", b"two"].map(|word| StoredPassword::make(word, CHEAP).unwrap());
    let before = format!("# users\nann:{one}\nbob:{one}\n");
    let (after, replaced) = set_users(&before, [("bob", &two), ("eve", &two)]);
    assert_eq!(replaced, 1);
    assert_eq!(after, format!("# users\nann:{one}\nbob:{two}\neve:{two}\n"));
}

#[test]
fn plain_passwords_are_hashed_and_others_stay() {
    let stored = StoredPassword::make(b"one", CHEAP).unwrap();
    let before = format!("# a: comment\nann:{stored}\nbob: two words \n\n");
    let (after, hashed) = hash_plain("users", &before, CHEAP).expect("valid");
    assert_eq!(hashed, 1);
    assert!(after.starts_with(&format!("# a: comment\nann:{stored}\nbob:$argon2id$")), "{after}");
    let users = Users::parse("users", &after).expect("valid");
    assert!(users.verify("bob", b"two words", &mut Memory::default()));
    assert_eq!(hash_plain("users", &after, CHEAP).expect("valid"), (after, 0));
    for (text, said) in [
        ("ann:a:b\n", "users:1: the user `ann`: a plain password with `:`"),
        ("#\nann:\n", "users:2: the user `ann` has no password"),
        (":secret\n", "users:1: the user name is empty"),
    ] {
        let error = hash_plain("users", text, CHEAP).expect_err(text).to_string();
        assert!(error.starts_with(said), "{error}");
    }
}
