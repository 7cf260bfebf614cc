//! One run: the processes of the broker, the clients, and all events between them.

mod audit;
mod input;
mod output;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tacho_codec::ReasonCode;

use crate::broker::{self, Broker, Place, Program};
use crate::cast::{Role, cast};
use crate::client::{Client, Link, Stage};
use crate::ledger::{Ending, Kind, Ledger};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::wire;
use tacho_testkit::rng::Rng;
use tacho_testkit::{DiskFault, FaultyDisk};

/// Of a thousand syncs so many fail at least until one has: a slow machine makes only twenty.
const SYNC_ERROR_MIN: u32 = 400;
/// Time without progress that is tolerated on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same after a finding: missing messages will not arrive.
const PATIENCE_AFTER: Duration = Duration::from_secs(2);
/// Pause after a round without progress.
const PAUSE: Duration = Duration::from_micros(300);
/// Messages between two audits; no queue may reach a limit of the broker.
const UNSETTLED_MAX: u64 = 5_000;
/// Most shards of the broker.
const SHARDS_MAX: usize = 4;
/// The first client receives all wills and connects first.
const WARDEN: usize = 0;

pub(crate) struct World {
    options: Options,
    rng: Rng,
    start: Instant,
    place: Place,
    broker: Option<Broker>,
    /// Shards of the last start; 0 before the first.
    shards: usize,
    /// The broker runs, or has just been killed.
    is_alive: bool,
    /// The broker's disk may fail until it is killed.
    disk_may_fail: bool,
    /// The first client is connected since this start.
    is_ready: bool,
    spawned: Instant,
    clients: Vec<Client>,
    ledger: Ledger,
    /// No client publishes, subscribes or disconnects.
    is_calm: bool,
    /// The broker is killed after this many acknowledgements.
    acks_left: Option<u64>,
    /// Packets received.
    heard: u64,
    audit: audit::Audit,
    outcome: Outcome,
}

impl World {
    pub(crate) fn new(options: Options) -> Self {
        let mut rng = Rng::new(options.seed);
        let folder = options.folder.clone();
        let data = folder.join("data");
        fs::create_dir_all(&data).expect("a folder for the broker's data");
        let disk = options.disk_faults.then(|| FaultyDisk::new(&data, &folder)).flatten();
        let may_refuse = disk.is_some();
        let place = Place { port: free_port(), data, log: folder.join("broker.log"), disk };
        let clients: Vec<Client> =
            cast(&mut rng).into_iter().enumerate().map(|(i, role)| Client::new(i, role)).collect();
        let mut ledger = Ledger::default();
        ledger.findings.may_refuse = may_refuse;
        ledger.names = clients.iter().map(|client| client.role.name.clone()).collect();
        Self {
            rng,
            start: Instant::now(),
            place,
            broker: None,
            shards: 0,
            is_alive: false,
            disk_may_fail: false,
            is_ready: false,
            spawned: Instant::now(),
            clients,
            ledger,
            is_calm: false,
            acks_left: None,
            heard: 0,
            audit: audit::Audit::default(),
            outcome: Outcome::new(options.seed),
            options,
        }
    }

    /// Kills repeatedly, until a limit of the options or the first finding.
    pub(crate) fn run(mut self) -> Outcome {
        while self.outcome.kills < self.options.kills
            && self.start.elapsed() < self.options.time
            && self.may_go_on()
        {
            self.live();
            if self.options.prints_progress {
                self.outcome.say_progress(&self.ledger);
            }
        }
        if self.may_go_on() && self.begin() {
            self.audit();
        }
        self.broker = None;
        self.outcome.conclude(&self.ledger, self.place.disk.as_ref().map(FaultyDisk::seen));
        self.outcome
    }

    /// Work and audits without kills: a finding then is not caused by a crash.
    pub(crate) fn run_without_kills(mut self, rounds: u64) -> Outcome {
        if self.begin() {
            for _ in 0..rounds {
                self.work(false);
                self.audit();
            }
        }
        self.broker = None;
        self.outcome.conclude(&self.ledger, self.place.disk.as_ref().map(FaultyDisk::seen));
        self.outcome
    }

    fn patience(&self) -> Duration {
        if self.ledger.findings.total() == 0 { PATIENCE } else { PATIENCE_AFTER }
    }

    fn may_go_on(&self) -> bool {
        self.options.keep_going || self.ledger.findings.total() == 0
    }

    /// One process of the broker, from start to kill.
    fn live(&mut self) {
        if self.rng.percent(12) && !self.outcome.restarts_ms.is_empty() {
            return self.die_young();
        }
        if !self.begin() {
            return;
        }
        if self.rng.percent(30) || self.ledger.unsettled() > UNSETTLED_MAX {
            self.audit();
        }
        if self.may_go_on() {
            self.set_disk_fault();
            let is_due = 3 * self.outcome.restored < self.outcome.kills;
            let backs_up = is_due && matches!(self.options.program, Program::Durable);
            self.work(!backs_up);
            match backs_up {
                true => self.back_up_and_kill(),
                false => self.kill(),
            }
        }
    }

    /// The disk gets worse until the kill.
    fn set_disk_fault(&mut self) {
        let Some(disk) = &self.place.disk else { return };
        let has_failed = disk.seen().sync_errors > 0;
        let mut share = |max| if self.rng.percent(50) { self.rng.below(max) as u32 } else { 0 };
        let (sync_error, short, delay_us) = (share(20), share(500), share(3_000));
        // A run in which no sync fails proves nothing.
        let sync_error = if has_failed { sync_error } else { sync_error.max(SYNC_ERROR_MIN) };
        disk.set(DiskFault { sync_error, short, delay_us, ..DiskFault::default() });
        self.disk_may_fail = true;
    }

    /// The broker is killed while it starts.
    fn die_young(&mut self) {
        let usual_ms = self.outcome.restart_ms_median();
        let wait_us = self.rng.below(usual_ms * 1300 + 1000);
        self.spawn();
        sleep(Duration::from_micros(wait_us));
        self.kill();
        self.outcome.kills_starting += 1;
    }

    fn spawn(&mut self) {
        let shards = match self.options.shards {
            Some(shards) => shards,
            // A different number than last time.
            None => 1 + (self.shards + self.rng.below(SHARDS_MAX as u64 - 1) as usize) % SHARDS_MAX,
        };
        let is_told = match &self.options.program {
            Program::Durable | Program::Forgetful => true,
            Program::Command(template) => template.contains("{shards}"),
        };
        self.outcome.reshaped += u64::from(is_told && self.shards > 0 && shards != self.shards);
        self.shards = shards;
        self.spawned = Instant::now();
        let broker = Broker::start(&self.options.program, &self.place, shards);
        self.broker = Some(broker.expect("the broker's program can be started"));
        self.is_alive = true;
    }

    /// Starts the broker and waits until it serves; false if it does not.
    fn begin(&mut self) -> bool {
        self.spawn();
        while !self.is_ready {
            if self.has_died() {
                return false;
            }
            if self.spawned.elapsed() > PATIENCE {
                let log = broker::tail(&self.place.log);
                let text = format!("it does not serve clients after {PATIENCE:?}; its log:\n{log}");
                self.ledger.findings.add(Kind::Broker, text);
                self.kill();
                return false;
            }
            self.turn(WARDEN);
            sleep(Duration::from_millis(1));
        }
        true
    }

    /// Reports a broker that has ended by itself.
    fn has_died(&mut self) -> bool {
        let Some(status) = self.broker.as_mut().and_then(Broker::has_ended) else { return false };
        let log = broker::tail(&self.place.log);
        let text = format!("it ended by itself, {status}; its log:\n{log}");
        self.ledger.findings.add(Kind::Broker, text);
        self.broker = None;
        self.part_from_all();
        true
    }

    /// Runs the clients until the broker is to be killed; it may be after an acknowledgement.
    fn work(&mut self, may_kill: bool) {
        let time_ms = match self.rng.below(10) {
            0..4 => self.rng.between(10, 150),
            4..8 => self.rng.between(150, 800),
            _ if may_kill => {
                self.acks_left = Some(self.rng.between(1, 400));
                3_000
            }
            _ => 1_500,
        };
        let end = Instant::now() + Duration::from_millis(time_ms);
        while Instant::now() < end && self.is_alive && !self.has_died() {
            self.tick();
        }
    }

    /// Has the broker make a backup, kills it, and puts the backup in the place of its data. From
    /// before the backup on no client reads: what they were told is in it.
    fn back_up_and_kill(&mut self) {
        let backup = self.place.data.with_file_name("backup");
        // What is decided about wills after this moment is not in it.
        self.ledger.wills.killed(self.now_ms(), self.disk_may_fail);
        match self.is_alive.then(|| self.place.back_up(&backup)) {
            Some(Ok(())) => {}
            // A disk that fails makes none.
            Some(Err(_)) if self.place.disk.is_some() => return self.kill(),
            Some(Err(said)) => {
                self.ledger.findings.add(Kind::Broker, format!("it makes no backup: {said}"));
                return self.kill();
            }
            None => return self.kill(),
        }
        for client in 0..self.clients.len() {
            self.clients[client].left_open.clear();
            self.lose_link(client);
        }
        self.kill();
        match self.place.restore(&backup) {
            Ok(()) => self.outcome.restored += 1,
            Err(said) => {
                self.ledger.findings.add(Kind::Broker, format!("a backup is not sound: {said}"));
            }
        }
    }

    /// Kills the broker; packets sent before are still received.
    fn kill(&mut self) {
        if let Some(mut broker) = self.broker.take() {
            broker.kill();
            // A start on a disk that fails is refused, which would end the run.
            self.place.disk.iter().for_each(|disk| disk.set(DiskFault::default()));
            let now_ms = self.now_ms();
            self.outcome.kills += 1;
            self.ledger.kills_ms.push(now_ms);
            self.ledger.wills.killed(now_ms, self.disk_may_fail);
        }
        self.part_from_all();
        if std::mem::take(&mut self.disk_may_fail) {
            // A CONNACK that was read after the kill promises no more than one before.
            self.ledger.wills.killed(self.now_ms(), true);
        }
    }

    /// After a kill: reads what is left in the sockets, then ends the connections.
    fn part_from_all(&mut self) {
        (self.is_alive, self.is_ready, self.acks_left) = (false, false, None);
        for client in 0..self.clients.len() {
            self.clients[client].left_open.clear();
            self.hear(client);
            self.lose_link(client);
            let pause_ms = if self.rng.percent(70) { 0 } else { self.rng.below(400) };
            let client = &mut self.clients[client];
            if !client.role.steady && client.away_until_ms != u64::MAX {
                client.away_until_ms = self.ledger.now_ms + pause_ms;
            }
        }
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// One turn for each client.
    fn tick(&mut self) {
        let heard = self.heard;
        for client in 0..self.clients.len() {
            self.turn(client);
            if !self.is_calm && self.is_alive {
                self.act(client);
            }
        }
        if self.heard == heard {
            sleep(PAUSE);
        }
    }

    /// Reads and writes as far as the sockets allow.
    fn turn(&mut self, client: usize) {
        self.ledger.now_ms = self.now_ms();
        if self.is_alive && self.clients[client].link.is_none() {
            self.come(client);
        }
        self.hear(client);
        if !self.is_alive {
            return;
        }
        let diligence = self.clients[client].role.diligence;
        if self.is_calm || self.rng.percent(diligence) {
            self.answer(client);
        }
        if let Some(link) = &mut self.clients[client].link {
            link.flush();
            if link.is_over {
                self.closed_by_broker(client);
            }
        }
    }

    /// Random actions of the clients.
    fn act(&mut self, client: usize) {
        let Role { publishes, mortal, steady, .. } = self.clients[client].role;
        if !self.clients[client].is_online() {
            return;
        }
        if publishes && self.rng.percent(30) {
            for _ in 0..self.rng.between(1, 4) {
                self.publish(client);
            }
        }
        if !self.clients[client].role.changes.is_empty() && self.rng.percent(3) {
            self.change(client);
        }
        if mortal && self.rng.below(150) == 0 {
            return self.die(client);
        }
        if !steady && self.rng.below(1500) == 0 {
            self.cut(client);
        }
    }

    /// Breaks the connection, or leaves it open until the next one takes over.
    fn cut(&mut self, client: usize) {
        let link = self.lose_link(client);
        let away_ms = if self.rng.percent(30) { 0 } else { self.rng.below(500) };
        let client = &mut self.clients[client];
        // A connection with a will has to be closed visibly.
        let leaves_open = self.rng.percent(30) && !client.role.mortal;
        client.away_until_ms = self.ledger.now_ms + away_ms;
        client.left_open.clear();
        if leaves_open {
            client.left_open.extend(link);
        }
    }

    /// A client with a will disconnects or breaks off, and may wait for its will.
    fn die(&mut self, client: usize) {
        let reason = match self.rng.below(4) {
            0 => Some(ReasonCode::SUCCESS),
            1 => Some(ReasonCode::DISCONNECT_WITH_WILL_MESSAGE),
            _ => None,
        };
        let waits = self.rng.percent(50);
        let pause_ms = self.rng.below(1500);
        self.clients[client].away_until_ms =
            if waits { u64::MAX } else { self.ledger.now_ms + pause_ms };
        let Some(reason) = reason else {
            self.lose_link(client);
            return;
        };
        let version = self.clients[client].role.version;
        if let Some(link) = &mut self.clients[client].link {
            link.stage = Stage::Leaving;
            link.keeps_will = reason != ReasonCode::SUCCESS;
            link.write(&wire::disconnect(version, reason));
        }
    }

    /// The connection is over for the client, for any reason.
    fn lose_link(&mut self, client: usize) -> Option<Link> {
        let link = self.clients[client].link.take()?;
        let since_ms = self.now_ms();
        let ending = match link.stage {
            Stage::Online => Ending::Lost { since_ms },
            Stage::Leaving if link.keeps_will => Ending::Lost { since_ms },
            Stage::Connecting | Stage::Leaving => Ending::Unknown,
        };
        self.ended(client, &link, ending);
        Some(link)
    }

    /// The running broker has closed a connection.
    fn closed_by_broker(&mut self, client: usize) {
        let Some(link) = self.clients[client].link.take() else { return };
        let since_ms = self.now_ms();
        let ending = match link.stage {
            Stage::Connecting => Ending::Unknown,
            Stage::Leaving if !link.keeps_will => Ending::Polite { at_ms: since_ms },
            Stage::Leaving | Stage::Online => Ending::Lost { since_ms },
        };
        // It may have died just now.
        sleep(Duration::from_millis(2));
        if link.stage == Stage::Online && !self.has_died() {
            let name = &self.clients[client].role.name;
            let text = format!("it closed the connection of {name}");
            self.ledger.findings.add(Kind::Broker, text);
        }
        self.ended(client, &link, ending);
    }

    fn ended(&mut self, client: usize, link: &Link, ending: Ending) {
        if let Some(will) = link.opening.will {
            self.ledger.wills.ended(will.id, ending);
        }
        if link.stage == Stage::Connecting {
            self.ledger.wills.perhaps_resumed(client);
        }
        self.clients[client].disconnected();
    }
}

/// A port of the loopback address that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}
