//! Files of run directories, and nothing else.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use serde::Serialize;

use crate::guard::REPORT_POLICY;
use crate::regular;

/// Directories below a run's: `steps/01-label` and the like.
const DEPTH_MAX: usize = 4;
/// Bytes per read.
const CHUNK: usize = 64 << 10;

/// Entries of run directories that are looked at for one list; suites have some dozen per row.
const ENTRIES_MAX: usize = 5000;
/// Directories whose files are no results: a broker's state, what was uploaded for the run, keys.
const NOT_LISTED: [&str; 3] = ["data", "input", "certificates"];

/// The files of a run directory with their types, in the order of lists.
const FILES: [(&str, &str, FileKind); 25] = [
    ("report.html", "text/html; charset=utf-8", FileKind::Report),
    ("report.zh.html", "text/html; charset=utf-8", FileKind::Report),
    ("summary.json", "application/json", FileKind::Record),
    ("comparison.json", "application/json", FileKind::Record),
    ("summary.md", "text/plain; charset=utf-8", FileKind::Record),
    ("junit.xml", "text/xml; charset=utf-8", FileKind::Record),
    ("scenario.toml", "text/plain; charset=utf-8", FileKind::Settings),
    ("request.json", "application/json", FileKind::Settings),
    ("environment.json", "application/json", FileKind::Settings),
    ("notes.json", "application/json", FileKind::Settings),
    ("steps.csv", "text/csv; charset=utf-8", FileKind::Table),
    ("timeseries.csv", "text/csv; charset=utf-8", FileKind::Table),
    ("brokers.csv", "text/csv; charset=utf-8", FileKind::Table),
    ("groups.csv", "text/csv; charset=utf-8", FileKind::Table),
    ("resources.csv", "text/csv; charset=utf-8", FileKind::Table),
    ("latency.hlog", "text/plain; charset=utf-8", FileKind::Histogram),
    ("groups.hlog", "text/plain; charset=utf-8", FileKind::Histogram),
    ("e2e.hgrm", "text/plain; charset=utf-8", FileKind::Histogram),
    ("service.hgrm", "text/plain; charset=utf-8", FileKind::Histogram),
    ("ack.hgrm", "text/plain; charset=utf-8", FileKind::Histogram),
    ("send_delay.hgrm", "text/plain; charset=utf-8", FileKind::Histogram),
    ("results.jtl", "text/csv; charset=utf-8", FileKind::Samples),
    ("results-aggregated.jtl", "text/csv; charset=utf-8", FileKind::Samples),
    ("console.log", "text/plain; charset=utf-8", FileKind::Log),
    ("broker.log", "text/plain; charset=utf-8", FileKind::Log),
];

/// What a file of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileKind {
    /// A page to read.
    Report,
    /// The run's figures and verdict.
    Record,
    /// What was to be done, and where.
    Settings,
    /// Figures by the second or step.
    Table,
    /// Latencies.
    Histogram,
    /// For JMeter.
    Samples,
    /// What programs said.
    Log,
}

/// A file of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RunFile {
    /// Its path below the run's directory.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) kind: FileKind,
}

/// The files of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileList {
    pub(crate) files: Vec<RunFile>,
    /// There are more than are looked at.
    pub(crate) is_cut: bool,
}

/// Files that are offered, where they are there.
const OFFERED: [&str; 12] = [
    "report.html",
    "summary.json",
    "steps.csv",
    "timeseries.csv",
    "brokers.csv",
    "resources.csv",
    "latency.hlog",
    "results.jtl",
    "results-aggregated.jtl",
    "junit.xml",
    "scenario.toml",
    "broker.log",
];

/// The files of a run directory that are worth opening.
pub(crate) fn to_open(directory: &Path) -> Vec<&'static str> {
    OFFERED.into_iter().filter(|file| directory.join(file).is_file()).collect()
}

/// Answers with the file `path` below `root`, where it is one of a run directory.
pub(crate) async fn serve(root: PathBuf, path: String) -> Response {
    let found = tokio::task::spawn_blocking(move || open(&root, &path)).await;
    let Ok(Some((file, length, content_type))) = found else {
        return (StatusCode::NOT_FOUND, "File not found.\n").into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, content_type.to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
    ];
    let mut response = (headers, Body::from_stream(chunks(file, length))).into_response();
    let policy = axum::http::HeaderValue::from_static(REPORT_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// The first `length` bytes of `file`. Each chunk is read when the one before it was sent: a slow
/// browser holds memory, but no thread.
fn chunks(file: File, length: u64) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::try_unfold((file, length), async |(mut file, left)| {
        let want = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; want];
            let count = file.read(&mut chunk)?;
            chunk.truncate(count);
            Ok::<_, io::Error>((Bytes::from(chunk), file))
        });
        let (chunk, file) = read.await.map_err(io::Error::other)??;
        let left = left - chunk.len() as u64;
        Ok((!chunk.is_empty()).then_some((chunk, (file, left))))
    })
}

/// The type of a file that run directories have, and what it is.
fn known(name: &str) -> Option<(&'static str, FileKind)> {
    if let Some((_, content_type, kind)) = FILES.iter().find(|(known, ..)| *known == name) {
        return Some((content_type, *kind));
    }
    let (stem, extension) = name.rsplit_once('.')?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if stem.is_empty() || !stem.chars().all(word) {
        return None;
    }
    // Percentile tables and samples are named after a latency or a step, logs after a broker, a
    // timed command or a side of a comparison.
    let is_log = ["broker-", "command-", "before-"].iter().any(|start| stem.starts_with(start));
    let kind = match extension {
        "hgrm" => FileKind::Histogram,
        "jtl" => FileKind::Samples,
        "log" if is_log => FileKind::Log,
        _ => return None,
    };
    Some(("text/plain; charset=utf-8", kind))
}

/// All files of a run directory that [`serve`] gives out: those of the run itself first, then those
/// of its steps.
pub(crate) fn list(directory: &Path) -> FileList {
    let mut list = FileList::default();
    let mut entries = 0;
    let mut places = VecDeque::from([(String::new(), 0)]);
    while let Some((place, depth)) = places.pop_front() {
        let Ok(found) = std::fs::read_dir(directory.join(&place)) else { continue };
        let (mut files, mut below) = (Vec::new(), Vec::new());
        for entry in found.flatten() {
            entries += 1;
            if entries > ENTRIES_MAX {
                list.is_cut = true;
                break;
            }
            let Ok(name) = entry.file_name().into_string() else { continue };
            // Not of what a link leads to.
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() && depth < DEPTH_MAX && is_plain(&name) {
                let is_result = depth > 0 || !NOT_LISTED.contains(&name.as_str());
                below.extend(is_result.then(|| (format!("{place}{name}/"), depth + 1)));
            } else if about.is_file()
                && let Some((_, kind)) = known(&name)
            {
                let order = FILES.iter().position(|(known, ..)| *known == name);
                let order = (order.unwrap_or(FILES.len()), name.clone());
                let name = format!("{place}{name}");
                files.push((order, RunFile { name, bytes: about.len(), kind }));
            }
        }
        files.sort_by(|(left, _), (right, _)| left.cmp(right));
        list.files.extend(files.into_iter().map(|(_, file)| file));
        below.sort();
        // Depth first: a step's own steps come behind it.
        below.into_iter().rev().for_each(|next| places.push_front(next));
    }
    list
}

/// Opens `path` below `root`: only known names, in directories that are really below it.
fn open(root: &Path, path: &str) -> Option<(File, u64, &'static str)> {
    let mut parts: Vec<&str> = path.split('/').collect();
    let (content_type, _) = known(parts.pop()?)?;
    if parts.len() > DEPTH_MAX || !parts.iter().all(|part| is_plain(part)) {
        return None;
    }
    let root = root.canonicalize().ok()?;
    let whole = root.join(path).canonicalize().ok()?;
    if !whole.starts_with(&root) || whole.file_name()?.to_str()? != path.rsplit('/').next()? {
        return None;
    }
    let (file, length) = regular::open(&whole).ok()?;
    Some((file, length, content_type))
}

/// May this be the name of a directory on the way?
pub(crate) fn is_plain(part: &str) -> bool {
    let unusable = |c: char| c == '/' || c == '\\' || c.is_control();
    !part.is_empty() && !part.starts_with('.') && !part.contains(unusable)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_known_files_of_real_directories() {
        let place = tempfile::tempdir().expect("temporary directory");
        let root = place.path().join("runs");
        let step = root.join("one/steps/01-x y");
        fs::create_dir_all(&step).expect("creates");
        fs::create_dir_all(root.join(".hidden")).expect("creates");
        fs::create_dir_all(root.join("odd/report.html")).expect("creates");
        for file in [
            root.join("one/report.html"),
            root.join("one/secret.txt"),
            root.join(".hidden/report.html"),
            step.join("summary.json"),
            place.path().join("report.html"),
            place.path().join("secret"),
        ] {
            fs::write(file, "x").expect("writes");
        }
        std::os::unix::fs::symlink(place.path(), root.join("link")).expect("links");
        std::os::unix::fs::symlink(place.path().join("secret"), root.join("one/summary.json"))
            .expect("links");
        for path in ["one/report.html", "one/steps/01-x y/summary.json"] {
            assert!(open(&root, path).is_some(), "{path}");
        }
        assert!(known("e2e.hgrm").is_some() && known("a.b.hgrm").is_none());
        for path in [
            "",
            "/",
            "report.html",
            "../report.html",
            "one/../../report.html",
            "one/..\\..\\report.html",
            "/etc/passwd",
            "one//report.html",
            "one/./report.html",
            "./one/report.html",
            "one/secret.txt",
            "one/report.html/",
            "one/report.html\0",
            ".hidden/report.html",
            "link/report.html",
            "one/summary.json",
            "odd/report.html",
            "a/b/c/d/e/report.html",
        ] {
            assert!(open(&root, path).is_none(), "{path}");
        }
    }

    #[test]
    fn a_list_has_what_can_be_read_and_no_inputs_keys_or_links() {
        let place = tempfile::tempdir().expect("temporary directory");
        let run = place.path();
        for folder in ["steps/02-b", "steps/01-a", "input", "certificates", "data/x", ".hidden"] {
            fs::create_dir_all(run.join(folder)).expect("creates");
        }
        for file in [
            "report.html",
            "timeseries.csv",
            "summary.json",
            "command-1.log",
            "own.log",
            "steps/02-b/summary.json",
            "steps/01-a/rtt.hgrm",
            "input/results.jtl",
            "certificates/summary.json",
            "data/x/summary.json",
            ".hidden/summary.json",
        ] {
            fs::write(run.join(file), "four").expect("writes");
        }
        std::os::unix::fs::symlink("/etc/passwd", run.join("e2e.hgrm")).expect("links");
        std::os::unix::fs::symlink(run, run.join("steps/03-c")).expect("links");
        let listed = list(run);
        let names: Vec<&str> = listed.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "report.html",
                "summary.json",
                "timeseries.csv",
                "command-1.log",
                "steps/01-a/rtt.hgrm",
                "steps/02-b/summary.json"
            ]
        );
        assert!(listed.files.iter().all(|file| file.bytes == 4) && !listed.is_cut);
        assert_eq!(listed.files[3].kind, FileKind::Log);
        for name in names {
            assert!(open(run, name).is_some(), "{name} is listed and not served");
        }
        for number in 0..ENTRIES_MAX {
            fs::write(run.join(format!("steps/01-a/{number}.jtl")), "").expect("writes");
        }
        let listed = list(run);
        assert!(listed.is_cut && listed.files.len() <= ENTRIES_MAX, "{}", listed.files.len());
        assert_eq!(listed.files[0].name, "report.html");
    }
}
