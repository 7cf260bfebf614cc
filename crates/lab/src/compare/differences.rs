//! What is not the same on all sides: environments, brokers, scenarios.

use std::collections::{BTreeMap, BTreeSet};

use super::side::{Run, Side};
use tacho_record::{Difference, Property, PropertyValue, TargetRecord};

/// A property of a run.
type Entry = (Property, PropertyValue);

/// What runs of one side have of each property, in the order in which properties appear.
#[derive(Default)]
struct Values {
    properties: Vec<Property>,
    /// Per side.
    values: Vec<BTreeMap<Property, BTreeSet<PropertyValue>>>,
}

impl Values {
    fn of(sides: &[Side], entries: impl Fn(&Run) -> Vec<Entry>) -> Self {
        let mut all = Self::default();
        for side in sides {
            let mut known: BTreeMap<Property, BTreeSet<PropertyValue>> = BTreeMap::new();
            for (property, value) in side.runs.iter().flat_map(&entries) {
                if !all.properties.contains(&property) {
                    all.properties.push(property.clone());
                }
                known.entry(property).or_default().insert(value);
            }
            all.values.push(known);
        }
        all
    }

    fn differences(self) -> Vec<Difference> {
        let nothing = BTreeSet::new();
        let of = |property: Property| {
            let sets: Vec<&BTreeSet<PropertyValue>> =
                self.values.iter().map(|side| side.get(&property).unwrap_or(&nothing)).collect();
            let same = sets.windows(2).all(|pair| pair[0] == pair[1]);
            let values = sets.iter().map(|set| set.iter().cloned().collect()).collect();
            (!same).then(|| difference(property, values))
        };
        self.properties.into_iter().filter_map(of).collect()
    }
}

/// `report` writes its words.
fn difference(property: Property, property_values: Vec<Vec<PropertyValue>>) -> Difference {
    Difference { property: Some(property), property_values, ..Difference::default() }
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
        entries.extend(machine.filter(|(property, _)| *property != Property::ScenarioHash));
        entries
    };
    let mut found = Values::of(sides, entries).differences();
    if sides.iter().any(|side| side.before.is_some()) {
        let commands = sides.iter().map(|side| side.before.clone());
        let values = commands.map(|command| command.map(PropertyValue::Text).into_iter().collect());
        found.insert(0, difference(Property::CommandBefore, values.collect()));
    }
    found
}

/// What a broker is, without what is another one at every start.
fn broker(target: &TargetRecord) -> Vec<Entry> {
    let name = || target.name.clone();
    let broker = match &target.command {
        Some(command) => steady(command, &target.broker),
        None => target.broker.clone(),
    };
    let mut entries = vec![
        (Property::Broker { target: name() }, PropertyValue::Text(broker)),
        (Property::MqttVersion { target: name() }, PropertyValue::Text(target.version.clone())),
    ];
    let durability = target.durability.clone().map(PropertyValue::Text);
    entries.extend(durability.map(|level| (Property::Durability { target: name() }, level)));
    let flags = [
        (Property::CertificateVerified { target: name() }, target.tls_verified),
        (Property::SessionsResumed { target: name() }, target.tls_resumed),
    ];
    let told =
        |(property, flag): (_, Option<bool>)| Some((property, PropertyValue::flag(Some(flag?))));
    entries.extend(flags.into_iter().filter_map(told));
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

/// Keys of the scenario that differ; where the broker is belongs to the environment, and a
/// translation changes nothing that runs.
pub(super) fn scenarios(sides: &[Side]) -> Vec<Difference> {
    let entries = |run: &Run| {
        let mut entries = Vec::new();
        for (key, value) in run.scenario.iter().flatten() {
            if !matches!(key.as_str(), "target" | "targets" | "thresholds" | "description_zh") {
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

fn flatten(name: &str, value: &toml::Value, out: &mut Vec<Entry>) {
    let text = match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, out));
            return;
        }
        toml::Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&format!("{name}[{}]", index + 1), item, out);
            }
            return;
        }
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    out.push((Property::Key(name.to_owned()), PropertyValue::Text(text)));
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
