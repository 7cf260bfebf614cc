//! The functions of a plan, `${__name(a, b)}`.

use super::super::expression::JmeterText;
use super::super::number::{number_text, per_minute};
use super::super::value::Value;
use super::Values;

/// A function with its arguments.
#[derive(Clone, Copy)]
pub(super) struct Call<'t> {
    pub(super) name: &'t str,
    pub(super) arguments: &'t [JmeterText],
    /// The call as the plan has it, for messages.
    pub(super) written: &'t str,
}

/// Functions whose value differs from client to client.
const PER_CLIENT: [&str; 7] = [
    "__machineName",
    "__machineIP",
    "__threadNum",
    "__UUID",
    "__Random",
    "__RandomString",
    "__counter",
];

/// Characters that `__RandomString` draws from by default.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz0123456789";

impl Values {
    /// The value of a function.
    pub(super) fn call(&mut self, call: &Call<'_>) -> Result<Value, String> {
        let (name, written) = (call.name, call.written);
        if self.in_message {
            let (first, second) = (self.argument(call, 0)?, self.argument(call, 1)?);
            if let Some(field) = payload_field(name, &first, &second) {
                return Ok(Value::per_client(field));
            }
            if PER_CLIENT.contains(&name) {
                return Err(format!(
                    "'{written}': a message cannot have a value that differs from client to client"
                ));
            }
        }
        match name {
            "__machineName" | "__machineIP" => Ok(Value::per_client("machine")),
            "__threadNum" => Ok(Value::per_client(match self.connections {
                1 => "i + 1".to_owned(),
                connections => format!("i / {connections} + 1"),
            })),
            "__threadGroupName" => Ok(Value::text(self.group.clone())),
            "__xmeterThroughput" => self.throughput(call),
            "__P" => {
                let default = match call.arguments.len() {
                    0 | 1 => "1".to_owned(),
                    _ => self.argument(call, 1)?,
                };
                let property = self.argument(call, 0)?;
                Ok(self.property(&property, default))
            }
            "__property" => self.property_or_name(call),
            "__V" => {
                let name = self.argument(call, 0)?;
                self.look_up(&name)
            }
            "__UUID" => Ok(self.uuid(written)),
            "__Random" => self.random_number(call),
            "__RandomString" => self.random_string(call),
            "__counter" => self.counter(call),
            "__time" => {
                self.note(format!("{written} is the time of translation for all messages."));
                let value = time(&self.argument(call, 0)?)?;
                self.stored(call, 1, Value::text(value))
            }
            "__intSum" | "__longSum" => self.sum(call),
            _ => Err(format!("the function '{written}' is not supported")),
        }
    }

    /// An argument without spaces around it; empty when absent.
    fn argument(&mut self, call: &Call<'_>, index: usize) -> Result<String, String> {
        let Some(argument) = call.arguments.get(index) else { return Ok(String::new()) };
        match self.resolve(argument)?.fixed() {
            Some(text) => Ok(text.trim().to_owned()),
            None => Err(format!("'{}' differs from client to client", call.written)),
        }
    }

    /// The value; the argument at `index` names a variable that keeps it.
    fn stored(&mut self, call: &Call<'_>, index: usize, value: Value) -> Result<Value, String> {
        let name = self.argument(call, index)?;
        if !name.is_empty() {
            self.variables.insert(name, value.clone());
        }
        Ok(value)
    }

    fn throughput(&mut self, call: &Call<'_>) -> Result<Value, String> {
        let (value, unit) = (self.argument(call, 0)?, self.argument(call, 1)?);
        let text = Value::text(number_text(per_minute(&value, &unit)?));
        self.stored(call, 2, text)
    }

    fn property_or_name(&mut self, call: &Call<'_>) -> Result<Value, String> {
        let (property, default) = (self.argument(call, 0)?, self.argument(call, 2)?);
        let default = if default.is_empty() { property.clone() } else { default };
        let value = self.property(&property, default);
        self.stored(call, 1, value)
    }

    /// The value of a JMeter property: `--var` sets those too.
    fn property(&mut self, name: &str, default: String) -> Value {
        let given = self.overrides.get(name).cloned();
        if given.is_some() {
            self.overrides_used.insert(name.to_owned());
        }
        Value::text(given.unwrap_or(default))
    }

    fn uuid(&mut self, written: &str) -> Value {
        let mut value = self.hex(8);
        for digits in [4, 4, 4, 12] {
            value = value.then(Value::text("-")).then(self.hex(digits));
        }
        self.note_evaluated_once(written);
        value
    }

    fn random_number(&mut self, call: &Call<'_>) -> Result<Value, String> {
        let written = call.written;
        let number = |text: String| {
            text.parse::<i64>().map_err(|_| format!("'{written}': '{text}' is not a number"))
        };
        let (low, high) = (number(self.argument(call, 0)?)?, number(self.argument(call, 1)?)?);
        if low > high || low < 0 {
            return Err(format!(
                "'{written}': both numbers must be at least 0, the lower one first"
            ));
        }
        let salt = self.salt();
        self.note_evaluated_once(written);
        self.stored(call, 2, Value::per_client(format!("random {low} {high} {salt}")))
    }

    fn random_string(&mut self, call: &Call<'_>) -> Result<Value, String> {
        let written = call.written;
        let length = self.argument(call, 0)?;
        let length: u16 =
            length.parse().map_err(|_| format!("'{written}': '{length}' is not a length"))?;
        let letters = match self.argument(call, 1)? {
            none if none.is_empty() => LETTERS.to_owned(),
            some => some,
        };
        if letters.contains(|c: char| c.is_whitespace() || "{}".contains(c)) {
            return Err(format!("'{written}': the characters must not include spaces or braces"));
        }
        let salt = self.salt();
        self.note_evaluated_once(written);
        self.stored(call, 2, Value::per_client(format!("chars {length} {letters} {salt}")))
    }

    fn counter(&mut self, call: &Call<'_>) -> Result<Value, String> {
        self.note_evaluated_once(call.written);
        let each = self.argument(call, 0)?.eq_ignore_ascii_case("true");
        let value = if each { Value::text("1") } else { Value::per_client("client + 1") };
        self.stored(call, 1, value)
    }

    fn sum(&mut self, call: &Call<'_>) -> Result<Value, String> {
        let mut sum: i64 = 0;
        for index in 0..call.arguments.len() {
            let text = self.argument(call, index)?;
            match text.parse::<i64>() {
                Ok(number) => sum = sum.saturating_add(number),
                // The last argument may name a variable for the result.
                Err(_) if index + 1 == call.arguments.len() && index >= 2 => {
                    return self.stored(call, index, Value::text(sum.to_string()));
                }
                Err(_) => return Err(format!("'{}': '{text}' is not a number", call.written)),
            }
        }
        Ok(Value::text(sum.to_string()))
    }

    fn note_evaluated_once(&mut self, written: &str) {
        self.note(format!(
            "{written} is evaluated once per client; JMeter evaluates it for every sample."
        ));
    }
}

/// The field of a payload template that stands for a function, if there is one.
fn payload_field(name: &str, first: &str, second: &str) -> Option<String> {
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
