//! What a file got of the runs of a campaign.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Asserts that a file of `--out json=` has a point of each measured window of the campaign in
/// `directory`, told apart by its step, with what the record of that run says was sent.
pub fn assert_points_of_steps(points: &Path, directory: &Path) {
    let text = fs::read_to_string(points).expect("points");
    let objects = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("is JSON"));
    let windows = objects.filter(|object| object["series"] == "mqtt_load_step");
    let sent: BTreeMap<String, Option<f64>> = windows
        .map(|object| {
            let step = object["tags"]["step"].as_str().unwrap_or_default().to_owned();
            (step, object["values"]["sent"].as_f64())
        })
        .collect();
    let mut recorded = BTreeMap::new();
    for entry in fs::read_dir(directory.join("steps")).expect("runs") {
        let path = entry.expect("a run").path();
        let Ok(text) = fs::read_to_string(path.join("summary.json")) else { continue };
        let record: Value = serde_json::from_str(&text).expect("is JSON");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(step) = record["steps"].as_array().and_then(|steps| steps.first()) {
            recorded.insert(name, step["sent"].as_f64());
        }
    }
    assert!(!recorded.is_empty(), "no runs in {}", directory.display());
    assert_eq!(sent, recorded, "{text}");
}
