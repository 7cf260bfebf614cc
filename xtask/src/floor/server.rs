//! The forwarding server.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use anyhow::{Context, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::process::{pin_self, raise_descriptor_limit};

const READ_BYTES: usize = 64 * 1024;
const EVENTS_PER_WAIT: usize = 1024;

struct Peer {
    stream: TcpStream,
    /// Pending output.
    out: Vec<u8>,
    dirty: bool,
}

/// Accepts `sockets` connections, each of which says its index in four bytes, and forwards until
/// the first of them closes.
pub(super) fn run(sockets: usize, cpu: Option<usize>) -> Result<()> {
    if let Some(cpu) = cpu {
        pin_self(cpu)?;
    }
    raise_descriptor_limit()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    println!("{}", listener.local_addr().context("no local address")?.port());
    let peers = accept(&listener, sockets)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot create an epoll")?;
    for (index, peer) in peers.iter().enumerate() {
        peer.stream.set_nonblocking(true).context("cannot make a socket non-blocking")?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&epoll, &peer.stream, EventData::new_u64(index as u64), flags)
            .context("cannot watch a socket")?;
    }
    forward(&epoll, peers)
}

fn accept(listener: &TcpListener, sockets: usize) -> Result<Vec<Peer>> {
    let mut peers: Vec<Option<Peer>> = (0..sockets).map(|_| None).collect();
    for _ in 0..sockets {
        let (mut stream, _) = listener.accept().context("cannot accept")?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        let mut hello = [0; 4];
        stream.read_exact(&mut hello).context("a client left without saying its index")?;
        let index = u32::from_le_bytes(hello) as usize;
        let Some(slot) = peers.get_mut(index) else { bail!("index {index} of {sockets}") };
        *slot = Some(Peer { stream, out: Vec::new(), dirty: false });
    }
    peers.into_iter().collect::<Option<_>>().context("two clients sent the same index")
}

fn forward(epoll: &impl AsFd, peers: Vec<Peer>) -> Result<()> {
    let mut forwarder = Forwarder {
        dirty: Vec::with_capacity(peers.len()),
        peers,
        buffer: vec![0; READ_BYTES].into_boxed_slice(),
    };
    let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
    loop {
        match epoll::wait(epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for events"),
        }
        for event in events.drain(..) {
            let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            let flags = event.flags;
            if flags.contains(EventFlags::OUT) {
                forwarder.mark(index);
            }
            if flags.contains(EventFlags::IN) {
                let closing = flags.contains(EventFlags::RDHUP);
                if forwarder.read(index, closing)? == Link::Closed {
                    return Ok(());
                }
            }
        }
        if forwarder.flush()? == Link::Closed {
            return Ok(());
        }
    }
}

/// State of a socket after a read or write.
#[derive(PartialEq, Eq)]
enum Link {
    Open,
    Closed,
}

struct Forwarder {
    peers: Vec<Peer>,
    dirty: Vec<usize>,
    buffer: Box<[u8]>,
}

impl Forwarder {
    /// Takes everything that has arrived at a socket to its receiver's output.
    fn read(&mut self, index: usize, closing: bool) -> Result<Link> {
        let target = (index + self.peers.len() / 2) % self.peers.len();
        while let Some(peer) = self.peers.get_mut(index) {
            let count = match peer.stream.read(&mut self.buffer) {
                Ok(0) => return Ok(Link::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Ok(Link::Closed);
                }
                Err(error) => return Err(error).context("cannot read"),
            };
            let Some(receiver) = self.peers.get_mut(target) else { break };
            receiver.out.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
            self.mark(target);
            // A short read has drained the socket: no second call to be told so.
            if count < READ_BYTES && !closing {
                break;
            }
        }
        Ok(Link::Open)
    }

    /// Marks a peer as having pending output.
    fn mark(&mut self, index: usize) {
        if let Some(peer) = self.peers.get_mut(index)
            && !peer.dirty
            && !peer.out.is_empty()
        {
            peer.dirty = true;
            self.dirty.push(index);
        }
    }

    fn flush(&mut self) -> Result<Link> {
        for index in self.dirty.drain(..) {
            let Some(peer) = self.peers.get_mut(index) else { continue };
            peer.dirty = false;
            if flush(peer)? == Link::Closed {
                return Ok(Link::Closed);
            }
        }
        Ok(Link::Open)
    }
}

fn flush(peer: &mut Peer) -> Result<Link> {
    while !peer.out.is_empty() {
        match peer.stream.write(&peer.out) {
            Ok(count) if count == peer.out.len() => peer.out.clear(),
            Ok(count) => drop(peer.out.drain(..count)),
            // The writable event resumes the output.
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) =>
            {
                return Ok(Link::Closed);
            }
            Err(error) => return Err(error).context("cannot write"),
        }
    }
    Ok(Link::Open)
}
