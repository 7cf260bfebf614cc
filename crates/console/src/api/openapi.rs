//! The OpenAPI document, made of the table of operations.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::access::Role;

/// The schemas of what requests and answers contain.
const COMPONENTS: &str = include_str!("components.json");

/// One operation of the API.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    /// `get`, `post`, `patch` or `delete`.
    pub(crate) method: &'static str,
    /// Below the base; parts in braces are parameters.
    pub(crate) path: &'static str,
    /// Its name.
    pub(crate) id: &'static str,
    /// What it does, in a line.
    pub(crate) summary: &'static str,
    /// Who may.
    pub(crate) role: Role,
    /// What it is sent.
    pub(crate) body: Body,
    /// Parameters of its address behind the `?`.
    pub(crate) query: &'static [&'static str],
    /// The status of its answer, and the schema or type of that.
    pub(crate) answer: (u16, &'static str),
}

/// What an operation is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Nothing.
    None,
    /// JSON of a schema.
    Json(&'static str),
    /// A file.
    File,
}

/// The document.
pub(crate) fn document(base: &str, operations: &[Operation]) -> Value {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for operation in operations {
        let path = paths.entry(format!("{base}{}", operation.path.replace("{*", "{"))).or_default();
        path.insert(operation.method.to_owned(), described(operation));
    }
    // Invariant: a test parses it.
    let components: Value = serde_json::from_str(COMPONENTS).unwrap_or_default();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tacho console",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Configure, start, watch, stop, list and compare runs.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": components,
    })
}

fn described(operation: &Operation) -> Value {
    let Operation { id, summary, role, body, query, answer: (status, schema), .. } = *operation;
    let who = match role {
        Role::Viewer => "For viewers and operators.",
        Role::Operator => "For operators.",
    };
    let text = |name: &str, place: &str| {
        let required = place == "path" || name == "name";
        json!({"name": name, "in": place, "required": required, "schema": {"type": "string"}})
    };
    let in_path = operation.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(name.trim_start_matches('*'))
    });
    let parameters: Vec<Value> = in_path
        .map(|name| text(name, "path"))
        .chain(query.iter().map(|name| text(name, "query")))
        .collect();
    let mut responses = Map::new();
    responses.insert(status.to_string(), answer(schema));
    let error = json!({"$ref": "#/components/responses/Error"});
    responses.insert("default".to_owned(), error);
    let mut described = json!({
        "operationId": id, "summary": summary, "description": who, "parameters": parameters,
        "responses": responses,
    });
    let content = match body {
        Body::None => return described,
        Body::Json(schema) => json!({"application/json": {"schema": reference(schema)}}),
        Body::File => {
            json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}})
        }
    };
    described["requestBody"] = json!({"required": true, "content": content});
    described
}

/// A name with a slash is a type of content, others are schemas.
fn answer(schema: &str) -> Value {
    let content = match schema {
        "" => return json!({"description": "done, without content"}),
        kind if kind.contains('/') => json!({kind: {"schema": {"type": "string"}}}),
        schema => json!({"application/json": {"schema": reference(schema)}}),
    };
    json!({"description": "done", "content": content})
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}
