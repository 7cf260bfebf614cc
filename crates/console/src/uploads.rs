//! Uploaded plans, scenario files and their data, until a run takes a copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use thiserror::Error;

/// The folder of uploads.
const UPLOADS: &str = ".uploads";
/// Bytes of one upload.
pub(crate) const BYTES_MAX: usize = 20 << 20;
/// Uploads that are kept; the oldest go.
const KEPT_MAX: usize = 40;
/// Characters of a name.
const NAME_CHARS_MAX: usize = 100;

/// Why an upload cannot be used.
#[derive(Debug, Error)]
pub(crate) enum UploadError {
    /// Its name says nothing about its kind, or could be another place.
    #[error(
        "'{0}' is no name of an upload: write letters, digits, '-', '_' and '.', ending in .jmx \
         (plan), .toml (scenario), .csv or .txt (data)"
    )]
    Name(String),
    /// It is not there, or no longer.
    #[error("there is no upload '{0}' (only the last {KEPT_MAX} are kept): upload the file again")]
    Missing(String),
    /// Only plans and scenarios can be run.
    #[error("'{0}' is a data file: run a plan or a scenario file, and name this one in 'data'")]
    Data(String),
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// What a file is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UploadKind {
    Plan,
    Scenario,
    Data,
}

/// A file that was uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upload {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: UploadKind,
    pub(crate) path: PathBuf,
}

/// All uploads of a folder, each in a directory of its own.
#[derive(Clone, Debug)]
pub(crate) struct Uploads {
    folder: PathBuf,
}

impl Uploads {
    /// Those of the folder of runs.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.join(UPLOADS) }
    }

    /// Keeps a file.
    ///
    /// # Errors
    /// When its name is unusable, or it cannot be written.
    pub(crate) fn keep(&self, name: &str, bytes: &[u8]) -> Result<Upload, UploadError> {
        let kind = kind_of(name).ok_or_else(|| UploadError::Name(name.to_owned()))?;
        let random = tacho_monitor::Token::generate();
        let (_, random) = random.map_err(|error| io::Error::other(error.to_string()))?;
        let id: String = random.chars().take(16).collect();
        let directory = self.folder.join(&id);
        fs::create_dir_all(&directory)?;
        let path = directory.join(name);
        fs::write(&path, bytes)?;
        self.forget_oldest();
        Ok(Upload { id, name: name.to_owned(), kind, path })
    }

    /// The upload of that id.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn find(&self, id: &str) -> Result<Upload, UploadError> {
        let missing = || UploadError::Missing(id.to_owned());
        let is_plain = id.len() == 16 && id.chars().all(|c| c.is_ascii_hexdigit());
        if !is_plain {
            return Err(missing());
        }
        let directory = self.folder.join(id);
        let entries = fs::read_dir(&directory).map_err(|_| missing())?;
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        // Data beside a plan is linked there for its preview.
        names.sort_by_key(|name| kind_of(name) == Some(UploadKind::Data));
        let name = names.into_iter().next().ok_or_else(missing)?;
        let kind = kind_of(&name).ok_or_else(missing)?;
        Ok(Upload { path: directory.join(&name), id: id.to_owned(), name, kind })
    }

    /// Puts a plan or scenario and the data files that it names into `directory`; where it is then.
    ///
    /// # Errors
    /// When one of them is not there, or cannot be copied.
    pub(crate) fn gather(
        &self,
        id: &str,
        data: &[String],
        directory: &Path,
    ) -> Result<PathBuf, UploadError> {
        let main = self.find(id)?;
        if main.kind == UploadKind::Data {
            return Err(UploadError::Data(main.name));
        }
        let place = self.put(&main, directory)?;
        for id in data {
            self.put(&self.find(id)?, directory)?;
        }
        Ok(place)
    }

    /// Puts the data files of a plan beside it, for its preview, and takes away those of an earlier
    /// one; where the plan is.
    ///
    /// # Errors
    /// As [`Uploads::gather`].
    pub(crate) fn beside(&self, id: &str, data: &[String]) -> Result<PathBuf, UploadError> {
        let plan = self.find(id)?;
        let directory = plan.path.parent().unwrap_or(&self.folder).to_owned();
        if plan.kind != UploadKind::Data {
            let kept: Vec<Upload> = data.iter().filter_map(|id| self.find(id).ok()).collect();
            for entry in fs::read_dir(&directory)?.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_other = kept.iter().all(|upload| upload.name != name);
                if kind_of(&name) == Some(UploadKind::Data) && is_other {
                    fs::remove_file(entry.path())?;
                }
            }
        }
        self.gather(id, data, &directory)
    }

    fn put(&self, upload: &Upload, directory: &Path) -> Result<PathBuf, UploadError> {
        fs::create_dir_all(directory)?;
        let place = directory.join(&upload.name);
        if place != upload.path {
            fs::copy(&upload.path, &place)?;
        }
        Ok(place)
    }

    /// Keeps the newest. One that cannot be removed is tried again with the next upload.
    fn forget_oldest(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let changed = |entry: &fs::DirEntry| {
            let changed = entry.metadata().and_then(|about| about.modified());
            changed.unwrap_or(SystemTime::UNIX_EPOCH)
        };
        let mut all: Vec<_> =
            entries.flatten().map(|entry| (changed(&entry), entry.path())).collect();
        all.sort();
        let surplus = all.len().saturating_sub(KEPT_MAX);
        for (_, path) in all.into_iter().take(surplus) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn kind_of(name: &str) -> Option<UploadKind> {
    let is_usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_plain = !name.starts_with(['.', '-']) && name.chars().all(is_usable);
    if !is_plain || name.chars().count() > NAME_CHARS_MAX {
        return None;
    }
    match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "jmx" => Some(UploadKind::Plan),
        "toml" => Some(UploadKind::Scenario),
        "csv" | "txt" => Some(UploadKind::Data),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_gathered_with_its_data() {
        let place = tempfile::tempdir().expect("a folder");
        let uploads = Uploads::new(place.path());
        let plan = uploads.keep("plan.jmx", b"<plan>").expect("is kept");
        let data = uploads.keep("meters.csv", b"a,b").expect("is kept");
        assert_eq!((plan.kind, data.kind), (UploadKind::Plan, UploadKind::Data));
        assert_eq!(uploads.find(&plan.id).expect("is there"), plan);
        let beside =
            uploads.beside(&plan.id, std::slice::from_ref(&data.id)).expect("is put there");
        assert!(beside.with_file_name("meters.csv").is_file());
        assert_eq!(uploads.find(&plan.id).expect("is there").name, "plan.jmx", "not the data");
        uploads.beside(&plan.id, &[]).expect("is put there");
        assert!(!beside.with_file_name("meters.csv").exists(), "it is no longer wanted");
        let input = place.path().join("run/input");
        let path =
            uploads.gather(&plan.id, std::slice::from_ref(&data.id), &input).expect("is copied");
        assert_eq!(fs::read(path).expect("reads"), b"<plan>");
        assert_eq!(fs::read(input.join("meters.csv")).expect("reads"), b"a,b");
        assert!(matches!(uploads.gather(&data.id, &[], &input), Err(UploadError::Data(_))));
    }

    #[test]
    fn names_and_ids_lead_nowhere_else() {
        let place = tempfile::tempdir().expect("a folder");
        let uploads = Uploads::new(place.path());
        for name in ["", "x", "../x.jmx", "a/b.jmx", ".x.jmx", "-x.jmx", "x.sh", "x y.csv", "é.csv"]
        {
            assert!(matches!(uploads.keep(name, b""), Err(UploadError::Name(_))), "{name}");
        }
        for id in ["", "..", "../../etc", "0123456789abcdef", "0123456789abcde/"] {
            assert!(matches!(uploads.find(id), Err(UploadError::Missing(_))), "{id}");
        }
    }

    #[test]
    fn the_oldest_uploads_go() {
        let place = tempfile::tempdir().expect("a folder");
        let uploads = Uploads::new(place.path());
        for _ in 0..KEPT_MAX + 5 {
            uploads.keep("a.toml", b"").expect("is kept");
        }
        let kept = fs::read_dir(place.path().join(UPLOADS)).expect("lists").count();
        assert_eq!(kept, KEPT_MAX);
    }
}
