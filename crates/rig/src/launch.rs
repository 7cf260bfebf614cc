//! A program to start: a shell command of the user, or Tacho's own broker.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::attached::{self, without_secrets};
use crate::data_directory::DataDirectory;
use crate::error::RigError;
use crate::network::Bridging;
use crate::supervised;

/// Stands in a command for the port to listen on.
pub const PORT_PLACEHOLDER: &str = "{port}";
/// Stands in a command for a directory that stays until the end of the run.
pub const DATA_PLACEHOLDER: &str = "{dir}";

/// How to find out whether a broker serves clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// It answers a CONNECT over plain TCP.
    AnswersConnect,
    /// It accepts connections: MQTT is wrapped in something else there.
    AcceptsConnections,
}

/// A broker process before it is started.
#[derive(Debug)]
pub struct Launch {
    pub(crate) command: Command,
    /// The command as a record shows it.
    pub(crate) shown: String,
    /// Where it is going to listen, on 127.0.0.1.
    pub(crate) port: u16,
    pub(crate) serving: Serving,
    /// Is it a command of the user, which may start other programs?
    pub(crate) is_supervised: bool,
}

/// Settings of Tacho's own broker.
#[derive(Debug)]
pub struct BuiltIn<'a> {
    /// Where it listens for clients, on 127.0.0.1.
    pub port: u16,
    /// Scheme of its listener: `tls`, `ws` or `wss`; absent for plain TCP.
    pub scheme: Option<&'a str>,
    /// Event loops.
    pub shards: usize,
    /// With TLS: the folder for the certificates that it makes.
    pub certificates: Option<&'a Path>,
    /// Where it keeps sessions and at which durability level; in memory otherwise.
    pub data: Option<(&'a DataDirectory, &'a str)>,
    /// How it takes part in a network of brokers.
    pub bridging: Option<&'a Bridging>,
    /// Further arguments.
    pub arguments: &'a [String],
}

impl Launch {
    /// A shell command, in which [`PORT_PLACEHOLDER`] and [`DATA_PLACEHOLDER`] are replaced.
    ///
    /// # Errors
    /// When this program, the supervisor, cannot be found.
    pub fn shell(
        template: &str,
        port: u16,
        data: Option<&DataDirectory>,
        serving: Serving,
    ) -> Result<Self, RigError> {
        let mut shown = template.replace(PORT_PLACEHOLDER, &port.to_string());
        if let Some(data) = data {
            shown = shown.replace(DATA_PLACEHOLDER, &data.path().display().to_string());
        }
        let command = supervised::command(&shown)?;
        Ok(Self { command, shown, port, serving, is_supervised: true })
    }

    /// Tacho's own broker.
    ///
    /// # Errors
    /// When this program cannot be found.
    pub fn built_in(settings: &BuiltIn<'_>) -> Result<Self, RigError> {
        let BuiltIn { port, scheme, shards, .. } = *settings;
        let address = format!("127.0.0.1:{port}");
        let (listen, serving) = match scheme {
            None => (address, Serving::AnswersConnect),
            Some(scheme) => (format!("{scheme}://{address}"), Serving::AcceptsConnections),
        };
        let mut line = Line::new(attached::this_program()?);
        line.option("--listen", &listen);
        line.option("--shards", shards.to_string());
        if let Some((data, level)) = settings.data {
            line.option("--data-dir", data.path());
            line.option("--durability", level);
        }
        if let Some(folder) = settings.certificates {
            line.option("--self-signed", folder);
        }
        settings.arguments.iter().for_each(|word| line.word(word));
        if let Some(bridging) = settings.bridging {
            line.option("--config", &bridging.config);
            if let Some(listen) = bridging.listen {
                line.option("--listen", listen.to_string());
            }
        }
        let Line { mut command, shown } = line;
        // The other end of the pipe is ours, and is closed with us however we end.
        command.arg("--end-with-stdin").stdin(Stdio::piped());
        Ok(Self { command, shown, port, serving, is_supervised: false })
    }
}

/// A command that is put together, with the text that shows it.
struct Line {
    command: Command,
    shown: String,
}

impl Line {
    fn new(program: PathBuf) -> Self {
        let mut command = Command::new(program);
        // A run has its broker for itself: there is nothing to operate.
        command.args(["broker", "--management-socket", "none"]);
        without_secrets(&mut command);
        Self { command, shown: "tacho broker".to_owned() }
    }

    fn word(&mut self, word: impl AsRef<OsStr>) {
        self.command.arg(word.as_ref());
        self.shown.push(' ');
        self.shown.push_str(&word.as_ref().to_string_lossy());
    }

    fn option(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.word(name);
        self.word(value);
    }
}
