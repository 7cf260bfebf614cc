//! A wire between two brokers: it can be cut, and lead to another broker from then on.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Connections to its address go on to the broker at its other end.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    /// `None`: connections end at once.
    to: Mutex<Option<SocketAddr>>,
    open: Mutex<Vec<TcpStream>>,
}

impl Wire {
    pub(crate) fn to(address: SocketAddr) -> Self {
        let wire = Self::unplugged();
        wire.plug(address);
        wire
    }

    /// New connections end at once, until it is plugged.
    pub(crate) fn unplugged() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shared = Arc::new(Shared { to: Mutex::new(None), open: Mutex::new(Vec::new()) });
        let wire = Self { address: listener.local_addr().unwrap(), shared: Arc::clone(&shared) };
        // Ends with the process.
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                shared.carry(&near);
            }
        });
        wire
    }

    /// Cuts all connections; new ones are carried.
    pub(crate) fn cut(&self) {
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Cuts all connections; new ones end at once.
    pub(crate) fn unplug(&self) {
        *self.shared.to.lock().unwrap() = None;
        self.cut();
    }

    /// New connections are carried to this broker.
    pub(crate) fn plug(&self, address: SocketAddr) {
        *self.shared.to.lock().unwrap() = Some(address);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.unplug();
    }
}

impl Shared {
    fn carry(&self, near: &TcpStream) {
        let to = self.to.lock().unwrap();
        let far = to.and_then(|address| TcpStream::connect(address).ok());
        let Some(far) = far else {
            let _ = near.shutdown(Shutdown::Both);
            return;
        };
        let mut open = self.open.lock().unwrap();
        for (from, to) in [(near, &far), (&far, near)] {
            from.set_nodelay(true).unwrap();
            let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            open.push(from.try_clone().unwrap());
            thread::spawn(move || {
                let mut bytes = vec![0; 65_536];
                while let Ok(len @ 1..) = from.read(&mut bytes)
                    && to.write_all(&bytes[..len]).is_ok()
                {}
                let _ = to.shutdown(Shutdown::Both);
                let _ = from.shutdown(Shutdown::Both);
            });
        }
    }
}
