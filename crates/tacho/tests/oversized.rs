//! A run against a broker that sends more than a client accepts names the packet.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tacho_testkit::{Flood, FloodingBroker};

#[test]
fn packet_of_256_mib_is_a_finding_of_the_record() {
    for (flood, packet) in
        [(Flood::ConnAck(4 << 20), "CONNACK"), (Flood::Publish(4 << 20), "PUBLISH")]
    {
        let broker = FloodingBroker::start(flood);
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("run");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(["run", "symmetric", "--broker", &format!("mqtt://{}", broker.address)]);
        for var in ["publishers=2", "subscribers=2", "duration=1s", "ramp_up=10ms"] {
            command.args(["--var", var]);
        }
        command.arg("--dir").arg(&directory).stdin(Stdio::null());
        let output = command.output().expect("starts");
        let said = String::from_utf8_lossy(&output.stderr);
        let text = fs::read_to_string(directory.join("summary.json")).expect(&said);
        let record: Value = serde_json::from_str(&text).expect("is JSON");
        let findings = record["findings"].as_array().expect("findings");
        let finding = findings.iter().find(|finding| finding["code"] == "packet_too_large");
        let finding = finding.unwrap_or_else(|| panic!("{text}"));
        let observation = &finding["observation"];
        assert_eq!(observation["packet"], json!(packet), "{finding}");
        assert_eq!(observation["announced_bytes"], json!(268_435_460), "{finding}");
        assert_eq!(observation["limit_bytes"], json!(1 << 20), "{finding}");
        let sentence = finding["sentence"].as_str().expect("a sentence");
        assert!(sentence.contains(&format!("{packet} of 268435460 bytes")), "{sentence}");
    }
}
