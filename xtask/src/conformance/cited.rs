//! What sources cite, and which tests say that they cover it.

use std::fmt;

/// A normative statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// Of MQTT 5.0, else of 3.1.1.
    pub(super) v5: bool,
    /// Such as `3.1.0-1`.
    pub(super) id: String,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = if self.v5 { "" } else { "3.1.1: " };
        write!(f, "[MQTT-{version}{}]", self.id)
    }
}

/// A test that says what it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestCase {
    pub(super) file: String,
    /// Of its `#[test]`, 1-based.
    pub(super) line: usize,
    /// Such as `broker::behaviours::connect::mqtt_3_1_is_served`.
    pub(super) name: String,
    /// Run on demand only.
    pub(super) ignored: bool,
    pub(super) behaviours: Vec<u16>,
    pub(super) statements: Vec<Statement>,
}

/// The statements cited in one line.
pub(super) fn citations(line: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    for (at, start) in line.match_indices("[MQTT-") {
        let rest = &line[at + start.len()..];
        let Some((id, _)) = rest.split_once(']') else { continue };
        let (v5, id) = match id.strip_prefix("3.1.1: ") {
            Some(id) => (false, id),
            None => (true, id),
        };
        found.push(Statement { v5, id: id.to_owned() });
    }
    found
}

/// The lines of the list of behaviours that a comment names: `4, 5`, `14 to 19, 21`, or `35. Why`.
pub(super) fn behaviours(comment: &str) -> Vec<u16> {
    let mut numbers = Vec::new();
    for item in comment.trim().split(", ") {
        let (item, last) = match item.split_once(". ") {
            Some((item, _)) => (item, true),
            None => (item, false),
        };
        let range = item.split_once(" to ").unwrap_or((item, item));
        let (Ok(from), Ok(to)) = (range.0.parse::<u16>(), range.1.parse::<u16>()) else { break };
        numbers.extend(from..=to);
        if last {
            break;
        }
    }
    numbers
}

/// The tests of a file that cite something. `file` is relative to the root.
pub(super) fn cited_by_tests(file: &str, text: &str) -> Vec<TestCase> {
    let lines: Vec<&str> = text.lines().collect();
    let mut tests = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.trim() == "#[test]") {
        let above = |line: &&&str| line.trim().starts_with("//") || line.trim().starts_with("#[");
        let below = |line: &&&str| !line.contains("fn ");
        let attributes: Vec<&str> = lines[..at].iter().rev().take_while(above).copied().collect();
        let after = &lines[at..];
        let skipped = after.iter().take_while(below).count();
        let Some(function) = after.get(skipped).and_then(|line| function_name(line)) else {
            continue;
        };
        let mut test = TestCase {
            file: file.to_owned(),
            line: at + 1,
            name: format!("{}{function}", modules(file, &lines[..at], indentation(line))),
            ignored: attributes
                .iter()
                .chain(&after[..skipped])
                .any(|line| line.trim().starts_with("#[ignore")),
            behaviours: Vec::new(),
            statements: Vec::new(),
        };
        for comment in attributes.iter().rev().filter_map(|line| line.trim().strip_prefix("//")) {
            test.behaviours.extend(behaviours(comment));
            test.statements.extend(citations(comment));
        }
        if !(test.behaviours.is_empty() && test.statements.is_empty()) {
            tests.push(test);
        }
    }
    tests
}

fn function_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ")?;
    rest.split_once('(').map(|(name, _)| name)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The path of the module that a test at this indentation is in, with `::` at its end.
fn modules(file: &str, above: &[&str], mut indent: usize) -> String {
    let path = file.trim_start_matches("crates/").trim_end_matches(".rs");
    let parts = path.split('/');
    let meant = |part: &&str| !matches!(*part, "src" | "tests" | "mod" | "lib" | "main");
    // `tests` is a folder of its own kind right below the crate, and a module's name further down.
    let mut names: Vec<&str> = parts
        .enumerate()
        .filter(|(depth, part)| *depth == 0 || meant(part) || (*part == "tests" && *depth > 1))
        .map(|(_, part)| part)
        .collect();
    let from_file = names.len();
    for line in above.iter().rev() {
        let opens = line.trim().strip_suffix(" {").and_then(|line| line.split_once("mod "));
        if let Some((_, name)) = opens
            && indentation(line) < indent
        {
            names.insert(from_file, name);
            indent = indentation(line);
        }
    }
    names.iter().map(|name| format!("{name}::")).collect()
}
