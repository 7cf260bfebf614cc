//! Flags that may be given once for each named target.

use tacho_scenario::Scenario;

/// A value for a named target, or for the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named<T> {
    /// The target's name; empty for the default one.
    pub(super) name: String,
    /// The flag's value for this target.
    pub(super) value: T,
}

impl<T> Named<T> {
    /// Splits `name=value`; the text before the first `=` is a name when it looks like one.
    pub(super) fn parse(
        text: &str,
        value: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Self, String> {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        };
        let (name, rest) = match text.split_once('=') {
            Some((name, rest)) if is_name(name) => (name, rest),
            _ => ("", text),
        };
        Ok(Self { name: name.to_owned(), value: value(rest)? })
    }

    /// A value for the default target.
    pub(super) fn new(value: T) -> Self {
        Self { name: Scenario::DEFAULT_TARGET.to_owned(), value }
    }

    /// Renames the target `from` to `to` in all values.
    pub(super) fn rename(all: &mut [Self], from: &str, to: &str) {
        for named in all.iter_mut().filter(|named| named.name == from) {
            to.clone_into(&mut named.name);
        }
    }

    /// The value for the target called `name`.
    pub(super) fn of<'a>(all: &'a [Self], name: &str) -> Option<&'a T> {
        // The last one wins, as with other flags.
        all.iter().rev().find(|named| named.name == name).map(|named| &named.value)
    }
}
