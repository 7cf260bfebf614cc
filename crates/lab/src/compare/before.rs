//! Commands that are run before repeats.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tacho_record::BeforeRun;
use tacho_rig::attached::without_secrets;
use tacho_rig::{Cut, ProcessGroup};

use crate::campaign::CampaignError;

/// How long a command may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of its output that are kept in the record; the file beside it has all.
const OUTPUT_MAX: usize = 4096;

/// Runs `command` for the repeat `number` of `side`, its output in `log`.
pub(super) fn run(
    command: &str,
    (side, number): (&str, &str),
    log: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<BeforeRun, CampaignError> {
    let fail = |why: String| {
        let sentence = format!("the command before repeat {number} of {side} {why}: {command}");
        CampaignError::Failed(sentence)
    };
    let unwritable =
        |error| CampaignError::Failed(format!("cannot write {}: {error}", log.display()));
    let output = File::create(log).map_err(unwritable)?;
    let errors = output.try_clone().map_err(unwritable)?;
    let started = Instant::now();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .env("TACHO_SIDE", side)
        .env("TACHO_REPEAT", number)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    without_secrets(&mut shell);
    let group = ProcessGroup::start(&mut shell)
        .map_err(|error| fail(format!("cannot be started ({error})")))?;
    let status = group.wait(started + TIMEOUT, is_stopped).map_err(|cut| match cut {
        Cut::Cancelled => CampaignError::Stopped("stopped before the next repeat began".to_owned()),
        Cut::Deadline => fail(format!("took more than {} s", TIMEOUT.as_secs())),
        Cut::Unknown(error) => fail(format!("cannot be waited for ({error})")),
    })?;
    let said = tail(log);
    if !status.success() {
        let error = fail(format!("failed ({status})"));
        return Err(match said.trim() {
            "" => error,
            said => CampaignError::Failed(format!("{error}\n{said}")),
        });
    }
    Ok(BeforeRun {
        command: command.to_owned(),
        exit_code: status.code(),
        seconds: (started.elapsed().as_secs_f64() * 1e3).round() / 1e3,
        output: said,
    })
}

/// The end of a file, as text.
fn tail(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let from = bytes.len().saturating_sub(OUTPUT_MAX);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_exit_code_are_kept() {
        let place = tempfile::tempdir().expect("temporary directory");
        let log = place.path().join("log");
        let command = "echo $TACHO_SIDE $TACHO_REPEAT; echo bad >&2";
        let ran = run(command, ("a", "3"), &log, &|| false).expect("runs");
        assert_eq!((ran.exit_code, ran.output.as_str()), (Some(0), "a 3\nbad\n"));
        let error = run("echo no; exit 7", ("b", "1"), &log, &|| false).expect_err("fails");
        assert!(matches!(error, CampaignError::Failed(_)), "{error:?}");
        for words in ["repeat 1 of b failed", "7", "\nno"] {
            assert!(error.to_string().contains(words), "{error}");
        }
        let error = run("sleep 50", ("b", "1"), &log, &|| true).expect_err("is stopped");
        assert!(matches!(error, CampaignError::Stopped(_)), "{error:?}");
    }
}
