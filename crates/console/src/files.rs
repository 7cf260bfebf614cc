//! Files of run directories, and nothing else.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};

use crate::guard::REPORT_POLICY;
use crate::regular;

/// Directories below a run's: `steps/01-label` and the like.
const DEPTH_MAX: usize = 4;
/// Bytes per read.
const CHUNK: usize = 64 << 10;

/// The files of a run directory with their types.
const FILES: [(&str, &str); 25] = [
    ("report.html", "text/html; charset=utf-8"),
    ("report.zh.html", "text/html; charset=utf-8"),
    ("console.log", "text/plain; charset=utf-8"),
    ("notes.json", "application/json"),
    ("request.json", "application/json"),
    ("summary.json", "application/json"),
    ("environment.json", "application/json"),
    ("scenario.toml", "text/plain; charset=utf-8"),
    ("timeseries.csv", "text/csv; charset=utf-8"),
    ("brokers.csv", "text/csv; charset=utf-8"),
    ("resources.csv", "text/csv; charset=utf-8"),
    ("steps.csv", "text/csv; charset=utf-8"),
    ("groups.csv", "text/csv; charset=utf-8"),
    ("groups.hlog", "text/plain; charset=utf-8"),
    ("latency.hlog", "text/plain; charset=utf-8"),
    ("e2e.hgrm", "text/plain; charset=utf-8"),
    ("service.hgrm", "text/plain; charset=utf-8"),
    ("ack.hgrm", "text/plain; charset=utf-8"),
    ("send_delay.hgrm", "text/plain; charset=utf-8"),
    ("results.jtl", "text/csv; charset=utf-8"),
    ("results-aggregated.jtl", "text/csv; charset=utf-8"),
    ("comparison.json", "application/json"),
    ("junit.xml", "text/xml; charset=utf-8"),
    ("summary.md", "text/plain; charset=utf-8"),
    ("broker.log", "text/plain; charset=utf-8"),
];

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

/// The type of a file that run directories have.
pub(crate) fn content_type(name: &str) -> Option<&'static str> {
    if let Some((_, content_type)) = FILES.iter().find(|(known, _)| *known == name) {
        return Some(content_type);
    }
    let (stem, kind) = name.rsplit_once('.')?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    // Percentile tables and samples are named after a latency or a step.
    let known = ["hgrm", "jtl"].contains(&kind) && !stem.is_empty() && stem.chars().all(word);
    known.then_some("text/plain; charset=utf-8")
}

/// Opens `path` below `root`: only known names, in directories that are really below it.
fn open(root: &Path, path: &str) -> Option<(File, u64, &'static str)> {
    let mut parts: Vec<&str> = path.split('/').collect();
    let content_type = content_type(parts.pop()?)?;
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
        assert!(content_type("e2e.hgrm").is_some() && content_type("a.b.hgrm").is_none());
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
}
