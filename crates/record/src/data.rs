//! A run with everything that its report shows.

use crate::curves::StepCurves;
use crate::environment::Environment;
use crate::hosts::ResourceRow;
use crate::run::RunRecord;
use crate::series::{BrokerRow, SeriesRow};

/// A run, a ladder, a search or a suite with everything that its report shows.
#[derive(Clone, Debug, Default)]
pub struct RunData {
    /// The record, as in `summary.json`.
    pub record: RunRecord,
    /// The seconds of a single run.
    pub rows: Vec<SeriesRow>,
    /// Percentile curves, one per step.
    pub curves: Vec<StepCurves>,
    /// The rows of the watched hosts, in the order of time.
    pub hosts: Vec<ResourceRow>,
    /// The seconds of each broker, where there are several.
    pub brokers: Vec<BrokerRow>,
    /// The machine; absent where nothing ran.
    pub environment: Option<Environment>,
}
