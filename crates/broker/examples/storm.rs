//! A storm of connections against a broker, and what those inside feel of it.
//!
//! ```sh
//! cargo run --release -p tacho-broker --example storm -- 9000
//! cargo run --release -p tacho-broker --example storm -- 9000 127.0.0.1:1883
//! ```
//!
//! Without an address it starts the broker as a process of its own, with `SHARDS` event loops (2).
//!
//! First a publisher and a subscriber exchange messages for two seconds, then that many clients
//! connect at once, each saying CONNECT as soon as its socket is there; then all of them connect
//! again while their old connections still stand. Said of each storm: how long until the last
//! CONNACK, how many were refused, and the latency of the pair meanwhile. It needs twice as many
//! descriptors as clients (`ulimit -n`), and so does the broker.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tacho_broker::{Broker, RawConfig};
use tacho_codec::{
    Connect, ConnectProperties, Packet, PacketId, Publish, QoS, Subscribe, SubscribeFilter,
    SubscribeOptions, Version,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long a storm may take before it has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const CONNACK_LEN: usize = 4;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().ok_or("usage: storm CLIENTS [HOST:PORT]")?;
    if first == SERVE {
        return serve();
    }
    let clients: usize = first.parse()?;
    let own = if arguments.len() == 0 { Some(OwnBroker::start()?) } else { None };
    let broker: SocketAddr = match (&own, arguments.next()) {
        (Some(own), _) => own.address,
        (None, address) => address.unwrap_or_default().parse()?,
    };
    tacho_net::raise_fd_limit()?;
    let calm = || {
        std::thread::sleep(Duration::from_secs(2));
        Ok(())
    };
    println!("calm: {}", beside(broker, calm)?.1);
    let (first, latency) = beside(broker, || storm(broker, clients))?;
    println!("connect: {}; {latency}", first.summary);
    let (second, latency) = beside(broker, || storm(broker, clients))?;
    println!("connect again: {}; {latency}", second.summary);
    drop((first, second));
    Ok(())
}

/// Makes this program the broker; it ends with its standard input.
const SERVE: &str = "serve";

fn serve() -> Result<(), Failure> {
    let shards = std::env::var("SHARDS").map_or(Ok(2), |shards| shards.parse())?;
    let listen = Some(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
    let raw = RawConfig { listen, shards: Some(shards), ..RawConfig::default() };
    let broker = Broker::start(raw.resolve()?)?;
    println!("{}", broker.addresses()[0]);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    broker.stop();
    broker.join()?;
    Ok(())
}

/// The broker as a process; it ends when this is dropped.
struct OwnBroker {
    address: SocketAddr,
    process: Child,
}

impl OwnBroker {
    fn start() -> Result<Self, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(SERVE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let output = process.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        Ok(Self { address: line.trim().parse()?, process })
    }
}

impl Drop for OwnBroker {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Runs `action` while a pair exchanges messages, a thousand per second; says their latency.
fn beside<R>(
    broker: SocketAddr,
    action: impl FnOnce() -> Result<R, Failure>,
) -> Result<(R, String), Failure> {
    let mut subscriber = connected(broker, "storm-subscriber")?;
    let options = SubscribeOptions::default();
    subscriber.write_all(&bytes(&Packet::Subscribe(Subscribe {
        packet_id: PacketId::FIRST,
        subscription_id: None,
        filters: vec![SubscribeFilter { filter: "storm/beat", options }],
        user_properties: Default::default(),
    }))?)?;
    subscriber.read_exact(&mut [0; 5])?;
    let mut publisher = connected(broker, "storm-publisher")?;
    let publish = Publish { topic: "storm/beat", qos: QoS::AtMostOnce, ..Publish::default() };
    let publish = bytes(&Packet::Publish(publish))?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pair = scope.spawn(|| -> Result<Vec<Duration>, Failure> {
            let mut latencies = Vec::new();
            let mut buffer = vec![0; publish.len()];
            let mut due = Instant::now();
            while !over.load(Ordering::Relaxed) {
                // From when it was due: a stall counts for all that it delays.
                due += Duration::from_millis(1);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                publisher.write_all(&publish)?;
                subscriber.read_exact(&mut buffer)?;
                latencies.push(due.elapsed());
            }
            Ok(latencies)
        });
        let result = action();
        over.store(true, Ordering::Relaxed);
        let mut latencies = pair.join().map_err(|_| "the pair panicked")??;
        latencies.sort_unstable();
        let at = |part: f64| latencies[(part * (latencies.len() - 1) as f64) as usize];
        let shown = format!("pair p50 {:?}, p99 {:?}, max {:?}", at(0.5), at(0.99), at(1.0));
        Ok((result?, shown))
    })
}

/// All connections of one storm, and what became of it.
struct Storm {
    _clients: Vec<TcpStream>,
    summary: String,
}

fn storm(broker: SocketAddr, clients: usize) -> Result<Storm, Failure> {
    let begun = Instant::now();
    let mut waiting = Vec::with_capacity(clients);
    for i in 0..clients {
        let mut stream = TcpStream::connect(broker)?;
        stream.write_all(&connect(&format!("storm-{i}"))?)?;
        stream.set_nonblocking(true)?;
        waiting.push((stream, [0; CONNACK_LEN], 0));
    }
    let opened = begun.elapsed();
    let (mut inside, mut refused) = (Vec::with_capacity(clients), 0);
    while !waiting.is_empty() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("{} of {clients} have no answer", waiting.len()).into());
        }
        let mut left = Vec::new();
        for (mut stream, mut answer, len) in waiting {
            match stream.read(&mut answer[len..]) {
                Ok(0) => refused += 1,
                Ok(read) if len + read < CONNACK_LEN => left.push((stream, answer, len + read)),
                Ok(_) if answer[3] == 0 => inside.push(stream),
                Ok(_) => refused += 1,
                Err(e) if e.kind() == ErrorKind::WouldBlock => left.push((stream, answer, len)),
                Err(_) => refused += 1,
            }
        }
        waiting = left;
        std::thread::sleep(Duration::from_millis(1));
    }
    let all = begun.elapsed();
    let per_s = clients as f64 / all.as_secs_f64();
    let summary = format!(
        "{} inside, {refused} refused, sockets open after {opened:.2?}, all answered after \
         {all:.2?} ({per_s:.0}/s)",
        inside.len()
    );
    Ok(Storm { _clients: inside, summary })
}

fn connected(broker: SocketAddr, client_id: &str) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect(broker)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&connect(client_id)?)?;
    stream.read_exact(&mut [0; CONNACK_LEN])?;
    Ok(stream)
}

fn connect(client_id: &str) -> Result<Vec<u8>, Failure> {
    bytes(&Packet::Connect(Connect {
        version: Version::V311,
        clean_start: true,
        keep_alive_s: 0,
        client_id,
        username: None,
        password: None,
        will: None,
        properties: ConnectProperties::default(),
    }))
}

fn bytes(packet: &Packet<'_>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    packet.encode(Version::V311, &mut bytes)?;
    Ok(bytes)
}
