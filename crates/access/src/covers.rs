//! Whether ordered rules allow every topic that a filter matches, decided exactly.
//!
//! A topic is a word of levels. The walk reads one level after the other: the levels that the rules
//! name, and one that stands for all others, since the rules cannot tell those apart. A state is
//! the number of levels read and the rules that may still match. It needs no further look when a
//! rule that matches whatever follows decides it. Different words lead to the same state, so each
//! is visited once; and the walk ends after [`STEPS_MAX`] looks at a rule.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use tacho_topic::TopicFilter;

use crate::template::{LevelFor, Template, Who};

/// Looks at rules after which a decision is given up: well below a millisecond.
pub const STEPS_MAX: usize = 10_000;

/// What the filters of one request may cost together: a client may send any number of them.
#[derive(Clone, Copy, Debug)]
pub struct Steps(usize);

impl Default for Steps {
    fn default() -> Self {
        Self(10 * STEPS_MAX)
    }
}

impl Steps {
    /// How many are left.
    #[must_use]
    pub const fn left(self) -> usize {
        self.0
    }

    /// What is left for one filter.
    fn for_one(self) -> usize {
        self.0.min(STEPS_MAX)
    }

    /// Takes so many; false if there are not as many for one filter.
    fn take(&mut self, steps: usize) -> bool {
        let has_enough = steps <= self.for_one();
        self.0 = self.0.saturating_sub(steps);
        has_enough
    }
}

/// Whether rules allow every topic of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// They allow every topic.
    Whole,
    /// They deny some topic.
    Partial,
    /// It would take more than [`STEPS_MAX`] steps to tell.
    Undecided,
}

/// A rule: the first that matches a topic decides; without any it is denied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule<'a> {
    pub(crate) template: &'a Template,
    pub(crate) allows: bool,
}

/// Decides whether the rules, the first one first, allow every topic that `filter` matches.
pub(crate) fn every_topic<'a>(
    filter: &TopicFilter,
    rules: impl Iterator<Item = Rule<'a>>,
    who: &Who<'a>,
    steps: &mut Steps,
) -> Coverage {
    let levels: Vec<&str> = filter.levels().collect();
    let first_is_wild = filter.starts_with_wildcard();
    let first_is_dollar = filter.as_str().starts_with('$');
    // Wildcards never stand for a first level that starts with `$`.
    let may_match = |rule: &Rule<'_>| rule.template.starts_with_dollar() == first_is_dollar;
    let steps_max = steps.for_one();
    let rules: Vec<Rule<'a>> = rules.filter(may_match).take(steps_max + 1).collect();
    if filter.is_exact() {
        return only_topic(filter.as_str(), &rules, who, steps);
    }
    let all: Vec<u32> = (0..rules.len() as u32).collect();
    let taken = all.len();
    let seen = HashSet::new();
    let mut walk = Walk { levels, first_is_wild, rules, who, seen, steps: taken, steps_max };
    let coverage = if taken > steps_max { Coverage::Undecided } else { walk.run(all) };
    steps.take(walk.steps);
    coverage
}

/// Decides about a filter without wildcards, which matches one topic.
fn only_topic(topic: &str, rules: &[Rule<'_>], who: &Who<'_>, steps: &mut Steps) -> Coverage {
    if !steps.take(1 + rules.len()) {
        return Coverage::Undecided;
    }
    let hit = rules.iter().find(|rule| rule.template.matches(topic, who));
    if hit.is_some_and(|rule| rule.allows) { Coverage::Whole } else { Coverage::Partial }
}

struct Walk<'a, 'f> {
    /// Of the filter.
    levels: Vec<&'f str>,
    first_is_wild: bool,
    rules: Vec<Rule<'a>>,
    who: &'f Who<'a>,
    seen: HashSet<State>,
    steps: usize,
    steps_max: usize,
}

/// How many levels are read, and the rules that may still match, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    depth: usize,
    alive: Vec<u32>,
    /// One empty level is read: it is the beginning of topics, but none itself.
    is_empty: bool,
}

impl<'a> Walk<'a, '_> {
    fn run(&mut self, all: Vec<u32>) -> Coverage {
        let mut open = vec![State { depth: 0, alive: all, is_empty: false }];
        while let Some(state) = open.pop() {
            let depth = state.depth;
            let has_ended = depth >= self.levels.len();
            let goes_on = self.levels.last() == Some(&"#") && depth + 1 >= self.levels.len();
            if state.is_empty && has_ended && !goes_on {
                continue;
            }
            match self.settled(&state) {
                Some(true) => continue,
                Some(false) => return Coverage::Partial,
                None => {}
            }
            let may_end = depth > 0 && !state.is_empty && (has_ended || goes_on);
            if may_end && !self.allows_end(&state) {
                return Coverage::Partial;
            }
            if has_ended && !goes_on {
                continue;
            }
            if !self.push_next(&state, &mut open) {
                return Coverage::Undecided;
            }
        }
        Coverage::Whole
    }

    /// What all topics of a state come to, if that is known already.
    fn settled(&self, state: &State) -> Option<bool> {
        let (mut may_allow, mut may_deny) = (false, false);
        for rule in state.alive.iter().map(|&rule| self.rules[rule as usize]) {
            may_allow |= rule.allows;
            may_deny |= !rule.allows;
            if rule.template.is_open_at(state.depth) {
                return match (may_allow, may_deny) {
                    (true, false) => Some(true),
                    (false, _) => Some(false),
                    (true, true) => None,
                };
            }
        }
        // What no rule matches is denied, and there is a topic in every state.
        (!may_allow).then_some(false)
    }

    /// Whether the topic that ends here is allowed.
    fn allows_end(&self, state: &State) -> bool {
        let mut rules = state.alive.iter().map(|&rule| self.rules[rule as usize]);
        let ends = |rule: &Rule<'_>| {
            rule.template.len() == state.depth || rule.template.is_open_at(state.depth)
        };
        rules.find(ends).is_some_and(|rule| rule.allows)
    }

    /// Adds the states one level further; false if they are too many.
    fn push_next(&mut self, state: &State, open: &mut Vec<State>) -> bool {
        // Rules by the level that they want, and those that take any.
        let mut by_text: BTreeMap<Cow<'_, str>, Vec<u32>> = BTreeMap::new();
        let mut any = Vec::new();
        for &number in &state.alive {
            let template = self.rules[number as usize].template;
            if template.is_open_at(state.depth) {
                any.push(number);
                continue;
            }
            match template.level(state.depth, self.who) {
                Some(LevelFor::Text(text)) => by_text.entry(text).or_default().push(number),
                Some(LevelFor::Single | LevelFor::Multi) => any.push(number),
                Some(LevelFor::Nothing) | None => {}
            }
        }
        let wanted = self.levels.get(state.depth).filter(|level| !matches!(**level, "+" | "#"));
        let depth = state.depth + 1;
        if let Some(&text) = wanted {
            let named = by_text.remove(text).unwrap_or_default();
            let is_empty = depth == 1 && text.is_empty();
            return self.push(State { depth, alive: merged(&any, &named), is_empty }, open);
        }
        for (text, named) in &by_text {
            if state.depth == 0 && self.first_is_wild && text.starts_with('$') {
                continue;
            }
            let is_empty = depth == 1 && text.is_empty();
            if !self.push(State { depth, alive: merged(&any, named), is_empty }, open) {
                return false;
            }
        }
        // All other levels; last, so that it is looked at first: most refusals are found here.
        self.push(State { depth, alive: any, is_empty: false }, open)
    }

    fn push(&mut self, mut state: State, open: &mut Vec<State>) -> bool {
        // A rule behind one that matches whatever follows is never asked.
        let is_last = |&rule: &u32| self.rules[rule as usize].template.is_open_at(state.depth);
        if let Some(last) = state.alive.iter().position(is_last) {
            state.alive.truncate(last + 1);
        }
        self.steps += 1 + state.alive.len();
        if self.steps > self.steps_max {
            return false;
        }
        if self.seen.insert(state.clone()) {
            open.push(state);
        }
        true
    }
}

/// Two ascending lists as one.
fn merged(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut all: Vec<u32> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
pub(crate) mod tests;
