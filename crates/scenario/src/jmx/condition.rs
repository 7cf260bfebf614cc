//! The condition of an If controller, as far as it can be decided before the run.

use super::expression::{JmeterPiece, JmeterText};
use super::values::Values;

/// Whether the controller runs its children.
///
/// Understood are `true`, `false`, and `a == b` or `a != b` of texts, bare or within `__jexl3`,
/// `__jexl2` or `__groovy`.
///
/// # Errors
/// A sentence, when it is something else.
pub(super) fn holds(values: &mut Values, text: &str) -> Result<bool, String> {
    let expression = JmeterText::parse(text)?;
    let inner = match &expression.0[..] {
        [JmeterPiece::Reference { name, arguments, .. }]
            if ["__jexl3", "__jexl2", "__groovy"].contains(&name.as_str()) =>
        {
            let mut parts = arguments.iter();
            let mut text = String::new();
            if let Some(first) = parts.next() {
                text = fixed(values, first)?;
            }
            for part in parts {
                text = format!("{text},{}", fixed(values, part)?);
            }
            text
        }
        _ => fixed(values, &expression)?,
    };
    let complaint = || format!("the condition '{text}' is not supported");
    let inner = inner.trim();
    if inner.contains("&&") || inner.contains("||") {
        return Err(complaint());
    }
    if let Some((left, right)) = inner.split_once("==") {
        return Ok(bare(left) == bare(right));
    }
    if let Some((left, right)) = inner.split_once("!=") {
        return Ok(bare(left) != bare(right));
    }
    match bare(inner).to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(complaint()),
    }
}

fn fixed(values: &mut Values, expression: &JmeterText) -> Result<String, String> {
    let fixed = values.resolve(expression)?.fixed();
    fixed
        .ok_or_else(|| "a condition that differs from client to client is not supported".to_owned())
}

/// Without spaces and quotes around it.
fn bare(text: &str) -> &str {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jmx::xml::Argument;

    #[test]
    fn comparisons_of_texts() {
        let mut values = Values::new(&[]);
        let sub =
            Argument { name: "sub".to_owned(), value: "true".to_owned(), ..Argument::default() };
        values.define(&sub).expect("defines");
        for (text, wanted) in [
            ("${__jexl3(${sub} == \"true\")}", Some(true)),
            ("${__groovy('${sub}' != 'true')}", Some(false)),
            ("\"${sub}\"==\"false\"", Some(false)),
            ("${sub}", Some(true)),
            ("false", Some(false)),
            ("${__jexl3(${sub} == 1 && true)}", None),
            ("1 < 2", None),
            ("${__threadNum} == 1", None),
        ] {
            assert_eq!(holds(&mut values, text).ok(), wanted, "{text}");
        }
    }
}
