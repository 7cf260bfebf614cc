//! A drain, begun and followed to its end.

use std::time::Duration;

use serde_json::{Value, json};

use super::Said;
use super::arguments::DrainArguments;
use super::client::CtlClient;
use super::shown::{lines, number, text};
use crate::exit::Failure;
use crate::table::span;

/// How often the broker is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Between two lines that tell it.
const TELL_EVERY: u32 = 25;

/// Begins a drain, and waits until no client is left unless that is not wanted. What happens is
/// told on standard error.
pub(super) fn drain(client: &CtlClient, arguments: &DrainArguments) -> Result<Said, Failure> {
    let DrainArguments { wait, rate, deadline, server_reference, keep, detach } = arguments;
    let mut request = json!({
        "wait_s": wait, "rate_per_s": rate, "deadline_s": deadline, "keep": keep,
    });
    if let Some(reference) = server_reference {
        request["server_reference"] = Value::String(reference.clone());
    }
    let mut status = client.post("/drain", &request)?;
    let mut looks = 0;
    while !detach && status["phase"] != "drained" {
        if status["phase"] == "off" {
            let sentence = "another operator has ended the drain: clients are taken again";
            return Err(Failure::new(crate::exit::INVALID_CONFIG, sentence));
        }
        if looks % TELL_EVERY == 0 {
            eprintln!("{}", progress(&status));
        }
        looks += 1;
        std::thread::sleep(LOOK_EVERY);
        status = client.get("/drain", &[])?;
    }
    let end = match (status["phase"] == "drained", status["ends"] == true) {
        (false, _) => "the drain has begun; `tacho ctl drain-status` says how far it is",
        (true, true) => "no client is left; the broker ends",
        (true, false) => "no client is left; `tacho ctl undrain` has it take clients again",
    };
    Ok(Said::new(status, format!("{end}\n")))
}

/// `waiting: 120 clients connected, 0 disconnected`.
fn progress(status: &Value) -> String {
    format!(
        "{}: {} clients connected, {} disconnected",
        text(status, "phase"),
        number(status, "clients_left"),
        number(status, "disconnected")
    )
}

pub(super) fn status(client: &CtlClient) -> Result<Said, Failure> {
    let answer = client.get("/drain", &[])?;
    let is_on = answer["phase"] != "off";
    let given = |key: &str| if is_on { text(&answer, key) } else { String::new() };
    let deadline = answer["left_s"].as_u64().map_or_else(String::new, span);
    let shown = lines(&[
        ("drain", text(&answer, "phase")),
        ("clients connected", text(&answer, "clients_left")),
        ("disconnected", given("disconnected")),
        ("sent to", given("server_reference")),
        ("ends afterwards", given("ends")),
        ("time left", deadline),
    ]);
    Ok(Said::new(answer, shown))
}

pub(super) fn undrain(client: &CtlClient) -> Result<Said, Failure> {
    let answer = client.delete("/drain", &[])?;
    Ok(Said::new(answer, "clients are taken again\n".to_owned()))
}
