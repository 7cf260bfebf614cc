//! The loop: waits, and takes one turn after the other.

use std::io;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};

use crate::alarm::Alarm;
use crate::conn::{Conn, Phase};
use crate::listener::{Accepted, Listener, Reserve};
use crate::mailbox::{MailRoom, Mailbox};
use crate::reading::ReadBuffer;
use crate::{Handler, LoopConfig, Net, Next, clock};

/// Tokens that are not the index of a connection are counted from the end.
const WAKE: Token = Token(usize::MAX);
const ALARM: Token = Token(usize::MAX - 1);
const FIRST_LISTENER: usize = usize::MAX - 2;
const LISTENERS_MAX: usize = 1 << 12;

/// One event loop; [`run`](Self::run) drives a [`Handler`] on the current thread.
pub struct Loop<H: Handler> {
    poll: Poll,
    events: Events,
    alarm: Alarm,
    listeners: Vec<Listener>,
    reserve: Reserve,
    buffer: ReadBuffer,
    net: Net<H>,
    spin: bool,
    cpu: Option<usize>,
}

impl<H: Handler> Loop<H> {
    /// Sets a loop up; it may be moved to its thread afterwards.
    ///
    /// # Errors
    /// When the system gives no descriptors for the poll, the timer or the listeners, or when there
    /// are too many listeners.
    pub fn new(mut config: LoopConfig, mailbox: Mailbox<H::Mail>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        let mail = MailRoom::new(mailbox);
        mail.register(registry, WAKE)?;
        let alarm = Alarm::new(registry, ALARM)?;
        if config.listeners.len() > LISTENERS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many listeners"));
        }
        let mut listeners = Vec::new();
        for (index, socket) in std::mem::take(&mut config.listeners).into_iter().enumerate() {
            let mut listener = Listener::new(socket)?;
            let token = Token(FIRST_LISTENER - index);
            registry.register(&mut listener.socket, token, Interest::READABLE)?;
            listeners.push(listener);
        }
        let net = Net::new(&config, mail, registry.try_clone()?, clock::now_ns());
        Ok(Self {
            events: Events::with_capacity(config.events_per_turn_max.max(1)),
            alarm,
            listeners,
            reserve: Reserve::new(),
            buffer: ReadBuffer::new(net.limits.read_buffer_bytes),
            net,
            poll,
            spin: config.spin,
            cpu: config.cpu,
        })
    }

    /// Takes turns until the handler calls [`Net::stop`].
    ///
    /// # Errors
    /// When the thread cannot be pinned to its CPU, or when waiting for events fails.
    pub fn run(mut self, handler: &mut H) -> io::Result<()> {
        if let Some(cpu) = self.cpu {
            crate::bind_to_cpus(&[cpu])?;
        }
        self.net.now_ns = clock::now_ns();
        handler.started(&mut self.net);
        let mut next = Next::Again;
        loop {
            self.wait(next)?;
            self.net.now_ns = clock::now_ns();
            self.net.counters.turns += 1;
            next = self.turn(handler);
            if self.net.stopping {
                return Ok(());
            }
        }
    }

    fn turn(&mut self, handler: &mut H) -> Next {
        self.classify();
        self.deliver_mail(handler);
        self.fire_timers(handler);
        self.serve_ready(handler);
        self.accept(handler);
        self.net.report_ended(handler);
        let mut next = handler.turn(&mut self.net);
        if self.net.report_ended(handler) {
            // Their ends may have left work to do.
            next = Next::Again;
        }
        // Mail before output: who reads an answer can rely on what it tells other loops.
        self.net.mail.send();
        self.net.flush(handler);
        self.net.expire_lingering();
        // What the handler posted while it learnt that output was drained.
        self.net.mail.send();
        if !self.net.listening {
            self.listeners.clear();
        }
        next
    }

    /// Waits for events, or only looks if there is work already.
    fn wait(&mut self, next: Next) -> io::Result<()> {
        if let Next::Rest { until_ns, .. } = next
            && !self.spin
        {
            let now_ns = clock::now_ns();
            if until_ns > now_ns {
                std::thread::sleep(Duration::from_nanos(until_ns - now_ns));
            }
            self.net.now_ns = clock::now_ns();
        }
        let deadline_ns = self.deadline_ns(next);
        let busy = self.spin
            || deadline_ns <= self.net.now_ns
            || !self.net.ready.is_empty()
            || !self.net.dirty.is_empty()
            || !self.net.ending.is_empty();
        let result = if busy || !self.net.mail.prepare_sleep() {
            self.poll.poll(&mut self.events, Some(Duration::ZERO))
        } else {
            self.net.counters.sleeps += 1;
            let timeout = self.alarm.set(deadline_ns, self.net.now_ns)?;
            let result = self.poll.poll(&mut self.events, timeout);
            self.net.mail.awake();
            result
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            result => result,
        }
    }

    /// When the next turn must begin, `u64::MAX` if nothing is planned.
    fn deadline_ns(&self, next: Next) -> u64 {
        let wanted_ns = match next {
            Next::Again => return 0,
            Next::At(deadline_ns) => deadline_ns,
            Next::Sleep => u64::MAX,
            Next::Rest { at_ns, .. } => at_ns,
        };
        let lingering_ns = self.net.lingering.front().map_or(u64::MAX, |&(until_ns, _)| until_ns);
        let listeners = self.listeners.iter().map(Listener::due_ns);
        listeners.fold(wanted_ns.min(lingering_ns).min(self.net.wheel.next_ns()), u64::min)
    }

    /// Notes what the events say, before any of them is acted upon.
    fn classify(&mut self) {
        for event in &self.events {
            match event.token() {
                WAKE => {}
                ALARM => self.alarm.went_off(),
                Token(token) if token > FIRST_LISTENER - LISTENERS_MAX => {
                    if let Some(listener) = self.listeners.get_mut(FIRST_LISTENER - token) {
                        listener.ready = true;
                    }
                }
                Token(index) => self.net.note_event(index, event),
            }
        }
    }

    fn deliver_mail(&mut self, handler: &mut H) {
        if !self.net.mail.has_mail() {
            return;
        }
        let count = self.net.mail.collect().min(self.net.limits.mails_per_turn_max);
        for _ in 0..count {
            if let Some((from, mail)) = self.net.mail.take() {
                handler.mail(&mut self.net, from, mail);
            }
        }
        self.net.mail.delivered(count);
    }

    fn fire_timers(&mut self, handler: &mut H) {
        let due = self.net.wheel.advance(self.net.now_ns);
        for _ in 0..due.min(self.net.limits.timers_per_turn_max) {
            if let Some(token) = self.net.wheel.pop() {
                handler.timer(&mut self.net, token);
            }
        }
    }

    /// Serves every connection that is ready now once, in order, up to the bound of a turn.
    fn serve_ready(&mut self, handler: &mut H) {
        let count = self.net.ready.len().min(self.net.limits.connections_per_turn_max);
        for _ in 0..count {
            if let Some(id) = self.net.ready.pop_front() {
                self.net.serve(handler, id, &mut self.buffer);
            }
        }
    }

    fn accept(&mut self, handler: &mut H) {
        if !self.net.listening {
            return;
        }
        let now_ns = self.net.now_ns;
        for (index, listener) in self.listeners.iter_mut().enumerate() {
            if listener.due_ns() > now_ns {
                continue;
            }
            for _ in 0..self.net.limits.accepts_per_turn_max {
                match self.reserve.accept(listener, now_ns) {
                    Accepted::Stream(stream) => {
                        self.net.counters.accepted += 1;
                        let id = self.net.insert(Conn::new(stream, Phase::Open));
                        handler.accepted(&mut self.net, id, index);
                    }
                    Accepted::Refused => self.net.counters.refused += 1,
                    Accepted::Gone => {}
                    Accepted::Nobody => break,
                }
            }
        }
    }
}
