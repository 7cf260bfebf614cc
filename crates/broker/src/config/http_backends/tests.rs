use super::*;
use crate::config::{Config, RawConfig};

fn resolved(text: &str) -> Result<Config, String> {
    let raw: RawConfig = toml::from_str(text).map_err(|error| error.to_string())?;
    raw.resolve().map_err(|error| error.to_string())
}

/// An entry of `[[access.http]]`.
fn entry(keys: &str) -> String {
    format!("[[access.http]]\nurl = 'http://127.0.0.1:1/'\nfields = {{ u = '%u' }}\n{keys}\n")
}

fn listener(port: u16, keys: &str) -> String {
    format!("[[listeners]]\naddress = '127.0.0.1:{port}'\n{keys}\n")
}

#[test]
fn listeners_choose_their_backend_by_name_and_all_is_described_as_it_is() {
    let text = [
        entry(""),
        entry("name = 'devices'\ntimeout_ms = 100"),
        entry("name = 'people'\n[access.http.headers]\nx = 'y'"),
        listener(1, ""),
        listener(2, "login_backend = 'people'"),
        listener(3, "login_backend = 'devices'"),
        listener(4, "login_backend = 'none'"),
    ]
    .concat();
    let config = resolved(&text).unwrap();
    let chosen: Vec<_> = config.listeners.iter().map(|l| l.login_backend.index()).collect();
    assert_eq!(chosen, [Some(0), Some(2), Some(1), None]);
    let common: Vec<_> = config.listeners.iter().map(|l| l.has_common_logins).collect();
    assert_eq!(common, [true, true, true, false]);
    let again = resolved(&config.describe()).unwrap();
    assert_eq!((&again.access, &again.listeners), (&config.access, &config.listeners));
    // Without one for all, listeners that name none have none.
    let named = [entry("name = 'a'"), listener(1, ""), listener(2, "login_backend = 'a'")].concat();
    let config = resolved(&named).unwrap();
    let chosen: Vec<_> = config.listeners.iter().map(|l| l.login_backend.index()).collect();
    assert_eq!(chosen, [None, Some(0)]);
    assert_eq!(resolved(&config.describe()).unwrap().listeners, config.listeners);
    // One of them is closed to strangers, and the other needs consent.
    let remote = named.replace("127.0.0.1:2", "0.0.0.0:2");
    resolved(&remote).unwrap();
    let open = resolved(&named.replace("'127.0.0.1:1'", "'0.0.0.0:1'"));
    assert!(open.unwrap_err().contains("the listener 0.0.0.0:1 is not on loopback"));
}

#[test]
fn backends_that_do_not_fit_are_refused_with_their_names() {
    let many: Vec<String> =
        (0..=BACKENDS_MAX).map(|at| entry(&format!("name = 'b{at}'"))).collect();
    let large = |key: &str, value: u64| {
        ["a", "b", "c"].map(|name| entry(&format!("name = '{name}'\n{key} = {value}"))).concat()
    };
    for (text, words) in [
        ([entry(""), entry("")].concat(), "two backends have no `name`"),
        ([entry("name = 'a'"), entry("name = 'a'")].concat(), "two backends have the name `a`"),
        (entry("name = 'a b'"), "`name` is `a b`"),
        (entry("name = ''"), "`name` is ``"),
        (entry("name = 'none'"), "has no backend"),
        (entry("name = 'a'\ntimeout_ms = 1"), "`a`: `access.http.timeout_ms` is 1"),
        (entry("name = 'a'\ncert_file = 'c'"), "`a`: `cert_file` and `key_file`"),
        (entry("name = 'a'\nnames = 1"), "unknown field `names`"),
        (many.concat(), "more than 16 backends"),
        (large("connections_max", 64), "`connections_max` of all backends is 192 together"),
        (large("waiting_max", 40_000), "at most 100000"),
        (large("remembered_max", 4_000_000), "at most 10000000"),
        (
            [entry("name = 'a'"), entry(""), listener(1, "login_backend = 'b'")].concat(),
            "tcp://127.0.0.1:1: `login_backend` is `b`, but no [[access.http]] has that `name`: \
             there are a",
        ),
        (listener(1, "login_backend = 'b'"), "there is none with a `name`"),
        ("[access]\nhttp = 'x'\n".to_owned(), "[[access.http]]"),
    ] {
        let error = resolved(&text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
}
