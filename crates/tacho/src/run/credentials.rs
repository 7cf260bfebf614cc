//! User names and passwords of the clients, from arguments, URLs and the environment.

use std::path::Path;

use clap::Args;
use tacho_scenario::{ClientIds, CredentialFile, Password, Scenario, Template};

use super::login_arguments::LoginArguments;
use super::named::Named;
use crate::exit::{self, Failure};

/// The environment variable with the user name of clients that have no other.
const USERNAME: &str = "TACHO_USERNAME";

/// The credentials of the clients.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CredentialArguments {
    /// User name of the clients, may be a template such as 'meter-{{i}}'; NAME=USER for a named
    /// target. Default: TACHO_USERNAME for clients without one in the scenario
    #[arg(long = "username", value_name = "[NAME=]USER",
          value_parser = |text: &str| Named::parse(text, Template::parse))]
    usernames: Vec<Named<Template>>,

    /// File with the password of the clients and nothing else; NAME=FILE for a named target.
    /// Default: TACHO_PASSWORD for clients without one in the scenario
    ///
    /// Results keep the path of the file, never the password. Processes that the run starts do not
    /// get TACHO_PASSWORD.
    #[arg(long = "password-file", value_name = "[NAME=]FILE",
          value_parser = |text: &str| Named::parse(text, read_password))]
    passwords: Vec<Named<Password>>,

    /// Client identifiers of all groups: a template in which {{group}} is the name of the group
    /// and {{client}} the number of the client in it, such as 'meter-{{group}}-{{client}}'.
    /// Default: the scenario's
    #[arg(long, value_name = "TEMPLATE", value_parser = ClientIds::parse)]
    client_id: Option<ClientIds>,

    /// CSV file with a row per client: user,password or user,password,client_id; NAME=FILE for a
    /// named target
    ///
    /// The rows are dealt out to the clients, group by group, each once. A first line with these
    /// names is no row. An empty cell leaves the value to the other arguments. Results keep the
    /// path of the file, never its content.
    #[arg(long = "credentials", value_name = "[NAME=]FILE",
          value_parser = |text: &str| Named::parse(text, read_credentials))]
    files: Vec<Named<CredentialFile>>,

    #[command(flatten)]
    login: LoginArguments,

    /// Allow mqtt://USER:PASSWORD@HOST in --broker: 'ps' shows it to all users of this machine
    #[arg(long)]
    insecure_url_password: bool,
}

fn read_password(path: &str) -> Result<Password, String> {
    Password::read(Path::new(path))
}

fn read_credentials(path: &str) -> Result<CredentialFile, String> {
    CredentialFile::read(Path::new(path))
}

/// What the value of --broker says about credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BrokerCredentials {
    username: Option<Template>,
    password: Option<Password>,
    /// The password is in the URL.
    shows_password: bool,
}

impl BrokerCredentials {
    /// Takes `,user=USER` and `,password-file=FILE` from the end of the value of --broker, and
    /// `USER:PASSWORD@` from its URL; returns the rest.
    pub(super) fn take(text: &str) -> Result<(String, Self), String> {
        let mut credentials = Self::default();
        let mut rest = text;
        while let Some((before, option)) = rest.rsplit_once(',') {
            if let Some(user) = option.strip_prefix("user=") {
                credentials.username = Some(Template::parse(user)?);
            } else if let Some(file) = option.strip_prefix("password-file=") {
                credentials.password = Some(read_password(file)?);
            } else {
                break;
            }
            rest = before;
        }
        if rest.starts_with('@') {
            // The name of a broker, not of a user.
            return Ok((rest.to_owned(), credentials));
        }
        let (scheme, authority) = match rest.split_once("://") {
            Some((scheme, authority)) => (Some(scheme), authority),
            None => (None, rest),
        };
        let end = authority.find('/').unwrap_or(authority.len());
        let Some((user, host)) = authority[..end].rsplit_once('@') else {
            return Ok((rest.to_owned(), credentials));
        };
        let (user, password) = match user.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (user, None),
        };
        if credentials.username.is_none() {
            credentials.username = Some(Template::parse(&decoded(user)?)?);
        }
        if let Some(password) = password {
            credentials.password = Some(Password::text(decoded(password)?));
            credentials.shows_password = true;
        }
        let path = &authority[end..];
        Ok((
            match scheme {
                Some(scheme) => format!("{scheme}://{host}{path}"),
                None => format!("{host}{path}"),
            },
            credentials,
        ))
    }
}

impl BrokerCredentials {
    /// With those of a broker that has a name where there are no others.
    pub(super) fn completed(
        mut self,
        username: Option<String>,
        password: Option<Password>,
    ) -> Result<Self, String> {
        if let (None, Some(username)) = (&self.username, username) {
            self.username = Some(Template::parse(&username)?);
        }
        self.password = self.password.or(password);
        Ok(self)
    }
}

/// Replaces `%40` and the like.
fn decoded(text: &str) -> Result<String, String> {
    let wrong = || "'%' in a user name or password of a URL needs two hex digits: %25".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err(wrong());
        };
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

impl CredentialArguments {
    /// All target names, each with its flag.
    pub(super) fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let users = self.usernames.iter().map(|named| ("--username", named.name.as_str()));
        let passwords = self.passwords.iter();
        let files = self.files.iter().map(|named| ("--credentials", named.name.as_str()));
        users.chain(passwords.map(|named| ("--password-file", named.name.as_str()))).chain(files)
    }

    /// Takes a password for all targets.
    pub(super) fn give_password(&mut self, password: Password) {
        self.passwords.push(Named::new(password));
    }

    /// Keeps what concerns the targets for which `is_mine` holds, and all of them.
    pub(super) fn retain(&mut self, is_mine: impl Fn(&str) -> bool) {
        let keep = |name: &str| name.is_empty() || is_mine(name);
        self.usernames.retain(|named| keep(&named.name));
        self.passwords.retain(|named| keep(&named.name));
        self.files.retain(|named| keep(&named.name));
    }

    /// Renames the target `from` to `to`.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        Named::rename(&mut self.usernames, from, to);
        Named::rename(&mut self.passwords, from, to);
        Named::rename(&mut self.files, from, to);
    }

    /// Refuses a password in a URL that is not expressly allowed.
    pub(super) fn check<'a>(
        &self,
        mut brokers: impl Iterator<Item = &'a BrokerCredentials>,
    ) -> Result<(), Failure> {
        if self.insecure_url_password || !brokers.any(|broker| broker.shows_password) {
            return Ok(());
        }
        let sentence = "a password in the URL of --broker is visible to all users of this machine \
                        ('ps'): use --password-file FILE, --broker URL,password-file=FILE or \
                        TACHO_PASSWORD, or allow it with --insecure-url-password";
        Err(Failure::new(exit::INVALID_CONFIG, sentence))
    }
}

/// Gives the clients of each broker of `scenario` their credentials: those of the broker, those of
/// all brokers, those of the scenario, those of the environment. Rows of a file win over them.
///
/// # Errors
/// A sentence, when a file has too few rows, or clients would share an identifier.
pub(super) fn apply<'a>(
    given: &CredentialArguments,
    of_broker: impl Fn(&str) -> Option<&'a BrokerCredentials>,
    scenario: &mut Scenario,
) -> Result<(), String> {
    let named: Vec<String> = scenario.targets.keys().cloned().collect();
    for name in std::iter::once(Scenario::DEFAULT_TARGET.to_owned()).chain(named) {
        let broker = of_broker(&name);
        let username = broker
            .and_then(|broker| broker.username.as_ref())
            .or_else(|| Named::of(&given.usernames, &name))
            .or_else(|| Named::of(&given.usernames, Scenario::DEFAULT_TARGET));
        let password = broker
            .and_then(|broker| broker.password.as_ref())
            .or_else(|| Named::of(&given.passwords, &name))
            .or_else(|| Named::of(&given.passwords, Scenario::DEFAULT_TARGET));
        scenario.set_credentials(&name, username, password);
    }
    if let Some(ids) = &given.client_id {
        scenario.set_client_ids(ids)?;
    }
    deal(&given.files, scenario)?;
    if given.client_id.is_some() || !given.files.is_empty() {
        scenario.check_client_ids()?;
    }
    let username = std::env::var(USERNAME).ok().and_then(|text| Template::parse(&text).ok());
    let password =
        std::env::var_os(Password::VARIABLE).map(|_| Password::in_environment(Password::VARIABLE));
    scenario.complete_credentials(username.as_ref(), password.as_ref());
    given.login.apply(scenario, !given.passwords.is_empty())?;
    scenario.check_tokens()?;
    scenario.check_logins()
}

/// Deals out the rows of each file: that of a named target to its clients, that without a name to
/// all others.
fn deal(files: &[Named<CredentialFile>], scenario: &mut Scenario) -> Result<(), String> {
    let is_named = |target: &str| target != Scenario::DEFAULT_TARGET;
    let own: Vec<&str> =
        files.iter().map(|named| named.name.as_str()).filter(|name| is_named(name)).collect();
    if let Some(file) = Named::of(files, Scenario::DEFAULT_TARGET) {
        scenario.deal_credentials(file, |target| !own.contains(&target))?;
    }
    for name in &own {
        if let Some(file) = Named::of(files, name) {
            scenario.deal_credentials(file, |target| target == *name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_told_from_the_broker() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("password");
        std::fs::write(&file, "hunter2\n").expect("is written");
        let file = file.display();
        for (text, rest, user, password, shown) in [
            ("mqtt://h:1", "mqtt://h:1", None, false, false),
            ("mqtt://u@h:1", "mqtt://h:1", Some("u"), false, false),
            ("wss://u:p%40%3a@h:1/a@b", "wss://h:1/a@b", Some("u"), true, true),
            ("builtin,user=u", "builtin", Some("u"), false, false),
            ("@lab,user=u", "@lab", Some("u"), false, false),
            (&format!("h,user=m-{{{{i}}}},password-file={file}"), "h", Some("m"), true, false),
        ] {
            let (left, credentials) = BrokerCredentials::take(text).expect(text);
            assert_eq!(left, rest);
            assert_eq!(credentials.username.is_some(), user.is_some(), "{text}");
            assert_eq!(credentials.password.is_some(), password, "{text}");
            assert_eq!(credentials.shows_password, shown, "{text}");
        }
        assert_eq!(decoded("p%40%3a").as_deref(), Ok("p@:"));
        assert!(BrokerCredentials::take("mqtt://u:%4@h").is_err());
        assert!(BrokerCredentials::take("h,password-file=/no/such/file").is_err());
    }
}
