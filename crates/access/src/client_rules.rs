//! What a client may do: by the rules of its token, and by those of the broker.

use tacho_topic::TopicFilter;

use crate::covers::{Coverage, Rule, Steps, every_topic};
use crate::decision::{Access, Cause, Decision};
use crate::jwt::TokenAcl;
use crate::kinds::{PublishKinds, SubscriptionKind};
use crate::list::AccessList;
use crate::rules::PublishRules;
use crate::template::{Template, Who};

/// The rules of one client. Those that its login has brought are asked first; without any it may
/// do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientRules<'a> {
    /// Of the token that it has logged in with, or of the backend's answer.
    pub token: Option<&'a TokenAcl>,
    /// Those of the broker, if it has any.
    pub list: Option<&'a AccessList>,
}

impl ClientRules<'_> {
    /// Whether there are none, and so the client may do everything.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.token.is_none() && self.list.is_none()
    }

    /// Whether the client may publish to a topic or receive its messages.
    pub fn decide(&self, who: &Who<'_>, access: Access, topic: &str) -> Decision {
        let by_token = self.token.and_then(|token| token.decide(who, access, topic));
        if let Some(is_allowed) = by_token {
            return Decision { is_allowed, cause: Cause::Token };
        }
        match self.list {
            Some(list) => list.decide(who, access, topic),
            None => Decision { is_allowed: true, cause: Cause::NoEntry },
        }
    }

    /// The kinds of PUBLISH that the client may send to a topic, by its rules and limits.
    pub fn publishing(&self, who: &Who<'_>, topic: &str) -> PublishKinds {
        let access = Access::Publish(PublishKinds::ANY);
        let by_token = self.token.and_then(|token| token.decide(who, access, topic));
        let allowed = match (by_token, self.list) {
            (Some(is_allowed), _) => PublishKinds::all_if(is_allowed),
            (None, Some(list)) => list.publishing(who, topic),
            (None, None) => PublishKinds::ALL,
        };
        match self.list {
            Some(list) => allowed.and(list.limits(who.user).publishing(topic)),
            None => allowed,
        }
    }

    /// The same as [`Self::publishing`], ready for many topics; `None` where that does not pay.
    pub fn publish_rules(&self, who: &Who<'_>) -> Option<PublishRules> {
        match self.list {
            Some(list) if self.token.is_none_or(TokenAcl::is_silent) => list.publish_rules(who),
            _ => None,
        }
    }

    /// Whether the client may make a subscription of this kind to every topic that a filter
    /// matches, and receive their messages. What it costs is taken from `steps`.
    pub fn covers(
        &self,
        who: &Who<'_>,
        filter: &TopicFilter,
        kind: &SubscriptionKind<'_>,
        steps: &mut Steps,
    ) -> Coverage {
        self.coverage(who, filter, kind, steps, None)
    }

    /// A topic of a filter that is not [covered](Self::covers) as a whole: one that the client may
    /// not subscribe to or receive from. `None` if there is none, or it takes too many steps.
    pub fn denied_topic(
        &self,
        who: &Who<'_>,
        filter: &TopicFilter,
        kind: &SubscriptionKind<'_>,
        steps: &mut Steps,
    ) -> Option<String> {
        let mut denied = String::new();
        let coverage = self.coverage(who, filter, kind, steps, Some(&mut denied));
        (coverage == Coverage::Partial).then_some(denied)
    }

    fn coverage(
        &self,
        who: &Who<'_>,
        filter: &TopicFilter,
        kind: &SubscriptionKind<'_>,
        steps: &mut Steps,
        mut denied: Option<&mut String>,
    ) -> Coverage {
        if self.token.is_some_and(TokenAcl::allows_all) {
            return Coverage::Whole;
        }
        let own: Vec<Rule<'_>> =
            self.token.iter().flat_map(|token| token.asked(Access::Receive)).collect();
        let is_closed = self.token.is_some_and(TokenAcl::is_closed);
        let Some(list) = self.list.filter(|_| !is_closed) else {
            if self.token.is_none() {
                return Coverage::Whole;
            }
            if is_closed {
                return every_topic(filter, own.into_iter(), who, steps, denied);
            }
            // A wildcard matches no first level that begins with `$`.
            let first = filter.levels().next().filter(|level| level.starts_with('$'));
            let rest = first.map_or_else(|| "#".to_owned(), |first| format!("{first}/#"));
            // Invariant: the first level of a filter, with `#` behind it, is a filter.
            let Ok(template) = Template::literal(&rest) else { return Coverage::Undecided };
            let rest = Rule { template: &template, allows: true };
            return every_topic(filter, own.into_iter().chain([rest]), who, steps, denied);
        };
        for asked in list.about_subscribing(who, kind, steps) {
            let rules = own.iter().copied().chain(asked);
            match every_topic(filter, rules, who, steps, denied.as_deref_mut()) {
                Coverage::Whole => {}
                other => return other,
            }
        }
        Coverage::Whole
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::acl::Acl;

    const KIND: SubscriptionKind<'static> = SubscriptionKind { qos: 0, group: None };
    const PUBLISH: Access = Access::Publish(PublishKinds::ANY);

    const WHO: Who<'static> = Who::new(Some("ann"), "c1");

    fn token(claim: &serde_json::Value) -> TokenAcl {
        TokenAcl::of_claim(claim, &WHO).expect("valid")
    }

    fn mosquitto(text: &str) -> AccessList {
        AccessList::Mosquitto(Acl::parse("acl", text).expect("valid"))
    }

    fn whole(rules: &ClientRules<'_>, filter: &str) -> bool {
        let filter = TopicFilter::parse(filter).expect("valid");
        rules.covers(&WHO, &filter, &KIND, &mut Steps::default()) == Coverage::Whole
    }

    #[test]
    fn lists_of_a_token_allow_and_all_else_is_denied() {
        let token = token(&json!({
            "pub": ["up/${clientid}"], "sub": ["down/%c/#"], "all": ["chat/${username}"],
        }));
        let open = mosquitto("user ann\ntopic #\n");
        for list in [None, Some(&open)] {
            let rules = ClientRules { token: Some(&token), list };
            let may = |access, topic: &str| rules.decide(&WHO, access, topic).is_allowed;
            for (topic, publish, receive) in [
                ("up/c1", true, false),
                ("up/c2", false, false),
                ("down/c1/x", false, true),
                ("down/c1", false, true),
                ("chat/ann", true, true),
                ("other", false, false),
                ("$SYS/x", false, false),
            ] {
                assert_eq!(may(PUBLISH, topic), publish, "{topic}");
                assert_eq!(may(Access::Receive, topic), receive, "{topic}");
                assert_eq!(whole(&rules, topic), receive, "{topic}");
            }
            assert!(whole(&rules, "down/c1/#") && whole(&rules, "down/c1/+/x"));
            assert!(!whole(&rules, "down/+/x") && !whole(&rules, "#") && !whole(&rules, "$SYS/#"));
        }
    }

    #[test]
    fn rules_of_a_token_are_asked_in_order_and_before_the_access_list() {
        let token = token(&json!([
            {"permission": "allow", "action": "subscribe", "topic": "a/b"},
            {"permission": "deny", "topics": ["a/#", "$SYS/secret"], "qos": "all"},
        ]));
        let list = mosquitto("user ann\ntopic read b/#\ntopic a/b\n");
        let rules = ClientRules { token: Some(&token), list: Some(&list) };
        let decided = |access, topic| {
            let decision = rules.decide(&WHO, access, topic);
            (decision.is_allowed, decision.cause)
        };
        assert_eq!(decided(Access::Receive, "a/b"), (true, Cause::Token));
        assert_eq!(decided(PUBLISH, "a/b"), (false, Cause::Token));
        assert_eq!(decided(Access::Receive, "b"), (true, Cause::Line(2)));
        assert_eq!(decided(Access::Receive, "c"), (false, Cause::NoEntry));
        assert!(whole(&rules, "b/#") && whole(&rules, "a/b"));
        assert!(!whole(&rules, "a/+") && !whole(&rules, "#"));
        // Without an access list what no rule matches is allowed.
        let rules = ClientRules { token: Some(&token), list: None };
        assert!(rules.decide(&WHO, PUBLISH, "c").is_allowed);
        assert!(whole(&rules, "c/#") && whole(&rules, "$SYS/broker/#") && whole(&rules, "c"));
        assert!(
            !whole(&rules, "#")
                && !whole(&rules, "$SYS/#")
                && whole(&rules, "+/b")
                && !whole(&rules, "+/c")
                && !whole(&rules, "+")
        );
    }

    #[test]
    fn a_superuser_may_do_everything_whatever_the_access_list_says() {
        let closed = mosquitto("user bob\ntopic a\n");
        let rules = ClientRules { token: Some(&TokenAcl::everything()), list: Some(&closed) };
        for topic in ["a", "b/c", "$SYS/x"] {
            assert!(rules.decide(&WHO, PUBLISH, topic).is_allowed, "{topic}");
            assert!(rules.decide(&WHO, Access::Receive, topic).is_allowed, "{topic}");
            assert_eq!(rules.publishing(&WHO, topic), PublishKinds::ALL, "{topic}");
        }
        assert!(whole(&rules, "#") && whole(&rules, "$SYS/#"));
    }

    #[test]
    fn what_is_not_understood_is_refused_and_not_left_out() {
        for claim in [
            json!("all"),
            json!({"pub": "a"}),
            json!({"pub": [7]}),
            json!({"publish_all": ["a"]}),
            json!([{"permission": "allow", "topic": "a", "qos": [1]}]),
            json!([{"permission": "allow", "topic": "a", "retain": true}]),
            json!([{"permission": "allow", "topic": "a", "ipaddr": "10.0.0.1"}]),
            json!([{"permission": "maybe", "topic": "a"}]),
            json!([{"topic": "a"}]),
            json!([{"permission": "deny", "topic": "eq a/+"}]),
            json!([{"permission": "deny", "topic": "a/#/b"}]),
            json!([{"permission": "deny", "topic": "x-${clientid}"}]),
            json!({"sub": vec!["a"; 1_001]}),
        ] {
            assert!(TokenAcl::of_claim(&claim, &WHO).is_err(), "{claim}");
        }
        // A name must not widen a rule (CVE-2017-7650).
        let own = json!({"sub": ["down/%c"]});
        for client_id in ["+", "#", "a/b", ""] {
            let who = Who { client_id, ..WHO };
            assert!(TokenAcl::of_claim(&own, &who).is_err(), "{client_id}");
            assert!(TokenAcl::of_claim(&json!({"sub": ["a"]}), &who).is_ok());
        }
    }
}
