//! `tacho sub`: shows messages.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use clap::{ArgAction, Args};
use tacho_client::{Client, ClientError, Happened, Received, Subscription};
use tacho_codec::{QoS, RetainHandling, SubscribeOptions};
use tacho_record::Timestamp;
use tacho_topic::Filter;

use super::arguments::{ConnectionArguments, qos};
use super::format::Format;
use super::properties::PropertyArguments;
use super::{Pauses, failure, invalid};
use crate::exit::{self, Failure};

/// Subscribe to topics and show the messages.
///
/// Ends with Ctrl-C, after --count messages, or after --timeout seconds. A lost connection is made
/// again. The flags are those of mosquitto_sub.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct SubscribeArguments {
    /// Topic filter, also $share/GROUP/FILTER; may be given several times
    #[arg(short, long = "topic", value_name = "FILTER", required = true)]
    topics: Vec<String>,

    /// Leave out messages whose topic matches this filter; may be given several times
    #[arg(short = 'T', long = "filter-out", value_name = "FILTER")]
    left_out: Vec<String>,

    /// Highest QoS of deliveries: 0, 1 or 2
    #[arg(short, long, value_name = "QOS", default_value = "0", value_parser = qos)]
    qos: QoS,

    /// End after this many messages
    #[arg(short = 'C', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// End after this many seconds, with exit code 27 if messages of --count are missing
    #[arg(short = 'W', long, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,

    /// End once the broker has granted the subscriptions
    #[arg(short = 'E', long)]
    exit_after_subscribe: bool,

    /// Show the topic before the payload
    #[arg(short, long, conflicts_with_all = ["format", "json"])]
    verbose: bool,

    /// How to show a message: %t topic, %p payload, %x in hex, %q QoS, %r retain flag, %l length,
    /// %m packet identifier, %j as JSON, %J with a JSON payload parsed, %I and %U time, %C content
    /// type, %R response topic, %D correlation data, %E expiry, %P user properties, %S subscription
    /// identifiers; \n and \t
    #[arg(short = 'F', long, value_name = "FORMAT", value_parser = Format::parse,
          conflicts_with = "json")]
    format: Option<Format>,

    /// Show messages as lines of JSON: short for -F %J
    #[arg(long)]
    json: bool,

    /// No end of line after a message
    #[arg(short = 'N', long)]
    no_newline: bool,

    /// No retained messages
    #[arg(short = 'R', long, conflicts_with = "retained_only")]
    no_retained: bool,

    /// Retained messages only; ends with the first other one
    #[arg(long)]
    retained_only: bool,

    /// Show the publisher's retain flag; MQTT 5.0
    #[arg(long)]
    retain_as_published: bool,

    /// No messages that this client has published; MQTT 5.0
    #[arg(long)]
    no_local: bool,

    /// End when the connection is lost, instead of connecting again
    #[arg(long)]
    no_reconnect: bool,

    #[command(flatten)]
    connection: ConnectionArguments,

    #[command(flatten)]
    properties: PropertyArguments,

    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Runs the command; its exit code.
pub(crate) fn subscribe(arguments: &SubscribeArguments) -> Result<u8, Failure> {
    let settings = arguments.connection.settings(&arguments.properties)?;
    let subscription_id = arguments.properties.subscription_id()?;
    if !arguments.connection.is_v5() && (arguments.retain_as_published || arguments.no_local) {
        return Err(invalid("--retain-as-published and --no-local need MQTT 5.0 (-V 5)"));
    }
    let parse = |text: &String| {
        Filter::parse(text).map_err(|error| invalid(&format!("'{}': {error}", text.escape_debug())))
    };
    for filter in &arguments.topics {
        parse(filter)?;
    }
    let left_out = arguments.left_out.iter().map(parse).collect::<Result<_, _>>()?;
    let is_v5 = arguments.connection.is_v5();
    let options = |filter: &str| SubscribeOptions {
        no_local: arguments.no_local && !filter.starts_with("$share/"),
        retain_as_published: arguments.retain_as_published,
        retain_handling: match is_v5 && arguments.no_retained {
            true => RetainHandling::Never,
            false => RetainHandling::Always,
        },
        ..SubscribeOptions::new(arguments.qos)
    };
    let subscriptions = arguments
        .topics
        .iter()
        .map(|filter| Subscription { filter: filter.clone(), options: options(filter) });
    let mut subscriber = Subscriber {
        client: Client::new(settings),
        subscriptions: subscriptions.collect(),
        subscription_id,
        left_out,
        format: match (&arguments.format, arguments.json) {
            (Some(format), _) => format.clone(),
            (None, true) => Format::parse("%J").map_err(|error| invalid(&error))?,
            (None, false) => Format::plain(arguments.verbose),
        },
        arguments,
        shown: 0,
    };
    let code = subscriber.run()?;
    subscriber.client.disconnect();
    Ok(code)
}

struct Subscriber<'a> {
    arguments: &'a SubscribeArguments,
    client: Client,
    subscriptions: Vec<Subscription>,
    subscription_id: Option<u32>,
    left_out: Vec<Filter>,
    format: Format,
    /// Messages that were shown.
    shown: u64,
}

impl Subscriber<'_> {
    fn run(&mut self) -> Result<u8, Failure> {
        let timeout = self.arguments.timeout.map(Duration::from_secs);
        let until = timeout.map(|timeout| Instant::now() + timeout);
        self.client
            .connect()
            .and_then(|_| self.client.subscribe(&self.subscriptions, self.subscription_id))
            .map_err(|error| failure(&error))?;
        loop {
            match self.client.wait(until) {
                Ok(None) => return Ok(self.timed_out()),
                Ok(Some(Happened::Message(received))) => {
                    if self.show(&received)? {
                        return Ok(exit::OK);
                    }
                }
                Ok(Some(Happened::Subscribed(reasons))) => {
                    self.granted(&reasons)?;
                    if self.arguments.exit_after_subscribe {
                        return Ok(exit::OK);
                    }
                }
                Ok(Some(Happened::Lost(error))) => {
                    if !self.reconnect(error, until)? {
                        return Ok(self.timed_out());
                    }
                }
                // It publishes nothing and has no input.
                Ok(Some(Happened::Acknowledged { .. } | Happened::Input(_))) => {}
                Err(ClientError::Stopped) => return Ok(self.stopped()),
                Err(error) => return Err(failure(&error)),
            }
        }
    }

    /// The exit code at the end of the time: messages may be missing.
    fn timed_out(&self) -> u8 {
        match self.arguments.count {
            Some(count) if self.shown < count => exit::TIMED_OUT,
            _ => exit::OK,
        }
    }

    /// The exit code after Ctrl-C, which is how the command usually ends.
    fn stopped(&self) -> u8 {
        match self.arguments.count {
            Some(count) if self.shown < count => exit::ABORTED,
            _ => exit::OK,
        }
    }

    /// Shows a message; true if it was the last one.
    fn show(&mut self, received: &Received) -> Result<bool, Failure> {
        let message = &received.message;
        if self.arguments.retained_only && !message.retain {
            return Ok(true);
        }
        let is_left_out = self.arguments.no_retained && message.retain
            || self.left_out.iter().any(|filter| filter.topic_filter().matches(&message.topic));
        if is_left_out {
            return Ok(false);
        }
        let mut bytes = Vec::with_capacity(message.payload.len() + message.topic.len() + 2);
        self.format.write(received, Timestamp::now(), &mut bytes);
        if !self.arguments.no_newline {
            bytes.push(b'\n');
        }
        let mut out = io::stdout().lock();
        match out.write_all(&bytes).and_then(|()| out.flush()) {
            Ok(()) => {}
            // Nothing reads any more.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(true),
            Err(error) => return Err(Failure::new(exit::UNEXPECTED, error)),
        }
        self.shown += 1;
        Ok(self.arguments.count == Some(self.shown))
    }

    /// Tells what is refused; an error if nothing is granted.
    fn granted(&self, reasons: &[tacho_codec::ReasonCode]) -> Result<(), Failure> {
        let refused = self.subscriptions.iter().zip(reasons).filter(|(_, code)| code.is_error());
        let mut count = 0;
        for (subscription, reason) in refused {
            eprintln!("the broker refuses {}: {reason}", subscription.filter);
            count += 1;
        }
        match count == self.subscriptions.len() {
            true => Err(Failure::new(exit::UNEXPECTED, "no subscription is granted")),
            false => Ok(()),
        }
    }

    /// Connects again; false if the time is over before.
    fn reconnect(
        &mut self,
        mut error: ClientError,
        until: Option<Instant>,
    ) -> Result<bool, Failure> {
        let mut pauses = Pauses::new(self.arguments.connection.quiet);
        while !self.arguments.no_reconnect && error.is_passing() {
            let pause = pauses.next(&error);
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left <= pause) {
                return Ok(false);
            }
            match self.client.sleep(pause) {
                Ok(()) => {}
                Err(error) => return Err(failure(&error)),
            }
            let connected =
                self.client.connect().and_then(|accepted| match accepted.session_present {
                    true => Ok(()),
                    false => self.client.subscribe(&self.subscriptions, self.subscription_id),
                });
            match connected {
                Ok(()) => return Ok(true),
                Err(again) => error = again,
            }
        }
        Err(failure(&error))
    }
}
