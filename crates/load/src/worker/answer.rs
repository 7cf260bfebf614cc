//! Answers of responders, kept until the broker has acknowledged them.

use std::collections::{HashMap, VecDeque};

use tacho_codec::{PacketId, Publish, PublishProperties, QoS, Version};
use tacho_net::{ConnId, Net};
use tacho_session::{Transmit, client};

use super::message::Published;
use super::{Failure, Worker};

/// Bound of the answers, in bytes, that one client queues while its inflight window is full.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// The answers of one client.
#[derive(Debug, Default)]
pub(super) struct Answers {
    next: u32,
    /// Unacknowledged answers of QoS 1 and 2, by number.
    open: HashMap<u32, Answer>,
    /// Answers that wait for the inflight window, oldest first.
    waiting: VecDeque<Answer>,
    waiting_bytes: usize,
}

/// An answer of QoS 1 or 2, with its own copy of the data, which outlives its request for
/// retransmissions.
#[derive(Debug)]
struct Answer {
    qos: QoS,
    topic: Box<str>,
    payload: Box<[u8]>,
    correlation: Option<Box<[u8]>>,
}

impl Answer {
    fn for_request(request: &Publish<'_>, topic: &str) -> Self {
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
    /// Appends the PUBLISH of an unacknowledged answer.
    pub(super) fn write(
        &self,
        number: u32,
        version: Version,
        packet_id: Option<PacketId>,
        dup: bool,
        out: &mut Vec<u8>,
    ) {
        let Some(answer) = self.open.get(&number) else { return };
        // Invariant: its request fitted into a packet and had one more topic.
        let fits = answer.publish(packet_id, dup).encode(version, out);
        debug_assert!(fits.is_ok(), "{fits:?}");
    }
}

impl Worker {
    /// Answers a request with its own payload and QoS.
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
            return answer
                .encode(client.version, net.out(conn).as_vec_mut())
                .map_err(|error| Failure::Protocol(format!("cannot answer a request: {error}")));
        }
        let waiting_max = self.context.plan.groups[client.group].waiting_max as usize;
        let Some(answers) = client.answers.as_deref_mut() else { return Ok(()) };
        let answer = Answer::for_request(request, topic);
        let bytes = answers.waiting_bytes + answer.bytes();
        if answers.waiting.len() >= waiting_max || bytes > WAITING_BYTES_MAX {
            self.recorder.cell(client.cell).dropped += 1;
            self.verifier.note_given_up_answer();
            return Ok(());
        }
        answers.waiting_bytes = bytes;
        answers.waiting.push_back(answer);
        Ok(())
    }

    /// Sends queued answers, as many as the client's inflight window allows.
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
            // If the session queues it, `poll_transmit` returns it later.
            if let client::Publish::Send(Transmit::Publish { packet_id, dup, .. }) =
                client.session.publish(now_ns, qos, Published::Answer(number))
            {
                let out = net.out(conn).as_vec_mut();
                answers.write(number, client.version, packet_id, dup, out);
            }
        }
    }

    /// The last acknowledgement of an answer: `refused` or accepted.
    pub(super) fn answered(&mut self, local: usize, number: u32, refused: bool) {
        self.totals.unacked -= 1;
        if let Some(answers) = self.clients[local].answers.as_deref_mut() {
            answers.open.remove(&number);
        }
        if refused {
            self.verifier.note_given_up_answer();
        }
    }
}
