//! `tacho serve`: the console.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tacho_console::{
    BrokerDoor, Console, ConsoleError, ConsoleSettings, Listen, Stop, parse_address,
};

use crate::bus_arguments::{BusAddress, BusLogin};
use crate::console_toolbox::{ConsoleBus, ConsoleToolbox};
use crate::ctl::{self, CtlTarget};
use crate::exit::{self, Failure};
use crate::signals::stop_flag;

/// Serve the console: configure, start, watch, stop, list and compare runs in a browser, or by its
/// API.
///
/// The printed link has a token, which the browser keeps; the folder keeps it in .console-token
/// for the next start. Runs are processes of their own: they go on when the console ends, and it
/// finds them again. One run goes on at a time, others wait in order. Ends with Ctrl-C.
/// docs/console.md has the API.
#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// The folder with the run directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    dir: PathBuf,

    /// Where to listen: a port, or an address with a port; port 0 takes a free one. By default
    /// 127.0.0.1:9740, or a free port if that one is in use
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    listen: Option<SocketAddr>,

    /// Further tokens: a file with a role and a token per line; 'viewer' may look, 'operator' may
    /// start, stop and change runs, too
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// A running broker to look into and to operate, too: the Unix socket of its management API, or
    /// its URL, such as http://127.0.0.1:9884 or https://HOST:9884. Without a value: the only socket
    /// of this user's brokers
    #[arg(long, value_name = "SOCKET|URL", num_args = 0..=1, default_missing_value = "")]
    manage: Option<String>,

    /// File with the key for the URL of --manage
    #[arg(long, value_name = "FILE", requires = "manage")]
    manage_key_file: Option<PathBuf>,

    /// CA certificates to trust at an https URL of --manage (PEM). Default: those of the system
    #[arg(long, value_name = "FILE", requires = "manage")]
    manage_ca: Option<PathBuf>,

    /// A bus whose agents are shown, too: a NATS server with JetStream, nats://HOST:PORT or
    /// tls://HOST:PORT
    #[arg(long, value_name = "URL")]
    bus: Option<BusAddress>,

    #[command(flatten)]
    login: BusLogin,
}

/// Serves until a signal comes.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<u8, Failure> {
    let listen = arguments.listen.map_or(Listen::Default, Listen::At);
    let broker = arguments.broker()?;
    let stop = Stop::new(stop_flag()?);
    let settings = ConsoleSettings {
        folder: &arguments.dir,
        listen,
        token_file: arguments.token_file.as_deref(),
        toolbox: Arc::new(ConsoleToolbox { bus: arguments.bus() }),
        broker: broker.clone(),
    };
    let console = Console::start(&settings).map_err(failure)?;
    let count = console.count();
    let runs = if count == 1 { "run" } else { "runs" };
    eprintln!("{count} {runs} in {}: {}", arguments.dir.display(), console.url());
    if let Some(broker) = broker {
        eprintln!("the broker at {broker} is in it, too");
    }
    if !console.address().ip().is_loopback() {
        eprintln!(
            "warning: {} is reached from elsewhere, and HTTP shows tokens to the network: put a \
             proxy with TLS in front",
            console.address()
        );
    }
    stop.wait();
    Ok(exit::OK)
}

impl ServeArguments {
    /// The bus that is given. It is reached only when a page asks.
    fn bus(&self) -> Option<ConsoleBus> {
        self.bus.clone().map(|address| ConsoleBus::new(address, self.login.clone()))
    }

    /// The way to the broker that is given. It is asked only when a page asks.
    fn broker(&self) -> Result<Option<BrokerDoor>, Failure> {
        let Some(place) = &self.manage else { return Ok(None) };
        let ca = self.manage_ca.as_deref();
        if ca.is_some() && !place.starts_with("https://") {
            let sentence = "--manage-ca has no use without an https address in --manage";
            return Err(Failure::new(exit::INVALID_CONFIG, sentence));
        }
        Ok(Some(match ctl::target(place, self.manage_key_file.as_deref())? {
            CtlTarget::Socket(path) => BrokerDoor::socket(path),
            CtlTarget::Http { url, key, .. } => BrokerDoor::http(&url, &key, ca)
                .map_err(|error| Failure::new(exit::INVALID_CONFIG, error))?,
        }))
    }
}

fn failure(error: ConsoleError) -> Failure {
    match error {
        ConsoleError::Folder { .. } => {
            Failure::new(exit::INVALID_CONFIG, format!("{error}; name the folder with --dir"))
        }
        ConsoleError::IsRun(_) => Failure::new(
            exit::INVALID_CONFIG,
            format!("{error}: name the folder that contains it with --dir"),
        ),
        error => error.into(),
    }
}
