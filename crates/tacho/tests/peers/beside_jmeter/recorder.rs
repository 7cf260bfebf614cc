//! A relay in front of a broker, which notes what clients say.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use tacho_codec::{Connect, Direction, Packet, QoS, Version, split_frame};

/// Frames of these plans are small.
const FRAME_BYTES_MAX: u32 = 65_536;

/// Notes the clients of one or several brokers. Its ports are closed with the process.
#[derive(Clone, Default)]
pub(super) struct Recorder {
    clients: Arc<Mutex<Vec<Client>>>,
}

/// What a client said on a connection.
#[derive(Clone, Debug)]
pub(super) struct Client {
    /// Which of the brokers.
    pub(super) broker: usize,
    pub(super) connected: Instant,
    /// Absent before its CONNECT.
    pub(super) connect: Option<Introduction>,
    pub(super) filters: Vec<(String, u8)>,
    pub(super) messages: Vec<Message>,
    in_flight: usize,
    /// The most messages at a time that were not acknowledged.
    pub(super) in_flight_max: usize,
    /// Did it say DISCONNECT?
    pub(super) farewell: bool,
}

/// The fields of a CONNECT.
#[derive(Clone, Debug)]
pub(super) struct Introduction {
    pub(super) client_id: String,
    pub(super) version: String,
    pub(super) clean: bool,
    pub(super) keep_alive_s: u16,
    pub(super) username: Option<String>,
    pub(super) password: Option<String>,
    pub(super) has_will: bool,
}

/// A PUBLISH.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) at: Instant,
    pub(super) topic: String,
    pub(super) qos: u8,
    pub(super) retain: bool,
    pub(super) payload: Vec<u8>,
}

impl Recorder {
    /// Relays a port of an address to a broker. Clients of this address are those of `broker`.
    pub(super) fn relay(
        &self,
        broker: usize,
        (address, port): (Ipv4Addr, u16),
        to: u16,
    ) -> Result<(), Failed> {
        let listener = TcpListener::bind((address, port))?;
        let recorder = self.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)) else { return };
                let (recorder, number) = (recorder.clone(), recorder.begin(broker));
                recorder.carry(number, client, server);
            }
        });
        Ok(())
    }

    /// Everything that was said so far.
    pub(super) fn clients(&self) -> Vec<Client> {
        self.all().iter().filter(|client| client.connect.is_some()).cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, broker: usize) -> usize {
        let mut clients = self.all();
        clients.push(Client {
            broker,
            connected: Instant::now(),
            connect: None,
            filters: Vec::new(),
            messages: Vec::new(),
            in_flight: 0,
            in_flight_max: 0,
            farewell: false,
        });
        clients.len() - 1
    }

    /// Carries bytes both ways, each on a thread. A packet is noted before it goes on, so that an
    /// answer is never noted before its question.
    fn carry(self, number: usize, client: TcpStream, server: TcpStream) {
        let clones = (client.try_clone(), server.try_clone());
        let (Ok(client_too), Ok(server_too)) = clones else { return };
        let noted = self.clone();
        thread::spawn(move || {
            pump(client, server, Direction::ToServer, |packet| self.said(number, packet));
        });
        thread::spawn(move || {
            pump(server_too, client_too, Direction::ToClient, |packet| {
                noted.answered(number, packet);
            });
        });
    }

    /// A client said something.
    fn said(&self, number: usize, packet: &Packet<'_>) {
        let mut clients = self.all();
        let client = &mut clients[number];
        match packet {
            Packet::Connect(connect) => client.connect = Some(introduction(connect)),
            Packet::Subscribe(subscribe) => client.filters.extend(
                subscribe.filters.iter().map(|one| (one.filter.to_owned(), one.options.qos.into())),
            ),
            Packet::Publish(publish) => {
                if publish.qos != QoS::AtMostOnce {
                    client.in_flight += 1;
                    client.in_flight_max = client.in_flight_max.max(client.in_flight);
                }
                client.messages.push(Message {
                    at: Instant::now(),
                    topic: publish.topic.to_owned(),
                    qos: publish.qos.into(),
                    retain: publish.retain,
                    payload: publish.payload.to_vec(),
                });
            }
            Packet::Disconnect(_) => client.farewell = true,
            _ => {}
        }
    }

    /// The broker answered.
    fn answered(&self, number: usize, packet: &Packet<'_>) {
        if let Packet::PubAck(_) | Packet::PubComp(_) = packet {
            let client = &mut self.all()[number];
            client.in_flight = client.in_flight.saturating_sub(1);
        }
    }
}

impl Client {
    /// Pauses between its messages.
    pub(super) fn pauses(&self) -> Vec<Duration> {
        self.messages.windows(2).map(|pair| pair[1].at - pair[0].at).collect()
    }
}

fn introduction(connect: &Connect<'_>) -> Introduction {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Introduction {
        client_id: connect.client_id.to_owned(),
        version: format!("{:?}", connect.version),
        clean: connect.clean_start,
        keep_alive_s: connect.keep_alive_s,
        username: connect.username.map(str::to_owned),
        password: connect.password.map(text),
        has_will: connect.will.is_some(),
    }
}

/// Carries bytes until one side closes, and shows each whole packet before it goes on.
fn pump(mut from: TcpStream, mut to: TcpStream, direction: Direction, note: impl Fn(&Packet<'_>)) {
    let _ = to.set_nodelay(true);
    let (mut bytes, mut held) = ([0; 16_384], Vec::new());
    while let Ok(read) = from.read(&mut bytes)
        && read > 0
    {
        held.extend_from_slice(&bytes[..read]);
        let mut done = 0;
        while let Ok(Some(frame)) = split_frame(&held[done..], FRAME_BYTES_MAX) {
            // The plugin speaks 3.1.1, and plans make us speak it, too.
            if let Ok(packet) = Packet::decode(&frame, Version::V311, direction) {
                note(&packet);
            }
            done += frame.total_len;
        }
        held.drain(..done);
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
