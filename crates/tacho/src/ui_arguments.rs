//! Arguments about the live page.

use std::net::SocketAddr;

use clap::Args;
use tacho_console::{Listen, parse_address};

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
    pub(crate) ui_wait: bool,
}

impl UiArguments {
    /// The address of the page; `None` without one.
    pub(crate) fn listen(&self) -> Option<Listen> {
        match self.ui {
            None => None,
            Some(None) => Some(Listen::Default),
            Some(Some(address)) => Some(Listen::At(address)),
        }
    }
}

/// Parses the address of `--ui`, which may have consumed the scenario's name.
fn parse_ui_address(text: &str) -> Result<SocketAddr, String> {
    parse_address(text).map_err(|error| format!("{error}; without an address, put --ui last"))
}
