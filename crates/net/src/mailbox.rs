//! Messages between shards: one lock and at most one wake-up per batch and target.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mio::{Registry, Token, Waker};

/// The sender's number of mails that come from outside all loops.
pub const OUTSIDE: usize = usize::MAX;

/// Empty batches kept for reuse per shard.
const SPARE_BATCHES_MAX: usize = 64;

pub(crate) struct Batch<M> {
    pub(crate) from: usize,
    mails: VecDeque<M>,
}

struct Queue<M> {
    batches: Vec<Batch<M>>,
    /// Emptied by the receiver, refilled by senders.
    spare: Vec<VecDeque<M>>,
    /// The loop is gone.
    closed: bool,
}

/// What senders and the receiver of one shard share. Aligned so that two shards never write to the
/// same pair of cache lines.
#[repr(align(128))]
struct Inbox<M> {
    /// Mails posted and not delivered yet.
    len: AtomicUsize,
    /// The receiver sleeps or is about to: it wants to be woken. Whoever clears this flag wakes it.
    sleeping: AtomicBool,
    waker: OnceLock<Waker>,
    queue: Mutex<Queue<M>>,
}

impl<M> Inbox<M> {
    fn new() -> Self {
        Self {
            len: AtomicUsize::new(0),
            sleeping: AtomicBool::new(false),
            waker: OnceLock::new(),
            queue: Mutex::new(Queue { batches: Vec::new(), spare: Vec::new(), closed: false }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<M>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a batch in and wakes the receiver if it sleeps. Returns an empty batch for the next
    /// time, or `None` if the loop is gone. `woken` counts wake-ups.
    fn put(&self, batch: Batch<M>, woken: &mut u64) -> Option<VecDeque<M>> {
        let len = batch.mails.len();
        let spare = {
            let mut queue = self.lock();
            if queue.closed {
                return None;
            }
            queue.batches.push(batch);
            self.len.fetch_add(len, Ordering::SeqCst);
            queue.spare.pop()
        };
        // The receiver sets `sleeping` and then looks at `len`; here it is the other way round.
        // All four are sequentially consistent, so one of the two sides sees the other.
        if self.sleeping.load(Ordering::SeqCst)
            && self.sleeping.swap(false, Ordering::SeqCst)
            && let Some(waker) = self.waker.get()
        {
            *woken += 1;
            // The event counter cannot overflow: it is woken once per sleep.
            let _ = waker.wake();
        }
        Some(spare.unwrap_or_default())
    }
}

/// The mailboxes of `shards` loops that can reach each other, one for each [`Loop`](crate::Loop).
#[must_use]
pub fn mailboxes<M: Send + 'static>(shards: usize) -> Vec<Mailbox<M>> {
    let inboxes: Arc<[Inbox<M>]> = (0..shards).map(|_| Inbox::new()).collect();
    (0..shards).map(|shard| Mailbox { shard, inboxes: Arc::clone(&inboxes) }).collect()
}

/// The receiving end of one shard; becomes part of its loop.
pub struct Mailbox<M> {
    shard: usize,
    inboxes: Arc<[Inbox<M>]>,
}

impl<M> Mailbox<M> {
    /// The number of this shard.
    #[must_use]
    pub fn shard(&self) -> usize {
        self.shard
    }

    /// The number of shards that can reach each other.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.inboxes.len()
    }

    /// A sender for threads that are not loops.
    #[must_use]
    pub fn remote(&self) -> Remote<M> {
        Remote { inboxes: Arc::clone(&self.inboxes) }
    }
}

impl<M> Drop for Mailbox<M> {
    fn drop(&mut self) {
        let inbox = &self.inboxes[self.shard];
        let (batches, spare) = {
            let mut queue = inbox.lock();
            queue.closed = true;
            (std::mem::take(&mut queue.batches), std::mem::take(&mut queue.spare))
        };
        inbox.len.store(0, Ordering::SeqCst);
        // Mails may own anything; they are dropped outside the lock.
        drop((batches, spare));
    }
}

impl<M> std::fmt::Debug for Mailbox<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox").field("shard", &self.shard).finish_non_exhaustive()
    }
}

/// Posts mail to loops from any thread, for instance from a signal handler's thread.
pub struct Remote<M> {
    inboxes: Arc<[Inbox<M>]>,
}

impl<M> Clone for Remote<M> {
    fn clone(&self) -> Self {
        Self { inboxes: Arc::clone(&self.inboxes) }
    }
}

impl<M> std::fmt::Debug for Remote<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("shards", &self.inboxes.len()).finish()
    }
}

impl<M> Remote<M> {
    /// Number of shards that can be reached.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.inboxes.len()
    }

    /// Posts one mail and wakes the loop if it sleeps. It arrives with [`OUTSIDE`] as its sender.
    /// False if there is no such shard or its loop has ended; the mail is then dropped.
    pub fn post(&self, shard: usize, mail: M) -> bool {
        let Some(inbox) = self.inboxes.get(shard) else { return false };
        let batch = Batch { from: OUTSIDE, mails: VecDeque::from([mail]) };
        inbox.put(batch, &mut 0).is_some()
    }

    /// Mails posted to this shard and not delivered yet.
    #[must_use]
    pub fn mailbox_len(&self, shard: usize) -> usize {
        self.inboxes.get(shard).map_or(0, |inbox| inbox.len.load(Ordering::Relaxed))
    }
}

/// A loop's side of all mailboxes: what it is about to post and what it has collected.
pub(crate) struct MailRoom<M> {
    mailbox: Mailbox<M>,
    outgoing: Vec<VecDeque<M>>,
    /// Shards with something in `outgoing`.
    targets: Vec<usize>,
    /// Collected and not delivered yet.
    pending: VecDeque<Batch<M>>,
    pending_len: usize,
    collecting: Vec<Batch<M>>,
    emptied: Vec<VecDeque<M>>,
    /// Wake-ups sent.
    pub(crate) woken: u64,
}

impl<M> MailRoom<M> {
    pub(crate) fn new(mailbox: Mailbox<M>) -> Self {
        Self {
            outgoing: (0..mailbox.shards()).map(|_| VecDeque::new()).collect(),
            mailbox,
            targets: Vec::new(),
            pending: VecDeque::new(),
            pending_len: 0,
            collecting: Vec::new(),
            emptied: Vec::new(),
            woken: 0,
        }
    }

    /// Lets senders wake this loop. To be called once.
    pub(crate) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        let waker = Waker::new(registry, token)?;
        self.inbox().waker.set(waker).map_err(|_| io::ErrorKind::AlreadyExists.into())
    }

    fn inbox(&self) -> &Inbox<M> {
        &self.mailbox.inboxes[self.mailbox.shard]
    }

    pub(crate) fn shard(&self) -> usize {
        self.mailbox.shard
    }

    pub(crate) fn shards(&self) -> usize {
        self.outgoing.len()
    }

    /// Collects a mail for `shard`, to be sent at the end of the turn.
    #[inline]
    pub(crate) fn post(&mut self, shard: usize, mail: M) {
        let outgoing = &mut self.outgoing[shard];
        if outgoing.is_empty() {
            self.targets.push(shard);
        }
        outgoing.push_back(mail);
    }

    /// Mails on their way to `shard`, as far as they are visible here.
    pub(crate) fn len(&self, shard: usize) -> usize {
        let posted = self.mailbox.inboxes[shard].len.load(Ordering::Relaxed);
        posted + self.outgoing[shard].len()
    }

    /// Sends what the turn has collected.
    pub(crate) fn send(&mut self) {
        for shard in self.targets.drain(..) {
            let mails = std::mem::take(&mut self.outgoing[shard]);
            let from = self.mailbox.shard;
            let batch = Batch { from, mails };
            let inbox = &self.mailbox.inboxes[shard];
            if let Some(spare) = inbox.put(batch, &mut self.woken) {
                self.outgoing[shard] = spare;
            }
        }
    }

    /// True if mail waits for this loop.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.inbox().len.load(Ordering::SeqCst) > 0
    }

    /// Collects what has arrived and returns how many mails wait to be taken.
    pub(crate) fn collect(&mut self) -> usize {
        let inbox = &self.mailbox.inboxes[self.mailbox.shard];
        if inbox.len.load(Ordering::SeqCst) > self.pending_len {
            {
                let mut queue = inbox.lock();
                std::mem::swap(&mut queue.batches, &mut self.collecting);
                let room = SPARE_BATCHES_MAX.saturating_sub(queue.spare.len());
                let keep = self.emptied.len().min(room);
                queue.spare.extend(self.emptied.drain(..keep));
            }
            self.emptied.clear();
            for batch in self.collecting.drain(..) {
                self.pending_len += batch.mails.len();
                self.pending.push_back(batch);
            }
        }
        self.pending_len
    }

    /// Takes the next mail that was collected.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(usize, M)> {
        loop {
            let batch = self.pending.front_mut()?;
            if let Some(mail) = batch.mails.pop_front() {
                self.pending_len -= 1;
                return Some((batch.from, mail));
            }
            if let Some(batch) = self.pending.pop_front() {
                self.emptied.push(batch.mails);
            }
        }
    }

    /// Tells senders that `count` mails were taken.
    pub(crate) fn delivered(&self, count: usize) {
        self.inbox().len.fetch_sub(count, Ordering::SeqCst);
    }

    /// Takes back what has arrived and was not collected: the mails stay counted as posted, but
    /// only what `give` puts in again can be collected.
    #[cfg(feature = "sim")]
    pub(crate) fn withhold(&self, withheld: &mut VecDeque<Batch<M>>) {
        withheld.extend(self.inbox().lock().batches.drain(..));
    }

    /// The counterpart of `withhold`.
    #[cfg(feature = "sim")]
    pub(crate) fn give(&self, batch: Batch<M>) {
        self.inbox().lock().batches.push(batch);
    }

    /// Announces that this loop is about to sleep. False if there is mail: it must not.
    pub(crate) fn prepare_sleep(&self) -> bool {
        let inbox = self.inbox();
        inbox.sleeping.store(true, Ordering::SeqCst);
        if inbox.len.load(Ordering::SeqCst) > 0 {
            inbox.sleeping.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }

    /// This loop is awake: nobody needs to wake it.
    pub(crate) fn awake(&self) {
        self.inbox().sleeping.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
