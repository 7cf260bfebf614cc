//! Rules about single files.

use super::Finding;

/// Columns of a line of code.
const LINE_LENGTH_MAX: usize = 100;

/// Lines of a source file. One concept per file keeps most below half of this.
const FILE_LINES_MAX: usize = 600;

/// Files that may be longer, and up to where.
const LONG_FILES: &[(&str, usize)] = &[];

/// Folders whose code is handed the time and must not look at a clock.
const CLOCKLESS: [&str; 4] =
    ["crates/codec/src/", "crates/topic/src/", "crates/session/src/", "crates/broker/src/"];

/// Files that may name what the rules forbid.
const RULE_FILES: [&str; 2] = ["xtask/src/tidy/source.rs", "xtask/src/tidy/tests.rs"];

/// Words that must not stay, and why. Whole words, case-sensitive.
const BANNED: [(&str, &str); 9] = [
    ("FIXME", "fix it"),
    ("TODO", "do it, or file an issue"),
    ("XXX", "say what is meant"),
    ("dbg!", "a debugging aid"),
    ("todo!", "do it"),
    ("unimplemented!", "implement it, or make it unreachable by type"),
    ("/home/", "a path of one machine"),
    ("/root/", "a path of one machine"),
    ("unbounded_channel", "every queue has a bound"),
];

/// Reading a clock.
const CLOCKS: [&str; 2] = ["Instant::now", "SystemTime::now"];

/// Checks one text file. `name` is relative to the root.
pub(super) fn check(name: &str, text: &str, findings: &mut Vec<Finding>) {
    if is_data(name) {
        return;
    }
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    whitespace(name, text, extension, findings);
    if !RULE_FILES.contains(&name) {
        banned(name, text, findings);
    }
    match extension {
        "rs" => {
            lengths(name, text, findings);
            clocks(name, text, findings);
            paths(name, text, findings);
        }
        "py" | "mjs" | "js" | "ts" | "sh" => lengths(name, text, findings),
        "md" => headings(name, text, findings),
        _ => {}
    }
}

/// Recorded, generated or foreign files are not written by hand.
fn is_data(name: &str) -> bool {
    let generated = ["Cargo.lock", "LICENSE", "package-lock.json"];
    let file = name.rsplit('/').next().unwrap_or(name);
    generated.contains(&file)
        || name.contains("/corpus/")
        || name.contains("proptest-regressions")
        || name.starts_with("bench/runs/") && !name.ends_with(".md")
        || name.starts_with("web/dist/")
        || matches!(name.rsplit('.').next(), Some("svg" | "html" | "csv" | "hlog"))
}

fn whitespace(name: &str, text: &str, extension: &str, findings: &mut Vec<Finding>) {
    if !text.is_empty() && !text.ends_with('\n') {
        findings.push(Finding::new(name, text.lines().count(), "no newline at the end"));
    }
    for (number, line) in numbered(text) {
        if line.ends_with('\r') {
            findings.push(Finding::new(name, number, "a carriage return"));
        } else if line.ends_with([' ', '\t']) {
            findings.push(Finding::new(name, number, "white space at the end of the line"));
        }
        if extension == "rs" && line.contains('\t') {
            findings.push(Finding::new(name, number, "a tab"));
        }
    }
}

fn banned(name: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in numbered(text) {
        for (word, why) in BANNED {
            if has_word(line, word) {
                findings.push(Finding::new(name, number, format!("`{word}`: {why}")));
            }
        }
    }
}

/// True when `word` stands in `line` and no letter or digit continues it to either side.
fn has_word(line: &str, word: &str) -> bool {
    let continues = |character: char| character.is_alphanumeric() || character == '_';
    let edge_matters = |character: Option<char>| character.is_some_and(continues);
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        let joined_before = edge_matters(word.chars().next()) && edge_matters(before);
        let joined_after = edge_matters(word.chars().next_back()) && edge_matters(after);
        !(joined_before || joined_after)
    })
}

fn lengths(name: &str, text: &str, findings: &mut Vec<Finding>) {
    let mut lines = 0;
    for (number, line) in numbered(text) {
        lines = number;
        let columns = line.chars().count();
        // Tables, addresses and string literals are not broken for the eye's sake.
        let unbreakable = line.contains('"') || line.contains("://") || line.contains('|');
        if columns > LINE_LENGTH_MAX && !unbreakable {
            let message = format!("{columns} columns, more than {LINE_LENGTH_MAX}");
            findings.push(Finding::new(name, number, message));
        }
    }
    let allowed = LONG_FILES.iter().find(|(file, _)| *file == name);
    let lines_max = allowed.map_or(FILE_LINES_MAX, |(_, lines)| *lines);
    if lines > lines_max {
        let message = format!("{lines} lines, more than {lines_max}: split it by concept");
        findings.push(Finding::new(name, 0, message));
    }
}

fn clocks(name: &str, text: &str, findings: &mut Vec<Finding>) {
    let is_test = name.ends_with("/tests.rs") || name.contains("/tests/");
    if is_test || !CLOCKLESS.iter().any(|folder| name.starts_with(folder)) {
        return;
    }
    for (number, line) in numbered(text) {
        if CLOCKS.iter().any(|clock| line.contains(clock)) {
            findings.push(Finding::new(name, number, "reads a clock: time is passed down"));
        }
    }
}

fn paths(name: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in numbered(text) {
        if line.trim_start().starts_with("#[path") {
            let message = "a module by path: shared test code belongs in crates/testkit";
            findings.push(Finding::new(name, number, message));
        }
    }
}

fn headings(name: &str, text: &str, findings: &mut Vec<Finding>) {
    let titles = prose(text).filter(|(_, line)| line.starts_with("# ")).count();
    if titles != 1 {
        findings.push(Finding::new(name, 0, format!("{titles} titles (`# `), must be one")));
    }
}

/// The lines of a document that are not in a block of code, with their numbers.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n').enumerate().map(|(index, line)| (index + 1, line)).filter(|(_, line)| {
        // The piece behind the last newline is no line.
        !line.is_empty()
    })
}
