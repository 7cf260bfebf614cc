use super::cited::{Statement, behaviours, citations, cited_by_tests};
use super::page::render;
use super::rules::{Exempt, Rules, parse};
use super::{check_citations, make};
use crate::shell;

#[test]
fn comments_name_lines_of_the_list() {
    for (comment, expected) in [
        (" 25", &[25][..]),
        (" 4, 5", &[4, 5]),
        (" 14 to 17, 21", &[14, 15, 16, 17, 21]),
        (" 35, 37. An acknowledgement once, 38", &[35, 37]),
        (" 35. Why, 36", &[35]),
        (" 2,000 publishers", &[]),
        (" 3 messages", &[]),
        (" A sentence", &[]),
        ("", &[]),
    ] {
        assert_eq!(behaviours(comment), expected, "{comment}");
    }
}

#[test]
fn statements_of_both_versions_are_told_apart() {
    let statement = |v5, id: &str| Statement { v5, id: id.to_owned() };
    let line = "// [MQTT-3.3.1-5], [MQTT-3.1.1: 3.8.3-2] and [MQTT-";
    assert_eq!(citations(line), [statement(true, "3.3.1-5"), statement(false, "3.8.3-2")]);
    assert_eq!(citations(line)[1].to_string(), "[MQTT-3.1.1: 3.8.3-2]");
}

#[test]
fn tests_are_found_with_their_modules() {
    let source = "\
// 1
// A word on it [MQTT-3.1.0-1].
#[test]
#[ignore = \"long\"]
fn first() {}

// 2 is said of no test
fn helper() {}

#[test]
fn cites_nothing() {}

mod inner {
    mod tests {
        /// Documented.
        // 3
        #[test]
        fn second() {}
    }
}
";
    for (file, module) in [
        ("crates/broker/src/lib.rs", "broker"),
        ("crates/broker/src/shard/mod.rs", "broker::shard"),
        ("crates/broker/src/config/tests.rs", "broker::config::tests"),
        ("crates/broker/tests/smoke.rs", "broker::smoke"),
        ("crates/broker/tests/behaviours/main.rs", "broker::behaviours"),
        ("crates/broker/tests/behaviours/will.rs", "broker::behaviours::will"),
    ] {
        let tests = cited_by_tests(file, source);
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, [format!("{module}::first"), format!("{module}::inner::tests::second")]);
        assert_eq!((tests[0].ignored, tests[1].ignored), (true, false));
        assert_eq!((&tests[0].behaviours[..], &tests[1].behaviours[..]), (&[1][..], &[3][..]));
        assert_eq!(tests[0].statements.len(), 1);
    }
}

#[test]
fn lists_are_read_and_mistakes_in_them_found() {
    let list = "# a comment\n1 | words | client\n2 | words | later: no journal\n3 | more\n";
    let rules = parse(list).expect("a list");
    assert_eq!(rules.len(), 3);
    assert_eq!(rules[0].exempt, Some(Exempt::Client));
    assert_eq!(rules[1].exempt, Some(Exempt::Later("no journal".to_owned())));
    for wrong in ["1\n", "1 | words | never\n", "1 | a\n1 | b\n"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn page_counts_what_is_covered_and_what_is_not() {
    let list = |text| parse(text).expect("a list");
    let rules = Rules {
        behaviours: list("1 | first\n2 | second\n"),
        v5: list("3.1.0-1 | a\n3.1.0-2 | b | client\n3.1.2-1 | c | client\n"),
        v311: list("3.1.0-1 | a | moot: never\n"),
    };
    let source = "// 2\n// [MQTT-3.1.0-1] [MQTT-3.1.2-1]\n#[test]\nfn it() {}\n";
    let page = render(&rules, &cited_by_tests("crates/broker/tests/smoke.rs", source));
    for line in [
        "| common broker defects | 2 | 1 | 0 | 0 | 0 | 1 |",
        "| MQTT 5.0 | 3 | 2 | 1 | 0 | 0 | 0 |",
        "| MQTT 3.1.1 | 1 | 0 | 0 | 1 | 0 | 0 |",
        "| 1 | first | not covered |",
        "| 2 | second | `broker::smoke::it` |",
        "| MQTT-3.1.0-2 | b | clients |",
        "| MQTT-3.1.2-1 | c | `broker::smoke::it` |",
        "| MQTT-3.1.0-1 | a | moot: never |",
    ] {
        assert!(page.lines().any(|l| l == line), "{line} is not in\n{page}");
    }
}

#[test]
fn statements_that_do_not_exist_are_found() {
    let v5 = parse("3.1.0-1 | a\n").expect("a list");
    let rules = Rules { behaviours: Vec::new(), v5, v311: Vec::new() };
    let mut findings = Vec::new();
    check_citations("a.rs", "// [MQTT-3.1.0-1]\n// [MQTT-9.9]\n", &rules, &mut findings);
    check_citations("a.rs", "// [MQTT-3.1.1: 3.1.0-1]\n", &rules, &mut findings);
    assert_eq!(findings.len(), 2, "{findings:?}");
}

#[test]
fn every_statement_of_both_specifications_is_listed() {
    let rules = Rules::read(&shell::root().join("xtask/conformance")).expect("the lists");
    let counts = (rules.behaviours.len(), rules.v5.len(), rules.v311.len());
    assert_eq!(counts, (60, 251, 141));
    let mut findings = Vec::new();
    make(&shell::root(), &mut findings).expect("the sources");
    assert!(findings.is_empty(), "{findings:#?}");
}
