//! A handler made of closures, and loops on threads of their own.

pub mod certificates;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tacho_net::{
    Closed, ConnId, Detached, Handler, Loop, LoopConfig, Mailbox, Net, Next, Remote, bind,
    mailboxes,
};

pub use crate::wait::PATIENCE;

pub type Shared = Arc<[u8]>;
pub type Do = Box<dyn FnOnce(&mut Probe, &mut Net<Probe>) + Send>;

pub enum Mail {
    Number(u64),
    Conn(Box<Detached<Shared>>),
    Do(Do),
}

type OnConn<R> = Box<dyn FnMut(&mut Net<Probe>, ConnId) -> R + Send>;
type OnInput = Box<dyn FnMut(&mut Net<Probe>, ConnId, &[u8]) -> usize + Send>;
type OnUnitGrew = Box<dyn FnMut(&mut Net<Probe>, ConnId, usize) + Send>;
type OnClosed = Box<dyn FnMut(&mut Net<Probe>, ConnId, Closed) + Send>;
type OnConnected = Box<dyn FnMut(&mut Net<Probe>, ConnId, io::Result<()>) + Send>;
type OnTimer = Box<dyn FnMut(&mut Net<Probe>, u64) + Send>;
type OnMail = Box<dyn FnMut(&mut Net<Probe>, usize, Mail) + Send>;
type OnIdle = Box<dyn FnMut(&mut Net<Probe>) + Send>;
type OnTurn = Box<dyn FnMut(&mut Net<Probe>) -> Next + Send>;

/// By default all methods do nothing, and all input is consumed.
pub struct Probe {
    pub on_accepted: OnConn<()>,
    pub on_connected: OnConnected,
    pub on_ready: OnConn<()>,
    pub on_input: OnInput,
    pub on_unit_grew: OnUnitGrew,
    pub on_closed: OnClosed,
    pub on_drained: OnConn<()>,
    pub on_timer: OnTimer,
    pub on_mail: OnMail,
    pub on_turn: OnTurn,
    pub on_idle: OnIdle,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            on_accepted: Box::new(|_, _| {}),
            on_connected: Box::new(|_, _, _| {}),
            on_ready: Box::new(|_, _| {}),
            on_input: Box::new(|_, _, data| data.len()),
            on_unit_grew: Box::new(|_, _, _| {}),
            on_closed: Box::new(|_, _, _| {}),
            on_drained: Box::new(|_, _| {}),
            on_timer: Box::new(|_, _| {}),
            on_mail: Box::new(|_, _, _| {}),
            on_turn: Box::new(|_| Next::Sleep),
            on_idle: Box::new(|_| {}),
        }
    }
}

/// Writes all input back.
pub fn echo() -> Probe {
    Probe {
        on_input: Box::new(|net, conn, data| {
            net.out(conn).extend_from_slice(data);
            data.len()
        }),
        ..Probe::default()
    }
}

impl Handler for Probe {
    type Mail = Mail;
    type Shared = Shared;

    fn accepted(&mut self, net: &mut Net<Self>, conn: ConnId, _listener: usize) {
        (self.on_accepted)(net, conn);
    }

    fn connected(&mut self, net: &mut Net<Self>, conn: ConnId, result: io::Result<()>) {
        (self.on_connected)(net, conn, result);
    }

    fn ready(&mut self, net: &mut Net<Self>, conn: ConnId) {
        (self.on_ready)(net, conn);
    }

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        (self.on_input)(net, conn, data)
    }

    fn unit_grew(&mut self, net: &mut Net<Self>, conn: ConnId, len: usize) {
        (self.on_unit_grew)(net, conn, len);
    }

    fn closed(&mut self, net: &mut Net<Self>, conn: ConnId, why: Closed) {
        (self.on_closed)(net, conn, why);
    }

    fn drained(&mut self, net: &mut Net<Self>, conn: ConnId) {
        (self.on_drained)(net, conn);
    }

    fn timer(&mut self, net: &mut Net<Self>, token: u64) {
        (self.on_timer)(net, token);
    }

    fn mail(&mut self, net: &mut Net<Self>, from: usize, mail: Mail) {
        match mail {
            Mail::Do(action) => action(self, net),
            mail => (self.on_mail)(net, from, mail),
        }
    }

    fn turn(&mut self, net: &mut Net<Self>) -> Next {
        (self.on_turn)(net)
    }

    fn idle(&mut self, net: &mut Net<Self>) {
        (self.on_idle)(net);
    }
}

/// A loop on its own thread; it is stopped when this is dropped.
pub struct Running {
    pub addr: SocketAddr,
    pub remote: Remote<Mail>,
    pub shard: usize,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Running {
    /// Runs `action` inside the loop and returns what it returns.
    pub fn ask<R: Send + 'static>(
        &self,
        action: impl FnOnce(&mut Probe, &mut Net<Probe>) -> R + Send + 'static,
    ) -> R {
        let (reply, replies) = channel();
        let action: Do = Box::new(move |probe, net| {
            let _ = reply.send(action(probe, net));
        });
        assert!(self.remote.post(self.shard, Mail::Do(action)));
        replies.recv_timeout(PATIENCE).expect("the loop does not answer")
    }

    pub fn client(&self) -> TcpStream {
        connect(self.addr)
    }

    pub fn stop(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        let stop: Do = Box::new(|_, net| net.stop());
        self.remote.post(self.shard, Mail::Do(stop));
        if let Some(thread) = self.thread.take()
            && !thread::panicking()
        {
            thread.join().expect("the loop has panicked").expect("the loop has failed");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shut_down();
    }
}

pub fn local() -> TcpListener {
    bind("127.0.0.1:0".parse().unwrap(), 1024).unwrap()
}

pub fn start_with(config: LoopConfig, mailbox: Mailbox<Mail>, mut probe: Probe) -> Running {
    let addr = match config.listeners.first() {
        Some(listener) => listener.local_addr().unwrap(),
        None => "127.0.0.1:1".parse().unwrap(),
    };
    let remote = mailbox.remote();
    let shard = mailbox.shard();
    let event_loop = Loop::new(config, mailbox).unwrap();
    let thread = Some(thread::spawn(move || event_loop.run(&mut probe)));
    Running { addr, remote, shard, thread }
}

/// One loop that listens.
pub fn start(probe: Probe) -> Running {
    start_config(LoopConfig::default(), probe)
}

pub fn start_config(mut config: LoopConfig, probe: Probe) -> Running {
    config.listeners.push(local());
    start_with(config, mailboxes(1).remove(0), probe)
}

pub fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends FIN and reads the remaining bytes.
pub fn finish(mut stream: TcpStream) -> Vec<u8> {
    stream.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    rest
}

pub fn read_exactly(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

pub fn write(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
}

/// Bytes that differ from position to position.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|position| (position ^ (position >> 8) ^ (position >> 16)) as u8).collect()
}

/// Waits until `condition` holds.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "did not happen: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

pub fn events<T>() -> (Sender<T>, Receiver<T>) {
    channel()
}

pub fn next<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(PATIENCE).expect("nothing has happened")
}

/// Why a connection ended, for comparison.
pub fn why(closed: &Closed) -> &'static str {
    match closed {
        Closed::ByPeer => "by peer",
        Closed::ByUs => "by us",
        Closed::Error(_) => "error",
    }
}
