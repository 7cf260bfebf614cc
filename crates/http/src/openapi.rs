//! OpenAPI documents, made of a table of operations.

use std::collections::{BTreeMap, BTreeSet};

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
            let path = paths.entry(described_path(base, operation.path)).or_default();
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

impl ApiDescription {
    /// What is wrong with it, for a test of each API: an operation that is not served, described
    /// twice or not at all; a schema that is named and not there, or there and not named.
    pub fn faults(&self, is_served: impl Fn(&str) -> bool) -> Vec<String> {
        let document = self.document();
        let mut faults = Vec::new();
        let mut ids = BTreeSet::new();
        for operation in self.operations {
            let Operation { id, method, path, .. } = *operation;
            let path = described_path(self.base, path);
            if !is_served(id) {
                faults.push(format!("{id} is not served"));
            }
            if !ids.insert(id) {
                faults.push(format!("{id} is there twice"));
            }
            if document["paths"][&path][method]["operationId"] != id {
                faults.push(format!("{method} {path} is not {id}"));
            }
        }
        let mut named = BTreeSet::new();
        references(&document, &mut named);
        let is_there = |name: &&String| {
            name.strip_prefix('#').is_some_and(|path| document.pointer(path).is_some())
        };
        let missing = named.iter().filter(|name| !is_there(name));
        faults.extend(missing.map(|name| format!("{name} is not there")));
        let schemas = document["components"]["schemas"].as_object();
        let unused = schemas
            .into_iter()
            .flat_map(Map::keys)
            .filter(|name| !named.contains(&format!("#/components/schemas/{name}")));
        faults.extend(unused.map(|name| format!("{name} is not used")));
        if schemas.is_none() {
            faults.push("there are no schemas".to_owned());
        }
        faults
    }
}

/// A path as the document has it.
fn described_path(base: &str, path: &str) -> String {
    format!("{base}{}", path.replace("{*", "{"))
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    const fn operation(path: &'static str, id: &'static str, schema: &'static str) -> Operation {
        let (method, summary, role, query) = ("get", "", Role::Viewer, &[]);
        Operation {
            method,
            path,
            id,
            summary,
            role,
            body: RequestBody::None,
            query,
            answer: (200, schema),
        }
    }

    #[test]
    fn each_fault_of_a_description_is_named() {
        const OPERATIONS: [Operation; 3] = [
            operation("/runs/{*name}", "run", "Run"),
            operation("/runs", "runs", "Missing"),
            operation("/runs", "runs", "Run"),
        ];
        let description = |operations, components| ApiDescription {
            title: "",
            summary: "",
            version: "1",
            base: "/api",
            security: "key",
            components,
            operations,
        };
        let good = r#"{"schemas": {"Run": {}}, "responses": {"Error": {}}}"#;
        assert_eq!(description(&OPERATIONS[..1], good).faults(|_| true), [""; 0]);
        let spare = r#"{"schemas": {"Run": {}, "Spare": {}}, "responses": {}}"#;
        let faults = description(&OPERATIONS, spare).faults(|id| id == "runs");
        for fault in [
            "run is not served",
            "runs is there twice",
            "#/components/responses/Error is not there",
            "#/components/schemas/Spare is not used",
        ] {
            let name = fault.trim_start_matches("#/components/schemas/");
            assert!(
                faults.iter().any(|found| found == fault || found == name),
                "{fault}: {faults:?}"
            );
        }
        // The second one of the same path has its place.
        let faults = description(&OPERATIONS[1..2], good).faults(|_| true);
        assert!(faults.contains(&"#/components/schemas/Missing is not there".to_owned()));
    }
}
