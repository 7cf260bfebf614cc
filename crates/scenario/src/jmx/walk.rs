//! From the elements of a plan to its thread groups.

use std::path::Path;

use super::condition;
use super::csv_data::{self, is_data_set};
use super::error::PlanError;
use super::group::{ConnectSampler, EFFICIENT, Pace, Stream, Subscription, ThreadGroup};
use super::timer::{Timer, is_timer};
use super::values::Values;
use super::xml::Element;
use crate::jmx_options::{JmxOptions, PlanLoops};

/// A plan that was read.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) groups: Vec<ThreadGroup>,
    pub(super) values: Values,
    /// Unsupported elements and properties, each with its line.
    pub(super) problems: Vec<String>,
}

const DISCONNECTS: [&str; 2] =
    ["net.xmeter.samplers.DisConnectSampler", "net.xmeter.samplers.EfficientDisConnectSampler"];

/// Classes that a run has no use for: listeners write files that a run writes anyway.
const WITHOUT_EFFECT: [&str; 6] =
    ["ResultCollector", "Summariser", "WorkBench", "DebugSampler", DISCONNECTS[0], DISCONNECTS[1]];

/// Reads a plan.
///
/// # Errors
/// When it has no thread group, or `overrides` has a variable that it does not have.
pub(super) fn walk(
    root: &Element,
    overrides: &[(String, String)],
    options: JmxOptions,
    directory: Option<&Path>,
) -> Result<Walked, PlanError> {
    let mut walker = Walker {
        directory,
        options,
        groups: Vec::new(),
        values: Values::new(overrides),
        problems: Vec::new(),
        path: Vec::new(),
        loops: Vec::new(),
    };
    walker.top(&root.children);
    if walker.groups.is_empty() && walker.problems.is_empty() {
        return Err(PlanError::new("the plan has no enabled thread group"));
    }
    if let Some((name, known)) = walker.values.unused_override() {
        let known = match known.is_empty() {
            true => "it has none".to_owned(),
            false => format!("it has {}", known.join(", ")),
        };
        return Err(PlanError::new(format!("the plan has no variable '{name}'; {known}")));
    }
    if options.ignore_unknown {
        for problem in std::mem::take(&mut walker.problems) {
            walker.values.note(format!("Left out: {problem}."));
        }
    }
    Ok(Walked { groups: walker.groups, values: walker.values, problems: walker.problems })
}

struct Walker<'d> {
    /// Where the plan is.
    directory: Option<&'d Path>,
    options: JmxOptions,
    groups: Vec<ThreadGroup>,
    values: Values,
    problems: Vec<String>,
    /// Names of the elements around the current one.
    path: Vec<String>,
    /// Loops around the current element, the innermost last.
    loops: Vec<Loop>,
}

/// One loop and its samples per iteration.
#[derive(Debug, Default)]
struct Loop {
    /// Turns, those of outer loops multiplied; `None` is without end.
    turns: Option<u64>,
    samples: Vec<Sample>,
}

/// A sampler in a loop.
#[derive(Debug)]
struct Sample {
    timers: Vec<Scoped>,
    /// Which stream of the group it is, if it publishes.
    stream: Option<usize>,
}

/// A timer and its place, which tells it from others of the same kind.
#[derive(Clone, Debug)]
struct Scoped {
    line: u32,
    timer: Timer,
}

impl Walker<'_> {
    fn problem(&mut self, element: &Element, sentence: &str) {
        let mut path = self.path.join(" > ");
        if !path.is_empty() {
            path.push_str(" > ");
        }
        self.problems.push(format!("line {}: {path}{}: {sentence}", element.line, element.name));
    }

    fn unknown(&mut self, element: &Element) {
        let sentence = format!("the element '{}' is not supported", element.class);
        self.problem(element, &sentence);
    }

    /// The test plan and the elements beside its thread groups.
    fn top(&mut self, elements: &[Element]) {
        for element in elements {
            match element.class.as_str() {
                "TestPlan" | "Arguments" => {
                    for argument in &element.arguments {
                        if let Err(sentence) = self.values.define(argument) {
                            let sentence = format!("variable '{}': {sentence}", argument.name);
                            self.problem(element, &sentence);
                        }
                    }
                    if element.flag("TestPlan.serialize_threadgroups") {
                        self.problem(element, "consecutive thread groups are not supported");
                    }
                    self.path.push(element.name.clone());
                    self.top(&element.children);
                    self.path.pop();
                }
                "ThreadGroup" => self.group(element),
                class if is_data_set(class) => self.data_set(element),
                class if WITHOUT_EFFECT.contains(&class) => {}
                _ => self.unknown(element),
            }
        }
    }

    fn data_set(&mut self, element: &Element) {
        let (directory, division) = (self.directory, self.options.rows);
        if let Err(sentence) = csv_data::define(element, &mut self.values, directory, division) {
            self.problem(element, &sentence);
        }
    }

    fn group(&mut self, element: &Element) {
        self.values.enter_group(&element.name);
        let group = match ThreadGroup::read(element, &mut self.values) {
            Ok(group) => group,
            Err(sentence) => return self.problem(element, &sentence),
        };
        self.groups.push(group);
        self.path.push(element.name.clone());
        let turns = self.turns_of_group(element);
        self.enter(turns, element, &[]);
        self.path.pop();
        // Invariant: the group was pushed above.
        let Some(group) = self.groups.last() else { return };
        let empty = group.streams.is_empty() && group.subscriptions.is_empty();
        if group.connect.is_none() && empty {
            self.groups.pop();
        } else if group.connect.is_none() {
            self.problem(element, "it has samplers but no enabled 'MQTT Connect'");
            self.groups.pop();
        }
    }

    /// Turns of a thread group: its own, unless others are asked for.
    fn turns_of_group(&mut self, element: &Element) -> Option<u64> {
        let Some(loops) = self.options.loops else { return self.turns(element) };
        let values = &mut self.values;
        let mut is_endless = |child: &Element| {
            let loops = child.get("LoopController.loops").map(|text| values.fixed(text));
            child.class == "LoopController"
                && loops.is_some_and(|loops| loops.is_ok_and(|loops| loops.trim() == "-1"))
        };
        if element.children.iter().any(&mut is_endless) {
            self.values.note(format!(
                "Thread group '{}' has an infinite loop inside, which never ends: its threads run \
                 through the group once, whatever loops are asked for.",
                element.name
            ));
            return self.turns(element);
        }
        match loops {
            PlanLoops::Forever => None,
            PlanLoops::Times(times) => Some(u64::from(times)),
        }
    }

    /// Turns of a loop controller, or of a thread group's own one; outer ones multiplied.
    fn turns(&mut self, element: &Element) -> Option<u64> {
        let own = match element.get("LoopController.loops").map(|text| self.values.fixed(text)) {
            None => Some(1),
            Some(Ok(text)) => match text.trim().parse::<i64>() {
                Ok(-1) => None,
                // JMeter reads other text as 0.
                turns => Some(turns.ok().and_then(|turns| u64::try_from(turns).ok()).unwrap_or(0)),
            },
            Some(Err(sentence)) => {
                self.problem(element, &sentence);
                Some(1)
            }
        };
        let outer = self.loops.last().map_or(Some(1), |outer| outer.turns);
        match own {
            Some(0) => Some(0),
            own => Some(own?.saturating_mul(outer?)),
        }
    }

    /// Walks the children of `element` as a separate loop.
    fn enter(&mut self, turns: Option<u64>, element: &Element, timers: &[Scoped]) {
        if turns == Some(0) {
            return self.values.note(format!(
                "Line {}: '{}' loops 0 times: its elements do not run.",
                element.line, element.name
            ));
        }
        self.loops.push(Loop { turns, samples: Vec::new() });
        self.controller(&element.children, timers);
        let finished = self.loops.pop().unwrap_or_default();
        self.settle(&finished);
    }

    /// Elements of one scope: timers hold for all samplers of it.
    fn controller(&mut self, elements: &[Element], outer: &[Scoped]) {
        let mut timers = outer.to_vec();
        self.read_timers(elements, &mut timers);
        // Configuration holds for all samplers of its scope, those before it included.
        elements.iter().filter(|element| is_data_set(&element.class)).for_each(|element| {
            self.data_set(element);
        });
        for element in elements {
            match element.class.as_str() {
                class
                    if is_timer(class) || is_data_set(class) || WITHOUT_EFFECT.contains(&class) => {
                }
                "LoopController" => {
                    let turns = self.turns(element);
                    self.path.push(element.name.clone());
                    self.enter(turns, element, &timers);
                    self.path.pop();
                }
                "OnceOnlyController" => {
                    self.path.push(element.name.clone());
                    self.enter(Some(1), element, &timers);
                    self.path.pop();
                }
                "GenericController" | "TransactionController" => {
                    self.path.push(element.name.clone());
                    self.controller(&element.children, &timers);
                    self.path.pop();
                }
                "IfController" => self.if_controller(element, &timers),
                "Arguments" => {
                    for argument in &element.arguments {
                        if let Err(sentence) = self.values.define(argument) {
                            self.problem(element, &sentence);
                        }
                    }
                }
                "net.xmeter.samplers.ConnectSampler" | EFFICIENT => {
                    let leaves = |other: &Element| DISCONNECTS.contains(&&*other.class);
                    self.connect(element, elements.iter().any(leaves));
                }
                "net.xmeter.samplers.PubSampler" => self.publish(element, &timers),
                "net.xmeter.samplers.SubSampler" => self.subscribe(element, &timers),
                _ => self.unknown(element),
            }
        }
    }

    fn if_controller(&mut self, element: &Element, timers: &[Scoped]) {
        match condition::holds(&mut self.values, element.text("IfController.condition")) {
            Ok(true) => {
                self.path.push(element.name.clone());
                self.controller(&element.children, timers);
                self.path.pop();
            }
            Ok(false) => {}
            Err(sentence) => self.problem(element, &sentence),
        }
    }

    fn read_timers(&mut self, elements: &[Element], timers: &mut Vec<Scoped>) {
        for element in elements.iter().filter(|element| is_timer(&element.class)) {
            match Timer::read(element, &mut self.values) {
                Ok(timer) => timers.push(Scoped { line: element.line, timer }),
                Err(sentence) => self.problem(element, &sentence),
            }
        }
    }

    /// The timers of a sampler: those around it and those below it.
    fn sampler_timers(&mut self, element: &Element, around: &[Scoped]) -> Vec<Scoped> {
        let mut timers = around.to_vec();
        self.read_timers(&element.children, &mut timers);
        self.path.push(element.name.clone());
        for child in &element.children {
            let class = child.class.as_str();
            if !is_timer(class) && !WITHOUT_EFFECT.contains(&class) {
                self.unknown(child);
            }
        }
        self.path.pop();
        timers
    }

    /// A connect sampler; `leaves` when its clients disconnect in the same turn.
    fn connect(&mut self, element: &Element, leaves: bool) {
        self.sampler_timers(element, &[]);
        if self.loops.last().is_some_and(|innermost| innermost.turns != Some(1)) {
            if leaves {
                return self
                    .problem(element, "connecting in every loop iteration is not supported");
            }
            self.values.note(format!(
                "Line {}: '{}' is in a loop: clients connect once. JMeter's further attempts fail \
                 with code 500.",
                element.line, element.name
            ));
        }
        let connect = match ConnectSampler::read(element, &mut self.values) {
            Ok(connect) => connect,
            Err(sentence) => return self.problem(element, &sentence),
        };
        if let Some(sentence) = &connect.problem {
            self.problem(element, sentence);
        }
        let mut subscriptions = Vec::new();
        if element.class == EFFICIENT && element.flag("mqtt.sub_when_connected") {
            match Subscription::read(element, &mut self.values) {
                Ok(read) => subscriptions = read,
                Err(sentence) => return self.problem(element, &sentence),
            }
        }
        match self.groups.last_mut() {
            Some(group) if group.connect.is_none() => {
                group.connect = Some(connect);
                group.subscriptions.extend(subscriptions);
            }
            _ => self.problem(element, "a client connects only once; JMeter answers with code 500"),
        }
    }

    /// Does the group have a connection for a sampler? One of many connections is no such.
    fn has_connection(&mut self, element: &Element) -> bool {
        let connect = self.groups.last().and_then(|group| group.connect.as_ref());
        let has = connect.is_none_or(|connect| !connect.is_efficient);
        if !has {
            self.problem(
                element,
                "connections of an efficient connect sampler only subscribe when they connect; \
                 for others JMeter answers with code 500",
            );
        }
        has
    }

    fn publish(&mut self, element: &Element, timers: &[Scoped]) {
        if !self.has_connection(element) {
            return;
        }
        let timers = self.sampler_timers(element, timers);
        let turns = self.loops.last().map_or(Some(1), |innermost| innermost.turns);
        match (Stream::read(element, &mut self.values), self.groups.last_mut()) {
            (Ok(mut stream), Some(group)) => {
                stream.count = turns;
                let index = group.streams.len();
                group.streams.push(stream);
                self.sampled(Sample { timers, stream: Some(index) });
            }
            (Err(sentence), _) => self.problem(element, &sentence),
            (Ok(_), None) => {}
        }
    }

    fn subscribe(&mut self, element: &Element, timers: &[Scoped]) {
        if !self.has_connection(element) {
            return;
        }
        let timers = self.sampler_timers(element, timers);
        match (Subscription::read(element, &mut self.values), self.groups.last_mut()) {
            (Ok(subscriptions), Some(group)) => {
                group.subscriptions.extend(subscriptions);
                self.sampled(Sample { timers, stream: None });
            }
            (Err(sentence), _) => self.problem(element, &sentence),
            (Ok(_), None) => {}
        }
    }

    fn sampled(&mut self, sample: Sample) {
        if let Some(innermost) = self.loops.last_mut() {
            innermost.samples.push(sample);
        }
    }

    /// Gives the streams of a loop the pace that its timers make.
    fn settle(&mut self, finished: &Loop) {
        let samples = &finished.samples;
        let sharing = |line: u32| {
            let shares = |sample: &&Sample| sample.timers.iter().any(|scoped| scoped.line == line);
            samples.iter().filter(shares).count() as u32
        };
        let mut pause_ms = 0.0;
        let mut random_pause = false;
        for scoped in samples.iter().flat_map(|sample| &sample.timers) {
            if let Timer::Pause { mean_ms, random } = scoped.timer {
                pause_ms += mean_ms;
                random_pause |= random;
            }
        }
        let Some(group) = self.groups.last_mut() else { return };
        for sample in samples {
            let Some(stream) = sample.stream.and_then(|index| group.streams.get_mut(index)) else {
                continue;
            };
            let mut pace = Pace { pause_ms, random_pause, ..Pace::default() };
            for scoped in &sample.timers {
                match &scoped.timer {
                    Timer::Throughput(throughput) => {
                        pace.throughput = Some((throughput.clone(), sharing(scoped.line)));
                    }
                    Timer::Arrivals { per_second } => {
                        pace.arrivals = Some((*per_second, sharing(scoped.line)));
                    }
                    Timer::Pause { .. } => {}
                }
            }
            stream.pace = pace;
        }
    }
}
