//! What the console asks the program for that it serves: it knows no scenarios and runs nothing
//! itself.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use serde_json::Value;

/// The program behind the console.
pub trait Toolbox: Send + Sync {
    /// What a command line, without the program, would do, and all that is wrong with it; by the
    /// same code as the command line itself.
    fn preview(&self, arguments: &[String]) -> ToolPreview;

    /// Scenarios with their variables, suites, and names of published rows.
    fn scenarios(&self) -> Value;

    /// What an uploaded plan or scenario file has.
    fn inspect(&self, file: &Path) -> ToolInspection;

    /// How the run of a recorded command line, without the program, is made again; `ran` is the
    /// file of the scenario as it ran (the first of several).
    ///
    /// # Errors
    /// A sentence, when it cannot be.
    fn repeat(
        &self,
        recorded: &[String],
        ran: Option<&str>,
        from: RepeatFrom<'_>,
    ) -> Result<ToolRepeat, String>;

    /// What comparing the runs in these directories with the first one gives.
    ///
    /// # Errors
    /// A sentence, when they cannot be compared.
    fn compare(&self, runs: &[PathBuf]) -> Result<Value, String>;

    /// What this machine's settings allow.
    fn examine(&self) -> Vec<ToolRemark>;

    /// Whether the limits of the generator were measured here.
    fn is_calibrated(&self) -> bool;

    /// Where the bus is that the console was given, with agents of other machines.
    fn bus(&self) -> Option<String>;

    /// The agents on that bus, a list, with how their clocks stand to this machine's.
    ///
    /// # Errors
    /// A sentence, when there is no bus, or it does not answer.
    fn agents(&self) -> Result<Value, String>;

    /// The program, to be started with a command line.
    ///
    /// # Errors
    /// When the system does not tell where it is.
    fn program(&self) -> io::Result<Command>;
}

/// The scenario of a run that is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatFrom<'a> {
    /// That of its command line.
    Line,
    /// The one that ran, which has the load and the credentials of the command line.
    Ran,
    /// This file, in place of the one that the command line names.
    File(&'a str),
}

/// What a command line would do.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ToolPreview {
    /// The scenario as it would run.
    pub scenario_toml: Option<String>,
    /// Its load.
    pub offered: Option<ToolOffer>,
    /// The variables of a scenario that no list has, such as one of a published report.
    pub variables: Value,
    /// What a reader should know before the start.
    #[serde(skip)]
    pub warnings: Vec<ToolText>,
    /// What keeps it from running.
    #[serde(skip)]
    pub problems: Vec<ToolProblem>,
}

/// The load of a run; rates are per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ToolOffer {
    /// Clients.
    pub clients: u64,
    /// Of them, those that publish.
    pub publishers: u64,
    /// Of them, those that subscribe.
    pub subscribers: u64,
    /// Messages to the brokers; absent where publishers send as fast as the broker lets them.
    pub messages_in_per_s: Option<f64>,
    /// Messages from the brokers.
    pub messages_out_per_s: Option<f64>,
    /// Payload to the brokers, in bytes.
    pub bytes_in_per_s: Option<f64>,
    /// Payload from the brokers, in bytes.
    pub bytes_out_per_s: Option<f64>,
    /// All planned phases, in seconds.
    pub duration_s: f64,
    /// Open files.
    pub descriptors: u64,
    /// Cores of the generator, estimated.
    pub cores: f64,
}

/// Something that is wrong with a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolProblem {
    /// The flag that it is about, such as `--var`.
    pub flag: Option<String>,
    /// A sentence.
    pub message: String,
}

/// What an uploaded file has.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ToolInspection {
    /// Its variables.
    pub variables: Value,
    /// Its groups of clients, each with `name` and `virtual_users`.
    pub groups: Value,
    /// Data files that a plan reads, each with `name`, `line`, `columns` and `rows`.
    pub files: Value,
    /// A sentence for each of them that is not there.
    #[serde(skip)]
    pub missing: Vec<String>,
    /// What is wrong with it.
    #[serde(skip)]
    pub problems: Vec<ToolProblem>,
}

/// A recorded command line, to be made again.
#[derive(Clone, Debug, Default)]
pub struct ToolRepeat {
    /// The command line, without the program and without what was about the earlier run.
    pub words: Vec<String>,
    /// It runs one scenario, once or several times.
    pub is_single: bool,
    /// Its scenario was a file.
    pub takes_file: bool,
    /// The same as a request of the API, as far as that has fields.
    pub request: Value,
    /// Flags with their values that it has no fields for.
    pub left_out: Vec<String>,
    /// What keeps it from being made again as it was.
    pub problems: Vec<ToolProblem>,
}

/// Something about this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolRemark {
    /// `ok`, `warning` or `problem`.
    pub level: &'static str,
    /// A sentence.
    #[serde(flatten)]
    pub text: ToolText,
}

/// A sentence in both languages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolText {
    /// In English.
    #[serde(rename = "text")]
    pub en: String,
    /// In Chinese; in English where only that is known.
    #[serde(rename = "text_zh")]
    pub zh: String,
}

impl ToolText {
    /// The same sentence in two languages.
    pub fn new(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self { en: en.into(), zh: zh.into() }
    }

    /// A sentence that is only known in English.
    pub fn english(en: &str) -> Self {
        Self::new(en, en)
    }
}
