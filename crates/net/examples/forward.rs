//! Forwards frames from one socket of a pair to the other, and generates load for such a forwarder.
//!
//! It shows the cost of the loop itself, without any protocol:
//!
//! ```text
//! strace -c -f target/release/examples/forward serve 127.0.0.1:7000 1 &
//! target/release/examples/forward load 127.0.0.1:7000 1000 30000 5
//! ```
//!
//! `serve ADDRESS RUNS` ends after that many runs of `load`; `load ADDRESS PAIRS FRAMES_PER_SECOND
//! SECONDS`.

use std::net::SocketAddr;

use tacho_net::{Closed, ConnId, Handler, Loop, LoopConfig, Net, Next, bind, mailboxes};

const FRAME_BYTES: usize = 128;
const HELLO_BYTES: usize = 8;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| -> Result<u64, Failure> {
        Ok(arguments.get(index).ok_or("an argument is missing")?.parse()?)
    };
    let addr: SocketAddr = arguments.get(1).ok_or("an address is missing")?.parse()?;
    tacho_net::raise_fd_limit()?;
    match arguments.first().map(String::as_str) {
        Some("serve") => serve(addr, number(2)?),
        Some("load") => load(addr, number(2)? as usize, number(3)?, number(4)?),
        _ => Err("the first argument must be serve or load".into()),
    }
}

/// Every connection begins with its client number and the number of the receiving client.
struct Forwarder {
    /// Connections by client number.
    clients: Vec<Option<ConnId>>,
    /// The receiving client of each connection's frames.
    routes: Vec<Option<usize>>,
    connections: u64,
    runs: u64,
    frames: u64,
}

fn serve(addr: SocketAddr, runs: u64) -> Result<(), Failure> {
    let config = LoopConfig { listeners: vec![bind(addr, 4096)?], ..LoopConfig::default() };
    let mailbox = mailboxes(1).remove(0);
    let mut forwarder =
        Forwarder { clients: Vec::new(), routes: Vec::new(), connections: 0, runs, frames: 0 };
    Loop::new(config, mailbox)?.run(&mut forwarder)?;
    Ok(())
}

impl Handler for Forwarder {
    type Mail = ();
    type Shared = Vec<u8>;

    fn accepted(&mut self, _net: &mut Net<Self>, conn: ConnId, _listener: usize) {
        let len = self.routes.len().max(conn.index() + 1);
        self.routes.resize(len, None);
        self.routes[conn.index()] = None;
        self.connections += 1;
    }

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        let Some(target) = self.routes[conn.index()] else { return self.hello(conn, data) };
        let len = data.len() - data.len() % FRAME_BYTES;
        if let Some(Some(target)) = self.clients.get(target) {
            net.out(*target).extend_from_slice(&data[..len]);
            self.frames += (len / FRAME_BYTES) as u64;
        }
        len
    }

    fn closed(&mut self, net: &mut Net<Self>, _conn: ConnId, _why: Closed) {
        self.connections -= 1;
        if self.connections > 0 {
            return;
        }
        println!("{} frames, {:?}", self.frames, net.counters());
        self.clients.clear();
        self.frames = 0;
        self.runs -= 1;
        if self.runs == 0 {
            net.stop();
        }
    }
}

impl Forwarder {
    fn hello(&mut self, conn: ConnId, data: &[u8]) -> usize {
        let Some((hello, _)) = data.split_first_chunk::<HELLO_BYTES>() else { return 0 };
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &b| sum << 8 | usize::from(b));
        let (client, target) = (number(&hello[..4]), number(&hello[4..]));
        let len = self.clients.len().max(client + 1);
        self.clients.resize(len, None);
        self.clients[client] = Some(conn);
        self.routes[conn.index()] = Some(target);
        HELLO_BYTES
    }
}

/// Client `i` sends to client `i + pairs`, on a fixed schedule.
struct Load {
    addr: SocketAddr,
    pairs: usize,
    interval_ns: u64,
    frames: u64,
    clients: Vec<ConnId>,
    connected: usize,
    failed: bool,
    started_ns: u64,
    sent: u64,
    received_bytes: u64,
    delay_ns_max: u64,
    latency_ns_sum: u64,
}

fn load(addr: SocketAddr, pairs: usize, per_second: u64, seconds: u64) -> Result<(), Failure> {
    let mut load = Load {
        addr,
        pairs,
        interval_ns: 1_000_000_000 / per_second,
        frames: per_second * seconds,
        clients: Vec::new(),
        connected: 0,
        failed: false,
        started_ns: 0,
        sent: 0,
        received_bytes: 0,
        delay_ns_max: 0,
        latency_ns_sum: 0,
    };
    let mailbox = mailboxes(1).remove(0);
    Loop::new(LoopConfig::default(), mailbox)?.run(&mut load)?;
    Ok(())
}

impl Handler for Load {
    type Mail = ();
    type Shared = Vec<u8>;

    fn started(&mut self, net: &mut Net<Self>) {
        for client in 0..2 * self.pairs {
            match net.connect(self.addr, None) {
                Ok(conn) => {
                    let hello = [client as u32, (client + self.pairs) as u32];
                    net.out(conn).extend_from_slice(&hello.map(u32::to_le_bytes).concat());
                    self.clients.push(conn);
                }
                Err(error) => return self.give_up(net, &error),
            }
        }
    }

    fn accepted(&mut self, _net: &mut Net<Self>, _conn: ConnId, _listener: usize) {}

    fn connected(&mut self, net: &mut Net<Self>, _conn: ConnId, result: std::io::Result<()>) {
        match result {
            Ok(()) => self.connected += 1,
            Err(error) => self.give_up(net, &error),
        }
        if self.connected == 2 * self.pairs {
            self.started_ns = net.now_ns() + 500_000_000;
        }
    }

    fn input(&mut self, net: &mut Net<Self>, _conn: ConnId, data: &[u8]) -> usize {
        let frames = data.chunks_exact(FRAME_BYTES);
        let rest = frames.remainder().len();
        for frame in frames {
            let sent_ns = frame.iter().take(8).rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
            self.latency_ns_sum += net.now_ns().saturating_sub(sent_ns);
            self.received_bytes += FRAME_BYTES as u64;
        }
        data.len() - rest
    }

    fn closed(&mut self, net: &mut Net<Self>, _conn: ConnId, _why: Closed) {
        net.stop();
    }

    fn turn(&mut self, net: &mut Net<Self>) -> Next {
        if self.started_ns == 0 {
            return Next::Sleep;
        }
        while self.sent < self.frames {
            let due_ns = self.started_ns + self.sent * self.interval_ns;
            if due_ns > net.now_ns() {
                return Next::At(due_ns);
            }
            let mut frame = [0; FRAME_BYTES];
            frame[..8].copy_from_slice(&due_ns.to_le_bytes());
            let client = self.sent as usize % self.pairs;
            net.out(self.clients[client]).extend_from_slice(&frame);
            self.delay_ns_max = self.delay_ns_max.max(net.now_ns() - due_ns);
            self.sent += 1;
        }
        if self.received_bytes < self.sent * FRAME_BYTES as u64 {
            return Next::Sleep;
        }
        println!(
            "{} frames sent, {} received, latest {} us late, mean latency {} us, {:?}",
            self.sent,
            self.received_bytes / FRAME_BYTES as u64,
            self.delay_ns_max / 1000,
            self.latency_ns_sum / 1000 / self.sent,
            net.counters(),
        );
        net.stop();
        Next::Sleep
    }
}

impl Load {
    fn give_up(&mut self, net: &mut Net<Self>, error: &std::io::Error) {
        if !self.failed {
            self.failed = true;
            eprintln!("cannot connect to {}: {error}", self.addr);
        }
        net.stop();
    }
}
