//! The rows of a folder in a file: each change is a line at its end, the last one counts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::row::RunRow;
use crate::whole_file::write_whole;

/// Name of the file.
const FILE: &str = ".index.jsonl";
/// The first line; a file of another form is made anew.
const FORM: &str = "{\"index\":1}";
/// A longer line was written by another program.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Lines beyond twice the number of runs, after which the file is written anew.
const SPARE_LINES: usize = 1000;

/// A row with the time of the last change of its directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct IndexLine {
    /// The run.
    pub(crate) id: String,
    /// Nanoseconds since 1970; the directory has not changed since. Absent: it is gone.
    pub(crate) modified_ns: Option<u64>,
    /// What it looked like then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) row: Option<RunRow>,
}

/// The file. Where it cannot be written, rows are only in memory.
#[derive(Debug)]
pub(crate) struct IndexFile {
    path: PathBuf,
    out: Option<File>,
    lines: usize,
}

impl IndexFile {
    /// Opens that of a folder; what it says about runs, by name.
    pub(crate) fn open(folder: &Path) -> (Self, BTreeMap<String, (u64, RunRow)>) {
        let path = folder.join(FILE);
        let (mut known, mut lines, mut is_ours) = (BTreeMap::new(), 0, false);
        if let Ok((file, _)) = crate::regular::open(&path) {
            let mut input = BufReader::new(file);
            while let Ok(Some(line)) = next_line(&mut input) {
                lines += 1;
                if lines == 1 {
                    is_ours = line == FORM;
                }
                if !is_ours {
                    break;
                }
                // A line that was cut off by the end of a program says nothing.
                let Ok(line) = serde_json::from_str::<IndexLine>(&line) else { continue };
                match (line.modified_ns, line.row) {
                    (Some(modified_ns), Some(row)) => {
                        known.insert(line.id, (modified_ns, row));
                    }
                    _ => drop(known.remove(&line.id)),
                }
            }
        }
        let mut file = Self { path, out: None, lines };
        if is_ours {
            file.out = File::options().append(true).open(&file.path).ok();
        } else {
            file.rewrite(&[]);
        }
        (file, known)
    }

    /// Adds lines; `all` are the lines of all runs, for when too many are out of date.
    pub(crate) fn add(&mut self, lines: &[IndexLine], all: impl FnOnce() -> Vec<IndexLine>) {
        if lines.is_empty() {
            return;
        }
        self.lines += lines.len();
        let written = match &mut self.out {
            None => return,
            // A line that was cut off ends here.
            Some(out) => text(lines).and_then(|text| out.write_all(format!("\n{text}").as_bytes())),
        };
        if written.is_err() {
            self.out = None;
            return;
        }
        let all = all();
        if self.lines > 2 * all.len() + SPARE_LINES {
            self.rewrite(&all);
        }
    }

    fn rewrite(&mut self, all: &[IndexLine]) {
        let written = text(all)
            .and_then(|text| write_whole(&self.path, format!("{FORM}\n{text}").as_bytes()))
            .and_then(|()| File::options().append(true).open(&self.path));
        self.out = written.ok();
        self.lines = all.len() + 1;
    }

    /// How many lines it has.
    #[cfg(test)]
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }
}

/// Lines as the file has them.
fn text(lines: &[IndexLine]) -> io::Result<String> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
    }
    Ok(text)
}

/// The next line that is not empty.
fn next_line(input: &mut BufReader<File>) -> io::Result<Option<String>> {
    loop {
        let mut line = Vec::new();
        let read = (&mut *input).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if !text.is_empty() {
            return Ok(Some(text.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn line(id: &str, modified_ns: u64) -> IndexLine {
        let row = RunRow { id: id.to_owned(), ..RunRow::default() };
        IndexLine { id: id.to_owned(), modified_ns: Some(modified_ns), row: Some(row) }
    }

    #[test]
    fn the_last_line_of_a_run_counts_and_damaged_ones_are_skipped() {
        let place = tempfile::tempdir().expect("a folder");
        let (mut file, known) = IndexFile::open(place.path());
        assert!(known.is_empty());
        file.add(&[line("a", 1), line("b", 2)], Vec::new);
        drop(file);
        let path = place.path().join(FILE);
        let mut out = File::options().append(true).open(&path).expect("opens");
        out.write_all(b"{\"id\": \"c\", \"modif").expect("writes");
        let (mut file, known) = IndexFile::open(place.path());
        assert_eq!(known.keys().collect::<Vec<_>>(), ["a", "b"]);
        let gone = IndexLine { id: "b".to_owned(), modified_ns: None, row: None };
        file.add(&[line("a", 5), gone], Vec::new);
        let (_, known) = IndexFile::open(place.path());
        assert_eq!(
            known.iter().map(|(id, (ns, _))| (id.as_str(), *ns)).collect::<Vec<_>>(),
            [("a", 5)]
        );
        fs::write(&path, "of another program\n{}\n").expect("writes");
        let (_, known) = IndexFile::open(place.path());
        assert!(known.is_empty());
        assert!(fs::read_to_string(&path).expect("reads").starts_with(FORM), "is made anew");
    }

    #[test]
    fn a_file_with_too_many_old_lines_is_written_anew() {
        let place = tempfile::tempdir().expect("a folder");
        let (mut file, _) = IndexFile::open(place.path());
        for at in 0..3 * SPARE_LINES as u64 {
            file.add(&[line("a", at)], || vec![line("a", at)]);
        }
        assert!(file.lines() <= SPARE_LINES + 3, "{}", file.lines());
        let (_, known) = IndexFile::open(place.path());
        assert_eq!(known["a"].0, 3 * SPARE_LINES as u64 - 1);
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_has_rows_in_memory_only() {
        let place = tempfile::tempdir().expect("a folder");
        let (mut file, known) = IndexFile::open(&place.path().join("missing"));
        file.add(&[line("a", 1)], Vec::new);
        assert!(known.is_empty());
    }
}
