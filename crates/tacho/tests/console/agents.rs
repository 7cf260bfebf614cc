//! The agents of a bus, as the console's page of them has them.

use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tacho_bus::{Bus, LocalBus, SocketServer};

use crate::client::{Console, until};
use crate::folder;

#[test]
fn agents_of_the_bus_are_listed_with_their_clocks() {
    let place = folder();
    let socket = place.path().join("bus");
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
    let _server = SocketServer::start(bus, &socket).expect("serves");
    let address = format!("unix:{}", socket.display());
    let console = Console::start_with(place.path(), &["--bus", &address], None);
    assert_eq!(console.read("/agents")["agents"], json!([]));
    assert_eq!(console.read("/machine")["bus"], console.read("/agents")["bus"]);

    let mut agent = Command::new(env!("CARGO_BIN_EXE_tacho"));
    agent.args(["agent", "--quiet", "--bus", &address, "--name", "load-1", "--threads", "3"]);
    agent.args(["--label", "region=eu", "--allow-target", "loopback", "--clock-skew", "5000,0"]);
    let mut agent = agent.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let listed = until("the agent is not listed", || {
        let first = console.read("/agents")["agents"][0].clone();
        first["clock_error_ns"].is_number().then_some(first)
    });
    agent.kill().and_then(|()| agent.wait()).expect("ends");
    assert_eq!((&listed["name"], &listed["run"]), (&json!("load-1"), &Value::Null));
    assert_eq!((&listed["threads"], &listed["labels"]), (&json!(3), &json!({"region": "eu"})));
    let ahead_ns = -listed["clock_shift_ns"].as_i64().expect("a number");
    let error_ns = listed["clock_error_ns"].as_i64().expect("a number");
    assert!((ahead_ns - 5_000_000_000).abs() <= error_ns, "{listed:#}");
}

#[test]
fn a_console_without_a_bus_has_no_agents_and_one_that_is_gone_is_named() {
    let place = folder();
    let console = Console::start(place.path());
    assert_eq!(console.read("/agents"), json!({"bus": null, "agents": []}));
    drop(console);
    let gone = format!("unix:{}", place.path().join("gone").display());
    let console = Console::start_with(place.path(), &["--bus", &gone], None);
    let answer = console.get("/agents");
    assert_eq!((answer.status, &answer.json()["error"]["field"]), (400, &json!("bus")));
    let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("bus"), "{message}");
}
