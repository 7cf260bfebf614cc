//! The timing of a connection that its owner opens and maintains: when to connect, when to give up,
//! when to check that the peer is alive. Sockets and packets belong to the owner.

/// The intervals of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// The first pause after a connection was lost or an attempt failed.
    pub retry_first_ns: u64,
    /// The longest pause: the pause doubles with every failed attempt (exponential backoff).
    pub retry_longest_ns: u64,
    /// From the attempt until CONNACK; 0 waits without limit.
    pub connect_timeout_ns: u64,
    /// Between two PINGREQs, regardless of other packets, and the time within which any packet must
    /// arrive after a PINGREQ; 0 is off. The keep-alive applies if it is shorter.
    pub health_check_ns: u64,
    /// How long the peer may leave a message unanswered although it answers PINGREQ; 0 is off.
    pub ack_timeout_ns: u64,
}

/// The action that the owner has to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// Start to connect, and call [`Link::lost`] if that fails.
    Dial,
    /// CONNACK did not arrive in time: abort the attempt. The next one is scheduled.
    GiveUp,
    /// Write PINGREQ.
    Ping,
    /// Nothing arrived since PINGREQ was sent: close the connection. The next attempt is scheduled.
    Silent,
    /// Find out for how long the oldest message is unanswered, and call [`Link::unanswered`].
    LookAtAnswers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting { until_ns: u64 },
    Opening { until_ns: u64 },
    Up { next_ping_ns: u64, interval_ns: u64, is_asked: bool, next_look_ns: u64 },
    Closed,
}

/// The state of one such connection. It starts with an immediate attempt to connect.
#[derive(Debug)]
pub struct Link {
    settings: LinkSettings,
    phase: Phase,
    /// Consecutive failed attempts.
    failures: u32,
    /// A packet arrived since the last PINGREQ.
    is_heard: bool,
    random: u64,
}

impl Link {
    /// A link that connects at `now_ns`. Links with different seeds retry at different times.
    #[must_use]
    pub const fn new(settings: LinkSettings, now_ns: u64, seed: u64) -> Self {
        let phase = Phase::Waiting { until_ns: now_ns };
        Self { settings, phase, failures: 0, is_heard: false, random: seed | 1 }
    }

    /// When to call [`Link::handle_timeout`]; the time may change with every other call.
    #[must_use]
    pub const fn next_timeout(&self) -> Option<u64> {
        let at_ns = match self.phase {
            Phase::Waiting { until_ns } | Phase::Opening { until_ns } => until_ns,
            Phase::Up { next_ping_ns, next_look_ns, .. } if next_look_ns < next_ping_ns => {
                next_look_ns
            }
            Phase::Up { next_ping_ns, .. } => next_ping_ns,
            Phase::Closed => u64::MAX,
        };
        if at_ns == u64::MAX { None } else { Some(at_ns) }
    }

    /// The action due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) -> Option<LinkEvent> {
        if self.next_timeout()? > now_ns {
            return None;
        }
        Some(match &mut self.phase {
            Phase::Waiting { .. } => {
                self.phase =
                    Phase::Opening { until_ns: later(now_ns, self.settings.connect_timeout_ns) };
                LinkEvent::Dial
            }
            Phase::Opening { .. } => {
                self.lost(now_ns);
                LinkEvent::GiveUp
            }
            Phase::Up { next_look_ns, .. } if *next_look_ns <= now_ns => {
                *next_look_ns = later(now_ns, self.settings.ack_timeout_ns);
                LinkEvent::LookAtAnswers
            }
            Phase::Up { is_asked: true, .. } if !self.is_heard => {
                self.lost(now_ns);
                LinkEvent::Silent
            }
            Phase::Up { next_ping_ns, interval_ns, is_asked, .. } => {
                *is_asked = true;
                *next_ping_ns = now_ns.saturating_add(*interval_ns);
                self.is_heard = false;
                LinkEvent::Ping
            }
            Phase::Closed => return None,
        })
    }

    /// CONNACK accepted the connection, with this keep-alive; 0 is none.
    pub fn accepted(&mut self, now_ns: u64, keep_alive_s: u16) {
        let keep_alive_ns = u64::from(keep_alive_s) * 1_000_000_000;
        let interval_ns = match (keep_alive_ns, self.settings.health_check_ns) {
            (0, ns) | (ns, 0) => ns,
            (a, b) => a.min(b),
        };
        self.failures = 0;
        self.is_heard = true;
        let next_ping_ns = later(now_ns, interval_ns);
        let next_look_ns = later(now_ns, self.settings.ack_timeout_ns);
        self.phase = Phase::Up { next_ping_ns, interval_ns, is_asked: false, next_look_ns };
    }

    /// A packet arrived.
    #[inline]
    pub const fn heard(&mut self) {
        self.is_heard = true;
    }

    /// The oldest message has been unanswered for `for_ns`; 0 if all are answered. True if that is
    /// too long: close the connection. The next attempt is scheduled.
    pub fn unanswered(&mut self, now_ns: u64, for_ns: u64) -> bool {
        let timeout_ns = self.settings.ack_timeout_ns;
        let Phase::Up { next_look_ns, .. } = &mut self.phase else { return false };
        if timeout_ns == 0 || for_ns < timeout_ns {
            // Nothing that is sent later can be late before.
            *next_look_ns = later(now_ns, timeout_ns.saturating_sub(for_ns));
            return false;
        }
        self.lost(now_ns);
        true
    }

    /// The connection or the attempt is over. Schedules the next attempt.
    pub fn lost(&mut self, now_ns: u64) {
        if self.phase == Phase::Closed {
            return;
        }
        let LinkSettings { retry_first_ns, retry_longest_ns, .. } = self.settings;
        let doubled = retry_first_ns.saturating_mul(1 << self.failures.min(32));
        let pause_ns = doubled.min(retry_longest_ns).max(1);
        self.failures = self.failures.saturating_add(1);
        // Jitter between half of the pause and all of it: links that lost the peer at the same time
        // do not return at the same time.
        let jitter_ns = self.draw() % (pause_ns / 2 + 1);
        self.phase = Phase::Waiting { until_ns: now_ns.saturating_add(pause_ns - jitter_ns) };
    }

    /// The connection was closed to be replaced with other parameters: reconnect at `now_ns`.
    pub const fn again(&mut self, now_ns: u64) {
        self.phase = Phase::Waiting { until_ns: now_ns };
    }

    /// Ends the link: there are no further attempts.
    pub const fn close(&mut self) {
        self.phase = Phase::Closed;
    }

    fn draw(&mut self) -> u64 {
        let mut x = self.random;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random = x;
        x >> 11
    }
}

/// The time `after_ns` after `now_ns`; never if `after_ns` is 0.
const fn later(now_ns: u64, after_ns: u64) -> u64 {
    if after_ns == 0 { u64::MAX } else { now_ns.saturating_add(after_ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const SETTINGS: LinkSettings = LinkSettings {
        retry_first_ns: S,
        retry_longest_ns: 15 * S,
        connect_timeout_ns: 5 * S,
        health_check_ns: 10 * S,
        ack_timeout_ns: 0,
    };

    fn due(link: &mut Link) -> (u64, Option<LinkEvent>) {
        let at_ns = link.next_timeout().expect("an action is scheduled");
        assert_eq!(link.handle_timeout(at_ns - 1), None);
        (at_ns, link.handle_timeout(at_ns))
    }

    #[test]
    fn pauses_between_attempts_grow_and_differ_between_links() {
        let pauses = |seed: u64| {
            let mut link = Link::new(SETTINGS, 100, seed);
            let (mut now_ns, dialed) = due(&mut link);
            assert_eq!((now_ns, dialed), (100, Some(LinkEvent::Dial)));
            let mut pauses = Vec::new();
            for _ in 0..8 {
                link.lost(now_ns);
                let (at_ns, dialed) = due(&mut link);
                assert_eq!(dialed, Some(LinkEvent::Dial));
                pauses.push(at_ns - now_ns);
                now_ns = at_ns;
            }
            pauses
        };
        let first = pauses(1);
        for (pause_ns, longest_s) in first.iter().zip([1, 2, 4, 8, 15, 15, 15, 15]) {
            let longest_ns = longest_s * S;
            assert!((longest_ns / 2..=longest_ns).contains(pause_ns), "{pause_ns}");
        }
        assert_ne!(first, pauses(2));
    }

    #[test]
    fn an_attempt_without_an_answer_is_aborted() {
        let mut link = Link::new(SETTINGS, S, 1);
        assert_eq!(due(&mut link), (S, Some(LinkEvent::Dial)));
        assert_eq!(due(&mut link), (6 * S, Some(LinkEvent::GiveUp)));
        let (at_ns, dialed) = due(&mut link);
        assert_eq!(dialed, Some(LinkEvent::Dial));
        assert!(at_ns > 6 * S && at_ns <= 7 * S);
    }

    #[test]
    fn a_silent_peer_is_disconnected_and_an_answering_one_is_not() {
        let mut link = Link::new(SETTINGS, S, 1);
        due(&mut link);
        link.accepted(2 * S, 60);
        assert!(matches!(link.phase, Phase::Up { .. }));
        for ping in 1..5 {
            assert_eq!(due(&mut link), ((2 + 10 * ping) * S, Some(LinkEvent::Ping)));
            link.heard();
        }
        assert_eq!(due(&mut link), (52 * S, Some(LinkEvent::Ping)));
        assert_eq!(due(&mut link), (62 * S, Some(LinkEvent::Silent)));
        assert!(!matches!(link.phase, Phase::Up { .. }));
        assert_eq!(due(&mut link).1, Some(LinkEvent::Dial));
    }

    #[test]
    fn a_peer_that_answers_pings_and_no_messages_is_disconnected() {
        let settings = LinkSettings { health_check_ns: 0, ack_timeout_ns: 15 * S, ..SETTINGS };
        let mut link = Link::new(settings, S, 1);
        due(&mut link);
        link.accepted(2 * S, 0);
        // All are answered, then one was sent 4 s ago, and that one is answered in time.
        assert_eq!(due(&mut link), (17 * S, Some(LinkEvent::LookAtAnswers)));
        assert!(!link.unanswered(17 * S, 0));
        assert_eq!(due(&mut link), (32 * S, Some(LinkEvent::LookAtAnswers)));
        assert!(!link.unanswered(32 * S, 4 * S));
        assert_eq!(due(&mut link), (43 * S, Some(LinkEvent::LookAtAnswers)));
        assert!(!link.unanswered(43 * S, 15 * S - 1));
        assert_eq!(due(&mut link), (43 * S + 1, Some(LinkEvent::LookAtAnswers)));
        assert!(link.unanswered(43 * S + 1, 15 * S));
        assert_eq!(due(&mut link).1, Some(LinkEvent::Dial));
        assert!(!link.unanswered(90 * S, 80 * S), "that was on the connection before");
    }

    #[test]
    fn the_shorter_of_keep_alive_and_health_check_applies_and_0_is_off() {
        for (keep_alive_s, health_check_ns, expected) in [
            (60, 10 * S, Some(10 * S)),
            (5, 10 * S, Some(5 * S)),
            (60, 0, Some(60 * S)),
            (0, 10 * S, Some(10 * S)),
            (0, 0, None),
        ] {
            let mut link = Link::new(LinkSettings { health_check_ns, ..SETTINGS }, 0, 1);
            link.handle_timeout(0);
            link.accepted(0, keep_alive_s);
            assert_eq!(link.next_timeout(), expected);
        }
    }

    #[test]
    fn success_resets_the_backoff() {
        let mut link = Link::new(SETTINGS, 0, 1);
        for _ in 0..6 {
            link.lost(0);
        }
        link.accepted(0, 0);
        link.lost(0);
        assert!(link.next_timeout() <= Some(S));
        link.again(7);
        assert_eq!(link.next_timeout(), Some(7));
        link.close();
        link.lost(8);
        assert_eq!(link.next_timeout(), None);
    }
}
