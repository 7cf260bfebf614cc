//! Exit codes: a contract with scripts.

use tacho_console::ConsoleError;
use tacho_lab::run::Ending;
use tacho_record::Verdict;
use tacho_rig::RigError;

/// Everything went well; for `tacho run`: the verdict is `ok`.
pub(crate) const OK: u8 = 0;
/// Wrong usage, or something unexpected.
pub(crate) const UNEXPECTED: u8 = 1;
/// `tacho sub`: messages are missing at the end of its time, as mosquitto_sub says it.
pub(crate) const TIMED_OUT: u8 = 27;
/// A threshold does not hold. That 99 % of the offered load must be carried is one of every run.
pub(crate) const THRESHOLD: u8 = 99;
/// The scenario or a setting makes no sense.
pub(crate) const INVALID_CONFIG: u8 = 104;
/// Stopped by a signal.
pub(crate) const ABORTED: u8 = 105;
/// Messages were lost, duplicated, reordered or damaged against their QoS, or logins were decided
/// wrongly.
pub(crate) const VIOLATION: u8 = 110;
/// The figures say nothing about the broker: the generator or the network was the bottleneck, or
/// the load was not steady yet.
pub(crate) const INVALID_RUN: u8 = 111;
/// The broker could not be reached, went away, or did not deliver the readiness probe.
pub(crate) const TARGET_UNREACHABLE: u8 = 112;
/// Another run has the machine, and waiting was not wanted.
pub(crate) const MACHINE_TAKEN: u8 = 113;

/// The table for `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
    0  the verdict is ok
    1  wrong usage, or an unexpected error
   99  a threshold failed, or less than 99 % of the offered load was carried (not_sustained)
  104  the scenario or a setting is invalid
  105  stopped by a signal, by the live page, or by an output with on-failure=end; the report
       covers the run up to then
  110  QoS contract broken: lost, duplicated, reordered or damaged messages (qos_violation);
       wrong credentials accepted, or right ones refused (login_violation)
  111  invalid run: the generator was the bottleneck (generator_bound) or the network
       (network_bound), the hypervisor or other programs disturbed it (disturbed), or the load
       was not steady in the measured window (not_steady); of a comparison: too few repeats
       count (unclear)
  112  the broker could not be reached, went away, or did not deliver the readiness probe
  113  another run has this machine, and --no-wait was given";

/// The table for commands that make many runs.
pub(crate) fn campaign_help() -> String {
    format!("The exit code is that of the worst step; see docs/exit-codes.md.\n\n{HELP}")
}

/// An error with its exit code.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Exit code.
    pub(crate) code: u8,
    /// Names the fault and its place, and says how to correct it.
    pub(crate) message: String,
}

impl Failure {
    /// An error; `message` is a sentence without a prefix.
    pub(crate) fn new(code: u8, message: impl std::fmt::Display) -> Self {
        Self { code, message: format!("error: {message}") }
    }

    /// The message without a prefix.
    pub(crate) fn sentence(&self) -> &str {
        self.message.strip_prefix("error: ").unwrap_or(&self.message)
    }
}

impl From<ConsoleError> for Failure {
    fn from(error: ConsoleError) -> Self {
        let code = match &error {
            ConsoleError::Bind { .. }
            | ConsoleError::Folder { .. }
            | ConsoleError::IsRun(_)
            | ConsoleError::Served(_)
            | ConsoleError::Access(_) => INVALID_CONFIG,
            ConsoleError::Serve(_) | ConsoleError::Token(_) => UNEXPECTED,
        };
        Self::new(code, error)
    }
}

impl From<RigError> for Failure {
    fn from(error: RigError) -> Self {
        let code = match &error {
            RigError::Stopped => ABORTED,
            RigError::NoSuchCore { .. } => INVALID_CONFIG,
            RigError::ThisProgram(_)
            | RigError::Write { .. }
            | RigError::Spawn { .. }
            | RigError::NoPort(_)
            | RigError::Thread(_) => UNEXPECTED,
            RigError::Start { .. }
            | RigError::EndedEarly { .. }
            | RigError::Ended { .. }
            | RigError::NotListening { .. }
            | RigError::BridgeDown { .. }
            | RigError::NoAnswer { .. }
            | RigError::OtherAnswer { .. } => TARGET_UNREACHABLE,
        };
        Self::new(code, error)
    }
}

/// The exit code of a run that came to an end of some kind.
pub(crate) fn code_of(verdict: Verdict, ending: &Ending) -> u8 {
    match (ending, verdict) {
        (Ending::Aborted, _) => ABORTED,
        (Ending::TargetFailed(_), _) => TARGET_UNREACHABLE,
        (Ending::GeneratorFailed(_), _) => UNEXPECTED,
        (Ending::Completed, verdict) => match verdict {
            Verdict::Ok => OK,
            Verdict::ThresholdFailed | Verdict::NotSustained => THRESHOLD,
            Verdict::Aborted => UNEXPECTED,
            Verdict::QosViolation | Verdict::LoginViolation => VIOLATION,
            Verdict::GeneratorBound
            | Verdict::Disturbed
            | Verdict::NetworkBound
            | Verdict::NotSteady
            | Verdict::Unclear => INVALID_RUN,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        assert_eq!(code_of(Verdict::Ok, &Ending::Completed), 0);
        assert_eq!(code_of(Verdict::NotSustained, &Ending::Completed), 99);
        assert_eq!(code_of(Verdict::NotSteady, &Ending::Completed), 111);
        assert_eq!(code_of(Verdict::Unclear, &Ending::Completed), 111);
        assert_eq!(code_of(Verdict::QosViolation, &Ending::Completed), 110);
        assert_eq!(code_of(Verdict::LoginViolation, &Ending::Completed), 110);
        assert_eq!(code_of(Verdict::Aborted, &Ending::Aborted), 105);
        assert_eq!(code_of(Verdict::Aborted, &Ending::TargetFailed(String::new())), 112);
        for code in ["  0  ", " 1  ", " 99  ", "104  ", "105  ", "110  ", "111  ", "112  ", "113  "]
        {
            assert!(HELP.contains(code), "{code}");
        }
    }
}
