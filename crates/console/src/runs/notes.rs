//! What users say about a run after it was made: `notes.json` in its directory.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::regular;
use crate::tags::checked_tags;
use crate::whole_file::write_whole;

/// Name of the file.
const FILE: &str = "notes.json";
/// A larger file was written by another program.
const BYTES_MAX: u64 = 64 << 10;
/// Characters of a note.
const NOTE_CHARS_MAX: usize = 4000;

/// Tags, star and note of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunNotes {
    pub(crate) tags: Vec<String>,
    pub(crate) starred: bool,
    /// Others of its scenario are seen against it.
    pub(crate) baseline: bool,
    /// Absent: what was said when the run was started stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// While it is in the trash: since when, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deleted: Option<String>,
}

/// What of them is to be changed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NotesChange {
    tags: Option<Vec<String>>,
    starred: Option<bool>,
    baseline: Option<bool>,
    note: Option<String>,
}

impl NotesChange {
    /// Whether the run becomes the baseline of its scenario.
    pub(crate) fn makes_baseline(&self) -> bool {
        self.baseline == Some(true)
    }
}

impl RunNotes {
    /// Those in a run's directory; none where the file cannot be used.
    pub(crate) fn read(directory: &Path) -> Self {
        let text = regular::read(&directory.join(FILE), BYTES_MAX).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// The same with a change.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub(crate) fn changed(mut self, change: NotesChange) -> Result<Self, (&'static str, String)> {
        if let Some(tags) = change.tags {
            self.tags = checked_tags(tags).map_err(|why| ("tags", why))?;
        }
        if let Some(starred) = change.starred {
            self.starred = starred;
        }
        if let Some(baseline) = change.baseline {
            self.baseline = baseline;
        }
        if let Some(note) = change.note {
            let chars = note.chars().count();
            if chars > NOTE_CHARS_MAX {
                let why = format!("the note has {chars} characters, at most {NOTE_CHARS_MAX}");
                return Err(("note", why));
            }
            self.note = Some(note);
        }
        Ok(self)
    }

    /// Writes them in one step: a reader sees the old ones or these.
    ///
    /// # Errors
    /// When the directory cannot be written to.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        write_whole(&directory.join(FILE), &serde_json::to_vec_pretty(self)?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn notes_survive_and_only_what_is_given_changes() {
        let place = tempfile::tempdir().expect("a folder");
        assert_eq!(RunNotes::read(place.path()), RunNotes::default());
        let change = |json: &str| serde_json::from_str::<NotesChange>(json).expect("is a change");
        let notes = RunNotes::read(place.path())
            .changed(change(r#"{"tags": [" nightly ", "nightly", "mosquitto"], "note": "why"}"#))
            .expect("is right");
        notes.write(place.path()).expect("writes");
        let notes = RunNotes::read(place.path()).changed(change(r#"{"starred": true}"#));
        notes.expect("is right").write(place.path()).expect("writes");
        let notes = RunNotes::read(place.path());
        assert_eq!(notes.tags, ["nightly", "mosquitto"]);
        assert!(notes.starred && notes.note.as_deref() == Some("why"));
        let names: Vec<_> = fs::read_dir(place.path()).expect("lists").flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn what_is_too_long_is_refused_with_its_field() {
        let refused = |change: NotesChange| RunNotes::default().changed(change).expect_err("is").0;
        let tags = |tags: Vec<String>| NotesChange { tags: Some(tags), ..NotesChange::default() };
        assert_eq!(refused(tags(vec![String::new()])), "tags");
        let note = Some("x".repeat(NOTE_CHARS_MAX + 1));
        assert_eq!(refused(NotesChange { note, ..NotesChange::default() }), "note");
        assert!(serde_json::from_str::<NotesChange>(r#"{"verdict": "ok"}"#).is_err());
    }
}
