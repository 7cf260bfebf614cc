//! Sends messages that are due, and holds back messages that must wait.

use std::cmp::Reverse;

use tacho_codec::{PacketId, Publish, PublishProperties, QoS};
use tacho_net::{ConnId, Net, Next, clock};
use tacho_session::Transmit;
use tacho_session::client;

use super::Worker;
use super::message::{Message, Published};
use super::stream::VirtualStream;
use crate::lateness::Lateness;
use crate::payload::Header;
use crate::verifier::{Streams, correlation};

/// Runs of messages per turn: the send time is taken when a message enters its buffer, which must
/// be written to the socket soon.
const RUNS_PER_TURN_MAX: usize = 64;
/// Messages per run of a stream that is behind schedule.
const MESSAGES_IN_A_ROW_MAX: usize = 16;
/// Messages per turn in closed mode, where one write per connection carries a whole window.
const CLOSED_PER_TURN_MAX: usize = 4_096;
/// Messages per clock reading in closed mode: at about 0.2 us each, the error stays far below
/// 10 us.
const MESSAGES_PER_CLOCK_READ: usize = 16;
/// Limit on the unwritten output of a connection; beyond it its messages wait (backpressure).
const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// How often connections beyond that limit are checked.
const CONGESTION_LOOK_NS: u64 = 1_000_000;

/// The outcome of an attempt to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    Yes,
    /// The inflight window is full, or the connection has too much unwritten output.
    Blocked,
    /// The client is not connected.
    Down,
}

impl VirtualStream {
    /// Appends the PUBLISH of a message.
    #[inline]
    pub(super) fn write(
        &self,
        streams: &Streams,
        message: &Message,
        packet_id: Option<PacketId>,
        dup: bool,
        out: &mut Vec<u8>,
    ) {
        let header = Header {
            run: streams.run,
            stream: self.index,
            seq: message.seq,
            probe: message.probe,
            intended_ns: message.intended_ns,
            late_us: Lateness::of_send(message.intended_ns, message.sent_ns).as_header_us(),
        };
        let retain = self.retain && !message.probe;
        let info = &streams.infos[self.index.index()];
        if self.fixed_bytes.is_some() {
            self.head.append(out, dup, retain, self.qos, packet_id);
            streams.contents.write(&info.content, &info.topic, &header, out);
            return;
        }
        let correlation = correlation(header.stream, header.seq);
        let mut payload = Vec::new();
        streams.contents.write(&info.content, &info.topic, &header, &mut payload);
        let publish = Publish {
            dup,
            retain,
            qos: self.qos,
            topic: &info.topic,
            packet_id,
            payload: &payload,
            properties: PublishProperties {
                response_topic: info.response.as_deref(),
                correlation_data: info.response.as_ref().map(|_| &correlation[..]),
                ..PublishProperties::default()
            },
        };
        // Invariant: the largest payload fits, see `VirtualStream::new`.
        publish.encode(self.version, out).expect("a checked plan fits into packets");
    }
}

impl Worker {
    /// Sends the messages that are due; true if more are due immediately.
    pub(super) fn send_due(&mut self, net: &mut Net<Self>) -> bool {
        self.poll_congested(net);
        let mut budget = RUNS_PER_TURN_MAX;
        // One reading for all that is due: what becomes due meanwhile belongs to the next turn.
        let now_ns = clock::now_ns();
        self.send_unblocked(net, &mut budget, now_ns);
        let end_ns = self.phase.load_end_ns;
        while budget > 0 {
            let Some(&Reverse((due_ns, local))) = self.due.peek() else { break };
            if due_ns > now_ns || due_ns >= end_ns {
                break;
            }
            // A stream several messages behind schedule sends them in a row: one write carries them
            // all, which lets a late generator catch up.
            let mut sent = self.send_next(net, local, now_ns);
            let mut next_ns = self.streams[local as usize].next_ns();
            for _ in 1..MESSAGES_IN_A_ROW_MAX {
                if sent != Sent::Yes || next_ns > now_ns || next_ns >= end_ns {
                    break;
                }
                sent = self.send_next(net, local, now_ns);
                next_ns = self.streams[local as usize].next_ns();
            }
            match sent {
                // The stream waits for an acknowledgement, or its trace has ended.
                Sent::Yes if next_ns == u64::MAX => {
                    self.due.pop();
                }
                Sent::Yes => {
                    if let Some(mut top) = self.due.peek_mut() {
                        top.0.0 = next_ns;
                    }
                }
                Sent::Blocked => {
                    self.due.pop();
                    self.wait(local);
                }
                Sent::Down => {
                    self.due.pop();
                    self.phase.dead.push(local);
                }
            }
            budget -= 1;
        }
        let more_closed = self.send_closed(net);
        budget == 0 || more_closed || !self.unblocked.is_empty()
    }

    /// Sends the next message of an open stream, which is due.
    fn send_next(&mut self, net: &mut Net<Self>, local: u32, now_ns: u64) -> Sent {
        let stream = &mut self.streams[local as usize];
        let client = &self.clients[stream.client as usize];
        let Some(conn) = client.conn.filter(|_| client.state.is_up()) else { return Sent::Down };
        if stream.qos != QoS::AtMostOnce && !client.session.can_publish()
            || net.output_bytes(conn) > OUTPUT_BYTES_MAX
        {
            return Sent::Blocked;
        }
        let catch_up = stream.catch_up();
        let Some(due) =
            stream.schedule.as_mut().and_then(|schedule| schedule.take(now_ns, catch_up))
        else {
            return Sent::Yes;
        };
        let cell = stream.cell;
        self.totals.taken[usize::from(cell)] += 1 + due.skipped;
        self.recorder.cell(cell).dropped += due.skipped;
        self.publish(net, conn, local, due.intended_ns, now_ns, false)
    }

    /// Publishes one message. The caller has checked that the inflight window is open.
    pub(super) fn publish(
        &mut self,
        net: &mut Net<Self>,
        conn: ConnId,
        local: u32,
        intended_ns: u64,
        now_ns: u64,
        probe: bool,
    ) -> Sent {
        let stream = &mut self.streams[local as usize];
        let client = &mut self.clients[stream.client as usize];
        let seq = if probe { 0 } else { stream.next_seq as u32 };
        let message = Message { stream: local, seq, probe, intended_ns, sent_ns: now_ns };
        match client.session.publish(now_ns, stream.qos, Published::Message(message)) {
            client::Publish::Send(Transmit::Publish { packet_id, dup, .. }) => {
                let out = net.out(conn).as_vec_mut();
                stream.write(&self.context.streams, &message, packet_id, dup, out);
            }
            // `write_pending` writes the session's earlier output first.
            client::Publish::Send(_) | client::Publish::Queued => {}
            client::Publish::Blocked(_) => return Sent::Blocked,
        }
        self.traffic.packets += 1;
        self.spin.note_send(now_ns);
        self.totals.unacked += u64::from(stream.qos != QoS::AtMostOnce);
        if !probe {
            stream.number(intended_ns, &self.verifier.window());
            self.totals.expected += stream.receivers;
            self.recorder.sent(stream.cell, intended_ns, now_ns);
            self.recorder.cell(stream.cell).payload_bytes_out += stream.payload_bytes;
        }
        Sent::Yes
    }

    /// The stream waits for its client's inflight window or socket.
    fn wait(&mut self, local: u32) {
        let client = &mut self.clients[self.streams[local as usize].client as usize];
        let position = self.streams[local as usize].client;
        client.waiting.push_back(local);
        if !client.is_blocked {
            client.is_blocked = true;
            self.blocked.push(position);
        }
        // Acknowledgements wake clients that wait for the window. There is no event for a socket
        // that accepts more output, so those are polled.
        if client.session.can_publish() || self.streams[local as usize].qos == QoS::AtMostOnce {
            self.congested.push(position);
        }
    }

    fn poll_congested(&mut self, net: &Net<Self>) {
        let (clients, unblocked) = (&mut self.clients, &mut self.unblocked);
        self.congested.retain(|&position| {
            let client = &mut clients[position as usize];
            let still = client.conn.is_some_and(|conn| net.output_bytes(conn) > OUTPUT_BYTES_MAX);
            if !still && !client.is_unblocked {
                client.is_unblocked = true;
                unblocked.push(position);
            }
            still
        });
    }

    /// Continues with clients whose window has opened.
    fn send_unblocked(&mut self, net: &mut Net<Self>, budget: &mut usize, now_ns: u64) {
        while *budget > 0 {
            let Some(position) = self.unblocked.pop() else { return };
            let position = position as usize;
            self.clients[position].is_unblocked = false;
            while let Some(local) = self.clients[position].waiting.pop_front() {
                if *budget == 0 {
                    self.clients[position].waiting.push_front(local);
                    self.clients[position].is_unblocked = true;
                    self.unblocked.push(position as u32);
                    return;
                }
                if self.streams[local as usize].is_willing {
                    self.willing.push_back(local);
                    continue;
                }
                self.drop_excess(local, now_ns);
                match self.send_next(net, local, now_ns) {
                    Sent::Yes => self.requeue(local, now_ns),
                    Sent::Blocked => {
                        self.clients[position].waiting.push_front(local);
                        break;
                    }
                    Sent::Down => self.phase.dead.push(local),
                }
                *budget -= 1;
            }
        }
    }

    /// Requeues a stream: behind the others of its client if it is still behind schedule, so that
    /// they take turns, or else into the schedule queue.
    fn requeue(&mut self, local: u32, now_ns: u64) {
        let stream = &self.streams[local as usize];
        let next_ns = stream.next_ns();
        let client = &mut self.clients[stream.client as usize];
        if next_ns <= now_ns && next_ns < self.phase.load_end_ns {
            client.waiting.push_back(local);
        } else if next_ns < u64::MAX {
            self.due.push(Reverse((next_ns, local)));
        }
    }

    /// Drops the backlog beyond the limit on waiting messages, oldest first.
    fn drop_excess(&mut self, local: u32, now_ns: u64) {
        let end_ns = now_ns.min(self.phase.load_end_ns);
        let stream = &mut self.streams[local as usize];
        let group = self.clients[stream.client as usize].group;
        let limit = u64::from(self.context.plan.groups[group].waiting_max);
        let Some(schedule) = &mut stream.schedule else { return };
        let excess = schedule.remaining_before(end_ns).saturating_sub(limit);
        if excess > 0 {
            schedule.skip(excess);
            self.totals.taken[usize::from(stream.cell)] += excess;
            self.recorder.cell(stream.cell).dropped += excess;
        }
    }

    /// Deliveries of a stream in closed mode are settled.
    #[inline]
    pub(super) fn credit(&mut self, local: u32, deliveries: u64) {
        let stream = &mut self.streams[local as usize];
        stream.in_flight = stream.in_flight.saturating_sub(deliveries);
        self.make_willing(local);
    }

    /// A message of QoS 1 or 2 is acknowledged.
    #[inline]
    pub(super) fn credit_ack(&mut self, local: u32, now_ns: u64) {
        let stream = &mut self.streams[local as usize];
        if stream.in_flight > 0 {
            stream.in_flight -= 1;
            self.make_willing(local);
        }
        if let Some(schedule) = &mut self.streams[local as usize].schedule
            && schedule.acknowledged(now_ns)
        {
            self.due.push(Reverse((schedule.next_ns(), local)));
        }
    }

    #[inline]
    pub(super) fn make_willing(&mut self, local: u32) {
        let stream = &mut self.streams[local as usize];
        stream.progressed = true;
        if !stream.is_willing && stream.may_send_closed() {
            stream.is_willing = true;
            self.willing.push_back(local);
        }
    }

    /// Sends messages of streams in closed mode; true if some are left for the next turn.
    fn send_closed(&mut self, net: &mut Net<Self>) -> bool {
        if self.willing.is_empty() {
            return false;
        }
        let mut now_ns = clock::now_ns();
        if !self.phase.is_loading(now_ns) {
            for local in std::mem::take(&mut self.willing) {
                self.streams[local as usize].is_willing = false;
            }
            return false;
        }
        let mut budget = CLOSED_PER_TURN_MAX;
        while budget > 0 {
            let Some(local) = self.willing.pop_front() else { return false };
            let position = self.streams[local as usize].client;
            let client = &self.clients[position as usize];
            let Some(conn) = client.conn.filter(|_| client.state.is_up()) else {
                self.streams[local as usize].is_willing = false;
                continue;
            };
            loop {
                let stream = &mut self.streams[local as usize];
                if !stream.may_send_closed() {
                    stream.is_willing = false;
                    break;
                }
                let client = &self.clients[position as usize];
                if stream.qos != QoS::AtMostOnce && !client.session.can_publish()
                    || net.output_bytes(conn) > OUTPUT_BYTES_MAX
                {
                    // It stays willing, but waits with its client.
                    self.wait(local);
                    break;
                }
                stream.in_flight += stream.cost();
                self.totals.taken[usize::from(stream.cell)] += 1;
                self.publish(net, conn, local, now_ns, now_ns, false);
                budget = budget.saturating_sub(1);
                if budget.is_multiple_of(MESSAGES_PER_CLOCK_READ) {
                    now_ns = clock::now_ns();
                }
            }
        }
        !self.willing.is_empty()
    }

    /// When this thread has work, even if nothing arrives.
    pub(super) fn next_wake_up(&self) -> Next {
        let mut at_ns = self.phase.next_edge_ns();
        if let Some(Reverse((due_ns, _))) = self.due.peek()
            && *due_ns < self.phase.load_end_ns
        {
            at_ns = at_ns.min(*due_ns);
        }
        at_ns = at_ns.min(self.actions.next_ns());
        at_ns = at_ns.min(self.logins.next_ns());
        if let Some((due_ns, _)) = self.pacing.front() {
            at_ns = at_ns.min(*due_ns);
        }
        if let Some(enter) = self.upcoming.front() {
            at_ns = at_ns.min(enter.start_ns);
        }
        if !self.congested.is_empty() {
            at_ns = at_ns.min(clock::now_ns() + CONGESTION_LOOK_NS);
        }
        at_ns = at_ns.min(self.probes.next_ns());
        if at_ns == u64::MAX { Next::Sleep } else { Next::At(at_ns) }
    }
}
