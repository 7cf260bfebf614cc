//! Permission to write: where the secrets are, and the headers that they make.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ureq::http::{HeaderName, HeaderValue};

use super::TargetError;
use super::options::OptionList;

/// More is not a secret but the wrong file.
const SECRET_BYTES_MAX: u64 = 64 << 10;

/// Where the secrets of a target are; never the secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    kind: &'static str,
    /// What comes before a token.
    scheme: &'static str,
    user: Option<String>,
    password_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
    headers_file: Option<PathBuf>,
}

/// Headers of each request. Their values are marked as sensitive and not shown by `Debug`.
pub(crate) type AccessHeaders = Vec<(HeaderName, HeaderValue)>;

impl Access {
    /// Takes the options about access; `scheme` stands before a token.
    pub(super) fn of(
        kind: &'static str,
        scheme: &'static str,
        options: &mut OptionList,
    ) -> Result<Self, TargetError> {
        let access = Self {
            kind,
            scheme,
            user: options.text("user")?,
            password_file: options.path("password-file")?,
            token_file: options.path("token-file")?,
            headers_file: options.path("headers-file")?,
        };
        if access.password_file.is_some() && access.user.is_none() {
            let remedy = "add user=NAME".to_owned();
            return Err(TargetError::Missing { kind, what: "the user of the password", remedy });
        }
        if access.user.is_some() && access.token_file.is_some() {
            let (option, value) = ("token-file".to_owned(), "...".to_owned());
            let expected = "a request has a token or a user, not both";
            return Err(TargetError::Value { kind, option, value, expected });
        }
        Ok(access)
    }

    /// Reads the secrets, from files and from the environment by `variable`.
    pub(crate) fn headers(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<AccessHeaders, TargetError> {
        let mut headers = Vec::new();
        let of_environment = |what: &str| {
            let name = format!("TACHO_OUT_{}_{what}", self.kind.to_ascii_uppercase());
            let value = variable(&name).map(|value| value.trim().to_owned());
            (value.filter(|value| !value.is_empty()), name)
        };
        let authorization = if let Some(path) = &self.token_file {
            Some(format!("{} {}", self.scheme, self.secret(path)?))
        } else if let Some(user) = &self.user {
            let (given, name) = of_environment("PASSWORD");
            let password = match &self.password_file {
                Some(path) => self.secret(path)?,
                None => given.ok_or_else(|| TargetError::Missing {
                    kind: self.kind,
                    what: "the password",
                    remedy: format!("add password-file=FILE or set {name}"),
                })?,
            };
            Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
        } else {
            of_environment("TOKEN").0.map(|token| format!("{} {token}", self.scheme))
        };
        if let Some(authorization) = authorization {
            let value = self.value(&authorization, self.token_file.as_deref())?;
            headers.push((ureq::http::header::AUTHORIZATION, value));
        }
        if let Some(path) = &self.headers_file {
            headers.extend(self.own_headers(path)?);
        }
        Ok(headers)
    }

    /// The lines `Name: value` of a file.
    fn own_headers(&self, path: &Path) -> Result<AccessHeaders, TargetError> {
        let text = self.secret(path)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines
            .enumerate()
            .map(|(number, line)| {
                // The line itself may be a secret.
                let wrong = || self.file(path, format!("line {} is not 'Name: value'", number + 1));
                let (name, value) = line.split_once(':').ok_or_else(wrong)?;
                let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong())?;
                Ok((name, self.value(value.trim(), Some(path))?))
            })
            .collect()
    }

    fn value(&self, text: &str, path: Option<&Path>) -> Result<HeaderValue, TargetError> {
        let mut value = HeaderValue::from_str(text).map_err(|_| {
            let why = "it contains characters that HTTP headers cannot have";
            self.file(path.unwrap_or_else(|| Path::new("the secret")), why)
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn secret(&self, path: &Path) -> Result<String, TargetError> {
        let about = fs::metadata(path).map_err(|error| self.file(path, error))?;
        if about.len() > SECRET_BYTES_MAX {
            return Err(self.file(path, "it is too large for a secret"));
        }
        let text = fs::read_to_string(path).map_err(|error| self.file(path, error))?;
        match text.trim() {
            "" => Err(self.file(path, "it is empty")),
            text => Ok(text.to_owned()),
        }
    }

    fn file(&self, path: &Path, why: impl ToString) -> TargetError {
        TargetError::File { kind: self.kind, path: path.to_owned(), why: why.to_string() }
    }
}
