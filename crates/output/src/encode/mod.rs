//! Wire formats.

mod collectd;
mod csv_table;
mod exponential;
mod influx;
mod jmeter;
mod json_lines;
mod line;
mod otlp;
mod otlp_messages;
mod prometheus;
mod remote_write;
#[cfg(test)]
mod samples;
mod scrape;
mod totals;

use std::fmt::Debug;

use crate::point::OutputItem;
use crate::target::{InfluxSchema, OutputTarget, TargetKind};

pub(crate) use otlp::refused_data_points;
pub use scrape::exposition;

/// Turns items into the bodies of requests, or into pieces of a file.
pub(crate) trait Encode: Debug + Send {
    /// Takes an item; what it adds goes into the next body.
    fn take(&mut self, item: &OutputItem);

    /// Records that the next body has so far.
    fn pending(&self) -> u64;

    /// What was taken since the last body; `None` where that is nothing.
    fn body(&mut self) -> Option<OutputBody>;

    /// Records that were left out since the last call, beyond a limit of the encoder.
    fn left_out(&mut self) -> u64 {
        0
    }
}

/// What a request or a write carries, not yet compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputBody {
    pub(crate) bytes: Vec<u8>,
    /// How much it is, in what the format counts: lines, samples, data points, rows.
    pub(crate) records: u64,
}

/// The encoder for a target.
pub(crate) fn encoder(target: &OutputTarget) -> Box<dyn Encode> {
    match &target.kind {
        TargetKind::Influx { schema: InfluxSchema::Own, .. } => Box::<influx::Influx>::default(),
        TargetKind::Influx { schema: InfluxSchema::JMeter { application }, .. } => {
            Box::new(jmeter::JMeter::new(application.clone()))
        }
        TargetKind::Influx { schema: InfluxSchema::Collectd, .. } => {
            Box::<collectd::Collectd>::default()
        }
        TargetKind::Prometheus { histograms, .. } => {
            Box::new(prometheus::Prometheus::new(*histograms))
        }
        TargetKind::Otlp { temporality, .. } => Box::new(otlp::Otlp::new(*temporality)),
        TargetKind::Json(_) => Box::<json_lines::JsonLines>::default(),
        TargetKind::Csv(_) => Box::<csv_table::CsvTable>::default(),
    }
}
