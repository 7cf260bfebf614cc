//! How much a client may publish per second, and how much of that is used up.

use std::sync::Arc;

use tacho_access::{ClientLimits, PublishRate};

use crate::config::{PublishExcess, PublishLimits};
use crate::rate::{Bucket, Rate};

/// A publisher is held back for no shorter time, where its burst allows that: what has gathered
/// meanwhile is then taken in at once.
const HOLD_NS_MIN: u64 = 10_000_000;

/// How much a client may publish.
#[derive(Debug)]
pub(crate) struct PublishLimit {
    messages: Option<Rate>,
    bytes: Option<Rate>,
    excess: PublishExcess,
}

/// What a session has used up of its limit. Without one it takes no memory.
#[derive(Debug, Default)]
pub(crate) struct PublishMeter(Option<Box<Metered>>);

#[derive(Debug)]
struct Metered {
    limit: Arc<PublishLimit>,
    messages: Bucket,
    bytes: Bucket,
    /// Its client is held back, and a timer ends that.
    is_held: bool,
}

impl PublishLimit {
    /// `None` if there is none.
    pub(crate) fn new(limits: &PublishLimits) -> Option<Arc<Self>> {
        let rate = |per_s: Option<u32>, burst: Option<u32>| {
            per_s.map(|per_s| Rate::new(per_s, burst.unwrap_or(per_s)))
        };
        let messages = rate(limits.messages_per_s_max, limits.messages_burst);
        let bytes = rate(limits.bytes_per_s_max, limits.bytes_burst);
        let has_any = messages.is_some() || bytes.is_some();
        has_any.then(|| Arc::new(Self { messages, bytes, excess: limits.excess }))
    }

    /// Of a client with these roles at a listener: the lower one of both limits.
    pub(crate) fn of_client(
        listener: Option<&Arc<Self>>,
        roles: &ClientLimits,
    ) -> Option<Arc<Self>> {
        let ClientLimits { publish_messages, publish_bytes, publish_excess, .. } = *roles;
        if publish_messages.is_none() && publish_bytes.is_none() && publish_excess.is_none() {
            return listener.cloned();
        }
        let messages = lower(listener.and_then(|limit| limit.messages), publish_messages);
        let bytes = lower(listener.and_then(|limit| limit.bytes), publish_bytes);
        let excess = publish_excess.or_else(|| listener.map(|limit| limit.excess));
        let excess = excess.unwrap_or_default();
        let has_any = messages.is_some() || bytes.is_some();
        has_any.then(|| Arc::new(Self { messages, bytes, excess }))
    }
}

fn lower(listener: Option<Rate>, role: Option<PublishRate>) -> Option<Rate> {
    let role = role
        .map(|PublishRate { per_s_max, burst }| Rate::new(per_s_max, burst.unwrap_or(per_s_max)));
    match (role, listener) {
        (Some(role), Some(listener)) => Some(role.lower(listener)),
        (role, listener) => role.or(listener),
    }
}

impl PublishMeter {
    /// A client is connected that has this limit. What the session has used up stays so: a client
    /// gains nothing by coming again.
    pub(crate) fn client_connected(&mut self, limit: Option<Arc<PublishLimit>>) {
        self.limit_changed(limit);
        self.release();
    }

    /// The client that is connected has this limit from now on.
    pub(crate) fn limit_changed(&mut self, limit: Option<Arc<PublishLimit>>) {
        match (&mut self.0, limit) {
            (Some(metered), Some(limit)) => metered.limit = limit,
            (_, None) => self.0 = None,
            (None, Some(limit)) => {
                let (messages, bytes) = Default::default();
                self.0 = Some(Box::new(Metered { limit, messages, bytes, is_held: false }));
            }
        }
    }

    /// Whether there is a limit.
    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether more was published than the limit allows: until when the client is held back, and
    /// whether it is disconnected instead.
    pub(crate) fn excess(&self, now_ns: u64) -> Option<(u64, PublishExcess)> {
        let Metered { limit, messages, bytes, .. } = &**self.0.as_ref()?;
        let until = |rate: &Option<Rate>, bucket: &Bucket| {
            let rate = rate.as_ref()?;
            let until_ns = bucket.excess_until_ns(rate, now_ns)?;
            Some(until_ns.max(now_ns + HOLD_NS_MIN.min(rate.burst_ns() / 2)))
        };
        let until_ns = until(&limit.messages, messages).max(until(&limit.bytes, bytes))?;
        Some((until_ns, limit.excess))
    }

    /// A message was taken in whose packet has so many bytes. One that is larger than the burst is
    /// taken in, too, and those behind it wait the longer.
    pub(crate) fn published(&mut self, packet_bytes: usize, now_ns: u64) {
        let Some(metered) = &mut self.0 else { return };
        if let Some(rate) = &metered.limit.messages {
            metered.messages.take(rate, 1, now_ns);
        }
        if let Some(rate) = &metered.limit.bytes {
            metered.bytes.take(rate, packet_bytes as u64, now_ns);
        }
    }

    /// The client is held back from now on. False if it was.
    pub(crate) fn hold(&mut self) -> bool {
        self.0.as_mut().is_some_and(|metered| !std::mem::replace(&mut metered.is_held, true))
    }

    /// The client is held back no longer.
    pub(crate) fn release(&mut self) {
        if let Some(metered) = &mut self.0 {
            metered.is_held = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn meter(limits: PublishLimits) -> PublishMeter {
        let mut meter = PublishMeter::default();
        meter.client_connected(PublishLimit::new(&limits));
        meter
    }

    /// How many messages of so many bytes pass at a time.
    fn passing(meter: &mut PublishMeter, bytes: usize, now_ns: u64) -> usize {
        let mut passed = 0;
        while meter.excess(now_ns).is_none() {
            meter.published(bytes, now_ns);
            passed += 1;
        }
        passed
    }

    #[test]
    fn messages_and_bytes_have_rates_of_their_own() {
        let limits = PublishLimits {
            messages_per_s_max: Some(100),
            messages_burst: Some(10),
            bytes_per_s_max: Some(1_000),
            ..PublishLimits::default()
        };
        let mut meter = meter(limits);
        // The message that exceeds the burst is taken in: its debt is paid before the next one.
        assert_eq!(passing(&mut meter, 1, SECOND_NS), 11);
        assert_eq!(passing(&mut meter, 1, SECOND_NS + SECOND_NS / 10), 10);
        let full_ns = 9 * SECOND_NS;
        assert_eq!(passing(&mut meter, 5_000, full_ns), 1);
        assert_eq!(meter.excess(full_ns), Some((full_ns + 4 * SECOND_NS, PublishExcess::Hold)));
        assert_eq!(meter.excess(full_ns + 4 * SECOND_NS), None);
    }

    #[test]
    fn a_hold_lasts_long_enough_for_several_messages_unless_the_burst_is_smaller() {
        let limits = PublishLimits { messages_per_s_max: Some(10_000), ..Default::default() };
        let mut wide = meter(limits.clone());
        passing(&mut wide, 1, SECOND_NS);
        let (until_ns, _) = wide.excess(SECOND_NS).unwrap();
        assert_eq!(until_ns, SECOND_NS + HOLD_NS_MIN);
        assert_eq!(passing(&mut wide, 1, until_ns), 100);
        let mut narrow = meter(PublishLimits { messages_burst: Some(1), ..limits });
        passing(&mut narrow, 1, SECOND_NS);
        let (until_ns, _) = narrow.excess(SECOND_NS).unwrap();
        assert!(until_ns <= SECOND_NS + 100_000, "{until_ns}");
    }

    #[test]
    fn a_client_that_comes_again_has_used_up_what_its_session_has() {
        let limits = PublishLimits { messages_per_s_max: Some(5), ..Default::default() };
        let limit = PublishLimit::new(&limits);
        let mut meter = PublishMeter::default();
        meter.client_connected(limit.clone());
        assert_eq!(passing(&mut meter, 1, SECOND_NS), 6);
        assert!(meter.hold() && !meter.hold());
        meter.client_connected(limit.clone());
        assert!(meter.excess(SECOND_NS).is_some() && meter.hold());
        meter.client_connected(None);
        assert!(!meter.is_on() && meter.excess(SECOND_NS).is_none());
        assert!(PublishLimit::new(&PublishLimits::default()).is_none());
    }

    #[test]
    fn the_lower_one_of_listener_and_roles_holds() {
        let rate = |per_s_max| Some(PublishRate { per_s_max, burst: None });
        let listener = PublishLimit::new(&PublishLimits {
            messages_per_s_max: Some(10),
            excess: PublishExcess::Disconnect,
            ..PublishLimits::default()
        });
        let of = |listener: &Option<Arc<PublishLimit>>, roles: ClientLimits| {
            let mut meter = PublishMeter::default();
            meter.client_connected(PublishLimit::of_client(listener.as_ref(), &roles));
            if !meter.is_on() {
                return None;
            }
            let passed = passing(&mut meter, 100, SECOND_NS);
            Some((passed, meter.excess(SECOND_NS).map(|(_, excess)| excess).unwrap()))
        };
        let none = ClientLimits::NONE;
        assert_eq!(of(&None, none), None);
        assert_eq!(
            of(&None, ClientLimits { publish_excess: Some(PublishExcess::Hold), ..none }),
            None
        );
        assert_eq!(of(&listener, none), Some((11, PublishExcess::Disconnect)));
        for (per_s_max, passed) in [(3, 4), (20, 11)] {
            let roles = ClientLimits { publish_messages: rate(per_s_max), ..none };
            assert_eq!(of(&listener, roles), Some((passed, PublishExcess::Disconnect)));
        }
        let bytes = ClientLimits { publish_bytes: rate(500), ..none };
        assert_eq!(of(&None, bytes), Some((6, PublishExcess::Hold)));
        let held = ClientLimits { publish_excess: Some(PublishExcess::Hold), ..bytes };
        assert_eq!(of(&listener, held), Some((6, PublishExcess::Hold)));
    }
}
