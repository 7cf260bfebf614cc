use super::*;

fn parse(text: &str) -> Result<Config, String> {
    let raw: RawConfig = toml::from_str(text).map_err(|e| e.to_string())?;
    raw.resolve().map_err(|e| e.to_string())
}

#[test]
fn empty_file_listens_on_loopback_only() {
    let config = parse("").unwrap();
    assert_eq!(config.listeners.len(), 1);
    assert_eq!(config.listeners[0].to_string(), "127.0.0.1:1883");
    assert!(config.shards >= 1);
}

#[test]
fn open_listener_needs_allow_anonymous() {
    let error = parse("listen = ['0.0.0.0:1883']").unwrap_err();
    assert!(error.contains("0.0.0.0:1883") && error.contains("allow_anonymous"), "{error}");
    parse("listen = ['0.0.0.0:1883']\nallow_anonymous = true").unwrap();
    let error = parse("[[listeners]]\naddress = '0.0.0.0:1'\ntransport = 'ws'").unwrap_err();
    assert!(error.contains("0.0.0.0:1") && error.contains("allow_anonymous"), "{error}");
}

#[test]
fn description_parses_to_the_same_configuration() {
    let config = parse(
        "shards = 3\nlisten = ['0.0.0.0:1']\nallow_anonymous = true\n\
         shared_subscription_strategy = 'hash_topic'\n\
         [tls]\ncert = 'a'\nkey = 'b'\nclient_ca = 'c'\ncheck_s = 7\n\
         [limits]\ninflight_max = 7\n\
         [[listeners]]\naddress = '127.0.0.1:2'\ntransport = 'tls'\n\
         require_client_certificate = true\n\
         [[listeners]]\naddress = '127.0.0.1:3'\ntransport = 'ws'\npath = '/x'\n\
         [[listeners]]\naddress = '[::1]:4'\ntransport = 'wss'\ncert = 'it\"s'\nkey = 'k'\n",
    )
    .unwrap();
    let shown: Vec<String> = config.listeners.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["0.0.0.0:1", "tls://127.0.0.1:2", "ws://127.0.0.1:3/x", "wss://[::1]:4/mqtt"]
    );
    let again = parse(&config.describe()).unwrap();
    assert_eq!(again.listeners, config.listeners);
    assert_eq!((again.shards, again.limits.inflight_max, again.certificates_check_s), (3, 7, 7));
    assert_eq!(again.shared_strategy, SharedStrategy::HashTopic);
    assert_eq!(again.describe(), config.describe());
}

#[test]
fn levels_are_by_class_and_listener_and_need_a_data_directory() {
    let text = "data_dir = '/d \"q'\n[durability]\npersistent_level = 'written'\nlinger_us = 7\n\
                [[listeners]]\naddress = '127.0.0.1:1'\n\
                [[listeners]]\naddress = '127.0.0.1:2'\npersistent_level = 'memory'\n\
                clean_level = 'fsynced'\n";
    let config = parse(text).unwrap();
    let levels: Vec<_> = config.session_levels();
    assert_eq!((levels[0].for_expiry(1), levels[0].for_expiry(0)), (Level::Written, Level::Memory));
    assert_eq!(
        (levels[1].for_expiry(u32::MAX), levels[1].for_expiry(0)),
        (Level::Memory, Level::Fsynced)
    );
    let again = parse(&config.describe()).unwrap();
    assert_eq!((&again.data_dir, &again.durability), (&config.data_dir, &config.durability));
    assert_eq!(again.listeners, config.listeners);
    let error =
        parse("[[listeners]]\naddress = '127.0.0.1:1'\nclean_level = 'written'").unwrap_err();
    assert!(error.contains("127.0.0.1:1") && error.contains("--data-dir"), "{error}");
    let error = parse("data_dir = ''").unwrap_err();
    assert!(error.contains("data_dir"), "{error}");
    let error = parse("[durability]\npersistent_level = 'disk'").unwrap_err();
    assert!(error.contains("fsynced"), "{error}");
}

#[test]
fn policies_for_full_queues_are_by_class_and_listener() {
    let text = "[limits]\nclean_queue_full = 'drop_oldest'\n\
                [[listeners]]\naddress = '127.0.0.1:1'\n\
                [[listeners]]\naddress = '127.0.0.1:2'\npersistent_queue_full = 'end_session'\n\
                clean_queue_full = 'drop_newest'\n";
    let config = parse(text).unwrap();
    let policies = config.queue_policies();
    let of = |listener: usize| [1, 0].map(|expiry_s| policies[listener].for_expiry(expiry_s));
    assert_eq!(of(0), [QueuePolicy::Refuse, QueuePolicy::DropOldest]);
    assert_eq!(of(1), [QueuePolicy::EndSession, QueuePolicy::DropNewest]);
    let again = parse(&config.describe()).unwrap();
    assert_eq!((again.queue_policies(), again.listeners), (policies, config.listeners));
    let error = parse("[limits]\npersistent_queue_full = 'lose'").unwrap_err();
    assert!(error.contains("drop_oldest"), "{error}");
    let error = parse("[limits]\nshared_queue_full = 'end_session'").unwrap_err();
    assert!(error.contains("shared_queue_full") && error.contains("refuse"), "{error}");
    assert!(parse("[limits]\nsession_queue_len_max = 0").is_err());
}

#[test]
fn listener_has_its_own_certificate_or_the_common_one() {
    let config = parse(
        "[tls]\ncert = 'common.pem'\nkey = 'common.key'\nclient_ca = 'ca.pem'\n\
         [[listeners]]\naddress = '127.0.0.1:1'\ntransport = 'tls'\n\
         [[listeners]]\naddress = '127.0.0.1:2'\ntransport = 'tls'\ncert = 'own.pem'\nkey = 'own.key'\n",
    )
    .unwrap();
    let names: Vec<_> = config
        .listeners
        .iter()
        .map(|listener| listener.tls.as_ref().unwrap().cert.to_str().unwrap())
        .collect();
    assert_eq!(names, ["common.pem", "own.pem"]);
    assert_eq!(config.listeners.len(), 2, "plain TCP is only the default of an empty file");
}

#[test]
fn inconsistent_listeners_are_refused_with_the_reason() {
    for (keys, words) in [
        ("transport = 'tls'", "has no certificate"),
        ("transport = 'tls'\ncert = 'x'", "has no certificate"),
        ("transport = 'ws'\ncert = 'x'\nkey = 'y'", "has no TLS"),
        ("transport = 'tcp'\nrequire_client_certificate = true", "has no TLS"),
        ("transport = 'tls'\ncert = 'x'\nkey = 'y'\npath = '/'", "has no WebSocket"),
        ("transport = 'ws'\npath = 'mqtt'", "is not a path"),
        ("transport = 'ws'\npath = '/mqtt?x'", "is not a path"),
        (
            "transport = 'tls'\ncert = 'x'\nkey = 'y'\nrequire_client_certificate = true",
            "requires client certificates",
        ),
        ("transport = 'udp'", "line 3"),
        ("certificate = 'x'", "line 3"),
    ] {
        let text = format!("[[listeners]]\naddress = '127.0.0.1:5'\n{keys}\n");
        let error = parse(&text).unwrap_err();
        assert!(error.contains(words), "{keys}: {error}");
    }
    let error = parse("[tls]\ncertificate = 'x'").unwrap_err();
    assert!(error.contains("line 2") && error.contains("certificate"), "{error}");
}

#[test]
fn listeners_as_flags() {
    for (text, shown) in [
        ("127.0.0.1:1883", "127.0.0.1:1883"),
        ("tcp://[::1]:5", "[::1]:5"),
        ("1883", "127.0.0.1:1883"),
        ("localhost:1883", "127.0.0.1:1883"),
        ("ws://9001/mqtt", "ws://127.0.0.1:9001/mqtt"),
        ("ws://127.0.0.1:5", "ws://127.0.0.1:5/mqtt"),
        ("ws://127.0.0.1:5/a/b", "ws://127.0.0.1:5/a/b"),
    ] {
        let raw: RawListener = text.parse().expect(text);
        let config = RawConfig { listeners: vec![raw], ..RawConfig::default() };
        assert_eq!(config.resolve().unwrap().listeners[0].to_string(), shown);
    }
    for (text, words) in [
        ("udp://127.0.0.1:5", "not a transport"),
        (":1883", "0.0.0.0:1883 for all interfaces"),
        ("mqtt.example", "write host:port"),
        ("localhost:99999", "write host:port"),
        ("no.such.host.invalid:1883", "cannot find the host"),
        ("tls://127.0.0.1:5/mqtt", "write host:port"),
    ] {
        let error = text.parse::<RawListener>().unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn addresses_in_files_are_read_as_flags_are() {
    let text = "listen = [1883, 'localhost:1884']\nmetrics = 'localhost:9100'\n\
                [[listeners]]\naddress = '1885'\ntransport = 'ws'";
    let config = parse(text).unwrap();
    let shown: Vec<String> = config.listeners.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["127.0.0.1:1883", "127.0.0.1:1884", "ws://127.0.0.1:1885/mqtt"]);
    assert_eq!(config.metrics.map(|address| address.port()), Some(9100));
    let error = parse("listen = [':1883']").unwrap_err();
    assert!(error.contains("0.0.0.0:1883"), "{error}");
}

#[test]
fn unusable_certificates_are_explained() {
    let folder = std::env::temp_dir().join(format!("tacho-certificates-{}", std::process::id()));
    let good = crate::self_signed(&folder, []).unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let other = crate::self_signed(&folder.join("other"), []).unwrap();
    let no_pem = path("no.pem", "nothing");
    let bad_pem = path("bad.pem", "-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n");
    for (cert, key, words) in [
        (&good.cert, &good.key, ""),
        (&folder.join("absent"), &good.key, "cannot read the certificate"),
        (&good.cert, &folder.join("absent"), "cannot read the private key"),
        (&no_pem, &good.key, "there is no certificate in"),
        (&good.cert, &good.cert, "there is no private key in"),
        (&bad_pem, &good.key, "is not a certificate in PEM form"),
        (&good.cert, &other.key, "cannot be used"),
    ] {
        let text = format!(
            "[[listeners]]\naddress = '127.0.0.1:5'\ntransport = 'tls'\ncert = '{}'\nkey = '{}'\n",
            cert.display(),
            key.display()
        );
        let opened = parse(&text).unwrap().open_transports().map_err(|error| error.to_string());
        match words {
            "" => assert!(opened.is_ok(), "{opened:?}"),
            words => {
                let error = opened.unwrap_err();
                assert!(error.contains(words) && error.contains("tls://127.0.0.1:5"), "{error}");
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn unknown_key_names_line_and_key() {
    let error = parse("shards = 2\n[limits]\npacket_size = 5\n").unwrap_err();
    assert!(error.contains("line 3") && error.contains("packet_size"), "{error}");
}

#[test]
fn limits_out_of_range_are_named() {
    let error = parse("[limits]\nreceive_maximum = 0").unwrap_err();
    assert!(error.contains("limits.receive_maximum"), "{error}");
    let error = parse("shards = 65").unwrap_err();
    assert!(error.contains("shards") && error.contains("64"), "{error}");
}

#[test]
fn metrics_beyond_loopback_need_metrics_allow_remote() {
    assert_eq!(parse("").unwrap().metrics, None);
    assert_eq!(parse("").unwrap().sys_interval_s, 10);
    let error = parse("metrics = '0.0.0.0:9883'").unwrap_err();
    assert!(error.contains("0.0.0.0:9883") && error.contains("metrics_allow_remote"), "{error}");
    let config =
        parse("metrics = '0.0.0.0:9883'\nmetrics_allow_remote = true\nsys_interval_s = 0").unwrap();
    let again = parse(&config.describe()).unwrap();
    assert_eq!((again.metrics, again.sys_interval_s), (config.metrics, 0));
    assert_eq!(again.describe(), config.describe());
}

// 6
// [MQTT-3.1.3-5]
#[test]
fn client_identifiers_of_23_bytes_are_always_allowed() {
    for (bytes, allowed) in [(22, false), (23, true)] {
        let text = format!("[limits]\nclient_id_bytes_max = {bytes}");
        assert_eq!(parse(&text).is_ok(), allowed, "{bytes}");
    }
}

#[test]
fn response_information_must_begin_a_topic() {
    for (text, allowed) in [("answers/{client_id}/", true), ("", true), ("a/#", false)] {
        let config = parse(&format!("response_information = \"{text}\""));
        assert_eq!(config.is_ok(), allowed, "{text}");
        if let Ok(config) = config {
            let again = parse(&config.describe()).unwrap();
            assert_eq!(again.response_information, config.response_information);
            assert_eq!(again.response_information.is_some(), !text.is_empty());
        }
    }
}

#[test]
fn keys_of_mosquitto_are_answered_with_what_to_write_instead() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("broker.toml");
    for (text, line, words) in [
        ("[tls]\ncert = 'c'\npsk_file = 'f'\n", 3, "pre-shared keys (TLS-PSK) are not supported"),
        ("psk_hint = 'h'\n", 1, "certificates of a CA of your own"),
        ("\n[[listeners]]\naddress = 1\nuse_identity_as_username = true\n", 4, "= \"cn\"`"),
        ("[tls]\ncafile = 'ca'\n", 2, "write `client_ca`"),
        ("persistence_location = '/var'\n", 1, "write `data_dir`"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = RawConfig::read(&path).unwrap_err().to_string();
        let place = format!("broker.toml:{line}: `");
        assert!(error.contains(&place) && error.contains(words), "{text}: {error}");
    }
    std::fs::write(&path, "psk = 'f'\n").unwrap();
    let error = RawConfig::read(&path).unwrap_err().to_string();
    assert!(error.contains("unknown field `psk`"), "{error}");
}

#[test]
fn answers_to_failed_logins_wait_for_times_that_make_sense() {
    let config = parse("[access]\nlogin_delay_ms = 250\nlogin_delay_max_ms = 1500\n").unwrap();
    let delays_ms = [0, 1, 2, 3, 4, 5, 9, u32::MAX]
        .map(|failures| config.access.answer_delay_ns(failures) / 1_000_000);
    assert_eq!(delays_ms, [0, 0, 250, 500, 1_000, 1_500, 1_500, 1_500]);
    let again = parse(&config.describe()).unwrap();
    assert_eq!(again.access, config.access);
    let none = parse("").unwrap();
    assert_eq!(none.access.answer_delay_ns(1_000), 0, "unless it is configured");
    for (keys, words) in [
        ("login_delay_ms = 60001", "`access.login_delay_ms` is 60001"),
        ("login_delay_ms = 500\nlogin_delay_max_ms = 499", "from `login_delay_ms` to 60000"),
        ("login_delays_max = 0", "`access.login_delays_max` is 0"),
    ] {
        let error = parse(&format!("[access]\n{keys}\n")).unwrap_err();
        assert!(error.contains(words), "{keys}: {error}");
    }
}

#[test]
fn tokens_are_configured_with_defaults_and_described_as_they_are() {
    let text = "[access.jwt]\nkey_file = 'keys'\naudience = 'mqtt'\n\
                [access.jwt.claims]\nclient_id = 'dev-%c'\n";
    let resolve = |text: &str| toml::from_str::<RawConfig>(text).unwrap().resolve();
    let config = resolve(text).unwrap();
    let jwt = config.access.jwt.clone().unwrap();
    assert_eq!((&*jwt.user_claim, jwt.leeway_s, jwt.require_expiry), ("sub", 30, true));
    assert!(config.listeners[0].has_common_logins);
    let again = resolve(&config.describe()).unwrap();
    assert_eq!(again.access, config.access);
    // With tokens a listener off loopback is closed, and needs no consent.
    let remote = format!("listen = ['0.0.0.0:1883']\n{text}");
    resolve(&remote).unwrap();
    let wrong = text.replace("dev-%c", "%x");
    assert!(resolve(&wrong).unwrap_err().to_string().contains("'%x'"));
    assert!(resolve(&format!("allow_anonymous = true\n{text}")).is_err());
    for (keys, words) in [
        ("issuer = 'x'", "`key_file` or `key_url`"),
        ("key_file = 'f'\nkey_url = 'https://h/k'", "not both"),
        ("key_url = 'h/k'", "must begin with https://"),
        ("key_url = 'https:///k'", "must begin with https://"),
        ("key_url = 'https://me:word@h/k'", "leave them out"),
        ("key_file = 'f'\nkey_ca_file = 'c'", "without `key_url`"),
        ("key_url = 'http://h/k'\nkey_ca_file = 'c'", "without https://"),
        ("key_url = 'https://h/k'\nkey_refresh_s = 5", "key_refresh_s"),
    ] {
        let error = resolve(&format!("[access.jwt]\n{keys}\n")).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("word@"), "{keys}: {error}");
    }
    let config = resolve("[access.jwt]\nkey_url = 'https://h/k'\nkey_ca_file = 'c'\n").unwrap();
    assert_eq!(config.access.jwt.as_ref().unwrap().key_refresh_s, 300);
    assert_eq!(resolve(&config.describe()).unwrap().access, config.access);
}

#[test]
fn logins_by_certificate_need_a_ca_and_are_described_as_they_are() {
    let tls = "[tls]\ncert = 'c'\nkey = 'k'\n";
    let listener = |address: &str, more: &str| {
        format!("{tls}[[listeners]]\naddress = '{address}'\ntransport = 'tls'\n{more}")
    };
    let full = listener(
        "0.0.0.0:1",
        "client_ca = 'ca'\nclient_crl = ['a', 'b']\ncertificate_user = 'san_uri'\n\
         certificate_client_id = 'equal'\n",
    );
    // Clients log in, so that it needs no consent off loopback.
    let config = parse(&full).unwrap();
    let login = config.listeners[0].certificates.unwrap();
    assert_eq!((login.client_id, login.needs_password), (CertificateClientId::Equal, false));
    assert_eq!(config.listeners[0].tls.as_ref().unwrap().client_crls.len(), 2);
    let again = parse(&config.describe()).unwrap();
    assert_eq!(again.listeners, config.listeners);
    parse(&listener("0.0.0.0:1", "client_ca = 'ca'\nallow_anonymous = true\n")).unwrap();
    for (more, words) in [
        ("certificate_user = 'cn'\n", "`client_ca`"),
        ("client_ca = 'ca'\ncertificate_password = true\n", "need `certificate_user`"),
        ("client_ca = 'ca'\ncertificate_client_id = 'any'\n", "need `certificate_user`"),
        (
            "client_ca = 'ca'\ncertificate_user = 'cn'\ncertificate_password = true\n",
            "needs a password file",
        ),
        ("client_crl = 'a'\n", "no CA of client certificates"),
        ("client_ca = 'ca'\ncertificate_user = 'serial'\n", "unknown variant"),
    ] {
        let error = parse(&listener("127.0.0.1:1", more)).unwrap_err();
        assert!(error.contains(words), "{more}: {error}");
    }
    let plain = "[[listeners]]\naddress = '127.0.0.1:1'\ncertificate_user = 'cn'\n";
    assert!(parse(plain).unwrap_err().contains("needs TLS"));
    let shared = format!(
        "{tls}client_ca = 'ca'\nclient_crl = 'l'\n\
         [[listeners]]\naddress = 1\ntransport = 'tls'"
    );
    let config = parse(&shared).unwrap();
    assert_eq!(config.listeners[0].tls.as_ref().unwrap().client_crls, [PathBuf::from("l")]);
}

#[test]
fn what_listeners_ask_of_the_kernel_is_checked_and_described() {
    let text = "[[listeners]]\naddress = '127.0.0.1:1'\nbacklog = 100\nsend_buffer_bytes = 65536\n";
    let config = parse(text).unwrap();
    let sockets = config.listeners[0].sockets;
    assert_eq!((sockets.backlog, sockets.send_buffer_bytes), (Some(100), Some(65_536)));
    assert_eq!(sockets.receive_buffer_bytes, None);
    assert_eq!(parse(&config.describe()).unwrap().listeners, config.listeners);
    for (key, words) in [
        ("backlog = 0", "`backlog` is 0"),
        ("send_buffer_bytes = 100", "`send_buffer_bytes` is 100"),
        ("receive_buffer_bytes = 2000000000", "from 4096 to 1073741824"),
    ] {
        let error = parse(&format!("[[listeners]]\naddress = 1\n{key}\n")).unwrap_err();
        assert!(error.contains(words), "{key}: {error}");
    }
}

#[test]
fn thresholds_of_alarms_are_checked_and_described() {
    let config = parse("[alarms]\nmemory_percent = 80\nclear_s = 5").unwrap();
    assert_eq!((config.alarms.memory_percent, config.alarms.disk_free_percent), (80, 10));
    assert_eq!(parse(&config.describe()).unwrap().alarms, config.alarms);
    for (key, words) in [
        ("disk_free_percent = 100", "`alarms.disk_free_percent` is 100"),
        ("memory_percent = 101", "from 0 to 100"),
        ("overload_level = 5", "from 0 to 4"),
        ("bridge_down_s = 100000", "from 0 to 86400"),
        ("disc = 1", "unknown field"),
    ] {
        let error = parse(&format!("[alarms]\n{key}")).unwrap_err();
        assert!(error.contains(words), "{key}: {error}");
    }
}
