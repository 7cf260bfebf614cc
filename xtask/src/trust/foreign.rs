//! Foreign programs that may never end.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::own_child::OwnChild;

/// Seconds that a foreign program has to end when it is asked to.
const GRACE_S: u64 = 5;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub(super) enum ToolEnd {
    Exit {
        code: i32,
    },
    /// By a signal that it was not sent here.
    Signal,
    /// It was stopped, since it had not ended by then.
    Stopped {
        after_s: u64,
    },
}

/// Runs a foreign program for a bounded time; returns what it wrote, and how it ended. One that
/// takes too long is asked to end (SIGTERM), so that it can say what it knows, and then killed.
pub(super) fn output_within(command: &mut Command, seconds_max: u64) -> Result<(String, ToolEnd)> {
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = OwnChild(command.spawn().context("cannot start it")?);
    let mut stdout = child.0.stdout.take().context("its output is not piped")?;
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let read = stdout.read_to_end(&mut text);
        read.map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let ended = match child.status_within(seconds_max)? {
        Some(status) => status.code().map_or(ToolEnd::Signal, |code| ToolEnd::Exit { code }),
        None => {
            // It may end at this very moment.
            let _ = kill_process(Pid::from_child(&child.0), Signal::TERM);
            child.status_within(GRACE_S)?;
            ToolEnd::Stopped { after_s: seconds_max }
        }
    };
    drop(child);
    let text = reader.join().map_err(|_| anyhow::anyhow!("the reader of its output has failed"))?;
    Ok((text.context("cannot read its output")?, ended))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    fn said(script: &str, seconds_max: u64) -> (String, ToolEnd) {
        let mut command = shell::command("sh");
        output_within(command.args(["-c", script]), seconds_max).expect("it starts")
    }

    #[test]
    fn a_program_that_does_not_end_is_stopped_and_its_words_are_kept() {
        assert_eq!(
            said("echo all fine; exit 3", 60),
            ("all fine\n".into(), ToolEnd::Exit { code: 3 })
        );
        let stopped = ToolEnd::Stopped { after_s: 3 };
        let waits = "trap 'echo 99 %; exit 0' TERM; while :; do sleep 0.05; done";
        assert_eq!(said(waits, 3), ("99 %\n".into(), stopped));
        let deaf = "trap '' TERM; echo started; while :; do sleep 0.05; done";
        assert_eq!(said(deaf, 3), ("started\n".into(), stopped));
        assert_eq!(said("kill -9 $$", 60), (String::new(), ToolEnd::Signal));
    }
}
