use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::book::{FILES, book, entries};
use super::said;

#[test]
fn every_code_has_its_words_in_both_languages_with_the_same_values() {
    let [english, chinese] = FILES.map(|file| entries(file).collect::<Vec<_>>());
    for entries in [&english, &chinese] {
        let codes: BTreeSet<_> = entries.iter().map(|(code, _)| code).collect();
        assert_eq!(codes.len(), entries.len(), "a code is there twice");
    }
    assert_eq!(english.len(), chinese.len());
    for phrase in book().phrases() {
        let code = phrase.code;
        let zh = phrase.zh.as_ref().unwrap_or_else(|| panic!("{code} has no words in Chinese"));
        assert_eq!(phrase.en.names(), zh.names(), "{code}");
    }
    for (code, text) in chinese {
        let has_own = text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
        let is_formal =
            ["file.strip_is", "output.flag", "word.broker", "word.target"].contains(&code);
        assert!(has_own || is_formal || text.starts_with("QoS"), "{code} = {text}");
    }
}

#[test]
fn a_message_becomes_code_values_and_chinese() {
    let told = said("the scenario has no group 'pub', only sub, echo").expect("is known");
    assert_eq!(told.code, "scenario.no_group");
    let values = BTreeMap::from([("name", "pub".to_owned()), ("known", "sub, echo".to_owned())]);
    assert_eq!(told.values, values);
    assert_eq!(told.zh, "场景没有组“pub”，只有 sub, echo");
    assert_eq!(said("what another program says"), None);
    assert_eq!(said(""), None);
    assert_eq!(said(&"there is no run 'x'; ".repeat(1_000)), None, "it is too long");
}

#[test]
fn places_several_sentences_and_sentences_within_are_told_too() {
    let zh = |message: &str| said(message).map(|said| said.zh).unwrap_or_default();
    assert_eq!(
        zh("own.toml:3:20: there is no QoS 3; 0, 1 or 2; remove it"),
        "own.toml:3:20：没有 QoS 3；0、1 或 2；请删除它"
    );
    assert_eq!(
        zh("plan.jmx: the plan has 1 unsupported element; line 7: A > B: the element 'C' is not \
            supported; --ignore-unknown skips these elements"),
        "plan.jmx：测试计划有 1 个不支持的元件；第 7 行：A > B：不支持元件“C”；--ignore-unknown 跳过这些元件"
    );
    assert_eq!(
        zh("error: the run 'a' cannot be repeated: cannot read the password file '/p': No such \
            file or directory (os error 2)"),
        "无法重复测试“a”：无法读取密码文件“/p”：没有该文件或目录（系统错误 2）"
    );
    // A name of the user is no word of the program.
    assert_eq!(zh("the scenario has no variable 'password'"), "场景没有变量“password”");
    assert_eq!(zh("the number of clients cannot be 0"), "客户端数不能为 0");
}

#[test]
fn a_message_of_any_form_ends_soon() {
    for unit in ["; ", ": ", "'': ", "line : ", "a.b: ", "' is not ", "no "] {
        let text = unit.repeat(4_000 / unit.len());
        let _ = said(&text);
    }
}

/// Whether a literal of a source is a sentence of it.
type Takes = fn(&str) -> bool;

/// Sources whose sentences pages show, and which literals of them these are.
const SOURCES: &[(&str, Takes)] = &[
    ("scenario/src/check", is_sentence),
    ("scenario/src/check.rs", is_sentence),
    ("scenario/src/vars.rs", is_sentence),
    ("scenario/src/load.rs", is_sentence),
    ("scenario/src/steps.rs", is_sentence),
    ("scenario/src/threshold.rs", is_sentence),
    ("scenario/src/broker_url.rs", is_sentence),
    ("scenario/src/source_address.rs", is_sentence),
    ("scenario/src/jmx", is_small_sentence),
    ("console/src/request.rs", is_sentence),
    ("console/src/runs", is_sentence),
    ("console/src/api/again.rs", is_sentence),
    ("console/src/api/trash.rs", is_sentence),
    ("console/src/queue.rs", is_sentence),
    ("console/src/tags.rs", is_sentence),
    ("console/src/uploads.rs", is_sentence),
    ("output/src/target", is_sentence),
    ("monitor/src/source.rs", is_sentence),
    ("lab/src/compare/error.rs", is_sentence),
    ("tacho/src/console_repeat.rs", is_sentence),
    ("tacho/src/run/target_arguments.rs", is_sentence),
    ("broker/src/control/ask.rs", is_sentence),
    ("broker/src/control/management/answers.rs", is_sentence),
    ("broker/src/control/management/bans.rs", is_sentence),
    ("broker/src/control/management/clients.rs", is_sentence),
    ("broker/src/control/management/events.rs", is_sentence),
    ("broker/src/control/management/gate.rs", is_sentence),
    ("broker/src/control/management/groups.rs", is_sentence),
    ("broker/src/control/management/publish.rs", is_sentence),
    ("broker/src/control/management/retained.rs", is_sentence),
    ("broker/src/control/management/subscribers.rs", is_sentence),
];

/// Literals of these sources that no page shows, or not as a sentence.
const NO_SENTENCES: [&str; 17] = [
    // Templates of scenario files.
    "{{{{{counter} {operator} {number}{plus}}}}}",
    "i % {}",
    "i + 1",
    "client + 1",
    "i / {connections} + 1",
    "hex {digits} {salt}",
    "random {low} {high} {salt}",
    "random {from} {to}",
    "chars {length} {letters} {salt}",
    // Parts of names and of notes.
    "{} (as a scenario)",
    "prefixed with '{prefix}'",
    "disconnect, pause, takeover, subscribe, kill or run",
    "http://HOST:8086/DATABASE, or http://HOST:8086?org=ORG&bucket=BUCKET",
    // What is watched, and a comment of a stream.
    "a process that listens on port {port}",
    "a process named {name}",
    "a process with the id {pid}",
    ": no events\n\n",
];

fn is_sentence(text: &str) -> bool {
    text.split_whitespace().count() >= 3 && !NO_SENTENCES.contains(&text)
}

/// Of plans: notes begin with a capital or end with a stop, and lines of scenario files are
/// assignments.
fn is_small_sentence(text: &str) -> bool {
    let is_note = text.starts_with(|c: char| c.is_ascii_uppercase() || "#[\n".contains(c))
        || text.ends_with('.');
    is_sentence(text) && !is_note && !text.contains(" = ")
}

#[test]
fn every_sentence_of_the_sources_is_in_the_book() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut missing = Vec::new();
    let mut count = 0;
    for (place, is_wanted) in SOURCES {
        for file in files(&crates.join(place)) {
            let text = fs::read_to_string(&file).expect("reads");
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for literal in literals(text).into_iter().filter(|literal| is_wanted(literal)) {
                count += 1;
                // It may be a format string, or what it says itself.
                if said(&sample(&literal)).or_else(|| said(&literal)).is_none() {
                    missing.push(format!("{}: {literal}", file.display()));
                }
            }
        }
    }
    assert!(count > 200, "only {count} sentences were found");
    assert!(missing.is_empty(), "not in phrases/en.txt:\n{}", missing.join("\n"));
}

fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let entries = fs::read_dir(place).expect("lists").flatten().map(|entry| entry.path());
    let is_source = |path: &PathBuf| !path.to_string_lossy().contains("tests");
    entries.filter(is_source).flat_map(|path| files(&path)).collect()
}

/// The text literals of a source, outside comments.
fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let tail = &rest[at + 1..];
        rest = match rest.as_bytes()[at] {
            b'/' if tail.starts_with('/') => tail.split_once('\n').map_or("", |(_, next)| next),
            b'"' => {
                let (literal, next) = literal(tail);
                found.push(literal);
                next
            }
            // A character, not a lifetime.
            b'\'' if tail.starts_with("\\'") => &tail[3..],
            b'\'' if tail.chars().nth(1) == Some('\'') => {
                &tail[tail.chars().next().map_or(0, char::len_utf8) + 1..]
            }
            _ => tail,
        };
    }
    found
}

/// A literal up to its closing quote, and what comes behind it.
fn literal(text: &str) -> (String, &str) {
    let mut literal = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (literal, &text[at + 1..]),
            '\\' => match characters.next() {
                // The line goes on where its indentation ends.
                Some((_, '\n')) => {
                    let rest = characters.as_str();
                    let gap = rest.len() - rest.trim_start().len();
                    let _ = characters.by_ref().take(gap).count();
                }
                Some((_, 'n')) => literal.push('\n'),
                Some((_, other)) => literal.push(other),
                None => {}
            },
            other => literal.push(other),
        }
    }
    (literal, "")
}

/// A format string with something in place of its values.
fn sample(format: &str) -> String {
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        rest = match (rest.as_bytes()[at], tail.bytes().next()) {
            (b'{', Some(b'{')) => {
                text.push('{');
                &tail[1..]
            }
            (b'}', Some(b'}')) => {
                text.push('}');
                &tail[1..]
            }
            (b'{', _) => {
                text.push('7');
                tail.split_once('}').map_or("", |(_, next)| next)
            }
            _ => tail,
        };
    }
    text.push_str(rest);
    text
}
