//! Arguments about the bus between controllers and agents.

use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use tacho_bus::{Bus, BusError, Credentials, NatsBus, NatsSettings, SocketBus};

use crate::exit::{self, Failure};

/// Where a bus is.
#[derive(Clone, Debug)]
pub(crate) enum BusAddress {
    /// A NATS server, or one of a cluster.
    Nats(NatsSettings),
    /// A socket that a controller on this machine serves.
    Socket(PathBuf),
}

impl BusAddress {
    /// Whether it is a socket of this machine.
    pub(crate) const fn is_socket(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// Where it is, without how it is reached.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Socket(path) => path.display().to_string(),
            Self::Nats(settings) => {
                let (host, port) = settings.host_and_port();
                format!("{host}:{port}")
            }
        }
    }

    /// The address of this machine in the network of the bus.
    pub(crate) fn own_address(&self) -> Option<IpAddr> {
        let Self::Nats(settings) = self else { return None };
        // No datagram is sent: the system only chooses the way.
        ["0.0.0.0:0", "[::]:0"].iter().find_map(|any| {
            let socket = UdpSocket::bind(any).ok()?;
            socket.connect(settings.host_and_port()).ok()?;
            Some(socket.local_addr().ok()?.ip())
        })
    }
}

impl FromStr for BusAddress {
    type Err = BusError;

    fn from_str(text: &str) -> Result<Self, BusError> {
        match text.strip_prefix("unix:") {
            Some(path) => Ok(Self::Socket(path.into())),
            None => NatsSettings::new(text).map(Self::Nats),
        }
    }
}

/// How a client of the bus logs in.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Bus")]
pub(crate) struct BusLogin {
    /// Log in to the bus by this file: a creds file of NATS, an nkey seed, or TOML with 'user' and
    /// 'password', or with 'token'
    #[arg(long, value_name = "FILE")]
    bus_credentials: Option<PathBuf>,

    /// Certificates to trust (PEM) besides the system's; needs TLS
    #[arg(long, value_name = "FILE")]
    bus_ca: Option<PathBuf>,

    /// Client certificate for the bus (PEM)
    #[arg(long, value_name = "FILE", requires = "bus_key")]
    bus_cert: Option<PathBuf>,

    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "bus_cert")]
    bus_key: Option<PathBuf>,
}

impl BusLogin {
    /// Connects to the bus.
    pub(crate) fn connect(&self, address: &BusAddress) -> Result<Arc<dyn Bus>, Failure> {
        match address {
            BusAddress::Socket(path) => {
                let bus = SocketBus::connect(path).map_err(failure)?;
                Ok(Arc::new(bus))
            }
            BusAddress::Nats(settings) => {
                let mut settings = settings.clone();
                if let Some(path) = &self.bus_credentials {
                    let credentials = Credentials::read(path).map_err(failure)?;
                    settings = settings.with_credentials(credentials);
                }
                if let Some(ca) = &self.bus_ca {
                    settings = settings.with_ca(ca.clone());
                }
                if let (Some(certificate), Some(key)) = (&self.bus_cert, &self.bus_key) {
                    settings = settings.with_identity(certificate.clone(), key.clone());
                }
                Ok(Arc::new(NatsBus::connect(&settings).map_err(failure)?))
            }
        }
    }
}

/// An error of the bus with its exit code.
pub(crate) fn failure(error: BusError) -> Failure {
    let code = match &error {
        BusError::Address { .. } | BusError::Credentials { .. } | BusError::Name { .. } => {
            exit::INVALID_CONFIG
        }
        _ => exit::UNEXPECTED,
    };
    Failure::new(code, error)
}
