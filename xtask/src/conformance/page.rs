//! The page: counts, then a table of each list.

use std::fmt::Write as _;

use super::cited::TestCase;
use super::rules::{Exempt, Rule, Rules};

const HEAD: &str = "# Conformance

Which test covers which rule of MQTT. `cargo xtask conformance` writes this page from the lists in
`xtask/conformance` and from the comments above the tests; do not edit it. The rules are
paraphrased; the OASIS specifications are authoritative.

*clients*: the rule binds clients only. *moot*: the case cannot arise in this broker. *later*: the
rule needs a feature that does not exist yet. Tests are named `crate::module::test`; an asterisk
marks a test that runs on demand.

";

/// The page as Markdown.
pub(super) fn render(rules: &Rules, tests: &[TestCase]) -> String {
    let behaviours = rows(&rules.behaviours, |rule| {
        covering(tests, |test| test.behaviours.iter().any(|n| n.to_string() == rule.id))
    });
    let (v5, v311) = (statements(&rules.v5, tests, true), statements(&rules.v311, tests, false));
    let mut page = HEAD.to_owned();
    page += "| list | rules | tested | clients | moot | later | not covered |\n";
    page += "|---|---|---|---|---|---|---|\n";
    counts(&mut page, "common broker defects", &behaviours);
    counts(&mut page, "MQTT 5.0", &v5);
    counts(&mut page, "MQTT 3.1.1", &v311);
    table(&mut page, "Common broker defects", "", &behaviours);
    table(&mut page, "MQTT 5.0", "MQTT-", &v5);
    table(&mut page, "MQTT 3.1.1", "MQTT-", &v311);
    page
}

/// A rule and the names of the tests that cover it.
type RuleRow<'a> = (&'a Rule, Vec<String>);

fn rows<'a>(list: &'a [Rule], tests: impl Fn(&Rule) -> Vec<String>) -> Vec<RuleRow<'a>> {
    list.iter().map(|rule| (rule, tests(rule))).collect()
}

fn statements<'a>(list: &'a [Rule], tests: &[TestCase], v5: bool) -> Vec<RuleRow<'a>> {
    rows(list, |rule| {
        covering(tests, |test| test.statements.iter().any(|s| s.v5 == v5 && s.id == rule.id))
    })
}

fn covering(tests: &[TestCase], covers: impl Fn(&TestCase) -> bool) -> Vec<String> {
    let name = |test: &TestCase| {
        let mark = if test.ignored { "\\*" } else { "" };
        format!("`{}`{mark}", test.name)
    };
    tests.iter().filter(|test| covers(test)).map(name).collect()
}

fn counts(page: &mut String, title: &str, rows: &[RuleRow<'_>]) {
    let tested = rows.iter().filter(|(_, tests)| !tests.is_empty()).count();
    let untested = |wanted: fn(&Option<Exempt>) -> bool| {
        rows.iter().filter(|(rule, tests)| tests.is_empty() && wanted(&rule.exempt)).count()
    };
    let clients = untested(|exempt| matches!(exempt, Some(Exempt::Client)));
    let moot = untested(|exempt| matches!(exempt, Some(Exempt::Moot(_))));
    let later = untested(|exempt| matches!(exempt, Some(Exempt::Later(_))));
    let open = untested(Option::is_none);
    let all = rows.len();
    let _ =
        writeln!(page, "| {title} | {all} | {tested} | {clients} | {moot} | {later} | {open} |");
}

fn table(page: &mut String, title: &str, prefix: &str, rows: &[RuleRow<'_>]) {
    let _ = write!(page, "\n## {title}\n\n| | rule | tests |\n|---|---|---|\n");
    for (rule, tests) in rows {
        let covered = if tests.is_empty() { why_not(rule) } else { tests.join("<br>") };
        let _ = writeln!(page, "| {prefix}{} | {} | {covered} |", rule.id, rule.words);
    }
}

fn why_not(rule: &Rule) -> String {
    match &rule.exempt {
        None => "not covered".to_owned(),
        Some(Exempt::Client) => "clients".to_owned(),
        Some(Exempt::Moot(why)) => format!("moot: {why}"),
        Some(Exempt::Later(why)) => format!("later: {why}"),
    }
}
