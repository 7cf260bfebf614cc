//! Bans.

use serde_json::{Value, json};

use super::Said;
use super::arguments::{BannedArguments, BansCommand};
use super::client::CtlClient;
use super::shown::{Column, list, number, rows_shown, text};
use crate::exit::Failure;

const BANS: [Column; 5] = [
    ("banned", banned),
    ("by", |row| text(row, "source").replace('_', " ")),
    ("until", |row| row["until"].as_str().unwrap_or("for ever").to_owned()),
    ("reason", |row| text(row, "reason")),
    ("", |_| String::new()),
];

fn banned(row: &Value) -> String {
    let kinds = [("address", "address"), ("client_id", "client"), ("user", "user")];
    let found = kinds
        .into_iter()
        .find_map(|(key, kind)| row[key].as_str().map(|value| format!("{kind} {value}")));
    found.unwrap_or_default()
}

fn shown(of: &BannedArguments) -> String {
    banned(&json!({"address": of.address, "client_id": of.client_id, "user": of.user}))
}

pub(super) fn bans(client: &CtlClient, command: &BansCommand) -> Result<Said, Failure> {
    match command {
        BansCommand::List => {
            let answer = client.get("/bans", &[])?;
            let mut text = rows_shown(list(&answer, "bans"), &BANS, 4, "Nothing is banned.");
            match number(&answer, "flapping_client_ids") {
                0 => {}
                count => text.push_str(&format!("{count} client identifiers for flapping\n")),
            }
            if answer["cut"] == true {
                text.push_str("... and more\n");
            }
            if answer["lasting"] == false {
                text.push_str(
                    "Bans of operators end with the broker: it has no `management.store`.\n",
                );
            }
            Ok(Said::new(answer, text))
        }
        BansCommand::Add { of, reason, until, seconds } => {
            let mut body = json!({});
            let texts = [
                ("address", &of.address),
                ("client_id", &of.client_id),
                ("user", &of.user),
                ("reason", reason),
                ("until", until),
            ];
            for (key, value) in texts {
                if let Some(value) = value {
                    body[key] = value.as_str().into();
                }
            }
            if let Some(seconds) = seconds {
                body["for_s"] = (*seconds).into();
            }
            let answer = client.post("/bans", &body)?;
            Ok(Said::new(answer, format!("{} is banned\n", crate::table::printable(&shown(of)))))
        }
        BansCommand::Remove { of } => {
            let query = [
                ("address", of.address.as_deref()),
                ("client_id", of.client_id.as_deref()),
                ("user", of.user.as_deref()),
            ];
            let answer = client.delete("/bans", &query)?;
            let text = format!("{} is banned no more\n", crate::table::printable(&shown(of)));
            Ok(Said::new(answer, text))
        }
    }
}
