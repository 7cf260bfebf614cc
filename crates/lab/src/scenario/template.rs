//! Strings that differ from client to client: `test/{{machine}}/{{i}}`.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Serialize, Serializer};

/// The machine that `{{machine}}` names. One machine generates all load for now.
const MACHINE: &str = "m1";

/// A checked template, expanded once per client.
///
/// `{{i}}` is the client's number in its group, from 0; `{{i % 10}}` and `{{i / 10}}` compute with
/// it; `{{machine}}` is the load machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Machine,
    Index(Operation),
}

/// What is done to the client's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Itself,
    Modulo(NonZeroU64),
    Divided(NonZeroU64),
}

/// What stands between `{{` and `}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression<'a> {
    /// A name: a variable, `i` or `machine`.
    Name(&'a str),
    /// `i` with `%` or `/` and a number or a variable behind it.
    Computed { operator: char, operand: &'a str },
}

/// A piece of a string: text, or what stands between braces.
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Braces(Expression<'a>),
}

/// Cuts a string at its `{{...}}`.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let (before, after) = (&rest[..start], &rest[start + 2..]);
        let end = after.find("}}").ok_or_else(|| format!("'{text}' has '{{{{' without '}}}}'"))?;
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        pieces.push(Piece::Braces(expression(after[..end].trim())?));
        rest = &after[end + 2..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

fn expression(inner: &str) -> Result<Expression<'_>, String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    if is_name(inner) {
        return Ok(Expression::Name(inner));
    }
    if let Some((left, right)) = inner.split_once(['%', '/']) {
        let operator = if inner.contains('%') { '%' } else { '/' };
        if left.trim() == "i" && is_name(right.trim()) {
            return Ok(Expression::Computed { operator, operand: right.trim() });
        }
    }
    Err(format!(
        "'{{{{{inner}}}}}' is not understood: write a variable, {{{{i}}}}, {{{{machine}}}}, {{{{i % 10}}}} or {{{{i / 10}}}}"
    ))
}

impl Template {
    /// Checks a string in which all variables have been replaced already.
    ///
    /// # Errors
    /// A sentence, when something between braces is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = pieces(text)?.into_iter().map(|piece| match piece {
            Piece::Text(text) => Ok(Part::Text(text.to_owned())),
            Piece::Braces(Expression::Name("i")) => Ok(Part::Index(Operation::Itself)),
            Piece::Braces(Expression::Name("machine")) => Ok(Part::Machine),
            Piece::Braces(Expression::Name(name)) => Err(format!("there is no variable '{name}'")),
            Piece::Braces(Expression::Computed { operator, operand }) => {
                let number: NonZeroU64 = operand.parse().map_err(|_| {
                    format!("'{operand}' behind '{operator}' is not a whole number above 0")
                })?;
                Ok(Part::Index(match operator {
                    '%' => Operation::Modulo(number),
                    _ => Operation::Divided(number),
                }))
            }
        });
        Ok(Self(parts.collect::<Result<_, String>>()?))
    }

    /// The string for client `index` (from 0) of its group.
    pub fn expand(&self, index: u64) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Machine => text.push_str(MACHINE),
                Part::Index(operation) => text.push_str(&operation.apply(index).to_string()),
            }
        }
        text
    }

    /// Whether different clients can get different strings.
    pub fn varies(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Index(_)))
    }

    /// Whether any two of the first `clients` clients surely get different strings.
    pub(crate) fn is_unique(&self, clients: u64) -> bool {
        self.0.iter().any(|part| match part {
            Part::Index(Operation::Itself) => true,
            Part::Index(Operation::Modulo(modulus)) => modulus.get() >= clients,
            _ => false,
        }) || clients <= 1
    }
}

impl Operation {
    fn apply(self, index: u64) -> u64 {
        match self {
            Self::Itself => index,
            Self::Modulo(modulus) => index % modulus,
            Self::Divided(divisor) => index / divisor,
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Machine => f.write_str("{{machine}}")?,
                Part::Index(Operation::Itself) => f.write_str("{{i}}")?,
                Part::Index(Operation::Modulo(number)) => write!(f, "{{{{i % {number}}}}}")?,
                Part::Index(Operation::Divided(number)) => write!(f, "{{{{i / {number}}}}}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_per_client() {
        let template = Template::parse("test/{{machine}}/{{ i }}").expect("parses");
        assert_eq!(template.expand(7), "test/m1/7");
        assert!(template.varies() && template.is_unique(1000));
        assert_eq!(template.to_string(), "test/{{machine}}/{{i}}");
    }

    #[test]
    fn computes_with_the_client_number() {
        let template = Template::parse("a/{{i % 10}}/{{i/20}}").expect("parses");
        assert_eq!(template.expand(47), "a/7/2");
        assert!(!template.is_unique(11) && template.is_unique(10));
        assert!(!Template::parse("constant").expect("parses").varies());
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        for bad in ["{{i", "{{}}", "{{i % 0}}", "{{x}}", "{{i + 1}}", "{{machine % 2}}"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }
}
