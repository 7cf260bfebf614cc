use super::*;
use crate::config::RawConfig;

/// The block of the guide.
const GUIDE: &str = r#"
bridges {
  mqtt {
    to-node2 {
      bridge_mode = false
      clean_start = true
      egress {
        local { topic = "bridge/#" }
        pool_size = 64
        remote {
          payload = "${payload}"
          qos = "${qos}"
          retain = "${flags.retain}"
          topic = "remote/${topic}"
        }
      }
      enable = true
      keepalive = 300s
      mode = cluster_shareload
      proto_ver = v5
      resource_opts {
        health_check_interval = 15s
        inflight_window = 100
        max_buffer_bytes = 1GB
        query_mode = async
        request_ttl = 45s
        worker_pool_size = 32
      }
      retry_interval = 15s
      server = "10.0.0.2:1883"
      ssl { enable = false, verify = verify_none }
    }
  }
}
"#;

fn resolved(toml: &str) -> crate::config::Config {
    let raw: RawConfig = toml::from_str(toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    raw.resolve().unwrap_or_else(|error| panic!("{error}\n{toml}"))
}

fn kinds(imported: &ImportedBridges, kind: ImportKind) -> Vec<String> {
    let notes = imported.notes.iter().filter(|note| note.kind == kind);
    notes.map(ToString::to_string).collect()
}

#[test]
fn the_guides_block_becomes_its_bridge() {
    let imported = import_emqx_bridges(GUIDE).unwrap();
    let config = resolved(&imported.toml);
    assert_eq!((imported.count, config.bridges.len()), (1, 1));
    let bridge = &config.bridges[0];
    assert_eq!(
        (&*bridge.name, bridge.remote.to_string()),
        ("to-node2", "mqtt://10.0.0.2:1883".to_owned())
    );
    assert!(bridge.version.is_v5() && bridge.clean_start && bridge.remote.tls.is_none());
    assert_eq!((bridge.keep_alive_s, bridge.connections, bridge.inflight), (300, 64, 100));
    assert_eq!((bridge.ack_timeout_s, bridge.health_check_s, bridge.buffer_ttl_s), (15, 15, 45));
    assert_eq!(bridge.buffer_bytes_max, 32 << 30, "a buffer for each worker");
    let rule = &bridge.egress[0];
    assert_eq!(
        (rule.filter.as_str(), rule.mapping.topic.to_string()),
        ("bridge/#", "remote/${topic}".to_owned())
    );
    assert_eq!((rule.mapping.qos, rule.mapping.retain), (None, None));
    assert!(bridge.ingress.is_empty());
    assert!(kinds(&imported, ImportKind::Malformed).is_empty());
    let none = kinds(&imported, ImportKind::NoCounterpart);
    assert_eq!(none.len(), 2, "{none:?}");
    assert!(none[0].starts_with("line 19: no counterpart: to-node2: `mode`"), "{none:?}");
    assert!(none[1].contains("`worker_pool_size`"), "{none:?}");
    let differs = kinds(&imported, ImportKind::Differs).join("\n");
    for words in ["query_mode = async", "1024 MiB for each of 32 buffer workers", "ack_timeout_s"] {
        assert!(differs.contains(words), "{differs}");
    }
}

#[test]
fn what_is_malformed_is_named_and_what_it_means_is_taken() {
    let text = GUIDE
        .replace("\"${flags.retain}\"", "${flags.retain}")
        .replace("\"bridge/#\"", "\u{201c}bridge/#\u{201d}")
        .replace("15s\n        inflight", "soon\n        inflight")
        .replace("keepalive = 300s", "keepalive");
    let imported = import_emqx_bridges(&text).unwrap();
    let malformed = kinds(&imported, ImportKind::Malformed);
    assert_eq!(malformed.len(), 4, "{malformed:#?}");
    for (at, words) in [
        (0, "line 8: malformed: `bridges.mqtt.to-node2.egress.local.topic` has typographic"),
        (1, "line 13: malformed: `bridges.mqtt.to-node2.egress.remote.retain = ${flags.retain}`"),
        (2, "line 18: malformed: `keepalive` has no value"),
        (3, "line 22: malformed: to-node2: `resource_opts.health_check_interval = soon`"),
    ] {
        assert!(malformed[at].starts_with(words), "{}", malformed[at]);
    }
    let bridge = &resolved(&imported.toml).bridges[0];
    assert_eq!(
        (bridge.egress[0].filter.as_str(), bridge.egress[0].mapping.retain),
        ("bridge/#", None)
    );
    assert_eq!(bridge.keep_alive_s, 60, "the default");
}

#[test]
fn both_directions_tls_and_logins_are_translated() {
    let text = r#"
        bridges.mqtt.cloud {
          server = "broker.example:8883"
          proto_ver = v4
          username = "site", password = "hunter2"
          ssl { enable = true, cacertfile = "/ca.pem", verify = verify_peer, depth = 10 }
          egress { local.topic = "up/#", remote { topic = "${clientid}/${topic}" } }
          ingress {
            pool_size = 2
            remote { topic = "down/#", qos = 1 }
            local { topic = "from/${topic}", qos = 1, retain = true }
          }
          resource_opts.query_mode = sync
          colour = blue
        }
        bridges.webhook.w.url = "http://a"
        actions.mqtt.a.connector = c
    "#;
    let imported = import_emqx_bridges(text).unwrap();
    assert!(!imported.toml.contains("hunter2"), "{}", imported.toml);
    let config = resolved(&imported.toml.replace("/ca.pem", "/none.pem"));
    let bridge = &config.bridges[0];
    assert_eq!(
        (bridge.username.as_deref(), bridge.inflight, bridge.connections),
        (Some("site"), 1, 2)
    );
    assert!(bridge.remote.tls.is_some() && bridge.egress.is_empty());
    let rule = &bridge.ingress[0];
    assert_eq!(
        (rule.mapping.topic.to_string(), rule.mapping.retain),
        ("from/${topic}".to_owned(), Some(true))
    );
    let none = kinds(&imported, ImportKind::NoCounterpart).join("\n");
    for words in [
        "`${clientid}`",
        "`ssl.depth`",
        "`colour` is not known",
        "`bridges.webhook`",
        "`actions.mqtt`",
    ] {
        assert!(none.contains(words), "{words}: {none}");
    }
    assert!(kinds(&imported, ImportKind::Differs).join("\n").contains("password_file"));
}

#[test]
fn bridges_that_are_off_stay_off_and_files_without_any_are_told() {
    let imported = import_emqx_bridges(&GUIDE.replace("enable = true", "enable = false")).unwrap();
    assert!(!resolved(&imported.toml).bridges[0].enabled);
    let imported = import_emqx_bridges(&GUIDE.replace("server =", "sever =")).unwrap();
    assert!(kinds(&imported, ImportKind::Malformed).join("\n").contains("it has no `server`"));
    assert!(import_emqx_bridges("node.name = x").unwrap_err().contains("no `bridges.mqtt`"));
    assert!(import_emqx_bridges("bridges {").unwrap_err().starts_with("line 1: "));
}
