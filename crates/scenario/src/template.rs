//! Strings that differ from client to client: `test/{{machine}}/{{i}}`.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Serialize, Serializer};

use super::draw::Draw;

/// Which client of its group a template is expanded for.
///
/// The clients of a group are dealt out to the virtual load machines in turn: client 0 to the
/// first, client 1 to the second, and so on; each machine counts its own from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientPlace {
    /// The client's number in its group, from 0.
    pub client: u64,
    /// The load machine, from 0.
    pub machine: u64,
    /// The client's number on that machine, from 0.
    pub index: u64,
}

impl ClientPlace {
    /// The place of client `client` of a group that is divided over `machines`.
    pub const fn new(client: u64, machines: u32) -> Self {
        let machines = if machines == 0 { 1 } else { machines as u64 };
        Self { client, machine: client % machines, index: client / machines }
    }
}

/// A checked template, expanded once per client.
///
/// `{{machine}}` is the load machine (`m1`, `m2`, ...), `{{i}}` the client's number on it, from 0,
/// `{{client}}` its number in the whole group; `{{i % 10}}`, `{{i / 10}}`, `{{i + 1}}` and
/// `{{i / 10 + 1}}` compute with numbers. `{{hex 8 word}}` and similar expressions are random, see
/// [`Draw`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Machine,
    Number(Counter, Operation),
    Draw(Draw),
}

/// Which number of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// On its machine: `i`.
    OnMachine,
    /// In its group: `client`.
    InGroup,
}

impl Counter {
    fn named(name: &str) -> Option<Self> {
        match name {
            "i" => Some(Self::OnMachine),
            "client" => Some(Self::InGroup),
            _ => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OnMachine => "i",
            Self::InGroup => "client",
        }
    }

    const fn value(self, place: ClientPlace) -> u64 {
        match self {
            Self::OnMachine => place.index,
            Self::InGroup => place.client,
        }
    }
}

/// An operation on the client's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Itself,
    Modulo(NonZeroU64),
    Divided(NonZeroU64),
    Plus(NonZeroU64),
    DividedPlus(NonZeroU64, NonZeroU64),
}

/// An expression between `{{` and `}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression<'a> {
    /// A name: a variable, `i`, `client` or `machine`.
    Name(&'a str),
    /// `i` or `client` with `%`, `/` or `+` and a number or a variable behind it, and behind a
    /// division perhaps a number that is added.
    Computed { counter: Counter, operator: char, operand: &'a str, plus: Option<&'a str> },
    /// Something random per client.
    Draw(Draw),
}

/// A piece of a string: text, or an expression in braces.
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
    if let Some(draw) = Draw::parse(inner) {
        return Ok(Expression::Draw(draw?));
    }
    if let Some(at) = inner.find(['%', '/', '+']) {
        let (left, right) = (inner[..at].trim(), inner[at + 1..].trim());
        let operator = char::from(inner.as_bytes()[at]);
        let (operand, plus) = match right.split_once('+') {
            Some((operand, plus)) if operator == '/' => (operand.trim(), Some(plus.trim())),
            _ => (right, None),
        };
        let are_names = is_name(operand) && plus.is_none_or(is_name);
        if let Some(counter) = Counter::named(left).filter(|_| are_names) {
            return Ok(Expression::Computed { counter, operator, operand, plus });
        }
    }
    Err(format!(
        "'{{{{{inner}}}}}' is not supported: write a variable, {{{{i}}}}, {{{{client}}}}, \
         {{{{machine}}}}, {{{{i % 10}}}}, {{{{i / 10}}}}, {{{{i + 1}}}} or {{{{hex 8 word}}}}"
    ))
}

impl Template {
    /// Checks a string in which all variables have been replaced already.
    ///
    /// # Errors
    /// A sentence when an expression in braces is not supported.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = pieces(text)?.into_iter().map(|piece| match piece {
            Piece::Text(text) => Ok(Part::Text(text.to_owned())),
            Piece::Braces(Expression::Name("machine")) => Ok(Part::Machine),
            Piece::Braces(Expression::Name(name)) => match Counter::named(name) {
                Some(counter) => Ok(Part::Number(counter, Operation::Itself)),
                None => Err(format!("there is no variable '{name}'")),
            },
            Piece::Braces(Expression::Computed { counter, operator, operand, plus }) => {
                let number = |text: &str, operator: char| {
                    text.parse::<NonZeroU64>().map_err(|_| {
                        format!("'{text}' after '{operator}' is not a whole number above 0")
                    })
                };
                let plus = plus.map(|plus| number(plus, '+')).transpose()?;
                let operation = match (operator, number(operand, operator)?, plus) {
                    ('%', number, _) => Operation::Modulo(number),
                    ('+', number, _) => Operation::Plus(number),
                    (_, number, None) => Operation::Divided(number),
                    (_, number, Some(plus)) => Operation::DividedPlus(number, plus),
                };
                Ok(Part::Number(counter, operation))
            }
            Piece::Braces(Expression::Draw(draw)) => Ok(Part::Draw(draw)),
        });
        Ok(Self(parts.collect::<Result<_, String>>()?))
    }

    /// The same string for all clients, as it stands.
    pub fn literal(text: impl Into<String>) -> Self {
        Self(vec![Part::Text(text.into())])
    }

    /// The string for client `index` (from 0) of its group, when one machine generates all load.
    pub fn expand(&self, index: u64) -> String {
        self.expand_at(ClientPlace::new(index, 1))
    }

    /// The string for a client of its group.
    pub fn expand_at(&self, place: ClientPlace) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Machine => text.push_str(&format!("m{}", place.machine + 1)),
                Part::Number(counter, operation) => {
                    text.push_str(&operation.apply(counter.value(place)).to_string());
                }
                Part::Draw(draw) => text.push_str(&draw.drawn(place.client)),
            }
        }
        text
    }

    /// Whether different clients can get different strings.
    pub fn varies(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Number(..) | Part::Draw(_)))
    }

    /// Whether all clients of all machines get the same string, which has no expression.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// Whether any two of the first `clients` clients surely get different strings.
    pub(crate) fn is_unique(&self, clients: u64, machines: u32) -> bool {
        let per_machine = clients.div_ceil(u64::from(machines.max(1)));
        let names_machine = machines <= 1 || self.0.contains(&Part::Machine);
        let distinct = |operation: &Operation, count: u64| match operation {
            Operation::Itself | Operation::Plus(_) => true,
            Operation::Modulo(modulus) => modulus.get() >= count,
            Operation::Divided(_) | Operation::DividedPlus(..) => false,
        };
        // A number must be delimited: "1" then "11" would read as "11" then "1".
        let apart = self.0.windows(2).all(|pair| match pair {
            [Part::Number(..), Part::Text(text)] => !text.starts_with(|c: char| c.is_ascii_digit()),
            [Part::Number(..), _] => false,
            _ => true,
        });
        // Quotient and remainder together tell all numbers apart.
        let divided = |counter: Counter| {
            let operations = |wanted: Counter| {
                self.0.iter().filter_map(move |part| match part {
                    Part::Number(known, operation) if *known == wanted => Some(*operation),
                    _ => None,
                })
            };
            operations(counter).any(|operation| match operation {
                Operation::Divided(divisor) | Operation::DividedPlus(divisor, _) => operations(
                    counter,
                )
                .any(|other| matches!(other, Operation::Modulo(modulus) if modulus >= divisor)),
                _ => false,
            })
        };
        if apart && (divided(Counter::InGroup) || (names_machine && divided(Counter::OnMachine))) {
            return true;
        }
        self.0.iter().any(|part| match part {
            Part::Number(Counter::InGroup, operation) => distinct(operation, clients),
            Part::Number(Counter::OnMachine, operation) => {
                names_machine && distinct(operation, per_machine)
            }
            Part::Draw(draw) => draw.is_unique(clients),
            _ => false,
        }) || clients <= 1
    }

    /// The first `{{i % n}}` in it: a number that was chosen to fit a number of clients.
    pub(crate) fn modulus(&self) -> Option<NonZeroU64> {
        self.0.iter().find_map(|part| match part {
            Part::Number(_, Operation::Modulo(modulus)) => Some(*modulus),
            _ => None,
        })
    }
}

impl Operation {
    fn apply(self, index: u64) -> u64 {
        match self {
            Self::Itself => index,
            Self::Modulo(modulus) => index % modulus,
            Self::Divided(divisor) => index / divisor,
            Self::Plus(summand) => index.saturating_add(summand.get()),
            Self::DividedPlus(divisor, summand) => (index / divisor).saturating_add(summand.get()),
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Machine => f.write_str("{{machine}}")?,
                Part::Number(counter, operation) => {
                    let name = counter.name();
                    match operation {
                        Operation::Itself => write!(f, "{{{{{name}}}}}")?,
                        Operation::Modulo(number) => write!(f, "{{{{{name} % {number}}}}}")?,
                        Operation::Divided(number) => write!(f, "{{{{{name} / {number}}}}}")?,
                        Operation::Plus(number) => write!(f, "{{{{{name} + {number}}}}}")?,
                        Operation::DividedPlus(number, plus) => {
                            write!(f, "{{{{{name} / {number} + {plus}}}}}")?;
                        }
                    }
                }
                Part::Draw(draw) => write!(f, "{{{{{draw}}}}}")?,
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
        assert!(template.varies() && template.is_unique(1000, 1));
        assert_eq!(template.to_string(), "test/{{machine}}/{{i}}");
    }

    #[test]
    fn computes_with_the_client_number() {
        let template = Template::parse("a/{{i % 10}}/{{i/20}}").expect("parses");
        assert_eq!(template.expand(47), "a/7/2");
        let plus = Template::parse("{{ i+1 }}/{{client + 2}}").expect("parses");
        assert_eq!((plus.expand(47).as_str(), plus.is_unique(99, 1)), ("48/49", true));
        assert_eq!(plus.to_string(), "{{i + 1}}/{{client + 2}}");
        assert!(!template.is_unique(11, 1) && template.is_unique(10, 1));
        let both = Template::parse("{{i / 20 + 1}}-{{i % 20}}").expect("parses");
        assert_eq!((both.expand(47).as_str(), both.is_unique(999, 1)), ("3-7", true));
        assert_eq!(both.to_string(), "{{i / 20 + 1}}-{{i % 20}}");
        for ambiguous in ["{{i / 20}}-{{i % 19}}", "{{i / 20}}{{i % 20}}", "{{i / 20}}1{{i % 20}}"]
        {
            let template = Template::parse(ambiguous).expect("parses");
            assert!(!template.is_unique(400, 1), "{ambiguous}");
        }
        let constant = Template::parse("constant").expect("parses");
        assert!(!constant.varies() && constant.is_plain() && !plus.is_plain());
        assert_eq!(Template::literal("{{i}}").expand(7), "{{i}}");
    }

    #[test]
    fn clients_are_dealt_out_to_machines() {
        let places: Vec<_> = (0..5).map(|client| ClientPlace::new(client, 2)).collect();
        let numbers: Vec<_> = places.iter().map(|place| (place.machine, place.index)).collect();
        assert_eq!(numbers, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]);
        let template = Template::parse("{{machine}}/{{i}}/{{client}}").expect("parses");
        assert_eq!(template.expand_at(places[3]), "m2/1/3");
        let unique = |text, clients| Template::parse(text).expect("parses").is_unique(clients, 2);
        assert!(unique("{{machine}}_{{i}}", 9) && unique("{{client}}", 9));
        assert!(!unique("{{i}}", 9), "both machines have a client 0");
        assert!(unique("{{machine}}_{{i % 5}}", 9) && !unique("{{machine}}_{{i % 4}}", 9));
    }

    #[test]
    fn draws_at_random() {
        let template = Template::parse("conn_{{hex 18 a}}").expect("parses");
        assert_eq!((template.expand(0).len(), template.varies()), (23, true));
        assert!(template.is_unique(10_000, 3) && template.expand(0) != template.expand(1));
        assert_eq!(template.to_string(), "conn_{{hex 18 a}}");
        assert!(Template::parse("{{hex 18}}").is_err());
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        for bad in
            ["{{i", "{{}}", "{{i % 0}}", "{{x}}", "{{i - 1}}", "{{machine % 2}}", "{{i + 1 + 1}}"]
        {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }
}
