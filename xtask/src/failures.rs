//! What tests that failed have said, to be said again at the very end: those of `cargo test`, and
//! those of node with its reporter `spec`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell;

/// Collects the part between `failures:` and `test result:` of each test binary, and what follows
/// node's `✖ failing tests:`.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    pub(crate) names: Vec<String>,
    /// All their output.
    pub(crate) lines: Vec<String>,
    section: Section,
}

/// Where the next line belongs.
#[derive(Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Elsewhere,
    Cargo,
    Node,
}

impl Failures {
    /// Runs a command with its output shown, and adds what failed.
    pub(crate) fn watch(&mut self, command: &mut Command) -> Result<()> {
        let shown = shell::display(command);
        eprintln!("$ {shown}");
        let context = || format!("cannot run `{shown}`");
        let mut child = command.stdout(Stdio::piped()).spawn().with_context(context)?;
        self.section = Section::Elsewhere;
        if let Some(output) = child.stdout.take() {
            let mut stdout = std::io::stdout().lock();
            for line in BufReader::new(output).split(b'\n') {
                let line = String::from_utf8_lossy(&line.with_context(context)?).into_owned();
                writeln!(stdout, "{line}").with_context(context)?;
                self.take(line);
            }
        }
        let status = child.wait().with_context(context)?;
        if !status.success() {
            bail!("`{shown}` ended with {status}");
        }
        Ok(())
    }

    fn take(&mut self, line: String) {
        if line.starts_with("test result:") {
            self.section = Section::Elsewhere;
        } else if line == "failures:" {
            self.section = Section::Cargo;
        } else if line == "✖ failing tests:" {
            self.section = Section::Node;
        } else if self.section != Section::Elsewhere {
            self.names.extend(self.name(&line).map(str::to_owned));
            self.lines.push(line);
        }
    }

    fn name<'a>(&self, line: &'a str) -> Option<&'a str> {
        match self.section {
            Section::Elsewhere => None,
            // `---- name stdout ----`, or `---- name ----` where another harness says it.
            Section::Cargo => {
                let name = line.strip_prefix("---- ")?.strip_suffix(" ----")?;
                Some(name.strip_suffix(" stdout").unwrap_or(name))
            }
            // `✖ name (12.3ms)`
            Section::Node => Some(line.strip_prefix("✖ ")?.rsplit_once(" (")?.0),
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

    #[test]
    fn failed_tests_of_node_are_named_with_their_output() {
        let said = "✔ good (1.0ms)\n✖ bad (0.9ms)\n  first words\nℹ fail 1\n\n\
                    ✖ failing tests:\n\ntest at out/a.mjs:2:25\n✖ bad (really) (0.9ms)\n  1 !== 2";
        let mut failures = Failures::default();
        said.lines().for_each(|line| failures.take(line.to_owned()));
        assert_eq!(failures.names, ["bad (really)"]);
        assert_eq!(
            failures.lines[1..].join("\n"),
            "test at out/a.mjs:2:25\n✖ bad (really) (0.9ms)\n  1 !== 2"
        );
    }
}
