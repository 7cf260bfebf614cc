//! A broker that announces packets which are too large, and sends as much of them as it can.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tacho_codec::{ConnAck, Connect, ReasonCode, split_frame};

/// What each client gets after its CONNECT.
#[derive(Clone, Copy, Debug)]
pub enum Flood {
    /// A CONNACK of 256 MiB, of which so many bytes come.
    ConnAck(usize),
    /// A regular CONNACK, then a PUBLISH of 256 MiB, of which so many bytes come.
    Publish(usize),
    /// A regular CONNACK, then a PUBLISH of the first size, of which the second number of bytes
    /// come.
    Part(u32, usize),
}

/// The running broker; it ends when it is dropped.
pub struct FloodingBroker {
    pub address: SocketAddr,
    /// The Maximum Packet Size of each CONNECT.
    packet_sizes: Arc<Mutex<Vec<Option<u32>>>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FloodingBroker {
    pub fn start(flood: Flood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (packet_sizes, ends) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let (sizes, over) = (Arc::clone(&packet_sizes), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            let mut connections = Vec::new();
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let (stream, sizes) = (stream.unwrap(), Arc::clone(&sizes));
                connections.push(std::thread::spawn(move || serve(stream, flood, &sizes)));
            }
            connections.into_iter().for_each(|connection| connection.join().unwrap());
        });
        Self { address, packet_sizes, ends, thread: Some(thread) }
    }

    /// The Maximum Packet Size of each CONNECT so far.
    pub fn packet_sizes(&self) -> Vec<Option<u32>> {
        self.packet_sizes.lock().unwrap().clone()
    }
}

impl Drop for FloodingBroker {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

/// Serves one client until it has closed its connection.
fn serve(mut stream: TcpStream, flood: Flood, packet_sizes: &Mutex<Vec<Option<u32>>>) {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let version = loop {
        if let Some(frame) = split_frame(&bytes, 65_536).unwrap() {
            let connect = Connect::decode(&frame).unwrap();
            packet_sizes.lock().unwrap().push(connect.properties.packet_size_max);
            break connect.version;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(len) => bytes.extend_from_slice(&buffer[..len]),
        }
    };
    let mut answer = Vec::new();
    if !matches!(flood, Flood::ConnAck(_)) {
        ConnAck::refusal(ReasonCode::SUCCESS).encode(version, &mut answer).unwrap();
    }
    let (first_byte, size, mut left) = match flood {
        Flood::ConnAck(bytes) => (0x20, 268_435_455, bytes),
        Flood::Publish(bytes) => (0x30, 268_435_455, bytes),
        Flood::Part(size, bytes) => (0x30, size, bytes),
    };
    answer.push(first_byte);
    // Four bytes whatever the size: a broker may do so in 3.1.1, and nothing is decoded in 5.0.
    answer.extend((0..4u32).map(|at| (size >> (7 * at) & 0x7f) as u8 | u8::from(at < 3) << 7));
    let mut alive = stream.write_all(&answer).is_ok();
    buffer.fill(0);
    while alive && left > 0 {
        let len = left.min(buffer.len());
        alive = stream.write_all(&buffer[..len]).is_ok();
        left -= len;
    }
    // The client ends the connection.
    while alive && stream.read(&mut buffer).is_ok_and(|len| len > 0) {}
}
