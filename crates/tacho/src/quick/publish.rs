//! `tacho pub`: publishes messages.

use std::io::{self, BufRead as _, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{ArgAction, ArgGroup, Args};
use tacho_client::{Accepted, Client, ClientError, Happened, Message};
use tacho_codec::QoS;
use tacho_scenario::TimeSpan;

use super::arguments::{ConnectionArguments, check_topic, qos};
use super::properties::PropertyArguments;
use super::{Pauses, failure, invalid};
use crate::exit::{self, Failure};

/// The longest line of standard input, and the largest payload.
const PAYLOAD_BYTES_MAX: usize = 268_000_000;

/// Publish messages: one, one several times, or one per line of standard input.
///
/// Ends when the broker has acknowledged everything; with QoS 0 when everything is written. With
/// --lines a lost connection is made again and unacknowledged messages are sent again. The flags
/// are those of mosquitto_pub.
#[derive(Args, Debug)]
#[command(disable_help_flag = true, group = ArgGroup::new("what").required(true))]
pub(crate) struct PublishArguments {
    /// Topic to publish to
    #[arg(short, long, value_name = "TOPIC")]
    topic: String,

    /// The payload
    #[arg(short, long, value_name = "TEXT", group = "what")]
    message: Option<String>,

    /// Publish the content of a file
    #[arg(short, long, value_name = "FILE", group = "what")]
    file: Option<PathBuf>,

    /// Publish all of standard input as one message
    #[arg(short, long, group = "what")]
    stdin_file: bool,

    /// Publish each line of standard input as a message
    #[arg(short = 'l', long, visible_alias = "stdin-line", group = "what")]
    lines: bool,

    /// Publish an empty message
    #[arg(short, long, group = "what")]
    null_message: bool,

    /// QoS: 0, 1 or 2
    #[arg(short, long, value_name = "QOS", default_value = "0", value_parser = qos)]
    qos: QoS,

    /// Keep the message for later subscribers
    #[arg(short, long)]
    retain: bool,

    /// Publish the message this many times
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "lines",
          value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,

    /// Time between repeats
    #[arg(long, value_name = "TIME", default_value = "0s", conflicts_with = "lines",
          value_parser = delay)]
    repeat_delay: Duration,

    #[command(flatten)]
    connection: ConnectionArguments,

    #[command(flatten)]
    properties: PropertyArguments,

    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// A time such as `500ms`, or a number of seconds.
fn delay(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    TimeSpan::parse(text).map(|span| span.0)
}

/// Runs the command; its exit code.
pub(crate) fn publish(arguments: &PublishArguments) -> Result<u8, Failure> {
    check_topic(&arguments.topic)?;
    let properties = arguments.properties.of_publish()?;
    let settings = arguments.connection.settings(&arguments.properties)?;
    let message = Message {
        topic: arguments.topic.clone(),
        payload: Vec::new(),
        qos: arguments.qos,
        retain: arguments.retain,
        properties,
    };
    let source = source(arguments)?;
    let mut publisher = Publisher {
        client: Client::new(settings),
        message,
        is_quiet: arguments.connection.quiet,
        reconnects: arguments.lines,
        refused: 0,
    };
    let done = publisher.run(source).map_err(|error| failure(&error))?;
    publisher.client.disconnect();
    done?;
    Ok(if publisher.refused > 0 { exit::UNEXPECTED } else { exit::OK })
}

/// What is published.
enum Payloads {
    /// A payload, several times.
    Repeated { payload: Vec<u8>, times: u64, delay: Duration },
    /// The lines of standard input.
    Lines,
}

fn source(arguments: &PublishArguments) -> Result<Payloads, Failure> {
    let payload = if let Some(text) = &arguments.message {
        text.clone().into_bytes()
    } else if let Some(file) = &arguments.file {
        std::fs::read(file)
            .map_err(|error| invalid(&format!("cannot read {}: {error}", file.display())))?
    } else if arguments.stdin_file {
        let mut bytes = Vec::new();
        let limited = io::stdin().take(PAYLOAD_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
        limited.map_err(|error| invalid(&format!("cannot read standard input: {error}")))?;
        bytes
    } else if arguments.lines {
        return Ok(Payloads::Lines);
    } else {
        Vec::new()
    };
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(invalid("the payload does not fit into an MQTT packet (256 MB)"));
    }
    Ok(Payloads::Repeated { payload, times: arguments.repeat, delay: arguments.repeat_delay })
}

/// The next line of standard input, without its end.
fn next_line() -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut input = io::stdin().lock().take(PAYLOAD_BYTES_MAX as u64);
    if input.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") {
        line.pop();
        if line.ends_with(b"\r") {
            line.pop();
        }
    } else if line.len() >= PAYLOAD_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
    }
    Ok(Some(line))
}

struct Publisher {
    client: Client,
    /// All but its payload.
    message: Message,
    is_quiet: bool,
    /// A lost connection is made again.
    reconnects: bool,
    /// Messages that the broker has refused.
    refused: u64,
}

impl Publisher {
    /// Publishes everything. The outer error is of the connection, the inner one of the input.
    fn run(&mut self, source: Payloads) -> Result<Result<(), Failure>, ClientError> {
        let accepted = self.client.connect()?;
        if let Err(failure) = self.check(accepted) {
            return Ok(Err(failure));
        }
        match source {
            Payloads::Repeated { payload, times, delay } => {
                self.repeat(&payload, times, delay).map(Ok)
            }
            Payloads::Lines => self.lines(),
        }
    }

    fn check(&self, accepted: Accepted) -> Result<(), Failure> {
        let message = &self.message;
        if message.qos > accepted.qos_max {
            let (asked, most) = (message.qos as u8, accepted.qos_max as u8);
            return Err(invalid(&format!("the broker takes QoS {most} at most, not {asked}")));
        }
        if message.retain && !accepted.retain_available {
            return Err(invalid("the broker keeps no retained messages"));
        }
        Ok(())
    }

    fn send(&mut self, payload: Vec<u8>) -> Result<(), ClientError> {
        self.client.publish(Arc::new(Message { payload, ..self.message.clone() }))
    }

    fn repeat(&mut self, payload: &[u8], times: u64, delay: Duration) -> Result<(), ClientError> {
        let mut due = Instant::now();
        for _ in 0..times {
            while Instant::now() < due || !self.can_send() {
                let until = if self.can_send() { Some(due) } else { None };
                self.wait(until)?;
            }
            self.send(payload.to_vec())?;
            due += delay;
        }
        while self.client.unacknowledged() > 0 {
            self.wait(None)?;
        }
        Ok(())
    }

    fn lines(&mut self) -> Result<Result<(), Failure>, ClientError> {
        if let Err(error) = self.client.read_from(next_line) {
            return Ok(Err(Failure::new(exit::UNEXPECTED, error)));
        }
        let (mut is_over, mut is_asked) = (false, false);
        while !is_over || self.client.unacknowledged() > 0 {
            if !is_over && !is_asked && self.can_send() {
                self.client.ask();
                is_asked = true;
            }
            let Some(input) = self.wait(None)? else { continue };
            is_asked = false;
            match input {
                Ok(Some(line)) => {
                    if let Err(error) = self.send(line) {
                        self.reconnect(error)?;
                    }
                }
                Ok(None) => is_over = true,
                Err(error) => {
                    let sentence = format!("cannot read standard input: {error}");
                    return Ok(Err(Failure::new(exit::UNEXPECTED, sentence)));
                }
            }
        }
        Ok(Ok(()))
    }

    /// With QoS 0 there is no window.
    fn can_send(&self) -> bool {
        self.message.qos == QoS::AtMostOnce || self.client.can_publish()
    }

    /// Waits until something happens; a line, if it is one.
    fn wait(
        &mut self,
        until: Option<Instant>,
    ) -> Result<Option<io::Result<Option<Vec<u8>>>>, ClientError> {
        match self.client.wait(until)? {
            Some(Happened::Input(input)) => return Ok(Some(input)),
            Some(Happened::Acknowledged { reason, .. }) if reason.is_error() => {
                self.refused += 1;
                eprintln!("the broker refused a message: {reason}");
            }
            Some(Happened::Lost(error)) => self.reconnect(error)?,
            // Messages of a resumed session are not for this command.
            Some(
                Happened::Acknowledged { .. } | Happened::Message(_) | Happened::Subscribed(_),
            )
            | None => {}
        }
        Ok(None)
    }

    fn reconnect(&mut self, mut error: ClientError) -> Result<(), ClientError> {
        let mut pauses = Pauses::new(self.is_quiet);
        while self.reconnects && error.is_passing() {
            let pause = pauses.next(&error);
            self.client.sleep(pause)?;
            match self.client.connect() {
                Ok(_) => return Ok(()),
                Err(again) => error = again,
            }
        }
        Err(error)
    }
}
