use std::collections::BTreeSet;

use super::super::Finding;
use super::tree::{Crate, Sources};
use super::{cycles, functions, identifiers, same_names};

/// The arrows in cycles of a made-up crate, as `folder: user -> used at file:line`.
fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let sources = Sources::new(files);
    let found = Crate::read("crates/a/src/lib.rs", &sources).expect("the crate can be read");
    let mut findings = Vec::new();
    cycles::check(&found, &mut findings);
    let shown = findings.iter().map(|Finding { file, line, message }| {
        let (place, way) = message.split_once(": ").expect("a place and a way");
        let place = place.trim_start_matches("cycle of modules in ").trim_matches('`');
        let folder = if place == "the crate's root" { "" } else { place };
        let mut way = way.split([' ', ':']).filter(|part| *part != "->");
        let (user, used) = (way.next().expect("a user"), way.next().expect("what it uses"));
        let file = file.trim_start_matches("crates/a/src/");
        format!("cycle {folder}: {user} -> {used} at {file}:{line}")
    });
    shown.collect()
}

#[test]
fn modules_that_use_each_other_are_a_cycle() {
    let files = [
        ("crates/a/src/lib.rs", "mod x;\nmod y;\nmod z;\n"),
        ("crates/a/src/x.rs", "use crate::y::Y;\npub struct X(Y);\n"),
        ("crates/a/src/y.rs", "pub struct Y;\nfn y() -> Option<super::x::X> { None }\n"),
        ("crates/a/src/z.rs", "use crate::x::X;\nstruct Z(X, crate::y::Y);\n"),
    ];
    assert_eq!(arrows(&files), ["cycle : x -> y at x.rs:1", "cycle : y -> x at y.rs:2"]);
    let mut findings = Vec::new();
    let found = Crate::read("crates/a/src/lib.rs", &Sources::new(&files)).expect("reads");
    cycles::check(&found, &mut findings);
    let message = &findings[0].message;
    assert!(message.starts_with("cycle of modules in the crate's root: x -> y -> x:"), "{message}");
}

#[test]
fn a_cycle_may_be_long() {
    let files = [
        ("crates/a/src/lib.rs", "mod x;\nmod y;\nmod z;\n"),
        ("crates/a/src/x.rs", "pub struct X(crate::y::Y);\n"),
        ("crates/a/src/y.rs", "pub struct Y(crate::z::Z);\n"),
        ("crates/a/src/z.rs", "pub struct Z(Box<crate::x::X>);\n"),
    ];
    assert_eq!(arrows(&files).len(), 3);
}

#[test]
fn uses_of_a_child_count_for_its_folder() {
    let files = [
        ("crates/a/src/lib.rs", "mod x;\nmod y;\n"),
        ("crates/a/src/x/mod.rs", "mod deep;\npub struct X;\n"),
        ("crates/a/src/x/deep.rs", "use super::super::y::inner::Y;\nuse super::X;\n"),
        ("crates/a/src/y.rs", "pub mod inner { pub struct Y; }\npub struct Z(crate::x::X);\n"),
    ];
    assert_eq!(arrows(&files), ["cycle : x -> y at x/deep.rs:1", "cycle : y -> x at y.rs:2"]);
}

#[test]
fn a_module_and_its_parent_are_no_siblings() {
    let files = [
        ("crates/a/src/lib.rs", "mod x;\npub struct A(x::X);\n"),
        ("crates/a/src/x.rs", "pub struct X;\nimpl X { fn a() -> Option<crate::A> { None } }\n"),
    ];
    assert_eq!(arrows(&files), Vec::<String>::new());
}

#[test]
fn re_exports_lead_to_the_definition() {
    let x = ("crates/a/src/x.rs", "use crate::all::Alias;\npub struct X(Alias);\n");
    let all = "pub use super::y::Y as Alias;\npub use super::y::*;\n";
    let files = [
        ("crates/a/src/lib.rs", "mod all;\nmod x;\nmod y;\npub use x::X;\n"),
        x,
        ("crates/a/src/all.rs", all),
        ("crates/a/src/y.rs", "pub struct Y(crate::X);\n"),
    ];
    // `all` only passes on: the arrow leads from `x` to `y`.
    assert_eq!(arrows(&files), ["cycle : x -> y at x.rs:1", "cycle : y -> x at y.rs:1"]);
    let by_star = ("crates/a/src/x.rs", "use crate::all::*;\npub struct X(Y);\n");
    let files = [files[0], by_star, files[2], files[3]];
    assert_eq!(arrows(&files), ["cycle : x -> y at x.rs:2", "cycle : y -> x at y.rs:1"]);
}

#[test]
fn modules_are_told_from_functions_of_the_same_name() {
    let files = [
        ("crates/a/src/lib.rs", "mod x;\nmod y;\nmod z;\n"),
        ("crates/a/src/x.rs", "use crate::y::run;\nfn x() { run::go(); }\npub fn x2() {}\n"),
        ("crates/a/src/y.rs", "pub mod run { pub fn go() { crate::x::x2() } }\npub fn run() {}\n"),
        ("crates/a/src/z.rs", "use crate::y;\nfn z() { y::run() }\n"),
    ];
    assert_eq!(arrows(&files), ["cycle : x -> y at x.rs:1", "cycle : y -> x at y.rs:1"]);
}

#[test]
fn paths_in_macros_count_and_paths_to_other_crates_do_not() {
    let files = [
        ("crates/a/src/lib.rs", "mod x;\nmod y;\n"),
        ("crates/a/src/x.rs", "pub struct X;\nfn x() { println!(\"{}\", crate::y::Y.0); }\n"),
        ("crates/a/src/y.rs", "use ::x::Other;\npub struct Y(u8);\nuse serde::x::X;\n"),
    ];
    assert_eq!(arrows(&files), Vec::<String>::new());
    let back = ("crates/a/src/y.rs", "pub struct Y(u8);\nfn y() { vec![super::x::X]; }\n");
    assert_eq!(arrows(&[files[0], files[1], back]).len(), 2);
}

#[test]
fn test_code_makes_no_cycle() {
    let y = "pub struct Y;\n#[cfg(test)]\nmod tests;\n#[cfg(all(test, unix))]\n\
        use super::x::X;\n#[cfg(test)]\nmod more { use crate::x::X; }\n\
        impl Y { #[cfg(test)] fn y(x: crate::x::X) {} }\n";
    let files = [
        ("crates/a/src/lib.rs", "mod x;\nmod y;\n"),
        ("crates/a/src/x.rs", "use crate::y::Y;\npub struct X;\n"),
        ("crates/a/src/y.rs", y),
        ("crates/a/src/y/tests.rs", "use crate::x::X;\n"),
    ];
    assert_eq!(arrows(&files), Vec::<String>::new());
    let not_only = "pub struct Y;\n#[cfg(any(test, unix))]\nuse super::x::X;\n";
    let files = [files[0], files[1], ("crates/a/src/y.rs", not_only)];
    assert_eq!(arrows(&files).len(), 2);
}

#[test]
fn a_module_without_a_file_is_an_error() {
    let sources = Sources::new(&[("crates/a/src/lib.rs", "mod gone;\n")]);
    assert!(Crate::read("crates/a/src/lib.rs", &sources).is_err());
}

#[test]
fn long_functions_are_found_outside_tests() {
    let function = |name: &str, lines: usize| {
        format!("fn {name}() {{\n{}}}\n", "    let _ = 1;\n".repeat(lines - 2))
    };
    let text = format!(
        "mod x;\n{}{}impl A {{\n{}}}\n#[test]\n{}#[cfg(test)]\nmod tests {{\n{}}}\n",
        function("short", functions::LINES_MAX),
        function("long", functions::LINES_MAX + 1),
        function("of_a", 100),
        function("test", 100),
        function("helper", 100),
    );
    let x = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod sample;\n";
    let long = function("long", 100);
    let files = [
        ("crates/a/src/lib.rs", text.as_str()),
        ("crates/a/src/x.rs", x),
        ("crates/a/src/x/tests.rs", &long),
        ("crates/a/src/x/sample.rs", &long),
        ("crates/a/tests/t/main.rs", &long),
        ("crates/a/examples/e.rs", &long),
    ];
    let sources = Sources::new(&files);
    let found = Crate::read("crates/a/src/lib.rs", &sources).expect("reads");
    let mut findings = Vec::new();
    functions::check(&sources, &[found], &mut findings).expect("parses");
    let shown: Vec<String> = findings
        .iter()
        .map(|finding| {
            let function = finding.message.split('`').nth(1).expect("a name");
            format!("{} function {function}", finding.file)
        })
        .collect();
    let expected = [
        "crates/a/examples/e.rs function long",
        "crates/a/src/lib.rs function long",
        "crates/a/src/lib.rs function A::of_a",
    ];
    assert_eq!(shown, expected);
    assert_eq!(findings[1].line, 72);
    let message = &findings[1].message;
    assert_eq!(message, "`long` has 71 lines, more than 70");
}

/// What is said of the types of a made-up crate, with this table of reasons.
fn same_names(reasons: &str) -> (Vec<String>, Vec<Finding>) {
    let files = [
        ("crates/a/src/lib.rs", "mod x;\nstruct Value;\ntype Alias = u8;\n"),
        (
            "crates/a/src/x.rs",
            "enum Value {}\ntrait Alias {}\nfn f() { struct Inner; }\n\
             mod y { union Inner { a: u8 } }\n#[cfg(test)]\nmod tests { struct Value; }\n\
             #[cfg(test)]\nstruct Own;\n#[cfg(unix)]\nstruct Own;\n\
             #[cfg(not(unix))]\nstruct Own;\n",
        ),
    ];
    let sources = Sources::new(&files);
    let found = Crate::read("crates/a/src/lib.rs", &sources).expect("reads");
    let mut findings = Vec::new();
    same_names::check(&[found], "table", reasons, &mut findings);
    let (in_table, in_code): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.file == "table");
    let places =
        in_code.iter().map(|Finding { file, line, message }| format!("{file}:{line}: {message}"));
    (places.collect(), in_table)
}

#[test]
fn types_of_one_name_are_found() {
    let (places, findings) = same_names("# a comment\n\n");
    assert_eq!(findings, []);
    let [alias, inner, value] = places.as_slice() else { panic!("{places:?}") };
    assert!(alias.starts_with("crates/a/src/lib.rs:3: type `Alias`"), "{alias}");
    assert!(inner.contains("`Inner` is also at crates/a/src/x.rs:4"), "{inner}");
    assert!(value.contains("`Value` is also at crates/a/src/x.rs:1:"), "{value}");
}

#[test]
fn a_reason_lets_types_have_one_name() {
    let (places, findings) = same_names("a Value: both are values\na Alias: why not\n");
    assert_eq!((places.len(), findings), (1, Vec::new()));
}

#[test]
fn the_table_of_reasons_has_no_dead_lines() {
    let reasons =
        "a Gone: it was there\nb Value: another crate\na Value:\na Inner: x\na Inner: y\n";
    let (places, findings) = same_names(reasons);
    assert_eq!(places.len(), 2);
    let lines: BTreeSet<usize> = findings.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, BTreeSet::from([1, 2, 3, 5]));
}

#[test]
fn identifiers_are_those_of_paths_imports_macros_and_attributes() {
    let text = "use one::Two;\n#[derive(three::Four)]\nstruct A { f: five::Six }\n\
        fn f() { seven!(eight::NINE); }\n#[cfg(test)]\nmod tests { use ten::Ten; }\n\
        mod inner { use eleven::Eleven; }\n/// twelve::Twelve\nconst C: u8 = 0;\n";
    let file = syn::parse_file(text).expect("parses");
    let product = identifiers(&file, false);
    for name in ["one", "three", "five", "seven", "eight", "eleven"] {
        assert!(product.contains(name), "{name}");
    }
    assert!(!product.contains("ten") && !product.contains("twelve"));
    assert!(identifiers(&file, true).contains("ten"));
}
