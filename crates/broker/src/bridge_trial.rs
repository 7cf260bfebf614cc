//! Tries whether a remote broker takes a bridge: what a link does up to CONNACK, once, and waiting.
//! Nothing is subscribed to, and nothing is forwarded.

mod wire;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use serde::Serialize;
use tacho_codec::{Connect, ConnectProperties, Disconnect, Packet, ReasonCode, set_bridge_bit};
use tacho_net::clock;

use crate::config::{BridgeConfig, Remote};

pub use wire::BridgeWire;

/// Addresses of the remote broker that are tried.
const ADDRESSES_MAX: usize = 4;
/// How long one of them may take, if the bridge may not take less.
const PATIENCE_MAX: Duration = Duration::from_secs(5);
/// Characters of what the remote broker says.
const WORDS_MAX: usize = 256;

/// How a remote broker answers a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct BridgeTrial {
    pub(crate) name: String,
    pub(crate) remote: String,
    /// The remote broker takes the bridge.
    pub(crate) accepted: bool,
    /// The one that has answered.
    pub(crate) address: Option<String>,
    /// Whether the certificate was verified; absent without TLS.
    pub(crate) certificate_verified: Option<bool>,
    /// Of CONNACK.
    pub(crate) reason_code: Option<u8>,
    /// The name of the reason code.
    pub(crate) reason: Option<String>,
    /// Why the remote broker does not take the bridge.
    pub(crate) problem: Option<String>,
    pub(crate) took_ms: u64,
}

impl BridgeTrial {
    /// Tries a bridge; it may block for as long as the search for its host, and for four addresses
    /// with 5 s each.
    pub(crate) fn run(bridge: &BridgeConfig) -> Self {
        let begun_ns = clock::now_ns();
        let mut trial = Self {
            name: bridge.name.clone(),
            remote: bridge.remote.to_string(),
            ..Self::default()
        };
        trial.problem = trial.connect_to_one(bridge).err();
        trial.accepted = trial.problem.is_none();
        trial.took_ms = clock::now_ns().saturating_sub(begun_ns) / 1_000_000;
        trial
    }

    /// The first address that answers counts.
    fn connect_to_one(&mut self, bridge: &BridgeConfig) -> Result<(), String> {
        let mut last = String::new();
        for address in bridge_addresses(&bridge.remote)?.into_iter().take(ADDRESSES_MAX) {
            match self.connect(bridge, address) {
                Ok(reason) if reason.is_error() => {
                    return Err(format!("CONNECT is refused: {reason}"));
                }
                Ok(_) => return Ok(()),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    fn connect(
        &mut self,
        bridge: &BridgeConfig,
        address: SocketAddr,
    ) -> Result<ReasonCode, String> {
        let patience = Duration::from_secs(bridge.connect_timeout_s.into()).min(PATIENCE_MAX);
        let mut wire = BridgeWire::connect(address, bridge.version, patience)
            .map_err(|error| format!("cannot connect to {address}: {error}"))?;
        self.address = Some(address.to_string());
        if let Some(tls) = bridge.open_tls().map_err(|error| error.to_string())? {
            wire.secure(&tls).map_err(|error| format!("TLS with {address}: {error}"))?;
            self.certificate_verified = bridge.remote.tls.as_ref().map(|tls| !tls.insecure);
        }
        let broken = |error: std::io::Error| format!("CONNECT to {address}: {error}");
        wire.send(&bridge_connect(bridge, false)?).map_err(broken)?;
        let (reason, words) = wire
            .wait_for(|packet| match packet {
                Packet::ConnAck(answer) => {
                    let words = answer.properties.reason_string.unwrap_or_default();
                    Some((answer.reason, words.chars().take(WORDS_MAX).collect::<String>()))
                }
                _ => None,
            })
            .map_err(broken)?;
        self.reason_code = Some(reason.into());
        self.reason = Some(match words.is_empty() {
            true => reason.to_string(),
            false => format!("{reason}: {words}"),
        });
        let mut bytes = Vec::new();
        if Disconnect::new(ReasonCode::SUCCESS).encode(bridge.version, &mut bytes).is_ok() {
            // Whether it hears that is of no interest.
            let _ = wire.send(&bytes);
        }
        Ok(reason)
    }
}

/// The addresses of a remote broker; waits for the system's answer.
///
/// # Errors
/// A sentence when there is none.
pub fn bridge_addresses(remote: &Remote) -> Result<Vec<SocketAddr>, String> {
    let found = (remote.host.as_str(), remote.port).to_socket_addrs();
    let addresses: Vec<SocketAddr> = found
        .map_err(|error| format!("cannot find the host '{}': {error}", remote.host))?
        .collect();
    match addresses.is_empty() {
        true => Err(format!("the host '{}' has no address", remote.host)),
        false => Ok(addresses),
    }
}

/// The CONNECT of a trial. A running bridge has an identifier of its own, and would be thrown out;
/// one with the bridge bit of 3.1.1 (`has_bit`) is another trial, with another identifier.
///
/// # Errors
/// A sentence when a value is too long for a packet.
pub fn bridge_connect(bridge: &BridgeConfig, has_bit: bool) -> Result<Vec<u8>, String> {
    let client_id = format!("{}-test{}", bridge.client_id, if has_bit { "-flag" } else { "" });
    let connect = Connect {
        version: bridge.version,
        clean_start: true,
        keep_alive_s: bridge.keep_alive_s,
        client_id: &client_id,
        username: bridge.username.as_deref(),
        password: bridge.password.as_ref().map(|password| password.secret.reveal().as_bytes()),
        will: None,
        properties: ConnectProperties::default(),
    };
    let mut bytes = Vec::new();
    connect.encode(&mut bytes).map_err(|error| format!("CONNECT: {error}"))?;
    if has_bit {
        set_bridge_bit(&mut bytes);
    }
    Ok(bytes)
}
