//! One run of one broker, as the record keeps it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// CPU of the broker in percent of its core at which a ladder ends.
pub(super) const CPU_FULL: f64 = 90.0;

/// The generator's check that its core was not full.
pub(super) const GENERATOR_BUSY: &str = "the busiest generator thread";

/// What is kept of a step of `summary.json`, under the same names.
const KEPT: [&str; 35] = [
    "window_s",
    "offered_in_per_s",
    "offered_out_per_s",
    "attempted_in_per_s",
    "achieved_in_per_s",
    "achieved_out_per_s",
    "tps",
    "latency_us",
    "send_delay_us",
    "ack_us",
    "sent",
    "expected",
    "received",
    "lost",
    "duplicates",
    "out_of_order",
    "overrun",
    "dropped",
    "refused",
    "violations",
    "acknowledged_lost",
    "drained",
    "cpu_percent",
    "whose_cpu",
    "broker_cpu_percent",
    "broker_cpu_us_per_message",
    "broker_cores_busy_percent",
    "broker_rss_bytes",
    "broker_threads",
    "host_memory_percent",
    "host_steal_percent",
    "other_cpu_percent",
    "generator_thread_busy_max_percent",
    "gates",
    "targets",
];

/// A line of `rows.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) broker: String,
    pub(super) series: String,
    pub(super) label: String,
    pub(super) scenario: String,
    pub(super) vars: BTreeMap<String, String>,
    pub(super) started_at: String,
    /// How often it was run until the machine left it alone.
    pub(super) attempts: u32,
    pub(super) verdict: String,
    pub(super) reasons: Vec<String>,
    /// Absent where nothing was measured.
    pub(super) step: Option<Value>,
}

impl Row {
    /// Is it the run of this broker and step?
    pub(super) fn is(&self, broker: &str, series: &str, label: &str) -> bool {
        self.broker == broker && self.series == series && self.label == label
    }

    /// CPU of the broker; of two, the sum, since they share the core.
    pub(super) fn cpu_percent(&self) -> Option<f64> {
        let step = self.step.as_ref()?;
        let parts = step.get("targets").and_then(Value::as_array).filter(|parts| parts.len() > 1);
        match parts {
            Some(parts) => parts.iter().map(cpu).sum(),
            None => cpu(step),
        }
    }

    /// Did this check of the generator fail?
    pub(super) fn fails(&self, gate: &str) -> bool {
        let gates = self.step.as_ref().and_then(|step| step.get("gates")).and_then(Value::as_array);
        gates.into_iter().flatten().any(|one| {
            let passed = one.get("passed").and_then(Value::as_bool);
            one.get("name").and_then(Value::as_str) == Some(gate) && passed == Some(false)
        })
    }

    /// The machine, not the broker, made the row fail: a repeat may count.
    pub(super) fn is_disturbed(&self) -> bool {
        matches!(self.verdict.as_str(), "generator_bound" | "disturbed" | "not_steady")
            && !self.fails(GENERATOR_BUSY)
            && self.cpu_percent().is_none_or(|cpu| cpu < CPU_FULL)
    }

    /// Takes verdict and figures out of a run's record.
    pub(super) fn take(&mut self, summary: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.verdict = summary.get("verdict").map(text).unwrap_or_default();
        let reasons = summary.get("reasons").and_then(Value::as_array);
        self.reasons = reasons.into_iter().flatten().map(text).collect();
        self.step = summary.pointer("/steps/0").and_then(Value::as_object).map(|step| {
            let kept = step.iter().filter(|(name, _)| KEPT.contains(&name.as_str()));
            let kept: Map<String, Value> =
                kept.map(|(name, value)| (name.clone(), rounded(value))).collect();
            Value::Object(kept)
        });
    }
}

fn cpu(part: &Value) -> Option<f64> {
    part.get("broker_cpu_percent").and_then(Value::as_f64)
}

/// Three decimals are more than was measured, and read better than sixteen.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let value = number.as_f64().map(|value| (value * 1e3).round() / 1e3);
            value.and_then(serde_json::Number::from_f64).map_or(Value::Null, Value::Number)
        }
        Value::Array(values) => values.iter().map(rounded).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), rounded(value))).collect()
        }
        other => other.clone(),
    }
}

/// The file that rows are appended to, so that what was measured survives an interruption.
pub(super) struct Rows {
    path: PathBuf,
    pub(super) all: Vec<Row>,
}

impl Rows {
    /// Opens the file in `folder`, with what it holds.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("rows.jsonl");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {path:?}")),
        };
        let mut all = Vec::new();
        // A line without its end was cut off.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let row = serde_json::from_str(line);
            all.push(row.with_context(|| format!("an odd line in {path:?}: {line}"))?);
        }
        let rows = Self { path, all };
        rows.rewrite()?;
        Ok(rows)
    }

    fn rewrite(&self) -> Result<()> {
        let mut text = String::new();
        for row in &self.all {
            text.push_str(&serde_json::to_string(row).context("cannot write JSON")?);
            text.push('\n');
        }
        fs::write(&self.path, text).with_context(|| format!("cannot write {:?}", self.path))
    }

    /// The row of this broker and step.
    pub(super) fn find(&self, broker: &str, series: &str, label: &str) -> Option<&Row> {
        self.all.iter().find(|row| row.is(broker, series, label))
    }

    /// Puts `row` in the place of the one of its broker and step.
    pub(super) fn replace(&mut self, row: Row) -> Result<()> {
        let same = |known: &&mut Row| known.is(&row.broker, &row.series, &row.label);
        if let Some(known) = self.all.iter_mut().find(same) {
            *known = row;
        }
        self.rewrite()
    }

    /// Adds one and writes it down.
    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        let line = serde_json::to_string(&row).context("cannot write JSON")? + "\n";
        File::options()
            .append(true)
            .create(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .with_context(|| format!("cannot write to {:?}", self.path))?;
        self.all.push(row);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_keeps_what_the_documents_need() {
        let mut row = Row::default();
        row.take(&json!({
            "verdict": "generator_bound",
            "reasons": ["steal"],
            "steps": [{ "tps": 1.000_04, "lost_ranges": [1], "broker_cpu_percent": 40.0,
                        "gates": [{ "name": "g", "passed": false }] }],
        }));
        assert_eq!((row.verdict.as_str(), row.cpu_percent()), ("generator_bound", Some(40.0)));
        assert!(row.fails("g") && !row.fails("h"));
        let step = row.step.expect("a step");
        assert_eq!(step.get("tps"), Some(&json!(1.0)));
        assert_eq!(step.get("lost_ranges"), None);
    }

    #[test]
    fn only_rows_that_the_machine_disturbed_are_run_again() {
        let gates = |busy: bool| json!([{ "name": GENERATOR_BUSY, "passed": !busy }]);
        let disturbed = |verdict: &str, busy: bool| {
            let step = Some(json!({ "gates": gates(busy) }));
            Row { verdict: verdict.to_owned(), step, ..Row::default() }.is_disturbed()
        };
        assert!(disturbed("generator_bound", false) && disturbed("not_steady", false));
        assert!(!disturbed("generator_bound", true) && !disturbed("not_sustained", false));
        assert!(!disturbed("ok", false));
        // Where the broker's core is full, messages leave late because of it.
        let full = Some(json!({ "gates": gates(false), "broker_cpu_percent": 97.0 }));
        let full = Row { verdict: "generator_bound".to_owned(), step: full, ..Row::default() };
        assert!(!full.is_disturbed());
    }

    #[test]
    fn two_brokers_on_one_core_take_their_sum() {
        let targets = json!([{ "broker_cpu_percent": 30.0 }, { "broker_cpu_percent": 25.0 }]);
        let step = Some(json!({ "broker_cpu_percent": 30.0, "targets": targets }));
        assert_eq!(Row { step, ..Row::default() }.cpu_percent(), Some(55.0));
    }

    #[test]
    fn rows_survive_an_interruption_in_the_middle_of_a_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut rows = Rows::open(folder.path()).expect("a file");
        let row = |label: &str| Row { label: label.to_owned(), ..Row::default() };
        rows.push(row("10K")).expect("written");
        rows.push(row("20K")).expect("written");
        let path = folder.path().join("rows.jsonl");
        let text = fs::read_to_string(&path).expect("text");
        fs::write(&path, &text[..text.len() - 5]).expect("cut");
        let mut rows = Rows::open(folder.path()).expect("a file");
        assert_eq!(rows.all, [row("10K")]);
        rows.push(row("30K")).expect("written");
        assert_eq!(Rows::open(folder.path()).expect("a file").all, [row("10K"), row("30K")]);
        let again = Row { attempts: 2, ..row("10K") };
        rows.replace(again.clone()).expect("written");
        assert_eq!(Rows::open(folder.path()).expect("a file").all, [again, row("30K")]);
    }
}
