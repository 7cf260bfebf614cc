//! What is not the same on all sides: environments, brokers, scenarios.

use std::collections::{BTreeMap, BTreeSet};

use super::side::{Run, Side};
use tacho_record::{Difference, TargetRecord};

/// What runs of one side have under each name, in the order in which names appear.
#[derive(Default)]
struct Values {
    names: Vec<String>,
    /// Per side.
    values: Vec<BTreeMap<String, BTreeSet<String>>>,
}

impl Values {
    fn of(sides: &[Side], entries: impl Fn(&Run) -> Vec<(String, String)>) -> Self {
        let mut all = Self::default();
        for side in sides {
            let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for (name, value) in side.runs.iter().flat_map(&entries) {
                if !all.names.contains(&name) {
                    all.names.push(name.clone());
                }
                known.entry(name).or_default().insert(value);
            }
            all.values.push(known);
        }
        all
    }

    fn differences(self) -> Vec<Difference> {
        let nothing = BTreeSet::new();
        let of = |name: &String| {
            let sets: Vec<&BTreeSet<String>> =
                self.values.iter().map(|side| side.get(name).unwrap_or(&nothing)).collect();
            let same = sets.windows(2).all(|pair| pair[0] == pair[1]);
            let words = |set: &&BTreeSet<String>| match set.is_empty() {
                true => "–".to_owned(),
                false => set.iter().cloned().collect::<Vec<_>>().join(" / "),
            };
            (!same).then(|| Difference {
                name: name.clone(),
                values: sets.iter().map(words).collect(),
            })
        };
        self.names.iter().filter_map(of).collect()
    }
}

/// Brokers, machines, kernel settings, versions and pinning that differ.
pub(super) fn environments(sides: &[Side]) -> Vec<Difference> {
    let entries = |run: &Run| {
        let mut entries = Vec::new();
        for target in &run.record.targets {
            entries.extend(broker(target));
        }
        let machine = run.environment.iter().flat_map(|environment| environment.entries());
        // What the hash is of is compared by itself.
        entries.extend(machine.filter(|(name, _)| name != "scenario hash"));
        entries
    };
    let mut found = Values::of(sides, entries).differences();
    if sides.iter().any(|side| side.before.is_some()) {
        let values = sides.iter().map(|side| side.before.clone().unwrap_or_else(|| "–".to_owned()));
        let name = "command before each repeat".to_owned();
        found.insert(0, Difference { name, values: values.collect() });
    }
    found
}

/// What a broker is, without what is another one at every start.
fn broker(target: &TargetRecord) -> Vec<(String, String)> {
    let named = |what: &str| match target.name.as_str() {
        "" => what.to_owned(),
        name => format!("{what} of {name}"),
    };
    let mut entries = vec![match &target.command {
        Some(command) => (named("broker"), steady(command, &target.broker)),
        None => (named("broker"), target.broker.clone()),
    }];
    entries.push((named("MQTT version"), target.version.clone()));
    let durability = target.durability.clone();
    entries.extend(durability.map(|level| (named("durability"), level)));
    let verified = target.tls_verified.map(|yes| if yes { "yes" } else { "no" }.to_owned());
    entries.extend(verified.map(|yes| (named("certificate verified"), yes)));
    entries
}

/// A command with `{port}` and `{dir}` in the places of what the run chose.
fn steady(command: &str, url: &str) -> String {
    let port = url.rsplit(':').next().unwrap_or_default();
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    let command = match port.is_empty() {
        true => command.to_owned(),
        false => with_port(command, &port),
    };
    let chosen = |word: &str| {
        let last = word.rsplit('/').next().unwrap_or_default();
        word.contains('/') && (last.starts_with("data") || last.starts_with("certificates"))
    };
    let words = command.split(' ').map(|word| if chosen(word) { "{dir}" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The number `port` where it stands alone becomes `{port}`.
fn with_port(command: &str, port: &str) -> String {
    let mut out = String::new();
    let mut from = 0;
    let continues = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit() || c == '.');
    for (at, _) in command.match_indices(port) {
        let (before, after) = (&command[..at], &command[at + port.len()..]);
        if !continues(before.chars().next_back()) && !continues(after.chars().next()) {
            out.push_str(&command[from..at]);
            out.push_str("{port}");
            from = at + port.len();
        }
    }
    out.push_str(&command[from..]);
    out
}

/// Keys of the scenario that differ; where the broker is belongs to the environment.
pub(super) fn scenarios(sides: &[Side]) -> Vec<Difference> {
    let entries = |run: &Run| {
        let mut entries = Vec::new();
        for (key, value) in run.scenario.iter().flatten() {
            if !matches!(key.as_str(), "target" | "targets" | "thresholds") {
                flatten(key, value, &mut entries);
            }
        }
        entries
    };
    let known = |side: &Side| side.runs.iter().any(|run| run.scenario.is_some());
    match sides.iter().all(known) {
        true => Values::of(sides, entries).differences(),
        false => Vec::new(),
    }
}

fn flatten(name: &str, value: &toml::Value, out: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, out));
        }
        toml::Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&format!("{name}[{}]", index + 1), item, out);
            }
        }
        toml::Value::String(text) => out.push((name.to_owned(), text.clone())),
        other => out.push((name.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_chosen_per_run_are_no_difference() {
        let one =
            steady("tacho broker --listen 127.0.0.1:4711 --data-dir /x/data", "mqtt://h:4711");
        assert_eq!(one, "tacho broker --listen 127.0.0.1:{port} --data-dir {dir}");
        assert_eq!(
            steady("x -p 1 --rate 1.5 --n 11", "mqtt://h:1"),
            "x -p {port} --rate 1.5 --n 11"
        );
        assert_eq!(steady("mosquitto -p 99", "ws://h:99/mqtt"), "mosquitto -p {port}");
    }
}
