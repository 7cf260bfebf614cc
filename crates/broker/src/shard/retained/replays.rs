//! The replays of one session: requests to the owners, and the selection from their answers.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_topic::{RetainedCursor, TopicFilter};

use crate::message::{Message, Source};
use crate::subscription::SubscriptionOptions;

/// Bound on the live messages recorded while an answer is pending; far above real rates.
const SEEN_MAX: usize = 65_536;

/// The replays of a session, which takes memory only while there are any.
#[derive(Default)]
pub(in crate::shard) struct SessionReplays(pub(super) Option<Box<Replays>>);

impl SessionReplays {
    /// Whether retained messages are being replayed.
    #[inline]
    pub(in crate::shard) fn are_under_way(&self) -> bool {
        self.0.is_some()
    }
}

/// What is asked and known while retained messages are replayed to a session.
#[derive(Default)]
pub(super) struct Replays {
    /// In progress, in the order of their turns. Those without owners left have only something
    /// pending.
    waiting: VecDeque<Replay>,
    /// Whether a replay may have no owners left: at most one, as pending messages belong to one.
    has_finished: bool,
    next_id: u32,
    /// The owner whose answer is pending.
    asked: Option<usize>,
    /// Arrived messages that wait for the session: at most one answer.
    pending: VecDeque<Pending>,
    /// By owner, the newest version received live since the replays began.
    newest: Vec<u64>,
    /// By topic, retained messages received live that an owner may not know yet.
    seen: HashMap<Arc<str>, Seen, RandomState>,
    /// The newest version of the route map in which one of the subscriptions became visible.
    visible_version: u64,
}

struct Replay {
    id: u32,
    filter: TopicFilter,
    options: SubscriptionOptions,
    visible_version: u64,
    /// Remaining owners, the last one first.
    owners: Vec<Owner>,
    cursor: RetainedCursor,
}

/// An owner to query once all versions up to a given one have arrived there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) shard: usize,
    pub(super) after: u64,
}

/// The next request of a session.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) owner: Owner,
    pub(super) replay: u32,
    pub(super) filter: TopicFilter,
    pub(super) cursor: RetainedCursor,
    pub(super) visible_version: u64,
}

struct Pending {
    replay: u32,
    options: SubscriptionOptions,
    message: Message,
}

#[derive(Clone, Copy)]
struct Seen {
    version: u64,
    routed_version: u64,
    /// The newest replay at that time. Later replays deliver the message again.
    replay: u32,
}

impl Replays {
    /// Starts a replay for a subscription that is visible to routing since `visible_version`.
    pub(super) fn start(
        &mut self,
        filter: TopicFilter,
        options: SubscriptionOptions,
        visible_version: u64,
        owners: Vec<Owner>,
    ) {
        // A new subscription of the same filter starts over.
        self.cancel(&filter);
        self.next_id = self.next_id.wrapping_add(1);
        self.visible_version = self.visible_version.max(visible_version);
        let (id, cursor) = (self.next_id, RetainedCursor::default());
        self.waiting.push_back(Replay { id, filter, options, visible_version, owners, cursor });
    }

    /// The next request, if no answer is pending and no message waits for the session.
    pub(super) fn ask(&mut self) -> Option<Wanted> {
        if self.asked.is_some() || !self.pending.is_empty() {
            return None;
        }
        let replay = self.waiting.iter().find(|r| !r.owners.is_empty())?;
        let owner = *replay.owners.last()?;
        // Versions received live must reach their owner before the request, or older ones might
        // come.
        let newest = self.newest.get(owner.shard).copied().unwrap_or(0);
        let owner = Owner { after: owner.after.max(newest), ..owner };
        self.asked = Some(owner.shard);
        Some(Wanted {
            owner,
            replay: replay.id,
            filter: replay.filter.clone(),
            cursor: replay.cursor.clone(),
            visible_version: replay.visible_version,
        })
    }

    /// Handles an owner's answer. `next` is the position at which the replay continues there, if
    /// any.
    pub(super) fn answered(
        &mut self,
        replay: u32,
        messages: Vec<Message>,
        next: Option<RetainedCursor>,
    ) {
        self.asked = None;
        if let Some(at) = self.waiting.iter().position(|r| r.id == replay) {
            for message in messages {
                if !self.has_seen(&message, replay) {
                    let options = self.waiting[at].options;
                    self.pending.push_back(Pending { replay, options, message });
                }
            }
            let replay = &mut self.waiting[at];
            match next {
                Some(cursor) => replay.cursor = cursor,
                None => {
                    replay.owners.pop();
                    replay.cursor = RetainedCursor::default();
                }
            }
            self.has_finished |= replay.owners.is_empty();
            // The replays alternate, so that a long one does not hold up short ones.
            self.waiting.rotate_left(1);
            self.forget_finished();
        }
        let visible_version = self.visible_version;
        self.seen.retain(|_, seen| seen.routed_version < visible_version);
    }

    /// The next message to deliver, with its subscription options.
    pub(super) fn front(&self) -> Option<(&Message, &SubscriptionOptions)> {
        self.pending.front().map(|next| (&next.message, &next.options))
    }

    pub(super) fn pop_front(&mut self) {
        self.pending.pop_front();
        self.forget_finished();
    }

    fn forget_finished(&mut self) {
        // The replay that was served last is at the back.
        if self.pending.is_empty()
            && std::mem::take(&mut self.has_finished)
            && let Some(at) = self.waiting.iter().rposition(|r| r.owners.is_empty())
        {
            self.waiting.remove(at);
        }
    }

    /// Drops the session's own messages if its subscription has no local set [MQTT-3.8.3-3].
    pub(super) fn skip_own(&mut self, receiver: Source) {
        while self
            .pending
            .front()
            .is_some_and(|next| next.options.no_local && next.message.header().source == receiver)
        {
            self.pop_front();
        }
    }

    /// The session receives a retained message live; `owner` owns its topic.
    pub(super) fn note(&mut self, message: &Message, owner: usize) {
        let header = message.header();
        if self.newest.len() <= owner {
            self.newest.resize(owner + 1, 0);
        }
        self.newest[owner] = self.newest[owner].max(header.retained_version);
        self.pending.retain(|next| {
            next.message.topic() != message.topic()
                || next.message.header().retained_version > header.retained_version
        });
        self.forget_finished();
        // A pending answer may contain an older message. A message routed before the subscription
        // was visible may have arrived through another one, and will be in an answer.
        let is_open = self.asked == Some(owner) || header.routed_version < self.visible_version;
        // With concurrent publishers the older message may arrive last: the newer one wins.
        let is_newest = |seen: &Seen| seen.version <= header.retained_version;
        let is_news = self.seen.get(message.topic()).is_none_or(is_newest);
        if is_open && is_news && self.seen.len() < SEEN_MAX {
            let seen = Seen {
                version: header.retained_version,
                routed_version: header.routed_version,
                replay: self.next_id,
            };
            self.seen.insert(Arc::clone(&header.topic), seen);
        }
    }

    /// Whether `replay` has no newer message of the topic.
    fn has_seen(&self, message: &Message, replay: u32) -> bool {
        self.seen.get(message.topic()).is_some_and(|seen| {
            seen.version >= message.header().retained_version
                && seen.replay.wrapping_sub(replay).cast_signed() >= 0
        })
    }

    /// An unfinished replay continues with other options.
    pub(super) fn change(&mut self, filter: &TopicFilter, options: SubscriptionOptions) {
        let Some(replay) = self.waiting.iter_mut().find(|r| r.filter == *filter) else { return };
        replay.options = options;
        let id = replay.id;
        self.pending.iter_mut().filter(|p| p.replay == id).for_each(|p| p.options = options);
    }

    /// Cancels the replay of a filter and drops its undelivered messages.
    pub(super) fn cancel(&mut self, filter: &TopicFilter) {
        let Some(at) = self.waiting.iter().position(|r| r.filter == *filter) else { return };
        if let Some(replay) = self.waiting.remove(at) {
            self.pending.retain(|next| next.replay != replay.id);
        }
    }

    /// No message is left to deliver and no answer is pending.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.pending.is_empty() && self.asked.is_none()
    }
}
