//! The data of a report.

use tacho_record::{
    BrokerRow, Environment, ResourceRow, RunData, RunRecord, SeriesRow, StepCurves,
};

use crate::lang::Lang;

/// The data of a report.
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

impl<'a> ReportData<'a> {
    /// The report of a run in a language; `None` where nothing ran.
    pub fn new(data: &'a RunData, lang: Lang) -> Option<Self> {
        Some(Self {
            record: &data.record,
            rows: &data.rows,
            curves: &data.curves,
            hosts: &data.hosts,
            brokers: &data.brokers,
            environment: data.environment.as_ref()?,
            lang,
        })
    }
}
