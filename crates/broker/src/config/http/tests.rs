use super::*;
use crate::config::RawConfig;

/// The section, with keys before its tables and further tables.
fn resolved(keys: &str, tables: &str) -> Result<HttpSettings, String> {
    let text = format!(
        "[access.http]\nurl = 'https://auth.example/login'\n{keys}\n[access.http.fields]\n\
         user = '%u'\n{tables}"
    );
    let raw: RawConfig = toml::from_str(&text).map_err(|error| error.to_string())?;
    let config = raw.resolve().map_err(|error| error.to_string())?;
    config.access.http.all().first().cloned().ok_or_else(|| "no section".to_owned())
}

#[test]
fn defaults_are_those_of_the_table() {
    let settings = resolved("", "").expect("valid");
    assert_eq!((settings.timeout_ms, settings.connect_timeout_ms), (5_000, 2_000));
    assert_eq!((settings.remember_allowed_s, settings.remember_denied_s), (60, 5));
    assert_eq!((settings.failures_max, settings.pause_s), (10, 10));
    assert_eq!((settings.method, settings.order), (HttpMethod::Post, BackendOrder::Last));
    assert_eq!(settings.on_unavailable, OnUnavailable::Refuse);
    assert_eq!(settings.origin(), "https://auth.example");
    let asked = HttpSettings { url: "http://[::1]:80?a=b".to_owned(), ..settings };
    assert_eq!(asked.origin(), "http://[::1]:80");
}

#[test]
fn what_makes_no_sense_is_refused_and_named() {
    for (keys, tables, words) in [
        ("method = 'put'", "", "put"),
        ("method = 'get'\nformat = 'form'", "", "`format` has no use"),
        ("cert_file = 'c'", "", "belong together"),
        ("timeout_ms = 5", "", "access.http.timeout_ms"),
        ("connections_max = 0", "", "access.http.connections_max"),
        ("waiting = 3", "", "unknown field"),
        ("", "id = '%x'", "`fields`: `id`: `%` begins"),
        ("", "[access.http.headers]\nAuthorization = 'Basic x'", "is a secret"),
        ("", "[access.http.headers]\n'a b' = 'x'", "no name of a header"),
        ("", "[access.http.headers]\nHost = 'x'", "the request's own"),
        ("", "[access.http.headers]\na = \"\\u0007\"", "control character"),
        ("", "[access.http.secret_headers]\na = { file = 'x', env = 'Y' }", "{ file ="),
    ] {
        let refused = resolved(keys, tables).expect_err(words);
        assert!(refused.contains(words), "{words}: {refused}");
    }
    for (url, words) in [
        ("auth.example/login", "must begin with https://"),
        ("ftp://auth.example", "must begin with https://"),
        ("https://", "must begin with https://"),
        ("https://auth.example/#x", "fragment"),
        ("https://u:p@auth.example", "user or a password"),
    ] {
        let settings = HttpSettings { url: url.to_owned(), ..resolved("", "").expect("valid") };
        let refused = settings.check().expect_err(words).to_string();
        assert!(refused.contains(words), "{words}: {refused}");
    }
    let plain = resolved("ca_file = 'c'", "").expect("valid");
    let plain = HttpSettings { url: "http://auth.example".to_owned(), ..plain };
    assert!(plain.check().expect_err("no TLS").to_string().contains("without https://"));
}

#[test]
fn a_secret_in_the_configuration_itself_is_not_shown() {
    for header in ["'Bearer s3cret'", "{ value = 's3cret' }", "{ file = 's3cret', more = 1 }"] {
        let refused = resolved("", &format!("[access.http.secret_headers]\na = {header}"));
        let refused = refused.expect_err("a secret");
        assert!(refused.contains("secret_headers") && !refused.contains("s3cret"), "{refused}");
    }
}

#[test]
fn the_description_says_where_secrets_are_and_is_a_configuration_again() {
    let settings = resolved(
        "retries_max = 1",
        "[access.http.headers]\nx-broker = 'a'\n[access.http.secret_headers]\n\
         authorization = { env = 'TOKEN', prefix = 'Bearer ' }\nx = { file = 'f' }\n",
    );
    let mut raw = RawConfig::default();
    raw.access.http = settings.expect("valid").into();
    let config = raw.resolve().expect("valid");
    let again: RawConfig = toml::from_str(&config.describe()).expect("is a configuration");
    assert_eq!(again.resolve().expect("valid").access, config.access);
}
