//! What `cargo test` said about tests that failed, to be said again at the very end.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::shell;

/// Runs a command with its output shown; returns whether it succeeded and what failed.
pub(crate) fn watch(command: &mut Command) -> Result<(Result<()>, Failures)> {
    let shown = shell::display(command);
    eprintln!("$ {shown}");
    let context = || format!("cannot run `{shown}`");
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(context)?;
    let mut failures = Failures::default();
    if let Some(output) = child.stdout.take() {
        let mut stdout = std::io::stdout().lock();
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line.with_context(context)?).into_owned();
            writeln!(stdout, "{line}").with_context(context)?;
            failures.take(line);
        }
    }
    let status = child.wait().with_context(context)?;
    let outcome = match status.success() {
        true => Ok(()),
        false => Err(anyhow::anyhow!("`{shown}` ended with {status}")),
    };
    Ok((outcome, failures))
}

/// Collects the part between `failures:` and `test result:` of each test binary.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    pub(crate) names: Vec<String>,
    /// All their output.
    pub(crate) lines: Vec<String>,
    inside: bool,
}

impl Failures {
    fn take(&mut self, line: String) {
        if line.starts_with("test result:") {
            self.inside = false;
        } else if line == "failures:" {
            self.inside = true;
        } else if self.inside {
            // `---- name stdout ----`, or `---- name ----` where another harness says it.
            let name = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----"));
            if let Some(name) = name {
                self.names.push(name.strip_suffix(" stdout").unwrap_or(name).to_owned());
            }
            self.lines.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_named_with_their_output() {
        let said = "running 3 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n\
                    ---- b stdout ----\nfirst words\n\n\nfailures:\n    b\n\n\
                    test result: FAILED. 2 passed; 1 failed\n\nrunning 1 test\n\nfailures:\n\n\
                    ---- mimic::c ----\nother words\n\nfailures:\n    mimic::c\n\n\
                    test result: FAILED. 0 passed; 1 failed\nlast words";
        let mut failures = Failures::default();
        said.lines().for_each(|line| failures.take(line.to_owned()));
        assert_eq!(failures.names, ["b", "mimic::c"]);
        let text = failures.lines.join("\n");
        assert!(text.contains("first words") && text.contains("other words"), "{text}");
        assert!(!text.contains("test a ... ok") && !text.contains("last words"), "{text}");
    }
}
