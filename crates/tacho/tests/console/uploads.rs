//! Plans and scenario files from elsewhere.

use serde_json::{Value, json};

use crate::client::Console;
use crate::folder;

const PLAN: &str = "../scenario/tests/fixtures/pairs.jmx";

#[test]
fn an_uploaded_plan_shows_its_variables_and_runs_also_when_the_upload_is_gone() {
    let place = folder();
    let console = Console::start(place.path());
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PLAN);
    let plan = std::fs::read(path).expect("is there");
    let answer = console.upload("pairs.jmx", &plan);
    assert_eq!(answer.status, 201, "{}", answer.body);
    let upload = answer.json();
    assert_eq!((&upload["kind"], &upload["problems"]), (&json!("plan"), &json!([])));
    let groups = upload["groups"].as_array().expect("has groups");
    assert!(groups.iter().any(|group| group["name"] == "Senders"), "{upload}");
    let request = json!({
        "upload": upload["upload"], "broker": "builtin", "virtual_users": {"Senders": 10},
        "ramp_up_s": 0.05, "warmup_s": 0.1, "duration_s": 0.5,
    });
    let preview = console.post("/preview", &request).json();
    assert_eq!(preview["problems"], json!([]), "{preview}");
    let id = console.begin(&request);
    let run = console.wait_for(&id, "finished");
    assert_eq!(run["summary"]["scenario"], "pairs");
    std::fs::remove_dir_all(place.path().join(".uploads")).expect("removes");
    let again = console.post(&format!("/runs/{id}/repeat"), &Value::Null);
    assert_eq!(again.status, 201, "{}", again.body);
    let again = again.json()["id"].as_str().expect("has one").to_owned();
    console.wait_for(&again, "finished");
}

#[test]
fn files_that_cannot_be_used_say_why() {
    let place = folder();
    let console = Console::start(place.path());
    for name in ["x.sh", "..%2fx.jmx", "", ".x.jmx"] {
        let answer = console.upload(name, b"x");
        assert_eq!(
            (answer.status, &answer.json()["error"]["field"]),
            (400, &json!("name")),
            "{name}"
        );
    }
    let broken = console.upload("a.toml", b"name = \"a\"\n[groups.x]\nclints = 3\n");
    assert_eq!(broken.status, 201);
    let said = broken.json()["problems"][0]["message"].as_str().expect("is said").to_owned();
    assert!(said.contains("clints") && said.contains("a.toml:3"), "{said}");
    let data = console.upload("meters.csv", b"a,b\n").json()["upload"].clone();
    for (request, field) in [
        (json!({"upload": data}), "upload"),
        (json!({"upload": "0123456789abcdef"}), "upload"),
        (json!({"upload": "../../etc"}), "upload"),
    ] {
        let answer = console.post("/runs", &request);
        assert_eq!(
            (answer.status, &answer.json()["error"]["field"]),
            (400, &json!(field)),
            "{}",
            answer.body
        );
    }
}
