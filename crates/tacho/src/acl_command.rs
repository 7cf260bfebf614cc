//! `tacho acl explain`: what the access rules say, and why.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use tacho_access::{Access, Acl, Cause, Coverage, Steps, Users, Who, read_text};
use tacho_broker::{RawConfig, SubscribeCheck};
use tacho_topic::Filter;

use crate::exit::{self, Failure};

/// Explain access rules.
#[derive(Args, Debug)]
pub(crate) struct AclArguments {
    #[command(subcommand)]
    command: AclCommand,
}

#[derive(Subcommand, Debug)]
enum AclCommand {
    /// Say whether a client may do something, and by which line.
    ///
    /// Exit code 0: it may. 99: it may not.
    Explain(ExplainArguments),
}

#[derive(Args, Debug)]
struct ExplainArguments {
    /// Configuration file of the broker, which names the files of access control.
    #[arg(short, long, value_name = "FILE", required_unless_present = "acl_file")]
    config: Option<PathBuf>,
    /// Access list, instead of that of the configuration.
    #[arg(long, value_name = "FILE")]
    acl_file: Option<PathBuf>,
    /// User that the client has logged in as; without it the client is anonymous.
    #[arg(short, long)]
    user: Option<String>,
    /// Client identifier.
    #[arg(short = 'i', long, default_value = "client")]
    client_id: String,
    /// What the client wants to do.
    action: Action,
    /// Topic, or filter of a subscription.
    topic: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Action {
    /// Publish to the topic.
    Publish,
    /// Subscribe to the filter.
    Subscribe,
    /// Receive messages of the topic.
    Receive,
}

/// What the configuration says.
struct AccessFiles {
    acl_file: Option<PathBuf>,
    password_files: Vec<PathBuf>,
    subscribe: SubscribeCheck,
}

impl AccessFiles {
    fn read(arguments: &ExplainArguments) -> Result<Self, Failure> {
        let Some(path) = &arguments.config else {
            return Ok(Self {
                acl_file: arguments.acl_file.clone(),
                password_files: Vec::new(),
                subscribe: SubscribeCheck::Whole,
            });
        };
        let config = RawConfig::read(path).and_then(RawConfig::resolve).map_err(invalid)?;
        let listeners = config.listeners.into_iter();
        let mut password_files: Vec<PathBuf> =
            listeners.filter_map(|listener| listener.password_file).collect();
        password_files.sort_unstable();
        password_files.dedup();
        Ok(Self {
            acl_file: arguments.acl_file.clone().or(config.access.acl_file),
            password_files,
            subscribe: config.access.subscribe,
        })
    }
}

/// An answer, and why.
struct Answer {
    may: bool,
    why: String,
}

/// Runs the command; its exit code.
pub(crate) fn acl(arguments: &AclArguments) -> Result<u8, Failure> {
    let AclCommand::Explain(arguments) = &arguments.command;
    let files = AccessFiles::read(arguments)?;
    if let Some(user) = &arguments.user {
        for path in &files.password_files {
            let users = Users::parse(&path.display().to_string(), &text_of(path)?);
            let is_there = users.map_err(invalid)?.get(user).is_some();
            let verb = if is_there { "is" } else { "is not" };
            println!("user {} {verb} in {}", user.escape_debug(), path.display());
        }
    }
    let Answer { may, why } = match &files.acl_file {
        None => {
            Answer { may: true, why: "no access list: every client may do everything".to_owned() }
        }
        Some(path) => explain(arguments, path, files.subscribe)?,
    };
    println!("{}: {why}", if may { "allowed" } else { "denied" });
    Ok(if may { exit::OK } else { exit::THRESHOLD })
}

fn explain(
    arguments: &ExplainArguments,
    path: &Path,
    subscribe: SubscribeCheck,
) -> Result<Answer, Failure> {
    let shown = path.display().to_string();
    let text = text_of(path)?;
    let acl = Acl::parse(&shown, &text).map_err(invalid)?;
    let who = Who { user: arguments.user.as_deref(), client_id: &arguments.client_id };
    let access = match arguments.action {
        Action::Publish => Access::Publish,
        Action::Receive => Access::Receive,
        Action::Subscribe => return explain_filter(&acl, &who, &arguments.topic, subscribe),
    };
    let topic = &arguments.topic;
    if !tacho_codec::is_valid_topic_name(topic) {
        return Err(invalid(format!("'{topic}' is not a topic name")));
    }
    let first = topic.split('/').next();
    if matches!(access, Access::Publish) && matches!(first, Some("$SYS" | "$share")) {
        let why = format!("topics of {} belong to the broker", first.unwrap_or_default());
        return Ok(Answer { may: false, why });
    }
    let decision = acl.decide(&who, access, topic);
    let why = match decision.cause {
        Cause::Line(line) => {
            let words = text.lines().nth(line as usize - 1).unwrap_or_default();
            format!("{shown}:{line}: {}", words.trim_end().escape_debug())
        }
        Cause::NoEntry | Cause::Token => format!("no entry of {shown} allows it"),
        Cause::SpecialCharacters => format!(
            "no own entry of {shown} allows it, and user name or client identifier contain +, #, / \
             or a control character: such a client gets nothing from patterns"
        ),
    };
    Ok(Answer { may: decision.is_allowed, why })
}

fn explain_filter(
    acl: &Acl,
    who: &Who<'_>,
    text: &str,
    subscribe: SubscribeCheck,
) -> Result<Answer, Failure> {
    let filter = Filter::parse(text).map_err(|error| invalid(format!("'{text}': {error}")))?;
    let coverage = acl.covers(who, filter.topic_filter(), &mut Steps::default());
    let is_filtered = subscribe == SubscribeCheck::Filtered && !filter.is_shared();
    let (may, why) = match coverage {
        Coverage::Whole => (true, "every topic of the filter may be received"),
        _ if is_filtered => (true, "messages that may not be received are left out"),
        Coverage::Partial => (false, "not every topic of the filter may be received"),
        Coverage::Undecided => (false, "filter and access list are too complex to decide"),
    };
    Ok(Answer { may, why: why.to_owned() })
}

fn text_of(path: &Path) -> Result<String, Failure> {
    read_text(path).map_err(invalid)
}

fn invalid(error: impl std::fmt::Display) -> Failure {
    Failure::new(exit::INVALID_CONFIG, error)
}
