//! `tacho ctl`: looks into a running broker and operates it, by its management API.

mod alarms;
mod arguments;
mod backup;
mod bans;
mod bridges;
mod broker;
mod client;
mod clients;
mod drain;
mod events;
mod history;
mod keys;
mod messages;
mod shown;
mod target;
mod top;
mod trace;
mod unix;

use std::io::IsTerminal as _;
use std::time::Duration;

use serde_json::Value;

pub(crate) use arguments::CtlArguments;
use arguments::CtlCommand;
use client::CtlClient;
pub(crate) use target::{CtlTarget, target};

use crate::exit::{self, Failure};
use crate::signals;

/// What a command has to say.
struct Said {
    /// For scripts.
    json: Value,
    /// For people, with the end of its last line.
    text: String,
    /// The command's exit code.
    code: u8,
}

impl Said {
    const fn new(json: Value, text: String) -> Self {
        Self { json, text, code: exit::OK }
    }

    fn with_code(self, code: u8) -> Self {
        Self { code, ..self }
    }
}

/// Runs the command; its exit code.
pub(crate) fn ctl(arguments: &CtlArguments) -> Result<u8, Failure> {
    let client = CtlClient::new(arguments.target.find()?);
    if let CtlCommand::Events(events) = &arguments.command
        && arguments.watch.is_none()
    {
        return events::events(&client, events, arguments.json);
    }
    if let CtlCommand::Trace(trace) = &arguments.command
        && arguments.watch.is_none()
    {
        return trace::trace(&client, trace, arguments.json);
    }
    let Some(every_s) = arguments.watch else {
        let said = said(&client, &arguments.command)?;
        show(arguments, &said);
        return Ok(said.code);
    };
    if !arguments.command.looks() {
        let sentence = "--watch is for commands that look: this one changes something, or goes on \
                        by itself";
        return Err(Failure::new(exit::INVALID_CONFIG, sentence));
    }
    signals::end_well()?;
    loop {
        let said = said(&client, &arguments.command)?;
        if !arguments.json && std::io::stdout().is_terminal() {
            // The place at the top left, and nothing behind it.
            print!("\x1b[H\x1b[2J");
        }
        show(arguments, &said);
        std::thread::sleep(Duration::from_secs(every_s));
    }
}

fn show(arguments: &CtlArguments, said: &Said) {
    match arguments.json {
        true => println!("{}", said.json),
        false => print!("{}", said.text),
    }
}

fn said(client: &CtlClient, command: &CtlCommand) -> Result<Said, Failure> {
    match command {
        CtlCommand::Status => broker::status(client),
        CtlCommand::Health => broker::health(client),
        CtlCommand::Clients(arguments) => clients::list(client, arguments),
        CtlCommand::Client { client_id } => clients::client(client, client_id),
        CtlCommand::Kick(arguments) => clients::kick(client, arguments),
        CtlCommand::Subscriptions { client_id } => clients::subscriptions(client, client_id),
        CtlCommand::Subscribers(arguments) => messages::subscribers(client, arguments),
        CtlCommand::Topic(arguments) => messages::topic(client, arguments),
        CtlCommand::Retained { command } => messages::retained(client, command),
        CtlCommand::Publish(arguments) => messages::publish(client, arguments),
        CtlCommand::Groups(arguments) => messages::groups(client, arguments),
        CtlCommand::Group { filter } => messages::group(client, filter),
        CtlCommand::Bans { command } => bans::bans(client, command),
        CtlCommand::Users(arguments) => broker::users(client, arguments),
        CtlCommand::Roles => broker::roles(client),
        CtlCommand::Explain(arguments) => broker::explain(client, arguments),
        CtlCommand::Listeners => broker::listeners(client),
        CtlCommand::Listener { command } => broker::listener(client, command),
        CtlCommand::Limits => broker::limits(client),
        CtlCommand::Bridges => broker::bridges(client),
        CtlCommand::Bridge { command } => bridges::bridge(client, command),
        CtlCommand::Journal => broker::journal(client),
        CtlCommand::Top { command } => top::top(client, command),
        CtlCommand::History(arguments) => history::history(client, arguments),
        CtlCommand::Slow { limit } => top::slow(client, *limit),
        CtlCommand::TopicMetrics { command } => top::topics(client, command),
        CtlCommand::Alarms(arguments) => alarms::alarms(client, arguments),
        CtlCommand::Config(arguments) => broker::config(client, arguments),
        CtlCommand::Reload => broker::reload(client),
        CtlCommand::Backup { directory } => backup::backup(client, directory),
        CtlCommand::Drain(arguments) => drain::drain(client, arguments),
        CtlCommand::DrainStatus => drain::status(client),
        CtlCommand::Undrain => drain::undrain(client),
        CtlCommand::Keys { command } => keys::keys(client, command),
        CtlCommand::Metrics => {
            let text = client.text("/metrics")?;
            Ok(Said::new(Value::String(text.clone()), text))
        }
        CtlCommand::Openapi => {
            let document = client.get("/openapi.json", &[])?;
            let text = format!("{document:#}\n");
            Ok(Said::new(document, text))
        }
        // Invariant: they are followed, and never watched.
        CtlCommand::Events(_) | CtlCommand::Trace(_) => Ok(Said::new(Value::Null, String::new())),
    }
}
