//! What the servers of these chores share: one epoll for a listener, an input that ends them, and
//! their clients.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result};
use rustix::event::epoll::{self, EventData, EventFlags};

/// Events that are not those of a client.
pub(crate) const LISTENER: u64 = 0;
pub(crate) const INPUT: u64 = 1;
pub(crate) const FIRST_CLIENT: u64 = 2;

/// An epoll that watches a non-blocking listener, and an input for its end.
pub(crate) fn watch(listener: &TcpListener, input: impl AsFd) -> Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot create an epoll")?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)
        .context("cannot watch the listener")?;
    epoll::add(&epoll, input, EventData::new_u64(INPUT), EventFlags::IN)
        .context("cannot watch the input: it must be a pipe or a terminal")?;
    Ok(epoll)
}

/// The next client that waits, watched under this key; `None` if none waits.
pub(crate) fn accept(
    listener: &TcpListener,
    epoll: &OwnedFd,
    key: u64,
) -> Result<Option<TcpStream>> {
    let stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("cannot accept"),
        }
    };
    stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
    stream.set_nonblocking(true).context("cannot make a socket non-blocking")?;
    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    epoll::add(epoll, &stream, EventData::new_u64(key), flags).context("cannot watch a socket")?;
    Ok(Some(stream))
}
