//! What the files of access control say: the rules, the password files, and which backend decides
//! the logins of each listener.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tacho_access::{CertificateName, certificate_of_file};
use tacho_broker::{Config, HttpSettings, Listener, RawConfig, SubscribeCheck};

use super::{ExplainArguments, invalid};
use crate::exit::Failure;

/// A file with access rules.
pub(super) enum ListFile {
    Mosquitto(PathBuf),
    Rules(PathBuf),
}

impl ListFile {
    fn of(acl_file: Option<&PathBuf>, rules_file: Option<&PathBuf>) -> Option<Self> {
        let own = rules_file.cloned().map(Self::Rules);
        own.or_else(|| acl_file.cloned().map(Self::Mosquitto))
    }

    pub(super) fn path(&self) -> &Path {
        let (Self::Mosquitto(path) | Self::Rules(path)) = self;
        path
    }
}

/// What the configuration says.
#[derive(Default)]
pub(super) struct AccessFiles {
    pub(super) list: Option<ListFile>,
    pub(super) subscribe: SubscribeCheck,
    /// Absent without one.
    config: Option<Config>,
}

/// Where a client may log in.
pub(super) struct LoginPlace<'a> {
    pub(super) listener: &'a Listener,
    pub(super) backend: Option<&'a HttpSettings>,
}

impl AccessFiles {
    pub(super) fn read(arguments: &ExplainArguments) -> Result<Self, Failure> {
        let named = ListFile::of(arguments.acl_file.as_ref(), arguments.rules_file.as_ref());
        let Some(path) = &arguments.config else {
            return Ok(Self { list: named, ..Self::default() });
        };
        let config = RawConfig::read(path).and_then(RawConfig::resolve).map_err(invalid)?;
        let access = &config.access;
        let configured = ListFile::of(access.acl_file.as_ref(), access.rules_file.as_ref());
        Ok(Self { list: named.or(configured), subscribe: access.subscribe, config: Some(config) })
    }

    /// The addresses of the listeners; `None` without a configuration.
    pub(super) fn listeners(&self) -> Option<Vec<SocketAddr>> {
        let listeners = self.config.as_ref()?.listeners.iter();
        Some(listeners.map(|listener| listener.address).collect())
    }

    /// The listeners where a client may log in: all, or the one with this address.
    pub(super) fn login_places(&self, at: Option<SocketAddr>) -> Vec<LoginPlace<'_>> {
        let Some(config) = &self.config else { return Vec::new() };
        let listeners = config.listeners.iter();
        let chosen = listeners.filter(|listener| at.is_none_or(|at| listener.address == at));
        let place = |listener| LoginPlace {
            listener,
            backend: config.access.http.of(&listener.login_backend),
        };
        chosen.map(place).collect()
    }

    /// The password files of all listeners, each once.
    pub(super) fn password_files(&self) -> BTreeSet<&Path> {
        let listeners = self.config.iter().flat_map(|config| &config.listeners);
        listeners.filter_map(|listener| listener.password_file.as_deref()).collect()
    }

    /// Which part of a certificate names the user, with the listener where it does.
    fn certificates(&self) -> Vec<(String, CertificateName)> {
        let listeners = self.config.iter().flat_map(|config| &config.listeners);
        let named = |listener: &Listener| Some((listener.to_string(), listener.certificates?.user));
        listeners.filter_map(named).collect()
    }

    /// The user that a certificate names; `None` if it names none. Says which at each listener.
    pub(super) fn user_of(&self, path: &Path) -> Result<Option<String>, Failure> {
        let shown = path.display();
        let bytes =
            fs::read(path).map_err(|error| invalid(format!("cannot read {shown}: {error}")))?;
        let certificate = certificate_of_file(&bytes);
        let certificate =
            certificate.ok_or_else(|| invalid(format!("{shown} is no certificate")))?;
        let certificates = self.certificates();
        if certificates.is_empty() {
            return Err(invalid("no listener of the configuration has `certificate_user`"));
        }
        let mut users = BTreeSet::new();
        for (listener, name) in &certificates {
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
