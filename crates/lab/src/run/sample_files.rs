//! The files of samples of a run.

use std::fs::File;
use std::io::BufWriter;

use tacho_monitor::HostRow;
use tacho_record::output::{BrokerWriter, ResourceWriter, SeriesWriter};
use tacho_record::{BrokerRow, OutputError, ResourceRow, RunDirectory, SeriesRow};

use super::hosts::Hosts;
use super::outgoing::Outgoing;

/// The files of samples, written as the run goes on.
pub(super) struct SampleFiles<'d> {
    directory: &'d RunDirectory,
    series: SeriesWriter<BufWriter<File>>,
    resources: ResourceWriter<BufWriter<File>>,
    /// Absent with a single broker.
    brokers: Option<BrokerWriter<BufWriter<File>>>,
}

impl<'d> SampleFiles<'d> {
    pub(super) fn open(directory: &'d RunDirectory, brokers: usize) -> Result<Self, OutputError> {
        let (series, resources) = (directory.series()?, directory.resources()?);
        let brokers = (brokers > 1).then(|| directory.brokers()).transpose()?;
        Ok(Self { directory, series, resources, brokers })
    }

    pub(super) fn write_second(&mut self, row: &SeriesRow) -> Result<(), OutputError> {
        let written = self.series.write(row);
        written.map_err(|source| self.directory.error("timeseries.csv", source))
    }

    pub(super) fn write_resource(&mut self, row: &ResourceRow) -> Result<(), OutputError> {
        let written = self.resources.write(row);
        written.map_err(|source| self.directory.error("resources.csv", source))
    }

    pub(super) fn write_brokers(&mut self, rows: &[BrokerRow]) -> Result<(), OutputError> {
        let Some(out) = &mut self.brokers else { return Ok(()) };
        let written = rows.iter().try_for_each(|row| out.write(row));
        written.map_err(|source| self.directory.error("brokers.csv", source))
    }

    /// The rows of the load are complete.
    pub(super) fn flush_load(&mut self) -> Result<(), OutputError> {
        let flushed = self.series.flush();
        flushed.map_err(|source| self.directory.error("timeseries.csv", source))?;
        let Some(out) = &mut self.brokers else { return Ok(()) };
        out.flush().map_err(|source| self.directory.error("brokers.csv", source))
    }

    /// What the hosts told last: the rows are complete.
    pub(super) fn write_last(
        &mut self,
        rows: Vec<HostRow>,
        hosts: &mut Hosts,
        outgoing: &Outgoing,
    ) -> Result<(), OutputError> {
        for row in rows {
            let row = hosts.take(row);
            self.write_resource(row)?;
            outgoing.host(row);
        }
        self.flush_resources()
    }

    fn flush_resources(&mut self) -> Result<(), OutputError> {
        let flushed = self.resources.flush();
        flushed.map_err(|source| self.directory.error("resources.csv", source))
    }
}
