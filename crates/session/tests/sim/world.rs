//! One run: a client, a server, the network between them, and the clock.

mod client_side;
mod crash;
mod server_side;

use std::collections::{HashMap, VecDeque};

use tacho_codec::{Direction, PacketId, QoS, Version};
use tacho_session::{BatchSeq, Delivery, Overflow, client, server};

use crate::journal::{Journal, Kept};
use crate::ledger::{Ledger, Msg, ReceiverRules, SenderRules, TOPICS};
use crate::network::Link;
use crate::wire;
use tacho_testkit::rng::Rng;

const QOS: [QoS; 3] = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];

/// The parameters of a run, drawn from its seed.
struct Setup {
    version: Version,
    client_receive_maximum: u16,
    client_alias_max: u16,
    server_alias_max: u16,
    keep_alive_s: u16,
    messages: u32,
    cut_percent: u64,
    clean_percent: u64,
    accept_late: bool,
    crash_percent: u64,
    limits: server::SessionLimits,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientState {
    Offline,
    Connecting,
    Online,
}

/// An inbound message that the server has not accepted yet.
struct Waiting {
    msg: Msg,
    qos: QoS,
    packet_id: Option<PacketId>,
    batch: BatchSeq,
}

pub(crate) struct World {
    rng: Rng,
    setup: Setup,
    now_ns: u64,
    link: Link,
    client: client::Session<Msg>,
    client_state: ClientState,
    client_wants_clean: bool,
    server: server::Session<Kept>,
    server_online: bool,
    /// The server's connection is this one, not an earlier one that it still considers open.
    server_on_link: bool,
    /// The server's connection is congested.
    congested: bool,
    journal: Journal,
    waiting: VecDeque<Waiting>,
    /// Messages to the client that a crash lost: their publisher retransmits them.
    again: VecDeque<Delivery<Kept>>,
    /// The message of each inbound identifier.
    inbound_ids: HashMap<PacketId, u32>,
    up_next: u32,
    down_next: u32,
    up: Ledger,
    down: Ledger,
    client_sends: SenderRules,
    client_acks: ReceiverRules,
    server_sends: SenderRules,
    server_acks: ReceiverRules,
}

impl World {
    pub(crate) fn new(seed: u64, crashes: bool) -> Self {
        let mut rng = Rng::new(seed);
        let version = if rng.percent(70) { Version::V5 } else { Version::V311 };
        let limits = server::SessionLimits {
            queue_len_max: if rng.percent(80) { 1_000 } else { rng.between(0, 8) as u32 },
            queue_bytes_max: 100_000,
            overflow: if rng.percent(50) { Overflow::DropNewest } else { Overflow::Keep },
            receive_maximum: rng.between(1, 12) as u16,
            inflight_max: rng.between(1, 12) as u16,
            queue_qos0_offline: rng.percent(50),
            alias_bytes_max: 64 * 1024,
        };
        let setup = Setup {
            version,
            client_receive_maximum: rng.between(1, 12) as u16,
            client_alias_max: rng.below(3) as u16,
            server_alias_max: rng.below(3) as u16,
            keep_alive_s: rng.below(3) as u16,
            messages: rng.between(5, 40) as u32,
            cut_percent: if rng.percent(80) { rng.between(1, 8) } else { 0 },
            clean_percent: if rng.percent(10) { 20 } else { 0 },
            accept_late: rng.percent(40),
            crash_percent: if crashes { rng.between(1, 5) } else { 0 },
            limits,
        };
        let client = client::Session::new(client::ClientLimits {
            inflight_max: rng.between(1, 12) as u16,
            receive_maximum: setup.client_receive_maximum,
        });
        let journal = Journal::new(rng.percent(70), rng.percent(50));
        Self {
            rng,
            setup,
            now_ns: 1,
            link: Link { broken: true, ..Link::default() },
            client,
            client_state: ClientState::Offline,
            client_wants_clean: true,
            server: server::Session::new(limits),
            server_online: false,
            server_on_link: false,
            congested: false,
            journal,
            waiting: VecDeque::new(),
            again: VecDeque::new(),
            inbound_ids: HashMap::new(),
            up_next: 0,
            down_next: 0,
            up: Ledger::default(),
            down: Ledger::default(),
            client_sends: SenderRules::default(),
            client_acks: ReceiverRules::default(),
            server_sends: SenderRules::default(),
            server_acks: ReceiverRules::default(),
        }
    }

    /// Runs to the end and checks everything; returns the number of messages that arrived.
    pub(crate) fn run(mut self) -> usize {
        let mut steps = 0;
        while self.up_next < self.setup.messages || self.owes_offers() {
            self.step();
            steps += 1;
            assert!(steps < 100_000, "the run makes no progress");
        }
        for _ in 0..self.rng.below(50) {
            self.step();
        }
        self.settle();
        self.up.check_complete();
        self.down.check_complete();
        self.up.delivered_len() + self.down.delivered_len()
    }

    fn step(&mut self) {
        let pause_ns = if self.rng.percent(2) { 2_000_000_000 } else { 20_000_000 };
        self.now_ns += self.rng.below(pause_ns);
        if self.rng.below(100) < self.setup.cut_percent {
            self.link.cut();
        }
        if self.rng.below(100) < self.setup.crash_percent {
            self.crash();
        }
        match self.rng.below(14) {
            0 | 1 => self.client_publish(),
            2 | 3 => self.server_offer(),
            4 | 5 => self.up_deliver(),
            6 | 7 => self.down_deliver(),
            8 => {
                let keep = self.rng.below(self.journal.waiting() + 1);
                self.journal.commit(keep);
                self.server_poll();
            }
            9 => self.accept_some(),
            10 => self.notice(),
            11 => self.set_congested(self.server_online && !self.congested),
            12 => self.load_some(),
            _ => self.time_passes(),
        }
        self.check_records();
    }

    fn owes_offers(&self) -> bool {
        self.down_next < self.setup.messages || !self.again.is_empty()
    }

    /// No more faults: everything promised has to arrive.
    fn settle(&mut self) {
        self.set_congested(false);
        for _ in 0..2_000 {
            self.now_ns += 1_000;
            if self.link.broken {
                self.lose_client();
                self.lose_server();
            }
            if self.client_state == ClientState::Offline {
                self.client_connect(false);
            }
            self.up_deliver();
            self.down_deliver();
            while !self.waiting.is_empty() {
                self.accept_some();
            }
            while self.owes_offers() {
                self.server_offer();
            }
            self.load_some();
            self.journal.commit(0);
            self.server_poll();
            if self.is_settled() {
                return;
            }
        }
        panic!("the run does not settle: client {:?} server {:?}", self.client, self.server);
    }

    fn is_settled(&self) -> bool {
        let settled = self.client_state == ClientState::Online
            && self.link.up.is_idle()
            && self.link.down.is_idle()
            && self.client.inflight_len() == 0
            && self.server.inflight_len() == 0
            && self.server.queue_len() == 0;
        if settled {
            assert!(!self.server.has_output(self.journal.committed) && !self.client.has_output());
            assert_eq!(self.server_acks.owed_len() + self.client_acks.owed_len(), 0);
            assert_eq!(self.server.inbound_unacked(), 0, "credit leaks");
            assert_eq!(self.server.queue_bytes(), 0);
            assert_eq!(self.journal.state().len(), 0, "the journal keeps entries that are over");
        }
        settled
    }

    fn draw_qos(&mut self) -> QoS {
        QOS[self.rng.below(3) as usize]
    }

    fn draw_topic(&mut self) -> usize {
        self.rng.below(TOPICS.len() as u64) as usize
    }

    /// A side detects that the connection is broken, or the client reconnects.
    fn notice(&mut self) {
        if self.client_state == ClientState::Offline {
            let clean_start = self.rng.below(100) < self.setup.clean_percent;
            return self.client_connect(clean_start);
        }
        if self.link.broken {
            if self.rng.percent(50) { self.lose_client() } else { self.lose_server() }
        }
    }

    fn time_passes(&mut self) {
        match self.client.handle_timeout(self.now_ns) {
            Some(client::TimeoutEvent::SendPingReq) => {
                let ping = wire::ping(self.setup.version, Direction::ToServer);
                self.up_write(&ping);
            }
            Some(client::TimeoutEvent::PingTimeout) => {
                self.link.cut();
                self.lose_client();
            }
            None => {}
        }
        match self.server.handle_timeout(self.now_ns) {
            Some(server::TimeoutEvent::KeepAliveExpired) => {
                if self.server_on_link {
                    self.link.cut();
                }
                self.lose_server();
            }
            Some(other) => panic!("unexpected {other:?}"),
            None => {}
        }
    }
}

fn topic_number(topic: &str) -> usize {
    TOPICS.iter().position(|known| *known == topic).expect("a known topic")
}
