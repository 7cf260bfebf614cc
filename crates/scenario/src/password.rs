//! Passwords of clients: the load uses them, and nothing writes them anywhere.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::template::{ClientPlace, Template};

/// The password of a group's clients, and where it comes from. Its text form is the latter only.
#[derive(Clone, PartialEq, Eq)]
pub struct Password {
    value: Secret,
    source: SecretOrigin,
}

#[derive(Clone, PartialEq, Eq)]
enum Secret {
    Template(Template),
    Text(String),
    /// The environment variable is not set.
    Missing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SecretOrigin {
    Inline,
    File(PathBuf),
    Environment(String),
}

impl Password {
    /// The environment variable with the password of clients that have no other.
    pub const VARIABLE: &str = "TACHO_PASSWORD";

    /// One that is given where it is used, and may differ from client to client.
    pub(crate) const fn template(template: Template) -> Self {
        Self { value: Secret::Template(template), source: SecretOrigin::Inline }
    }

    /// One that is given where it is used.
    pub const fn text(text: String) -> Self {
        Self { value: Secret::Text(text), source: SecretOrigin::Inline }
    }

    /// The one in a file, which has nothing else.
    ///
    /// # Errors
    /// A sentence, when the file cannot be read, is empty or has several lines.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let content = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the password file '{shown}': {error}"))?;
        let text = content.strip_suffix('\n').unwrap_or(&content);
        let text = text.strip_suffix('\r').unwrap_or(text);
        match text.lines().count() {
            0 => Err(format!("the password file '{shown}' is empty")),
            1 => Ok(Self {
                value: Secret::Text(text.to_owned()),
                source: SecretOrigin::File(
                    std::path::absolute(path).unwrap_or_else(|_| path.into()),
                ),
            }),
            lines => Err(format!(
                "'{shown}' has {lines} lines: a password file holds one password, and is no \
                 broker's file of users"
            )),
        }
    }

    /// The one in an environment variable, whether it is set or not.
    pub fn in_environment(variable: &str) -> Self {
        let value = std::env::var(variable).map_or(Secret::Missing, Secret::Text);
        Self { value, source: SecretOrigin::Environment(variable.to_owned()) }
    }

    /// Whether it is given where it is used, and not by a reference.
    pub(crate) fn is_inline(&self) -> bool {
        self.source == SecretOrigin::Inline
    }

    /// The environment variable that has to be set, and is not.
    pub fn missing_variable(&self) -> Option<&str> {
        match (&self.value, &self.source) {
            (Secret::Missing, SecretOrigin::Environment(variable)) => Some(variable),
            _ => None,
        }
    }

    /// The password itself, where all clients have the same and it is known.
    pub fn reveal(&self) -> Option<&str> {
        match &self.value {
            Secret::Text(text) => Some(text),
            Secret::Template(_) | Secret::Missing => None,
        }
    }

    /// The password of one client.
    pub(crate) fn expand_at(&self, place: ClientPlace) -> Option<String> {
        match &self.value {
            Secret::Template(template) => Some(template.expand_at(place)),
            Secret::Text(text) => Some(text.clone()),
            Secret::Missing => None,
        }
    }
}

/// Never the password.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Password").field(&self.source).finish()
    }
}

/// A reference: the key of the file or of the variable. What was given where it was used is to be
/// set in the environment for another run.
impl Serialize for Password {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match &self.source {
            SecretOrigin::File(path) => map.serialize_entry("password_file", path)?,
            SecretOrigin::Environment(variable) => map.serialize_entry("password_env", variable)?,
            SecretOrigin::Inline => map.serialize_entry("password_env", Self::VARIABLE)?,
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "hunter2";

    #[test]
    fn only_a_reference_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("password");
        std::fs::write(&path, format!("{SECRET}\r\n")).expect("is written");
        let place = ClientPlace::new(0, 1);
        for (password, reference) in [
            (Password::text(SECRET.to_owned()), "password_env = \"TACHO_PASSWORD\""),
            (Password::read(&path).expect("a password"), "password_file = \""),
        ] {
            assert_eq!(password.expand_at(place).as_deref(), Some(SECRET));
            let written = toml::to_string(&password).expect("a table");
            assert!(written.starts_with(reference), "{written}");
            assert!(!format!("{written}{password:?}").contains(SECRET), "{written}");
        }
    }

    #[test]
    fn a_file_holds_one_password() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users");
        let error = || Password::read(&path).expect_err("no password");
        assert!(error().contains("cannot read the password file"));
        std::fs::write(&path, "\n").expect("is written");
        assert!(error().contains("is empty"));
        std::fs::write(&path, "a:x\nb:y\n").expect("is written");
        assert!(error().contains("2 lines") && error().contains("no broker's file of users"));
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let password = Password::in_environment("TACHO_TEST_UNSET_PASSWORD");
        assert_eq!(password.missing_variable(), Some("TACHO_TEST_UNSET_PASSWORD"));
        assert_eq!(password.expand_at(ClientPlace::new(0, 1)), None);
    }
}
