//! Programs under test: started, pinned to cores, watched, killed, and ended with this process.
//!
//! - [`Launch`] describes a program to start: a shell command of the user, or Tacho's broker. On
//!   [`Cores`] it becomes a [`Process`], which listens when [`Process::start`] returns and is
//!   stopped when it is dropped.
//! - [`Killer`] kills a process at planned moments and starts it again; [`ProcessEvents`] is told.
//! - [`Network`] configures brokers of Tacho that bridge to each other, [`BridgeWatch`] asks them
//!   repeatedly about the state of their bridges ([`BridgeClient`]).
//! - [`CommandRunner`] runs shell commands at planned moments, a [`Companion`] is one that runs as
//!   long as the run.
//! - [`supervisor`] ends all processes of a broker's command with this process, even when this one
//!   is killed; [`attached`] ends a single one.
//!
//! The crate knows neither scenarios nor runs: its callers pass plain data.

pub mod attached;
pub mod supervisor;

mod bridge_client;
mod bridge_watch;
mod commands;
mod companion;
mod cores;
mod data_directory;
mod descendants;
mod error;
mod group;
mod killer;
mod launch;
mod network;
mod port;
mod process;
mod started;
mod stop;
mod supervised;

pub use bridge_client::{
    BridgeAnswer, BridgeClient, BridgeConnection, BridgeFigures, BridgeState, LinkState,
};
pub use bridge_watch::{BridgeWatch, WatchedBridge};
pub use commands::{CommandEnd, CommandEvent, CommandRunner, TimedCommand};
pub use companion::Companion;
pub use cores::{BrokerShare, Cores, move_to};
pub use data_directory::DataDirectory;
pub use error::{LastOutput, RigError};
pub use group::{Cut, ProcessGroup};
pub use killer::{Killer, ProcessEvents};
pub use launch::{BuiltIn, DATA_PLACEHOLDER, Launch, PORT_PLACEHOLDER, Serving};
pub use network::{BridgeRule, Bridging, Network, Sessions};
pub use port::{PortUse, free_port};
pub use process::{Process, SharedProcess};
pub use tacho_net::lower_priority;
