//! SUBSCRIBE: filters into the indexes, retained messages requested, codes back. A long one is
//! handled in pieces, see [`requests`](super::requests).

use std::sync::atomic::Ordering;
use std::vec;

use tacho_access::{Coverage, Steps};
use tacho_codec::{
    Packet, PacketId, QoS, ReasonCode, RetainHandling, SubAck, Subscribe, SubscribeOptions,
    UserProperties, Version,
};
use tacho_net::ConnId;
use tacho_session::BatchSeq;
use tacho_topic::{Filter, FilterError, RouteChange};

use super::{FILTER_UNITS, PIECE_FILTERS};
use crate::keys::SessionSlot;
use crate::shard::access::units_of;
use crate::shard::durability::{Changed, NOTHING_CAN_BE_WRITTEN, RecordedChanges};
use crate::shard::output::Flow;
use crate::shard::permission::may_subscribe;
use crate::shard::{Net, Shard};
use crate::subscription::SubscriptionOptions;

/// A new subscription that wants the retained messages.
struct WantsReplay {
    filter: tacho_topic::TopicFilter,
    is_new: bool,
}

/// One subscription that a SUBSCRIBE asks for.
struct RequestedSubscription<'a> {
    filter: &'a Filter,
    options: SubscriptionOptions,
    handling: RetainHandling,
}

/// A SUBSCRIBE: the filters that are not handled yet, and what the others have come to.
pub(super) struct SubscribeRequest {
    packet_id: PacketId,
    subscription_id: Option<u32>,
    filters: vec::IntoIter<(Filter, SubscribeOptions)>,
    /// The journal took nothing when it came, or has not taken what it changed.
    is_stalled: bool,
    /// For SUBACK.
    reasons: Vec<ReasonCode>,
    explanation: Option<&'static str>,
    /// The newest batch with records of it.
    batch: BatchSeq,
    /// Of a durable session: what it has changed.
    changed: Vec<Changed>,
    /// What asking the access rules may still cost.
    steps: Steps,
}

/// What the filters of one piece come to.
#[derive(Default)]
struct Piece {
    /// For the route map.
    changes: Vec<RouteChange>,
    replays: Vec<WantsReplay>,
    /// To be recorded.
    granted: Vec<(Changed, SubscriptionOptions)>,
}

impl SubscribeRequest {
    /// Nothing of `subscribe` is handled yet.
    ///
    /// # Errors
    /// One of its filters is malformed.
    pub(super) fn new(subscribe: &Subscribe<'_>, is_stalled: bool) -> Result<Self, FilterError> {
        let parse = |asked: &tacho_codec::SubscribeFilter<'_>| {
            Ok((Filter::parse(asked.filter)?, asked.options))
        };
        let filters = subscribe.filters.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            packet_id: subscribe.packet_id,
            subscription_id: subscribe.subscription_id,
            reasons: Vec::with_capacity(filters.len()),
            filters: filters.into_iter(),
            is_stalled,
            explanation: None,
            batch: BatchSeq::DONE,
            changed: Vec::new(),
            steps: Steps::default(),
        })
    }

    /// Filters that are not handled yet.
    pub(super) fn left(&self) -> usize {
        self.filters.len()
    }

    /// Nothing can be written: all filters are refused after all. What some have changed is for the
    /// caller to take back.
    pub(super) fn refuse(&mut self, version: Version) -> Vec<Changed> {
        self.is_stalled = true;
        let granted = self.reasons.iter_mut().filter(|reason| !reason.is_error());
        granted.for_each(|reason| *reason = for_version(ReasonCode::QUOTA_EXCEEDED, version));
        self.explanation = Some(NOTHING_CAN_BE_WRITTEN);
        std::mem::take(&mut self.changed)
    }
}

impl Shard {
    /// Handles some filters of a SUBSCRIBE, fewer if there is no time for them.
    pub(super) fn subscribe_piece(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        request: &mut SubscribeRequest,
    ) {
        let (mut piece, before) = (Piece::default(), request.left());
        while before - request.left() < PIECE_FILTERS
            && let Some((filter, options)) = request.filters.next()
        {
            let done = request.steps.done();
            self.subscribe_one(net, slot, (filter, options), request, &mut piece);
            if !net.charge(FILTER_UNITS + units_of(done, &request.steps)) {
                break;
            }
        }
        let Piece { changes, replays, granted } = piece;
        // The update is visible to every publisher before SUBACK leaves.
        if replays.is_empty() {
            self.shared.routes.apply(&changes);
        } else {
            // A version of its own tells what was routed before these subscriptions, even if the
            // shard had others to the same filters.
            self.shared.routes.apply_as_new_version(&changes);
        }
        self.refresh_routes();
        self.note_visible(slot, &replays);
        request.batch = request.batch.max(self.record_subscriptions(slot, &granted));
        request.changed.extend(granted.into_iter().map(|(changed, _)| changed));
        for WantsReplay { filter, .. } in replays {
            // A later filter of the piece may be the same one with other options.
            let Some(options) = self.routing.options(&filter, slot) else { continue };
            self.start_replay(net, slot, filter, options);
        }
        self.make_room_for(net, before - request.left());
    }

    /// All filters are handled: answers.
    pub(super) fn subscribed(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        request: SubscribeRequest,
    ) -> Flow {
        let SubscribeRequest { packet_id, reasons, explanation, batch, changed, .. } = request;
        let suback = Packet::SubAck(SubAck {
            packet_id,
            reasons,
            reason_string: explanation,
            user_properties: UserProperties::EMPTY,
        });
        // What is refused now is told now, and not behind what waits for a commit.
        let flow = match request.is_stalled {
            true => self.answer(net, conn, slot, suback),
            false => {
                let recorded = RecordedChanges { batch, changed };
                self.answer_after(net, conn, slot, suback, recorded)
            }
        };
        if flow == Flow::Stop {
            return Flow::Stop;
        }
        self.stats.subscribes_total.increment();
        if self.sessions[slot].replays.are_under_way() {
            self.continue_replay(net, slot);
        }
        Flow::Continue
    }

    /// One filter of a SUBSCRIBE.
    fn subscribe_one(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        (filter, requested): (Filter, SubscribeOptions),
        request: &mut SubscribeRequest,
        piece: &mut Piece,
    ) {
        let session = &self.sessions[slot];
        let (version, is_bridge) = (session.version(), session.is_bridge());
        let mut options = SubscriptionOptions::new(&requested, request.subscription_id);
        let handling = requested.retain_handling;
        if let Some(max) = self.limits_in(slot).qos_max.and_then(QoS::from_u8) {
            options.qos = options.qos.min(max); // Granted, if not as high [MQTT-3.2.2-10].
        }
        if is_bridge {
            self.shared.bridges_subscribe.store(true, Ordering::Relaxed);
            options.no_local = !filter.is_shared();
            options.retain_as_published = true;
        }
        let is_durable = session.journal.is_durable();
        let former = if is_durable { self.options_of(slot, &filter) } else { None };
        let reason = if request.is_stalled {
            self.stats.journal_refused_subscriptions_total.increment();
            ReasonCode::QUOTA_EXCEEDED
        } else {
            let requested = RequestedSubscription { filter: &filter, options, handling };
            self.add_subscription(net, slot, requested, (piece, &mut request.steps))
        };
        if request.explanation.is_none() {
            request.explanation = explain(reason, request.is_stalled);
        }
        if is_durable && !reason.is_error() {
            piece.granted.push((Changed { filter, former }, options));
        }
        request.reasons.push(for_version(reason, version));
    }

    /// Retained messages that were routed before a new subscription became visible are its
    /// replay's. They may still be on their way to this shard for other sessions; or, after a
    /// crash, to all of their receivers.
    fn note_visible(&mut self, slot: SessionSlot, replays: &[WantsReplay]) {
        for WantsReplay { filter, .. } in replays.iter().filter(|replay| replay.is_new) {
            let Some(mut options) = self.routing.options(filter, slot) else { continue };
            options.since = self.routing.version();
            // Routes that are remembered need not be forgotten: they are of older versions.
            self.routing.index.insert(filter, slot, options);
        }
    }

    /// Writes down what was granted to a durable session, as the index has it.
    fn record_subscriptions(
        &mut self,
        slot: SessionSlot,
        granted: &[(Changed, SubscriptionOptions)],
    ) -> BatchSeq {
        let mut batch = BatchSeq::DONE;
        for (Changed { filter, .. }, options) in granted {
            let options = self.options_of(slot, filter).unwrap_or(*options);
            batch = batch.max(self.record_subscription(slot, filter, options));
        }
        batch
    }

    /// The options of a session's subscription, if it has it.
    pub(in crate::shard) fn options_of(
        &self,
        slot: SessionSlot,
        filter: &Filter,
    ) -> Option<SubscriptionOptions> {
        match filter {
            Filter::Plain(plain) => self.routing.options(plain, slot),
            Filter::Shared(shared) => self.options_in_group(slot, shared),
        }
    }

    /// Subscriptions that a session has are over, in the journal too.
    pub(in crate::shard) fn forget_all(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        filters: &[Filter],
    ) {
        let mut changes = Vec::new();
        for filter in filters {
            self.forget(net, slot, filter, &mut changes);
        }
        self.shared.routes.apply(&changes);
        self.refresh_routes();
    }

    /// A subscription that a session has is over, in the journal too. What the route map has to
    /// learn of it goes to `changes`.
    pub(in crate::shard) fn forget(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        filter: &Filter,
        changes: &mut Vec<RouteChange>,
    ) {
        self.sessions[slot].subscriptions.remove(filter);
        self.remove_subscription(net, slot, filter, changes);
        self.record_unsubscribed(slot, filter);
    }

    /// A subscription that a session has gets its former options, in the journal too.
    pub(in crate::shard) fn restore_options(
        &mut self,
        slot: SessionSlot,
        filter: &Filter,
        former: SubscriptionOptions,
    ) {
        let mut changes = Vec::new();
        match filter {
            Filter::Plain(plain) => {
                let is_durable = self.sessions[slot].journal.is_durable();
                self.routing.insert(plain, slot, (former, is_durable), &mut changes);
                self.change_replay(slot, plain, former);
            }
            Filter::Shared(shared) => self.change_membership(slot, shared, former),
        }
        self.shared.routes.apply(&changes);
        self.refresh_routes();
        self.record_subscription(slot, filter, former);
    }

    fn add_subscription(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        requested: RequestedSubscription<'_>,
        (piece, steps): (&mut Piece, &mut Steps),
    ) -> ReasonCode {
        let RequestedSubscription { filter, options, handling } = requested;
        if let Err(reason) = may_subscribe(filter, self.limits()) {
            self.stats.refused_subscriptions_total.increment();
            return reason;
        }
        let own = self.limits_in(slot);
        if own.has_too_many_levels(filter.topic_filter().as_str()) {
            self.stats.role_limit_topic_levels_total.increment();
            return ReasonCode::QUOTA_EXCEEDED;
        }
        if self.access.has_rules() && !self.grants(net, slot, (filter, options.qos), steps) {
            return ReasonCode::NOT_AUTHORIZED;
        }
        let limit = self.limits().subscriptions_per_session_max;
        let subscriptions = &mut self.sessions[slot].subscriptions;
        let known = subscriptions.contains(filter);
        if !known {
            let own_max = own.subscriptions_max.map_or(usize::MAX, |max| max as usize);
            if subscriptions.len() >= own_max {
                self.stats.role_limit_subscriptions_total.increment();
                return ReasonCode::QUOTA_EXCEEDED;
            }
            let has_room = subscriptions.len() < limit;
            if !has_room || !subscriptions.try_add(filter) {
                self.stats.refused_subscriptions_total.increment();
                return ReasonCode::QUOTA_EXCEEDED;
            }
        }
        match filter {
            Filter::Plain(filter) => {
                let mut options = options;
                if known {
                    // What is under way to the old subscription goes to this one.
                    options.since = self.routing.options(filter, slot).map_or(0, |old| old.since);
                }
                let is_durable = self.sessions[slot].journal.is_durable();
                self.routing.insert(filter, slot, (options, is_durable), &mut piece.changes);
                let wanted = match handling {
                    RetainHandling::Always => true,
                    RetainHandling::IfNew => !known,
                    RetainHandling::Never => false,
                };
                if wanted {
                    piece.replays.push(WantsReplay { filter: filter.clone(), is_new: !known });
                } else {
                    self.change_replay(slot, filter, options);
                }
            }
            Filter::Shared(shared) if known => self.change_membership(slot, shared, options),
            // Shared subscriptions get no retained messages when they are made (4.8.2).
            Filter::Shared(shared) => {
                self.join_group(net, slot, shared, options, &mut piece.changes);
            }
        }
        ReasonCode::granted(options.qos)
    }

    /// Whether the access rules grant a subscription.
    #[cold]
    fn grants(
        &mut self,
        net: &Net,
        slot: SessionSlot,
        subscription: (&Filter, QoS),
        steps: &mut Steps,
    ) -> bool {
        let coverage = self.covers(slot, subscription, steps);
        if coverage == Coverage::Whole {
            return true;
        }
        self.stats.denied_subscriptions_total.increment();
        self.log_not_granted(net, slot, subscription, coverage, steps);
        false
    }

    pub(super) fn remove_subscription(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        filter: &Filter,
        changes: &mut Vec<RouteChange>,
    ) {
        match filter {
            Filter::Plain(filter) => {
                self.cancel_replay(slot, filter);
                let is_durable = self.sessions[slot].journal.is_durable();
                self.routing.remove(filter, slot, is_durable, changes);
            }
            Filter::Shared(shared) => {
                self.leave_group(net, slot, shared, changes);
            }
        }
    }
}

/// The code for a filter in SUBACK.
fn for_version(reason: ReasonCode, version: Version) -> ReasonCode {
    if version == Version::V5 || !reason.is_error() {
        reason
    } else {
        ReasonCode::UNSPECIFIED_ERROR // 3.x knows one failure code, 0x80.
    }
}

/// Why the broker refused a filter, for SUBACK's reason string.
fn explain(reason: ReasonCode, is_stalled: bool) -> Option<&'static str> {
    match reason {
        ReasonCode::QUOTA_EXCEEDED if is_stalled => Some(NOTHING_CAN_BE_WRITTEN),
        ReasonCode::QUOTA_EXCEEDED => {
            Some("too many subscriptions, of this client or of all, or too many levels in a filter")
        }
        ReasonCode::NOT_AUTHORIZED => {
            Some("the access rules do not allow every topic of a filter to be received")
        }
        _ => None,
    }
}
