use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::markers::with_part;

fn folder(name: &str, suite: &str, rows: &[String]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::create_dir(&path).expect("a folder");
    let header = format!(
        r#"{{"schema_version": 1, "suite": "{suite}", "command": "cargo xtask results {suite}",
        "started_at": "2026-11-22T10:00:00Z", "hold_s": 4, "warmup_s": 1, "timing": "sleep",
        "machine": {{"cpu": "A <CPU>", "cores": 2, "memory_gib": 8.0, "kernel": "Linux 6"}},
        "descriptors_max": 20000,
        "brokers": [
            {{"key": "tacho", "name": "Tacho", "version": "tacho 0.1.0", "command": "PROGRAM",
              "persistent_command": "PROGRAM --data-dir {{dir}}", "persistence": "a journal"}},
            {{"key": "other", "name": "Other", "version": "other 2", "command": "PROGRAM -c CONF",
              "configuration": "allow_anonymous true\n", "persistence": "none"}}],
        "left_out": [
            {{"broker": "", "series": "true_50k_50k_qos0_p1024_1mps",
              "label": "true_50k_50k_qos0_p1024_1mps", "reason": "needs 100064 descriptors"}},
            {{"broker": "other", "series": "bridge", "label": "10K", "reason": "has no bridges"}},
            {{"broker": "other", "series": "bridge", "label": "20K", "reason": "has no bridges"}},
            {{"broker": "other", "series": "false_1k_1k_qos1_p32_1mps",
              "label": "false_1k_1k_qos1_p32_1mps", "reason": "keeps nothing"}}]}}"#
    );
    fs::write(path.join("record.json"), header).expect("written");
    fs::write(path.join("rows.jsonl"), rows.concat()).expect("written");
    (folder, path)
}

fn row(broker: &str, series: &str, label: &str, tps: u32, cpu: f64, verdict: &str) -> String {
    let passed = verdict != "generator_bound";
    format!(
        r#"{{"broker":"{broker}","series":"{series}","label":"{label}","verdict":"{verdict}","reasons":["a reason"],"step":{{"tps":{tps}.0,"broker_cpu_percent":{cpu},"generator_thread_busy_max_percent":50.0,"latency_us":{{"count":9,"mean":150.0,"p50":100,"p90":null,"p95":null,"p99":900,"p999":null,"p9999":null,"max":1500}},"gates":[{{"name":"g","unit":"percent","value":1.0,"limit":1.0,"passed":{passed}}}]}}}}"#
    ) + "\n"
}

fn file<'a>(documents: &'a Documents, name: &str) -> &'a str {
    let found = documents.files.iter().find(|(known, _)| known == name);
    &found.unwrap_or_else(|| panic!("no {name}")).1
}

/// A text without the places that its links lead to.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        // Of pictures, too.
        let at = before.rfind('[').expect("a link begins");
        plain.push_str(&before[..at]);
        plain.push_str(&before[at + 1..]);
        rest = after.split_once(')').expect("a link ends").1;
    }
    plain + rest
}

fn guide() -> Documents {
    let rows = [
        row("tacho", "qos1", "10K", 10_000, 20.0, "ok"),
        row("tacho", "qos1", "20K", 20_000, 40.0, "ok"),
        row("tacho", "qos1", "30K", 30_000, 70.0, "generator_bound"),
        row("tacho", "qos1", "40K", 40_000, 80.0, "ok"),
        row("tacho", "qos0", "10K", 10_000, 20.0, "ok"),
        row("tacho", "qos0", "20K", 20_000, 30.0, "generator_bound"),
        row("tacho", "payload", "1024B", 40_000, 81.0, "ok"),
        row("other", "qos1", "10K", 10_000, 50.0, "ok"),
        row("other", "qos1", "20K", 12_000, 60.0, "not_sustained"),
        row("other", "qos0", "10K", 10_000, 90.0, "ok"),
        "{\"broker\":\"other\",\"series\":\"fan-in\",\"label\":\"10K\",\"verdict\":\"aborted\",\
         \"reasons\":[\"the probe did not arrive\"],\"step\":null}\n"
            .to_owned(),
    ];
    let (_folder, path) = folder("2026-11-22-guide", "guide", &rows);
    Documents::of(&Results::load(&path).expect("a record"))
}

#[test]
fn recommended_workloads_are_interpolated_or_bounds() {
    let documents = guide();
    let text = plain(file(&documents, "README.md"));
    // 20K at 40 %, 40K at 80 %; the step between does not count.
    let cells = "| Symmetric, QoS 1 | 40,000 | **37,500** | 10,000 (at 50 %); the next step was \
                 not carried |";
    assert!(text.contains(cells), "{text}");
    let cells = "| Symmetric, QoS 0 | 57,000 | more than 10,000 (at 20 %) | less than 10,000 (at \
                 90 %) |";
    assert!(text.contains(cells), "{text}");
    assert!(text.contains("| Bridge, QoS 1 | 25,000 | not run | no suitable bridge |"), "{text}");
    assert!(documents.summary.contains("**37,500**"));
    assert!(documents.summary.contains("Each step: held 4 s, published: 5 min."));
}

/// A row whose only fault is that messages left the generator late.
fn late(label: &str, tps: u32, cpu: f64, delay_us: u32, gate: &str) -> String {
    let delay = format!(
        r#""send_delay_us":{{"count":9,"mean":9.0,"p50":9,"p90":null,"p95":null,"p99":{delay_us},"p999":null,"p9999":null,"max":99999}},"gates":[{{"name":"{gate}""#
    );
    row("tacho", "qos1", label, tps, cpu, "generator_bound")
        .replace(r#""gates":[{"name":"g""#, &delay)
}

#[test]
fn steps_that_came_late_but_were_carried_make_a_workload_probable() {
    let cell = |rows: &[String]| {
        let (_folder, path) = folder("2026-11-22-guide", "guide", rows);
        let documents = Documents::of(&Results::load(&path).expect("a record"));
        let text = plain(file(&documents, "README.md"));
        let line = text.lines().find(|line| line.starts_with("| Symmetric, QoS 1 |"));
        line.expect("a line").split('|').nth(3).expect("a cell").trim().to_owned()
    };
    let sure = row("tacho", "qos1", "10K", 10_000, 30.0, "ok");
    let delay = tacho_record::Check::SendDelay.name();
    let crossing = late("30K", 30_000, 90.0, 3000, delay);
    assert_eq!(
        cell(&[sure.clone(), crossing.clone()]),
        "more than 10,000 (at 30 %), probably 25,000"
    );
    assert_eq!(cell(&[crossing]), "nothing that counts, probably less than 30,000 (at 90 %)");
    let below = late("30K", 30_000, 60.0, 3000, delay);
    let both = "more than 10,000 (at 30 %), probably more than 30,000 (at 60 %)";
    assert_eq!(cell(&[sure.clone(), below]), both);
    // Later than that it is another load; and time that the hypervisor took says nothing.
    let alone = "more than 10,000 (at 30 %)";
    assert_eq!(cell(&[sure.clone(), late("30K", 30_000, 90.0, 10_000, delay)]), alone);
    let stolen = late("30K", 30_000, 90.0, 3000, tacho_record::Check::Steal.name());
    assert_eq!(cell(&[sure.clone(), stolen]), alone);
    // Where steps that count reach 75 %, nothing else is said.
    let reached = row("tacho", "qos1", "20K", 20_000, 90.0, "ok");
    assert_eq!(cell(&[sure, late("15K", 15_000, 80.0, 3000, delay), reached]), "**17,500**");
}

#[test]
fn excluded_figures_stay_visible_and_are_marked() {
    let documents = guide();
    let text = plain(file(&documents, "README.md"));
    // Published 75.56 % at 40K, with its latencies.
    let line = "| 40K | 75.56 / 2.356 / 9.485 | 80.0 / 0.15 / 0.90 |  |";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("(70.0 / 0.15 / 0.90)") && text.contains("~~60.0 / 0.15 / 0.90~~"));
    assert!(text.contains("generator_bound: a reason"));
    assert!(text.contains("aborted: the probe did not arrive"));
    // 128 bytes are a step of the ladder.
    assert!(text.contains("| 128B | "), "{text}");
    assert!(text.contains("| bridge 10K, bridge 20K | Other | has no bridges |"), "{text}");
    assert!(text.contains("8 GiB") && text.contains("Xeon Platinum 8378A"), "hardware is named");
}

#[test]
fn figures_lead_to_the_line_of_their_run() {
    let documents = guide();
    let text = file(&documents, "README.md");
    let lines = "../../../bench/runs/2026-11-22-guide/rows.jsonl#L";
    for line in [
        format!("| 40K | 75.56 / 2.356 / 9.485 | [80.0 / 0.15 / 0.90]({lines}4) |  |"),
        format!("| [(70.0 / 0.15 / 0.90)]({lines}3) |"),
        format!("| [~~60.0 / 0.15 / 0.90~~]({lines}9) |"),
        format!("| [aborted]({lines}11) |"),
        format!("| [Tacho (1 core)]({lines}4) | 40,000 | 80.00 |"),
        format!("| [qos1 20K]({lines}2) | Tacho |"),
    ] {
        assert!(text.contains(&line), "{line}: {text}");
    }
    assert!(!documents.summary.contains("rows.jsonl"), "it stands in another folder");
    let name = "true_100_100_qos0_p1024_50mps";
    let rows = [row("other", name, name, 10_000, 50.0, "ok")];
    let (_folder, path) = folder("2026-11-22-bifromq", "bifromq", &rows);
    let documents = Documents::of(&Results::load(&path).expect("a record"));
    let lines = lines.replace("guide", "bifromq");
    let line = format!("| not run | [0.15 / 0.90 / 0.50]({lines}1) |");
    let text = file(&documents, "README.md");
    assert!(text.contains(&line), "{text}");
    assert!(!documents.summary.contains("rows.jsonl"));
}

#[test]
fn the_guides_own_tables_stand_beside_the_step_nearest_to_75_percent() {
    let documents = guide();
    let text = plain(file(&documents, "README.md"));
    let section = text.split("## Symmetric, QoS 1").nth(1).expect("a section");
    let section = section.split("\n## ").next().expect("its text");
    assert!(
        section
            .contains("nearest to 75 % CPU, as in the guide's table; held 4 s, published: 5 min")
    );
    for line in [
        "| EMQX guide (4 cores) | 40,000 | 75.56 | 6.82 | 2.356 | 9.485 |",
        // 80 %: the step at 70 % does not count.
        "| Tacho (1 core) | 40,000 | 80.00 | not recorded | 0.15 | 0.90 |",
        // The step above was not carried.
        "| Other (1 core) | 10,000 | 50.00 | not recorded | 0.15 | 0.90 |",
    ] {
        assert!(section.contains(line), "{line}: {section}");
    }
    let payloads = text.split("## Growing payloads").nth(1).expect("a section");
    assert!(payloads.contains("| 8192 B | EMQX guide (4 cores) | 40,000 | 90.82 | 9.38 |"));
    assert!(payloads.contains("| 1024 B | Tacho (1 core) | 40,000 | 81.00 | not recorded |"));
    // What was not run is not called a run that does not count.
    assert!(payloads.contains("| 8192 B | Tacho (1 core) | not run |"), "{payloads}");
    let bridges = text.split("## Bridge").nth(1).expect("a section");
    assert!(bridges.contains("| Other (1 core) | no suitable bridge |"), "{bridges}");
    let fan_in = text.split("## Fan-in").nth(1).expect("a section");
    assert!(fan_in.contains("| Other (1 core) | nothing that counts |"), "{fan_in}");
}

#[test]
fn pictures_are_well_formed_and_show_everybody() {
    let documents = guide();
    let pictures = documents.files.iter().filter(|(name, _)| name.ends_with(".svg"));
    let names: Vec<&str> = pictures.clone().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["qos0.svg", "qos1.svg", "payload.svg"]);
    for (name, text) in pictures {
        let picture = roxmltree::Document::parse(text);
        let picture = picture.unwrap_or_else(|error| panic!("{name}: {error}"));
        let texts: Vec<&str> =
            picture.descendants().filter_map(|node| node.text()).map(str::trim).collect();
        assert!(texts.contains(&"Tacho") && texts.contains(&"75 %"), "{name}: {texts:?}");
        assert!(texts.iter().any(|text| text.starts_with("published: EMQX")), "{name}");
    }
    let qos1 = file(&documents, "qos1.svg");
    // CPU, mean and p99: a step that does not count and one that was not carried in each.
    assert_eq!(qos1.matches("class=\"hollow c1 points\"").count(), 3);
    assert_eq!(qos1.matches("class=\"cross c2 points\"").count(), 3);
    assert!(qos1.contains("line reference") || qos1.contains("reference\" d="));
}

#[test]
fn rows_of_bifromq_stand_beside_what_is_published() {
    let (one, two) = ("true_100_100_qos0_p1024_50mps", "false_1k_1k_qos1_p32_1mps");
    let rows = [
        row("tacho", one, one, 10_000, 25.0, "ok"),
        row("other", one, one, 10_000, 50.0, "generator_bound"),
        row("tacho", two, two, 2000, 5.0, "ok"),
    ];
    let (_folder, path) = folder("2026-11-22-bifromq", "bifromq", &rows);
    let documents = Documents::of(&Results::load(&path).expect("a record"));
    let text = plain(file(&documents, "README.md"));
    let line = format!(
        "| {one} | 5,000 | 0.31 / 0.43 / 0.8 | 0.15 / 0.90 / 0.25 | (0.15 / 0.90 / 0.50) |"
    );
    assert!(text.contains(&line), "{text}");
    let line = format!("| {two} | 1,000 | 1.4 / 2.3 / 2.6 | 0.15 / 0.90 / 0.05 | cannot |");
    assert!(text.contains(&line), "{text}");
    let line = "| beyond this machine | beyond this machine |";
    assert!(text.contains(line) && text.contains("needs 100064 descriptors"), "{text}");
    // What the report offered and what it reached are not the same.
    assert!(text.contains("226,000 (of 250,000)"), "{text}");
    assert!(documents.summary.contains(one) && !documents.summary.contains(two));
    let picture = roxmltree::Document::parse(file(&documents, "rows.svg")).expect("well formed");
    let titles = picture.descendants().filter(|node| node.has_tag_name("title")).count();
    // Two panels with two published figures and three of ours each.
    assert_eq!(titles, 10);
}

#[test]
fn a_record_that_says_something_else_is_refused_with_its_place() {
    let (_folder, path) = folder("x", "guide", &["{\n".to_owned()]);
    let error = Results::load(&path).expect_err("no JSON").to_string();
    assert!(error.contains("rows.jsonl, line 1"), "{error}");
    let (_folder, path) = folder("x", "soak", &[]);
    let error = Results::load(&path).expect_err("no such suite").to_string();
    assert!(error.contains("'soak'"), "{error}");
    let error = Results::load(Path::new("nowhere")).expect_err("no folder").to_string();
    assert!(error.contains("record.json"), "{error}");
}

#[test]
fn a_summary_takes_the_place_of_the_last_one() {
    let text = "a\n<!-- guide: begin -->\nold\n<!-- guide: end -->\nb\n";
    let new = with_part(text, "guide", "new\n").expect("a place");
    assert_eq!(new, "a\n<!-- guide: begin -->\nnew\n<!-- guide: end -->\nb\n");
    assert_eq!(with_part(&new, "guide", "new\n").as_deref(), Some(new.as_str()));
    assert_eq!(with_part(text, "bifromq", "new\n"), None);
}

/// The newest record of a suite that the repository keeps.
fn kept_record(suite: &str) -> Option<PathBuf> {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/runs");
    let entries = fs::read_dir(runs).expect("records").filter_map(|entry| Some(entry.ok()?.path()));
    let is_record = |path: &PathBuf| {
        path.to_string_lossy().ends_with(&format!("-{suite}")) && path.join("rows.jsonl").exists()
    };
    entries.filter(is_record).max()
}

#[test]
fn documents_say_what_the_records_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for suite in ["guide", "bifromq"] {
        let folder = root.join("docs/results").join(suite);
        let Some(record) = kept_record(suite) else {
            assert!(!folder.exists(), "{} has no record", folder.display());
            continue;
        };
        let documents = Documents::of(&Results::load(&record).expect("a record"));
        let again = format!("run cargo xtask results {suite} --render");
        for (name, text) in &documents.files {
            let kept = fs::read_to_string(folder.join(name));
            assert!(kept.is_ok_and(|kept| kept == *text), "{suite}/{name}: {again}");
        }
        let readme = fs::read_to_string(root.join("README.md")).expect("a README");
        let whole = with_part(&readme, suite, &documents.summary).expect("a place for it");
        assert!(whole == readme, "README.md: {again}");
    }
}
