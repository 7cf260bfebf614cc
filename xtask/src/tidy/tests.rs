use super::dependencies::{self, Used};
use super::{Finding, check, crates, source, words};
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
fn modules_are_not_included_by_path() {
    let text = "#[path = \"../common/mod.rs\"]\nmod common;\n";
    assert_eq!(findings("crates/a/tests/a.rs", text).len(), 1);
    assert_eq!(findings("a.rs", "// #[path] is not used.\n").len(), 0);
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
        ("[dev-dependencies]\ntacho-testkit.workspace = true\n", 0),
        ("[dependencies]\ntacho-testkit.workspace = true\n", 1),
    ];
    for (dependencies, count) in cases {
        let manifest = format!("{head}{dependencies}").parse().expect("a manifest");
        let mut findings = Vec::new();
        crates::check_manifest("crates/session/Cargo.toml", &manifest, &mut findings);
        assert_eq!(findings.len(), count, "{dependencies}: {findings:?}");
    }
}

#[test]
fn unused_dependencies_are_found() {
    let manifest = "[dependencies]\nin-product = \"1\"\nin_tests = \"1\"\nunused = \"1\"\n\
        [target.'cfg(unix)'.dependencies]\nof_target = \"1\"\n\
        [dev-dependencies]\nin_tests = { version = \"1\", features = [\"x\"] }\n\
        in-product = \"1\"\ngone = \"1\"\n";
    let manifest = manifest.parse().expect("a manifest");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let used = Used { product: names(&["in_product"]), any: names(&["in_product", "in_tests"]) };
    let mut findings: Vec<Finding> = Vec::new();
    dependencies::crate_manifest("crates/a/Cargo.toml", &manifest, &used, &mut findings);
    let mut messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    messages.sort_unstable();
    let expected = [
        "`in-product` is among the dependencies already",
        "no code of the crate uses `gone`, one of its dev-dependencies",
        "no code outside tests of the crate uses `in_tests`, one of its dependencies",
        "no code outside tests of the crate uses `of_target`, one of its dependencies",
        "no code outside tests of the crate uses `unused`, one of its dependencies",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn dependencies_of_the_workspace_need_a_crate() {
    let root = "[workspace.dependencies]\none = \"1\"\ntwo = \"1\"\nthree = \"1\"\n";
    let member = "[dev-dependencies]\none.workspace = true\n\
        [target.'cfg(unix)'.dependencies]\nthree.workspace = true\n";
    let member = ("crates/a/Cargo.toml".to_owned(), member.parse().expect("a manifest"));
    let files = [("crates/a/src/lib.rs", "use three::X;"), ("crates/a/tests/t.rs", "use one::X;")];
    let mut findings = Vec::new();
    let root = root.parse().expect("a manifest");
    dependencies::check(&root, &[member], &files, &mut findings).expect("parses");
    let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(messages, ["no crate depends on `two`"]);
}

#[test]
fn words_of_a_private_language_are_found() {
    let cases = [
        ("a.rs", "// Nobody waits.\n", 1),
        ("a.rs", "let nobody_home = 1;\n", 0),
        ("a.md", "# T\n\nkept for good reasons and for good.\n", 1),
        ("a.rs", "/// the number of\n/// now\n", 1),
        ("a.rs", "//! somebody\n//! else\n", 1),
        ("a.ts", "// whoever asks\n", 1),
        ("a.txt", "nobody\n", 0),
        ("bench/runs/x/README.md", "nobody\n", 0),
        ("a.rs", "// A number of nowhere, of course.\n", 0),
    ];
    for (name, text, count) in cases {
        let mut findings = Vec::new();
        words::check(name, text, &mut findings);
        assert_eq!(findings.len(), count, "{text}");
    }
}
