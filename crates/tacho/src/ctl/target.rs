//! Which broker is meant.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use clap::Args;
use tacho_broker::management_folder;
use tacho_output::tls_config;
use ureq::tls::TlsConfig;

use crate::exit::{self, Failure};

/// Where sockets of brokers are that the system has started.
const SYSTEM_FOLDER: &str = "/run/tacho";
/// A larger file is none with a key.
const KEY_BYTES_MAX: u64 = 4_096;

/// What names a broker by its socket, and by its URL.
type Flags = (&'static str, &'static str);
/// Those of `tacho ctl`.
const FLAGS: Flags = ("--socket", "--url and --key-file");

/// Which broker is meant.
#[derive(Args, Debug)]
#[command(next_help_heading = "Broker")]
pub(super) struct CtlTargetArguments {
    /// The broker's Unix socket. Default: the only one of this user's brokers
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Where the broker's management API answers by HTTP, such as http://127.0.0.1:9884
    #[arg(long, global = true, value_name = "URL", conflicts_with = "socket")]
    url: Option<String>,

    /// File with the key for --url
    #[arg(long, global = true, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// CA certificates to trust at an https --url (PEM). Default: those of the system
    #[arg(long, global = true, value_name = "FILE", requires = "url")]
    ca: Option<PathBuf>,
}

/// The broker that is meant.
#[derive(Debug)]
pub(crate) enum CtlTarget {
    /// By its socket.
    Socket(PathBuf),
    /// By HTTP, with a key.
    Http { url: String, key: String, tls: Option<TlsConfig> },
}

/// The broker that a text names: by its socket, by a URL with a key, or the only one where it is
/// empty.
pub(crate) fn target(place: &str, key_file: Option<&Path>) -> Result<CtlTarget, Failure> {
    let is_url = place.contains("://") || (place.contains(':') && !place.contains('/'));
    let socket = (!place.is_empty() && !is_url).then(|| PathBuf::from(place));
    let url = is_url.then(|| place.to_owned());
    if url.is_some() && key_file.is_none() {
        let sentence = "--manage URL needs --manage-key-file, a file with a key that `tacho ctl \
                        keys add` has made on the broker's host";
        return Err(Failure::new(exit::INVALID_CONFIG, sentence));
    }
    if place.is_empty() && key_file.is_none() {
        let flags = ("--manage", "--manage and --manage-key-file");
        return only(&folders(), flags).map(CtlTarget::Socket);
    }
    if url.is_none() && key_file.is_some() {
        let sentence = "--manage-key-file has no use without a URL in --manage";
        return Err(Failure::new(exit::INVALID_CONFIG, sentence));
    }
    CtlTargetArguments { socket, url, key_file: key_file.map(Path::to_owned), ca: None }.find()
}

impl CtlTargetArguments {
    pub(super) fn find(&self) -> Result<CtlTarget, Failure> {
        match (&self.socket, &self.url, &self.key_file) {
            (Some(path), _, _) => Ok(CtlTarget::Socket(path.clone())),
            (None, Some(url), Some(file)) => {
                let url = match url.contains("://") {
                    true => url.trim_end_matches('/').to_owned(),
                    false => format!("http://{}", url.trim_end_matches('/')),
                };
                let tls = self.tls(&url)?;
                Ok(CtlTarget::Http { url, key: read_key(file)?, tls })
            }
            (None, Some(_), None) => {
                let sentence = "--url needs --key-file, a file with a key that `tacho ctl keys \
                                add` has made on the broker's host";
                Err(Failure::new(exit::INVALID_CONFIG, sentence))
            }
            (None, None, Some(_)) => {
                Err(Failure::new(exit::INVALID_CONFIG, "--key-file has no use without --url"))
            }
            (None, None, None) => only(&folders(), FLAGS).map(CtlTarget::Socket),
        }
    }

    /// What an encrypted address needs.
    fn tls(&self, url: &str) -> Result<Option<TlsConfig>, Failure> {
        if !url.starts_with("https://") {
            return match &self.ca {
                None => Ok(None),
                Some(_) => {
                    let sentence = "--ca has no use without an https address in --url";
                    Err(Failure::new(exit::INVALID_CONFIG, sentence))
                }
            };
        }
        let tls = tls_config(self.ca.as_deref(), None);
        tls.map(Some).map_err(|why| Failure::new(exit::INVALID_CONFIG, format!("--ca: {why}")))
    }
}

/// Where sockets of brokers are.
fn folders() -> Vec<PathBuf> {
    let mut folders = vec![management_folder()];
    if folders[0] != Path::new(SYSTEM_FOLDER) {
        folders.push(SYSTEM_FOLDER.into());
    }
    folders
}

/// The key in a file, which has nothing else.
fn read_key(path: &Path) -> Result<String, Failure> {
    let failed = |why: &str| {
        Failure::new(exit::INVALID_CONFIG, format!("the key file {}: {why}", path.display()))
    };
    let about = fs::metadata(path).map_err(|error| failed(&error.to_string()))?;
    if !about.is_file() || about.len() > KEY_BYTES_MAX {
        return Err(failed("it must be a file with a key and nothing else"));
    }
    let text = fs::read_to_string(path).map_err(|error| failed(&error.to_string()))?;
    match text.trim() {
        key if !key.is_empty() && key.chars().all(|c| c.is_ascii_graphic()) => Ok(key.to_owned()),
        _ => Err(failed("it must have a key and nothing else")),
    }
}

/// The only socket in these folders at which a broker answers.
fn only(folders: &[PathBuf], (by_socket, by_url): Flags) -> Result<PathBuf, Failure> {
    let mut live = Vec::new();
    let mut denied = None;
    for folder in folders {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_none_or(|extension| extension != "sock") {
                continue;
            }
            match UnixStream::connect(&path) {
                Ok(_) => live.push(path),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    denied = Some(path);
                }
                // An earlier broker has left it.
                Err(_) => {}
            }
        }
    }
    live.sort();
    match (&live[..], denied) {
        ([path], _) => Ok(path.clone()),
        ([], Some(path)) => {
            let sentence = format!(
                "{} is another user's: run `tacho ctl` as the user of the broker",
                path.display()
            );
            Err(Failure::new(exit::TARGET_UNREACHABLE, sentence))
        }
        ([], None) => {
            let names: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
            let sentence = format!(
                "no broker has a socket in {}: start `tacho broker`, or name one with {by_socket}, or \
                 with {by_url}",
                names.join(" or ")
            );
            Err(Failure::new(exit::TARGET_UNREACHABLE, sentence))
        }
        (several, _) => {
            let names: Vec<String> =
                several.iter().map(|path| format!("  {by_socket} {}", path.display())).collect();
            let sentence =
                format!("{} brokers run here, choose one:\n{}", several.len(), names.join("\n"));
            Err(Failure::new(exit::INVALID_CONFIG, sentence))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_single_live_socket_is_found_and_of_several_one_must_be_chosen() {
        let place = tempfile::tempdir().expect("a folder");
        let folders = [place.path().to_owned(), place.path().join("missing")];
        let error = only(&folders, FLAGS).expect_err("there is none");
        assert_eq!(error.code, exit::TARGET_UNREACHABLE);
        drop(UnixListener::bind(place.path().join("1.sock")).expect("binds"));
        fs::write(place.path().join("notes"), "x").expect("writes");
        assert!(only(&folders, FLAGS).is_err(), "a stale one is none");
        let path = place.path().join("2.sock");
        let _second = UnixListener::bind(&path).expect("binds");
        assert_eq!(only(&folders, FLAGS).expect("is found"), path);
        let _third = UnixListener::bind(place.path().join("3.sock")).expect("binds");
        let error = only(&folders, FLAGS).expect_err("there are two");
        assert_eq!(error.code, exit::INVALID_CONFIG);
        assert!(error.message.contains("2 brokers") && error.message.contains("3.sock"));
    }

    #[test]
    fn a_text_names_a_socket_or_a_url_with_a_key() {
        let place = tempfile::tempdir().expect("a folder");
        let key = place.path().join("key");
        fs::write(&key, "tacho_00ff").expect("writes");
        let found = |text: &str| target(text, text.contains(':').then_some(&*key));
        assert!(matches!(found("/run/x.sock"), Ok(CtlTarget::Socket(path)) if path.is_absolute()));
        for url in ["http://127.0.0.1:9884", "127.0.0.1:9884"] {
            let Ok(CtlTarget::Http { url, key, .. }) = found(url) else { panic!("{url} is none") };
            assert_eq!((url.as_str(), key.as_str()), ("http://127.0.0.1:9884", "tacho_00ff"));
        }
        for (text, key) in [("http://h:1", None), ("/run/x.sock", Some(&*key))] {
            let error = target(text, key).expect_err(text);
            assert!(error.code == exit::INVALID_CONFIG && error.message.contains("--manage"));
        }
    }

    #[test]
    fn a_key_file_has_a_key_and_nothing_else() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("key");
        fs::write(&path, "tacho_00ff\n").expect("writes");
        assert_eq!(read_key(&path).expect("is one"), "tacho_00ff");
        for wrong in ["", "\n", "a b", "a\nb", &"x".repeat(5_000)] {
            fs::write(&path, wrong).expect("writes");
            assert!(read_key(&path).is_err(), "{wrong}");
        }
        assert!(read_key(place.path()).is_err());
    }
}
