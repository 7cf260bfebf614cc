//! Values of a rules file.

use std::ops::RangeInclusive;

use toml::{Spanned, Value};

use crate::toml_text::Wrong;

pub(super) fn flag(key: &str, value: Option<&Spanned<Value>>) -> Result<Option<bool>, Wrong> {
    let Some(value) = value else { return Ok(None) };
    let flag = value.get_ref().as_bool();
    flag.map(Some).ok_or_else(|| Wrong::of(value, format!("`{key}` must be true or false")))
}

pub(super) fn number(
    key: &str,
    value: Option<&Spanned<Value>>,
    range: RangeInclusive<i64>,
) -> Result<Option<u32>, Wrong> {
    let Some(value) = value else { return Ok(None) };
    let number = value.get_ref().as_integer().filter(|number| range.contains(number));
    let number = number.and_then(|number| u32::try_from(number).ok());
    number.map(Some).ok_or_else(|| {
        let (min, max) = (range.start(), range.end());
        Wrong::of(value, format!("`{key}` must be a number from {min} to {max}"))
    })
}

/// One of these words.
pub(super) fn one_of<T: Copy>(
    key: &str,
    value: Option<&Spanned<Value>>,
    words: &[(&str, T)],
) -> Result<Option<T>, Wrong> {
    let Some(value) = value else { return Ok(None) };
    let given = value.get_ref().as_str();
    let found = words.iter().find(|(word, _)| Some(*word) == given);
    found.map(|&(_, meant)| Some(meant)).ok_or_else(|| {
        let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        Wrong::of(value, format!("`{key}` must be {}", words.join(" or ")))
    })
}

/// The texts of a list, each parsed; none where the key is missing.
pub(super) fn each<T>(
    key: &str,
    value: Option<&Spanned<Value>>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Box<[T]>, Wrong> {
    let Some(value) = value else { return Ok(Box::default()) };
    let one = |text: &String| {
        let parsed = parse(text);
        parsed.map_err(|what| match what.contains(&format!("`{key}`")) {
            true => Wrong::of(value, what),
            false => Wrong::of(value, format!("`{key}`: {what}")),
        })
    };
    texts(key, value)?.iter().map(one).collect()
}

/// A text, or a list of at least one.
pub(super) fn texts(key: &str, value: &Spanned<Value>) -> Result<Vec<String>, Wrong> {
    let wrong = || Wrong::of(value, format!("`{key}` must be a text, or a list of texts"));
    let texts = text_list(value.get_ref()).ok_or_else(wrong)?;
    match texts.iter().any(String::is_empty) || texts.is_empty() {
        true => Err(Wrong::of(value, format!("`{key}` is empty, or has an empty text"))),
        false => Ok(texts),
    }
}

/// `None` where there is something else.
pub(super) fn text_list(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(values) => {
            values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
}
