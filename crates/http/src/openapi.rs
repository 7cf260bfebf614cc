//! OpenAPI documents, made of a table of operations.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::role::Role;

/// One operation of an API.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// `get`, `post`, `patch` or `delete`.
    pub method: &'static str,
    /// Below the base; parts in braces are parameters.
    pub path: &'static str,
    /// Its name.
    pub id: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Who may.
    pub role: Role,
    /// What it is sent.
    pub body: RequestBody,
    /// Parameters of its address behind the `?`; those that begin with `!` are required.
    pub query: &'static [&'static str],
    /// The status of its answer, and the schema or type of that.
    pub answer: (u16, &'static str),
}

/// What an operation is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// Nothing.
    None,
    /// JSON of a schema.
    Json(&'static str),
    /// A file.
    File,
}

/// An API as a whole.
#[derive(Clone, Copy, Debug)]
pub struct ApiDescription {
    /// Its name.
    pub title: &'static str,
    /// What it is for, in a line.
    pub summary: &'static str,
    /// The version of the program.
    pub version: &'static str,
    /// Where all operations are.
    pub base: &'static str,
    /// The name of the scheme by which requests prove who they are; it is in `components`.
    pub security: &'static str,
    /// JSON: the schemas of what requests and answers contain, a response `Error`, the scheme.
    pub components: &'static str,
    /// All operations.
    pub operations: &'static [Operation],
}

impl ApiDescription {
    /// The OpenAPI document.
    pub fn document(&self) -> Value {
        let Self { title, summary, version, base, security, components, operations } = *self;
        let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        for operation in operations {
            let path = format!("{base}{}", operation.path.replace("{*", "{"));
            let path = paths.entry(path).or_default();
            path.insert(operation.method.to_owned(), described(operation));
        }
        // Invariant: each API has a test that parses it.
        let components: Value = serde_json::from_str(components).unwrap_or_default();
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": title,
                "version": version,
                "summary": summary,
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "security": [{security: []}],
            "paths": paths,
            "components": components,
        })
    }
}

fn described(operation: &Operation) -> Value {
    let Operation { id, summary, role, body, query, answer: (status, schema), .. } = *operation;
    let who = match role {
        Role::Viewer => "For viewers and all others.",
        Role::Operator => "For operators and administrators.",
        Role::Administrator => "For administrators.",
    };
    let text = |name: &str, place: &str, required: bool| json!({"name": name, "in": place, "required": required, "schema": {"type": "string"}});
    let in_path = operation.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(name.trim_start_matches('*'))
    });
    let in_query = query.iter().map(|name| match name.strip_prefix('!') {
        Some(name) => text(name, "query", true),
        None => text(name, "query", false),
    });
    let parameters: Vec<Value> =
        in_path.map(|name| text(name, "path", true)).chain(in_query).collect();
    let mut responses = Map::new();
    responses.insert(status.to_string(), answer(schema));
    let error = json!({"$ref": "#/components/responses/Error"});
    responses.insert("default".to_owned(), error);
    let mut described = json!({
        "operationId": id, "summary": summary, "description": who, "parameters": parameters,
        "responses": responses,
    });
    let content = match body {
        RequestBody::None => return described,
        RequestBody::Json(schema) => json!({"application/json": {"schema": reference(schema)}}),
        RequestBody::File => {
            json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}})
        }
    };
    described["requestBody"] = json!({"required": true, "content": content});
    described
}

/// A name with a slash is a type of content, with the schema behind a `#`; others are schemas.
fn answer(schema: &str) -> Value {
    let content = match schema {
        "" => return json!({"description": "done, without content"}),
        kind if kind.contains('/') => match kind.split_once('#') {
            Some((kind, schema)) => json!({kind: {"schema": reference(schema)}}),
            None => json!({kind: {"schema": {"type": "string"}}}),
        },
        schema => json!({"application/json": {"schema": reference(schema)}}),
    };
    json!({"description": "done", "content": content})
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}
