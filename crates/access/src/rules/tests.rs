mod terms;

use std::net::IpAddr;

use proptest::prelude::*;
use tacho_topic::TopicFilter;

use super::*;
use crate::client_rules::ClientRules;
use crate::covers::{Coverage, Steps};
use crate::kinds::PublishKind;
use crate::list::AccessList;
use crate::template::Origin;

const PLAIN: SubscriptionKind<'static> = SubscriptionKind { qos: 0, group: None };
const PUBLISH: Access = Access::Publish(PublishKinds::ANY);
const EXAMPLE: &str = r#"
[users]
ann = ["operator"]
"pump-7" = "device"

[roles.operator]
[roles.device]
[roles.default]

[[rules]]
deny = "all"
topics = ["home/safe/#"]
users = ["bob"]

[[rules]]
allow = "publish"
topics = ["up/%c/#", "log/%u-%c"]
roles = ["device"]

[[rules]]
allow = ["publish", "subscribe"]
topics = ["home/#", "up/#", "$SYS/#"]
roles = ["operator"]

[[rules]]
allow = "subscribe"
topics = "news/#"
"#;

fn rules(text: &str) -> RuleSet {
    RuleSet::parse("rules.toml", text, None).expect(text)
}

fn error(text: &str) -> FileError {
    let listeners = ["127.0.0.1:1883".parse().expect("an address")];
    RuleSet::parse("rules.toml", text, Some(&listeners)).expect_err(text)
}

fn who<'a>(user: &'a str, client_id: &'a str) -> Who<'a> {
    Who::new((!user.is_empty()).then_some(user), client_id)
}

fn from<'a>(who: Who<'a>, address: &str) -> Who<'a> {
    let address: IpAddr = address.parse().expect(address);
    let listener = Some("127.0.0.1:1883".parse().expect("an address"));
    Who { origin: Origin { address: Some(address), listener }, ..who }
}

/// Whether a client may publish, subscribe and receive.
fn may(rules: &RuleSet, who: &Who<'_>, topic: &str) -> [bool; 3] {
    let subscribes = rules.decide_subscription(who, &PLAIN, topic);
    [
        rules.decide(who, PUBLISH, topic).is_allowed,
        subscribes.is_allowed,
        rules.decide(who, Access::Receive, topic).is_allowed,
    ]
}

fn covers(rules: &RuleSet, who: &Who<'_>, filter: &str, kind: &SubscriptionKind<'_>) -> Coverage {
    let filter = TopicFilter::parse(filter).expect(filter);
    let list = AccessList::Rules(rules.clone());
    let rules = ClientRules { token: None, list: Some(&list) };
    rules.covers(who, &filter, kind, &mut Steps::default())
}

#[test]
fn the_first_rule_that_is_about_a_client_and_its_action_decides() {
    let rules = rules(EXAMPLE);
    for (who, topic, expected) in [
        (who("pump-7", "p"), "up/p/1", [true, false, false]),
        (who("pump-7", "p"), "up/q/1", [false; 3]),
        (who("pump-7", "p"), "log/pump-7-p", [true, false, false]),
        (who("pump-7", "p"), "news/1", [false, true, true]),
        (who("ann", "c"), "home/safe/1", [true; 3]),
        (who("ann", "c"), "$SYS/x", [true; 3]),
        (who("bob", "c"), "home/safe/1", [false; 3]),
        (who("bob", "c"), "news/1", [false, true, true]),
        (who("", "c"), "news/1", [false, true, true]),
        (who("", "pump-7"), "up/pump-7/1", [false; 3]),
    ] {
        assert_eq!(may(&rules, &who, topic), expected, "{who:?} {topic}");
    }
    let cause = |who: Who<'_>, topic| rules.decide(&who, PUBLISH, topic).cause;
    assert_eq!(cause(who("bob", "c"), "home/safe/1"), Cause::Rule(10));
    assert_eq!(cause(who("pump-7", "p"), "up/p/1"), Cause::Rule(15));
    assert_eq!(cause(who("pump-7", "p"), "x"), Cause::NoRule);
    assert_eq!(cause(who("pump-7", "p/q"), "up/p/q/1"), Cause::SpecialName);
    let roles = |user| rules.roles(user).collect::<Vec<_>>();
    assert_eq!(roles(Some("ann")), ["operator", "default"]);
    assert_eq!((roles(Some("eve")), roles(None)), (vec!["default"], vec!["default"]));
    assert_eq!(rules.len(), 4);
    assert!(rules.names_users() && !rules.names_origins());
}

#[test]
fn a_file_without_rules_denies_everything_but_connecting() {
    let rules = rules("[users]\n[roles.x]\n");
    assert!(rules.is_empty() && rules.connecting(&who("ann", "c")).is_allowed);
    assert_eq!(may(&rules, &who("ann", "c"), "a"), [false; 3]);
    assert_eq!(covers(&rules, &who("ann", "c"), "a/#", &PLAIN), Coverage::Partial);
}

#[test]
fn rules_that_depend_on_the_user_are_known() {
    for (ids, expected) in [("%u-*", true), ("%c", false), ("pump-*", false)] {
        let text = format!("[[rules]]\nallow = 'all'\ntopics = 'a'\nclient_ids = '{ids}'\n");
        assert_eq!(rules(&text).names_users(), expected, "{ids}");
    }
}

#[test]
fn all_conditions_of_a_rule_have_to_hold() {
    let text = |terms: &str| {
        format!(
            "[roles.r]\n[users]\nann = 'r'\neve = 'r'\n[[rules]]\n\
                                      allow = 'publish'\ntopics = 'a'\n{terms}"
        )
    };
    let local = "127.0.0.1";
    for (terms, client, address, expected) in [
        ("users = ['ann', 'bob']", who("ann", "c"), local, true),
        ("users = ['ann', 'bob']", who("eve", "c"), local, false),
        ("users = 'ann'\nroles = 'r'", who("ann", "c"), local, true),
        ("users = 'bob'\nroles = 'r'", who("bob", "c"), local, false),
        ("roles = 'r'\nclient_ids = ['x', '%u-*']", who("ann", "ann-1"), local, true),
        ("roles = 'r'\nclient_ids = ['x', '%u-*']", who("ann", "x"), local, true),
        ("roles = 'r'\nclient_ids = ['x', '%u-*']", who("ann", "eve-1"), local, false),
        ("client_ids = '%u*'", who("", "c"), local, false),
        ("anonymous = true", who("", "c"), local, true),
        ("anonymous = true", who("ann", "c"), local, false),
        ("anonymous = false", who("ann", "c"), local, true),
        ("anonymous = false", who("", "c"), local, false),
        ("addresses = ['10.0.0.0/8', '::1']", who("", "c"), "10.1.2.3", true),
        ("addresses = ['10.0.0.0/8', '::1']", who("", "c"), "::ffff:10.1.2.3", true),
        ("addresses = ['10.0.0.0/8', '::1']", who("", "c"), "192.0.2.1", false),
        ("listeners = '127.0.0.1:1883'", who("", "c"), local, true),
        ("listeners = ['1884', '1883']", who("", "c"), local, true),
        ("listeners = '1884'", who("", "c"), local, false),
    ] {
        let rules = rules(&text(terms));
        let client = from(client, address);
        assert_eq!(may(&rules, &client, "a")[0], expected, "{terms} {client:?}");
    }
}

// Of a session from the journal it is not known where its client was.
#[test]
fn an_unknown_origin_is_allowed_nothing_by_it_and_denied_what_it_may_be_denied() {
    let rules = rules(
        "[[rules]]\ndeny = 'publish'\ntopics = 'a'\naddresses = '10.0.0.0/8'\n\
         [[rules]]\nallow = 'publish'\ntopics = 'b'\nlisteners = '1883'\n\
         [[rules]]\nallow = 'publish'\ntopics = ['a', 'c']\n",
    );
    assert!(rules.names_origins());
    for (topic, unknown, known) in [("a", false, true), ("b", false, true), ("c", true, true)] {
        assert_eq!(may(&rules, &who("", "x"), topic)[0], unknown, "{topic}");
        let client = from(who("", "x"), "192.0.2.1");
        assert_eq!(may(&rules, &client, topic)[0], known, "{topic}");
    }
}

#[test]
fn connecting_is_asked_only_where_rules_are_about_it() {
    let rules = rules(
        "[roles.r]\n[users]\nann = 'r'\n[[rules]]\ndeny = 'connect'\naddresses = '10.0.0.0/8'\n\
         [[rules]]\nallow = ['connect', 'publish']\nroles = 'r'\ntopics = 'a'\n\
         [[rules]]\nallow = 'all'\ntopics = '#'\n",
    );
    assert!(rules.has_connect());
    let connects = |client: Who<'_>, address: &str| {
        let decision = rules.connecting(&from(client, address));
        (decision.is_allowed, decision.cause)
    };
    assert_eq!(connects(who("ann", "c"), "127.0.0.1"), (true, Cause::Rule(7)));
    assert_eq!(connects(who("ann", "c"), "10.0.0.1"), (false, Cause::Rule(4)));
    // `all` is about topics.
    assert_eq!(connects(who("bob", "c"), "127.0.0.1"), (false, Cause::NoRule));
    let error = error("[[rules]]\nallow = 'all'\ntopics = '#'\n[[rules]]\ndeny = 'connect'\n");
    assert_eq!(error.line(), Some(4));
    assert!(error.to_string().contains("no client could connect"), "{error}");
}

#[test]
fn publishing_depends_on_qos_and_retain() {
    let rules = rules(
        "[[rules]]\ndeny = 'publish'\ntopics = 'a'\nretain = true\n\
         [[rules]]\nallow = 'publish'\ntopics = 'a'\nqos = [0, 1]\n\
         [[rules]]\nallow = 'publish'\ntopics = 'b'\nqos = 2\nretain = true\n",
    );
    let client = who("", "c");
    for qos in 0..=2 {
        for retain in [false, true] {
            let kind = PublishKind::new(qos, retain);
            let expected = [("a", qos < 2 && !retain), ("b", qos == 2 && retain), ("c", false)];
            for (topic, expected) in expected {
                assert_eq!(rules.publishing(&client, topic).has(kind), expected, "{kind:?}");
                let decision = rules.decide(&client, Access::Publish(kind), topic);
                assert_eq!(decision.is_allowed, expected, "{kind:?}");
            }
        }
    }
}

#[test]
fn subscribing_depends_on_qos_and_group_and_receiving_on_the_topic() {
    let rules = rules(
        "[[rules]]\ndeny = 'subscribe'\ntopics = 'work/#'\nshared = false\n\
         [[rules]]\nallow = 'subscribe'\ntopics = 'work/#'\ngroups = ['w1', 'w2']\n\
         [[rules]]\nallow = 'subscribe'\ntopics = 'low/#'\nqos = 0\n\
         [[rules]]\nallow = 'subscribe'\ntopics = 'any/#'\nshared = true\n",
    );
    let client = who("", "c");
    for (filter, qos, group, expected) in [
        ("work/+", 2, Some("w1"), Coverage::Whole),
        ("work/+", 0, Some("w3"), Coverage::Partial),
        ("work/+", 0, None, Coverage::Partial),
        ("low/#", 0, None, Coverage::Whole),
        ("low/#", 0, Some("g"), Coverage::Whole),
        ("low/#", 1, None, Coverage::Partial),
        ("any/a", 0, Some("g"), Coverage::Whole),
        ("any/a", 0, None, Coverage::Partial),
    ] {
        let kind = SubscriptionKind { qos, group };
        assert_eq!(covers(&rules, &client, filter, &kind), expected, "{filter} {kind:?}");
    }
    // A message is received by a subscription that was granted, whichever that was.
    for (topic, expected) in [("work/a", true), ("low/a", true), ("any/a", true), ("x", false)] {
        assert_eq!(rules.decide(&client, Access::Receive, topic).is_allowed, expected, "{topic}");
    }
}

#[test]
fn a_right_to_subscribe_without_one_to_receive_is_none() {
    let rules = rules(
        "[[rules]]\ndeny = 'receive'\ntopics = 'a/secret'\n\
         [[rules]]\nallow = 'subscribe'\ntopics = 'a/#'\n\
         [[rules]]\nallow = 'receive'\ntopics = 'b/#'\n",
    );
    let client = who("", "c");
    for (filter, expected) in [
        ("a/#", Coverage::Partial),
        ("a/+/x", Coverage::Whole),
        ("a/secret", Coverage::Partial),
        ("b/x", Coverage::Partial),
    ] {
        assert_eq!(covers(&rules, &client, filter, &PLAIN), expected, "{filter}");
    }
    assert_eq!(may(&rules, &client, "b/x"), [false, false, true]);
    assert_eq!(may(&rules, &client, "a/secret"), [false, true, false]);
}

// Five brokers let a name widen what a rule allows (CVE-2017-7650).
#[test]
fn names_with_special_characters_widen_nothing_and_escape_nothing() {
    let rules = rules(
        "[[rules]]\ndeny = 'all'\ntopics = 'secret/x-%c/#'\n\
         [[rules]]\nallow = 'all'\ntopics = ['home/%c/#', 'flat/x%u', 'secret/#', '%u/own']\n",
    );
    for name in ["+", "#", "a/b", "a\u{1}", "+/+", "a\n"] {
        for client in [who("ann", name), who(name, name)] {
            for topic in ["home/a/b/1", "home/x", "home/+/x", "home/#"] {
                assert_eq!(may(&rules, &client, topic), [false; 3], "{client:?} {topic}");
                if !topic.contains(['+', '#']) {
                    assert_eq!(covers(&rules, &client, topic, &PLAIN), Coverage::Partial);
                }
            }
            assert_eq!(covers(&rules, &client, "home/#", &PLAIN), Coverage::Partial);
            // What it is denied begins where the name would stand.
            for (topic, expected) in
                [("secret/x-a/b/1", false), ("secret/other", false), ("secret", false)]
            {
                assert_eq!(may(&rules, &client, topic), [expected; 3], "{client:?} {topic}");
            }
        }
    }
    let plain = who("ann", "c");
    for (topic, expected) in [
        ("home/c/1", true),
        ("flat/xann", true),
        ("secret/x-c/1", false),
        ("secret/x-d/1", true),
        ("ann/own", true),
    ] {
        assert_eq!(may(&rules, &plain, topic), [expected; 3], "{topic}");
    }
    // No name reaches topics of the broker.
    assert_eq!(may(&rules, &who("$SYS", "$SYS"), "$SYS/own"), [false; 3]);
    // Without a user there is no such topic.
    assert_eq!(may(&rules, &who("", "c"), "flat/x"), [false; 3]);
}

#[test]
fn mistakes_are_refused_by_line_and_key() {
    let rule = |text: &str| format!("[[rules]]\nallow = 'publish'\ntopics = ['a']\n{text}\n");
    for (text, line, what) in [
        ("x = 1".to_owned(), 1, "unknown field `x`"),
        ("[[rules]".to_owned(), 1, ""),
        ("\n[[rules]]\ntopics = 'a'".to_owned(), 2, "exactly one of `allow` and `deny`"),
        (rule("deny = 'publish'"), 1, "exactly one of `allow` and `deny`"),
        ("[[rules]]\nallow = 'publsh'\ntopics = 'a'".to_owned(), 2, "`allow` has `publsh`"),
        ("[[rules]]\nallow = 'publish'".to_owned(), 1, "`topics` is missing"),
        ("[[rules]]\nallow = 'connect'\ntopics = 'a'".to_owned(), 3, "`topics` has no meaning"),
        ("[[rules]]\nallow = 'all'\ntopics = 'a/#/b'".to_owned(), 3, "`topics`: `a/#/b`: "),
        ("[[rules]]\nallow = 'all'\ntopics = 'a/%x'".to_owned(), 3, "`%` begins"),
        ("[[rules]]\nallow = 'all'\ntopics = []".to_owned(), 3, "`topics` is empty"),
        ("[[rules]]\nallow = 'all'\ntopics = 7".to_owned(), 3, "`topics` must be a text"),
        (rule("topcis = 'a'"), 4, "unknown field `topcis`"),
        (rule("users = ['ann', 7]"), 4, "`users` must be a text"),
        (rule("roles = 'nurse'"), 4, "`roles` names the role `nurse`"),
        (rule("client_ids = '%x'"), 4, "`client_ids`: `%x`"),
        (rule("anonymous = 'yes'"), 4, "`anonymous` must be true or false"),
        (rule("anonymous = true\nusers = 'ann'"), 5, "never both"),
        (rule("addresses = '10.0.0.0/33'"), 4, "`addresses`: `10.0.0.0/33` is no address"),
        (rule("listeners = 'localhost'"), 4, "`listeners`: `localhost` is no listener"),
        (rule("listeners = '8883'"), 4, "`listeners`: no listener has the address `8883`"),
        (rule("qos = 3"), 4, "`qos` must be"),
        (rule("qos = [0, 'x']"), 4, "`qos` must be"),
        (rule("retain = 1"), 4, "`retain` must be"),
        (rule("shared = true"), 4, "`shared` has no meaning without `subscribe`"),
        (rule("groups = 'g'"), 4, "`groups` has no meaning without `subscribe`"),
        ("[[rules]]\nallow = 'receive'\ntopics = 'a'\nqos = 1".to_owned(), 4, "`qos` has no"),
        ("[[rules]]\nallow = 'subscribe'\ntopics = 'a'\nretain = true".to_owned(), 4, "`retain`"),
        (
            "[[rules]]\nallow = 'subscribe'\ntopics = 'a'\nshared = false\ngroups = 'g'".to_owned(),
            5,
            "`groups` and",
        ),
        ("[users]\nann = 'r'".to_owned(), 2, "`users.ann` names the role `r`"),
        ("[users]\nann = 7".to_owned(), 2, "`users.ann` must be"),
        ("[roles.r]\nx = 1".to_owned(), 2, "unknown field `x`"),
        ("[roles.r]\nqos_max = 3".to_owned(), 2, "`qos_max` must be a number from 0 to 2"),
        ("[roles.r]\n\nconnections_max = 0".to_owned(), 3, "`connections_max` must be"),
        ("[roles.r]\nqueue_len_max = 5_000_000_000".to_owned(), 2, "`queue_len_max` must be"),
        ("[roles.r]\nretain = 'no'".to_owned(), 2, "`retain` must be true or false"),
    ] {
        let error = error(&text);
        assert_eq!(error.line(), Some(line), "{text}: {error}");
        let sentence = error.to_string();
        assert!(sentence.starts_with(&format!("rules.toml:{line}: ")), "{sentence}");
        assert!(sentence.contains(what), "{text}: {sentence}");
    }
}

#[test]
fn the_first_role_that_sets_a_limit_counts_and_the_default_role_last() {
    let rules = rules(
        "[users]\nann = ['a', 'b']\nbob = 'b'\n[roles.a]\nqos_max = 1\nretain = false\n\
         [roles.b]\nqos_max = 0\nsubscriptions_max = 5\n\
         [roles.default]\nsubscriptions_max = 9\nconnections_max = 2\n",
    );
    let ann = rules.limits(Some("ann"));
    let expected = ClientLimits {
        connections_max: Some(2),
        subscriptions_max: Some(5),
        qos_max: Some(1),
        retain: Some(false),
        ..ClientLimits::NONE
    };
    assert_eq!(ann, expected);
    let bob = rules.limits(Some("bob"));
    assert_eq!((bob.qos_max, bob.retain, bob.subscriptions_max), (Some(0), None, Some(5)));
    assert_eq!(rules.limits(None), rules.limits(Some("eve")));
    assert_eq!(rules.limits(None).subscriptions_max, Some(9));
}

#[test]
fn what_one_client_may_have_to_ask_is_bounded() {
    let topics: Vec<String> = (0..10_001).map(|number| format!("'a/{number}'")).collect();
    let rule = |terms: &str| {
        format!("[[rules]]\nallow = 'publish'\n{terms}\ntopics = [{}]\n", topics.join(", "))
    };
    let every = error(&rule("")).to_string();
    assert!(every.contains("for every client"), "{every}");
    let ann = error(&rule("users = 'ann'")).to_string();
    assert!(ann.contains("for the user `ann`"), "{ann}");
    let text = format!("[roles.r]\n[users]\nbob = 'r'\n{}", rule("roles = 'r'"));
    assert!(error(&text).to_string().contains("for the user `bob`"));
    // A role that no user has costs nothing.
    rules(&format!("[roles.r]\n{}", rule("roles = 'r'")));
}

#[test]
fn rules_are_found_by_user_and_role_in_the_order_of_the_file() {
    let mut text = "[roles.r]\n[roles.s]\n[users]\nann = ['r', 's', 'r']\n".to_owned();
    for number in 0..300 {
        let terms = ["", "users = 'ann'\n", "roles = 'r'\n", "roles = ['s', 'r']\n"][number % 4];
        let verb = ["allow", "deny"][number % 2];
        let topics = format!("'t/{number}', 't/last-{}'", number % 7);
        text.push_str(&format!("[[rules]]\n{verb} = 'publish'\n{terms}topics = [{topics}]\n"));
    }
    let rules = rules(&text);
    let ann = who("ann", "c");
    let client = rules.client(&ann);
    let lines: Vec<u32> = rules.asked(&client).map(|rule| rule.line).collect();
    assert_eq!(lines.len(), 300);
    assert!(lines.is_sorted_by(|a, b| a < b), "{lines:?}");
    let bob = who("bob", "c");
    assert_eq!(rules.asked(&rules.client(&bob)).count(), 75);
    assert!(!may(&rules, &ann, "t/last-3")[0], "rule 3 denies it, rule 10 allows it");
    assert!(may(&rules, &ann, "t/last-2")[0]);
}

/// A rule as the naive model has it.
#[derive(Clone, Debug)]
struct Naive {
    allows: bool,
    word: &'static str,
    filter: String,
    is_anns: bool,
    qos: Option<u8>,
}

impl Naive {
    fn text(&self) -> String {
        let Self { allows, word, filter, is_anns, qos } = self;
        let mut text =
            format!("[[rules]]\n{} = '{word}'\n", if *allows { "allow" } else { "deny" });
        text.push_str(&format!("topics = '{filter}'\n"));
        if *is_anns {
            text.push_str("users = 'ann'\n");
        }
        if let Some(qos) = qos.filter(|_| *word != "receive") {
            text.push_str(&format!("qos = {qos}\n"));
        }
        text
    }

    /// Whether it is about a topic, for a client with this user and the identifier `b`.
    fn meets(&self, user: &str, topic: &str) -> bool {
        let filter = self.filter.replace("%c", "b");
        (!self.is_anns || user == "ann") && tacho_topic::matches(&filter, topic)
    }

    fn subscribes(&self, qos: u8) -> bool {
        ["subscribe", "all"].contains(&self.word) && self.qos.is_none_or(|own| own == qos)
    }

    fn publishes(&self, qos: u8) -> bool {
        ["publish", "all"].contains(&self.word) && self.qos.is_none_or(|own| own == qos)
    }

    /// By any subscription.
    fn receives(&self) -> bool {
        let by_some = self.allows || self.qos.is_none();
        self.word == "receive" || ["subscribe", "all"].contains(&self.word) && by_some
    }
}

fn naive_rules() -> impl Strategy<Value = Vec<Naive>> {
    let words = prop::sample::select(vec!["publish", "subscribe", "receive", "all"]);
    let filter = "(a|b|\\+|x%c)(/(a|b|\\+|%c)){0,2}(/#)?|#|\\$s/#|\\$s/\\+";
    let qos = prop::option::weighted(0.3, 0_u8..3);
    let one = (any::<bool>(), words, filter, prop::bool::weighted(0.3), qos);
    let one = one.prop_map(|(allows, word, filter, is_anns, qos)| {
        let qos = qos.filter(|_| word != "receive" && (word != "all" || allows));
        Naive { allows, word, filter, is_anns, qos }
    });
    prop::collection::vec(one, 1..7)
}

fn first(rules: &[Naive], is_about: impl Fn(&Naive) -> bool) -> bool {
    rules.iter().find(|rule| is_about(rule)).is_some_and(|rule| rule.allows)
}

/// Names that could be read as wildcards, as several levels or as topics of the broker, and limits.
#[test]
fn rules_made_ready_decide_like_the_rule_set() {
    let list = rules(
        "[[rules]]\ndeny = 'publish'\ntopics = ['a/%u/x', 'b-%c/#']\n\
         [[rules]]\nallow = 'publish'\nqos = [0, 2]\ntopics = ['a/#', '%c/+/y', '%u/#', '%u']\n\
         [[rules]]\nallow = 'publish'\ntopics = ['$s/%u', 'b-x/y', '#']\nclient_ids = ['c*']\n\
         [roles.short]\ntopic_levels_max = 2\nqos_max = 1\nretain = false\n\
         [users]\nann = ['short']\n",
    );
    let topics = crate::covers::tests::topics(&["a", "ann", "b-c", "c", "x", "y", "$s", "+"], 3);
    for user in [None, Some("ann"), Some("+"), Some("a/x"), Some("$s"), Some("#"), Some("")] {
        for client_id in ["c", "c/x", "+", "ann", "$s", ""] {
            let who = Who::new(user, client_id);
            let ready = list.publish_rules(&who).expect("few filters");
            for topic in &topics {
                let expected =
                    list.publishing(&who, topic).and(list.limits(user).publishing(topic));
                assert_eq!(ready.publishing(topic), expected, "{who:?} {topic}");
            }
        }
    }
}

#[test]
fn no_rules_are_made_ready_of_many_filters() {
    let text: String = (0..65)
        .map(|number| format!("[[rules]]\nallow = 'publish'\ntopics = 'a{number}'\n"))
        .collect();
    let list = rules(&text);
    assert!(list.publish_rules(&who("ann", "c")).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn decisions_are_those_of_the_naive_model(
        naive in naive_rules(),
        filter in "(a|b|\\+|xb)(/(a|b|\\+)){0,2}(/#)?|#|\\$s/#|\\+/#",
        user in prop::sample::select(vec!["ann", "bob", ""]),
        qos in 0_u8..3,
    ) {
        let text: String = naive.iter().map(Naive::text).collect();
        let rules = rules(&text);
        let client = who(user, "b");
        let topics = crate::covers::tests::topics(&["a", "b", "xb", "z", "", "$s"], 4);
        let ready = rules.publish_rules(&client).expect("few filters");
        let mut is_whole = true;
        for topic in &topics {
            let publishes = first(&naive, |rule| rule.publishes(qos) && rule.meets(user, topic));
            let kind = PublishKind::new(qos, false);
            let found = rules.publishing(&client, topic).has(kind);
            prop_assert_eq!(found, publishes, "{} {}", text, topic);
            let found = ready.publishing(topic);
            prop_assert_eq!(found, rules.publishing(&client, topic), "{} {}", text, topic);
            let receives = first(&naive, |rule| rule.receives() && rule.meets(user, topic));
            let found = rules.decide(&client, Access::Receive, topic).is_allowed;
            prop_assert_eq!(found, receives, "{} {}", text, topic);
            let subscribes = first(&naive, |rule| rule.subscribes(qos) && rule.meets(user, topic));
            if tacho_topic::matches(&filter, topic) {
                is_whole &= subscribes && receives;
            }
        }
        let kind = SubscriptionKind { qos, group: None };
        let expected = if is_whole { Coverage::Whole } else { Coverage::Partial };
        prop_assert_eq!(covers(&rules, &client, &filter, &kind), expected, "{} {}", text, filter);
    }

    #[test]
    fn any_text_is_parsed_or_refused(
        text in "((\\[\\[rules\\]\\]|\\[users\\]|allow|topics| = |'a/#'|'all'|7)\n?){0,9}",
        other in "\\PC*",
    ) {
        for text in [text, other] {
            if let Err(error) = RuleSet::parse("rules.toml", &text, None) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}

/// Rules about something else are work, too, though they decide nothing.
#[test]
fn rules_that_are_passed_over_cost_something_and_take_no_steps_from_decisions() {
    let publish = "[[rules]]\nallow = 'publish'\ntopics = 'a'\n".repeat(9_000);
    let list = AccessList::Rules(rules(&format!(
        "{publish}[[rules]]\nallow = 'subscribe'\ntopics = 'a/#'\n"
    )));
    let rules = ClientRules { token: None, list: Some(&list) };
    let filter = TopicFilter::parse("a/#").expect("valid");
    let mut steps = Steps::default();
    for _ in 0..200 {
        let before = steps.done();
        let coverage = rules.covers(&who("ann", "c"), &filter, &PLAIN, &mut steps);
        assert_eq!(coverage, Coverage::Whole);
        assert!(steps.done() - before > 1_000, "{}", steps.done() - before);
    }
}
