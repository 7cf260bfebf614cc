//! What a comparison must meet in CI.

use std::fmt;

use super::figure::{FIGURES, Figure};
use super::statistics::REPEATS_MIN;
use tacho_record::{
    Change, Comparison, ConditionOutcome, ConditionResult, FigureRow, Judgement, Scale,
};

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `--fail-if`.
    FailIf(FailIf),
    /// `--max-regression`.
    Regression(Regression),
}

/// When a comparison has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailIf {
    /// A figure is worse.
    Worse,
    /// No figure is better, or one is worse.
    NotBetter,
}

/// By how much figures may be worse.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// One figure; absent for all that are compared in percent.
    figure: Option<&'static str>,
    /// The limit: percent, or for a figure that has zeros its own unit.
    limit: f64,
}

impl FailIf {
    /// Reads `worse` or `not-better`.
    ///
    /// # Errors
    /// A sentence, for anything else.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "worse" => Ok(Self::Worse),
            "not-better" => Ok(Self::NotBetter),
            _ => Err("write worse or not-better".to_owned()),
        }
    }
}

impl Regression {
    /// Reads `5%`, `e2e_p99=10%`, `loss=0.1%`, `acknowledged_lost=0`.
    ///
    /// # Errors
    /// A sentence, for a figure that is not known or a limit that cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (figure, limit) = match text.split_once('=') {
            None => (None, text),
            Some((name, limit)) => {
                let names = || {
                    let names: Vec<&str> = FIGURES.iter().map(|known| known.name).collect();
                    names.join(", ")
                };
                let figure = Figure::find(name.trim())
                    .ok_or_else(|| format!("there is no figure '{name}'; there are {}", names()))?;
                (Some(figure), limit)
            }
        };
        let limit = limit.trim();
        let needs_percent = figure.is_none_or(Figure::has_percent);
        let number = match (needs_percent, limit.strip_suffix('%')) {
            (true, Some(number)) | (false, Some(number)) => number.trim(),
            (true, None) => return Err(format!("'{limit}' needs a %, as in 5%")),
            (false, None) => limit,
        };
        match number.parse::<f64>() {
            Ok(limit) if limit.is_finite() && limit >= 0.0 => {
                Ok(Self { figure: figure.map(|figure| figure.name), limit })
            }
            _ => Err(format!("'{limit}' is not a limit: write 5% or e2e_p99=10%")),
        }
    }

    fn is_about(&self, row: &FigureRow) -> bool {
        match self.figure {
            Some(name) => row.name == name,
            None => row.scale == Scale::Percent,
        }
    }

    fn exceeded_by(&self, change: &Change) -> bool {
        change.verdict == Judgement::Worse
            && change.change.is_some_and(|change| change.abs() > self.limit)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FailIf(FailIf::Worse) => f.write_str("fail if worse"),
            Self::FailIf(FailIf::NotBetter) => f.write_str("fail if not better"),
            Self::Regression(Regression { figure, limit }) => match figure.map(Figure::find) {
                None => write!(f, "no regression above {limit}%"),
                Some(figure) => {
                    let name = figure.map_or("", |figure| figure.name);
                    let unit = if figure.is_some_and(Figure::has_percent) { "%" } else { "" };
                    write!(f, "no regression of {name} above {limit}{unit}")
                }
            },
        }
    }
}

impl Condition {
    /// What comes of it.
    pub fn judge(&self, comparison: &Comparison) -> ConditionResult {
        let rows = comparison.points.iter().flat_map(|point| {
            let of = |row| (point.label.as_str(), row);
            point.figures.iter().map(of)
        });
        let all: Vec<(&str, &FigureRow, &Change)> = rows
            .filter(|(_, row)| match self {
                Self::Regression(regression) => regression.is_about(row),
                Self::FailIf(_) => true,
            })
            .flat_map(|(label, row)| row.changes.iter().map(move |change| (label, row, change)))
            .collect();
        let told = all.iter().any(|(_, _, change)| change.verdict != Judgement::Unclear);
        let fails = |change: &Change| match self {
            Self::FailIf(_) => change.verdict == Judgement::Worse,
            Self::Regression(regression) => regression.exceeded_by(change),
        };
        let failing = all.iter().filter(|(_, _, change)| fails(change));
        let mut reasons: Vec<String> = failing
            .map(|(label, row, change)| {
                let place = if label.is_empty() { String::new() } else { format!("{label}: ") };
                let shown = row.show_change(change);
                format!("{place}{} is worse in {}: {shown}", change.side, row.label)
            })
            .collect();
        let mut failed = !reasons.is_empty();
        if *self == Self::FailIf(FailIf::NotBetter) && told && !failed {
            failed = !all.iter().any(|(_, _, change)| change.verdict == Judgement::Better);
            if failed {
                reasons.push("no figure is better".to_owned());
            }
        }
        let outcome = match (failed, told) {
            (true, _) => ConditionOutcome::Failed,
            (false, true) => ConditionOutcome::Holds,
            (false, false) => ConditionOutcome::Undecided,
        };
        if outcome == ConditionOutcome::Undecided {
            let sentence = match all.is_empty() {
                true => "the figure was not observed".to_owned(),
                false => format!(
                    "a difference can be told from noise with at least {} repeats per side that \
                     count",
                    REPEATS_MIN
                ),
            };
            reasons.push(sentence);
        }
        ConditionResult { condition: self.to_string(), outcome, reasons }
    }
}
