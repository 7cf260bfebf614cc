//! The run record: a run's conditions, figures and verdict.
//!
//! `summary.json` is this structure. It is a contract: within one [`SCHEMA_VERSION`] fields are
//! added, never renamed, removed or given another meaning. Everything else in a run directory
//! (report, tables, time series) renders the same data.

mod action;
mod agents;
mod basis;
mod campaign;
mod cause;
mod check;
mod comparison;
mod condition;
mod consequence;
mod course;
mod cpu;
mod curves;
mod data;
mod direction;
mod disturbance;
mod effect;
mod environment;
mod figure;
mod given;
mod headline;
mod host;
mod hosts;
mod latency;
mod logins;
mod named;
mod network_limit;
mod observation;
mod obstacle;
pub mod output;
pub mod past;
mod percentiles;
mod phase;
mod property;
mod read;
mod remark;
mod run;
mod search;
mod series;
mod step;
mod target;
mod timestamp;
mod verdict;
mod version;
mod whose_cpu;

pub use action::{ActionKind, ActionRecord, ActionState};
pub use agents::{AgentClock, AgentLoss, AgentRecord, StepAgent};
pub use basis::Basis;
pub use campaign::{
    Capacity, DeclaredLost, Estimator, Finding, Position, Recommendation, RunKind, Series,
    Severity, SharedFairness, Skipped, StepTarget, Trial, TrialOutcome,
};
pub use cause::Cause;
pub use check::{Check, CheckName};
pub use comparison::{
    Again, BeforeRun, Change, Comparison, ComparisonSide, ConditionOutcome, ConditionResult,
    Difference, FigureRow, Judgement, Method, Point, Repeat, SideLabel, Spread,
};
pub use condition::{ConditionCause, Requirement};
pub use consequence::{Consequence, CutShort};
pub use course::{PhaseRecord, Restart};
pub use curves::{SideCurve, StepCurves, StepSecond};
pub use data::RunData;
pub use direction::Direction;
pub use disturbance::{Disturbance, DisturbanceLimits, DisturbedSeconds, Handling};
pub use effect::ActionEffect;
pub use environment::{Environment, Interface};
pub use figure::{Better, FigureName, FigureUnit, Scale};
pub use given::Given;
pub use headline::{Headline, HeadlineName, HeadlineUnit};
pub use hosts::{HostUse, MetricUse, MonitorRecord, ResourceRow};
pub use latency::{CurvePoint, LatencyStats, curve, percentile};
pub use logins::{LoginKind, LoginsOfKind, StepLogins};
pub use network_limit::NetworkLimit;
pub use observation::Observation;
pub use obstacle::{CoreRates, Obstacle, Remedy};
pub use output::{OutputError, RunDirectory};
pub use percentiles::{Cumulative, curve_of, curve_of_file, parse_percentiles, read_percentiles};
pub use phase::PhaseName;
pub use property::{Property, PropertyValue};
pub use read::{ReadError, read_comparison, read_json, read_record};
pub use remark::Remark;
pub use run::RunRecord;
pub use search::{Purpose, SearchEnd};
pub use series::{BrokerRow, BrokerSpent, GroupRow, PartBy, PartRow, SeriesRow};
pub use step::{
    Gate, LostRange, SUSTAINED_PERCENT, Step, StepGroup, ThresholdResult, ViolationCounts,
};
pub use tacho_load::PhaseKind;
pub use tacho_monitor::{DataDisk, HostDescription};
pub use target::{NoOwnCore, Placement, TargetKind, TargetRecord, Timing};
pub use timestamp::Timestamp;
pub use verdict::Verdict;
pub use version::SCHEMA_VERSION;
pub use whose_cpu::WhoseCpu;
