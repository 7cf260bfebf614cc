//! The options behind the `?` of a target.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::TargetError;

/// Names that other tools have for secrets.
const SECRETS: [&str; 7] = ["token", "password", "p", "pass", "api-key", "apikey", "authorization"];

/// Options that were not asked for yet.
#[derive(Debug)]
pub(super) struct OptionList {
    kind: &'static str,
    left: Vec<(String, String)>,
    /// Those that were asked for: all that the kind has.
    known: Vec<&'static str>,
}

impl OptionList {
    /// Reads `a=1&b=2`, percent-encoded or not.
    pub(super) fn parse(kind: &'static str, text: &str) -> Result<Self, TargetError> {
        let mut left: Vec<(String, String)> = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            let (option, value) = (decode(name), decode(value));
            if SECRETS.contains(&option.to_ascii_lowercase().as_str()) {
                let of = if option.starts_with('p') { "PASSWORD" } else { "TOKEN" };
                let variable = format!("{}_{of}", kind.to_ascii_uppercase());
                return Err(TargetError::SecretInOption { kind, option, variable });
            }
            if left.iter().any(|(known, _)| *known == option) {
                return Err(TargetError::Twice { kind, option });
            }
            left.push((option, value));
        }
        Ok(Self { kind, left, known: Vec::new() })
    }

    /// The value of an option that is there.
    pub(super) fn text(&mut self, option: &'static str) -> Result<Option<String>, TargetError> {
        self.known.push(option);
        let Some(at) = self.left.iter().position(|(name, _)| name == option) else {
            return Ok(None);
        };
        let (_, value) = self.left.remove(at);
        let is_line = !value.is_empty() && !value.chars().any(char::is_control);
        match is_line {
            true => Ok(Some(value)),
            false => Err(self.wrong(option, &value, "write one line of text")),
        }
    }

    /// A file.
    pub(super) fn path(&mut self, option: &'static str) -> Result<Option<PathBuf>, TargetError> {
        Ok(self.text(option)?.map(PathBuf::from))
    }

    /// One of the `choices`, by its name; the first is the default.
    pub(super) fn choice<T: Copy>(
        &mut self,
        option: &'static str,
        choices: &[(&str, T)],
        expected: &'static str,
    ) -> Result<T, TargetError> {
        let Some(value) = self.text(option)? else { return Ok(choices[0].1) };
        let found = choices.iter().find(|(name, _)| *name == value);
        found.map(|(_, choice)| *choice).ok_or_else(|| self.wrong(option, &value, expected))
    }

    /// `on` or `off`.
    pub(super) fn switch(
        &mut self,
        option: &'static str,
        default: bool,
    ) -> Result<bool, TargetError> {
        self.choice(option, &[("", default), ("on", true), ("off", false)], "write on or off")
    }

    /// A time between `least` and `most`.
    pub(super) fn time(
        &mut self,
        option: &'static str,
        default: Duration,
        (least, most): (Duration, Duration),
        expected: &'static str,
    ) -> Result<Duration, TargetError> {
        let Some(value) = self.text(option)? else { return Ok(default) };
        let time = duration(&value).filter(|time| (least..=most).contains(time));
        time.ok_or_else(|| self.wrong(option, &value, expected))
    }

    /// Insists that no option is left.
    pub(super) fn end(self) -> Result<(), TargetError> {
        match self.left.into_iter().next() {
            None => Ok(()),
            Some((option, _)) => {
                let (kind, known) = (self.kind, self.known.join(", "));
                Err(TargetError::UnknownOption { kind, option, known })
            }
        }
    }

    fn wrong(&self, option: &str, value: &str, expected: &'static str) -> TargetError {
        let (option, value) = (option.to_owned(), value.to_owned());
        TargetError::Value { kind: self.kind, option, value, expected }
    }
}

/// Reads `500ms`, `10s` or `2m`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}
