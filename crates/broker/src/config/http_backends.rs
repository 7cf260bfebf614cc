//! The backends of logins: `[access.http]` for one, `[[access.http]]` for several, of which
//! listeners choose by name.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ConfigError, HttpSettings};

/// Each has threads, connections and metrics of its own.
const BACKENDS_MAX: usize = 16;
/// Of all backends together.
const CONNECTIONS_MAX: u64 = 128;
const WAITING_MAX: u64 = 100_000;
const REMEMBERED_MAX: u64 = 10_000_000;
/// Names are labels of metrics.
const NAME_BYTES_MAX: usize = 32;
/// What a listener names that has no backend.
const NONE: &str = "none";

/// The backends of logins, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpBackends(Vec<HttpSettings>);

/// The backend that decides the logins of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerBackend {
    /// As the listener names it.
    name: Option<String>,
    index: Option<usize>,
}

impl ListenerBackend {
    /// Its place among [`HttpBackends`]; `None`: the listener has no backend.
    pub const fn index(&self) -> Option<usize> {
        self.index
    }

    /// Whether the listener names it, or says that it has none.
    pub(super) const fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// The key, as in the configuration file.
    pub(super) fn describe(&self) -> String {
        let name = self.name.clone().map(toml::Value::String);
        name.map_or_else(String::new, |name| format!("login_backend = {name}\n"))
    }
}

impl HttpBackends {
    /// All of them.
    pub fn all(&self) -> &[HttpSettings] {
        &self.0
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one of a listener.
    pub fn of(&self, listener: &ListenerBackend) -> Option<&HttpSettings> {
        self.0.get(listener.index?)
    }

    /// Whether there is one for all listeners that name none.
    pub(super) fn has_common(&self) -> bool {
        self.common().is_some()
    }

    fn common(&self) -> Option<usize> {
        self.0.iter().position(|backend| backend.name.is_none())
    }

    /// The one that a listener names, or the one of all listeners that name none.
    pub(super) fn choose(&self, name: Option<String>) -> Result<ListenerBackend, String> {
        let index = match name.as_deref() {
            None => self.common(),
            Some(NONE) => None,
            Some(wanted) => {
                let known = |backend: &HttpSettings| backend.name.as_deref() == Some(wanted);
                let index = self.0.iter().position(known);
                Some(index.ok_or_else(|| self.unknown(wanted))?)
            }
        };
        Ok(ListenerBackend { name, index })
    }

    fn unknown(&self, wanted: &str) -> String {
        let names: Vec<&str> = self.0.iter().filter_map(|b| b.name.as_deref()).collect();
        let known = match &names[..] {
            [] => "there is none with a `name`".to_owned(),
            names => format!("there are {}", names.join(", ")),
        };
        let wanted = wanted.escape_debug();
        format!("`login_backend` is `{wanted}`, but no [[access.http]] has that `name`: {known}")
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: String| Err(ConfigError::Http(what));
        if self.0.len() > BACKENDS_MAX {
            return wrong(format!("there are more than {BACKENDS_MAX} backends"));
        }
        for (place, backend) in self.0.iter().enumerate() {
            check_name(backend.name.as_deref()).map_err(ConfigError::Http)?;
            let is_same = |other: &HttpSettings| other.name == backend.name;
            if self.0[..place].iter().any(is_same) {
                return wrong(match &backend.name {
                    Some(name) => format!("two backends have the name `{name}`"),
                    None => "two backends have no `name`: one at most is for all listeners that \
                             name none"
                        .to_owned(),
                });
            }
            backend.check().map_err(|error| of_backend(backend, error))?;
        }
        let sum = |of: fn(&HttpSettings) -> u32| -> u64 {
            self.0.iter().map(|backend| u64::from(of(backend))).sum()
        };
        for (key, sum, max) in [
            ("connections_max", sum(|backend| backend.connections_max), CONNECTIONS_MAX),
            ("waiting_max", sum(|backend| backend.waiting_max), WAITING_MAX),
            ("remembered_max", sum(|backend| backend.remembered_max), REMEMBERED_MAX),
        ] {
            if sum > max {
                return wrong(format!(
                    "`{key}` of all backends is {sum} together, but must be at most {max}"
                ));
            }
        }
        Ok(())
    }
}

fn check_name(name: Option<&str>) -> Result<(), String> {
    let Some(name) = name else { return Ok(()) };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(plain) {
        return Err(format!(
            "`name` is `{}`, but must be 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` or `.`",
            name.escape_debug()
        ));
    }
    match name == NONE {
        true => Err(format!("`name` is `{NONE}`, which says that a listener has no backend")),
        false => Ok(()),
    }
}

/// An error with the name of the backend, if it has one.
fn of_backend(backend: &HttpSettings, error: ConfigError) -> ConfigError {
    match (&backend.name, error) {
        (None, error) => error,
        (Some(name), ConfigError::Http(what)) => ConfigError::Http(format!("`{name}`: {what}")),
        (Some(name), error) => ConfigError::Http(format!("`{name}`: {error}")),
    }
}

impl From<HttpSettings> for HttpBackends {
    fn from(only: HttpSettings) -> Self {
        Self(vec![only])
    }
}

impl Serialize for HttpBackends {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [only] => only.serialize(to),
            several => several.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for HttpBackends {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(BackendsVisitor)
    }
}

/// Takes one table or a list of them; an error is that of the table, not that neither fits.
struct BackendsVisitor;

impl<'de> Visitor<'de> for BackendsVisitor {
    type Value = HttpBackends;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table [access.http], or several [[access.http]]")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
        let only = HttpSettings::deserialize(MapAccessDeserializer::new(map))?;
        Ok(HttpBackends(vec![only]))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, list: S) -> Result<Self::Value, S::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(HttpBackends)
    }
}

#[cfg(test)]
mod tests;
