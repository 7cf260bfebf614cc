//! `tacho acl explain`: what the access rules say, and why.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use tacho_access::{
    Access, AccessList, Acl, Cause, CertificateName, ClientRules, Coverage, Decision, Exceeded,
    Origin, PublishKind, RuleSet, Steps, SubscriptionKind, Users, Who, certificate_of_file,
    read_text,
};
use tacho_broker::{RawConfig, SubscribeCheck, parse_address};
use tacho_topic::Filter;

use crate::exit::{self, Failure};

/// Lines of a rule that are shown.
const RULE_LINES_MAX: usize = 12;

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
    /// Client identifier.
    #[arg(short = 'i', long, default_value = "client")]
    client_id: String,
    /// Address that the client connects from, for rules that ask for it.
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// Address of the listener that it connects to, for rules that ask for it.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    listener: Option<SocketAddr>,
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

/// A file with access rules.
enum ListFile {
    Mosquitto(PathBuf),
    Rules(PathBuf),
}

impl ListFile {
    fn of(acl_file: Option<&PathBuf>, rules_file: Option<&PathBuf>) -> Option<Self> {
        let own = rules_file.cloned().map(Self::Rules);
        own.or_else(|| acl_file.cloned().map(Self::Mosquitto))
    }

    fn path(&self) -> &Path {
        let (Self::Mosquitto(path) | Self::Rules(path)) = self;
        path
    }
}

/// What the configuration says.
#[derive(Default)]
struct AccessFiles {
    list: Option<ListFile>,
    /// Absent without a configuration.
    listeners: Option<Vec<SocketAddr>>,
    password_files: Vec<PathBuf>,
    subscribe: SubscribeCheck,
    /// With the listener of each.
    certificates: Vec<(String, CertificateName)>,
}

impl AccessFiles {
    fn read(arguments: &ExplainArguments) -> Result<Self, Failure> {
        let named = ListFile::of(arguments.acl_file.as_ref(), arguments.rules_file.as_ref());
        let Some(path) = &arguments.config else {
            return Ok(Self { list: named, ..Self::default() });
        };
        let config = RawConfig::read(path).and_then(RawConfig::resolve).map_err(invalid)?;
        let access = &config.access;
        let configured = ListFile::of(access.acl_file.as_ref(), access.rules_file.as_ref());
        let listeners = config.listeners.iter().map(|listener| listener.address).collect();
        let by_certificate = config
            .listeners
            .iter()
            .filter_map(|listener| Some((listener.to_string(), listener.certificates?.user)));
        let certificates = by_certificate.collect();
        let mut password_files: Vec<PathBuf> =
            config.listeners.into_iter().filter_map(|listener| listener.password_file).collect();
        password_files.sort_unstable();
        password_files.dedup();
        Ok(Self {
            list: named.or(configured),
            listeners: Some(listeners),
            password_files,
            subscribe: access.subscribe,
            certificates,
        })
    }

    /// The user that a certificate names; `None` if it names none. Says which at each listener.
    fn user_of(&self, path: &Path) -> Result<Option<String>, Failure> {
        let shown = path.display();
        let bytes =
            fs::read(path).map_err(|error| invalid(format!("cannot read {shown}: {error}")))?;
        let certificate = certificate_of_file(&bytes);
        let certificate =
            certificate.ok_or_else(|| invalid(format!("{shown} is no certificate")))?;
        if self.certificates.is_empty() {
            return Err(invalid("no listener of the configuration has `certificate_user`"));
        }
        let mut users = BTreeSet::new();
        for (listener, name) in &self.certificates {
            match name.of(&certificate) {
                Ok(user) => {
                    println!("user {} by {shown} at {listener}", user.escape_debug());
                    users.insert(user);
                }
                Err(error) => println!("no user by {shown} at {listener}: {error}"),
            }
        }
        match users.len() {
            0 | 1 => Ok(users.pop_first()),
            _ => Err(invalid(format!(
                "{shown} names different users at the listeners: choose one with --user"
            ))),
        }
    }
}

/// An answer, and why.
struct Answer {
    may: bool,
    why: String,
}

impl Answer {
    fn new(may: bool, why: impl Into<String>) -> Self {
        Self { may, why: why.into() }
    }
}

/// Rules, and the text that they are from.
struct Explained {
    shown: String,
    text: String,
    list: AccessList,
    subscribe: SubscribeCheck,
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
    if let Some(user) = &arguments.user {
        for path in &files.password_files {
            let users = Users::parse(&path.display().to_string(), &text_of(path)?);
            let is_there = users.map_err(invalid)?.get(user).is_some();
            let verb = if is_there { "is" } else { "is not" };
            println!("user {} {verb} in {}", user.escape_debug(), path.display());
        }
    }
    let Answer { may, why } = match &files.list {
        None => Answer::new(true, "no access rules: every client may do everything"),
        Some(list) => Explained::read(list, &files)?.answer(&arguments)?,
    };
    println!("{}: {why}", if may { "allowed" } else { "denied" });
    Ok(if may { exit::OK } else { exit::THRESHOLD })
}

impl Explained {
    fn read(file: &ListFile, files: &AccessFiles) -> Result<Self, Failure> {
        let shown = file.path().display().to_string();
        let text = text_of(file.path())?;
        let list = match file {
            ListFile::Mosquitto(_) => Acl::parse(&shown, &text).map(AccessList::Mosquitto),
            ListFile::Rules(_) => {
                let listeners = files.listeners.as_deref();
                RuleSet::parse(&shown, &text, listeners).map(AccessList::Rules)
            }
        };
        let list = list.map_err(invalid)?;
        Ok(Self { shown, text, list, subscribe: files.subscribe })
    }

    fn answer(&self, arguments: &ExplainArguments) -> Result<Answer, Failure> {
        let origin = Origin { address: arguments.address, listener: arguments.listener };
        let user = arguments.user.as_deref();
        let who = Who { user, client_id: &arguments.client_id, origin };
        if let AccessList::Rules(rules) = &self.list {
            let roles: Vec<&str> = rules.roles(user).collect();
            if !roles.is_empty() {
                println!("roles: {}", roles.join(", ").escape_debug());
            }
        }
        let topic = arguments.topic.as_deref().unwrap_or_default();
        let access = match arguments.action {
            Action::Connect if !self.list.has_connect() => {
                let why = format!("{} has no rule about connecting", self.shown);
                return Ok(Answer::new(true, why));
            }
            Action::Connect => return Ok(self.explained(self.list.connecting(&who))),
            Action::Publish => Access::Publish(PublishKind::new(arguments.qos, arguments.retain)),
            Action::Receive => Access::Receive,
            Action::Subscribe => return self.explain_filter(&who, topic, arguments.qos),
        };
        if !tacho_codec::is_valid_topic_name(topic) {
            return Err(invalid(format!("'{topic}' is not a topic name")));
        }
        let first = topic.split('/').next();
        if arguments.action == Action::Publish && matches!(first, Some("$SYS" | "$share")) {
            let why = format!("topics of {} belong to the broker", first.unwrap_or_default());
            return Ok(Answer::new(false, why));
        }
        let exceeded = self.list.limits(user).exceeded(topic, arguments.qos, arguments.retain);
        if let (Action::Publish, Some(exceeded)) = (arguments.action, exceeded) {
            return Ok(Answer::new(false, exceeded.sentence()));
        }
        Ok(self.explained(self.list.decide(&who, access, topic)))
    }

    /// A decision in words.
    fn explained(&self, decision: Decision) -> Answer {
        let shown = &self.shown;
        let why = match decision.cause {
            Cause::Line(line) => {
                let words = self.text.lines().nth(line as usize - 1).unwrap_or_default();
                format!("{shown}:{line}: {}", words.trim_end().escape_debug())
            }
            Cause::Rule(line) => format!("{shown}:{line}: {}", rule_text(&self.text, line)),
            Cause::NoEntry | Cause::Token => format!("no entry of {shown} allows it"),
            Cause::NoRule => format!("no rule of {shown} allows it"),
            Cause::SpecialCharacters => format!(
                "no own entry of {shown} allows it, and user name or client identifier contain +, \
                 #, / or a control character: such a client gets nothing from patterns"
            ),
            Cause::SpecialName => format!(
                "no rule of {shown} allows it, and user name or client identifier contain +, #, / \
                 or a control character: such a client gets nothing from topics with its name"
            ),
        };
        Answer::new(decision.is_allowed, why)
    }

    fn explain_filter(&self, who: &Who<'_>, text: &str, qos: u8) -> Result<Answer, Failure> {
        let filter = Filter::parse(text).map_err(|error| invalid(format!("'{text}': {error}")))?;
        let (topics, limits) = (filter.topic_filter(), self.list.limits(who.user));
        if limits.has_too_many_levels(topics.as_str()) {
            return Ok(Answer::new(false, Exceeded::TopicLevels.sentence()));
        }
        // Granted, if not as high.
        let qos = limits.qos_max.map_or(qos, |max| qos.min(max));
        let kind = SubscriptionKind::of(&filter, qos);
        let rules = ClientRules { token: None, list: Some(&self.list) };
        let coverage = rules.covers(who, topics, &kind, &mut Steps::default());
        let is_filtered = self.subscribe == SubscribeCheck::Filtered && !filter.is_shared();
        let (may, why) = match coverage {
            Coverage::Whole => (true, "every topic of the filter may be received"),
            _ if is_filtered => (true, "messages that may not be received are left out"),
            Coverage::Partial => (false, "not every topic of the filter may be received"),
            Coverage::Undecided => (false, "filter and access rules are too complex to decide"),
        };
        let mut answer = Answer::new(may, why);
        if is_filtered && coverage != Coverage::Whole {
            return Ok(answer);
        }
        // A filter without wildcards is one topic, which one rule decides about.
        if topics.is_exact() && matches!(self.list, AccessList::Rules(_)) {
            answer.why = self.explained(self.about_topic(who, &kind, topics.as_str(), may)).why;
        } else if let Some(topic) = rules.denied_topic(who, topics, &kind, &mut Steps::default()) {
            let why = self.explained(self.about_topic(who, &kind, &topic, false)).why;
            answer.why = format!("{}: not {}: {why}", answer.why, topic.escape_debug());
        }
        Ok(answer)
    }

    /// What decides about a subscription to one topic.
    fn about_topic(
        &self,
        who: &Who<'_>,
        kind: &SubscriptionKind<'_>,
        topic: &str,
        may: bool,
    ) -> Decision {
        match &self.list {
            AccessList::Rules(rules) => match rules.decide_subscription(who, kind, topic) {
                subscribing if subscribing.is_allowed && !may => {
                    rules.decide(who, Access::Receive, topic)
                }
                subscribing => subscribing,
            },
            list => list.decide(who, Access::Receive, topic),
        }
    }
}

/// A rule as it stands in the file, in one line.
fn rule_text(text: &str, line: u32) -> String {
    let mut lines = text.lines().skip(line as usize - 1);
    let first = lines.next().unwrap_or_default().trim();
    if !first.starts_with("[[") {
        return without_controls(first);
    }
    let goes_on = |line: &&str| !line.starts_with('[') && !line.is_empty();
    let lines = lines.map(str::trim).take_while(goes_on).filter(|line| !line.starts_with('#'));
    let keys: Vec<&str> = lines.take(RULE_LINES_MAX).collect();
    without_controls(&keys.join("; "))
}

/// Quotes stay as they are in the file.
fn without_controls(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).collect()
}

fn text_of(path: &Path) -> Result<String, Failure> {
    read_text(path).map_err(invalid)
}

fn invalid(error: impl std::fmt::Display) -> Failure {
    Failure::new(exit::INVALID_CONFIG, error)
}
