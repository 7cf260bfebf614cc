//! Clients whose bytes go through the filter of a transport.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use tacho_codec::Version;
use tacho_net::Filter;

use crate::client::Client;

/// A client whose bytes go through `filter`: a tunnel lies between it and the broker.
pub fn through(filter: Box<dyn Filter>, broker: SocketAddr, version: Version) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    let wire = TcpStream::connect(broker).unwrap();
    tunnel(filter, far, wire);
    Client::over(near, version)
}

/// Passes on what comes at either side: through `filter` at the wire, as it is at the other side.
pub fn tunnel(filter: Box<dyn Filter>, far: TcpStream, wire: TcpStream) {
    for stream in [&far, &wire] {
        stream.set_nodelay(true).unwrap();
    }
    let filter = Arc::new(Mutex::new(filter));
    say(&filter, &[], &wire);
    let (up, mut from, to) =
        (Arc::clone(&filter), far.try_clone().unwrap(), wire.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut chunk = [0; 65536];
        while let Ok(len @ 1..) = from.read(&mut chunk) {
            say(&up, &chunk[..len], &to);
        }
        let mut farewell = Vec::new();
        up.lock().unwrap().finish(&mut farewell);
        let _ = (&to).write_all(&farewell);
        let _ = to.shutdown(Shutdown::Write);
    });
    std::thread::spawn(move || {
        let (mut wire, mut far, mut chunk) = (wire, far, [0; 65536]);
        while let Ok(len @ 1..) = wire.read(&mut chunk) {
            let mut plain = Vec::new();
            let heard = filter.lock().unwrap().inbound(&chunk[..len], &mut plain);
            say(&filter, &[], &wire);
            if far.write_all(&plain).is_err() || heard.is_err() {
                break;
            }
        }
        let _ = far.shutdown(Shutdown::Both);
    });
}

fn say(filter: &Mutex<Box<dyn Filter>>, plain: &[u8], mut wire: &TcpStream) {
    let mut bytes = Vec::new();
    let mut filter = filter.lock().unwrap();
    if filter.outbound(plain, &mut bytes).is_ok() {
        // Whether it arrives shows at the other end.
        let _ = wire.write_all(&bytes);
    }
}
