//! `groups.csv` and `groups.hlog`: with several groups of clients, a row and a histogram of their
//! end-to-end latencies per second and group.

use std::fs::File;
use std::io::{self, BufWriter};

use hdrhistogram::Histogram;

use super::directory::{OutputError, RunDirectory};
use super::hlog::HistogramLog;
use crate::series::GroupRow;
use crate::timestamp::Timestamp;

/// The file of the rows.
pub(crate) const ROWS: &str = "groups.csv";
/// The file of the histograms.
pub const GROUP_LOG: &str = "groups.hlog";

/// The tag of a group's histograms, by its position among the groups: names may have characters
/// that a tag may not.
pub fn group_tag(position: usize) -> String {
    format!("group-{}", position + 1)
}

/// Writes both files as the run goes on.
#[derive(Debug)]
pub struct GroupWriter<'d> {
    directory: &'d RunDirectory,
    rows: csv::Writer<BufWriter<File>>,
    log: HistogramLog<BufWriter<File>>,
}

impl<'d> GroupWriter<'d> {
    /// Begins the files of a run that started at `started`.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn begin(directory: &'d RunDirectory, started: Timestamp) -> Result<Self, OutputError> {
        let rows = csv::Writer::from_writer(directory.open(ROWS)?);
        let log = HistogramLog::new(directory.open(GROUP_LOG)?, started);
        let log = log.map_err(|source| directory.error(GROUP_LOG, source))?;
        Ok(Self { directory, rows, log })
    }

    /// Appends the groups of one interval, in their order.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write<'h>(
        &mut self,
        groups: impl IntoIterator<Item = (GroupRow, &'h Histogram<u64>)>,
    ) -> Result<(), OutputError> {
        for (position, (row, e2e)) in groups.into_iter().enumerate() {
            let written = self.rows.serialize(&row).map_err(io::Error::other);
            written.map_err(|source| self.directory.error(ROWS, source))?;
            self.log
                .write(&group_tag(position), row.start_s, row.length_s, e2e)
                .map_err(|source| self.directory.error(GROUP_LOG, source))?;
        }
        Ok(())
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// When the rest cannot be written.
    pub fn flush(&mut self) -> Result<(), OutputError> {
        self.rows.flush().map_err(|source| self.directory.error(ROWS, source))?;
        self.log.flush().map_err(|source| self.directory.error(GROUP_LOG, source))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::PhaseKind;
    use crate::output::LoggedHistograms;
    use crate::past::group_rows;

    #[test]
    fn groups_are_read_back_as_they_were_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = RunDirectory::create(folder.path()).expect("creates");
        assert_eq!(group_rows(folder.path()).expect("no file"), []);
        let mut writer = GroupWriter::begin(&directory, Timestamp::now()).expect("begins");
        let row = |group: &str, sent_per_s| GroupRow {
            start_s: 1.5,
            length_s: 1.0,
            phase: PhaseKind::Measure.into(),
            group: group.to_owned(),
            connected: 3,
            sent_per_s,
            received_per_s: 0.25,
        };
        let empty = Histogram::new(3).expect("three digits");
        let mut e2e = empty.clone();
        e2e.record(70).expect("grows");
        let rows = [row("senders, \"all\"", 7.5), row("b", 0.0)];
        let both = rows.iter().cloned().zip([&empty, &e2e]);
        writer.write(both).expect("writes");
        writer.flush().expect("writes");
        assert_eq!(group_rows(folder.path()).expect("reads"), rows);
        let log = LoggedHistograms::read(&folder.path().join(GROUP_LOG)).expect("reads");
        let all: Vec<_> = log.iter().map(|one| one.expect("is whole")).collect();
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!((one.tag.as_str(), &one.histogram), (&*group_tag(1), &e2e));
        fs::write(folder.path().join(ROWS), "start_s,length_s\n1,one\n").expect("writes");
        let error = group_rows(folder.path()).expect_err("is damaged").to_string();
        assert!(error.contains("groups.csv is damaged"), "{error}");
    }
}
