//! The OpenAPI document: what the broker answers is as it says.

use std::fs;

use serde_json::{Value, json};
use tacho_codec::{Connect, QoS, Version};
use tacho_testkit::{connect, will};

use super::Managed;

/// Whether a value is as a schema says; properties that a schema does not name are wrong.
fn check(document: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let found = document.pointer(name.trim_start_matches('#')).unwrap();
        return check(document, found, value, place);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().find(|choice| (choice["type"] == "null") == value.is_null());
        return check(document, fitting.unwrap(), value, place);
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => panic!("{place} has no type"),
    };
    let own = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(types.contains(&own), "{place} is {value}, not {types:?}");
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{place} is {value}");
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        check(document, &schema["items"], item, &format!("{place}[{at}]"));
    }
    let Some(object) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(object.contains_key(name.as_str().unwrap()), "{place} has no {name}");
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, value) in object {
        let place = format!("{place}.{name}");
        let known = properties.get(name).unwrap_or_else(|| panic!("{place} is not described"));
        check(document, known, value, &place);
    }
}

#[test]
fn every_answer_is_as_the_document_says() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    fs::write(&rules, "[users]\nu = ['r']\n[roles.r]\n[[rules]]\nallow = 'all'\ntopics = ['#']\n")
        .unwrap();
    let managed = Managed::start_with(
        &format!(
            "shards = 2\ndata_dir = {:?}\n[[bridges]]\nname = 'b'\naddress = 'mqtt://127.0.0.1:1'\n\
             [[bridges.egress]]\nfilter = 'a'\n[access]\nrules_file = {rules:?}\n",
            folder.path().join("data")
        ),
        &format!("store = {:?}", folder.path().join("store")),
    );
    let broker = &managed.broker;
    let mut client = broker.client(Version::V5);
    let request = Connect { will: Some(will("w", b"x")), ..connect("c", Version::V5) };
    client.connect(&Connect { clean_start: false, ..request });
    client.subscribe("a/#", QoS::AtLeastOnce);
    client.subscribe("$share/g/a", QoS::AtLeastOnce);
    broker.connected("publisher", Version::V5).publish("a", b"x", QoS::AtLeastOnce, true);
    broker.durable("away", Version::V5, None).disconnect();
    managed.ask("POST", "/bans", "{\"user\": \"eve\"}");
    managed.ask("POST", "/topic-metrics", "{\"filter\": \"a\"}");
    let document = managed.get("/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    let mut checked = 0;
    let bridge = |name: &str| {
        let egress = json!([{"filter": "q"}]);
        json!({"name": name, "address": "mqtt://127.0.0.1:1", "egress": egress}).to_string()
    };
    let answers = [
        ("get", "/status", "/status", ""),
        ("get", "/history", "/history?span=day", ""),
        ("get", "/backup", "/backup", ""),
        ("get", "/drain", "/drain", ""),
        ("get", "/session", "/session", ""),
        ("get", "/clients", "/clients?limit=1", ""),
        ("get", "/clients/{client_id}", "/clients/c", ""),
        ("get", "/clients/{client_id}", "/clients/away", ""),
        ("get", "/clients/{client_id}/subscriptions", "/clients/c/subscriptions", ""),
        ("get", "/subscribers", "/subscribers?filter=a/%23", ""),
        ("get", "/receivers", "/receivers?topic=a", ""),
        ("get", "/groups", "/groups", ""),
        ("get", "/group", "/group?filter=$share/g/a", ""),
        ("get", "/retained", "/retained", ""),
        ("get", "/retained/message", "/retained/message?topic=a", ""),
        ("get", "/bans", "/bans", ""),
        ("get", "/users", "/users", ""),
        ("get", "/roles", "/roles", ""),
        ("get", "/explain", "/explain?action=publish&topic=a&client_id=c", ""),
        ("get", "/listeners", "/listeners", ""),
        ("get", "/limits", "/limits", ""),
        ("get", "/bridges", "/bridges", ""),
        ("get", "/journal", "/journal", ""),
        ("get", "/alarms", "/alarms", ""),
        ("get", "/slow", "/slow", ""),
        ("get", "/top/queues", "/top/queues", ""),
        ("get", "/top/retained", "/top/retained", ""),
        ("get", "/top/publishers", "/top/publishers?seconds=1", ""),
        ("get", "/topic-metrics", "/topic-metrics", ""),
        ("get", "/config", "/config", ""),
        ("get", "/openapi.json", "/openapi.json", ""),
        ("post", "/publish", "/publish", "{\"topic\": \"a\"}"),
        ("post", "/reload", "/reload", ""),
        ("post", "/bridges", "/bridges", &bridge("n")),
        ("post", "/bridges/{name}", "/bridges/b", "{\"mode\": \"paused\"}"),
        ("post", "/bridges/{name}/test", "/bridges/b/test", ""),
        ("post", "/bridge-test", "/bridge-test", &bridge("m")),
        ("post", "/keys", "/keys", "{\"name\": \"k\", \"role\": \"viewer\"}"),
        ("get", "/keys", "/keys", ""),
        ("delete", "/retained", "/retained?topic=a", ""),
        ("delete", "/clients/{client_id}", "/clients/c", ""),
    ];
    for (method, path, target, body) in answers {
        let answer = managed.ask(&method.to_uppercase(), target, body);
        let operation = &document["paths"][format!("/api/v1{path}")][method];
        let described = &operation["responses"][answer.status.to_string()];
        let schema = &described["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {path}: {} {}", answer.status, answer.body);
        check(&document, schema, &answer.json(), path);
        checked += 1;
    }
    assert_eq!(checked, answers.len());
    let error: Value = serde_json::from_str(&managed.ask("GET", "/clients/none", "").body).unwrap();
    check(&document, &json!({"$ref": "#/components/schemas/Error"}), &error, "error");
}
