//! What was promised to publishers on either side of a bridge, and what came at the other.

use std::collections::BTreeMap;

use tacho_codec::QoS;

use crate::setup::TOPICS;

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Out,
    In,
}

#[derive(Clone, Debug)]
struct Message {
    way: Way,
    publisher: usize,
    topic: usize,
    qos: QoS,
    sends: u32,
    /// What the broker had refused before it was sent first.
    refusals_before: u64,
    /// It was perhaps refused when it was sent first, so it may come behind newer ones.
    comes_late: bool,
    acknowledged: bool,
    refused: bool,
    copies: u32,
    /// Number of further copies allowed, as the remote broker has lost the record of its arrival.
    forgotten: u32,
    /// It may be lost.
    excused: bool,
}

/// All messages of QoS 1 and 2, by number.
#[derive(Default)]
pub(super) struct Promises {
    messages: Vec<Message>,
    /// The newest that has come, of each publisher, topic and QoS.
    newest: BTreeMap<(Way, usize, usize, QoS), u32>,
}

impl Promises {
    pub(super) fn published(&mut self, way: Way, publisher: usize, topic: usize, qos: QoS) -> u32 {
        self.messages.push(Message {
            way,
            publisher,
            topic,
            qos,
            sends: 0,
            refusals_before: 0,
            comes_late: false,
            acknowledged: false,
            refused: false,
            copies: 0,
            forgotten: 0,
            excused: false,
        });
        self.messages.len() as u32 - 1
    }

    pub(super) fn topic_and_qos(&self, id: u32) -> (usize, QoS) {
        let message = &self.messages[id as usize];
        (message.topic, message.qos)
    }

    /// It was written after the broker had refused this number of messages.
    pub(super) fn sent(&mut self, id: u32, refusals: u64) {
        let message = &mut self.messages[id as usize];
        if message.sends == 0 {
            message.refusals_before = refusals;
        }
        message.comes_late |= refusals > message.refusals_before;
        message.sends += 1;
    }

    /// PUBACK or PUBREC came.
    pub(super) fn acknowledged(&mut self, id: u32, refused: bool) {
        let message = &mut self.messages[id as usize];
        message.acknowledged = true;
        message.refused |= refused;
    }

    /// The other broker does not know any more that this came.
    pub(super) fn forgotten(&mut self, id: u32) {
        self.messages[id as usize].forgotten += 1;
    }

    /// It may be taken for another one.
    pub(super) fn excused(&mut self, id: u32) {
        self.messages[id as usize].excused = true;
    }

    /// It comes at its destination, not as a repetition that is known there.
    pub(super) fn came(&mut self, way: Way, id: u32, topic: &str, qos: QoS) {
        let message = self.messages.get_mut(id as usize).expect("it was published");
        assert_eq!(message.way, way, "message {id} {message:?} goes the wrong way");
        assert_eq!(topic, TOPICS[message.topic], "another topic: message {id} {message:?}");
        assert_eq!(qos, message.qos, "another QoS: message {id} {message:?}");
        assert!(message.sends > 0, "message {id} was never sent");
        message.copies += 1;
        let Message { copies, forgotten, .. } = *message;
        assert!(
            qos != QoS::ExactlyOnce || copies <= 1 + forgotten,
            "it comes once more: message {id} {message:?}"
        );
        if copies == 1 && !message.comes_late {
            let key = (way, message.publisher, message.topic, qos);
            let newest = self.newest.entry(key).or_default();
            assert!(id >= *newest, "it comes after {newest}: message {id} {message:?}");
            *newest = id;
        }
    }

    /// Everything has come that was to come.
    pub(super) fn verdict(&self) {
        for (id, message) in self.messages.iter().enumerate() {
            let promised = message.acknowledged && !message.refused && !message.excused;
            assert!(!promised || message.copies > 0, "lost: message {id} {message:?}");
        }
    }
}
