//! The basis of a change's judgement, in words.

use tacho_record::{Basis, Change};

use super::{Lang, statements};

statements! {
    /// The basis of a change's judgement.
    basis(lang, Basis);
    Basis::IncludesZero => [] "the interval includes zero", "置信区间包含零";
    Basis::BelowFloor => [] "below the noise floor", "低于噪声下限";
    Basis::AboveFloor => []
        "the interval excludes zero, above the noise floor", "置信区间不含零，且高于噪声下限";
    Basis::FewRepeats { repeats, least } => []
        "{repeats} of at least {least} repeats", "只有 {repeats} 次重复，至少需要 {least} 次";
    Basis::FirstIsZero => [] "the first side's is zero", "第一方的值为零";
    Basis::FirstNotObserved => [] "not observed on the first side", "第一方未观测到";
    Basis::NotObserved => [] "not observed", "未观测";
}

impl Lang {
    /// The basis of a change's judgement; a sentence of an old record as it is.
    pub(crate) fn reason_of(self, change: &Change) -> String {
        change.basis.as_ref().map_or_else(|| change.reason.clone(), |basis| self.basis(basis))
    }
}
