//! Restoring a session from its stored state.

use super::{Session, SessionLimits, outgoing_limits};
use crate::incoming::Incoming;
use crate::lifetime::Lifetime;
use crate::outgoing::Outgoing;
use crate::restored::Restored;
use crate::{Payload, Persist};

impl<M: Payload> Session<M> {
    /// A session without a connection, as if it was just disconnected; its next connect resumes it.
    /// [`Session::handle_timeout`] yields the events that came due meanwhile.
    ///
    /// `persist` gets a record for each exchange that contradicts another one, which happens if
    /// records were lost.
    #[must_use]
    pub fn restore(
        limits: SessionLimits,
        restored: Restored<M>,
        persist: &mut impl Persist<M>,
    ) -> Self {
        let Restored { now_ns, expiry_s, ends_at_ns, will, will_at_ns, .. } = restored;
        let Restored { next_seq, exchanges, queued, inbound, .. } = restored;
        let outgoing = outgoing_limits(&limits);
        Self {
            outgoing: Outgoing::restore(outgoing, next_seq, exchanges, queued, persist),
            incoming: Incoming::restore(limits.receive_maximum, inbound),
            lifetime: Lifetime::restore(now_ns, expiry_s, ends_at_ns, will, will_at_ns),
            ..Self::new(limits)
        }
    }
}
