//! What a comparison must meet, and why it does not, as data: `report` has the words.

use serde::{Deserialize, Serialize};

use crate::figure::{FigureName, FigureUnit, Scale};

/// What was asked to hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Requirement {
    /// No figure is worse.
    NotWorse,
    /// A figure is better, and none is worse.
    Better,
    /// No figure is worse by more than a limit.
    NoRegression {
        /// One figure; absent for all that are compared in percent.
        figure: Option<FigureName>,
        /// The limit.
        limit: f64,
        /// Is the limit in percent? Otherwise it is in the figure's unit.
        is_percent: bool,
    },
}

/// Why a condition does not hold, or cannot be decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ConditionCause {
    /// A figure of a side is worse.
    Worse {
        /// Which step; empty when there is one only.
        point: String,
        /// The side.
        side: String,
        /// Name of the figure, as its row has it.
        figure: String,
        /// The change, as the scale has it.
        change: Option<f64>,
        /// Unit of the figure.
        unit: FigureUnit,
        /// Is the change in percent, or in the unit?
        scale: Scale,
    },
    /// No figure is better.
    NothingBetter,
    /// The figure was not observed.
    NotObserved,
    /// There are too few repeats that count.
    FewRepeats {
        /// How many each side needs.
        least: u64,
    },
}
