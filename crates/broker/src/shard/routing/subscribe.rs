//! SUBSCRIBE and UNSUBSCRIBE: filters into the indexes, retained messages requested, codes back.
//!
//! A packet with a malformed filter ends the connection, and none of its filters takes effect.

use std::sync::atomic::Ordering;

use tacho_access::{Coverage, Steps};
use tacho_codec::{
    Packet, QoS, ReasonCode, RetainHandling, SubAck, Subscribe, SubscribeFilter, UnsubAck,
    Unsubscribe, UserProperties, Version,
};
use tacho_net::ConnId;
use tacho_session::BatchSeq;
use tacho_topic::{Filter, FilterError, RouteChange};

use crate::keys::SessionSlot;
use crate::shard::durability::{Changed, NOTHING_CAN_BE_WRITTEN, RecordedChanges};
use crate::shard::output::Flow;
use crate::shard::permission::may_subscribe;
use crate::shard::{Net, Shard};
use crate::subscription::SubscriptionOptions;

/// Filters that a packet may name however few subscriptions a session may have.
const FILTERS_PER_PACKET: usize = 1_024;
/// What a filter costs, in the map that shards share too.
const FILTER_UNITS: u32 = 3;

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

/// What the filters of one SUBSCRIBE come to.
#[derive(Default)]
struct Asked {
    /// The journal takes nothing at present.
    is_stalled: bool,
    /// For SUBACK.
    reasons: Vec<ReasonCode>,
    explanation: Option<&'static str>,
    /// For the route map.
    changes: Vec<RouteChange>,
    replays: Vec<WantsReplay>,
    granted: Vec<(Changed, SubscriptionOptions)>,
    /// What asking the access rules may cost.
    steps: Steps,
}

impl Shard {
    pub(in crate::shard) fn subscribe(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        subscribe: &Subscribe<'_>,
    ) -> Flow {
        if self.is_unresponsive(net, conn) {
            return self.end_connection(net, conn, ReasonCode::QUOTA_EXCEEDED);
        }
        if subscribe.filters.len() > self.filters_per_packet_max() {
            return self.too_many_filters(net, conn);
        }
        let filters = match parse_all(subscribe.filters.iter().map(|asked| asked.filter)) {
            Ok(filters) => filters,
            Err(error) => return self.malformed_filter(net, conn, error),
        };
        net.charge(filters.len() as u32 * FILTER_UNITS);
        self.make_room_for(net, filters.len());
        // What is refused now is told now, and not behind what waits for a commit.
        let is_stalled = self.sessions[slot].journal.is_durable() && self.durability.is_stalled();
        let mut asked = Asked { is_stalled, ..Asked::default() };
        for (filter, requested) in filters.into_iter().zip(&subscribe.filters) {
            self.subscribe_one(
                net,
                slot,
                (filter, requested),
                subscribe.subscription_id,
                &mut asked,
            );
        }
        let Asked { reasons, explanation, changes, replays, granted, .. } = asked;
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
        let batch = self.record_subscriptions(slot, &granted);
        let changed = granted.into_iter().map(|(changed, _)| changed).collect();
        let recorded = RecordedChanges { batch, changed };
        let packet_id = subscribe.packet_id;
        let suback = SubAck {
            packet_id,
            reasons,
            reason_string: explanation,
            user_properties: UserProperties::EMPTY,
        };
        let suback = Packet::SubAck(suback);
        let flow = match is_stalled {
            true => self.answer(net, conn, slot, suback),
            false => self.answer_after(net, conn, slot, suback, recorded),
        };
        if flow == Flow::Stop {
            return Flow::Stop;
        }
        self.stats.subscribes_total.increment();
        for WantsReplay { filter, .. } in replays {
            // A later filter of the packet may be the same one with other options.
            let Some(options) = self.routing.options(&filter, slot) else { continue };
            self.start_replay(net, slot, filter, options);
        }
        Flow::Continue
    }

    /// A filter that cannot be one: the packet is malformed [MQTT-4.13.1-1].
    #[cold]
    fn malformed_filter(&mut self, net: &mut Net, conn: ConnId, error: FilterError) -> Flow {
        self.end_connection_because(net, conn, ReasonCode::MALFORMED_PACKET, error.sentence())
    }

    /// A packet is handled in one turn: its filters are limited by what a session may have, though
    /// one that is named again and again adds nothing to that.
    fn filters_per_packet_max(&self) -> usize {
        self.limits().subscriptions_per_session_max.max(FILTERS_PER_PACKET)
    }

    #[cold]
    fn too_many_filters(&mut self, net: &mut Net, conn: ConnId) -> Flow {
        self.stats.refused_subscriptions_total.increment();
        let why = "more topic filters in one packet than a session may have subscriptions";
        self.end_connection_because(net, conn, ReasonCode::QUOTA_EXCEEDED, why)
    }

    /// One filter of a SUBSCRIBE.
    fn subscribe_one(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        (filter, requested): (Filter, &SubscribeFilter<'_>),
        id: Option<u32>,
        asked: &mut Asked,
    ) {
        let session = &self.sessions[slot];
        let (version, is_bridge) = (session.version(), session.is_bridge());
        let mut options = SubscriptionOptions::new(&requested.options, id);
        let handling = requested.options.retain_handling;
        if is_bridge {
            self.shared.bridges_subscribe.store(true, Ordering::Relaxed);
            options.no_local = !filter.is_shared();
            options.retain_as_published = true;
        }
        let former = self.journaled_options(slot, &filter);
        let reason = if asked.is_stalled {
            self.stats.journal_refused_subscriptions_total.increment();
            ReasonCode::QUOTA_EXCEEDED
        } else {
            let requested = RequestedSubscription { filter: &filter, options, handling };
            self.add_subscription(net, slot, requested, asked)
        };
        if asked.explanation.is_none() {
            asked.explanation = explain(reason, asked.is_stalled);
        }
        if !reason.is_error() {
            asked.granted.push((Changed { filter, former }, options));
        }
        asked.reasons.push(if version == Version::V5 || !reason.is_error() {
            reason
        } else {
            ReasonCode::UNSPECIFIED_ERROR // 3.x knows one failure code, 0x80.
        });
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

    /// Writes down what was granted, as the index has it.
    fn record_subscriptions(
        &mut self,
        slot: SessionSlot,
        granted: &[(Changed, SubscriptionOptions)],
    ) -> BatchSeq {
        let mut batch = BatchSeq::DONE;
        if !self.sessions[slot].journal.is_durable() {
            return batch;
        }
        for (Changed { filter, .. }, options) in granted {
            let options = self.journaled_options(slot, filter).unwrap_or(*options);
            batch = batch.max(self.record_subscription(slot, filter, options));
        }
        batch
    }

    /// The options of a durable session's subscription, if it has it.
    fn journaled_options(&self, slot: SessionSlot, filter: &Filter) -> Option<SubscriptionOptions> {
        if !self.sessions[slot].journal.is_durable() {
            return None;
        }
        self.options_of(slot, filter)
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

    /// A subscription that a session has is over, in the journal too.
    pub(in crate::shard) fn forget_one(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        filter: &Filter,
    ) {
        let mut changes = Vec::new();
        self.sessions[slot].subscriptions.remove(filter);
        self.remove_subscription(net, slot, filter, &mut changes);
        self.record_unsubscribed(slot, filter);
        self.shared.routes.apply(&changes);
        self.refresh_routes();
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
        asked: &mut Asked,
    ) -> ReasonCode {
        let RequestedSubscription { filter, options, handling } = requested;
        if let Err(reason) = may_subscribe(filter, self.limits()) {
            self.stats.refused_subscriptions_total.increment();
            return reason;
        }
        if self.access.has_rules() && !self.grants(net, slot, (filter, options.qos), asked) {
            return ReasonCode::NOT_AUTHORIZED;
        }
        let limit = self.limits().subscriptions_per_session_max;
        let subscriptions = &mut self.sessions[slot].subscriptions;
        let known = subscriptions.contains(filter);
        if !known {
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
                self.routing.insert(filter, slot, (options, is_durable), &mut asked.changes);
                let wanted = match handling {
                    RetainHandling::Always => true,
                    RetainHandling::IfNew => !known,
                    RetainHandling::Never => false,
                };
                if wanted {
                    asked.replays.push(WantsReplay { filter: filter.clone(), is_new: !known });
                } else {
                    self.change_replay(slot, filter, options);
                }
            }
            Filter::Shared(shared) if known => self.change_membership(slot, shared, options),
            // Shared subscriptions get no retained messages when they are made (4.8.2).
            Filter::Shared(shared) => {
                self.join_group(net, slot, shared, options, &mut asked.changes);
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
        (filter, qos): (&Filter, QoS),
        asked: &mut Asked,
    ) -> bool {
        let why = match self.covers(slot, (filter, qos), &mut asked.steps) {
            Coverage::Whole => return true,
            Coverage::Partial => "not every topic of the filter may be received",
            Coverage::Undecided => "filter and rules are too complex to decide",
        };
        self.stats.denied_subscriptions_total.increment();
        self.log_denied(net, slot, "subscribe", &filter.to_string(), &why);
        false
    }

    pub(in crate::shard) fn unsubscribe(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        unsubscribe: &Unsubscribe<'_>,
    ) -> Flow {
        if self.is_unresponsive(net, conn) {
            return self.end_connection(net, conn, ReasonCode::QUOTA_EXCEEDED);
        }
        if unsubscribe.filters.len() > self.filters_per_packet_max() {
            return self.too_many_filters(net, conn);
        }
        let filters = match parse_all(unsubscribe.filters.iter().copied()) {
            Ok(filters) => filters,
            Err(error) => return self.malformed_filter(net, conn, error),
        };
        net.charge(filters.len() as u32 * FILTER_UNITS);
        let mut changes = Vec::new();
        let mut batch = BatchSeq::DONE;
        let mut reasons = Vec::with_capacity(filters.len());
        for filter in &filters {
            let subscriptions = &mut self.sessions[slot].subscriptions;
            reasons.push(if subscriptions.remove(filter) {
                self.remove_subscription(net, slot, filter, &mut changes);
                batch = batch.max(self.record_unsubscribed(slot, filter));
                ReasonCode::SUCCESS
            } else {
                ReasonCode::NO_SUBSCRIPTION_EXISTED
            });
        }
        self.shared.routes.apply(&changes);
        self.refresh_routes();
        let packet_id = unsubscribe.packet_id;
        let unsuback = UnsubAck {
            packet_id,
            reasons,
            reason_string: None,
            user_properties: UserProperties::EMPTY,
        };
        self.stats.unsubscribes_total.increment();
        // Also while the journal is stalled: it promises that they stay removed.
        let unsuback = Packet::UnsubAck(unsuback);
        let recorded = RecordedChanges { batch, changed: Vec::new() };
        self.answer_after(net, conn, slot, unsuback, recorded)
    }

    fn remove_subscription(
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

/// All filters of a packet, or what is wrong with one of them.
fn parse_all<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<Filter>, FilterError> {
    texts.map(Filter::parse).collect()
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
