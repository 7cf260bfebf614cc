//! The way to the management API of a broker: a Unix socket, or HTTP with a key.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{self, HeaderValue};
use axum::http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tacho_net::tls::{TlsClient, TlsClientSettings, TlsError};
use thiserror::Error;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long the broker may take to begin its answer: a search through a million sessions takes
/// some seconds.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// The way to the management API of a broker.
#[derive(Clone)]
pub struct BrokerDoor {
    place: BrokerPlace,
    /// Sent with each request, and shown nowhere.
    key: Option<HeaderValue>,
}

#[derive(Clone, Debug)]
enum BrokerPlace {
    Socket(PathBuf),
    Http { host: String, tls: Option<Arc<TlsClient>> },
}

/// Why a broker cannot be asked.
#[derive(Debug, Error)]
pub enum BrokerDoorError {
    /// The URL is none that is possible.
    #[error(
        "'{0}' is no address of a management API: write http://HOST:PORT, or https://HOST:PORT \
         where it has a certificate"
    )]
    Url(String),
    /// Its certificate cannot be checked.
    #[error("the certificate of the management API cannot be checked: {0}")]
    Tls(#[from] TlsError),
    /// The key cannot be sent.
    #[error("the key of the management API is no key")]
    Key,
}

/// An answer whose body may still arrive.
pub(crate) struct DoorAnswer {
    pub(crate) response: Response<Incoming>,
    pub(crate) connection: DoorConnection,
}

/// The connection of an answer; it ends when this is dropped.
pub(crate) struct DoorConnection(JoinHandle<()>);

impl Drop for DoorConnection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl BrokerDoor {
    /// By the broker's Unix socket.
    pub const fn socket(path: PathBuf) -> Self {
        Self { place: BrokerPlace::Socket(path), key: None }
    }

    /// By HTTP or HTTPS, with a key; `ca` is a PEM file of certificates to trust, instead of the
    /// system's.
    ///
    /// # Errors
    /// When the URL, the key or the file cannot be used.
    pub fn http(url: &str, key: &str, ca: Option<&Path>) -> Result<Self, BrokerDoorError> {
        let wrong = || BrokerDoorError::Url(url.to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let host = rest.trim_end_matches('/');
        let is_host = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']);
        if !is_host || HeaderValue::from_str(host).is_err() {
            return Err(wrong());
        }
        let with_port = |usual: u16| match has_port(host) {
            true => host.to_owned(),
            false => format!("{host}:{usual}"),
        };
        let (host, tls) = match scheme {
            "http" => (with_port(80), None),
            "https" => {
                let host = with_port(443);
                let settings = TlsClientSettings {
                    ca: ca.map(Path::to_owned),
                    server_name: name_of(&host).to_owned(),
                    ..TlsClientSettings::default()
                };
                (host, Some(Arc::new(TlsClient::new(&settings)?)))
            }
            _ => return Err(wrong()),
        };
        let key = HeaderValue::from_str(&format!("Bearer {key}"));
        let mut key = key.map_err(|_| BrokerDoorError::Key)?;
        key.set_sensitive(true);
        Ok(Self { place: BrokerPlace::Http { host, tls }, key: Some(key) })
    }

    /// Asks for `target`, a path with its query.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub(crate) async fn ask(
        &self,
        method: Method,
        target: &str,
        body: Bytes,
    ) -> io::Result<DoorAnswer> {
        let (mut sender, connection) =
            timeout(CONNECT_TIME, self.connect()).await.map_err(|_| io::ErrorKind::TimedOut)??;
        let host = match &self.place {
            BrokerPlace::Socket(_) => "localhost",
            BrokerPlace::Http { host, .. } => host,
        };
        let mut request = Request::builder().method(method).uri(target).header(header::HOST, host);
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, key);
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(body)).map_err(io::Error::other)?;
        let answer = timeout(ANSWER_TIME, sender.send_request(request)).await;
        let response = answer.map_err(|_| io::ErrorKind::TimedOut)?.map_err(io::Error::other)?;
        Ok(DoorAnswer { response, connection })
    }

    async fn connect(&self) -> io::Result<(SendRequest<Full<Bytes>>, DoorConnection)> {
        match &self.place {
            BrokerPlace::Socket(path) => {
                begin(TokioIo::new(UnixStream::connect(path).await?)).await
            }
            BrokerPlace::Http { host, tls } => {
                let stream = match host.parse::<SocketAddr>() {
                    Ok(address) => TcpStream::connect(address).await?,
                    Err(_) => TcpStream::connect(host.as_str()).await?,
                };
                let Some(tls) = tls else { return begin(TokioIo::new(stream)).await };
                let (config, name) = tls.config();
                let stream = TlsConnector::from(config).connect(name, stream).await?;
                begin(TokioIo::new(stream)).await
            }
        }
    }
}

/// The name or address of a host with its port.
fn name_of(host: &str) -> &str {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

async fn begin<S>(stream: S) -> io::Result<(SendRequest<Full<Bytes>>, DoorConnection)>
where
    S: Read + Write + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(stream).await.map_err(io::Error::other)?;
    let task = tokio::spawn(async move {
        // What goes wrong with it is an error of its request or answer.
        let _ = connection.await;
    });
    Ok((sender, DoorConnection(task)))
}

/// Where the broker is, for people; never the key.
impl fmt::Display for BrokerDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            BrokerPlace::Socket(path) => write!(f, "{}", path.display()),
            BrokerPlace::Http { host, tls } => {
                let scheme = if tls.is_some() { "https" } else { "http" };
                write!(f, "{scheme}://{host}")
            }
        }
    }
}

impl fmt::Debug for BrokerDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerDoor").field("place", &self.place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_host_and_port_and_nothing_else() {
        let shown = |url: &str| BrokerDoor::http(url, "k", None).map(|door| door.to_string()).ok();
        assert_eq!(shown("http://127.0.0.1:9884").as_deref(), Some("http://127.0.0.1:9884"));
        assert_eq!(shown("http://[::1]:9884/").as_deref(), Some("http://[::1]:9884"));
        assert_eq!(shown("http://broker").as_deref(), Some("http://broker:80"));
        for wrong in ["ftp://h:1", "h:1", "http://", "http://u@h:1", "http://h:1/x", "http://h 1"] {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
        assert!(BrokerDoor::http("http://h:1", "a\nb", None).is_err());
        let error = BrokerDoor::http("https://h:1", "k", Some(Path::new("/none.pem")));
        let error = error.expect_err("there is no such file").to_string();
        assert!(error.contains("/none.pem"), "{error}");
        assert_eq!(["h:1", "[::1]:1", "127.0.0.1:1"].map(name_of), ["h", "::1", "127.0.0.1"]);
    }

    #[test]
    fn the_key_is_shown_nowhere() {
        let door = BrokerDoor::http("http://h:1", "tacho_secret", None).expect("is right");
        assert!(!format!("{door} {door:?}").contains("secret"));
    }
}
