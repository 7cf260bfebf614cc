//! Arguments about the live page.

use std::net::SocketAddr;

use clap::Args;
use tacho_console::{Listen, parse_address};

/// The live page.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct UiArguments {
    /// Serve a page that shows the run while it runs and can stop it; its address is printed
    ///
    /// ADDR is a port, or an address with a port; port 0 takes a free one. By default it is
    /// 127.0.0.1:9740, or a free port where that one is taken. Everyone who can open the page can
    /// stop the run: keep it on loopback, or restrict access to it.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, value_parser = parse_ui_address)]
    ui: Option<Option<SocketAddr>>,

    /// After the run keep serving the page and the report, until Ctrl-C or the page's button
    #[arg(long, requires = "ui")]
    pub(crate) ui_wait: bool,
}

impl UiArguments {
    /// Where the page is wanted; `None` when it is not.
    pub(crate) fn listen(&self) -> Option<Listen> {
        match self.ui {
            None => None,
            Some(None) => Some(Listen::Default),
            Some(Some(address)) => Some(Listen::At(address)),
        }
    }
}

/// The same for `--ui`, which may have taken the scenario for its address.
fn parse_ui_address(text: &str) -> Result<SocketAddr, String> {
    parse_address(text).map_err(|error| format!("{error}; without an address, put --ui last"))
}
