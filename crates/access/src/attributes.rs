//! Attributes of a client: names with values that its login brings along.
//!
//! Tokens and the answers of backends have them as EMQX does: an object of texts. A rules file asks
//! for them. They are all or nothing: with one left out, a rule that denies by it would not hold.

use serde_json::Value;

use crate::file::cut;

/// Attributes of one client at most.
const COUNT_MAX: usize = 32;
const NAME_BYTES_MAX: usize = 64;
const VALUE_BYTES_MAX: usize = 256;

static NO_ATTRIBUTES: Attributes = Attributes::NONE;

/// The attributes of a client, each with one value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<(Box<str>, Box<str>)>);

impl Attributes {
    pub(crate) const NONE: Self = Self(Vec::new());

    /// Those of a client that has none.
    #[must_use]
    pub fn none() -> &'static Self {
        &NO_ATTRIBUTES
    }

    /// Reads an object of texts; a sentence for one that cannot be used.
    ///
    /// # Errors
    /// It is something else, or has too many attributes or too long ones.
    pub fn parse(object: &Value) -> Result<Self, String> {
        let object = object.as_object().ok_or("it is no object")?;
        let mut attributes = Self::default();
        for (name, value) in object {
            let value = value.as_str().ok_or_else(|| format!("`{}` is no text", cut(name)))?;
            attributes.add(name, value)?;
        }
        Ok(attributes)
    }

    /// Adds one; a sentence for one that cannot be used.
    ///
    /// # Errors
    /// It is there already, too long, or one too many.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return Err(format!(
                "`{}`: a name has 1 to {NAME_BYTES_MAX} bytes, a value at most {VALUE_BYTES_MAX}",
                cut(name)
            ));
        }
        if self.get(name).is_some() {
            return Err(format!("`{}` is there twice", cut(name)));
        }
        if self.0.len() == COUNT_MAX {
            return Err(format!("there are more than {COUNT_MAX} attributes"));
        }
        self.0.push((name.into(), value.into()));
        Ok(())
    }

    /// The value of an attribute.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| **known == *name);
        found.map(|(_, value)| &**value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_of_texts_is_read() {
        let attributes = Attributes::parse(&json!({"site": "hall 3", "kind": ""})).expect("valid");
        assert_eq!(attributes.get("site"), Some("hall 3"));
        assert_eq!(attributes.get("kind"), Some(""));
        assert_eq!(attributes.get("Site"), None);
        assert!(Attributes::parse(&json!({})).expect("valid").is_empty());
        assert!(Attributes::none().is_empty());
    }

    #[test]
    fn what_cannot_be_used_is_refused_and_named() {
        let many: serde_json::Map<_, _> =
            (0..=COUNT_MAX).map(|number| (number.to_string(), json!("x"))).collect();
        for (object, named) in [
            (json!("site"), "no object"),
            (json!(["site"]), "no object"),
            (json!({"site": 3}), "`site` is no text"),
            (json!({"site": null}), "`site` is no text"),
            (json!({"": "x"}), "1 to 64 bytes"),
            (json!({"s".repeat(65): "x"}), "1 to 64 bytes"),
            (json!({"site": "x".repeat(257)}), "at most 256"),
            (Value::Object(many), "more than 32"),
        ] {
            let error = Attributes::parse(&object).expect_err("invalid");
            assert!(error.contains(named), "{object}: {error}");
        }
    }
}
