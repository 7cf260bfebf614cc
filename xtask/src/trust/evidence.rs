//! All evidence of one record, on disk as trust.json.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::judge::{FaultRun, LatencyRun, SearchRun};
use super::tools::ToolRun;
use crate::bench::machine::Machine;
use crate::shell;

const FILE: &str = "trust.json";
/// Length of a date such as `2026-01-31`.
pub(super) const DATE_LEN: usize = 10;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Evidence {
    /// When each part was measured.
    pub(super) measured: BTreeMap<String, String>,
    /// Where.
    pub(super) machine: String,
    pub(super) revision: String,
    pub(super) delays: Vec<LatencyRun>,
    pub(super) stalls: Vec<LatencyRun>,
    pub(super) searches: Vec<SearchRun>,
    pub(super) noisy_searches: Vec<SearchRun>,
    pub(super) faults: Vec<FaultRun>,
    pub(super) tools: Vec<ToolRun>,
}

impl Evidence {
    /// What a folder has; empty where it has nothing.
    pub(super) fn load(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
        serde_json::from_str(&text).with_context(|| format!("{path:?} is not such a record"))
    }

    /// Says where it is measured, before the first piece; a record has one machine.
    pub(super) fn sign(&mut self, seen: Machine) -> Result<()> {
        let virtual_machine = if seen.virtualised { ", a virtual machine" } else { "" };
        let priority = match seen.group_nice {
            0 => String::new(),
            nice => format!(", autogroup nice {nice}"),
        };
        let machine = format!("{}, {} cores{virtual_machine}{priority}", seen.cpu, seen.cores);
        if self.measured.is_empty() {
            (self.machine, self.revision) = (machine, seen.revision);
            return Ok(());
        }
        if self.machine != machine {
            bail!(
                "the record is of another machine ({}); this is {machine}: choose another name",
                self.machine
            );
        }
        if !self.revision.split(", ").any(|known| known == seen.revision) {
            let _ = write!(self.revision, ", {}", seen.revision);
        }
        Ok(())
    }

    pub(super) fn save(&self, folder: &Path, table: &str) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {folder:?}"))?;
        let json = serde_json::to_string_pretty(self).context("cannot write JSON")? + "\n";
        let readme = format!(
            "# Trust, measured\n\nRecord of `cargo xtask trust`; `{FILE}` has every run. What it \
             shows: [docs/trust.md](../../../docs/trust.md).\n\n{table}"
        );
        for (name, text) in [(FILE, json), ("README.md", readme)] {
            fs::write(folder.join(name), text).with_context(|| format!("cannot write {name}"))?;
        }
        Ok(())
    }
}

/// The folder of the newest record.
pub(super) fn newest() -> Option<PathBuf> {
    folders(&shell::root().join("bench/runs")).max()
}

/// The newest record of a name, in `<date>-<NAME>`.
pub(super) fn newest_named(parent: &Path, name: &str) -> Option<PathBuf> {
    let is_of_name = |folder: &PathBuf| {
        let file_name = folder.file_name().and_then(|name| name.to_str());
        file_name.and_then(|own| own.get(DATE_LEN + 1..)) == Some(name)
    };
    folders(parent).filter(is_of_name).max()
}

fn folders(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten();
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    folders.filter(|folder| folder.join(FILE).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_was_saved_is_loaded_again() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Evidence::load(folder.path()).expect("none yet"), Evidence::default());
        let evidence = Evidence {
            measured: [("delays".to_owned(), "2026-01-01T00:00:00Z".to_owned())].into(),
            tools: vec![ToolRun::missing("x")],
            ..Evidence::default()
        };
        evidence.save(folder.path(), "| table |\n").expect("written");
        assert_eq!(Evidence::load(folder.path()).expect("there"), evidence);
        fs::write(folder.path().join(FILE), "[]").expect("written");
        assert!(Evidence::load(folder.path()).is_err());
    }

    #[test]
    fn the_newest_record_of_a_name_goes_on() {
        let parent = tempfile::tempdir().expect("a folder");
        assert_eq!(newest_named(parent.path(), "quiet"), None);
        for name in ["2026-01-01-quiet", "2026-01-03-quiet", "2026-01-05-not-quiet"] {
            Evidence::default().save(&parent.path().join(name), "").expect("written");
        }
        // Without a record.
        fs::create_dir(parent.path().join("2026-01-09-quiet")).expect("created");
        let found = newest_named(parent.path(), "quiet");
        assert_eq!(found, Some(parent.path().join("2026-01-03-quiet")));
    }

    #[test]
    fn a_record_has_one_machine_and_names_every_revision() {
        let seen = |cpu: &str, revision: &str| Machine {
            cpu: cpu.into(),
            revision: revision.into(),
            ..Machine::look()
        };
        let mut evidence = Evidence::default();
        evidence.sign(seen("A", "1")).expect("the first");
        evidence.sign(seen("B", "2")).expect("nothing is measured yet");
        evidence.measured.insert("stall".into(), "2026-01-01T00:00:00Z".into());
        evidence.sign(seen("B", "2")).expect("the same");
        evidence.sign(seen("B", "3")).expect("a later revision");
        assert_eq!(evidence.revision, "2, 3");
        let error = evidence.sign(seen("A", "3")).expect_err("another machine").to_string();
        assert!(error.contains("choose another name"), "{error}");
    }
}
