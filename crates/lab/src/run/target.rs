//! A broker to load.

use std::path::PathBuf;
use std::sync::Arc;

use super::bridge_log::BridgeLog;
use super::course::Course;
use tacho_record::TargetRecord;

/// A broker to load.
#[derive(Clone, Debug)]
pub struct RunTarget {
    /// For the record.
    pub record: TargetRecord,
    /// Its addresses, with how to reach them.
    pub addresses: Vec<tacho_load::Target>,
    /// Cores that it was given; empty when unknown.
    pub cores: Vec<usize>,
    /// Does it run on this machine?
    pub is_local: bool,
    /// Its data directory, where the run has one for it.
    pub data_dir: Option<PathBuf>,
    /// What happens to it during the run.
    pub course: Arc<Course>,
    /// How its bridges to other brokers of the run stand; nothing is told where it has none.
    pub bridges: Arc<BridgeLog>,
}
