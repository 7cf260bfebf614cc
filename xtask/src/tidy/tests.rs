use super::{Finding, check, crates, source};
use crate::shell;

fn findings(name: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    source::check(name, text, &mut findings);
    findings
}

#[test]
fn the_repository_is_tidy() {
    let findings = check(&shell::root()).expect("the working tree can be read");
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn words_are_banned_as_whole_words() {
    let cases = [
        ("// FIXME: later\n", 1),
        ("// TODO\n", 1),
        ("const TODOS: u8 = 0;\n", 0),
        ("dbg!(x)\n", 1),
        ("let p = \"/home/me\";\n", 1),
        ("myhome/x\n", 0),
    ];
    for (text, count) in cases {
        assert_eq!(findings("a.rs", text).len(), count, "{text}");
    }
}

#[test]
fn long_lines_are_found_unless_they_cannot_be_broken() {
    let words = "word ".repeat(25);
    let line = format!("// {}\n", words.trim_end());
    assert_eq!(findings("a.rs", &line).len(), 1);
    assert_eq!(findings("a.md", &format!("# T\n{line}")).len(), 0);
    assert_eq!(findings("a.rs", &format!("let a = \"{}\";\n", words.trim_end())).len(), 0);
}

#[test]
fn long_files_are_found() {
    assert_eq!(findings("a.rs", &"//\n".repeat(600)).len(), 0);
    assert_eq!(findings("a.rs", &"//\n".repeat(601)).len(), 1);
}

#[test]
fn clocks_are_forbidden_in_the_machines_but_not_in_their_tests() {
    let text = "let now = std::time::Instant::now();\n";
    assert_eq!(findings("crates/session/src/a.rs", text).len(), 1);
    assert_eq!(findings("crates/session/src/a/tests.rs", text).len(), 0);
    assert_eq!(findings("crates/load/src/a.rs", text).len(), 0);
}

#[test]
fn markdown_has_one_title() {
    assert_eq!(findings("a.md", "# One\n```\n# not a title\n```\n").len(), 0);
    assert_eq!(findings("a.md", "# One\n# Two\n").len(), 1);
    assert_eq!(findings("a.md", "text\n").len(), 1);
}

#[test]
fn a_room_that_looks_up_is_found() {
    let head = "[package]\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\n[lints]\nworkspace = true\n";
    let cases = [
        ("[dependencies]\ntacho-codec.workspace = true\n", 0),
        ("[dependencies]\ntacho-broker.workspace = true\n", 1),
        ("[dev-dependencies]\ntacho-broker.workspace = true\n", 0),
        ("[dependencies]\nbytes = \"1\"\n", 1),
    ];
    for (dependencies, count) in cases {
        let manifest = format!("{head}{dependencies}").parse().expect("a manifest");
        let mut findings = Vec::new();
        crates::check_manifest("crates/session/Cargo.toml", &manifest, &mut findings);
        assert_eq!(findings.len(), count, "{dependencies}: {findings:?}");
    }
}
