//! The reference of scenario files, as a document: written from the schema and from the scenarios
//! that come with the program, so that it cannot say anything else than they do.

use std::fmt::Write as _;

use super::BENCHMARK_GRAMMAR;
use super::builtin::{BUILTIN, Builtin};
use super::schema::keys::{Key, KeyKind, SCENARIO};
use super::suite::{SUITES, Suite};
use super::variables::variable_lines;

/// Defaults in words. A description ends with its default behind a semicolon.
const WORDED: [&str; 11] = [
    "all at once",
    "all share them",
    "empty",
    "its user name or client identifier",
    "none",
    "once",
    "one per generator core",
    "the default one",
    "the target's",
    "uniform",
    "until the phase ends",
];

/// Examples of tables that no scenario of the program has.
const EXAMPLES: [(&str, &str); 11] = [
    ("target.tls", "[target.tls]\nca = \"ca.pem\"\nserver_name = \"broker.example\""),
    (
        "target.tls.test_ca",
        "[target.tls]\nca = \"ca.pem\"\n\
         test_ca = { cert = \"ca.pem\", key = \"ca.key\", common_name = \"meter-{{i}}\" }",
    ),
    ("load", "[load]\nthreads = 2\ntiming = \"batch\""),
    ("thresholds", "[thresholds]\ne2e_p99 = \"<10ms\"\nlost = \"==0\""),
    (
        "groups.NAME.rows",
        "credentials = \"meters.csv\"\nrows = { columns = [\"client_id\", \"password\"], delimiter = \";\" }",
    ),
    (
        "groups.NAME.connect.token",
        "connect = { token = { key_file = \"token.key\", claims = { aud = \"mqtt\" } } }",
    ),
    ("groups.NAME.disconnect", "disconnect = { ramp = \"5s\" }"),
    (
        "groups.NAME.will",
        "will = { topic = \"gone/{{client}}\", payload = \"lost\", qos = 1, delay = \"5s\" }",
    ),
    ("groups.NAME.offline", "offline = { after = \"5s\", for = \"10s\", clean = false }"),
    ("groups.NAME.publish.trace", "trace = { file = \"monday.csv\", speed = 10, each = true }"),
    (
        "groups.NAME.publish.trace.rates",
        "trace = { rates = [{ from = \"0s\", rate = 10 }, { from = \"30s\", rate = 100 }] }",
    ),
];

/// The whole document, Markdown.
pub fn reference() -> String {
    let mut out = String::from(
        "# Scenario reference\n\n\
         Every key of scenario files with its type, its limits and its default, and the\n\
         variables of every scenario that comes with the program. `tacho scenario reference`\n\
         writes this page; what the keys are for, with more words, stands in\n\
         [scenarios](scenarios.md).\n\n\
         A *length of time* is `\"250ms\"`, `\"30s\"`, `\"5m\"` or a number of seconds; a *rate* is\n\
         `100`, `\"100/s\"`, `\"10k/s\"` or `\"600/m\"`. Every value except a table may be a\n\
         variable in braces, `\"{{name}}\"`; a string may contain such variables.\n\n",
    );
    table(&mut out, "", "The file", "Keys at the top of the file.", SCENARIO);
    out.push_str("## Built-in scenarios\n\n`--var NAME=VALUE` sets a variable.\n");
    for builtin in &BUILTIN {
        scenario(&mut out, builtin);
    }
    let _ = write!(out, "\n## Names\n\n`tacho run NAME` with `{BENCHMARK_GRAMMAR}`\n");
    out.push_str("\n## Suites\n\n| name | runs | |\n|---|---|---|\n");
    for suite in SUITES.iter().filter_map(|name| Suite::find(name)) {
        let (name, runs) = (suite.name, suite.run_count());
        let _ = writeln!(out, "| `{name}` | {runs} | {} |", cell(suite.description));
    }
    out
}

/// A table of keys under a heading, and the tables in it.
fn table(out: &mut String, path: &str, title: &str, about: &str, keys: &[Key]) {
    let _ = write!(out, "## {title}\n\n{}\n\n", split_default(about).0);
    if let Some(example) = example(path) {
        let _ = write!(out, "```toml\n{example}\n```\n\n");
    }
    out.push_str("| key | type | default | |\n|---|---|---|---|\n");
    for key in keys {
        let (about, default) = split_default(key.about);
        let default = match (key.required, default) {
            (true, _) => "required".to_owned(),
            (false, Some(default)) if default.contains(' ') || WORDED.contains(&default) => {
                default.to_owned()
            }
            (false, Some(default)) => format!("`{default}`"),
            (false, None) => String::new(),
        };
        let (name, kind) = (key.name, kind_name(key.kind));
        let _ = writeln!(out, "| `{name}` | {kind} | {default} | {} |", cell(&about));
    }
    out.push('\n');
    for key in keys {
        let path =
            if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        match key.kind {
            KeyKind::Table(inner) => table(out, &path, &format!("`[{path}]`"), key.about, inner),
            KeyKind::Tables(inner) => table(out, &path, &format!("`[[{path}]]`"), key.about, inner),
            // Further brokers have the keys of the first.
            KeyKind::Named(_) if key.name == "targets" => {}
            KeyKind::Named(inner) => {
                let path = format!("{path}.NAME");
                table(out, &path, &format!("`[{path}]`"), key.about, inner);
            }
            _ => {}
        }
    }
}

/// Splits a description into its text and its default.
fn split_default(about: &str) -> (String, Option<&str>) {
    let Some((front, last)) = about.rsplit_once("; ") else { return (about.to_owned(), None) };
    let (default, behind) =
        last.split_once(". ").unwrap_or_else(|| (last.trim_end_matches('.'), ""));
    let is_value = default.starts_with(|c: char| c.is_ascii_digit() || c == '"')
        || matches!(default, "true" | "false")
        || default.contains("{{") && !default.contains(' ');
    if !is_value && !WORDED.contains(&default) {
        return (about.to_owned(), None);
    }
    let behind = if behind.is_empty() { String::new() } else { format!(" {behind}") };
    (format!("{front}.{behind}"), Some(default))
}

fn kind_name(kind: KeyKind) -> String {
    match kind {
        KeyKind::Text => "text".to_owned(),
        KeyKind::Flag => "true or false".to_owned(),
        KeyKind::Whole(min, max) if max >= i32::MAX as u64 => match min {
            0 => "whole number".to_owned(),
            min => format!("whole number from {min}"),
        },
        KeyKind::Whole(min, max) => format!("whole number, {min} to {max}"),
        KeyKind::Number => "number".to_owned(),
        KeyKind::Span => "length of time".to_owned(),
        KeyKind::PerSecond => "rate".to_owned(),
        KeyKind::Choice(choices) => {
            choices.iter().map(|choice| format!("`\"{choice}\"`")).collect::<Vec<_>>().join(", ")
        }
        KeyKind::Texts => "list of texts".to_owned(),
        KeyKind::Spans => "list of times".to_owned(),
        KeyKind::Values => "names and values".to_owned(),
        KeyKind::Conditions => "figures and conditions".to_owned(),
        KeyKind::Table(_) => "table".to_owned(),
        KeyKind::Tables(_) => "list of tables".to_owned(),
        KeyKind::Named(_) => "tables by name".to_owned(),
    }
}

/// How the table at `path` looks, taken from the scenarios of the program where one has it.
fn example(path: &str) -> Option<String> {
    let (group, key) = path.rsplit_once('.').unwrap_or(("", path));
    let found = BUILTIN.iter().find_map(|builtin| {
        let lines: Vec<&str> = builtin.text.lines().collect();
        let place = lines.iter().position(|line| {
            is_header(line, path) || !group.is_empty() && line.starts_with(&format!("{key} = {{"))
        })?;
        // A table of the same name may stand in another one.
        let around = lines[..=place].iter().rfind(|line| line.starts_with('['))?;
        let root =
            |text: &str| text.trim_start_matches('[').split(['.', ']']).next().map(str::to_owned);
        if root(around) != root(path) {
            return None;
        }
        let length = match lines[place].starts_with('[') {
            // Up to the empty line behind it.
            true => lines[place..].iter().take_while(|line| !line.is_empty()).count(),
            false => 1,
        };
        (length > 1 || !lines[place].starts_with('[')).then(|| lines[place..][..length].join("\n"))
    });
    let written =
        || EXAMPLES.iter().find(|(known, _)| *known == path).map(|(_, text)| (*text).to_owned());
    found.or_else(written)
}

/// Whether `line` is the head of the table at `path`, with any `NAME`.
fn is_header(line: &str, path: &str) -> bool {
    let header = line.trim_start_matches('[').trim_end_matches(']');
    let parts = || header.split('.').zip(path.split('.'));
    line.starts_with('[')
        && header.split('.').count() == path.split('.').count()
        && parts().all(|(found, wanted)| wanted == "NAME" || found == wanted)
}

/// A scenario with its variables, as its file tells them.
fn scenario(out: &mut String, builtin: &Builtin) {
    let description = quoted_value(builtin.text, "description").unwrap_or_default();
    let _ = write!(out, "\n### `{}`\n\n{description}\n\n", builtin.name);
    out.push_str("| variable | default | |\n|---|---|---|\n");
    for (name, value, about) in variable_lines(builtin.text) {
        let _ = writeln!(out, "| `{name}` | `{value}` | {} |", cell(about));
    }
}

/// The text behind `key = "`.
fn quoted_value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
    line.strip_suffix('"')
}

/// Text in a cell of a table: a bar would end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented_keys;

    #[test]
    fn defaults_stand_behind_the_last_semicolon() {
        let split = |about| split_default(about);
        assert_eq!(split("Seed; 1."), ("Seed.".to_owned(), Some("1")));
        assert_eq!(split("Keep-alive; 0s turns it off; 300s.").1, Some("300s"));
        assert_eq!(split("Version; \"5\".").1, Some("\"5\""));
        assert_eq!(split("At most 1; 1. Others.").0, "At most 1. Others.");
        assert_eq!(
            split("Conditions; exit code 99."),
            ("Conditions; exit code 99.".to_owned(), None)
        );
    }

    #[test]
    fn examples_have_keys_that_exist() {
        let known: Vec<String> = documented_keys().into_iter().map(|(path, _)| path).collect();
        for (path, text) in EXAMPLES {
            assert!(known.iter().any(|key| key == path), "{path}");
            let value: toml::Table = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            let last = path.rsplit('.').next().unwrap_or(path);
            assert!(
                text.contains(&format!("[{path}]"))
                    || value.contains_key(last)
                    || text.contains(last)
            );
        }
    }

    #[test]
    fn everything_is_in_it() {
        let page = reference();
        for (path, _) in documented_keys() {
            let name = path.rsplit('.').next().unwrap_or(&path);
            assert!(page.contains(&format!("| `{name}` |")), "{path}");
        }
        for builtin in &BUILTIN {
            assert!(page.contains(&format!("### `{}`", builtin.name)), "{}", builtin.name);
        }
        for words in [
            "| `seed` | whole number | `1` | Seed of payloads and random arrivals. |",
            "| `qos` | whole number, 0 to 2 | `0` | QoS of the publications. |",
            "| `kills` | `0` | how often the broker is killed and restarted |",
            "[[groups.pub.publish]]\ntopic = ",
            "reconnect = { attempts = 1000,",
        ] {
            assert!(page.contains(words), "{words}");
        }
    }
}
