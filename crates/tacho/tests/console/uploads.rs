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

/// A plan whose senders take client ids and user names from users.csv, which its author has in a
/// folder of another machine.
fn plan_with_data() -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PLAN);
    let plan = std::fs::read_to_string(path).expect("is there");
    let connect = "<hashTree>\n        <net.xmeter.samplers.ConnectSampler";
    let set = "<hashTree>\n<CSVDataSet testclass='CSVDataSet' testname='Users' enabled='true'>\
               <stringProp name='filename'>C:\\load\\users.csv</stringProp>\
               <stringProp name='variableNames'></stringProp></CSVDataSet><hashTree/>\
               <net.xmeter.samplers.ConnectSampler";
    assert!(plan.contains(connect) && plan.contains("dev_"), "the plan has changed");
    let plan = plan.replacen(connect, set, 1).replacen("dev_", "${client_id}", 1);
    plan.replacen("_suffix\">true", "_suffix\">false", 1).into_bytes()
}

#[test]
fn a_plan_names_its_missing_data_and_runs_once_it_is_there() {
    let place = folder();
    let console = Console::start(place.path());
    let plan = console.upload("users.jmx", &plan_with_data()).json();
    let said = plan["problems"][0]["message"].as_str().expect("is said").to_owned();
    assert!(said.starts_with("users.jmx:") && said.contains("'Users' reads users.csv"), "{said}");
    assert_eq!(plan["files"][0]["is_there"], false, "{plan}");
    assert!(plan["variables"].as_array().is_some_and(|all| !all.is_empty()), "{plan}");
    let id = plan["upload"].as_str().expect("has one");
    let request = json!({
        "upload": id, "broker": "builtin", "virtual_users": {"Senders": 10}, "machines": 2,
        "ramp_up_s": 0.05, "warmup_s": 0.1, "duration_s": 0.5,
    });
    let refused = console.post("/runs", &request);
    assert_eq!(
        (refused.status, &refused.json()["error"]["field"]),
        (400, &json!("data")),
        "{}",
        refused.body
    );

    let rows: String = (0..10).map(|row| format!("dev-{row},hunter{row}\n")).collect();
    let data = console.upload("users.csv", format!("client_id,password\n{rows}").as_bytes());
    let data = data.json();
    let table = &data["table"];
    assert_eq!((&table["lines"], &table["is_whole"]), (&json!(11), &json!(true)));
    assert_eq!(table["columns"], json!(["client_id", "password"]));
    assert_eq!(table["first"][1], json!(["dev-0", "•••"]), "{data}");
    let known = console.post(&format!("/uploads/{id}/inspect"), &json!({"data": [data["upload"]]}));
    assert!(!known.body.contains("hunter") && !known.body.contains("dev-0"), "{}", known.body);
    let known = known.json();
    assert_eq!((&known["problems"], &known["files"][0]["rows"]), (&json!([]), &json!(10)));
    let groups = known["groups"].as_array().expect("has groups");
    assert!(groups.iter().any(|group| group["name"] == "Senders"), "{known}");

    let mut request = request;
    request["data"] = json!([data["upload"]]);
    let preview = console.post("/preview", &request).json();
    assert_eq!(preview["problems"], json!([]), "{preview}");
    // Each of the two machines has all rows: the second begins with the first client's again.
    request["rows"] = json!("copy");
    let preview = console.post("/preview", &request).json();
    let line = preview["command_line"].as_str().expect("has one");
    assert!(line.contains("--machines 2 --jmx-rows copy"), "{line}");
    let said = preview["problems"][0]["message"].as_str().expect("is said").to_owned();
    assert!(said.contains("client id 'dev-0'") && !said.contains(".uploads"), "{said}");
    request["rows"] = json!("split");
    let id = console.begin(&request);
    console.wait_for(&id, "finished");
}

#[test]
fn a_scenario_file_is_looked_at_again_with_its_data() {
    let place = folder();
    let console = Console::start(place.path());
    let text = "name = \"meters\"\n[vars]\nrate = 2  # reports of each meter\n[groups.meter]\n\
                clients = 2\ncredentials = \"meters.csv\"\n[[groups.meter.publish]]\n\
                topic = \"a/{{client}}\"\nrate = { per_client = \"{{rate}}\" }\n\
                [groups.all]\nclients = 1\n[[groups.all.subscribe]]\nfilter = \"a/#\"\n";
    let scenario = console.upload("meters.toml", text.as_bytes()).json();
    let said = scenario["problems"][0]["message"].as_str().expect("is said").to_owned();
    assert!(said.contains("meters.csv") && !said.contains(".uploads"), "{said}");
    assert_eq!(scenario["variables"][0]["help"], "reports of each meter", "{scenario}");
    let data = console.upload("meters.csv", b"client_id,username\nm1,u1\nm2,u2\n").json();
    let id = scenario["upload"].as_str().expect("has one");
    let known = console.post(&format!("/uploads/{id}/inspect"), &json!({"data": [data["upload"]]}));
    let known = known.json();
    assert_eq!(
        (&known["problems"], known["groups"].as_array().map(Vec::len)),
        (&json!([]), Some(2))
    );
    let preview = json!({"upload": id, "data": [data["upload"]]});
    assert_eq!(console.post("/preview", &preview).json()["problems"], json!([]));
}

#[test]
fn plans_take_loops_and_other_scenarios_do_not() {
    let place = folder();
    let console = Console::start(place.path());
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PLAN);
    let plan = console.upload("pairs.jmx", &std::fs::read(path).expect("is there")).json();
    let preview = |request: Value| console.post("/preview", &request).json();
    let forever = preview(json!({"upload": plan["upload"], "loops": "forever"}));
    assert_eq!(forever["problems"], json!([]), "{forever}");
    for (request, field) in [
        (json!({"upload": plan["upload"], "loops": "often"}), "loops"),
        (json!({"upload": plan["upload"], "loops": 0}), "loops"),
    ] {
        let answer = preview(request);
        assert_eq!(answer["problems"][0]["field"], field, "{answer}");
    }
    let other = preview(json!({"scenario": "symmetric", "loops": 3}));
    let said = other["problems"][0]["message"].as_str().expect("is said");
    assert!(said.contains("not a JMeter plan"), "{other}");
}

#[test]
fn data_files_say_what_is_wrong_with_which_line() {
    let place = folder();
    let console = Console::start(place.path());
    let answer = console.upload("meters.csv", b"a,b\n1,2\n3\n").json();
    assert_eq!(answer["problems"][0]["message"], "meters.csv:3: 1 cell, the first line has 2");
    assert_eq!(
        console.upload("empty.txt", b"").json()["problems"][0]["message"],
        "empty.txt has no lines"
    );
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
