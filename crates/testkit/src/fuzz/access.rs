//! Files of access control, tokens and answers of a backend with any content: read, or refused with
//! a message.

use tacho_access::{
    Access, AccessList, Acl, BackendAnswer, Bans, ClientRules, Coverage, FileError, RuleSet, Steps,
    SubscriptionKind, TokenClient, TokenRules, TokenVerifier, Users, Who, emqx_users,
    looks_like_token,
};
use tacho_topic::TopicFilter;

const WHO: Who<'static> = Who::new(Some("ann"), "c1");
const KIND: SubscriptionKind<'static> = SubscriptionKind { qos: 1, group: None };
const FILTERS: [&str; 8] = ["#", "+", "a/#", "a/+", "+/b", "a/b", "$SYS/#", "home/+/ann"];
const TOPICS: [&str; 8] = ["a", "b", "a/b", "a/b/c", "a/x", "/", "$SYS/x", "home/x/ann"];
/// A million rounds of a hash would be a second.
const KEY: &str = "a secret that tokens of the corpus are signed with";

/// The first byte says what the rest is.
pub fn check(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind % 10 {
        0 => access_list(Acl::parse("file", text).map(AccessList::Mosquitto)),
        1 => users(text),
        2 => imported("users.csv", text),
        3 => imported("users.json", text),
        4 => refused(TokenVerifier::parse("file", text, rules())),
        7 => refused(Bans::parse("file", text)),
        9 => refused(BackendAnswer::parse(rest, 1_800_000_000)),
        8 => access_list(RuleSet::parse("file", text, None).map(AccessList::Rules)),
        _ => token(text),
    }
}

fn refused<T, E: std::fmt::Display>(result: Result<T, E>) {
    if let Err(error) = result {
        assert!(!error.to_string().trim().is_empty());
    }
}

/// A filter that is granted as a whole has no topic that is denied.
fn access_list(parsed: Result<AccessList, FileError>) {
    let list = match parsed {
        Ok(list) => list,
        Err(error) => return assert!(!error.to_string().trim().is_empty()),
    };
    let rules = ClientRules { token: None, list: Some(&list) };
    for filter in FILTERS {
        // Invariant: the filters above are valid.
        let filter = TopicFilter::parse(filter).expect("valid");
        let coverage = rules.covers(&WHO, &filter, &KIND, &mut Steps::default());
        let mut matched = TOPICS.into_iter().filter(|topic| filter.matches(topic));
        let denied = matched.find(|topic| !rules.decide(&WHO, Access::Receive, topic).is_allowed);
        assert!(coverage != Coverage::Whole || denied.is_none(), "{filter:?} {denied:?}");
    }
}

/// What is read is there under its name.
fn users(text: &str) {
    match Users::parse("file", text) {
        Ok(users) => {
            let lines = text.lines().count();
            assert!(users.len() <= lines, "{} users in {lines} lines", users.len());
        }
        Err(error) => refused::<(), _>(Err(error)),
    }
}

fn imported(name: &str, text: &str) {
    // Plain passwords would be hashed, which takes its time.
    let hash = "sha256:prefix".parse().ok();
    assert!(hash.is_some());
    refused(emqx_users(name, text, hash));
}

fn rules() -> TokenRules {
    TokenRules {
        user_claim: "sub".to_owned(),
        issuer: None,
        audience: None,
        claims: Default::default(),
        acl_claim: Some("acl".to_owned()),
        attributes_claim: Some("client_attrs".to_owned()),
        leeway_s: 0,
        needs_expiry: false,
    }
}

/// No mutation of a signed token is accepted, unless it says the same.
fn token(text: &str) {
    let verifier = TokenVerifier::parse("file", KEY, rules()).expect("is long enough");
    let client = TokenClient { client_id: "c1", user: None };
    match verifier.verify(text, &client, 1_800_000_000) {
        Ok(verified) => assert_eq!(verified.user, "ann"),
        Err(error) => assert!(!error.to_string().trim().is_empty()),
    }
    looks_like_token(text);
}
