use std::thread;
use std::time::Duration;

use mio::{Events, Poll};

use super::*;

const WAKE: Token = Token(1);

/// A minimal loop that sleeps and takes mail.
struct Sleeper {
    poll: Poll,
    events: Events,
    room: MailRoom<u64>,
    sleeps: u64,
}

impl Sleeper {
    fn new(mailbox: Mailbox<u64>) -> Self {
        let poll = Poll::new().unwrap();
        let room = MailRoom::new(mailbox);
        room.register(poll.registry(), WAKE).unwrap();
        Self { poll, events: Events::with_capacity(8), room, sleeps: 0 }
    }

    /// Sleeps until there is mail, then takes it. A lost wake-up shows after a minute.
    fn take(&mut self) -> Vec<(usize, u64)> {
        if self.room.prepare_sleep() {
            self.sleeps += 1;
            self.poll.poll(&mut self.events, Some(Duration::from_secs(60))).unwrap();
            assert!(!self.events.is_empty(), "a wake-up was lost");
            self.room.awake();
        }
        let count = self.room.collect();
        let mails: Vec<_> = (0..count).filter_map(|_| self.room.take()).collect();
        assert_eq!(mails.len(), count);
        self.room.delivered(count);
        mails
    }
}

#[test]
fn a_batch_wakes_a_sleeper_once_and_an_awake_loop_never() {
    let mut boxes = mailboxes::<u64>(2);
    let mut receiver = Sleeper::new(boxes.pop().unwrap());
    let mut sender = MailRoom::new(boxes.pop().unwrap());
    let post = |sender: &mut MailRoom<u64>| {
        for mail in 0..100 {
            sender.post(1, mail);
        }
        sender.send();
    };
    post(&mut sender);
    post(&mut sender);
    assert_eq!(sender.woken, 0, "the receiver was awake");
    assert_eq!(sender.len(1), 200);
    assert_eq!(receiver.take().len(), 200);
    assert_eq!(receiver.sleeps, 0);
    assert_eq!(sender.len(1), 0);

    assert!(receiver.room.prepare_sleep());
    post(&mut sender);
    post(&mut sender);
    assert_eq!(sender.woken, 1, "one wake-up is enough");
    assert_eq!(receiver.take().len(), 200);
}

#[test]
fn mail_of_one_sender_keeps_its_order_and_no_wake_up_is_lost() {
    const MAILS: u64 = 20_000;
    const SENDERS: usize = 3;
    let mut boxes = mailboxes::<u64>(SENDERS + 1);
    let mut receiver = Sleeper::new(boxes.remove(0));
    let senders: Vec<_> = boxes
        .into_iter()
        .map(|mailbox| {
            thread::spawn(move || {
                let mut room = MailRoom::new(mailbox);
                let mut mail = 0;
                while mail < MAILS {
                    // Batches of different lengths; sometimes the receiver falls asleep.
                    for _ in 0..=mail % 7 {
                        room.post(0, mail);
                        mail += 1;
                    }
                    room.send();
                    if mail % 64 == 0 {
                        thread::yield_now();
                    }
                }
                mail
            })
        })
        .collect();
    let mut next = [0u64; SENDERS + 1];
    let mut total = 0;
    while next[1..].iter().any(|&next| next < MAILS) {
        for (from, mail) in receiver.take() {
            assert_eq!(mail, next[from], "from {from}");
            next[from] += 1;
            total += 1;
        }
    }
    let sent: u64 = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
    while total < sent {
        total += receiver.take().len() as u64;
    }
    assert_eq!(receiver.room.len(0), 0);
}

#[test]
fn mail_from_outside_wakes_the_loop_and_has_no_shard() {
    let mut boxes = mailboxes::<u64>(1);
    let mailbox = boxes.remove(0);
    let remote = mailbox.remote();
    let mut receiver = Sleeper::new(mailbox);
    let sender = thread::spawn(move || {
        while !remote.inboxes[0].sleeping.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        assert!(remote.post(0, 7));
        assert!(!remote.post(1, 7), "there is no such shard");
        remote
    });
    assert_eq!(receiver.take(), [(OUTSIDE, 7)]);
    assert_eq!(receiver.sleeps, 1);
    let remote = sender.join().unwrap();
    drop(receiver);
    assert!(!remote.post(0, 8), "the loop has ended");
}

#[test]
fn mail_for_a_loop_that_has_ended_is_dropped() {
    use std::sync::Weak;

    let mut boxes = mailboxes::<Arc<u64>>(2);
    let receiver = boxes.pop().unwrap();
    let mut sender = MailRoom::new(boxes.pop().unwrap());
    let mut post = || -> Weak<u64> {
        let mail = Arc::new(1);
        let weak = Arc::downgrade(&mail);
        sender.post(1, mail);
        sender.send();
        weak
    };
    let before = post();
    assert_eq!(before.strong_count(), 1);
    drop(receiver);
    assert_eq!(before.strong_count(), 0);
    assert_eq!(post().strong_count(), 0);
    assert_eq!(sender.len(1), 0);
}

#[test]
fn empty_batches_are_reused() {
    let mut boxes = mailboxes::<u64>(2);
    let mut receiver = Sleeper::new(boxes.pop().unwrap());
    let mut sender = MailRoom::new(boxes.pop().unwrap());
    for round in 0..100u64 {
        for mail in 0..50 {
            sender.post(1, mail);
        }
        sender.send();
        assert_eq!(receiver.take().len(), 50);
        if round > 3 {
            assert!(sender.outgoing[1].capacity() >= 50);
        }
    }
}
