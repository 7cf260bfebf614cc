//! All evidence of one record, on disk as trust.json.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::judge::{FaultRun, LatencyRun, SearchRun};
use super::tools::ToolRun;
use crate::bench::machine::Machine;
use crate::shell;

const FILE: &str = "trust.json";

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

    /// Says where it was measured.
    pub(super) fn sign(&mut self) {
        let seen = Machine::look();
        let virtual_machine = if seen.virtualised { ", a virtual machine" } else { "" };
        self.machine = format!("{}, {} cores{virtual_machine}", seen.cpu, seen.cores);
        self.revision = seen.revision;
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
    let entries = fs::read_dir(shell::root().join("bench/runs")).ok()?;
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    folders.filter(|folder| folder.join(FILE).is_file()).max()
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
}
