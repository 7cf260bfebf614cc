//! Shared parts of all checks: the origin of a value, and plain kinds of values.

use std::ops::Range;

use tacho_load::plan::check_text;
use toml::Spanned;

use crate::adjust::Adjustment;
use crate::error::{ScenarioError, SourceText};
use crate::limits::Limits;
use crate::quantity::Whole;
use crate::template::Template;
use crate::vars::Substitution;

/// Checks one scenario; knows where values come from.
pub(crate) struct Checker<'a> {
    pub(crate) source: &'a SourceText,
    pub(crate) substitution: &'a Substitution<'a>,
    pub(crate) adjustment: &'a Adjustment,
    pub(crate) limits: Limits,
}

pub(crate) type Checked<T> = Result<T, ScenarioError>;

impl Checker<'_> {
    /// An error at a place, with the variables that the value came from.
    pub(crate) fn error(&self, span: Range<usize>, title: impl Into<String>) -> ScenarioError {
        let explanation = self.substitution.explain(span.start);
        let error = ScenarioError::new(title).at(self.source, span);
        match explanation {
            Some(explanation) => error.help(explanation),
            None => error,
        }
    }

    pub(super) fn qos(&self, qos: &Spanned<Whole>) -> Checked<u8> {
        match qos.get_ref().0 {
            value @ 0..=2 => Ok(value as u8),
            other => {
                Err(self.error(qos.span(), format!("there is no QoS {other}")).label("0, 1 or 2"))
            }
        }
    }

    pub(super) fn whole(
        &self,
        value: &Spanned<Whole>,
        what: &str,
        min: u64,
        max: u64,
    ) -> Checked<u64> {
        let number = value.get_ref().0;
        match u64::try_from(number) {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(self
                .error(value.span(), format!("{what} cannot be {number}"))
                .label(format!("between {min} and {max}"))),
        }
    }

    pub(super) fn choice(
        &self,
        value: &Spanned<String>,
        key: &str,
        choices: &str,
    ) -> ScenarioError {
        self.error(value.span(), format!("'{key}' cannot be '{}'", value.get_ref())).label(choices)
    }

    pub(super) fn template(&self, text: &Spanned<String>) -> Checked<Template> {
        let template =
            Template::parse(text.get_ref()).map_err(|title| self.error(text.span(), title))?;
        if let Some(modulus) = template.modulus().filter(|_| self.adjustment.scale_clients != 1.0) {
            let title = "clients cannot be scaled: this template depends on their number";
            return Err(self
                .error(text.span(), title)
                .label(format!("{modulus} fits the clients as they are"))
                .help("change the scenario's variables instead of --scale-clients"));
        }
        Ok(template)
    }

    /// A template of strings that can be sent.
    pub(super) fn text(&self, text: &Spanned<String>, what: &str) -> Checked<Template> {
        let template = self.template(text)?;
        self.sendable(text, what, &template)?;
        Ok(template)
    }

    /// Refuses text that MQTT forbids, or tells senders not to send (1.5.4).
    fn sendable(&self, text: &Spanned<String>, what: &str, template: &Template) -> Checked<()> {
        match check_text(&template.expand(0)) {
            Ok(()) => Ok(()),
            Err(why) => Err(self
                .error(text.span(), format!("this {what} cannot be sent: {why}"))
                .label("not allowed in MQTT")),
        }
    }

    pub(super) fn topic(&self, text: &Spanned<String>, what: &str) -> Checked<Template> {
        let template = self.text(text, what)?;
        let first = template.expand(0);
        if first.is_empty() {
            return Err(self.error(text.span(), format!("a {what} cannot be empty")));
        }
        if what == "topic" && first.contains(['+', '#']) {
            return Err(self
                .error(text.span(), "a topic name has no wildcards")
                .label("'+' and '#' are allowed in filters only"));
        }
        Ok(template)
    }
}
