//! Clients that publish more than they may: held back at the message, or disconnected.

use tacho_codec::{Frame, ReasonCode};
use tacho_net::ConnId;
use tacho_session::server::End;

use super::Connection;
use crate::access::AuditKind;
use crate::config::PublishExcess;
use crate::keys::SessionSlot;
use crate::shard::admission::HoldReason;
use crate::shard::output::Flow;
use crate::shard::timers::TimerToken;
use crate::shard::{Net, Shard};

const TOO_FAST: &str = "more messages or bytes per second than the client may publish";

impl Shard {
    /// A PUBLISH of a client that has a limit.
    pub(super) fn metered_publish(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        frame: &Frame<'_>,
    ) -> Flow {
        let now_ns = net.now_ns();
        match self.sessions[slot].meter.excess(now_ns) {
            Some((_, PublishExcess::Hold)) => return Flow::Hold,
            Some((_, PublishExcess::Disconnect)) => return self.end_fast(net, conn, slot),
            None => {}
        }
        let flow = self.publish_packet(net, conn, slot, frame);
        if flow == Flow::Continue {
            // One that is held back for another reason comes again.
            self.sessions[slot].meter.published(frame.total_len, now_ns);
        }
        flow
    }

    /// A client is not read on until what it has published is paid for; `reads_on`: but for what
    /// it may need an answer to.
    #[cold]
    pub(super) fn hold_fast(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        reads_on: bool,
    ) {
        if !reads_on {
            net.pause_read(conn);
        }
        let meter = &mut self.sessions[slot].meter;
        if let Some((until_ns, _)) = meter.excess(net.now_ns())
            && meter.hold()
        {
            self.stats.throttled_rate_total.increment();
            self.trace_held(net, conn, HoldReason::Rate);
            let token = TimerToken::PublishRate { connection: conn.index() as u32 };
            net.set_timer(until_ns, token.encode());
        }
    }

    /// The time is over for which a client is held back. Its connection may be another one by now:
    /// then that is looked at early.
    pub(in crate::shard) fn release_fast(&mut self, net: &mut Net, connection: u32) {
        if let Connection::Active { id, session, .. } = self.connections.at(connection as usize) {
            self.sessions[session].meter.release();
            net.resume_read(id);
        }
    }

    #[cold]
    fn end_fast(&mut self, net: &mut Net, conn: ConnId, slot: SessionSlot) -> Flow {
        self.stats.ended_rate_total.increment();
        // What was taken in is acknowledged before.
        self.pump(net, slot);
        self.log_denied(net, slot, "stay connected", "", &TOO_FAST);
        self.audit_ended(net, slot, AuditKind::ClientDisconnected, None, TOO_FAST);
        self.say_goodbye_because(net, conn, ReasonCode::MESSAGE_RATE_TOO_HIGH, Some(TOO_FAST));
        self.session_disconnected(net, slot, End::ProtocolError);
        Flow::Stop
    }
}
