//! The newest record of logins as a table of BENCHMARKING.md.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Method;
use crate::bench::figures::{Figures, number};
use crate::markers::with_part;
use crate::shell;

const DOCUMENT: &str = "BENCHMARKING.md";

/// Writes the table of the newest record into the document.
pub(in crate::bench) fn render() -> Result<()> {
    let path = shell::root().join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let text = with_part(&text, "login", &newest_table()?);
    let text = text.with_context(|| format!("{DOCUMENT}: no markers"))?;
    fs::write(&path, text).with_context(|| format!("cannot write {path:?}"))
}

/// The folder of the newest record.
fn newest() -> Option<PathBuf> {
    let entries = fs::read_dir(shell::root().join("bench/runs")).ok()?;
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_of_logins = |folder: &PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with("-login") && folder.join("results.json").is_file()
    };
    folders.filter(is_of_logins).max()
}

fn newest_table() -> Result<String> {
    let Some(folder) = newest() else {
        return Ok("No record of `cargo xtask bench --only login` is kept yet.\n".to_owned());
    };
    let path = folder.join("results.json");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let record = serde_json::from_str(&text).with_context(|| format!("{path:?} is not JSON"))?;
    table(&folder, &record).with_context(|| format!("{path:?} is not a record of a benchmark"))
}

fn table(folder: &Path, record: &Value) -> Result<String> {
    let figures = Figures::of_record(record).context("no samples")?;
    let told = |path: &str| record.pointer(path).and_then(Value::as_str).unwrap_or("unknown");
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let rounds = record.get("rounds").and_then(Value::as_u64).unwrap_or_default();
    let seconds = record.get("seconds").and_then(Value::as_u64).unwrap_or_default();
    let mut text = format!(
        "[{}](bench/runs/{name}/README.md) on {}, revision {}: medians of {rounds} interleaved \
         rounds of {seconds} s. Peer: {}.\n\n\
         | logins by | most per second | CPU per login | full core | at | p50 | p99 |\n\
         |---|---|---|---|---|---|---|\n",
        told("/started_at").get(..10).unwrap_or_default(),
        told("/machine/cpu"),
        told("/machine/revision"),
        told("/machine/mosquitto"),
    );
    for method in Method::ALL {
        let [most, paced] = ["most", "paced"].map(|case| format!("{}_{case}", method.name()));
        let shown = |case: &str, metric: &str, unit: &str| {
            let value = figures.median(case, metric);
            value.map_or_else(|| "-".to_owned(), |value| format!("{}{unit}", number(value)))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {}/s | {} | {} |",
            method.what(),
            shown(&most, "logins_per_s", ""),
            shown(&most, "cpu_us_per_login", " us"),
            figures.bottleneck(&most),
            method.paced_per_s(),
            shown(&paced, "login_us_p50", " us"),
            shown(&paced, "login_us_p99", " us"),
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_document_has_the_newest_record() {
        let document = fs::read_to_string(shell::root().join(DOCUMENT)).expect("reads");
        let expected = newest_table().expect("a record");
        let again = with_part(&document, "login", &expected).expect("the document has the markers");
        assert_eq!(document, again, "`cargo xtask bench --render` writes it again");
    }

    #[test]
    fn a_row_has_the_most_and_the_latency_of_the_paced_case() {
        let sample = |case: &str, metrics: Value| json!({ "case": case, "round": 1, "verdict": "ok", "reasons": [], "metrics": metrics });
        let most = json!({
            "logins_per_s": 5000.0, "cpu_us_per_login": 190.0, "broker_cpu_percent": 98.0,
        });
        let paced = json!({ "logins_per_s": 200.0, "login_us_p50": 310.0 });
        let record = json!({
            "started_at": "2026-11-26T00:00:00Z", "rounds": 3, "seconds": 5,
            "machine": { "cpu": "AMD", "revision": "abc", "mosquitto": "mosquitto version 2" },
            "samples": [
                sample("tacho_login_hs256_most", most),
                sample("tacho_login_hs256_paced", paced),
            ],
        });
        let text = table(Path::new("bench/runs/2026-11-26-login"), &record).expect("a record");
        assert!(text.contains("[2026-11-26](bench/runs/2026-11-26-login/README.md)"), "{text}");
        let row = "| token, HS256 | 5,000 | 190 us | broker | 300/s | 310 us | - |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("with mosquitto | - | - | none | 300/s | - | - |"), "{text}");
        assert!(table(Path::new("x"), &json!({})).is_err());
    }
}
