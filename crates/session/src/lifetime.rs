//! Session expiry without a connection, and the time of the will.

use tacho_codec::Version;

/// The session expiry interval of sessions that never expire (MQTT 5.0, 3.1.2.11.2).
pub const EXPIRY_NEVER: u32 = u32::MAX;

/// A will in a session: the message and its delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WillState<M> {
    /// The message to publish.
    pub message: M,
    /// Will Delay Interval in seconds; 0 for MQTT 3.x.
    pub delay_s: u32,
}

/// The session expiry interval that a CONNECT requests, at most `expiry_s_max`.
///
/// MQTT 3.x: 0 with clean session, else the longest that the server allows. MQTT 5.0: the property,
/// 0 if absent.
#[must_use]
pub fn session_expiry_s(
    version: Version,
    clean_start: bool,
    property_s: Option<u32>,
    expiry_s_max: u32,
) -> u32 {
    let requested_s = match version {
        Version::V5 => property_s.unwrap_or(0),
        _ if clean_start => 0,
        _ => EXPIRY_NEVER,
    };
    requested_s.min(expiry_s_max)
}

/// The time `delay_s` after `now_ns`; `None` for never. Cannot overflow.
pub(crate) const fn deadline_ns(now_ns: u64, delay_s: u32) -> Option<u64> {
    if delay_s == EXPIRY_NEVER {
        return None;
    }
    Some(now_ns.saturating_add(delay_s as u64 * 1_000_000_000))
}

/// The end of the delay of a will that begins now.
const fn will_deadline_ns<M>(now_ns: u64, will: &WillState<M>) -> u64 {
    now_ns.saturating_add(will.delay_s as u64 * 1_000_000_000)
}

/// Session expiry and will: the time-driven state that outlives a connection.
#[derive(Debug)]
pub(crate) struct Lifetime<M> {
    expiry_s: u32,
    /// Boxed: many clients have none.
    will: Option<Box<WillState<M>>>,
    /// `u64::MAX` means none.
    will_at_ns: u64,
    ends_at_ns: u64,
    presence: Presence,
}

/// Whether a session exists, and has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Absent,
    Connected,
    Disconnected,
}

/// The event that is due without a connection.
pub(crate) enum Due<M> {
    Will(M),
    End,
}

/// The consequences of the end of a connection.
pub(crate) struct Closing<M> {
    pub(crate) publish_will: Option<M>,
    pub(crate) session_ended: bool,
}

impl<M> Lifetime<M> {
    pub(crate) const fn new() -> Self {
        Self {
            expiry_s: 0,
            will: None,
            will_at_ns: u64::MAX,
            ends_at_ns: u64::MAX,
            presence: Presence::Absent,
        }
    }

    /// A session without a connection; missing times count from now.
    pub(crate) fn restore(
        now_ns: u64,
        expiry_s: u32,
        ends_at_ns: Option<u64>,
        will: Option<WillState<M>>,
        will_at_ns: Option<u64>,
    ) -> Self {
        let ends_at_ns = ends_at_ns.or_else(|| deadline_ns(now_ns, expiry_s)).unwrap_or(u64::MAX);
        let will_at_ns = will.as_ref().map_or(u64::MAX, |will| {
            will_at_ns.unwrap_or_else(|| will_deadline_ns(now_ns, will)).min(ends_at_ns)
        });
        let will = will.map(Box::new);
        Self { expiry_s, will, will_at_ns, ends_at_ns, presence: Presence::Disconnected }
    }

    pub(crate) const fn exists(&self) -> bool {
        !matches!(self.presence, Presence::Absent)
    }

    #[inline]
    pub(crate) const fn is_connected(&self) -> bool {
        matches!(self.presence, Presence::Connected)
    }

    pub(crate) const fn expiry_s(&self) -> u32 {
        self.expiry_s
    }

    pub(crate) const fn ends_at_ns(&self) -> u64 {
        self.ends_at_ns
    }

    pub(crate) fn will(&self) -> Option<(&WillState<M>, u64)> {
        self.will.as_deref().map(|will| (will, self.will_at_ns))
    }

    /// Starts a connection, and stores its will with the session [MQTT-3.1.2-7]. Returns the
    /// previous connection's will if a clean start ends that session before the will's delay is
    /// over [MQTT-3.1.2-8], or if the delay is over and `take_due` was not called since; a resume
    /// before that cancels it [MQTT-3.1.3-9].
    pub(crate) fn open(
        &mut self,
        now_ns: u64,
        clean_start: bool,
        expiry_s: u32,
        will: Option<WillState<M>>,
    ) -> Option<M> {
        let is_due = clean_start || self.will_at_ns <= now_ns;
        let previous = std::mem::replace(&mut self.will, will.map(Box::new));
        self.expiry_s = expiry_s;
        self.will_at_ns = u64::MAX;
        self.ends_at_ns = u64::MAX;
        self.presence = Presence::Connected;
        previous.filter(|_| is_due).map(|will| will.message)
    }

    /// Ends the connection. `keep_will` is false only after a normal DISCONNECT [MQTT-3.14.4-3];
    /// with `clean_takeover` a connection with a clean start takes over. The session continues for
    /// its expiry interval [MQTT-3.1.2-23], [MQTT-4.1.0-1], [MQTT-4.1.0-2].
    pub(crate) fn close(
        &mut self,
        now_ns: u64,
        keep_will: bool,
        expiry_override_s: Option<u32>,
        clean_takeover: bool,
    ) -> Closing<M> {
        if let Some(expiry_s) = expiry_override_s {
            self.expiry_s = expiry_s;
        }
        if !keep_will {
            self.will = None;
        }
        let session_ended = self.expiry_s == 0 || clean_takeover;
        let will_is_due = session_ended || self.will.as_ref().is_some_and(|w| w.delay_s == 0);
        let publish_will =
            if will_is_due { self.will.take().map(|will| will.message) } else { None };
        self.presence = if session_ended { Presence::Absent } else { Presence::Disconnected };
        self.ends_at_ns = u64::MAX;
        self.will_at_ns = u64::MAX;
        if !session_ended {
            self.ends_at_ns = deadline_ns(now_ns, self.expiry_s).unwrap_or(u64::MAX);
            if let Some(will) = &self.will {
                // The will is due when its delay is over or the session ends, whichever is first
                // [MQTT-3.1.2-8]; once taken out, it is not published again [MQTT-3.1.2-10].
                self.will_at_ns = will_deadline_ns(now_ns, will).min(self.ends_at_ns);
            }
        }
        Closing { publish_will, session_ended }
    }

    pub(crate) const fn deadline_ns(&self) -> Option<u64> {
        let first_ns =
            if self.will_at_ns < self.ends_at_ns { self.will_at_ns } else { self.ends_at_ns };
        if first_ns == u64::MAX { None } else { Some(first_ns) }
    }

    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<Due<M>> {
        if self.will_at_ns <= now_ns && self.will_at_ns != u64::MAX {
            self.will_at_ns = u64::MAX;
            if let Some(will) = self.will.take() {
                return Some(Due::Will(will.message));
            }
        }
        if self.ends_at_ns <= now_ns && self.ends_at_ns != u64::MAX {
            self.ends_at_ns = u64::MAX;
            self.presence = Presence::Absent;
            return Some(Due::End);
        }
        None
    }
}
