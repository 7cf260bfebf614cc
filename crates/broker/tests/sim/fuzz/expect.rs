//! What the specification lets a server do with what it was sent: a model of one connection that
//! decodes the same bytes.

use tacho_codec::{
    Connect, Direction, Packet, PacketId, QoS, Version, split_frame, without_bridge_bit,
};
use tacho_topic::Filter;

/// An answer that must come, or the end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    PubAck(PacketId),
    PubRec(PacketId),
    PubComp(PacketId),
    SubAck(PacketId, usize),
    UnsubAck(PacketId),
    PingResp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// CONNECT has not been sent.
    Fresh,
    /// CONNECT was sent, its answer has not come.
    Asked,
    Connected,
    /// The client has sent something after which the broker must close.
    Doomed,
    /// The client has said goodbye.
    Left,
}

/// What is to come from the broker.
#[derive(Debug)]
pub(super) struct Expectation {
    version: Version,
    state: State,
    /// Bytes sent that are no whole packet yet.
    pending: Vec<u8>,
    owed: Vec<Answer>,
    /// Closing would not be wrong.
    may_close: bool,
    /// The client takes so small packets only that answers may be missing.
    cramped: bool,
    keep_alive: bool,
    /// The broker has said its last word.
    dismissed: bool,
    /// What was sent, for the reader of a failure.
    history: Vec<String>,
}

impl Expectation {
    /// `version` is that of the CONNECT to come, unless another one is sent.
    pub(super) fn new(version: Version) -> Self {
        Self {
            version,
            state: State::Fresh,
            pending: Vec::new(),
            owed: Vec::new(),
            may_close: false,
            cramped: false,
            keep_alive: false,
            dismissed: false,
            history: Vec::new(),
        }
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Keep-alives and the time for CONNECT may be over.
    pub(super) fn time_passed(&mut self) {
        self.may_close |= self.keep_alive || matches!(self.state, State::Fresh | State::Asked);
    }

    /// Another client may have used this client identifier.
    pub(super) fn may_be_closed(&mut self) {
        self.may_close = true;
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.state == State::Fresh
    }

    /// The client ends the connection.
    pub(super) fn leaves(&mut self) {
        self.state = State::Left;
    }

    /// These bytes are sent.
    pub(super) fn sends(&mut self, bytes: &[u8], packet_size_max: u32) {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut used = 0;
        while !matches!(self.state, State::Doomed | State::Left) && used < pending.len() {
            // [MQTT-3.1.0-1]: one byte tells.
            if self.state == State::Fresh && pending[used] != 0x10 {
                self.state = State::Doomed;
                break;
            }
            match split_frame(&pending[used..], packet_size_max) {
                Err(_) => self.state = State::Doomed,
                Ok(None) => break,
                Ok(Some(frame)) => {
                    let bytes = &pending[used..][..frame.total_len];
                    used += frame.total_len;
                    if self.state == State::Fresh {
                        self.sends_first(bytes, packet_size_max);
                    } else {
                        match Packet::decode(&frame, self.version, Direction::ToServer) {
                            Ok(packet) => self.sends_packet(&packet),
                            Err(_) => self.state = State::Doomed,
                        }
                    }
                }
            }
        }
        self.pending = pending[used..].to_vec();
    }

    /// The first packet, which a bridge marks with a bit that is no part of the specification.
    fn sends_first(&mut self, bytes: &[u8], packet_size_max: u32) {
        let plain = without_bridge_bit(bytes);
        // Invariant: it was split off with these limits, and the bit does not change its length.
        let frame = split_frame(plain.as_deref().unwrap_or(bytes), packet_size_max);
        let frame = frame.expect("is a frame").expect("is whole");
        self.connects(&Connect::decode(&frame));
        // The answer to a wrong one is in the version that it seems to be.
        self.version = Connect::reply_version(&frame).unwrap_or(self.version);
    }

    fn connects(&mut self, connect: &Result<Connect<'_>, tacho_codec::DecodeError>) {
        self.history.push(format!("{connect:?}"));
        let Ok(connect) = connect else {
            self.state = State::Doomed;
            return;
        };
        self.version = connect.version;
        self.state = State::Asked;
        self.keep_alive = connect.keep_alive_s != 0;
        self.cramped = connect.properties.packet_size_max.is_some_and(|max| max < 512);
        // What may be refused is the broker's to decide.
        self.may_close = connect.properties.authentication_method.is_some()
            || connect.will.is_some()
            || connect.client_id.is_empty()
            || connect.username.is_some()
            || connect.password.is_some()
            || self.cramped;
    }

    fn sends_packet(&mut self, packet: &Packet<'_>) {
        self.history.push(format!("{packet:?}"));
        match packet {
            Packet::Publish(publish) => {
                let properties = &publish.properties;
                // An unknown alias, or text that is none.
                self.may_close |= properties.topic_alias.is_some()
                    || properties.payload_format_utf8.is_some()
                    || properties.response_topic.is_some();
                match (publish.qos, publish.packet_id) {
                    (QoS::AtLeastOnce, Some(id)) => self.owed.push(Answer::PubAck(id)),
                    (QoS::ExactlyOnce, Some(id)) => {
                        self.owed.push(Answer::PubRec(id));
                        // Five exchanges may be open.
                        self.may_close |= self.version.is_v5();
                    }
                    _ => {}
                }
            }
            Packet::PubRel(ack) => self.owed.push(Answer::PubComp(ack.packet_id)),
            // An answer to something else than was asked is an error.
            Packet::PubAck(_) | Packet::PubRec(_) | Packet::PubComp(_) => self.may_close = true,
            Packet::Subscribe(subscribe) => {
                if subscribe.filters.iter().any(|asked| Filter::parse(asked.filter).is_err()) {
                    self.state = State::Doomed;
                    return;
                }
                self.owed.push(Answer::SubAck(subscribe.packet_id, subscribe.filters.len()));
            }
            Packet::Unsubscribe(unsubscribe) => {
                if unsubscribe.filters.iter().any(|filter| Filter::parse(filter).is_err()) {
                    self.state = State::Doomed;
                    return;
                }
                self.owed.push(Answer::UnsubAck(unsubscribe.packet_id));
            }
            Packet::PingReq => self.owed.push(Answer::PingResp),
            Packet::Disconnect(_) => self.state = State::Left,
            // A second CONNECT [MQTT-3.1.0-2], AUTH without a method [MQTT-4.12.0-6].
            _ => self.state = State::Doomed,
        }
    }

    /// The broker says something.
    pub(super) fn hears(&mut self, packet: &Packet<'_>) {
        assert!(!self.dismissed, "{packet:?} after the last word: {self:?}");
        let answer = match packet {
            Packet::ConnAck(connack) => {
                let was_asked = matches!(self.state, State::Asked | State::Doomed | State::Left);
                assert!(was_asked, "CONNACK: {self:?}");
                if connack.reason.is_error() {
                    assert!(!connack.session_present, "[MQTT-3.2.2-6]");
                    self.dismissed = true;
                    let may = self.may_close || self.state != State::Asked;
                    assert!(may, "refused: {connack:?} {self:?}");
                    self.state = State::Doomed;
                } else if self.state == State::Asked {
                    self.state = State::Connected;
                }
                return;
            }
            Packet::Publish(_) | Packet::PubRel(_) => return,
            Packet::Disconnect(disconnect) => {
                assert!(self.version.is_v5(), "a server's DISCONNECT before 5.0: {self:?}");
                assert!(disconnect.reason.is_error(), "{disconnect:?}");
                self.dismissed = true;
                return;
            }
            Packet::PubAck(ack) => Answer::PubAck(ack.packet_id),
            Packet::PubRec(ack) => Answer::PubRec(ack.packet_id),
            Packet::PubComp(ack) => Answer::PubComp(ack.packet_id),
            Packet::SubAck(ack) => Answer::SubAck(ack.packet_id, ack.reasons.len()),
            Packet::UnsubAck(ack) => Answer::UnsubAck(ack.packet_id),
            Packet::PingResp => Answer::PingResp,
            other => panic!("no server sends {other:?}"),
        };
        let Some(at) = self.owed.iter().position(|owed| *owed == answer) else {
            panic!("{answer:?} answers nothing: {self:?}");
        };
        self.owed.remove(at);
    }

    /// Everything that was sent has been handled.
    pub(super) fn check(&mut self, closed: bool) {
        if closed {
            let may = self.may_close || matches!(self.state, State::Doomed | State::Left);
            assert!(may, "closed although nothing was wrong: {self:?}");
            return;
        }
        assert!(
            !matches!(self.state, State::Doomed | State::Left),
            "the connection should have been closed: {self:?}"
        );
        assert!(self.state != State::Asked, "CONNECT without an answer: {self:?}");
        assert!(self.owed.is_empty() || self.cramped, "unanswered: {self:?}");
    }
}
