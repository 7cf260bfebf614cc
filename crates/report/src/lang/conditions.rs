//! What comparisons must meet, and why they do not.

use tacho_record::{ConditionCause, ConditionResult, Requirement};

use super::{Lang, statements};

statements! {
    /// Why a condition does not hold, or cannot be decided.
    condition_cause(lang, ConditionCause);
    ConditionCause::Worse { point, side, figure, change, unit, scale } => [
        place = if point.is_empty() { String::new() } else { format!("{point}{}", lang.colon()) };
        figure = lang.figure_named(figure);
        change = change.map_or_else(|| "–".to_owned(), |change| scale.signed(*unit, change));
    ]
        "{place}{side} is worse in {figure}: {change}", "{place}{side} 的{figure}更差：{change}";
    ConditionCause::NothingBetter => [] "no figure is better", "没有指标变好";
    ConditionCause::NotObserved => [] "the figure was not observed", "未观测到该指标";
    ConditionCause::FewRepeats { least } => []
        "distinguishing a difference from noise needs at least {least} repeats per side that count",
        "每一方至少有 {least} 次计入结果的重复，才能将差异与噪声区分";
}

impl Lang {
    /// What was asked to hold.
    pub(crate) fn requirement(self, requirement: &Requirement) -> String {
        match (self, requirement) {
            (Self::En, Requirement::NotWorse) => "fail if worse".to_owned(),
            (Self::Zh, Requirement::NotWorse) => "变差即失败".to_owned(),
            (Self::En, Requirement::Better) => "fail if not better".to_owned(),
            (Self::Zh, Requirement::Better) => "未变好即失败".to_owned(),
            (_, Requirement::NoRegression { figure, limit, is_percent }) => {
                let limit = format!("{limit}{}", if *is_percent { "%" } else { "" });
                match (self, figure.map(|figure| figure.name())) {
                    (Self::En, None) => format!("no regression above {limit}"),
                    (Self::En, Some(name)) => format!("no regression of {name} above {limit}"),
                    (Self::Zh, None) => format!("退步不超过 {limit}"),
                    (Self::Zh, Some(name)) => format!("{name} 的退步不超过 {limit}"),
                }
            }
        }
    }

    /// A condition; that of an old record as it is.
    pub(crate) fn condition_of(self, result: &ConditionResult) -> String {
        let requirement = result.requirement.as_ref();
        requirement.map_or_else(|| result.condition.clone(), |asked| self.requirement(asked))
    }

    /// Why it does not hold; the sentences of an old record as they are.
    pub(crate) fn condition_reasons(self, result: &ConditionResult) -> Vec<String> {
        match result.causes.as_slice() {
            [] => result.reasons.clone(),
            causes => causes.iter().map(|cause| self.condition_cause(cause)).collect(),
        }
    }

    /// A condition, its outcome, and the reason.
    pub(crate) fn condition_was(self, result: &ConditionResult) -> String {
        let colon = self.colon();
        let why = self.condition_reasons(result).join(self.between_reasons());
        let why = if why.is_empty() { why } else { format!("{colon}{why}") };
        format!("{}{colon}{}{why}", self.condition_of(result), self.came_to(result.outcome))
    }
}
