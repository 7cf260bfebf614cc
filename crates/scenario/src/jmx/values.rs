//! Values of a plan's texts: fixed ones, and ones that differ per client.
//!
//! JMeter evaluates a text again for every sample. A scenario evaluates it once per client; where
//! that makes a difference, a note says so.

mod functions;

use std::collections::{BTreeMap, BTreeSet};

use functions::Call;

use super::data_set::DataSet;
use super::expression::{JmeterPiece, JmeterText};
use super::number::number_text;
use super::value::{Value, ValuePart};
use super::xml::Argument;
use crate::VarValue;

/// Longest value that a text may grow to.
const VALUE_BYTES_MAX: usize = 64 * 1024;

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
    /// A message is being evaluated: values that differ per message become fields.
    in_message: bool,
    /// Connections that each thread of the group has.
    connections: u32,
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

    /// Each thread of the group has this number of connections, which share the thread's number.
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

    /// An override that the plan does not use, and the names that it has.
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
        let value = Value(vec![ValuePart::Variable { name: shown, value: fixed }]);
        self.variables.insert(name.to_owned(), value);
        Ok(())
    }

    /// Defines the columns of a file with a row for each client.
    pub(super) fn define_data_set(&mut self, data_set: DataSet) {
        let set = self.data_sets.len();
        for name in &data_set.columns {
            let column = ValuePart::Column { name: name.clone(), set };
            self.variables.insert(name.clone(), Value(vec![column]));
        }
        self.data_sets.push(data_set);
    }

    /// The files with a row for each client.
    pub(super) fn data_sets(&self) -> &[DataSet] {
        &self.data_sets
    }

    /// The value of a text.
    pub(super) fn evaluate(&mut self, text: &str) -> Result<Value, String> {
        self.resolve(&JmeterText::parse(text)?)
    }

    /// The text of a message as a payload template.
    pub(super) fn message(&mut self, text: &str) -> Result<Value, String> {
        self.in_message = true;
        let value = self.evaluate(text);
        self.in_message = false;
        value
    }

    /// The value of a text that must be the same for all clients.
    pub(super) fn fixed(&mut self, text: &str) -> Result<String, String> {
        let value = self.evaluate(text)?;
        value.fixed().ok_or_else(|| format!("'{text}' differs from client to client"))
    }

    pub(super) fn resolve(&mut self, expression: &JmeterText) -> Result<Value, String> {
        let mut value = Value::default();
        for piece in &expression.0 {
            match piece {
                JmeterPiece::Text(text) => value.0.push(ValuePart::Text(text.clone())),
                JmeterPiece::Reference { name, arguments, written } if name.starts_with("__") => {
                    value.0.extend(self.call(&Call { name, arguments, written })?.0);
                }
                JmeterPiece::Reference { name, .. } => value.0.extend(self.look_up(name)?.0),
            }
        }
        let bytes: usize = value.0.iter().map(ValuePart::bytes).sum();
        match bytes > VALUE_BYTES_MAX {
            true => Err(format!("a text expands to more than {VALUE_BYTES_MAX} bytes")),
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
    // Only if it prints unchanged: '007' stays text.
    if let Some(whole) = text.parse::<i64>().ok().filter(|whole| whole.to_string() == text) {
        return VarValue::Integer(whole);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number.to_string() == text => VarValue::Float(number),
        _ => VarValue::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
