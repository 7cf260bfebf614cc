//! Agents on the page of a run.

use super::Program;

#[test]
fn agents_are_shown_with_what_they_do() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = place.path().join("run");
    let path = directory.to_str().expect("UTF-8");
    let small = ["publishers=4", "subscribers=4", "target_throughput=200", "warmup=200ms"];
    let mut arguments = vec!["run", "symmetric", "--ui", "0", "--hold", "10m", "--dir", path];
    arguments.extend(["--agents", "local:2"]);
    arguments.extend(small.iter().flat_map(|variable| ["--var", variable]));
    let mut program = Program::start(&arguments);
    let mut events = program.events();
    let sent = |agents: &serde_json::Value, number: usize| {
        agents[number]["sent_per_s"].as_f64().unwrap_or_default()
    };
    let mut agents = events.wait_for("agents");
    while sent(&agents, 0) == 0.0 || sent(&agents, 1) == 0.0 {
        agents = events.wait_for("agents");
    }
    assert_eq!(agents.as_array().map(Vec::len), Some(2), "{agents}");
    assert!(agents[0]["name"] != agents[1]["name"], "{agents}");
    for agent in agents.as_array().into_iter().flatten() {
        assert_eq!(agent["clients"], 4, "{agent}");
        assert!(agent["bytes_out_per_s"].as_f64().is_some_and(|bytes| bytes > 0.0), "{agent}");
        assert!(agent["send_delay_us"]["count"].as_u64().is_some_and(|count| count > 0), "{agent}");
    }
    // A browser that connects later sees them at once.
    let hello = program.events().wait_for("hello");
    assert_eq!(hello["agents"].as_array().map(Vec::len), Some(2), "{hello}");
    program.interrupt();
    events.wait_for("end");
}
