//! Loading: messages of durable sessions that are not in memory. The queue of an absent client, and
//! the tail of a long queue, hold only the numbers of their messages. The bodies are read back a
//! few at a time, shortly before they are sent, by a thread that may wait for the disk.

use std::collections::VecDeque;
use std::sync::Arc;

use tacho_journal::{MessageId, ReadError};
use tacho_session::BatchSeq;
use tacho_topic::Group;

use super::session::ReadRequest;
use crate::delivery::Body;
use crate::delivery::Place;
use crate::delivery::{ForOne, Owed};
use crate::durable::body;
use crate::durable::reader::LoadRequest;
use crate::keys::{SessionRef, SessionSlot};
use crate::mail::{Loaded, LoadedFor, Read};
use crate::message::Message;
use crate::shard::{Net, Shard};

/// A durable session with as many messages as this in its queue, or without a connection, leaves
/// further ones to the journal until it comes to sending them. With half as many in memory, more
/// are read back.
pub(in crate::shard) const IN_MEMORY_MAX: usize = 128;
/// Messages in one request, and what they may take.
const REQUEST_LEN_MAX: usize = 64;
const REQUEST_BYTES_MAX: u64 = 256 * 1024;
/// Pause before a failed request is repeated.
const AGAIN_NS: u64 = 1_000_000;

/// Requests that found the thread's queue full, and those whose messages were not committed yet:
/// each session has one at most.
#[derive(Default)]
pub(crate) struct Loading {
    /// The time at which each of them is repeated.
    again: VecDeque<(u64, LoadRequest)>,
}

impl Shard {
    /// Asks for the next messages of a session that are not in memory, unless that is under way or
    /// enough of them are.
    #[cold]
    pub(in crate::shard) fn load(&mut self, net: &Net, slot: SessionSlot) {
        let session = &mut self.sessions[slot];
        let in_memory =
            session.machine.queue_len().saturating_sub(session.journal.stored.count as usize);
        if session.journal.stored.request == ReadRequest::UnderWay || session.connection().is_none()
        {
            return;
        }
        // What is in memory may be behind what is not: it came when the queue was short again.
        if in_memory > IN_MEMORY_MAX / 2 && !session.machine.is_starved() {
            return;
        }
        let mut bytes = 0;
        let mut ids = Vec::new();
        for (_, delivery) in session.machine.unloaded().take(REQUEST_LEN_MAX) {
            bytes += u64::from(delivery.size_bytes);
            if bytes > REQUEST_BYTES_MAX && !ids.is_empty() {
                break;
            }
            if let Body::Stored(id) = delivery.message.message {
                ids.push(id);
            }
        }
        if ids.is_empty() {
            // Those that were counted left by other ways: expired, or given to others.
            session.journal.stored.count = 0;
            return;
        }
        session.journal.stored.request = ReadRequest::UnderWay;
        let wanted_for = LoadedFor::Session(self.sessions.reference(self.id, slot));
        self.ask(net, LoadRequest { shard: self.id, wanted_for, ids });
    }

    /// Asks for a message of a shared subscription that a member has left, and that waits in the
    /// group's queue of the journal for that.
    pub(in crate::shard) fn load_for_group(
        &mut self,
        net: &Net,
        group: &Arc<Group>,
        id: MessageId,
        place: Place,
    ) {
        let wanted_for = LoadedFor::Group(Arc::clone(group), place);
        self.ask(net, LoadRequest { shard: self.id, wanted_for, ids: vec![id] });
    }

    fn ask(&mut self, net: &Net, request: LoadRequest) {
        let Some(durable) = &self.shared.durable else { return };
        if let Err(request) = durable.reader.ask(&durable.journal, request) {
            self.ask_later(net, request);
        }
    }

    fn ask_later(&mut self, net: &Net, request: LoadRequest) {
        let due_ns = net.now_ns() + AGAIN_NS;
        self.durability.loading.again.push_back((due_ns, request));
    }

    /// Asks once more for what could not be had before. Says when the next one is due.
    #[inline]
    pub(in crate::shard) fn ask_again(&mut self, net: &Net) -> Option<u64> {
        if self.durability.loading.again.is_empty() {
            return None;
        }
        self.ask_due(net)
    }

    #[cold]
    fn ask_due(&mut self, net: &Net) -> Option<u64> {
        let now_ns = net.now_ns();
        while let Some((_, request)) =
            self.durability.loading.again.pop_front_if(|(due_ns, _)| *due_ns <= now_ns)
        {
            self.ask(net, request);
        }
        self.durability.loading.again.front().map(|(due_ns, _)| *due_ns)
    }

    /// Messages have been read.
    pub(in crate::shard) fn loaded(&mut self, net: &mut Net, loaded: Loaded) {
        let Loaded { wanted_for, messages } = loaded;
        let not_yet: Vec<MessageId> = messages
            .iter()
            .filter(|(_, read)| matches!(read, Err(ReadError::NotYet)))
            .map(|(id, _)| *id)
            .collect();
        match &wanted_for {
            LoadedFor::Session(session) => self.session_loaded(net, *session, &messages),
            LoadedFor::Group(group, place) => {
                self.group_loaded(net, group, *place, &messages);
            }
        }
        if not_yet.is_empty() {
            return;
        }
        if let LoadedFor::Session(session) = wanted_for {
            let Some(slot) = self.sessions.resolve(session) else { return };
            let entry = &mut self.sessions[slot];
            let request = &mut entry.journal.stored.request;
            if std::mem::replace(request, ReadRequest::UnderWay) == ReadRequest::UnderWay {
                return;
            }
        }
        self.ask_later(net, LoadRequest { shard: self.id, wanted_for, ids: not_yet });
    }

    fn session_loaded(&mut self, net: &mut Net, session: SessionRef, messages: &[Read]) {
        let Some(slot) = self.sessions.resolve(session) else { return };
        let mut gone = Vec::new();
        let decoded: Vec<(MessageId, Option<Message>)> = messages
            .iter()
            .filter(|(_, read)| !matches!(read, Err(ReadError::NotYet)))
            .map(|(id, read)| (*id, self.decoded(*id, read)))
            .collect();
        let entry = &mut self.sessions[slot];
        entry.journal.stored.request = ReadRequest::None;
        let mut came = 0;
        // The order is that of the request, unless something has left meanwhile.
        entry.machine.load(REQUEST_LEN_MAX, |seq, copy| {
            let Body::Stored(wanted) = copy.message else { return };
            match decoded.iter().find(|(id, _)| *id == wanted) {
                Some((_, Some(message))) => {
                    copy.message = Body::Here(message.clone());
                    came += 1;
                }
                Some((_, None)) => gone.push(seq),
                None => {}
            }
        });
        entry.journal.stored.left(came);
        for seq in gone {
            self.discard_message(slot, seq);
        }
        self.pump(net, slot);
    }

    fn group_loaded(&mut self, net: &mut Net, group: &Arc<Group>, place: Place, messages: &[Read]) {
        for (id, read) in messages {
            if matches!(read, Err(ReadError::NotYet)) {
                continue;
            }
            let owed = Owed::Place(place);
            match self.decoded(*id, read) {
                Some(message) => self.route_to_group(net, group, ForOne { message, owed }),
                None => self.settle(net, owed, BatchSeq::DONE),
            }
        }
    }

    /// A message as read; one that cannot be had is counted, and said in the log.
    fn decoded(&self, id: MessageId, read: &Result<Arc<[u8]>, ReadError>) -> Option<Message> {
        let durable = self.shared.durable.as_ref()?;
        let why = match read {
            Ok(bytes) => match body::decode(bytes, durable.wall, id) {
                Some(message) => return Some(message),
                None => "it is not understood".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        self.stats.lost_messages_total.increment();
        tracing::error!(shard = self.id, message = id.get(), "a queued message is lost: {why}");
        None
    }

    /// Gives up a message that cannot be had.
    fn discard_message(&mut self, slot: SessionSlot, seq: u64) {
        self.act(slot, |machine, recorder| machine.discard(seq, recorder));
        self.sessions[slot].journal.stored.left(1);
    }

    /// Keeps no more of a session's queue in memory than where its messages are: its client is
    /// gone.
    pub(in crate::shard) fn unload(&mut self, slot: SessionSlot) {
        let session = &mut self.sessions[slot];
        if !session.journal.is_durable() {
            return;
        }
        let mut stored = session.journal.stored.count;
        session.machine.unload(0, |_, copy| {
            if let Some(id) = copy.message.here().and_then(Message::stored) {
                copy.message = Body::Stored(id);
                stored += 1;
            }
        });
        session.journal.stored.count = stored;
    }
}
