//! The replays of one session: what to ask the owners for, and what of their answers it still
//! needs.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_topic::{RetainedCursor, TopicFilter};

use crate::message::{Message, Source};
use crate::subscription::SubscriptionOptions;

/// A bound on what is noted while an answer is on its way; far above what fits into that time.
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

    /// What is under way does not concern the session any more.
    pub(in crate::shard) fn end(&mut self) {
        self.0 = None;
    }
}

/// What is asked and known while retained messages are replayed to a session.
#[derive(Default)]
pub(super) struct Replays {
    /// In progress, in the order of their turns. Those without owners left have only something
    /// pending.
    waiting: VecDeque<Replay>,
    /// Whether one of them may have no owners left: one at most, as what is pending is of one.
    has_finished: bool,
    next_id: u32,
    /// The owner whose answer is on its way.
    asked: Option<usize>,
    /// What has arrived and waits until the session takes it: one answer at most.
    pending: VecDeque<Pending>,
    /// By owner, the newest version that came live since the replays began.
    newest: Vec<u64>,
    /// Retained messages that came live and that an owner may not know yet, by topic.
    seen: HashMap<Arc<str>, Seen, RandomState>,
    /// The newest version of the route map in which one of the subscriptions became visible.
    visible_version: u64,
}

struct Replay {
    id: u32,
    filter: TopicFilter,
    options: SubscriptionOptions,
    visible_version: u64,
    /// Owners still to ask, the last one first.
    owners: Vec<Owner>,
    cursor: RetainedCursor,
}

/// An owner to ask, once everything up to a version has arrived there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) shard: usize,
    pub(super) after: u64,
}

/// What a session wants next.
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
    /// The newest replay then. Later ones owe the message again.
    replay: u32,
}

impl Replays {
    /// A subscription, visible to routing since `visible_version`, wants what is retained.
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

    /// What to ask for next, if nothing is on its way or waits to be taken.
    pub(super) fn ask(&mut self) -> Option<Wanted> {
        if self.asked.is_some() || !self.pending.is_empty() {
            return None;
        }
        let replay = self.waiting.iter().find(|r| !r.owners.is_empty())?;
        let owner = *replay.owners.last()?;
        // What came live must be at its owner before that is asked, or something older might come.
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

    /// An owner's answer. `next` says where that replay goes on there, if it does.
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
            // The others have their turns, so that a long replay does not hold up short ones.
            self.waiting.rotate_left(1);
            self.forget_finished();
        }
        let visible_version = self.visible_version;
        self.seen.retain(|_, seen| seen.routed_version < visible_version);
    }

    /// The next message to deliver, and how it was subscribed to.
    pub(super) fn front(&self) -> Option<(&Message, &SubscriptionOptions)> {
        self.pending.front().map(|next| (&next.message, &next.options))
    }

    pub(super) fn pop_front(&mut self) {
        self.pending.pop_front();
        self.forget_finished();
    }

    fn forget_finished(&mut self) {
        // Whose turn was last stands far behind.
        if self.pending.is_empty()
            && std::mem::take(&mut self.has_finished)
            && let Some(at) = self.waiting.iter().rposition(|r| r.owners.is_empty())
        {
            self.waiting.remove(at);
        }
    }

    /// Lets go of messages of the session's own that its subscription does not want
    /// [MQTT-3.8.3-3].
    pub(super) fn skip_own(&mut self, receiver: Source) {
        while self
            .pending
            .front()
            .is_some_and(|next| next.options.no_local && next.message.header().source == receiver)
        {
            self.pop_front();
        }
    }

    /// The session gets a retained message live; `owner` is its topic's.
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
        // An owner that is asked may answer with what is older. A message routed before the
        // subscription was visible may have come by it all the same, and will be in an answer.
        let is_open = self.asked == Some(owner) || header.routed_version < self.visible_version;
        // Of publishers at the same time the older message may come last: the newer one counts.
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

    /// Whether `replay` has nothing new to tell about the topic.
    fn has_seen(&self, message: &Message, replay: u32) -> bool {
        self.seen.get(message.topic()).is_some_and(|seen| {
            seen.version >= message.header().retained_version
                && seen.replay.wrapping_sub(replay).cast_signed() >= 0
        })
    }

    /// A replay under way goes on with other options.
    pub(super) fn change(&mut self, filter: &TopicFilter, options: SubscriptionOptions) {
        let Some(replay) = self.waiting.iter_mut().find(|r| r.filter == *filter) else { return };
        replay.options = options;
        let id = replay.id;
        self.pending.iter_mut().filter(|p| p.replay == id).for_each(|p| p.options = options);
    }

    /// What the replay of a filter has not delivered is not wanted any more.
    pub(super) fn cancel(&mut self, filter: &TopicFilter) {
        let Some(at) = self.waiting.iter().position(|r| r.filter == *filter) else { return };
        if let Some(replay) = self.waiting.remove(at) {
            self.pending.retain(|next| next.replay != replay.id);
        }
    }

    /// Nothing is to be delivered and no answer is on its way.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.pending.is_empty() && self.asked.is_none()
    }
}
