//! Text as TOML has it.

pub(super) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
