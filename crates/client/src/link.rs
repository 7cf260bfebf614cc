//! One connection: a socket with its filter, and a thread that reads it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use tacho_net::Filter;

/// Events that wait for the client; who makes more waits for it.
pub const EVENTS_MAX: usize = 64;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// Makes the filter of a new connection: TLS, WebSocket or both; none for plain TCP.
pub type FilterSource = Arc<dyn Fn() -> io::Result<Option<Box<dyn Filter>>> + Send + Sync>;

/// What the threads of a client tell it.
#[derive(Debug)]
pub(crate) enum Event {
    /// Bytes of a connection.
    Bytes { link: u64, bytes: Vec<u8> },
    /// A connection has ended, for this reason if there is one.
    Closed { link: u64, error: Option<io::Error> },
    /// A piece of input; `None` is its end.
    Input(io::Result<Option<Vec<u8>>>),
}

/// A connection.
pub(crate) struct Link {
    /// Tells its events from those of other connections.
    pub(crate) number: u64,
    stream: TcpStream,
    filter: Option<Box<dyn Filter>>,
    /// Bytes of MQTT that are not handled yet.
    pub(crate) received: Vec<u8>,
    wire: Vec<u8>,
}

impl Link {
    /// Connects, and reads from then on.
    pub(crate) fn open(
        number: u64,
        address: SocketAddr,
        filter: Option<Box<dyn Filter>>,
        timeout: Duration,
        events: SyncSender<Event>,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(timeout))?;
        let reader = stream.try_clone()?;
        let read = move || read(reader, number, &events);
        thread::Builder::new().name("client-read".into()).spawn(read)?;
        let mut link = Self { number, stream, filter, received: Vec::new(), wire: Vec::new() };
        link.send(&[])?; // The filter may have to speak first.
        Ok(link)
    }

    /// Whether packets may be sent.
    pub(crate) fn is_ready(&self) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.is_ready())
    }

    /// Takes bytes of the socket. Bytes of MQTT that come before an error are kept.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(filter) = &mut self.filter else {
            self.received.extend_from_slice(bytes);
            return Ok(());
        };
        let outcome = filter.inbound(bytes, &mut self.received);
        let wants_write = filter.wants_write();
        if wants_write {
            // It may be an alert that says why.
            let sent = self.send(&[]);
            outcome.and(sent)
        } else {
            outcome
        }
    }

    /// Sends bytes of MQTT.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(filter) = &mut self.filter else { return self.stream.write_all(bytes) };
        self.wire.clear();
        filter.outbound(bytes, &mut self.wire)?;
        self.stream.write_all(&self.wire)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(filter) = &mut self.filter {
            self.wire.clear();
            filter.finish(&mut self.wire);
            let _ = self.stream.write_all(&self.wire);
        }
        // Ends the thread that reads, too.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Reads until the end of the connection or of the client.
fn read(mut stream: TcpStream, link: u64, events: &SyncSender<Event>) {
    let mut buffer = vec![0; READ_BYTES];
    let error = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break None,
            Ok(len) => {
                let bytes = buffer[..len].to_vec();
                if events.send(Event::Bytes { link, bytes }).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some(error),
        }
    };
    let _ = events.send(Event::Closed { link, error });
}
