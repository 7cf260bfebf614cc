//! Keys of the API by HTTP.

use serde_json::json;

use super::Said;
use super::arguments::KeysCommand;
use super::client::{CtlClient, encoded};
use super::shown::{Column, list, rows_shown, text};
use crate::exit::Failure;

const KEYS: [Column; 2] = [("key", |row| text(row, "name")), ("role", |row| text(row, "role"))];

pub(super) fn keys(client: &CtlClient, command: &KeysCommand) -> Result<Said, Failure> {
    match command {
        KeysCommand::List => {
            let answer = client.get("/keys", &[])?;
            let table = rows_shown(list(&answer, "keys"), &KEYS, 2, "There are no keys.");
            Ok(Said::new(answer, table))
        }
        KeysCommand::Add { name, role } => {
            let answer = client.post("/keys", &json!({"name": name, "role": role}))?;
            // Nothing but the key, so that `> FILE` makes a key file.
            let key = format!("{}\n", text(&answer, "key"));
            Ok(Said::new(answer, key))
        }
        KeysCommand::Remove { name } => {
            let answer = client.delete(&format!("/keys/{}", encoded(name)), &[])?;
            Ok(Said::new(answer, format!("the key {name} is removed\n")))
        }
    }
}
