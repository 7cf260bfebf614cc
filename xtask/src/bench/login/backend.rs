//! A backend of logins behind HTTP that lets every client in.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use anyhow::{Context as _, Result};

/// Longer bodies are no question of a broker.
const BODY_BYTES_MAX: u64 = 64 << 10;
const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// Answers on a thread for each connection, which the broker keeps; ends when it is dropped.
pub(super) struct Backend {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Backend {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        let address = listener.local_addr().context("a socket has no address")?;
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let accept = move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                // A connection that breaks is the broker's to repeat.
                let serve = move || drop(serve(stream));
                drop(Builder::new().name("backend".to_owned()).spawn(serve));
            }
        };
        let accepting = Builder::new().name("backend-accept".to_owned()).spawn(accept);
        let accepting = Some(accepting.context("cannot start a thread")?);
        Ok(Self { address, stop, accepting })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes it up.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

/// Answers the requests of a connection until it is closed.
fn serve(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        let mut body_bytes = 0;
        loop {
            line.clear();
            if reader.by_ref().take(BODY_BYTES_MAX).read_line(&mut line)? == 0 {
                return Ok(());
            }
            let header = line.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                body_bytes = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = reader.by_ref().take(BODY_BYTES_MAX.min(body_bytes));
        std::io::copy(&mut body, &mut std::io::sink())?;
        writer.write_all(ANSWER)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_of_a_connection_is_answered() {
        let backend = Backend::start().expect("starts");
        let mut stream = TcpStream::connect(backend.address()).expect("connects");
        for _ in 0..2 {
            let request = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
            stream.write_all(request).expect("sends");
            let mut answer = vec![0; ANSWER.len()];
            stream.read_exact(&mut answer).expect("is answered");
            assert_eq!(answer, ANSWER);
        }
        drop(stream);
        drop(backend);
    }
}
