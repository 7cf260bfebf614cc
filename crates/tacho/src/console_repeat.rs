//! A recorded command line, made again by the console, which has neither the folder nor the
//! environment that it was started in.

use clap::{Arg, CommandFactory as _};
use serde_json::{Map, Value, json};
use tacho_console::{RepeatFrom, ToolProblem, ToolRepeat};
use tacho_lab::lacks_secret;
use tacho_scenario::suite::Suite;
use tacho_scenario::{Adjustment, BenchmarkName, Builtin, Limits, Scenario, TimeSpan};

use crate::Cli;

/// The commands that make runs.
const COMMANDS: [&str; 4] = ["run", "ladder", "capacity", "compare"];
/// Flags about the place and the display of the earlier run.
const OF_EARLIER_RUN: [&str; 10] =
    ["dir", "force", "quiet", "json", "junit", "markdown", "badge", "ui", "ui-wait", "no-wait"];
/// Flags whose effect is in the scenario as it ran: load and credentials.
const IN_SCENARIO: [&str; 28] = [
    "var",
    "virtual-users",
    "scale",
    "scale-clients",
    "hold",
    "warmup",
    "machines",
    "ramp-up",
    "jmx-pacing",
    "jmx-payload",
    "jmx-inflight",
    "ignore-unknown",
    "threshold",
    "threads",
    "timing",
    "source-address",
    "closed-window",
    "seed",
    "username",
    "password-file",
    "client-id",
    "credentials",
    "scram",
    "token-key",
    "token-algorithm",
    "token-claim",
    "token-lifetime",
    "token-place",
];
/// Texts of the user, in which anything may stand.
const TEXTS: [&str; 2] = ["name", "note"];

/// A command line, taken apart.
struct Line {
    command: String,
    /// Words that are no flags: the scenario first.
    places: Vec<String>,
    flags: Vec<Flag>,
}

/// A flag without its dashes.
struct Flag {
    name: String,
    value: Option<String>,
}

/// How the run of a recorded command line, without the program, is made again; `ran` is the file of
/// the scenario as it ran (the first of several).
///
/// # Errors
/// Why it cannot be.
pub(crate) fn repeat(
    recorded: &[String],
    ran: Option<&str>,
    from: RepeatFrom<'_>,
) -> Result<ToolRepeat, String> {
    let mut line = Line::parse(recorded)?;
    let Some(scenario) = line.places.first().cloned() else {
        return Err("its record names no scenario".to_owned());
    };
    let is_suite = Suite::find(&scenario).is_some();
    let takes_file = !is_suite
        && Builtin::find(&scenario).is_none()
        && BenchmarkName::parse(&scenario).is_none();
    let is_single = line.command == "run" && !is_suite;
    if line.command == "compare" && line.places.len() > 1 {
        return Err("it compares recorded runs: choose them in the records".to_owned());
    }
    line.flags.retain(|flag| !OF_EARLIER_RUN.contains(&flag.name.as_str()));
    let known = ran.map(|file| Scenario::load(file, &[], &Adjustment::NONE, Limits::NONE));
    let mut broker = None;
    match (from, ran, &known) {
        (RepeatFrom::Ran, Some(file), Some(known)) => {
            line.places = vec![file.to_owned()];
            line.take_file();
            let known = known.as_ref().map_err(|error| format!("its scenario.toml: {error}"))?;
            broker = known.target.broker.as_ref().map(ToString::to_string);
        }
        (RepeatFrom::File(file), ..) => {
            if let Some(first) = line.places.first_mut() {
                file.clone_into(first);
            }
        }
        _ => {}
    }
    let mut problems = Vec::new();
    if !has_own_password(from) {
        problems.extend(known.and_then(Result::ok).as_ref().and_then(missing_password));
    }
    problems.extend(line.flags.iter().filter(|flag| flag.lacks_secret()).map(Flag::problem));
    let command = if is_suite { "suite" } else { &line.command };
    let scenario = (from == RepeatFrom::Line).then_some(scenario);
    let (request, left_out) = line.request((command, scenario), broker);
    Ok(ToolRepeat { words: line.words(), is_single, takes_file, request, left_out, problems })
}

/// Whether the file brings the passwords that the record lacks.
fn has_own_password(from: RepeatFrom<'_>) -> bool {
    let RepeatFrom::File(file) = from else { return false };
    Scenario::load(file, &[], &Adjustment::NONE, Limits::NONE)
        .is_ok_and(|own| own.has_password_in_text())
}

/// A password that the scenario as it ran only refers to.
fn missing_password(scenario: &Scenario) -> Option<ToolProblem> {
    let (group, variable) = scenario.missing_password()?;
    let message = format!(
        "the record does not keep the password of the group '{group}': start the console with the \
         environment variable {variable}, or repeat with changes and name a file with the password"
    );
    Some(ToolProblem { flag: None, message })
}

impl Line {
    fn parse(words: &[String]) -> Result<Self, String> {
        let mut program = Cli::command();
        program.build();
        let (name, rest) = words.split_first().ok_or("its record has no command line")?;
        let command = program.find_subcommand(name).filter(|_| COMMANDS.contains(&name.as_str()));
        let command = command.ok_or_else(|| format!("'tacho {name}' makes no run"))?;
        let mut line = Self { command: name.clone(), places: Vec::new(), flags: Vec::new() };
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
                line.places.push(word.clone());
                continue;
            };
            let (name, own) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            let arg = command.get_arguments().find(|arg| is_called(arg, name));
            let arg = arg.ok_or_else(|| {
                format!("its record is of another version: this one has no flag '-{name}'")
            })?;
            let mut value = own;
            if value.is_none() && arg.get_action().takes_values() {
                let is_optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
                let mut ahead = rest.clone();
                let next = ahead.next().filter(|next| !is_optional || !next.starts_with('-'));
                if next.is_some() {
                    rest = ahead;
                }
                value = next.cloned();
            }
            let name = arg.get_long().unwrap_or_default().to_owned();
            line.flags.push(Flag { name, value });
        }
        Ok(line)
    }

    /// From now on the scenario is a file that has the load and the credentials.
    fn take_file(&mut self) {
        self.flags.retain(|flag| !IN_SCENARIO.contains(&flag.name.as_str()));
        for flag in self.flags.iter_mut().filter(|flag| flag.name == "broker") {
            flag.value = flag.value.as_deref().map(without_credentials);
        }
    }

    /// The command line, without the program.
    fn words(&self) -> Vec<String> {
        let mut words = vec![self.command.clone()];
        words.extend(self.places.iter().cloned());
        for Flag { name, value } in &self.flags {
            match value {
                None => words.push(format!("--{name}")),
                Some(value) if value.starts_with('-') => words.push(format!("--{name}={value}")),
                Some(value) => words.extend([format!("--{name}"), value.clone()]),
            }
        }
        words
    }

    /// The line as a request of the console's API, and the flags for which that has no field.
    fn request(
        &self,
        (command, scenario): (&str, Option<String>),
        broker: Option<String>,
    ) -> (Value, Vec<String>) {
        let mut request = Map::new();
        request.insert("command".to_owned(), json!(command));
        if let Some(scenario) = scenario {
            request.insert("scenario".to_owned(), json!(scenario));
        }
        if let Some(steps) = self.places.get(1) {
            request.insert("steps".to_owned(), json!(steps));
        }
        if let Some(broker) = broker {
            request.insert("broker".to_owned(), json!(broker));
        }
        let mut left_out = Vec::new();
        for flag in &self.flags {
            let count = self.flags.iter().filter(|other| other.name == flag.name).count();
            if flag.lacks_secret() || flag.enter(&mut request, count == 1).is_none() {
                left_out.push(flag.shown());
            }
        }
        (Value::Object(request), left_out)
    }
}

impl Flag {
    fn lacks_secret(&self) -> bool {
        let is_text = TEXTS.contains(&self.name.as_str());
        !is_text && self.value.as_deref().is_some_and(lacks_secret)
    }

    fn problem(&self) -> ToolProblem {
        let message = format!(
            "the record leaves out the secret in '{}': repeat with changes, and name a file with it",
            self.shown()
        );
        ToolProblem { flag: Some(format!("--{}", self.name)), message }
    }

    fn shown(&self) -> String {
        let value = self.value.as_ref().map(|value| format!(" {value}")).unwrap_or_default();
        format!("--{}{value}", self.name)
    }

    /// Puts the flag into its field; `None` where there is none.
    fn enter(&self, request: &mut Map<String, Value>, is_only: bool) -> Option<()> {
        let value = self.value.as_deref()?;
        let is_plain = is_only && !value.contains('=');
        let (field, entry) = match self.name.as_str() {
            "threshold" => return push(request, "thresholds", value),
            "monitor" => return push(request, "monitors", value),
            "out" => return push(request, "outputs", value),
            "agents" => return push(request, "agents", value),
            "objective" => return push(request, "objectives", value),
            "var" => {
                let (name, value) = value.split_once('=')?;
                return put(request, "variables", name, json!(value));
            }
            "virtual-users" => {
                let (group, count) = value.split_once('=')?;
                let count: u32 = count.trim().parse().ok()?;
                return put(request, "virtual_users", group.trim(), json!(count));
            }
            "username" if is_plain => return put(request, "credentials", "username", json!(value)),
            "password-file" if is_plain => {
                return put(request, "credentials", "password_file", json!(value));
            }
            "ca" => return put(request, "tls", "ca_file", json!(value)),
            "cert" => return put(request, "tls", "cert_file", json!(value)),
            "key" => return put(request, "tls", "key_file", json!(value)),
            "ramp-up" => ("ramp_up_s", seconds(value)?),
            "hold" => ("duration_s", seconds(value)?),
            "warmup" => ("warmup_s", seconds(value)?),
            "repeat" | "repeats" => ("repeat", json!(value.parse::<u32>().ok()?)),
            "bus" => ("bus", json!(value)),
            "bus-credentials" => ("bus_credentials", json!(value)),
            "name" => ("name", json!(value)),
            "note" => ("note", json!(value)),
            "brokers" => ("broker", json!(value.split(',').collect::<Vec<_>>())),
            "broker" if is_only && !value.contains(['=', ',']) => ("broker", json!(value)),
            _ => return None,
        };
        request.insert(field.to_owned(), entry);
        Some(())
    }
}

fn push(request: &mut Map<String, Value>, field: &str, value: &str) -> Option<()> {
    request.entry(field).or_insert_with(|| json!([])).as_array_mut()?.push(json!(value));
    Some(())
}

fn put(request: &mut Map<String, Value>, field: &str, key: &str, value: Value) -> Option<()> {
    let fields = request.entry(field).or_insert_with(|| json!({})).as_object_mut()?;
    fields.insert(key.to_owned(), value);
    Some(())
}

fn seconds(text: &str) -> Option<Value> {
    Some(json!(TimeSpan::parse(text).ok()?.0.as_secs_f64()))
}

/// Whether a flag is called so, its first dash taken away.
fn is_called(arg: &Arg, name: &str) -> bool {
    match name.strip_prefix('-') {
        Some(long) => {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(long) || aliases.contains(&long)
        }
        None => {
            let mut letters = name.chars();
            letters.next() == arg.get_short() && letters.next().is_none()
        }
    }
}

/// The value of `--broker` without its credentials: `,user=...`, `,password-file=...` and
/// `...@` in its URL.
fn without_credentials(value: &str) -> String {
    let end = [",user=", ",password-file="].into_iter().filter_map(|part| value.find(part)).min();
    let value = value.get(..end.unwrap_or(value.len())).unwrap_or(value);
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let host = rest.find('/').unwrap_or(rest.len());
    match rest.get(..host).and_then(|authority| authority.rsplit_once('@')) {
        Some((credentials, _)) => {
            let host = rest.get(credentials.len() + 1..).unwrap_or_default();
            format!("{scheme}://{host}")
        }
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests;
