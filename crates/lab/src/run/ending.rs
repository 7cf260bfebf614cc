//! Why a run ended.

use tacho_load::End;
use tacho_record::Cause;

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All phases were run.
    Completed,
    /// It was stopped on request.
    Aborted,
    /// The broker could not be reached, went away, or did not deliver the readiness probe.
    TargetFailed(String),
    /// The generator itself failed.
    GeneratorFailed(String),
}

/// What the engine's end means: the ending, and the cause of the verdict `aborted`. `by` is the
/// output whose failure ended it.
pub(super) fn ending(end: End, by: Option<(String, String)>) -> (Ending, Option<Cause>) {
    let sentence = end.to_string();
    match end {
        End::Completed => (Ending::Completed, None),
        End::Aborted => {
            let failed = |(output, why)| Cause::OutputFailed { output, why };
            (Ending::Aborted, Some(by.map_or(Cause::RunStopped, failed)))
        }
        End::Unreachable(why) => (Ending::TargetFailed(sentence), Some(Cause::Unreachable { why })),
        End::AllLost(why) => (Ending::TargetFailed(sentence), Some(Cause::AllLost { why })),
        End::ProbeFailed { missing, expected, waited_ms, first_topic } => {
            let cause = Cause::ProbeFailed { missing, expected, waited_ms, first_topic };
            (Ending::TargetFailed(sentence), Some(cause))
        }
        End::ShareLost { name: agent, threads, of, why } => {
            let (threads, of) = (threads as u64, of as u64);
            let cause = Cause::AgentLost { agent, threads, of, why };
            (Ending::GeneratorFailed(sentence), Some(cause))
        }
        End::Thread(why) => (Ending::GeneratorFailed(sentence), Some(Cause::ThreadFailed { why })),
    }
}
