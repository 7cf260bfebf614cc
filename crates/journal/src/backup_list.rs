//! The list of what belongs to a backup: a text file in it.

use std::fmt::Write as _;
use std::io;

use crate::segment::parse_name;
use crate::storage::{Storage, read_full_at};

/// The name of the file: a directory that has it is a backup.
pub(crate) const LIST_NAME: &str = "backup";
/// The first line, with the version of the list.
const HEAD: &str = "tacho backup 1";
/// The last line: a list without it was cut.
const END: &str = "end";
/// A list of a million segments.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// What belongs to a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackupList {
    /// Its last commit.
    commit: u64,
    /// Names and sizes.
    files: Vec<(String, u64)>,
}

impl BackupList {
    pub(crate) const fn new(commit: u64) -> Self {
        Self { commit, files: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: String, bytes: u64) {
        self.files.push((name, bytes));
    }

    pub(crate) const fn commit(&self) -> u64 {
        self.commit
    }

    pub(crate) fn files(&self) -> &[(String, u64)] {
        &self.files
    }

    pub(crate) fn segments(&self) -> u64 {
        self.files.iter().filter(|(name, _)| parse_name(name).is_some()).count() as u64
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("{HEAD}\ncommit {}\n", self.commit);
        for (name, bytes) in &self.files {
            // Writing to a string does not fail.
            let _ = writeln!(text, "file {name} {bytes}");
        }
        text + END + "\n"
    }

    /// Of this text; a word about what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut lines = text.lines();
        match lines.next() {
            Some(HEAD) => {}
            Some(line) if line.starts_with("tacho backup ") => {
                return Err("it was made by a newer version");
            }
            _ => return Err("its list is damaged"),
        }
        let commit = lines.next().and_then(|line| line.strip_prefix("commit ")?.parse().ok());
        let mut list = Self::new(commit.ok_or("its list is damaged")?);
        for line in lines {
            if line == END {
                return Ok(list);
            }
            let (name, bytes) = line
                .strip_prefix("file ")
                .and_then(|rest| rest.split_once(' '))
                .and_then(|(name, bytes)| Some((name, bytes.parse().ok()?)))
                .ok_or("its list is damaged")?;
            // Nothing outside the directory.
            if parse_name(name).is_none() && name != crate::salt::NAME {
                return Err("its list names files that belong to no backup");
            }
            list.add(name.to_owned(), bytes);
        }
        Err("its list is cut")
    }

    /// The list of a backup; `None` if the directory is none.
    pub(crate) fn read(storage: &dyn Storage) -> io::Result<Option<Result<Self, &'static str>>> {
        let file = match storage.open(LIST_NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let bytes = file.size()?.min(LIST_BYTES_MAX);
        let mut text = vec![0; bytes as usize];
        let read = read_full_at(&*file, 0, &mut text)?;
        text.truncate(read);
        let text = String::from_utf8(text).map_err(|_| "its list is damaged");
        Ok(Some(text.and_then(|text| Self::parse(&text))))
    }

    /// A sentence if the log of the backup does not end where it should.
    pub(crate) fn ends_otherwise(&self, last_commit: u64) -> Option<String> {
        let commit = self.commit;
        (last_commit != commit).then(|| format!("it ends with commit {last_commit}, not {commit}"))
    }

    /// What is missing in a directory, and what is shorter or longer than it was.
    pub(crate) fn missing(&self, storage: &dyn Storage) -> Vec<String> {
        let problem =
            |(name, bytes): &(String, u64)| match storage.open(name).and_then(|file| file.size()) {
                Ok(size) if size == *bytes => None,
                Ok(size) => Some(format!("{name} has {size} bytes instead of {bytes}")),
                Err(error) => Some(format!("{name}: {error}")),
            };
        self.files.iter().filter_map(problem).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_and_not_when_it_is_cut_or_altered() {
        let mut list = BackupList::new(7);
        list.add("000000000000000a.segment".to_owned(), 4096);
        list.add("salt".to_owned(), 24);
        let text = list.text();
        assert_eq!(BackupList::parse(&text), Ok(list.clone()));
        assert_eq!(list.segments(), 1);
        // The end of the last line alone is not missed.
        for cut in 0..text.len() - 1 {
            assert!(BackupList::parse(&text[..cut]).is_err(), "{cut}");
        }
        for wrong in ["../salt", "lock", "/etc/passwd", "a.segment"] {
            assert!(BackupList::parse(&text.replace("salt", wrong)).is_err(), "{wrong}");
        }
        let newer = text.replace("backup 1", "backup 2");
        assert_eq!(BackupList::parse(&newer), Err("it was made by a newer version"));
        assert!(BackupList::parse(&text.replace("4096", "x")).is_err());
    }
}
