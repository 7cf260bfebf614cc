//! What the control plane learns of clients, and their disconnection by an operator.

use std::sync::Arc;

use tacho_access::AddressRange;
use tacho_codec::ReasonCode;
use tacho_session::DropReason;
use tacho_session::server::End;

use crate::delivery::Body;
use crate::keys::{ClientKey, SessionSlot, TenantId};
use crate::query::{
    ClientDetail, ClientFilter, ClientRow, ClientScan, DroppedByReason, Kicked, KickedSession,
    LastConnectionDetail, SUBSCRIPTIONS_MAX, ScanOrder, ScannedClients, ScannedSubscriptions,
    SubscriptionRow, WillDetail,
};
use crate::shard::sessions::Session;
use crate::shard::{Net, Shard};

/// Sessions looked at for one scan: a few hundred microseconds.
const SESSIONS_LOOKED_AT: usize = 1_024;
/// The same where the kernel is asked for the address of each.
const ADDRESSES_LOOKED_AT: usize = 256;
/// Sessions that are looked at in a microsecond.
const LOOKS_PER_UNIT: usize = 8;
/// Filters that are read in a microsecond.
const FILTERS_PER_UNIT: usize = 8;
const SECOND_NS: u64 = 1_000_000_000;

impl Shard {
    pub(super) fn clients(&self, net: &mut Net, scan: &ClientScan) -> ScannedClients {
        // Slots are never above the capacity.
        let slots = self.sessions.slots_end();
        let asks_kernel = scan.filter.as_ref().is_some_and(|filter| filter.addresses.is_some());
        let looks = if asks_kernel { ADDRESSES_LOOKED_AT } else { SESSIONS_LOOKED_AT };
        let end = scan.from.saturating_add(looks).min(slots);
        let wanted = |session: &Session| match &scan.filter {
            None => true,
            Some(filter) => is_wanted(net, session, filter),
        };
        let candidates = (scan.from..end)
            .filter_map(|slot| Some((slot, self.sessions.get(SessionSlot::new(slot as u32))?)))
            .filter(|(_, session)| wanted(session));
        let scanned = match scan.order {
            ScanOrder::Slot => {
                let mut candidates = candidates.peekable();
                let rows = candidates
                    .by_ref()
                    .take(scan.limit)
                    .map(|(_, session)| self.client_row(net, session))
                    .collect();
                let left = candidates.peek().map(|(slot, _)| *slot);
                ScannedClients { rows, next: left.or_else(|| (end < slots).then_some(end)) }
            }
            ScanOrder::Slowest => {
                let mut slow: Vec<(Slowness, &Session)> = candidates
                    .filter_map(|(_, session)| Some((slowness(net, session)?, session)))
                    .collect();
                slow.sort_by_key(|(slowness, _)| std::cmp::Reverse(*slowness));
                slow.truncate(scan.limit);
                let rows = slow.iter().map(|(_, session)| self.client_row(net, session)).collect();
                ScannedClients { rows, next: (end < slots).then_some(end) }
            }
            ScanOrder::Queue => {
                let queue = |session: &Session| {
                    (session.machine.queue_bytes(), session.machine.queue_len())
                };
                let mut long: Vec<((u64, usize), &Session)> = candidates
                    .map(|(_, session)| (queue(session), session))
                    .filter(|((_, queue_len), _)| *queue_len > 0)
                    .collect();
                long.sort_by_key(|(queue, _)| std::cmp::Reverse(*queue));
                long.truncate(scan.limit);
                let rows = long.iter().map(|(_, session)| self.client_row(net, session)).collect();
                ScannedClients { rows, next: (end < slots).then_some(end) }
            }
        };
        let looked_at = scanned.next.unwrap_or(end).min(end).saturating_sub(scan.from);
        net.charge((looked_at / LOOKS_PER_UNIT + scanned.rows.len()) as u32);
        scanned
    }

    fn client_row(&self, net: &Net, session: &Session) -> ClientRow {
        let machine = &session.machine;
        let connection = session.connection();
        let since_ns = match connection {
            Some(conn) => Some(self.connections.connected_ns(conn)),
            None => session.last_connection().map(|last| last.ended_ns),
        };
        ClientRow {
            client_id: session.key().client_id.as_ref().into(),
            shard: self.id,
            connected: connection.is_some(),
            address: connection.and_then(|conn| net.peer_addr(conn)),
            user: session.access.user_name().map(str::to_owned),
            version: session.version().to_string(),
            for_s: since_ns.map(|since_ns| net.now_ns().saturating_sub(since_ns) / SECOND_NS),
            subscriptions: session.subscriptions.len(),
            queue_len: machine.queue_len(),
            queue_bytes: machine.queue_bytes(),
            queue_full: session.is_full(),
            inflight: machine.inflight_len(),
            output_bytes: connection.map_or(0, |conn| net.output_bytes(conn)),
            dropped: session.dropped_total(),
            blocked_ms: session.pressure.blocked_ms(net.now_ns()),
        }
    }

    /// The session of a client, which is not a link of a bridge.
    pub(in crate::shard) fn client_slot(&self, client_id: &Arc<str>) -> Option<SessionSlot> {
        let key = ClientKey { tenant: TenantId::DEFAULT, client_id: client_id.clone() };
        self.sessions.find(&key).filter(|slot| self.sessions[*slot].link().is_none())
    }

    pub(super) fn client(&self, net: &Net, client_id: &Arc<str>) -> Option<Box<ClientDetail>> {
        let session = &self.sessions[self.client_slot(client_id)?];
        let machine = &session.machine;
        let listener = session
            .connection()
            .and_then(|conn| self.shared.access.address_of(self.connections.listener_of(conn)));
        let dropped = |reason| machine.counters().dropped(reason);
        let ago_s = |at_ns: u64| net.now_ns().saturating_sub(at_ns) / SECOND_NS;
        let ends_at_ns = Some(machine.ends_at_ns()).filter(|&at_ns| at_ns != u64::MAX);
        Some(Box::new(ClientDetail {
            row: self.client_row(net, session),
            listener,
            durable: session.journal.is_durable(),
            bridge: session.is_bridge(),
            session_expiry_s: Some(machine.expiry_s()).filter(|&expiry_s| expiry_s != u32::MAX),
            session_ends_in_s: ends_at_ns
                .map(|at_ns| at_ns.saturating_sub(net.now_ns()).div_ceil(SECOND_NS)),
            inflight_max: machine.window(),
            inbound_unacked: machine.inbound_unacked(),
            packet_size_max: Some(session.terms().packet_size_max())
                .filter(|&bytes| bytes != u32::MAX),
            will: will_of(session),
            dropped_by_reason: DroppedByReason {
                offline: dropped(DropReason::Offline),
                queue_full: dropped(DropReason::QueueFull),
                queue_bytes_full: dropped(DropReason::QueueBytesFull),
                no_credit: dropped(DropReason::NoCredit),
                expired: dropped(DropReason::Expired),
                packet_too_large: dropped(DropReason::PacketTooLarge),
                denied: dropped(DropReason::Denied),
                shed: session.pressure.shed_total(),
            },
            last_connection: session.last_connection().map(|last| LastConnectionDetail {
                reason: last.ending.to_string(),
                ended_s_ago: ago_s(last.ended_ns),
                duration_s: last.duration_ns / SECOND_NS,
            }),
        }))
    }

    /// Subscriptions of a client, and whether there are more.
    pub(super) fn subscriptions_of(
        &self,
        net: &mut Net,
        client_id: &Arc<str>,
        from: usize,
    ) -> Option<ScannedSubscriptions> {
        let slot = self.client_slot(client_id)?;
        let subscriptions = &self.sessions[slot].subscriptions;
        let filters = subscriptions.iter().skip(from).take(SUBSCRIPTIONS_MAX);
        let rows: Vec<SubscriptionRow> = filters
            .filter_map(|filter| {
                let options = self.subscription_options(filter, slot)?;
                Some(SubscriptionRow {
                    filter: filter.to_string(),
                    qos: options.qos as u8,
                    no_local: options.no_local,
                    retain_as_published: options.retain_as_published,
                    subscription_id: (options.id > 0).then_some(options.id),
                })
            })
            .collect();
        net.charge((SUBSCRIPTIONS_MAX / FILTERS_PER_UNIT) as u32);
        Some((rows, subscriptions.len() > from.saturating_add(SUBSCRIPTIONS_MAX)))
    }

    /// Disconnects a client for an operator, and ends its session if that is wanted. `None` if it
    /// has no session here.
    pub(super) fn kick(
        &mut self,
        net: &mut Net,
        client_id: &Arc<str>,
        session: KickedSession,
    ) -> Option<Kicked> {
        let slot = self.client_slot(client_id)?;
        let generation = self.sessions[slot].generation();
        self.cancel_pending_connect(net, slot);
        if !self.sessions.is_current(slot, generation) {
            return Some(Kicked { was_connected: true, session_ended: true });
        }
        let connection = self.sessions[slot].connection();
        if let Some(conn) = connection {
            let why = Some("an operator has disconnected the client");
            self.say_goodbye_because(net, conn, ReasonCode::ADMINISTRATIVE_ACTION, why);
            self.session_disconnected(net, slot, End::Lost);
        }
        if session == KickedSession::Ends && self.sessions.is_current(slot, generation) {
            // Its end is the last time at which its will can be published (3.1.3.2.2).
            let will = self.sessions[slot].machine.will().map(|(will, _)| will.message.clone());
            if let Some(Body::Here(will)) = will.map(|copy| copy.message) {
                self.publish_will(net, slot, &will);
            }
            self.discard_session(net, slot);
        }
        let session_ended = !self.sessions.is_current(slot, generation);
        Some(Kicked { was_connected: connection.is_some(), session_ended })
    }
}

fn is_wanted(net: &Net, session: &Session, filter: &ClientFilter) -> bool {
    let ClientFilter { prefix, user, addresses, is_connected } = filter;
    let connection = session.connection();
    let is_from = |range: &AddressRange| {
        let address = connection.and_then(|conn| net.peer_addr(conn));
        address.is_some_and(|address| range.contains(address.ip()))
    };
    session.link().is_none()
        && is_connected.is_none_or(|wanted| wanted == connection.is_some())
        && prefix.as_ref().is_none_or(|prefix| session.key().client_id.starts_with(&**prefix))
        && user.as_ref().is_none_or(|user| session.access.user_name() == Some(user))
        && addresses.as_ref().is_none_or(is_from)
}

fn will_of(session: &Session) -> Option<WillDetail> {
    let (will, _) = session.machine.will()?;
    let message = will.message.message.here()?;
    Some(WillDetail {
        topic: message.topic().to_owned(),
        qos: message.header().qos as u8,
        retain: message.header().retain,
        payload_bytes: message.payload().len(),
        delay_s: will.delay_s,
    })
}

/// Whether a client's queue is full, bytes that wait for it, messages that it lost, messages it has
/// not acknowledged.
type Slowness = (bool, u64, u64, usize);

/// `None` for a client that keeps up, or is not connected and stops no publisher.
fn slowness(net: &Net, session: &Session) -> Option<Slowness> {
    let (connection, is_full) = (session.connection(), session.is_full());
    if connection.is_none() && !is_full {
        return None;
    }
    let machine = &session.machine;
    let output_bytes = connection.map_or(0, |conn| net.output_bytes(conn) as u64);
    let waiting_bytes = machine.queue_bytes() + output_bytes;
    let dropped = session.dropped_total();
    let inflight = machine.inflight_len();
    (waiting_bytes > 0 || dropped > 0).then_some((is_full, waiting_bytes, dropped, inflight))
}
