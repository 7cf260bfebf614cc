//! Why a target cannot be used.

use std::path::PathBuf;

/// A target that makes no sense, or whose secrets cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// It does not say what it is.
    #[error(
        "'{0}' has no '=': write KIND=ADDRESS, such as influxdb=http://localhost:8086/tacho or \
         json=points.jsonl"
    )]
    NoKind(String),
    /// A kind that does not exist.
    #[error("there is no output '{0}': the kinds are influxdb, prometheus, otlp, json and csv")]
    UnknownKind(String),
    /// The file has no name.
    #[error("{0}= needs the name of a file, such as {0}=points.{0}")]
    NoFile(&'static str),
    /// The address is none.
    #[error("{kind}={address}: {why}; write {example}")]
    Address {
        /// The kind of output.
        kind: &'static str,
        /// The address.
        address: String,
        /// What is wrong with it.
        why: String,
        /// One that is right.
        example: &'static str,
    },
    /// The address contains a name and a password.
    #[error(
        "{0}: a password in the address is visible to all programs; write user=NAME and \
         password-file=FILE behind a '?'"
    )]
    UserInAddress(&'static str),
    /// An option that would show a secret.
    #[error(
        "{kind}: the option '{option}' would show a secret to all programs: write it to a file and \
         name the file (token-file=, password-file=, headers-file=), or set TACHO_OUT_{variable}"
    )]
    SecretInOption {
        /// The kind of output.
        kind: &'static str,
        /// The option.
        option: String,
        /// The environment variable to use instead, without its beginning.
        variable: String,
    },
    /// An option that this kind does not have.
    #[error("{kind}: there is no option '{option}'; the options are {known}")]
    UnknownOption {
        /// The kind of output.
        kind: &'static str,
        /// The option.
        option: String,
        /// The options of the kind.
        known: String,
    },
    /// An option that is there twice.
    #[error("{kind}: the option '{option}' is there twice")]
    Twice {
        /// The kind of output.
        kind: &'static str,
        /// The option.
        option: String,
    },
    /// An option with a value that it does not take.
    #[error("{kind}: {option}={value} is not possible: {expected}")]
    Value {
        /// The kind of output.
        kind: &'static str,
        /// The option.
        option: String,
        /// Its value.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
    /// Something that the target needs is not stated.
    #[error("{kind}: {what} is missing: {remedy}")]
    Missing {
        /// The kind of output.
        kind: &'static str,
        /// What.
        what: &'static str,
        /// How to state it.
        remedy: String,
    },
    /// A file with a secret or with certificates cannot be used.
    #[error("{kind}: cannot use {}: {why}", path.display())]
    File {
        /// The kind of output.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file of targets cannot be used.
    #[error("cannot read the outputs in {}: {why}", path.display())]
    List {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}
