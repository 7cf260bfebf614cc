//! Users and rules, as files and as a naive model of what they say.

use std::collections::HashMap;
use std::sync::LazyLock;

use tacho_access::{Scheme, StoredPassword};
use tacho_testkit::rng::Rng;

pub(super) const USERS: [&str; 3] = ["ann", "bob", "cyd"];
/// What clients publish to; the last one is that of wills.
pub(super) const TOPICS: [&str; 8] = ["p/0", "p/1", "p/1/x", "q/0", "q/1", "s/0", "$own/0", "w/0"];
pub(super) const WILL: usize = 7;
/// Of the shared subscription.
pub(super) const SHARED_TOPIC: usize = 5;
/// What clients subscribe to. The last one is shared.
pub(super) const FILTERS: [&str; 10] =
    ["p/0", "p/+", "p/#", "q/#", "+/0", "#", "+/1/#", "w/+", "$own/#", "$share/g/s/#"];
/// What rules are about.
const RULED: [&str; 12] =
    ["#", "p/#", "p/+", "p/1/#", "p/0", "q/#", "q/0", "+/0", "s/#", "w/#", "$own/#", "+/1/x"];

/// The pattern of a filter, and whether it is shared.
pub(super) fn pattern(filter: usize) -> (&'static str, bool) {
    match FILTERS[filter].strip_prefix("$share/g/") {
        Some(pattern) => (pattern, true),
        None => (FILTERS[filter], false),
    }
}

/// Every topic that could make a difference to these filters.
static DOMAIN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for first in ["p", "q", "s", "w", "z", "$own"] {
        all.push(first.to_owned());
        for second in ["0", "1", "z"] {
            all.push(format!("{first}/{second}"));
            for third in ["x", "z"] {
                all.push(format!("{first}/{second}/{third}"));
            }
        }
    }
    all
});

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    Publish,
    Receive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    allows: bool,
    /// All users, if there is none.
    user: Option<usize>,
    /// Both, if there is none.
    right: Option<Right>,
    filter: &'static str,
}

impl Rule {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            allows: rng.percent(65),
            user: rng.percent(60).then(|| rng.below(USERS.len() as u64) as usize),
            right: match rng.below(3) {
                0 => Some(Right::Publish),
                1 => Some(Right::Receive),
                _ => None,
            },
            filter: RULED[rng.below(RULED.len() as u64) as usize],
        }
    }
}

/// What the files say at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// The number of the password of each user that there is.
    passwords: [Option<u8>; USERS.len()],
    rules: Vec<Rule>,
    /// The first rule stays: the first user may do everything at all times.
    has_steady: bool,
}

impl Policy {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let has_steady = rng.percent(50);
        let steady = Rule { allows: true, user: Some(0), right: None, filter: "#" };
        let drawn = (0..rng.between(1, 6)).map(|_| Rule::draw(rng));
        let rules = has_steady.then_some(steady).into_iter().chain(drawn).collect();
        Self { passwords: [Some(0); USERS.len()], rules, has_steady }
    }

    /// The same with a change somewhere.
    pub(super) fn changed(&self, rng: &mut Rng) -> Self {
        let mut new = self.clone();
        let user = rng.below(USERS.len() as u64) as usize;
        let first = u64::from(self.has_steady);
        let at = rng.between(first, new.rules.len() as u64) as usize;
        match rng.below(10) {
            0 if new.passwords[user].is_some() => new.passwords[user] = None,
            0 | 1 => new.passwords[user] = Some(rng.below(2) as u8),
            2..5 if at < new.rules.len() => new.rules[at].allows ^= true,
            5..7 if at < new.rules.len() => drop(new.rules.remove(at)),
            _ => new.rules.insert(at, Rule::draw(rng)),
        }
        new
    }

    /// The same with all users, so that all clients can come back.
    pub(super) fn for_all(&self) -> Self {
        let passwords = self.passwords.map(|password| Some(password.unwrap_or(0)));
        Self { passwords, ..self.clone() }
    }

    pub(super) fn password_of(&self, user: usize) -> Option<u8> {
        self.passwords[user]
    }

    /// By the first rule that is about the user, the right and the topic.
    pub(super) fn allows(&self, user: usize, right: Right, topic: &str) -> bool {
        let hit = self.rules.iter().find(|rule| {
            rule.user.is_none_or(|known| known == user)
                && rule.right.is_none_or(|known| known == right)
                && tacho_topic::matches(rule.filter, topic)
        });
        hit.is_some_and(|rule| rule.allows)
    }

    /// Whether every topic of a filter may be received.
    pub(super) fn covers(&self, user: usize, filter: usize) -> bool {
        let pattern = pattern(filter).0;
        let mut matched = DOMAIN.iter().filter(|topic| tacho_topic::matches(pattern, topic));
        matched.all(|topic| self.allows(user, Right::Receive, topic))
    }

    /// The password file. The salts are drawn once, so that the same users are the same text.
    pub(super) fn users(&self, stored: &mut HashMap<(usize, u8), StoredPassword>) -> String {
        let mut text = String::new();
        for (user, password) in self.passwords.iter().enumerate() {
            let Some(number) = *password else { continue };
            let stored = stored.entry((user, number)).or_insert_with(|| {
                let word = word(user, number);
                StoredPassword::make(word.as_bytes(), Scheme::Sha512).unwrap()
            });
            text.push_str(&format!("{}:{stored}\n", USERS[user]));
        }
        text
    }

    /// The rules file.
    pub(super) fn rules(&self) -> String {
        let mut text = String::new();
        for Rule { allows, user, right, filter } in &self.rules {
            let verb = if *allows { "allow" } else { "deny" };
            let action = match right {
                Some(Right::Publish) => "publish",
                Some(Right::Receive) => "subscribe",
                None => "all",
            };
            text.push_str(&format!("[[rules]]\n{verb} = '{action}'\ntopics = '{filter}'\n"));
            if let Some(user) = user {
                text.push_str(&format!("users = '{}'\n", USERS[*user]));
            }
        }
        text
    }
}

/// A password.
pub(super) fn word(user: usize, number: u8) -> String {
    format!("{} {number}", USERS[user])
}
