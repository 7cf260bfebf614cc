//! Renderings of the run record for people: `report.html` and the table on the terminal.

mod actions;
pub(crate) mod axis;
mod brokers;
mod capacity;
pub(crate) mod chart;
mod charts;
mod comparison;
mod course;
mod data;
mod grid;
mod hosts;
mod html;
mod intervals;
mod ladder;
mod lang;
mod many;
mod page;
mod services;
mod single;
mod steps_table;
pub(crate) mod svg;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod words;

use crate::environment::Environment;
use crate::record::{BrokerRow, ResourceRow, RunRecord, SeriesRow};
use crate::run::StepCurves;

pub use comparison::comparison_html;
pub(crate) use html::with_files;
pub use html::{escape, html};
pub use lang::Lang;
pub(crate) use text::closing_text;
pub use text::summary_text;

/// What a report shows.
#[derive(Clone, Copy, Debug)]
pub struct ReportData<'a> {
    /// The record.
    pub record: &'a RunRecord,
    /// Its seconds.
    pub rows: &'a [SeriesRow],
    /// Percentile curves, one per step.
    pub curves: &'a [StepCurves],
    /// The watched hosts, in the order of time; each row names its host.
    pub hosts: &'a [ResourceRow],
    /// The seconds of each broker, where there are several.
    pub brokers: &'a [BrokerRow],
    /// The machine.
    pub environment: &'a Environment,
    /// The language of its words.
    pub lang: Lang,
}
