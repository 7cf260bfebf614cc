use std::io::Write as _;

use super::*;
use crate::config::{Config, RawConfig};

/// A minimal bridge with further keys.
fn with(keys: &str) -> String {
    format!(
        "[[bridges]]\nname = 'x'\naddress = 'mqtt://a'\n{keys}\n[[bridges.egress]]\nfilter = 'a/#'\n"
    )
}

/// Parses as if read from a file.
fn parse(text: &str) -> Result<Config, String> {
    let mut raw: RawConfig = toml::from_str(text).map_err(|error| error.to_string())?;
    raw.source = Some(SourceText { path: "broker.toml".to_owned(), text: text.to_owned() });
    raw.resolve().map_err(|error| error.to_string())
}

fn one(text: &str) -> BridgeConfig {
    parse(text).expect(text).bridges.remove(0)
}

/// The setup of the published bridge test.
const PUBLISHED: &str = r#"
[[bridges]]
name = "node2"
address = "mqtt://node2.example:1883"
version = "5"
clean_start = true
keep_alive_s = 300
connections = 64
inflight = 100
buffer_bytes_max = 1_073_741_824
buffer_ttl_s = 45
ack_timeout_s = 15
health_check_s = 15

[[bridges.egress]]
filter = "bridge/#"
topic = "remote/${topic}"
payload = "${payload}"
qos = "keep"
retain = "keep"
"#;

#[test]
fn bridges_with_a_common_client_identifier_are_refused() {
    let bridge = |name: &str, address: &str, keys: &str| {
        format!(
            "[[bridges]]\nname = '{name}'\naddress = '{address}'\n{keys}\n\
             [[bridges.egress]]\nfilter = 'a/#'\n"
        )
    };
    let first = bridge("x", "mqtt://far.example", "client_id = 'c'\nconnections = 3");
    for (address, keys, id) in [
        ("mqtt://far.example:1883", "client_id = 'c'\nconnections = 2", Some("c-1")),
        ("mqtt://FAR.example", "client_id = 'c-3'", Some("c-3")),
        ("mqtt://far.example", "client_id = 'c'", None),
        ("mqtt://far.example", "", None),
        ("mqtt://far.example:1884", "client_id = 'c'\nconnections = 3", None),
    ] {
        let text = format!("{first}{}", bridge("y", address, keys));
        match (parse(&text), id) {
            (Ok(config), None) => assert_eq!(config.bridges.len(), 2),
            (Err(error), Some(id)) => {
                let words = ["broker.toml:9", "bridge `y`", "bridge `x`", &format!("`{id}`")];
                assert!(words.iter().all(|word| error.contains(word)), "{error}");
            }
            (parsed, _) => panic!("{text}: {parsed:?}"),
        }
    }
}

#[test]
fn published_setup_can_be_configured() {
    let bridge = one(PUBLISHED);
    assert_eq!(bridge.version, Version::V5);
    assert_eq!((bridge.connections, bridge.inflight, bridge.keep_alive_s), (64, 100, 300));
    assert_eq!((bridge.buffer_bytes_max, bridge.buffer_ttl_s), (1 << 30, 45));
    assert!(bridge.clean_start && bridge.session_expiry_s == 0);
    let rule = &bridge.egress[0];
    let values =
        Values { topic: "bridge/m1/5", payload: b"p", qos: QoS::AtLeastOnce, retain: true };
    let mut topic = String::new();
    rule.mapping.topic.render_topic(&values, &mut topic);
    assert_eq!(topic, "remote/bridge/m1/5");
    assert!(rule.mapping.payload.keeps_payload());
    assert_eq!(
        (rule.mapping.qos(QoS::ExactlyOnce), rule.mapping.retain(true)),
        (QoS::ExactlyOnce, true)
    );
    assert_eq!(
        (bridge.client_id_of(0), bridge.client_id_of(63)),
        ("tacho-node2-1".into(), "tacho-node2-64".into())
    );
}

#[test]
fn name_address_and_filter_suffice() {
    let bridge = one(&with(""));
    assert_eq!(bridge.remote.to_string(), "mqtt://a:1883");
    assert_eq!((bridge.client_id_of(0), bridge.connections), ("tacho-x".to_owned(), 1));
    assert!(!bridge.clean_start && bridge.session_expiry_s == 86_400 && !bridge.bridge_flag);
    assert_eq!((bridge.retry_first_s, bridge.retry_longest_s), (1, 30));
    assert_eq!((bridge.health_check_s, bridge.ack_timeout_s), (15, 15));
    assert_eq!((bridge.hops_max, one(&with("hops_max = 0")).hops_max), (4, 0));
    assert_eq!(one(&with("ack_timeout_s = 0")).ack_timeout_s, 0, "no limit");
    assert!(bridge.egress[0].mapping.topic.keeps_topic() && bridge.ingress.is_empty());
    let older = one(&with("version = '3.1.1'"));
    assert!(older.bridge_flag && older.session_expiry_s == 0);
    assert_eq!((bridge.inflight, older.inflight), (100, 20), "3.1.1 has no receive maximum");
    assert_eq!(one(&with("retry_first_s = 60")).retry_longest_s, 60);
}

#[test]
fn description_parses_to_the_same_configuration() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "pass word").unwrap();
    let text = format!(
        "{PUBLISHED}\n[[bridges]]\nname = 'two'\naddress = 'mqtts://[::1]:1'\nusername = 'u\"'\n\
         password_file = {:?}\nversion = '5.0'\nsession_expiry_s = 7\n\
         [bridges.tls]\nca = 'ca.pem'\ncert = 'c'\nkey = 'k'\nserver_name = 'n'\nalpn = ['mqtt']\n\
         [[bridges.ingress]]\nfilter = '$share/g/in/+'\ntopic = 'x/${{topic}}'\nqos = 1\n\
         retain = false\n[[bridges.egress]]\nfilter = 'out/#'\npayload = '<${{payload}}>'\n\
         [[bridges]]\nname = 'three'\naddress = 'b'\nversion = '3.1.1'\nbridge_flag = false\n\
         counterpart = 'd'\n\
         [[bridges.ingress]]\nfilter = 'in'\n",
        file.path()
    );
    let config = parse(&text).unwrap();
    assert_eq!(config.bridges[1].password.as_ref().unwrap().secret.reveal(), "pass word");
    assert_eq!(config.bridges[1].ingress[0].subscription_qos(), QoS::AtLeastOnce);
    let again = parse(&config.describe()).unwrap();
    assert_eq!(again.bridges, config.bridges);
    assert_eq!(again.describe(), config.describe());
}

#[test]
fn passwords_are_never_shown() {
    let text = with("username = 'u'\npassword = 'hunter2'");
    let raw: RawConfig = toml::from_str(&text).unwrap();
    assert!(!format!("{raw:?}").contains("hunter2"));
    let config = parse(&text).unwrap();
    let password = config.bridges[0].password.as_ref().unwrap();
    assert_eq!(password.secret.reveal(), "hunter2");
    assert!(!format!("{config:?}{}", config.describe()).contains("hunter2"));
    assert!(config.describe().contains("# password = (not shown)"));
}

#[test]
fn a_password_that_is_not_a_string_is_not_shown_either() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broker.toml");
    for keys in ["password = 4711", "password = 'hunter4711", "\"password\" = hunter4711"] {
        std::fs::write(&path, with(keys)).unwrap();
        let error = RawConfig::read(&path).unwrap_err().to_string();
        assert!(!error.contains("4711"), "{error}");
        assert!(error.contains("broker.toml:4: `password`"), "{error}");
    }
}

#[test]
fn invalid_settings_are_explained_with_their_line() {
    for (keys, words) in [
        ("name = 'y'", "duplicate key"),
        ("pool = 3", "line 4"),
        ("connections = 0", "broker.toml:4: bridge `x`: `connections` is 0, but must be from 1"),
        ("\ninflight = 65536", "broker.toml:5: bridge `x`: `inflight`"),
        ("keep_alive_s = 'long'", "line 4"),
        ("keep_alive_s = 70_000", "from 0 to 65535"),
        ("retry_longest_s = 5\nretry_first_s = 9", "broker.toml:4: "),
        ("ack_timeout_s = 86401", "broker.toml:4: "),
        ("hops_max = 256", "broker.toml:4: "),
        ("version = '3.1'", "must be \"5\" or \"3.1.1\""),
        ("version = '3.1.1'\nsession_expiry_s = 5", "broker.toml:5: "),
        ("bridge_flag = true", "requires version 3.1.1"),
        ("counterpart = ''", "must not be empty"),
        ("version = '3.1.1'\npassword = 'p'", "`username`"),
        ("password = 'p'\npassword_file = 'f'", "not both"),
        ("password_file = '/nowhere/at/all'", "broker.toml:4: bridge `x`: cannot read"),
        ("client_id = ''", "`client_id`"),
        ("[bridges.tls]\nca = 'x'", "not mqtts://"),
        ("buffer_bytes_max = 1", "from 65536"),
        (
            "[[bridges.ingress]]\nfilter = 'a/#/b'",
            "broker.toml:5: bridge `x`: `filter` is \"a/#/b\"",
        ),
        ("[[bridges.ingress]]\nfilter = 'a'\ntopic = '${x}'", "no variable `${x}`"),
        ("[[bridges.ingress]]\nfilter = 'a'\ntopic = 'a/+'", "broker.toml:6: "),
        ("[[bridges.ingress]]\nfilter = 'a'\ntopic = '$SYS/a'", "reserved"),
        ("[[bridges.ingress]]\nfilter = 'a'\npayload = '${'", "no closing `}`"),
        ("[[bridges.ingress]]\nfilter = 'a'\nqos = 3", "must be \"keep\", 0, 1 or 2"),
        ("[[bridges.ingress]]\nfilter = 'a'\nretain = 1", "must be \"keep\", true or false"),
        ("[[bridges.egress]]\nfilter = 'a/b'", "`a/b` and `a/#` overlap"),
        ("[[bridges.egress]]\nfilter = '$share/g/b'", "cannot be a shared"),
        ("[[bridges.egress]]\ntopic = 'b'", "filter"),
    ] {
        let error = parse(&with(keys)).expect_err(keys);
        assert!(error.contains(words), "{keys}: {error}");
    }
    for (text, words) in [
        (
            "[[bridges]]\nname = 'x'\naddress = 'ws://a'",
            "broker.toml:2: bridge `x`: it has no rules",
        ),
        ("[[bridges]]\nname = 'x'", "address"),
        (
            "[[bridges]]\nname = 'x'\naddress = 'ws://a'\n[[bridges.egress]]\nfilter = 'a'",
            "broker.toml:3: bridge `x`: `address`",
        ),
        (
            "[[bridges]]\nname = 'a b'\naddress = 'a'\n[[bridges.egress]]\nfilter = 'a'",
            "1 to 64 letters",
        ),
        (
            "[[bridges]]\nname = 'x'\naddress = 'mqtts://a'\n[[bridges.egress]]\nfilter = 'a'\n\
             [bridges.tls]\ncert = 'c'",
            "set together",
        ),
        (
            "[[bridges]]\nname = 'x'\naddress = 'a'\nversion = '3.1.1'\n\
             [[bridges.ingress]]\nfilter = '$share/g/a'",
            "broker.toml:6: bridge `x`: a shared subscription",
        ),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.contains(words), "{text}: {error}");
    }
    let error = parse(&format!("{}{}", with(""), with(""))).unwrap_err();
    assert!(error.contains("broker.toml:8: bridge `x`: there is another bridge"), "{error}");
}

#[test]
fn password_file_contains_only_a_password() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    let text = with(&format!("password_file = {path:?}"));
    for (content, expected) in [
        (&b"secret"[..], Ok("secret")),
        (b"secret \r\n", Ok("secret ")),
        (b"\n", Err("is empty")),
        (b"a\nb\n", Err("more than a password")),
        (b"\xff", Err("cannot read")),
        (&[b'x'; 70_000], Err("more than a password")),
    ] {
        std::fs::write(&path, content).unwrap();
        let password = parse(&text).map(|mut config| config.bridges.remove(0).password.unwrap());
        match (password, expected) {
            (Ok(password), Ok(expected)) => assert_eq!(password.secret.reveal(), expected),
            (Err(error), Err(words)) => assert!(error.contains(words), "{error}"),
            (password, expected) => panic!("{password:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn rules_that_form_a_loop_are_warned_about() {
    let both = |keys: &str, topic: &str| {
        let text = with(&format!("{keys}\n[[bridges.ingress]]\nfilter = 'r/+/b'"));
        one(&format!("{text}topic = '{topic}'\n")).warnings()
    };
    let warnings = both("version = '3.1.1'", "r/${topic}");
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("`r/a/#`") && warnings[0].contains("`r/+/b`"), "{warnings:?}");
    assert!(both("version = '3.1.1'\nbridge_flag = false", "r/${topic}")[0].contains("is false"));
    assert!(both("version = '3.1.1'", "s/${topic}").is_empty());
    assert!(both("", "r/${topic}").is_empty(), "5.0 has No Local");
}
