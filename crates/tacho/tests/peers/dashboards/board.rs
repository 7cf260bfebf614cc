//! A dashboard from its file.

use std::fs;
use std::path::PathBuf;

use libtest_mimic::Failed;
use serde_json::Value;

/// The folder of all of them.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../dashboards")
}

/// A dashboard.
pub(crate) struct Board {
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// A query of a panel.
pub(crate) struct Asked<'b> {
    /// Dashboard and panel.
    pub(crate) place: String,
    pub(crate) query: &'b str,
    /// Of one moment, not of a stretch of time.
    pub(crate) is_instant: bool,
}

impl Board {
    /// All dashboards for a kind of data source, or from a file of their own.
    pub(crate) fn all_of(kind: &str) -> Result<Vec<Self>, Failed> {
        let mut boards = Vec::new();
        for entry in fs::read_dir(folder().join(kind))? {
            let path = entry?.path();
            let value = serde_json::from_str(&fs::read_to_string(&path)?)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            boards.push(Self { name: format!("{kind}/{file}"), value });
        }
        boards.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(boards)
    }

    /// The queries of its panels, `field` of each target.
    pub(crate) fn queries(&self, field: &str) -> Result<Vec<Asked<'_>>, Failed> {
        let mut queries = Vec::new();
        for panel in list(&self.value["panels"]).iter().filter(|panel| panel["type"] != "row") {
            let title = panel["title"].as_str().unwrap_or_default();
            for target in list(&panel["targets"]) {
                let place = format!("{}, {title}", self.name);
                let query = target[field].as_str().ok_or_else(|| format!("{place}: no {field}"))?;
                let is_instant = target["instant"] == true;
                queries.push(Asked { place, query, is_instant });
            }
        }
        match queries.len() {
            0..5 => Err(format!("{} has few queries", self.name).into()),
            _ => Ok(queries),
        }
    }

    /// Names and queries of its variables, but the data source and lists of constants; whether all
    /// values can be meant at once.
    pub(crate) fn variables(&self) -> Vec<(&str, &str, bool)> {
        let of = |variable: &'_ Value| variable["type"] == "query";
        let variables = list(&self.value["templating"]["list"]).iter().filter(|one| of(one));
        variables
            .map(|one| {
                let query = one["query"]["query"].as_str().or_else(|| one["query"].as_str());
                let name = one["name"].as_str().unwrap_or_default();
                (name, query.unwrap_or_default(), one["includeAll"] == true)
            })
            .collect()
    }

    /// Queries of its annotations.
    pub(crate) fn annotations(&self, field: &str) -> Vec<&str> {
        let all = list(&self.value["annotations"]["list"]).iter();
        all.filter_map(|one| one["target"][field].as_str()).collect()
    }
}

/// The elements of an array; none of anything else.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Whether a query is about a figure of hosts that this machine does not have: disks in some
/// sandboxes, operations of a disk that rests. `points` is what was sent, as JSON.
pub(crate) fn is_absent_here(query: &str, points: &str) -> bool {
    let is_asked = |metric: &&&str| {
        query.match_indices(**metric).any(|(at, _)| {
            let before = query[..at].strip_suffix("tacho_host_").unwrap_or(&query[..at]);
            let after = query[at + metric.len()..].chars().next();
            !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
                && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
    };
    let mut asked = tacho_monitor::METRICS.iter().filter(is_asked);
    asked.any(|metric| !points.contains(&format!("\"{metric}\"")))
}
