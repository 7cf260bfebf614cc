//! SUBSCRIBE and SUBACK.

use tacho_codec::{QoS, SubAck, Subscribe, SubscribeFilter, SubscribeOptions, UserProperties};
use tacho_net::{Net, clock};

use super::client::PendingSubscribe;
use super::lifecycle::{State, Subscriptions};
use super::{Failure, Worker};
use crate::histogram::record;
use crate::mail::ReportBody;

/// Filters per SUBSCRIBE, which keeps packets far below any broker's limit.
const FILTERS_PER_PACKET_MAX: usize = 100;

impl Worker {
    /// Schedules the subscribes of all clients with filters, at once.
    pub(super) fn plan_subscribes(&mut self, start_ns: u64) {
        for (local, client) in self.clients.iter_mut().enumerate() {
            if self.context.subscribes_later[client.group] {
                client.subscriptions = Subscriptions::Unwanted;
                // No message is due to it until its action.
                self.verifier.end_session(local);
            } else {
                client.subscriptions.want();
            }
        }
        let plan = &self.context.plan;
        self.pacing = (0..)
            .zip(&self.clients)
            .filter(|(_, client)| client.state == State::Up && client.subscriptions.are_wanted())
            .filter(|(_, client)| {
                !plan.groups[client.group].clients[client.rank].subscriptions.is_empty()
            })
            .map(|(local, _)| (start_ns, local))
            .collect();
    }

    pub(super) fn subscribe(&mut self, net: &mut Net<Self>, local: usize) {
        let context = std::sync::Arc::clone(&self.context);
        let client = &mut self.clients[local];
        let Some(conn) = client.conn.filter(|_| client.state == State::Up) else { return };
        let subscriptions = &context.plan.groups[client.group].clients[client.rank].subscriptions;
        let mut missing = 0;
        for (index, part) in subscriptions.chunks(FILTERS_PER_PACKET_MAX).enumerate() {
            let filters = part.iter().map(|subscription| SubscribeFilter {
                filter: &subscription.filter,
                options: SubscribeOptions {
                    no_local: subscription.no_local,
                    retain_handling: subscription.retain_handling,
                    ..SubscribeOptions::new(subscription.qos)
                },
            });
            let sent = client.session.reserve_id().map(|packet_id| {
                let subscribe = Subscribe {
                    packet_id,
                    subscription_id: None,
                    user_properties: UserProperties::default(),
                    filters: filters.collect(),
                };
                client.pending_subscribes.push(PendingSubscribe {
                    packet_id,
                    first_filter: index * FILTERS_PER_PACKET_MAX,
                    filters: part.len(),
                });
                subscribe.encode(client.version, net.out(conn).as_vec_mut())
            });
            match sent {
                Some(Ok(())) => missing += 1,
                Some(Err(error)) => {
                    return self.fail(net, local, Failure::Protocol(error.to_string()));
                }
                None => {
                    let why = "more than 65535 SUBSCRIBEs of one client in flight".into();
                    return self.fail(net, local, Failure::Protocol(why));
                }
            }
        }
        client.state = State::Subscribing { since_ns: clock::now_ns(), missing };
    }

    pub(super) fn handle_suback(
        &mut self,
        local: usize,
        suback: &SubAck<'_>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let context = std::sync::Arc::clone(&self.context);
        let client = &mut self.clients[local];
        let mut pending = client.pending_subscribes.iter();
        let at = pending.position(|pending| pending.packet_id == suback.packet_id);
        let (Some(at), State::Subscribing { since_ns, missing }) = (at, client.state) else {
            return Err(Failure::Protocol("SUBACK without SUBSCRIBE".into()));
        };
        let PendingSubscribe { packet_id, first_filter, filters: count } =
            client.pending_subscribes.swap_remove(at);
        client.session.release_id(packet_id);
        if suback.reasons.len() != count {
            let why = format!("a SUBACK has {} codes for {count} filters", suback.reasons.len());
            return Err(Failure::Protocol(why));
        }
        let took_ns = now_ns.saturating_sub(since_ns);
        record(&mut self.suback_latency, took_ns);
        let granted = !suback.reasons.iter().any(|reason| reason.is_error());
        self.recorder.sample.subscribe.note(granted, took_ns);
        client.state = if missing == 1 {
            client.pending_subscribes = Vec::new();
            client.subscriptions = Subscriptions::Made;
            State::Up
        } else {
            State::Subscribing { since_ns, missing: missing - 1 }
        };
        let is_complete = client.state == State::Up;
        let index = client.index;
        let subscriptions = &context.plan.groups[client.group].clients[client.rank].subscriptions;
        for (subscription, reason) in subscriptions[first_filter..].iter().zip(&suback.reasons) {
            match QoS::from_u8(reason.value()) {
                Some(granted) => {
                    self.totals.subscribed += 1;
                    if granted < subscription.qos {
                        self.verifier.set_granted(local, &subscription.filter, granted);
                    }
                }
                None => {
                    // Messages of this filter will be missing, which is no violation.
                    self.verifier.set_failed(local);
                    let filter = subscription.filter.clone();
                    let why = Failure::SubscribeRefused { filter, reason: *reason };
                    self.report(ReportBody::Failed { client: index, why });
                }
            }
        }
        if is_complete {
            self.settle_in(local, now_ns);
        }
        Ok(())
    }
}
