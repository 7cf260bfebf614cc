//! Variables: `[vars]` of the file, `--var name=value`, and their use as `{{name}}`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ScenarioError, SourceText, closest};
use super::template::{Expression, Piece, pieces};

/// Reserved names with a value per client, which cannot be variables.
const RESERVED: [&str; 3] = ["i", "client", "machine"];

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum VarValue {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// Text; also every quantity with a unit, such as `"30s"`.
    Text(String),
}

/// The variables of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    values: BTreeMap<String, VarValue>,
    /// The values as TOML text, which replaced values of a document borrow from.
    texts: BTreeMap<String, String>,
    /// Variables that were set from outside.
    overridden: Vec<String>,
}

/// Replaces the variables in a document and remembers where.
#[derive(Debug)]
pub(crate) struct Substitution<'v> {
    variables: &'v Variables,
    /// Start of a replaced value in the file -> the variables in it.
    used_at: BTreeMap<usize, Vec<String>>,
}

impl std::fmt::Display for VarValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

impl VarValue {
    /// The value as TOML writes it.
    fn to_toml(&self) -> String {
        match self {
            Self::Text(text) => toml::Value::from(text.as_str()).to_string(),
            // `{:?}` of a float always has a point.
            Self::Float(value) => format!("{value:?}"),
            other => other.to_string(),
        }
    }

    /// Reads `text` as the kind of value that `self`, the default, is. Numbers may be written
    /// with `_` and with `k` or `M` behind them.
    fn replaced_by(&self, text: &str) -> Option<Self> {
        match self {
            Self::Boolean(_) => text.parse().ok().map(Self::Boolean),
            Self::Text(_) => Some(Self::Text(text.to_owned())),
            Self::Integer(_) | Self::Float(_) => number(text),
        }
    }
}

/// `1_000`, `1k`, `1.2k`, `3M`, `0.5`.
fn number(text: &str) -> Option<VarValue> {
    let plain = text.trim().replace('_', "");
    if let Ok(whole) = plain.parse() {
        return Some(VarValue::Integer(whole));
    }
    let (digits, factor) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => match plain.strip_suffix('M') {
            Some(digits) => (digits, 1e6),
            None => (plain.as_str(), 1.0),
        },
    };
    let value = digits.parse::<f64>().ok().filter(|value| value.is_finite())? * factor;
    let rounded = value.round();
    if (value - rounded).abs() < 1e-6 && rounded.abs() < 9e15 {
        return Some(VarValue::Integer(rounded as i64));
    }
    Some(VarValue::Float(value))
}

impl Variables {
    /// Takes `[vars]` out of the document and applies the overrides (`name`, `value`).
    pub(crate) fn take(
        document: &mut DeTable<'_>,
        overrides: &[(String, String)],
        source: &SourceText,
    ) -> Result<Self, ScenarioError> {
        let mut variables = Self::default();
        if let Some(table) = document.remove("vars") {
            let span = table.span();
            let DeValue::Table(table) = table.into_inner() else {
                return Err(ScenarioError::new("'vars' is not a table")
                    .at(source, span)
                    .help("write [vars] on its own line, then name = value"));
            };
            for (name, value) in table {
                let value = checked(&name, &value, source)?;
                variables.values.insert(name.into_inner().into_owned(), value);
            }
        }
        for (name, text) in overrides {
            variables.set(name, text)?;
        }
        variables.texts =
            variables.values.iter().map(|(name, value)| (name.clone(), value.to_toml())).collect();
        Ok(variables)
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), ScenarioError> {
        let Some(default) = self.values.get(name) else {
            let error = ScenarioError::new(format!("the scenario has no variable '{name}'"));
            return Err(self.suggest(error, name));
        };
        let value = default.replaced_by(text).ok_or_else(|| {
            let kind =
                if matches!(default, VarValue::Boolean(_)) { "true or false" } else { "a number" };
            ScenarioError::new(format!("--var {name}={text}: '{text}' is not {kind}"))
                .help(format!("its default is {default}"))
        })?;
        self.values.insert(name.to_owned(), value);
        self.overridden.push(name.to_owned());
        Ok(())
    }

    /// Adds the most similar name and the list of known names.
    fn suggest(&self, error: ScenarioError, name: &str) -> ScenarioError {
        let names = || self.values.keys().map(String::as_str);
        let error = match closest(name, names()) {
            Some(word) => error.help(format!("did you mean '{word}'?")),
            None => error,
        };
        match self.values.is_empty() {
            true => error.help("it has no variables"),
            false => {
                error.help(format!("its variables: {}", names().collect::<Vec<_>>().join(", ")))
            }
        }
    }

    /// The values after all overrides.
    pub(crate) fn values(&self) -> &BTreeMap<String, VarValue> {
        &self.values
    }

    fn look_up(&self, name: &str) -> Result<&VarValue, ScenarioError> {
        self.values.get(name).ok_or_else(|| {
            let error = ScenarioError::new(format!("there is no variable '{name}'"));
            self.suggest(error, name)
        })
    }
}

impl<'v> Substitution<'v> {
    /// Nothing replaced yet.
    pub(crate) fn new(variables: &'v Variables) -> Self {
        Self { variables, used_at: BTreeMap::new() }
    }

    /// Replaces every `{{name}}` below `table` by its value. A string that is nothing but one
    /// variable takes the variable's type. The text of a payload has fields of its own, which
    /// stay.
    pub(crate) fn substitute(
        &mut self,
        table: &mut DeTable<'v>,
        source: &SourceText,
    ) -> Result<(), ScenarioError> {
        self.substitute_table(table, source, false)
    }

    fn substitute_table(
        &mut self,
        table: &mut DeTable<'v>,
        source: &SourceText,
        is_payload: bool,
    ) -> Result<(), ScenarioError> {
        table.iter_mut().try_for_each(|(key, value)| match (key.get_ref().as_ref(), value) {
            ("text", value) if is_payload => {
                let start = value.span().start;
                if let DeValue::String(text) = value.get_mut() {
                    let replaced = self.replaced_among_fields(text, start);
                    *value.get_mut() = DeValue::String(Cow::Owned(replaced));
                }
                Ok(())
            }
            (key, value) => self.substitute_value(value, source, key == "payload"),
        })
    }

    fn substitute_value(
        &mut self,
        value: &mut Spanned<DeValue<'v>>,
        source: &SourceText,
        is_payload: bool,
    ) -> Result<(), ScenarioError> {
        let span = value.span();
        let replacement = match value.get_mut() {
            DeValue::Table(table) => return self.substitute_table(table, source, is_payload),
            DeValue::Array(array) => {
                return array
                    .iter_mut()
                    .try_for_each(|item| self.substitute_value(item, source, is_payload));
            }
            DeValue::String(text) if text.contains("{{") => {
                self.replaced(text, span.start).map_err(|error| error.at(source, span))?
            }
            _ => return Ok(()),
        };
        *value.get_mut() = replacement;
        Ok(())
    }

    /// Replaces variables and leaves all other braces as they are.
    fn replaced_among_fields(&mut self, text: &str, start: usize) -> String {
        let mut used = Vec::new();
        let mut replaced = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            replaced.push_str(before);
            let variable = behind.split_once("}}").and_then(|(inner, behind)| {
                Some((inner.trim(), self.variables.values.get(inner.trim())?, behind))
            });
            match variable {
                Some((name, value, behind)) => {
                    used.push(name.to_owned());
                    replaced.push_str(&value.to_string());
                    rest = behind;
                }
                None => {
                    replaced.push_str("{{");
                    rest = behind;
                }
            }
        }
        replaced.push_str(rest);
        self.used_at.insert(start, used);
        replaced
    }

    fn replaced(&mut self, text: &str, start: usize) -> Result<DeValue<'v>, ScenarioError> {
        let mut parts = pieces(text).map_err(ScenarioError::new)?;
        let mut used = Vec::new();
        if let [Piece::Braces(Expression::Name(name))] = parts[..]
            && !RESERVED.contains(&name)
        {
            self.variables.look_up(name)?;
            self.used_at.insert(start, vec![name.to_owned()]);
            return Ok(self.typed(name));
        }
        let mut replaced = String::new();
        for piece in parts.drain(..) {
            match piece {
                Piece::Text(literal) => replaced.push_str(literal),
                Piece::Braces(Expression::Name(name)) if RESERVED.contains(&name) => {
                    replaced.push_str(&format!("{{{{{name}}}}}"));
                }
                Piece::Braces(Expression::Name(name)) => {
                    replaced.push_str(&self.variables.look_up(name)?.to_string());
                    used.push(name.to_owned());
                }
                Piece::Braces(Expression::Draw(draw)) => {
                    replaced.push_str(&format!("{{{{{draw}}}}}"));
                }
                Piece::Braces(Expression::Computed { counter, operator, operand, plus }) => {
                    let mut number = |text: &str| match text.parse::<u64>() {
                        Ok(number) => Ok::<_, ScenarioError>(number.to_string()),
                        Err(_) => {
                            used.push(text.to_owned());
                            Ok(self.variables.look_up(text)?.to_string())
                        }
                    };
                    let plus = plus.map(&mut number).transpose()?;
                    let plus = plus.map_or_else(String::new, |plus| format!(" + {plus}"));
                    let (counter, number) = (counter.name(), number(operand)?);
                    replaced.push_str(&format!("{{{{{counter} {operator} {number}{plus}}}}}"));
                }
            }
        }
        self.used_at.insert(start, used);
        Ok(DeValue::String(Cow::Owned(replaced)))
    }

    /// The value of a variable that exists, as a value of the document.
    fn typed(&self, name: &str) -> DeValue<'v> {
        let text = self.variables.texts.get(name).map_or("", String::as_str);
        match DeValue::parse(text) {
            Ok(value) => value.into_inner(),
            Err(_) => DeValue::String(Cow::Borrowed(text)),
        }
    }

    /// A sentence about the variables whose values appear at `start`, if any.
    pub(crate) fn explain(&self, start: usize) -> Option<String> {
        let used = self.used_at.get(&start).filter(|used| !used.is_empty())?;
        let words = used.iter().map(|name| {
            let origin = match self.variables.overridden.contains(name) {
                true => "set with --var",
                false => "its default in [vars]",
            };
            let value = self.variables.values.get(name).map(ToString::to_string);
            let value = value.unwrap_or_default();
            format!("the variable '{name}' is {value} ({origin})")
        });
        Some(words.collect::<Vec<_>>().join(" and "))
    }
}

/// Checks one line of `[vars]`.
fn checked(
    name: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    source: &SourceText,
) -> Result<VarValue, ScenarioError> {
    if RESERVED.contains(&name.get_ref().as_ref()) {
        return Err(ScenarioError::new(format!(
            "a variable cannot be called '{}'",
            name.get_ref()
        ))
        .at(source, name.span())
        .help("{{i}} and {{client}} are the client's numbers, {{machine}} the load machine"));
    }
    let refused = || {
        ScenarioError::new(format!("the variable '{}' has no usable value", name.get_ref()))
            .at(source, value.span())
            .label("a string, a number, true or false")
    };
    Ok(match value.get_ref() {
        DeValue::Boolean(value) => VarValue::Boolean(*value),
        DeValue::String(text) => VarValue::Text(text.clone().into_owned()),
        DeValue::Integer(integer) => VarValue::Integer(
            i64::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| refused())?,
        ),
        DeValue::Float(float) => VarValue::Float(float.as_str().parse().map_err(|_| refused())?),
        _ => return Err(refused()),
    })
}
