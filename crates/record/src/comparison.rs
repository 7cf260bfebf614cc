//! The record of a comparison, as `comparison.json` has it. Within one
//! [`SCHEMA_VERSION`](crate::SCHEMA_VERSION) fields are added, never renamed or removed.

use serde::{Deserialize, Serialize};

use crate::basis::Basis;
use crate::cause::Cause;
use crate::condition::{ConditionCause, Requirement};
use crate::figure::{Better, FigureUnit, Scale};
use crate::given::Given;
use crate::property::{Property, PropertyValue};
use crate::remark::Remark;
use crate::verdict::Verdict;

/// The judgement of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Better, by more than noise.
    Better,
    /// Worse, by more than noise.
    Worse,
    /// Of several figures some are better and some are worse.
    Mixed,
    /// No difference distinguishable from noise.
    NoChange,
    /// Too few repeats to tell.
    #[default]
    Unclear,
}

/// Everything that a comparison found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Comparison {
    /// Version of this form.
    pub schema_version: u32,
    /// Version of the program that wrote it.
    pub tool_version: String,
    /// Name of the comparison: its time and its scenario.
    pub name: String,
    /// What the user calls it and says about it.
    #[serde(skip_serializing_if = "Given::is_empty")]
    pub given: Given,
    /// Name of the scenario.
    pub scenario: String,
    /// Its description.
    pub description: String,
    /// Its description in Chinese; empty where it has none.
    pub description_zh: String,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
    /// How long it took, in seconds; 0 where runs that were there already are compared.
    pub elapsed_s: f64,
    /// Were the repeats of all sides made in turns, in one session?
    pub interleaved: bool,
    /// The other sides against the first, all figures together.
    pub verdict: Judgement,
    /// How differences are distinguished from noise.
    pub method: Method,
    /// The sides; all others are compared with the first.
    pub sides: Vec<ComparisonSide>,
    /// Further repeats of the first condition, which only its noise floor knows.
    pub aa_repeats: Vec<Repeat>,
    /// Repeats that replaced repeats that do not count, including those that do not count either
    /// among them.
    pub made_up: u64,
    /// One for a single scenario, one per step of ladders.
    pub points: Vec<Point>,
    /// Differences between the environments of the sides.
    pub environment: Vec<Difference>,
    /// Differences between their scenarios.
    pub scenario_differences: Vec<Difference>,
    /// The conditions of the comparison.
    pub conditions: Vec<ConditionResult>,
    /// Notes about the comparison.
    pub notes: Vec<String>,
    /// The same as data, in the same order; absent from records of version 1.
    pub remarks: Vec<Remark>,
    /// The command that made it, without passwords and tokens.
    pub command_line: Vec<String>,
}

/// How differences are distinguished from noise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Method {
    /// Confidence of the intervals, and share of draws of equals below the floor.
    pub confidence: f64,
    /// Draws of each bootstrap.
    pub draws: u64,
    /// Repeats per side from which on there is an interval.
    pub repeats_min: u64,
    /// Seed of the draws.
    pub seed: u64,
    /// Changes below this percentage are never reported.
    pub floor_percent_min: f64,
}

/// One condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComparisonSide {
    /// Short name.
    pub name: String,
    /// What it is.
    pub label: String,
    /// The same as data; absent where directories were given, and from records of version 1.
    pub what: Option<SideLabel>,
    /// Command that was run before each repeat.
    pub before: Option<String>,
    /// Its repeats, in the order in which they were made.
    pub repeats: Vec<Repeat>,
}

/// What a side is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SideLabel {
    /// Tacho's own broker.
    OwnBroker {
        /// Its arguments, with spaces between.
        arguments: String,
    },
    /// A command or a URL, as it is.
    #[serde(untagged)]
    Text(String),
}

/// A command that was run before a repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BeforeRun {
    /// The command.
    pub command: String,
    /// Its exit code; absent where a signal ended it.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub seconds: f64,
    /// Its output, at most the last few kilobytes.
    pub output: String,
}

/// One run of a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repeat {
    /// Its directory: below that of the comparison, or as it was given.
    pub directory: String,
    /// When it began.
    pub started_at: String,
    /// Its own verdict.
    pub verdict: Verdict,
    /// Do its figures count? They do not when the generator or the network was the bottleneck, or
    /// it was aborted.
    pub counts: bool,
    /// The cause of its verdict.
    pub reasons: Vec<String>,
    /// The same as data, in the same order; absent from records of version 1.
    pub causes: Vec<Cause>,
    /// Whether it replaced a repeat that does not count.
    pub made_up: bool,
    /// The commands run before it.
    pub before: Option<BeforeRun>,
}

/// Figures at one point: of the whole, or of one step of a ladder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// Which step; empty when there is one only.
    pub label: String,
    /// Value of the stepped variable.
    pub x: Option<f64>,
    /// The other sides against the first.
    pub verdict: Judgement,
    /// All figures that were observed.
    pub figures: Vec<FigureRow>,
}

/// One figure of all sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FigureRow {
    /// Its short name: that of a [`FigureName`](crate::FigureName).
    pub name: String,
    /// For people.
    pub label: String,
    /// Its unit.
    pub unit: FigureUnit,
    /// Which way is good.
    pub better: Better,
    /// Are changes in percent of the first side, or in the unit?
    pub scale: Scale,
    /// Values of each side.
    pub sides: Vec<Spread>,
    /// The first condition against itself; absent without repeats for it.
    pub aa: Option<Again>,
    /// The changes of all sides but the first.
    pub changes: Vec<Change>,
}

impl Comparison {
    /// A/A repeats that count.
    pub fn aa_counting(&self) -> usize {
        self.aa_repeats.iter().filter(|repeat| repeat.counts).count()
    }
}

impl FigureRow {
    /// A change with sign and unit.
    pub fn show_change(&self, change: &Change) -> String {
        change.change.map_or_else(|| "–".to_owned(), |value| self.signed(value))
    }

    /// A difference with its sign, in percent or in the figure's unit.
    pub fn signed(&self, value: f64) -> String {
        self.scale.signed(self.unit, value)
    }

    /// The values of all sides and, `with_aa`, those of the first condition's further repeats,
    /// which may have none of this figure.
    pub fn spreads(&self, with_aa: bool) -> impl Iterator<Item = Option<&Spread>> {
        let aa = with_aa.then(|| self.aa.as_ref().map(|aa| &aa.spread));
        self.sides.iter().map(Some).chain(aa)
    }
}

/// The repeats of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// The values that count, in the order of the repeats.
    pub values: Vec<f64>,
    /// Their median.
    pub median: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
}

/// Further repeats of the first condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Again {
    /// Their values.
    pub spread: Spread,
    /// Their differences from the first side, judged as for any other side.
    pub change: Change,
}

/// A side against the first one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Change {
    /// Name of the side.
    pub side: String,
    /// Difference of the medians, as the row's scale has it.
    pub change: Option<f64>,
    /// Lower end of its confidence interval.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// What it must exceed to be told from noise: the greatest of the following two, of one
    /// percent and of the figure's resolution.
    pub floor: Option<f64>,
    /// The 95th percentile of A/A differences, drawn from all repeats of the first condition.
    pub floor_drawn: Option<f64>,
    /// An A/A comparison that was made: the first side with its further repeats, or every other of
    /// its own with those between.
    pub floor_seen: Option<f64>,
    /// Its judgement.
    pub verdict: Judgement,
    /// Why, in a few words.
    pub reason: String,
    /// The same as data; absent from records of version 1.
    pub basis: Option<Basis>,
}

/// Something that is not the same on all sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Difference {
    /// What.
    pub name: String,
    /// Its value on each side; several where it changed between the repeats of a side.
    pub values: Vec<String>,
    /// What, as data; absent from records of version 1.
    pub property: Option<Property>,
    /// The values of each side as data; absent from records of version 1.
    pub property_values: Vec<Vec<PropertyValue>>,
}

/// A condition and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionResult {
    /// As it was asked for.
    pub condition: String,
    /// The same as data; absent from records of version 1.
    pub requirement: Option<Requirement>,
    /// Its outcome.
    pub outcome: ConditionOutcome,
    /// Why.
    pub reasons: Vec<String>,
    /// The same as data, in the same order; absent from records of version 1.
    pub causes: Vec<ConditionCause>,
}

/// The outcome of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionOutcome {
    /// It holds.
    Holds,
    /// It does not.
    Failed,
    /// There were too few repeats to tell.
    #[default]
    Undecided,
}

impl Judgement {
    /// As `comparison.json` writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Mixed => "mixed",
            Self::NoChange => "no_change",
            Self::Unclear => "unclear",
        }
    }

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Mixed => "better in some figures, worse in others",
            Self::NoChange => "no change",
            Self::Unclear => "unclear",
        }
    }

    /// The combined result of several figures.
    pub fn together(all: impl IntoIterator<Item = Self>) -> Self {
        let (mut better, mut worse, mut told) = (false, false, false);
        for one in all {
            better |= matches!(one, Self::Better | Self::Mixed);
            worse |= matches!(one, Self::Worse | Self::Mixed);
            told |= one != Self::Unclear;
        }
        match (better, worse) {
            (true, true) => Self::Mixed,
            (true, false) => Self::Better,
            (false, true) => Self::Worse,
            (false, false) if told => Self::NoChange,
            (false, false) => Self::Unclear,
        }
    }
}

impl ConditionOutcome {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Failed => "does not hold",
            Self::Undecided => "cannot be told",
        }
    }
}
