//! Answers to requests: what responders send back, and keep until the broker has taken it.

use std::collections::{HashMap, VecDeque};

use tacho_codec::{PacketId, Publish, PublishProperties, QoS, Version};
use tacho_net::{ConnId, Net};
use tacho_session::{Transmit, client};

use super::client::Published;
use super::{Failure, Worker};

/// Bytes of answers that one client may hold back while its inflight window is full.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// The answers of one client.
#[derive(Debug, Default)]
pub(super) struct Answers {
    next: u32,
    /// Those of QoS 1 and 2 without their last acknowledgement, by number.
    open: HashMap<u32, Answer>,
    /// Those that wait for the inflight window, oldest first.
    waiting: VecDeque<Answer>,
    waiting_bytes: usize,
}

/// An answer of QoS 1 or 2: its request will be gone when it has to be repeated.
#[derive(Debug)]
struct Answer {
    qos: QoS,
    topic: Box<str>,
    payload: Box<[u8]>,
    correlation: Option<Box<[u8]>>,
}

impl Answer {
    fn to(request: &Publish<'_>, topic: &str) -> Self {
        Self {
            qos: request.qos,
            topic: topic.into(),
            payload: request.payload.into(),
            correlation: request.properties.correlation_data.map(Box::from),
        }
    }

    fn bytes(&self) -> usize {
        self.topic.len() + self.payload.len() + self.correlation.as_deref().map_or(0, <[u8]>::len)
    }

    fn publish(&self, packet_id: Option<PacketId>, dup: bool) -> Publish<'_> {
        let answer = publish(&self.topic, &self.payload, self.correlation.as_deref());
        Publish { dup, qos: self.qos, packet_id, ..answer }
    }
}

/// The PUBLISH of an answer, at QoS 0.
fn publish<'a>(topic: &'a str, payload: &'a [u8], correlation: Option<&'a [u8]>) -> Publish<'a> {
    let properties =
        PublishProperties { correlation_data: correlation, ..PublishProperties::default() };
    Publish { topic, payload, properties, ..Publish::default() }
}

impl Answers {
    /// Appends the PUBLISH of an open one.
    pub(super) fn write(
        &self,
        number: u32,
        version: Version,
        (packet_id, dup): (Option<PacketId>, bool),
        out: &mut Vec<u8>,
    ) {
        let Some(answer) = self.open.get(&number) else { return };
        // Invariant: its request came in a packet, and had a topic more.
        let fits = answer.publish(packet_id, dup).encode(version, out);
        debug_assert!(fits.is_ok(), "{fits:?}");
    }
}

impl Worker {
    /// Answers a request with its own payload, at the QoS at which it came.
    pub(super) fn answer(
        &mut self,
        net: &mut Net<Self>,
        local: usize,
        request: &Publish<'_>,
    ) -> Result<(), Failure> {
        let Some(topic) = request.properties.response_topic else { return Ok(()) };
        let client = &mut self.clients[local];
        let Some(conn) = client.conn else { return Ok(()) };
        if request.qos == QoS::AtMostOnce {
            self.traffic.packets += 1;
            let answer = publish(topic, request.payload, request.properties.correlation_data);
            return answer.encode(client.version, net.out(conn).as_vec_mut()).map_err(|error| {
                Failure::Protocol(format!("a request without an answer: {error}"))
            });
        }
        let waiting_max = self.common.plan.groups[client.group].waiting_max as usize;
        let Some(answers) = client.answers.as_deref_mut() else { return Ok(()) };
        let answer = Answer::to(request, topic);
        let bytes = answers.waiting_bytes + answer.bytes();
        if answers.waiting.len() >= waiting_max || bytes > WAITING_BYTES_MAX {
            self.recorder.cell(client.cell).dropped += 1;
            self.verifier.owe_answers();
            return Ok(());
        }
        answers.waiting_bytes = bytes;
        answers.waiting.push_back(answer);
        Ok(())
    }

    /// Sends answers that wait, as many as fit into the client's inflight window.
    pub(super) fn send_answers(
        &mut self,
        net: &mut Net<Self>,
        local: usize,
        conn: ConnId,
        now_ns: u64,
    ) {
        let client = &mut self.clients[local];
        let Some(answers) = client.answers.as_deref_mut() else { return };
        while client.state.is_up() && client.session.can_publish() {
            let Some(answer) = answers.waiting.pop_front() else { return };
            answers.waiting_bytes -= answer.bytes();
            let (number, qos) = (answers.next, answer.qos);
            answers.next = number.wrapping_add(1);
            answers.open.insert(number, answer);
            self.totals.unacked += 1;
            self.traffic.packets += 1;
            // What is queued instead comes from `poll_transmit`.
            if let client::Publish::Send(Transmit::Publish { packet_id, dup, .. }) =
                client.session.publish(now_ns, qos, Published::Answer(number))
            {
                let out = net.out(conn).as_vec_mut();
                answers.write(number, client.version, (packet_id, dup), out);
            }
        }
    }

    /// The broker's last word on an answer: `refused` or taken.
    pub(super) fn answered(&mut self, local: usize, number: u32, refused: bool) {
        self.totals.unacked -= 1;
        if let Some(answers) = self.clients[local].answers.as_deref_mut() {
            answers.open.remove(&number);
        }
        if refused {
            self.verifier.owe_answers();
        }
    }
}
