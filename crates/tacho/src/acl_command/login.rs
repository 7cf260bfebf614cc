//! How the user logs in: by a password file, or by a backend, which `--ask` asks really.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use tacho_access::{BackendAnswer, RequestClient, TokenAcl, Users, Who};
use tacho_broker::{BackendOrder, BackendOutcome, HttpSettings, OnUnavailable, ask_backend};

use super::files::{AccessFiles, LoginPlace};
use super::{ExplainArguments, invalid, text_of};
use crate::exit::Failure;
use crate::password_input::{PASSWORD_BYTES_MAX, first_line, read_password};

/// How a login ends.
pub(super) enum Login {
    /// The client is in, perhaps with rules of its own.
    Granted(Option<TokenAcl>),
    /// It is not, and why.
    Refused(String),
}

/// Says which steps of the logins know the user, and asks the backend where that is wanted.
pub(super) fn explain(files: &AccessFiles, arguments: &ExplainArguments) -> Result<Login, Failure> {
    let Some(user) = &arguments.user else { return Ok(Login::Granted(None)) };
    let mut known_in = BTreeSet::new();
    for path in files.password_files() {
        let users = Users::parse(&path.display().to_string(), &text_of(path)?);
        let is_there = users.map_err(invalid)?.get(user).is_some();
        let verb = if is_there { "is" } else { "is not" };
        println!("user {} {verb} in {}", user.escape_debug(), path.display());
        if is_there {
            known_in.insert(path);
        }
    }
    let places = files.login_places(arguments.listener);
    let mut asked: Vec<(&LoginPlace<'_>, &HttpSettings)> = Vec::new();
    for place in &places {
        let Some(backend) = place.backend else { continue };
        let file = place.listener.password_file.as_deref();
        let file = file.filter(|path| known_in.contains(path));
        if tell(place, backend, user, file) {
            asked.push((place, backend));
        }
    }
    if !arguments.ask {
        return Ok(Login::Granted(None));
    }
    let Some((place, backend)) = asked.first() else {
        return Err(invalid(format!(
            "no listener would ask a backend about {}",
            user.escape_debug()
        )));
    };
    if asked.iter().any(|(_, other)| other != backend) {
        return Err(invalid("listeners have different backends: choose one with --listener"));
    }
    let file = place.listener.password_file.as_deref();
    let is_known = file.is_some_and(|path| known_in.contains(path));
    ask(backend, place, (arguments, user), is_known)
}

/// Says whether a listener asks its backend about a user, who may be in its password file.
fn tell(place: &LoginPlace<'_>, backend: &HttpSettings, user: &str, file: Option<&Path>) -> bool {
    let (listener, shown) = (place.listener, backend.shown());
    let user = user.escape_debug();
    match (file, backend.order) {
        (Some(file), BackendOrder::Last) => {
            let file = file.display();
            println!("{listener}: {file} decides about user {user}, not the backend {shown}");
            false
        }
        (Some(file), BackendOrder::First) => {
            println!(
                "{listener}: the backend {shown} would be asked about user {user}, and {} decides \
                 where it says ignore",
                file.display()
            );
            true
        }
        (None, _) => {
            println!("{listener}: the backend {shown} would be asked about user {user}");
            true
        }
    }
}

/// Asks a backend about the user; `is_known`: the password file of the listener has it.
fn ask(
    backend: &HttpSettings,
    place: &LoginPlace<'_>,
    (arguments, user): (&ExplainArguments, &str),
    is_known: bool,
) -> Result<Login, Failure> {
    let password = match backend.fields().map_err(invalid)?.has_password() {
        true => Some(password(arguments.password_file.as_deref())?),
        false => None,
    };
    if password.as_deref() == Some("") {
        return Ok(Login::Refused("no password: backends are not asked without one".to_owned()));
    }
    let client = RequestClient {
        user,
        client_id: &arguments.client_id,
        password: password.as_deref(),
        address: arguments.address,
        listener: Some(place.listener.address),
        certificate_name: None,
        certificate_subject: None,
    };
    let outcome = ask_backend(backend, &client).map_err(invalid)?;
    let shown = backend.shown();
    let (words, is_ignored) = match outcome {
        BackendOutcome::Answer(BackendAnswer::Allow { acl, expires_unix_s }) => {
            return Ok(allowed(
                &shown,
                acl,
                expires_unix_s,
                &Who::new(Some(user), client.client_id),
            ));
        }
        BackendOutcome::Answer(BackendAnswer::Deny) => ("refuses the login".to_owned(), false),
        BackendOutcome::Answer(BackendAnswer::Expired) => {
            ("says that the login has ended".to_owned(), false)
        }
        BackendOutcome::Answer(BackendAnswer::Ignore) => {
            ("does not know the client (ignore)".to_owned(), true)
        }
        BackendOutcome::Unusable(why) | BackendOutcome::Silence(why) => {
            let goes_on = backend.on_unavailable == OnUnavailable::Ignore;
            (format!("gives no answer that counts: {why}"), goes_on)
        }
    };
    let words = format!("the backend {shown} {words}");
    if !is_ignored {
        return Ok(Login::Refused(words));
    }
    println!("{words}");
    Ok(match is_known {
        true => Login::Granted(None),
        false => {
            Login::Refused("neither the backend nor a password file knows the user".to_owned())
        }
    })
}

/// Shows what the backend has brought.
fn allowed(shown: &str, acl: Option<TokenAcl>, ends_s: Option<u64>, who: &Who<'_>) -> Login {
    let until = ends_s.map_or_else(String::new, |ends_s| format!(", until {ends_s} s since 1970"));
    println!("the backend {shown} allows the login{until}");
    for line in acl.iter().flat_map(TokenAcl::lines) {
        println!("its rules: {}", line.escape_debug());
    }
    for (name, value) in acl.iter().flat_map(|acl| acl.attributes().iter()) {
        println!("its attributes: {} = {}", name.escape_debug(), value.escape_debug());
    }
    if acl.as_ref().is_some_and(|acl| !acl.suits(who)) {
        let why = "user name or client identifier contain +, #, / or a control character, and the \
                   backend's rules use them";
        return Login::Refused(why.to_owned());
    }
    Login::Granted(acl)
}

/// The password, from the first line of a file or as `tacho passwd` reads it.
fn password(file: Option<&Path>) -> Result<String, Failure> {
    let password = match file {
        Some(path) => {
            let unreadable = |error| invalid(format!("cannot read {}: {error}", path.display()));
            first_line(File::open(path).map_err(unreadable)?).map_err(unreadable)?
        }
        None => read_password(false).map_err(invalid)?,
    };
    match password.len() > PASSWORD_BYTES_MAX {
        true => Err(invalid(format!("a password has at most {PASSWORD_BYTES_MAX} bytes"))),
        false => Ok(password),
    }
}
