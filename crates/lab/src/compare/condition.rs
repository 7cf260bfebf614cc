//! What a comparison must meet in CI.

use super::figure::{FIGURES, Figure};
use super::statistics::REPEATS_MIN;
use tacho_record::{
    Change, Comparison, ConditionCause, ConditionOutcome, ConditionResult, FigureName, FigureRow,
    Judgement, Requirement, Scale,
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
    figure: Option<FigureName>,
    /// The limit: percent, or for a figure that has zeros its own unit.
    limit: f64,
    /// Is the limit in percent?
    is_percent: bool,
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
                    let names: Vec<&str> = FIGURES.iter().map(|known| known.name.name()).collect();
                    names.join(", ")
                };
                let figure = Figure::find(name.trim())
                    .ok_or_else(|| format!("there is no figure '{name}'; there are {}", names()))?;
                (Some(figure), limit)
            }
        };
        let limit = limit.trim();
        let is_percent = figure.is_none_or(Figure::has_percent);
        let number = match (is_percent, limit.strip_suffix('%')) {
            (true, Some(number)) | (false, Some(number)) => number.trim(),
            (true, None) => return Err(format!("'{limit}' needs a %, as in 5%")),
            (false, None) => limit,
        };
        match number.parse::<f64>() {
            Ok(limit) if limit.is_finite() && limit >= 0.0 => {
                Ok(Self { figure: figure.map(|figure| figure.name), limit, is_percent })
            }
            _ => Err(format!("'{limit}' is not a limit: write 5% or e2e_p99=10%")),
        }
    }

    fn is_about(&self, row: &FigureRow) -> bool {
        match self.figure {
            Some(figure) => row.name == figure.name(),
            None => row.scale == Scale::Percent,
        }
    }

    fn exceeded_by(&self, change: &Change) -> bool {
        change.verdict == Judgement::Worse
            && change.change.is_some_and(|change| change.abs() > self.limit)
    }
}

impl Condition {
    /// What it asks for.
    fn requirement(&self) -> Requirement {
        match *self {
            Self::FailIf(FailIf::Worse) => Requirement::NotWorse,
            Self::FailIf(FailIf::NotBetter) => Requirement::Better,
            Self::Regression(Regression { figure, limit, is_percent }) => {
                Requirement::NoRegression { figure, limit, is_percent }
            }
        }
    }

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
        let mut causes: Vec<ConditionCause> = failing
            .map(|(label, row, change)| ConditionCause::Worse {
                point: (*label).to_owned(),
                side: change.side.clone(),
                figure: row.name.clone(),
                change: change.change,
                unit: row.unit,
                scale: row.scale,
            })
            .collect();
        let mut failed = !causes.is_empty();
        if *self == Self::FailIf(FailIf::NotBetter) && told && !failed {
            failed = !all.iter().any(|(_, _, change)| change.verdict == Judgement::Better);
            if failed {
                causes.push(ConditionCause::NothingBetter);
            }
        }
        let outcome = match (failed, told) {
            (true, _) => ConditionOutcome::Failed,
            (false, true) => ConditionOutcome::Holds,
            (false, false) => ConditionOutcome::Undecided,
        };
        if outcome == ConditionOutcome::Undecided {
            causes.push(match all.is_empty() {
                true => ConditionCause::NotObserved,
                false => ConditionCause::FewRepeats { least: REPEATS_MIN as u64 },
            });
        }
        let requirement = Some(self.requirement());
        ConditionResult { requirement, outcome, causes, ..ConditionResult::default() }
    }
}
