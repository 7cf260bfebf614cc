//! `tacho acl explain`: what the access rules say, and why.

mod explained;
mod files;
mod login;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use tacho_access::{Explanation, read_text};
use tacho_broker::parse_address;

use crate::exit::{self, Failure};
use explained::Explained;
use files::AccessFiles;
use login::Login;

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

#[derive(Args, Clone, Debug)]
struct ExplainArguments {
    /// Configuration file of the broker, which names the files of access control.
    #[arg(short, long, value_name = "FILE")]
    #[arg(required_unless_present_any = ["acl_file", "rules_file"])]
    config: Option<PathBuf>,
    /// Access list, instead of the rules of the configuration.
    #[arg(long, value_name = "FILE", conflicts_with = "rules_file")]
    acl_file: Option<PathBuf>,
    /// Rules file, instead of the rules of the configuration.
    #[arg(long, value_name = "FILE")]
    rules_file: Option<PathBuf>,
    /// User that the client has logged in as; without it the client is anonymous.
    #[arg(short, long)]
    user: Option<String>,
    /// Certificate of the client (PEM or DER): its user is the one that it names at the listeners
    /// of the configuration with `certificate_user`.
    #[arg(long, value_name = "FILE", conflicts_with = "user", requires = "config")]
    certificate: Option<PathBuf>,
    /// Ask the backend of logins about the user, show its answer, and take the rules in it into
    /// account. The password is read from --password-file, the terminal or standard input.
    #[arg(long, requires_all = ["config", "user"])]
    ask: bool,
    /// File whose first line is the password of the user, for --ask.
    #[arg(long, value_name = "FILE", requires = "ask")]
    password_file: Option<PathBuf>,
    /// Client identifier.
    #[arg(short = 'i', long, default_value = "client")]
    client_id: String,
    /// Address that the client connects from, for rules that ask for it.
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// Address of the listener that it connects to, for rules that ask for it; the backend of its
    /// logins is the one that would be asked.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    listener: Option<SocketAddr>,
    /// Attribute of the client, for rules that ask for it; may be repeated. It takes the place of
    /// those that --ask brings.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = attribute)]
    attributes: Vec<(String, String)>,
    /// QoS of the message or the subscription.
    #[arg(short, long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    qos: u8,
    /// The message is to be retained.
    #[arg(short, long)]
    retain: bool,
    /// What the client wants to do.
    action: Action,
    /// Topic, or filter of a subscription.
    #[arg(required_if_eq_any = [
        ("action", "publish"), ("action", "subscribe"), ("action", "receive"),
    ])]
    topic: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Connect.
    Connect,
    /// Publish to the topic.
    Publish,
    /// Subscribe to the filter.
    Subscribe,
    /// Receive messages of the topic.
    Receive,
}

fn attribute(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or("it must be as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs the command; its exit code.
pub(crate) fn acl(arguments: &AclArguments) -> Result<u8, Failure> {
    let AclCommand::Explain(arguments) = &arguments.command;
    let mut arguments = arguments.clone();
    let files = AccessFiles::read(&arguments)?;
    if let Some(path) = &arguments.certificate {
        arguments.user = files.user_of(path)?;
        if arguments.user.is_none() {
            println!("denied: the certificate names no user, so the client is not let in");
            return Ok(exit::THRESHOLD);
        }
    }
    let brought = match login::explain(&files, &arguments)? {
        Login::Granted(brought) => brought,
        Login::Refused(why) => {
            println!("denied: {why}");
            return Ok(exit::THRESHOLD);
        }
    };
    let Explanation { is_allowed, why } =
        Explained::read(&files, brought, &arguments.attributes)?.answer(&arguments)?;
    println!("{}: {why}", if is_allowed { "allowed" } else { "denied" });
    Ok(if is_allowed { exit::OK } else { exit::THRESHOLD })
}

fn text_of(path: &Path) -> Result<String, Failure> {
    read_text(path).map_err(invalid)
}

fn invalid(error: impl std::fmt::Display) -> Failure {
    Failure::new(exit::INVALID_CONFIG, error)
}
