//! Writes the same bytes to many sockets, with one system call for each and in batches by turns,
//! and says what a write costs:
//!
//! ```text
//! cargo run --release -p tacho-net --example fan_out -- 2000 100000 128 4
//! ```
//!
//! The arguments are sockets, writes per second, bytes of a write, and rounds of two seconds. The
//! sender has the first core, the receiver the second.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::thread;

use tacho_net::clock::thread_cpu_ns;
use tacho_net::{
    Closed, ConnId, Counters, Handler, Loop, LoopConfig, Net, Next, bind, mailboxes,
    probe_batch_writes, raise_fd_limit, usable_cpus,
};

const ROUND_NS: u64 = 2_000_000_000;

#[derive(Clone, Copy)]
struct Plan {
    sockets: usize,
    /// From one write to all sockets to the next.
    interval_ns: u64,
    bytes: usize,
    rounds: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (sockets, per_second) = (number(2_000)?, number(100_000)?);
    let (bytes, rounds) = (number(128)?, number(4)?);
    if sockets == 0 || per_second == 0 || bytes == 0 {
        return Err("sockets, writes per second and bytes must not be 0".into());
    }
    let interval_ns = 1_000_000_000 * sockets as u64 / per_second as u64;
    let plan = Plan { sockets, interval_ns, bytes, rounds };
    raise_fd_limit()?;
    probe_batch_writes()
        .map_err(|error| format!("this system cannot write in batches: {error}"))?;
    for round in 1..=plan.rounds {
        for batch_writes in [false, true] {
            let Cost { cpu_ns, counters } = measure(plan, batch_writes)?;
            println!(
                "round {round}, {}: {:.2} us of CPU per write, {} writes in {} batches",
                if batch_writes { "in batches" } else { "alone" },
                cpu_ns as f64 / counters.writes as f64 / 1_000.0,
                counters.writes,
                counters.write_batches,
            );
        }
    }
    Ok(())
}

/// What the writes of one round took.
struct Cost {
    cpu_ns: u64,
    counters: Counters,
}

fn measure(plan: Plan, batch_writes: bool) -> io::Result<Cost> {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0)), 4096)?;
    let addr = listener.local_addr()?;
    let cpus = usable_cpus();
    let receiver_cpu = cpus.get(1).copied();
    let receiver = thread::spawn(move || {
        let config = LoopConfig { cpu: receiver_cpu, ..LoopConfig::default() };
        let mut receiver = Receiver { addr, sockets: plan.sockets, failure: None };
        Loop::new(config, mailboxes(1).remove(0))?.run(&mut receiver)?;
        receiver.failure.map_or(Ok(()), Err)
    });
    let config = LoopConfig {
        listeners: vec![listener],
        batch_writes,
        cpu: cpus.first().copied(),
        ..LoopConfig::default()
    };
    let mut sender =
        Sender { plan, message: vec![7; plan.bytes], conns: Vec::new(), began: None, cost: None };
    Loop::new(config, mailboxes(1).remove(0))?.run(&mut sender)?;
    // Invariant: it panics only where the loop does.
    receiver.join().expect("the receiver has ended in order")?;
    sender.cost.ok_or_else(|| io::Error::other("the receiver has left before the end"))
}

struct Sender {
    plan: Plan,
    message: Vec<u8>,
    conns: Vec<ConnId>,
    began: Option<Began>,
    cost: Option<Cost>,
}

/// The beginning of the round.
struct Began {
    at_ns: u64,
    cpu_ns: u64,
    /// When the next write to all is due.
    next_ns: u64,
    counters: Counters,
}

impl Handler for Sender {
    type Mail = ();
    type Shared = Vec<u8>;

    fn accepted(&mut self, _net: &mut Net<Self>, conn: ConnId, _listener: usize) {
        self.conns.push(conn);
    }

    fn input(&mut self, _net: &mut Net<Self>, _conn: ConnId, data: &[u8]) -> usize {
        data.len()
    }

    fn closed(&mut self, net: &mut Net<Self>, _conn: ConnId, _why: Closed) {
        net.stop();
    }

    fn turn(&mut self, net: &mut Net<Self>) -> Next {
        if self.conns.len() < self.plan.sockets {
            return Next::Sleep;
        }
        let now_ns = net.now_ns();
        let began = self.began.get_or_insert_with(|| Began {
            at_ns: now_ns,
            cpu_ns: thread_cpu_ns(),
            next_ns: now_ns,
            counters: net.counters(),
        });
        if now_ns >= began.at_ns + ROUND_NS {
            let mut counters = net.counters();
            counters.writes -= began.counters.writes;
            counters.write_batches -= began.counters.write_batches;
            self.cost = Some(Cost { cpu_ns: thread_cpu_ns() - began.cpu_ns, counters });
            net.stop();
            return Next::Sleep;
        }
        if now_ns >= began.next_ns {
            began.next_ns += self.plan.interval_ns;
            for conn in &self.conns {
                net.out(*conn).extend_from_slice(&self.message);
            }
        }
        Next::At(began.next_ns)
    }
}

/// Takes all that comes.
struct Receiver {
    addr: SocketAddr,
    /// Connected ones.
    sockets: usize,
    failure: Option<io::Error>,
}

impl Receiver {
    fn give_up(&mut self, net: &mut Net<Self>, error: io::Error) {
        self.failure.get_or_insert(error);
        net.stop();
    }
}

impl Handler for Receiver {
    type Mail = ();
    type Shared = Vec<u8>;

    fn started(&mut self, net: &mut Net<Self>) {
        for _ in 0..self.sockets {
            if let Err(error) = net.connect(self.addr, None) {
                return self.give_up(net, error);
            }
        }
    }

    fn accepted(&mut self, _net: &mut Net<Self>, _conn: ConnId, _listener: usize) {}

    fn connected(&mut self, net: &mut Net<Self>, _conn: ConnId, result: io::Result<()>) {
        if let Err(error) = result {
            self.give_up(net, error);
        }
    }

    fn input(&mut self, _net: &mut Net<Self>, _conn: ConnId, data: &[u8]) -> usize {
        data.len()
    }

    fn closed(&mut self, net: &mut Net<Self>, _conn: ConnId, _why: Closed) {
        self.sockets -= 1;
        if self.sockets == 0 {
            net.stop();
        }
    }
}
