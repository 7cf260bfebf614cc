//! The JSON schema against scenario files.

use serde_json::{Value, json};
use tacho_scenario::{Adjustment, BUILTIN, BenchmarkName, Limits, Scenario, SourceText, schema};

/// What `value` breaks of `schema`, as far as the schema uses JSON schema's words.
fn broken(schema: &Value, value: &Value, path: &str) -> Option<String> {
    for word in schema.as_object().expect("a schema").keys() {
        let known = [
            "$schema",
            "additionalProperties",
            "anyOf",
            "description",
            "enum",
            "items",
            "maximum",
            "minimum",
            "pattern",
            "properties",
            "required",
            "title",
            "type",
        ];
        assert!(known.contains(&word.as_str()), "the check does not know {word}");
    }
    let complain = |what: &str| Some(format!("{path}: {value} {what}"));
    if let Some(kind) = schema.get("type") {
        let kinds: Vec<&str> = match kind {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => vec![kind.as_str().expect("a type")],
        };
        let is = |kind: &&str| match *kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("no type {other}"),
        };
        if !kinds.iter().any(is) {
            return complain(&format!("is no {}", kinds.join(" or ")));
        }
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        return complain("is not one of the choices");
    }
    if let (Some(minimum), Some(number)) = (schema.get("minimum"), value.as_f64())
        && number < minimum.as_f64().expect("a number")
    {
        return complain("is too small");
    }
    if let (Some(maximum), Some(number)) = (schema.get("maximum"), value.as_f64())
        && number > maximum.as_f64().expect("a number")
    {
        return complain("is too large");
    }
    // Of patterns only the part that tells a variable is looked at.
    if let (Some(pattern), Some(text)) = (schema.get("pattern"), value.as_str())
        && pattern == "\\{\\{"
        && !text.contains("{{")
    {
        return complain("is no variable");
    }
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let first =
            any.iter().map(|schema| broken(schema, value, path)).min_by_key(Option::is_some);
        if let Some(Some(complaint)) = first {
            return Some(complaint);
        }
    }
    if let (Some(items), Some(array)) = (schema.get("items"), value.as_array()) {
        return array.iter().find_map(|item| broken(items, item, path));
    }
    let table = value.as_object()?;
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !table.contains_key(required.as_str().expect("a name")) {
            return complain(&format!("has no {required}"));
        }
    }
    table.iter().find_map(|(name, value)| {
        let path = format!("{path}.{name}");
        match schema.get("properties").and_then(|properties| properties.get(name)) {
            Some(schema) => broken(schema, value, &path),
            None => match &schema["additionalProperties"] {
                Value::Bool(false) => Some(format!("{path} is no known key")),
                other => broken(other, value, &path),
            },
        }
    })
}

fn check(text: &str) -> Result<(), String> {
    let value: toml::Value = toml::from_str(text).map_err(|error| error.to_string())?;
    broken(&schema(), &json!(value), "").map_or(Ok(()), Err)
}

#[test]
fn scenarios_that_come_with_the_program_pass() {
    let mut texts: Vec<String> = BUILTIN.iter().map(|builtin| builtin.text.to_owned()).collect();
    for name in ["1_1k_qos1_p32_1mps", "false_share_5k_50_qos0_p1024_0.5mps"] {
        let name = BenchmarkName::parse(name).expect("a name").expect("parses");
        texts.push(name.source().text.to_string());
    }
    for text in texts {
        check(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
        let source = SourceText::new("x", &text);
        let none = Adjustment::NONE;
        let scenario = Scenario::parse_adjusted(&source, &[], &none, Limits::NONE).expect("parses");
        let resolved = scenario.to_toml();
        check(&resolved).unwrap_or_else(|error| panic!("{error} in {resolved}"));
    }
}

#[test]
fn the_schema_refuses_everything_the_program_refuses() {
    let good = "name = 'x'\n[groups.a]\nclients = '{{n}}'\n[[groups.a.publish]]\ntopic = 't'\n\
                qos = 1\nrate = { total = '10/s' }\npayload = { size = 24 }\n";
    assert_eq!(check(good), Ok(()));
    for (from, to, words) in [
        ("qos = 1", "qos = 3", ".groups.a.publish.qos: 3 is too large"),
        ("qos = 1", "qos = 'one'", "publish.qos: \"one\""),
        ("qos = 1", "qoss = 1", ".groups.a.publish.qoss is no known key"),
        ("size = 24", "size = 23", "23 is too small"),
        ("topic = 't'\n", "", "has no \"topic\""),
        ("name = 'x'\n", "", "has no \"name\""),
        ("clients = '{{n}}'", "clients = 'many'", ".groups.a.clients: \"many\""),
        ("qos = 1", "model = 'fish'", "publish.model: \"fish\""),
    ] {
        let error = check(&good.replacen(from, to, 1)).expect_err(to);
        assert!(error.contains(words), "{to}: {error}");
    }
}
