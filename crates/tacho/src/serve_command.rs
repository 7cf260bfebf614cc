//! `tacho serve`: past runs in a browser.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tacho_console::{ConsoleError, Listen, PastRunsPage, Stop, parse_address};

use crate::exit::{self, Failure};
use crate::signals::stop_flag;

/// Serve a page with past runs: their verdicts and figures, their reports and files.
///
/// It only reads, and only the files of run directories. Ends with Ctrl-C. The list shows runs that
/// are still under way, too; 'tacho run --ui' gives them a page of their own.
#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// The folder with the run directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    dir: PathBuf,

    /// Where to listen: a port, or an address with a port; port 0 takes a free one. By default
    /// 127.0.0.1:9740, or a free port if that one is in use
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    listen: Option<SocketAddr>,
}

/// Serves until a signal comes.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<u8, Failure> {
    let listen = arguments.listen.map_or(Listen::Default, Listen::At);
    let stop = Stop::new(stop_flag()?);
    let page = PastRunsPage::start(&arguments.dir, listen).map_err(failure)?;
    eprintln!("{} runs in {}: {}", page.count(), arguments.dir.display(), page.url());
    if !page.address().ip().is_loopback() {
        eprintln!("warning: anyone with access to {} can read these runs", page.address());
    }
    stop.wait();
    Ok(exit::OK)
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
