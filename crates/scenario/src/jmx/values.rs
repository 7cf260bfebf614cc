//! What the texts of a plan stand for: fixed values, and values that differ per client.
//!
//! JMeter evaluates a text again for every sample. A scenario evaluates it once per client; where
//! that makes a difference, a note says so.

use std::collections::{BTreeMap, BTreeSet};

use super::data_set::DataSet;
use super::expression::{Expression, Piece};
use super::xml::Argument;
use crate::VarValue;

/// Longest value that a text may grow to.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A text with its references resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Value(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A variable of the plan, by the name that it has in the scenario.
    Variable {
        name: String,
        value: String,
    },
    /// What a template has between braces: different for each client.
    PerClient(String),
    /// A column of a file with a row for each client: of the data set with this number.
    Column {
        name: String,
        set: usize,
    },
}

/// A variable of the plan as the scenario has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: VarValue,
    pub(super) description: String,
}

/// Resolves texts.
#[derive(Debug)]
pub(super) struct Values {
    variables: BTreeMap<String, Value>,
    /// Those that the scenario shows, in the order of the plan.
    shown: Vec<Variable>,
    data_sets: Vec<DataSet>,
    overrides: BTreeMap<String, String>,
    overrides_used: BTreeSet<String>,
    notes: Vec<String>,
    /// Name of the thread group that is being translated.
    group: String,
    /// Numbers the random draws of a plan.
    draws: u32,
    /// A message is evaluated: what differs from message to message has a field of its own.
    in_message: bool,
    /// Connections that each thread of the group has.
    connections: u32,
}

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self(vec![Part::Text(text.into())])
    }

    fn per_client(expression: impl Into<String>) -> Self {
        Self(vec![Part::PerClient(expression.into())])
    }

    /// The text, when it is the same for all clients.
    pub(super) fn fixed(&self) -> Option<String> {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Variable { value, .. } => Some(value.as_str()),
            Part::PerClient(_) | Part::Column { .. } => None,
        });
        parts.collect()
    }

    /// The one variable that it is, by its name in the scenario.
    pub(super) fn variable(&self) -> Option<&str> {
        match &self.0[..] {
            [Part::Variable { name, .. }] => Some(name),
            _ => None,
        }
    }

    /// Does it hold this expression of a template?
    pub(super) fn holds(&self, expression: &str) -> bool {
        self.0.iter().any(|part| matches!(part, Part::PerClient(inner) if inner == expression))
    }

    /// The one column that it is, and the number of its data set.
    pub(super) fn column(&self) -> Option<(&str, usize)> {
        match &self.0[..] {
            [Part::Column { name, set }] => Some((name, *set)),
            _ => None,
        }
    }

    /// Is it empty for every client?
    pub(super) fn is_blank(&self) -> bool {
        self.fixed().is_some_and(|text| text.trim().is_empty())
    }

    /// As a template of a scenario file.
    pub(super) fn template(&self) -> Result<String, String> {
        let mut template = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) if text.contains("{{") => {
                    return Err(format!("'{text}': a scenario cannot have '{{{{' in a text"));
                }
                Part::Text(text) => template.push_str(text),
                Part::Variable { name, .. } => template.push_str(&format!("{{{{{name}}}}}")),
                Part::PerClient(inner) => template.push_str(&format!("{{{{{inner}}}}}")),
                Part::Column { name, .. } => {
                    return Err(format!(
                        "the column '{name}' can be nothing but a whole client id, user name or \
                         password"
                    ));
                }
            }
        }
        Ok(template)
    }

    /// The same behind and before further text.
    pub(super) fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Cut at a character, as a list of topics is.
    pub(super) fn split(&self, at: char) -> Vec<Self> {
        let mut values = vec![Self::default()];
        let cut = |text: &str| text.contains(at);
        for part in &self.0 {
            let text = match part {
                Part::Text(text) => text,
                Part::Variable { value, .. } if cut(value) => value,
                whole => {
                    if let Some(last) = values.last_mut() {
                        last.0.push(whole.clone());
                    }
                    continue;
                }
            };
            for (index, piece) in text.split(at).enumerate() {
                if index > 0 {
                    values.push(Self::default());
                }
                if let (Some(last), false) = (values.last_mut(), piece.is_empty()) {
                    last.0.push(Part::Text(piece.to_owned()));
                }
            }
        }
        values
    }
}

impl Values {
    /// No variables yet; `overrides` are the names and values of `--var`.
    pub(super) fn new(overrides: &[(String, String)]) -> Self {
        Self {
            variables: BTreeMap::new(),
            shown: Vec::new(),
            data_sets: Vec::new(),
            overrides: overrides.iter().cloned().collect(),
            overrides_used: BTreeSet::new(),
            notes: Vec::new(),
            group: String::new(),
            draws: 0,
            in_message: false,
            connections: 1,
        }
    }

    /// Begins a thread group.
    pub(super) fn enter_group(&mut self, name: &str) {
        self.group = name.to_owned();
        self.connections = 1;
    }

    /// Each thread of the group has so many connections: its number is that of all of them.
    pub(super) fn share_threads(&mut self, connections: u32) {
        self.connections = connections.max(1);
    }

    /// The number of a connection among those of its thread, from 0.
    pub(super) fn connection_of_thread(&self) -> Value {
        Value::per_client(format!("i % {}", self.connections))
    }

    /// A sentence for the reader, once.
    pub(super) fn note(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    /// The notes, and the variables to show.
    pub(super) fn finish(self) -> (Vec<String>, Vec<Variable>) {
        (self.notes, self.shown)
    }

    /// An override that nothing in the plan takes, and what there is to set.
    pub(super) fn unused_override(&self) -> Option<(&str, Vec<&str>)> {
        let unused = self.overrides.keys().find(|name| !self.overrides_used.contains(*name))?;
        Some((unused, self.variables.keys().map(String::as_str).collect()))
    }

    /// Defines a variable of the plan; `--var` wins over its value.
    pub(super) fn define(&mut self, argument: &Argument) -> Result<(), String> {
        let name = argument.name.trim();
        if name.is_empty() {
            return Ok(());
        }
        let value = match self.overrides.get(name).cloned() {
            Some(text) => {
                self.overrides_used.insert(name.to_owned());
                Value::text(number_written_out(&text))
            }
            None => self.evaluate(&argument.value)?,
        };
        let Some(fixed) = value.fixed() else {
            self.variables.insert(name.to_owned(), value);
            return Ok(());
        };
        let shown = scenario_name(name);
        // A later definition of the same name wins, as in JMeter.
        self.shown.retain(|variable| variable.name != shown);
        self.shown.push(Variable {
            name: shown.clone(),
            value: var_value(&fixed),
            description: argument.description.clone(),
        });
        let value = Value(vec![Part::Variable { name: shown, value: fixed }]);
        self.variables.insert(name.to_owned(), value);
        Ok(())
    }

    /// Defines the columns of a file with a row for each client.
    pub(super) fn define_data_set(&mut self, data_set: DataSet) {
        let set = self.data_sets.len();
        for name in &data_set.columns {
            let column = Part::Column { name: name.clone(), set };
            self.variables.insert(name.clone(), Value(vec![column]));
        }
        self.data_sets.push(data_set);
    }

    /// The files with a row for each client.
    pub(super) fn data_sets(&self) -> &[DataSet] {
        &self.data_sets
    }

    /// What a text stands for.
    pub(super) fn evaluate(&mut self, text: &str) -> Result<Value, String> {
        self.resolve(&Expression::parse(text)?)
    }

    /// What the text of a message stands for, as a template of payloads.
    pub(super) fn message(&mut self, text: &str) -> Result<Value, String> {
        self.in_message = true;
        let value = self.evaluate(text);
        self.in_message = false;
        value
    }

    /// What a text stands for when it has to be the same for all clients.
    pub(super) fn fixed(&mut self, text: &str) -> Result<String, String> {
        let value = self.evaluate(text)?;
        value.fixed().ok_or_else(|| format!("'{text}' differs from client to client"))
    }

    pub(super) fn resolve(&mut self, expression: &Expression) -> Result<Value, String> {
        let mut value = Value::default();
        for piece in &expression.0 {
            match piece {
                Piece::Text(text) => value.0.push(Part::Text(text.clone())),
                Piece::Reference { name, arguments, written } if name.starts_with("__") => {
                    value.0.extend(self.call(name, arguments, written)?.0);
                }
                Piece::Reference { name, .. } => value.0.extend(self.look_up(name)?.0),
            }
        }
        let bytes: usize = value.0.iter().map(Part::bytes).sum();
        match bytes > VALUE_BYTES_MAX {
            true => Err(format!("a text grows to more than {VALUE_BYTES_MAX} bytes")),
            false => Ok(value),
        }
    }

    fn look_up(&self, name: &str) -> Result<Value, String> {
        self.variables.get(name).cloned().ok_or_else(|| format!("there is no variable '{name}'"))
    }

    /// A number for a draw and a word that makes it differ from all others of the plan.
    fn salt(&mut self) -> String {
        self.draws += 1;
        format!("{}-{}", scenario_name(&self.group), self.draws)
    }

    /// Random hexadecimal digits per client.
    pub(super) fn hex(&mut self, digits: usize) -> Value {
        let salt = self.salt();
        Value::per_client(format!("hex {digits} {salt}"))
    }

    fn call(
        &mut self,
        name: &str,
        arguments: &[Expression],
        written: &str,
    ) -> Result<Value, String> {
        let fixed = |values: &mut Self, index: usize| -> Result<String, String> {
            let Some(argument) = arguments.get(index) else { return Ok(String::new()) };
            let text = values.resolve(argument)?.fixed();
            Ok(text
                .ok_or_else(|| format!("'{written}' differs from client to client"))?
                .trim()
                .to_owned())
        };
        if self.in_message
            && let Some(field) = field(name, &fixed(self, 0)?, &fixed(self, 1)?)
        {
            return Ok(Value::per_client(field));
        }
        match name {
            _ if self.in_message && PER_CLIENT.contains(&name) => Err(format!(
                "'{written}': a message cannot have what differs from client to client"
            )),
            "__machineName" | "__machineIP" => Ok(Value::per_client("machine")),
            "__threadNum" => Ok(Value::per_client(match self.connections {
                1 => "i + 1".to_owned(),
                connections => format!("i / {connections} + 1"),
            })),
            "__threadGroupName" => Ok(Value::text(self.group.clone())),
            "__xmeterThroughput" => {
                let value = fixed(self, 0)?;
                let unit = fixed(self, 1)?;
                let per_minute = per_minute(&value, &unit)?;
                let text = Value::text(number_text(per_minute));
                let store = fixed(self, 2)?;
                Ok(self.stored(&store, text))
            }
            "__P" => {
                let default = match arguments.len() {
                    0 | 1 => "1".to_owned(),
                    _ => fixed(self, 1)?,
                };
                let property = fixed(self, 0)?;
                Ok(self.property(&property, default))
            }
            "__property" => {
                let (property, default) = (fixed(self, 0)?, fixed(self, 2)?);
                let default = if default.is_empty() { property.clone() } else { default };
                let value = self.property(&property, default);
                let store = fixed(self, 1)?;
                Ok(self.stored(&store, value))
            }
            "__V" => {
                let name = fixed(self, 0)?;
                self.look_up(&name)
            }
            "__UUID" => {
                let mut value = self.hex(8);
                for digits in [4, 4, 4, 12] {
                    value = value.then(Value::text("-")).then(self.hex(digits));
                }
                self.once(written);
                Ok(value)
            }
            "__Random" => {
                let number = |text: String| {
                    text.parse::<i64>().map_err(|_| format!("'{written}': '{text}' is no number"))
                };
                let (low, high) = (number(fixed(self, 0)?)?, number(fixed(self, 1)?)?);
                if low > high || low < 0 {
                    return Err(format!("'{written}': draw from 0 or above, lower number first"));
                }
                let salt = self.salt();
                self.once(written);
                let store = fixed(self, 2)?;
                Ok(self.stored(&store, Value::per_client(format!("random {low} {high} {salt}"))))
            }
            "__RandomString" => {
                let length = fixed(self, 0)?;
                let length: u16 = length
                    .parse()
                    .map_err(|_| format!("'{written}': '{length}' is not a length"))?;
                let letters = match fixed(self, 1)? {
                    none if none.is_empty() => "abcdefghijklmnopqrstuvwxyz0123456789".to_owned(),
                    some => some,
                };
                if letters.contains(|c: char| c.is_whitespace() || "{}".contains(c)) {
                    return Err(format!(
                        "'{written}': draw from letters without spaces and braces"
                    ));
                }
                let salt = self.salt();
                self.once(written);
                let store = fixed(self, 2)?;
                let value = Value::per_client(format!("chars {length} {letters} {salt}"));
                Ok(self.stored(&store, value))
            }
            "__counter" => {
                self.once(written);
                let each = fixed(self, 0)?.eq_ignore_ascii_case("true");
                let value = if each { Value::text("1") } else { Value::per_client("client + 1") };
                let store = fixed(self, 1)?;
                Ok(self.stored(&store, value))
            }
            "__time" => {
                self.note(format!("{written} is the time of the translation, for all messages."));
                let value = time(&fixed(self, 0)?)?;
                let store = fixed(self, 1)?;
                Ok(self.stored(&store, Value::text(value)))
            }
            "__intSum" | "__longSum" => {
                let mut sum: i64 = 0;
                for index in 0..arguments.len() {
                    let text = fixed(self, index)?;
                    match text.parse::<i64>() {
                        Ok(number) => sum = sum.saturating_add(number),
                        // The last one may name a variable for the result.
                        Err(_) if index + 1 == arguments.len() && index >= 2 => {
                            return Ok(self.stored(&text, Value::text(sum.to_string())));
                        }
                        Err(_) => return Err(format!("'{written}': '{text}' is no number")),
                    }
                }
                Ok(Value::text(sum.to_string()))
            }
            _ => Err(format!("the function '{written}' is not supported")),
        }
    }

    /// The value of a JMeter property: `--var` sets those too.
    fn property(&mut self, name: &str, default: String) -> Value {
        let given = self.overrides.get(name).cloned();
        if given.is_some() {
            self.overrides_used.insert(name.to_owned());
        }
        Value::text(given.unwrap_or(default))
    }

    fn stored(&mut self, name: &str, value: Value) -> Value {
        if !name.is_empty() {
            self.variables.insert(name.to_owned(), value.clone());
        }
        value
    }

    fn once(&mut self, written: &str) {
        self.note(format!(
            "{written} is evaluated once per client; JMeter evaluates it for every sample."
        ));
    }
}

/// Functions that give each client something of its own.
const PER_CLIENT: [&str; 7] = [
    "__machineName",
    "__machineIP",
    "__threadNum",
    "__UUID",
    "__Random",
    "__RandomString",
    "__counter",
];

/// The field of a payload's template that a function is, if there is one.
fn field(name: &str, first: &str, second: &str) -> Option<String> {
    match (name, first, second) {
        ("__time", "", _) => Some("time_ms".to_owned()),
        ("__time", "/1000", _) => Some("time_s".to_owned()),
        ("__counter", ..) => Some("seq".to_owned()),
        ("__Random", from, to) if from.parse::<i64>().is_ok() && to.parse::<i64>().is_ok() => {
            Some(format!("random {from} {to}"))
        }
        _ => None,
    }
}

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text)
            | Self::PerClient(text)
            | Self::Column { name: text, .. }
            | Self::Variable { value: text, .. } => text.len(),
        }
    }
}

/// The rate per minute that `__xmeterThroughput` makes of a number and a unit.
pub(super) fn per_minute(value: &str, unit: &str) -> Result<f64, String> {
    let number: f64 = value.parse().map_err(|_| format!("'{value}' is not a rate"))?;
    match unit {
        "SEC" => Ok(number * 60.0),
        "" | "MIN" => Ok(number),
        "HOUR" => Ok(number / 60.0),
        other => Err(format!("__xmeterThroughput knows SEC, MIN and HOUR, not '{other}'")),
    }
}

/// A number without a needless fraction.
pub(super) fn number_text(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 9e15 {
        true => format!("{}", value as i64),
        false => value.to_string(),
    }
}

/// `10k` as `10000`, as `--var` allows; other texts as they are.
fn number_written_out(text: &str) -> String {
    let plain = text.trim().replace('_', "");
    for (unit, factor) in [("k", 1e3), ("K", 1e3), ("M", 1e6)] {
        if let Some(number) = plain.strip_suffix(unit).and_then(|rest| rest.parse::<f64>().ok()) {
            return number_text(number * factor);
        }
    }
    match plain.parse::<f64>() {
        Ok(_) => plain,
        Err(_) => text.to_owned(),
    }
}

/// A name that a scenario's variable or group can have.
pub(super) fn scenario_name(name: &str) -> String {
    let usable = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = name.chars().map(|c| if usable(c) { c } else { '_' }).collect();
    match name.as_str() {
        "i" | "client" | "machine" | "" => format!("{name}_"),
        _ => name,
    }
}

fn var_value(text: &str) -> VarValue {
    // Only what prints as it was written: '007' stays text.
    if let Some(whole) = text.parse::<i64>().ok().filter(|whole| whole.to_string() == text) {
        return VarValue::Integer(whole);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number.to_string() == text => VarValue::Float(number),
        _ => VarValue::Text(text.to_owned()),
    }
}

/// `__time` in the forms that need no calendar.
fn time(format: &str) -> Result<String, String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ms = now.map_or(0, |since| since.as_millis());
    match format.strip_prefix('/') {
        None if format.is_empty() => Ok(ms.to_string()),
        Some(divisor) => match divisor.parse::<u128>() {
            Ok(divisor) if divisor > 0 => Ok((ms / divisor).to_string()),
            _ => Err(format!("__time cannot divide by '{divisor}'")),
        },
        None => Err(format!(
            "__time is supported as ${{__time()}} and ${{__time(/1000)}}, not '{format}'"
        )),
    }
}

#[cfg(test)]
mod tests;
