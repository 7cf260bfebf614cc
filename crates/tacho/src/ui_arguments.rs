//! Arguments about the live page.

use std::io::BufRead;
use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use tacho_console::{Listen, Outlook, parse_address};

use crate::exit::{self, Failure};

/// A longer line is none of the console's.
const LINE_BYTES_MAX: u64 = 1024;
/// A shorter token could be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// The live page.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Live page")]
pub(crate) struct UiArguments {
    /// Serve a page that shows the run live and can stop it; prints its address
    ///
    /// ADDR is a port, or an address with a port; port 0 selects a free one. Default:
    /// 127.0.0.1:9740, or a free port if that one is in use. Anyone with access to the page can
    /// stop the run: keep it on loopback, or restrict access.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, value_parser = parse_ui_address)]
    ui: Option<Option<SocketAddr>>,

    /// Keep serving the page and the report after the run, until Ctrl-C or the page's button
    #[arg(long, requires = "ui")]
    ui_wait: bool,

    /// Begin once a line has come on standard input: the token of the page, which then only sends
    /// events, and only to those that know the token. End if none comes. The console starts runs so
    #[arg(long, hide = true, conflicts_with = "ui")]
    for_console: bool,
}

/// The page that a run is asked for.
pub(crate) struct PageWish {
    /// Where to listen.
    pub(crate) listen: Listen,
    /// Does it stay after the run?
    pub(crate) outlook: Outlook,
    /// What requests must bring; absent on a page for all.
    pub(crate) token: Option<String>,
}

impl UiArguments {
    /// The page that is asked for, if any. A run that the console has started waits here until the
    /// console has noted it: should the console end before, so does the run, which has not begun.
    pub(crate) fn wish(&self) -> Result<Option<PageWish>, Failure> {
        if self.for_console {
            let listen = Listen::At(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
            let token = Some(token_of(std::io::stdin().lock())?);
            return Ok(Some(PageWish { listen, outlook: Outlook::Ends, token }));
        }
        let listen = match self.ui {
            None => return Ok(None),
            Some(None) => Listen::Default,
            Some(Some(address)) => Listen::At(address),
        };
        let outlook = if self.ui_wait { Outlook::Stays } else { Outlook::Ends };
        Ok(Some(PageWish { listen, outlook, token: None }))
    }
}

/// The line that the console sends.
fn token_of(input: impl BufRead) -> Result<String, Failure> {
    let mut line = String::new();
    let read = input.take(LINE_BYTES_MAX).read_line(&mut line);
    match (read, line.strip_suffix('\n')) {
        (Ok(_), Some(token)) if token.len() >= TOKEN_BYTES_MIN => Ok(token.to_owned()),
        _ => {
            let sentence = "the console ended before this run began: start it again";
            Err(Failure::new(exit::ABORTED, sentence))
        }
    }
}

/// Parses the address of `--ui`, which may have consumed the scenario's name.
fn parse_ui_address(text: &str) -> Result<SocketAddr, String> {
    parse_address(text).map_err(|error| format!("{error}; without an address, put --ui last"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_only_with_a_whole_line_that_has_a_token() {
        let token = "0123456789abcdef";
        let said = |input: &str| token_of(input.as_bytes()).map_err(|error| error.code);
        assert_eq!(said(&format!("{token}\n")).as_deref(), Ok(token));
        let endless = "x".repeat(100_000);
        // Cut off, as by a console that ends while it writes.
        for input in ["", "\n", token, "short\n", &endless] {
            assert_eq!(said(input), Err(exit::ABORTED), "{input:.20}");
        }
    }
}
