//! `tacho report`: the page of a run that was made, rendered again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tacho_testkit::runs::rows;

fn tacho(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(arguments).stdin(Stdio::null()).output().expect("starts")
}

fn page(directory: &Path) -> String {
    fs::read_to_string(directory.join("report.html")).expect("a report")
}

/// What stands between `from` and the next `to`, each time.
fn between<'t>(text: &'t str, from: &str, to: &str) -> Vec<&'t str> {
    text.split(from).skip(1).filter_map(|rest| rest.split(to).next()).collect()
}

/// What a reader sees of a page but curves: sections, captions, cells of tables.
fn seen(page: &str) -> (BTreeSet<&str>, Vec<&str>, Vec<&str>) {
    let sections = between(page, "<h2 id=\"", "\"").into_iter().collect();
    (sections, between(page, "<figcaption>", "</figcaption>"), between(page, "<td>", "</td>"))
}

const SMALL: [&str; 14] = [
    "--hold",
    "2s",
    "--warmup",
    "200ms",
    "--var",
    "ramp_up=100ms",
    "--var",
    "publishers=5",
    "--var",
    "subscribers=5",
    "--var",
    "target_throughput=500",
    "--quiet",
    "--dir",
];

#[test]
fn a_run_is_rendered_again_in_either_language() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("run");
    let path = directory.to_str().expect("UTF-8");
    tacho(&[&["run", "symmetric"], &SMALL[..], &[path]].concat());
    let (first, record) = (page(&directory), fs::read(directory.join("summary.json")));
    let output = tacho(&["report", path]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("report.html"));
    let again = page(&directory);
    let (sections, captions, cells) = seen(&first);
    assert!(sections.len() > 4 && captions.len() > 8 && cells.len() > 50, "{sections:?}");
    let (new_sections, new_captions, new_cells) = seen(&again);
    assert_eq!((new_sections, new_captions), (sections.clone(), captions));
    // Means of hosts over the window come from rounded figures.
    let same = cells.iter().zip(&new_cells).filter(|(old, new)| old == new).count();
    assert_eq!(cells.len(), new_cells.len());
    assert!(same * 10 >= cells.len() * 9, "{same} of {} cells", cells.len());

    assert_eq!(tacho(&["report", path, "--lang", "zh"]).status.code(), Some(0));
    let chinese = page(&directory);
    assert!(chinese.contains("<html lang=\"zh"), "{}", &chinese[..200]);
    assert_eq!(seen(&chinese).0, sections);
    assert_eq!(fs::read(directory.join("summary.json")).ok(), record.ok());

    for (file, words) in [
        ("e2e.hgrm", "it has no e2e.hgrm"),
        ("resources.csv", "it has no resources.csv"),
        ("timeseries.csv", "it has no timeseries.csv"),
        ("environment.json", "it has no environment.json"),
        ("summary.json", "it has no summary.json"),
    ] {
        fs::remove_file(directory.join(file)).expect("is there");
        let output = tacho(&["report", path]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(104), "{said}");
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(page(&directory), chinese, "what cannot be made again stays");
}

#[test]
fn a_ladder_is_rendered_again_with_its_steps() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("ladder");
    let path = directory.to_str().expect("UTF-8");
    let arguments = [
        "ladder",
        "symmetric",
        "target_throughput=400,500",
        "--pause",
        "0s",
        "--tolerate",
        "steal=100%,others=100%,waiting=100%",
    ];
    tacho(&[&arguments[..], &SMALL, &[path]].concat());
    let first = page(&directory);
    let steps = fs::read_dir(directory.join("steps")).expect("steps");
    let steps: Vec<_> = steps.map(|step| step.expect("reads").path()).collect();
    let text = fs::read_to_string(directory.join("summary.json")).expect("a record");
    let record: Value = serde_json::from_str(&text).expect("is JSON");
    // A generator that was late is a row measured again, with a directory of its own.
    assert_eq!(rows(&record).len(), 2);
    assert_eq!(record["steps"].as_array().map(Vec::len), Some(steps.len()));
    for step in &steps {
        fs::remove_file(step.join("report.html")).expect("is there");
    }
    let output = tacho(&["report", path]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(seen(&page(&directory)), seen(&first));
    steps.iter().for_each(|step| assert!(page(step).contains("symmetric")));

    let series = steps[0].join("timeseries.csv");
    fs::write(&series, "start_s,length_s\n1,one\n").expect("writes");
    let output = tacho(&["report", path]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(104), "{said}");
    assert!(said.contains("timeseries.csv is damaged"), "{said}");
}
