//! The loop on real sockets: waits for events and takes turns.

use std::io;
use std::time::Duration;

use mio::{Events, Poll, Token};

use crate::alarm::Alarm;
use crate::batch::WriteBatch;
use crate::clock;
use crate::config::LoopConfig;
use crate::conn::{Conn, Phase};
use crate::cpus::bind_to_cpus;
use crate::listener::{Accepted, Listener, Reserve, index_of};
use crate::mailbox::{MailRoom, Mailbox};
use crate::net::{Handler, Net, Next};
use crate::reading::ReadBuffer;
use crate::stream::Stream;
use crate::turn::NEWCOMER_UNITS;

/// Tokens of connections are their indices; other tokens count down from the largest number.
const WAKE: Token = Token(usize::MAX);
const ALARM: Token = Token(usize::MAX - 1);
/// While this many newcomers wait to be served, further peers stay in the kernel's backlog.
const NEWCOMERS_WAITING_MAX: usize = 1024;

/// One event loop; [`run`](Self::run) drives a [`Handler`] on the current thread.
pub struct Loop<H: Handler> {
    poll: Poll,
    events: Events,
    alarm: Alarm,
    reserve: Reserve,
    buffer: ReadBuffer,
    net: Net<H>,
    spin: bool,
    /// The thread's timer slack was minimised, for [`Next::Rest`].
    slack_minimised: bool,
    cpu: Option<usize>,
    batch_writes: bool,
}

impl<H: Handler> Loop<H> {
    /// Creates a loop; it may be moved to its thread afterwards.
    ///
    /// # Errors When the system provides no descriptors for the poll, the timer or the listeners,
    /// or when there are too many listeners.
    pub fn new(mut config: LoopConfig, mailbox: Mailbox<H::Mail>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        let mail = MailRoom::new(mailbox);
        mail.register(registry, WAKE)?;
        let alarm = Alarm::new(registry, ALARM)?;
        let listeners = std::mem::take(&mut config.listeners);
        let mut net = Net::new(&config, mail, Some(registry.try_clone()?), clock::now_ns());
        for (index, socket) in listeners.into_iter().enumerate() {
            net.listen(index, socket)?;
        }
        Ok(Self {
            events: Events::with_capacity(config.events_per_turn_max.max(1)),
            alarm,
            reserve: Reserve::new(),
            buffer: ReadBuffer::new(net.limits.read_buffer_bytes),
            net,
            poll,
            spin: config.spin,
            slack_minimised: false,
            cpu: config.cpu,
            batch_writes: config.batch_writes,
        })
    }

    /// Takes turns until the handler calls [`Net::stop`].
    ///
    /// # Errors
    /// When the thread cannot be pinned to its CPU, or when waiting for events fails.
    pub fn run(mut self, handler: &mut H) -> io::Result<()> {
        if let Some(cpu) = self.cpu {
            bind_to_cpus(&[cpu])?;
        }
        if self.batch_writes {
            // On this thread, to which it belongs.
            self.net.batch = WriteBatch::new().ok().map(Box::new);
        }
        self.net.now_ns = clock::now_ns();
        handler.started(&mut self.net);
        let mut next = Next::Again;
        loop {
            self.wait(next, handler)?;
            self.net.begin_turn(clock::now_ns());
            next = self.turn(handler);
            if self.net.stopping {
                return Ok(());
            }
        }
    }

    fn turn(&mut self, handler: &mut H) -> Next {
        self.record_events();
        let reserve = &mut self.reserve;
        self.net.turn(handler, &mut self.buffer, |net, handler| accept(net, handler, reserve))
    }

    /// Waits for events, or polls once if there is work already.
    fn wait(&mut self, next: Next, handler: &mut H) -> io::Result<()> {
        if let Next::Rest { until_ns, polls, .. } = next
            && !self.spin
        {
            self.rest(until_ns, polls);
        }
        let deadline_ns = self.deadline_ns(next);
        let has_work = deadline_ns <= self.net.now_ns || self.net.is_busy();
        if std::mem::take(&mut self.net.tells_idle) && !has_work {
            self.poll_now()?;
            if !self.events.is_empty() || self.net.mail.has_mail() {
                return Ok(());
            }
            handler.idle(&mut self.net);
        }
        if self.spin || has_work || !self.net.mail.prepare_sleep() {
            self.poll_now()
        } else {
            self.net.counters.sleeps += 1;
            self.net.end_turn(clock::now_ns());
            let timeout = self.alarm.set(deadline_ns, self.net.now_ns)?;
            let result = self.poll(timeout);
            self.net.mail.awake();
            result
        }
    }

    fn rest(&mut self, until_ns: u64, polls: bool) {
        let began_ns = clock::now_ns();
        self.net.end_turn(began_ns);
        let mut now_ns = began_ns;
        if polls {
            while now_ns < until_ns {
                std::hint::spin_loop();
                now_ns = clock::now_ns();
            }
            self.net.counters.polled_rest_ns += until_ns.saturating_sub(began_ns);
        } else if until_ns > began_ns {
            if !self.slack_minimised {
                self.slack_minimised = true;
                clock::minimise_timer_slack();
            }
            std::thread::sleep(Duration::from_nanos(until_ns - began_ns));
            now_ns = clock::now_ns();
        }
        self.net.now_ns = now_ns;
    }

    /// Takes the events that are there, without waiting.
    fn poll_now(&mut self) -> io::Result<()> {
        self.poll(Some(Duration::ZERO))
    }

    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            result => result,
        }
    }

    /// When the next turn must begin; `u64::MAX` if nothing is scheduled.
    fn deadline_ns(&self, next: Next) -> u64 {
        let listeners = self.net.listeners.iter().flatten().map(Listener::due_ns);
        listeners.fold(self.net.deadline_ns(next), u64::min)
    }

    /// Records all events before any of them is acted upon.
    fn record_events(&mut self) {
        for event in &self.events {
            match event.token() {
                WAKE => {}
                ALARM => self.alarm.expired(),
                token => match index_of(token) {
                    Some(index) => {
                        if let Some(Some(listener)) = self.net.listeners.get_mut(index) {
                            listener.ready = true;
                        }
                    }
                    None => self.net.note_event(token.0, event),
                },
            }
        }
        if self.net.catch_up.is_under_way() {
            let is_full = self.events.iter().count() >= self.net.limits.events_per_turn_max;
            self.net.polled(is_full);
        }
    }
}

fn accept<H: Handler>(net: &mut Net<H>, handler: &mut H, reserve: &mut Reserve) {
    if !net.listening || net.newcomers.len() >= NEWCOMERS_WAITING_MAX {
        return;
    }
    let now_ns = net.now_ns;
    for index in 0..net.listeners.len() {
        let place = net.listeners.get_mut(index);
        let due = place.and_then(|place| place.take_if(|listener| listener.due_ns() <= now_ns));
        let Some(mut listener) = due else { continue };
        // Refusals count as well, so that a turn ends even when descriptors have run out.
        for attempt in 0..net.limits.accepts_per_turn_max {
            if attempt > 0 && !net.budget.charge(NEWCOMER_UNITS) {
                break;
            }
            match reserve.accept(&mut listener, now_ns) {
                Accepted::Stream(stream) => {
                    net.counters.accepted += 1;
                    let id = net.insert(Conn::new(Stream::Tcp(stream), Phase::Open));
                    net.newcomer(id);
                    handler.accepted(net, id, index);
                    if net.accept_gap_ns > 0 {
                        listener.retry_at_ns = now_ns + net.accept_gap_ns;
                        break;
                    }
                }
                Accepted::Refused => net.counters.refused += 1,
                Accepted::Gone => {}
                Accepted::Nothing => break,
            }
        }
        // It is gone if the handler has stopped listening.
        if let Some(place) = net.listeners.get_mut(index) {
            *place = Some(listener);
        }
    }
}
