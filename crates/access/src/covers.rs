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
/// In topics that are named: a level that no rule has.
const ANY_LEVEL: &str = "x";
/// For all filters of a request.
const ALL_STEPS: usize = 10 * STEPS_MAX;
/// Rules that are passed over in the time of a look at one.
const PASSED_PER_STEP: usize = 4;

/// What the filters of one request may cost together: a client may send any number of them.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    left: usize,
    /// Rules that were passed over since they are about something else. Files have limits for
    /// them, and they do not count for the decision.
    passed: usize,
}

impl Default for Steps {
    fn default() -> Self {
        Self { left: ALL_STEPS, passed: 0 }
    }
}

impl Steps {
    /// How much was done so far, in looks at a rule.
    #[must_use]
    pub const fn done(self) -> usize {
        ALL_STEPS - self.left + self.passed / PASSED_PER_STEP
    }

    /// What was done beside counts as work, but leaves as much for the decisions.
    pub const fn add_work(&mut self, beside: Self) {
        self.pass_over(beside.done() * PASSED_PER_STEP);
    }

    pub(crate) const fn pass_over(&mut self, rules: usize) {
        self.passed += rules;
    }

    /// What is left for one filter.
    fn for_one(self) -> usize {
        self.left.min(STEPS_MAX)
    }

    /// Takes so many; false if there are not as many for one filter.
    fn take(&mut self, steps: usize) -> bool {
        let has_enough = steps <= self.for_one();
        self.left = self.left.saturating_sub(steps);
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

/// Decides whether the rules, the first one first, allow every topic that `filter` matches. A topic
/// that they deny goes to `denied`, if it is wanted.
pub(crate) fn every_topic<'a>(
    filter: &TopicFilter,
    rules: impl Iterator<Item = Rule<'a>>,
    who: &Who<'a>,
    steps: &mut Steps,
    denied: Option<&mut String>,
) -> Coverage {
    let levels: Vec<&str> = filter.levels().collect();
    let first_is_wild = filter.starts_with_wildcard();
    let first_is_dollar = filter.as_str().starts_with('$');
    // Wildcards never stand for a first level that starts with `$`.
    let may_match = |rule: &Rule<'_>| rule.template.starts_with_dollar() == first_is_dollar;
    let steps_max = steps.for_one();
    let rules: Vec<Rule<'a>> = rules.filter(may_match).take(steps_max + 1).collect();
    if filter.is_exact() {
        let topic = filter.as_str();
        if let Some(denied) = denied {
            topic.clone_into(denied);
        }
        return only_topic(topic, &rules, who, steps);
    }
    let all: Vec<u32> = (0..rules.len() as u32).collect();
    let taken = all.len();
    let mut walk = Walk {
        levels,
        first_is_wild,
        rules,
        who,
        seen: HashSet::new(),
        steps: taken,
        steps_max,
        keeps_words: denied.is_some(),
    };
    let coverage = if taken > steps_max { Coverage::Undecided } else { walk.run(all, denied) };
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
    /// Whether a denied topic is to be named.
    keeps_words: bool,
}

/// A state that is to be looked at, and the levels that led to it, if they are kept.
struct OpenState {
    state: State,
    word: Vec<String>,
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
    fn run(&mut self, all: Vec<u32>, denied: Option<&mut String>) -> Coverage {
        let state = State { depth: 0, alive: all, is_empty: false };
        let mut open = vec![OpenState { state, word: Vec::new() }];
        while let Some(next) = open.pop() {
            let state = &next.state;
            let depth = state.depth;
            let has_ended = depth >= self.levels.len();
            let goes_on = self.goes_on(depth);
            if state.is_empty && has_ended && !goes_on {
                continue;
            }
            let may_end = depth > 0 && !state.is_empty && (has_ended || goes_on);
            match self.settled(state) {
                Some(true) => continue,
                None if !may_end || self.allows_end(state) => {}
                Some(false) | None => {
                    if let Some(denied) = denied {
                        *denied = self.topic_of(next);
                    }
                    return Coverage::Partial;
                }
            }
            if has_ended && !goes_on {
                continue;
            }
            if !self.push_next(&next, &mut open) {
                return Coverage::Undecided;
            }
        }
        Coverage::Whole
    }

    /// Whether any further levels may follow so many.
    fn goes_on(&self, depth: usize) -> bool {
        self.levels.last() == Some(&"#") && depth + 1 >= self.levels.len()
    }

    /// A topic of a state whose topics are denied, at least the one that ends there: the levels
    /// that were read, and any for those that are still missing.
    fn topic_of(&self, OpenState { state, mut word }: OpenState) -> String {
        let (mut depth, mut is_empty) = (state.depth, state.is_empty);
        while depth == 0 || is_empty || !(depth >= self.levels.len() || self.goes_on(depth)) {
            let wanted = self.levels.get(depth).filter(|level| !matches!(**level, "+" | "#"));
            let level = wanted.copied().unwrap_or(ANY_LEVEL);
            word.push(level.to_owned());
            is_empty = depth == 0 && level.is_empty();
            depth += 1;
        }
        word.join("/")
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
    fn push_next(&mut self, from: &OpenState, open: &mut Vec<OpenState>) -> bool {
        let (state, keeps_words) = (&from.state, self.keeps_words);
        let word = |level: &str| match keeps_words {
            true => {
                from.word.iter().map(String::as_str).chain([level]).map(str::to_owned).collect()
            }
            false => Vec::new(),
        };
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
            let state = State { depth, alive: merged(&any, &named), is_empty };
            return self.push(OpenState { state, word: word(text) }, open);
        }
        for (text, named) in &by_text {
            if state.depth == 0 && self.first_is_wild && text.starts_with('$') {
                continue;
            }
            let is_empty = depth == 1 && text.is_empty();
            let state = State { depth, alive: merged(&any, named), is_empty };
            if !self.push(OpenState { state, word: word(text) }, open) {
                return false;
            }
        }
        // All other levels; last, so that it is looked at first: most refusals are found here.
        let mut other = ANY_LEVEL.to_owned();
        while keeps_words && by_text.contains_key(&*other) {
            other.push_str(ANY_LEVEL);
        }
        let state = State { depth, alive: any, is_empty: false };
        self.push(OpenState { state, word: word(&other) }, open)
    }

    fn push(&mut self, next: OpenState, open: &mut Vec<OpenState>) -> bool {
        let OpenState { mut state, word } = next;
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
            open.push(OpenState { state, word });
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
