//! The socket, the listener and keys.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use tacho_broker::{Broker, RawConfig, StartError};
use tacho_codec::Version;
use tacho_testkit::wait_until;

use super::Managed;

#[test]
fn the_socket_is_its_owners_alone_and_goes_with_the_broker() {
    let mut managed = Managed::start("shards = 1");
    let path = managed.socket();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(managed.get("/session")["role"], "administrator");
    managed.broker.stop();
    assert!(!path.exists());
}

#[test]
fn a_second_broker_at_the_same_path_does_not_start() {
    let managed = Managed::start("shards = 1");
    let text = format!(
        "listen = ['127.0.0.1:0']\nshards = 1\n[management]\nsocket = {:?}",
        managed.socket()
    );
    let raw: RawConfig = toml::from_str(&text).unwrap();
    let error = Broker::start(raw.resolve().unwrap()).err().unwrap();
    assert!(matches!(error, StartError::ManagementSocket(_)), "{error}");
    assert!(error.to_string().contains("another broker answers there"), "{error}");
    managed.get("/status");
}

#[test]
fn keys_open_the_listener_as_far_as_their_roles_go() {
    let store = tempfile::tempdir().unwrap();
    let more = format!("listen = '127.0.0.1:0'\nstore = {:?}", store.path().join("s"));
    let managed = Managed::start_with("shards = 1", &more);
    let key = |role: &str| {
        let body = format!("{{\"name\": \"a-{role}\", \"role\": \"{role}\"}}");
        managed.ask("POST", "/keys", &body).json()["key"].as_str().unwrap().to_owned()
    };
    let [viewer, operator, administrator] = ["viewer", "operator", "administrator"].map(key);
    let _client = managed.broker.connected("c", Version::V5);
    for none in ["", "tacho_00", &viewer[1..]] {
        let answer = managed.ask_by_http("GET", "/status", none);
        assert!(answer.error(401).1.contains("tacho ctl keys add"), "{none}");
    }
    for key in [&viewer, &operator, &administrator] {
        assert_eq!(managed.ask_by_http("GET", "/status", key).json()["healthy"], true);
    }
    let session = managed.ask_by_http("GET", "/session", &operator).json();
    assert_eq!((&session["name"], &session["role"]), (&"a-operator".into(), &"operator".into()));
    let refused = managed.ask_by_http("DELETE", "/clients/c", &viewer).error(403);
    assert!(refused.1.contains("only operators"), "{refused:?}");
    for (method, target) in [
        ("POST", "/publish"),
        ("DELETE", "/retained?topic=a"),
        ("POST", "/bans"),
        ("DELETE", "/bans?user=a"),
        ("POST", "/reload"),
        ("GET", "/trace?client_id=c"),
        ("POST", "/topic-metrics"),
        ("POST", "/bridges/b"),
        ("DELETE", "/topic-metrics?filter=a"),
    ] {
        managed.ask_by_http(method, target, &viewer).error(403);
    }
    assert_eq!(managed.ask_by_http("DELETE", "/clients/c", &operator).status, 200);
    for key in [&viewer, &operator] {
        managed.ask_by_http("GET", "/keys", key).error(403);
        managed.ask_by_http("DELETE", "/keys/a-viewer", key).error(403);
        managed.ask_by_http("POST", "/bridges", key).error(403);
        managed.ask_by_http("DELETE", "/bridges/b", key).error(403);
    }
    let keys = managed.ask_by_http("GET", "/keys", &administrator);
    assert!(!keys.body.contains(&viewer) && !keys.body.contains("hash"), "{}", keys.body);
    assert_eq!(keys.json()["keys"].as_array().unwrap().len(), 3);
    assert_eq!(managed.ask_by_http("DELETE", "/keys/a-viewer", &administrator).status, 204);
    managed.ask_by_http("GET", "/status", &viewer).error(401);
    managed.ask("DELETE", "/keys/a-viewer", "").error(404);
    let taken = "{\"name\": \"a-operator\", \"role\": \"viewer\"}";
    managed.ask("POST", "/keys", taken).error(409);
    assert_eq!(
        managed.ask("POST", "/keys", "{\"name\": \"a b\", \"role\": \"viewer\"}").error(400).0,
        "name"
    );
    assert_eq!(managed.ask("POST", "/keys", "{\"name\": \"a\", \"role\": \"king\"}").status, 400);
}

#[test]
fn who_asks_without_end_is_told_to_wait() {
    let store = tempfile::tempdir().unwrap();
    let more = format!(
        "listen = '127.0.0.1:0'\nrequests_per_s_max = 3\nstore = {:?}",
        store.path().join("s")
    );
    let managed = Managed::start_with("shards = 1", &more);
    let key = |name: &str| {
        let body = format!("{{\"name\": \"{name}\", \"role\": \"viewer\"}}");
        managed.ask("POST", "/keys", &body).json()["key"].as_str().unwrap().to_owned()
    };
    let (greedy, modest) = (key("greedy"), key("modest"));
    wait_until("it is told", || {
        let answer = managed.ask_by_http("GET", "/session", &greedy);
        assert!(matches!(answer.status, 200 | 429), "{}", answer.status);
        answer.status == 429 && answer.head.contains("retry-after: 1")
    });
    assert_eq!(managed.ask_by_http("GET", "/session", &modest).status, 200);
    wait_until("so are strangers", || {
        managed.ask_by_http("GET", "/session", "wrong").status == 429
    });
    // The socket is the way to look for the reason.
    managed.get("/keys");
}

#[test]
fn requests_of_web_pages_and_by_foreign_names_are_refused() {
    let store = tempfile::tempdir().unwrap();
    let more = format!("listen = '127.0.0.1:0'\nstore = {:?}", store.path().join("s"));
    let managed = Managed::start_with("shards = 1", &more);
    let body = "{\"name\": \"a\", \"role\": \"viewer\"}";
    let key = managed.ask("POST", "/keys", body).json()["key"].as_str().unwrap().to_owned();
    let origin = format!("{key}\r\nOrigin: http://evil.example");
    assert_eq!(managed.ask_by_http("GET", "/session", &origin).status, 403);
    assert_eq!(managed.ask_by_http("GET", "/session", &key).status, 200);
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let resolve = |text: &str| {
        let raw: RawConfig = toml::from_str(text).unwrap();
        raw.resolve().map(drop).map_err(|error| error.to_string())
    };
    let error = resolve("[management]\nlisten = '0.0.0.0:1'\nstore = '/s'").unwrap_err();
    assert!(error.contains("`management.listen` is 0.0.0.0:1"), "{error}");
    let error = resolve("[management]\nlisten = 9884").unwrap_err();
    assert!(error.contains("`management.store`"), "{error}");
    let error = resolve("[management]\nrequests_per_s_max = 0").unwrap_err();
    assert!(error.contains("requests_per_s_max"), "{error}");
    let wrong = toml::from_str::<RawConfig>("[management]\nsocket = 'here'").unwrap_err();
    assert!(wrong.to_string().contains("neither `auto` nor `none`"), "{wrong}");
}
