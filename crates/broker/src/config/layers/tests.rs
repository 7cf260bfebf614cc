//! Files, folders and variables together.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::config::Config;

/// A configuration of `broker.toml` in a folder, and of variables.
fn config(folder: &TempDir, variables: &[(&str, &str)]) -> Result<Config, String> {
    let path = folder.path().join("broker.toml");
    let variables = variables.iter().map(|(name, text)| {
        let name = name.strip_prefix('!').map_or_else(|| format!("{PREFIX}{name}"), str::to_owned);
        (name, (*text).to_owned())
    });
    let raw =
        read(path.exists().then_some(&*path), variables).map_err(|error| error.to_string())?;
    raw.resolve().map_err(|error| error.to_string())
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("has one")).expect("made");
        fs::write(path, text).expect("written");
    }
    folder
}

/// Where a value comes from, and what it is.
fn source(config: &Config, key: &str) -> (String, ValueSource, Option<String>) {
    let found = config.effective().into_iter().find(|value| value.key == key);
    let found = found.unwrap_or_else(|| panic!("there is no {key}"));
    (found.value, found.source, found.place)
}

#[test]
fn variables_come_before_the_file_and_say_so() {
    let folder = folder(&[(
        "broker.toml",
        "[limits]\nsessions_max = 5\ninflight_max = 6\n[[listeners]]\naddress = '127.0.0.1:1'\n",
    )]);
    let variables = [
        ("LIMITS__SESSIONS_MAX", "7"),
        ("LISTENERS__0__CONNECTIONS_MAX", "9"),
        ("LISTENERS__1__ADDRESS", "127.0.0.1:2"),
        ("LISTENERS__1__TRANSPORT", "ws"),
        ("SHARED_SUBSCRIPTION_STRATEGY", "random"),
        ("LIMITS__QUEUE_QOS0_OFFLINE", "true"),
        ("RESPONSE_INFORMATION", "answers/"),
        ("!TACHO_BROKERS", "not ours"),
        ("!PATH", "/bin"),
    ];
    let config = config(&folder, &variables).expect("fits");
    assert_eq!((config.limits.sessions_max, config.limits.inflight_max), (7, 6));
    assert_eq!(config.listeners[0].connections.max, Some(9));
    assert_eq!(config.listeners[1].to_string(), "ws://127.0.0.1:2/mqtt");
    assert!(config.limits.queue_qos0_offline);
    assert_eq!(config.response_information.as_deref(), Some("answers/"));
    let (value, from, place) = source(&config, "limits.sessions_max");
    assert_eq!((&*value, from), ("7", ValueSource::Environment));
    assert_eq!(place.as_deref(), Some("TACHO_BROKER__LIMITS__SESSIONS_MAX"));
    let (_, from, place) = source(&config, "limits.inflight_max");
    assert_eq!(from, ValueSource::File);
    assert!(place.is_some_and(|place| place.ends_with("broker.toml")));
    assert_eq!(source(&config, "limits.receive_maximum").1, ValueSource::Default);
    let without_file = TempDir::new().expect("a folder");
    let config = super::tests::config(&without_file, &[("SHARDS", "3")]).expect("fits");
    assert_eq!(config.shards, 3);
}

#[test]
fn variables_that_do_not_fit_are_named_without_their_values() {
    let folder = folder(&[("broker.toml", "shards = 2\n")]);
    for (variables, name, word) in [
        (&[("LIMITS__SESSION_MAX", "7")][..], "LIMITS__SESSION_MAX", "unknown field"),
        (&[("LIMITS__SESSIONS_MAX", "many")], "LIMITS__SESSIONS_MAX", ""),
        (&[("SHARDS__X", "1")], "SHARDS__X", "there is no such key"),
        (&[("LIMITS____X", "1")], "LIMITS____X", "between their parts"),
        (&[("LISTENERS__4__ADDRESS", "1")], "LISTENERS__4__ADDRESS", "there is no such key"),
        (&[("SHARDS", "4"), ("TLS__CHECK_S", "hunter2")], "TLS__CHECK_S", ""),
    ] {
        let error = config(&folder, variables).expect_err("does not fit");
        let name = format!("{PREFIX}{name}");
        assert!(error.contains(&name) && error.contains(word), "{error}");
        assert!(!error.contains("hunter2") && !error.contains("many"), "{error}");
    }
    // What is out of range is told as in a file.
    let error = config(&folder, &[("LIMITS__SESSIONS_MAX", "0")]).expect_err("out of range");
    assert!(error.contains("limits.sessions_max"), "{error}");
}

#[test]
fn the_files_of_a_folder_are_read_by_name_after_the_file_that_includes_it() {
    let folder = folder(&[
        (
            "broker.toml",
            "include = 'conf.d'\n[limits]\nsessions_max = 1\ninflight_max = 1\n\
             [[listeners]]\naddress = '127.0.0.1:1'\n",
        ),
        ("conf.d/20.toml", "[limits]\nsessions_max = 3\n[[listeners]]\naddress = '127.0.0.1:3'\n"),
        ("conf.d/10.toml", "[limits]\nsessions_max = 2\n[[listeners]]\naddress = '127.0.0.1:2'\n"),
        ("conf.d/notes.txt", "["),
        ("conf.d/.hidden.toml", "["),
    ]);
    let found = config(&folder, &[]).expect("fits");
    assert_eq!((found.limits.sessions_max, found.limits.inflight_max), (3, 1));
    let ports: Vec<u16> = found.listeners.iter().map(|l| l.address.port()).collect();
    assert_eq!(ports, [1, 2, 3]);
    let (_, _, place) = source(&found, "limits.sessions_max");
    assert!(place.is_some_and(|place| place.ends_with("conf.d/20.toml")));
    let over = config(&folder, &[("LIMITS__SESSIONS_MAX", "9")]).expect("fits");
    assert_eq!(over.limits.sessions_max, 9);
}

#[test]
fn mistakes_in_included_files_have_their_file_and_line() {
    for (text, words) in [
        ("[limits]\nsessions = 3\n", "line 2"),
        ("shards = ", "10.toml"),
        ("include = 'more'\n", "10.toml"),
        (
            "[[bridges]]\nname = 'b'\naddress = 'mqtt://127.0.0.1:1'\nconnections = 0\n\
             [[bridges.egress]]\nfilter = 'a'\n",
            "10.toml:4",
        ),
    ] {
        let folder = folder(&[("broker.toml", "include = 'c'\n"), ("c/10.toml", text)]);
        let error = config(&folder, &[]).expect_err("is wrong");
        assert!(error.contains("10.toml") && error.contains(words), "{error}");
    }
    let missing = folder(&[("broker.toml", "include = 'c'\n")]);
    let error = config(&missing, &[]).expect_err("there is no folder");
    assert!(error.contains("/c: "), "{error}");
}
