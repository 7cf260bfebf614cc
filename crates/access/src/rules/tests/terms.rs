//! Attributes that rules ask for, and rates of roles.

use super::*;
use crate::acl::Acl;
use crate::attributes::Attributes;

#[test]
fn rates_are_of_one_role_with_their_bursts() {
    let rules = rules(
        "[users]\nann = ['a', 'b']\n[roles.a]\npublish_messages_per_s_max = 10\n\
         [roles.b]\npublish_messages_per_s_max = 5\npublish_messages_burst = 50\n\
         publish_bytes_per_s_max = 1000\npublish_excess = 'disconnect'\n",
    );
    let ann = rules.limits(Some("ann"));
    assert_eq!(ann.publish_messages, Some(PublishRate { per_s_max: 10, burst: None }));
    assert_eq!(ann.publish_bytes, Some(PublishRate { per_s_max: 1_000, burst: None }));
    assert_eq!(ann.publish_excess, Some(PublishExcess::Disconnect));
    for (key, wrong) in [
        ("publish_messages_per_s_max = 0", "a number from 1"),
        ("publish_bytes_burst = 7", "needs `publish_bytes_per_s_max`"),
        ("publish_excess = 'drop'", "\"hold\" or \"disconnect\""),
        ("clean_queue_full = 'drop'", "\"refuse\" or \"drop_newest\" or"),
    ] {
        let error = error(&format!("[roles.a]\n{key}\n")).to_string();
        assert!(error.contains(wrong) && error.contains(":2"), "{error}");
    }
}

#[test]
fn attributes_are_asked_for_and_their_mistakes_named() {
    let north =
        "[[rules]]\nallow = 'publish'\ntopics = 'a'\nattributes = { site = 'n', k = ['1', '2'] }\n";
    let deny = "[[rules]]\ndeny = 'publish'\ntopics = 'a'\nattributes = { site = 's' }\n";
    let rules = rules(&format!("{deny}{north}"));
    assert!(rules.names_attributes() && rules.names_users());
    let may = |attributes: Option<&Attributes>| {
        let who = Who { attributes, ..Who::new(Some("ann"), "c") };
        let one = rules.decide(&who, PUBLISH, "a").is_allowed;
        assert_eq!(rules.publishing(&who, "a").has(PublishKind::new(0, false)), one);
        let ready = rules.publish_rules(&who).expect("few");
        assert_eq!(ready.publishing("a").has(PublishKind::new(0, false)), one);
        one
    };
    let own = |pairs: &[(&str, &str)]| {
        let mut own = Attributes::default();
        pairs.iter().for_each(|(name, value)| own.add(name, value).expect("few"));
        own
    };
    assert!(may(Some(&own(&[("site", "n"), ("k", "2"), ("more", "x")]))));
    assert!(!may(Some(&own(&[("site", "n"), ("k", "3")]))));
    assert!(!may(Some(&own(&[("site", "n")]))));
    assert!(!may(Some(Attributes::none())));
    // Not known: what allows does not hold, and what denies does.
    assert!(!may(None));
    for wrong in ["{}", "'n'", "{ site = 3 }", "{ site = [] }", "{ site = ['n', 3] }"] {
        let text = format!("[[rules]]\nallow = 'publish'\ntopics = 'a'\nattributes = {wrong}\n");
        let error = error(&text).to_string();
        assert!(error.contains("`attributes") && error.contains(":4"), "{error}");
    }
}

/// CVE-2026-44838: what a client calls itself is text, whatever a pattern language makes of it.
#[test]
fn operators_of_patterns_in_names_mean_nothing() {
    let text = "[[rules]]\nallow = 'all'\ntopics = ['dev/%c/x', 'log/%u-%c']\n";
    let lists = [
        AccessList::Rules(rules(text)),
        AccessList::Mosquitto(Acl::parse("acl", "pattern dev/%c/x\n").expect("valid")),
    ];
    for name in
        [".*", "a|b", "^", "$", "(a)", "[ab]", "a{1,9}", "\\w", "*", "?", "%u", "%c", "%%", "~"]
    {
        let who = Who::new(Some("ann"), name);
        for list in &lists {
            let may = |topic: &str| list.decide(&who, Access::Receive, topic).is_allowed;
            assert!(may(&format!("dev/{name}/x")), "{name}");
            for other in ["dev/a/x", "dev/b/x", "dev/ann/x", "dev//x", "dev/%/x"] {
                assert!(!may(other), "{name} may have {other}");
            }
            let every = TopicFilter::parse("dev/+/x").expect("valid");
            let own = ClientRules { token: None, list: Some(list) };
            assert_ne!(own.covers(&who, &every, &PLAIN, &mut Steps::default()), Coverage::Whole);
        }
    }
}
