//! Messages between shards: one lock and at most one wake-up per batch and target.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mio::{Registry, Token, Waker};

/// The sender's shard number of mails posted by threads that are not loops.
pub const OUTSIDE: usize = usize::MAX;

/// Empty batches kept for reuse per shard.
const SPARE_BATCHES_MAX: usize = 64;

pub(crate) struct Batch<M> {
    pub(crate) from: usize,
    mails: VecDeque<M>,
}

struct Queue<M> {
    batches: Vec<Batch<M>>,
    /// Emptied by the receiver, reused by senders.
    spare: Vec<VecDeque<M>>,
    /// The loop has ended.
    closed: bool,
}

/// The queue between the senders and the receiver of one shard. Aligned so that two shards never
/// write to the same pair of cache lines.
#[repr(align(128))]
struct Inbox<M> {
    /// Mails posted and not delivered yet.
    len: AtomicUsize,
    /// The receiver sleeps or is about to, and has to be woken by the sender that clears this flag.
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

    /// Queues a batch and wakes the receiver if it sleeps. Returns an empty batch for reuse, or
    /// `None` if the loop has ended. `woken` counts wake-ups.
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
        // The receiver sets `sleeping` and then reads `len`; here the order is reversed. All four
        // accesses are sequentially consistent, so at least one side sees the other's write.
        if self.sleeping.load(Ordering::SeqCst)
            && self.sleeping.swap(false, Ordering::SeqCst)
            && let Some(waker) = self.waker.get()
        {
            *woken += 1;
            // Fails only when the event counter overflows; there is one wake-up per sleep.
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

/// The receiving end of one shard, owned by its loop.
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

/// Posts mail to loops from any thread.
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
    /// Number of shards that this can post to.
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

/// A loop's side of all mailboxes: mails that it will send and mails that it has collected.
pub(crate) struct MailRoom<M> {
    mailbox: Mailbox<M>,
    outgoing: Vec<VecDeque<M>>,
    /// Shards whose `outgoing` is not empty.
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

    /// Queues a mail for `shard`; it is sent at the end of the turn.
    #[inline]
    pub(crate) fn post(&mut self, shard: usize, mail: M) {
        let outgoing = &mut self.outgoing[shard];
        if outgoing.is_empty() {
            self.targets.push(shard);
        }
        outgoing.push_back(mail);
    }

    /// Mails on their way to `shard`, including those that this loop has not sent yet.
    pub(crate) fn len(&self, shard: usize) -> usize {
        let posted = self.mailbox.inboxes[shard].len.load(Ordering::Relaxed);
        posted + self.outgoing[shard].len()
    }

    /// Sends the mails of this turn.
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

    /// Collects the mails that have arrived and returns how many can be taken.
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

    /// Takes the next collected mail and its sender.
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

    /// Removes batches that have arrived and were not collected. They stay counted as posted, but
    /// can be collected only after [`return_batch`](Self::return_batch).
    #[cfg(feature = "sim")]
    pub(crate) fn withhold(&self, withheld: &mut VecDeque<Batch<M>>) {
        withheld.extend(self.inbox().lock().batches.drain(..));
    }

    /// Makes a withheld batch available.
    #[cfg(feature = "sim")]
    pub(crate) fn return_batch(&self, batch: Batch<M>) {
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

    /// This loop is awake: senders need not wake it.
    pub(crate) fn awake(&self) {
        self.inbox().sleeping.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
