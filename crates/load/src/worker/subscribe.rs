//! SUBSCRIBE and SUBACK.

use tacho_codec::{QoS, SubAck, Subscribe, SubscribeFilter, SubscribeOptions, UserProperties};
use tacho_net::{Net, clock};

use super::client::State;
use super::{Failure, Worker};
use crate::mail::ReportBody;
use crate::recorder::record;

/// Filters of one SUBSCRIBE; keeps packets far below any broker's limit.
const FILTERS_PER_PACKET_MAX: usize = 100;

impl Worker {
    /// Plans the subscribes: all clients with filters, at once.
    pub(super) fn plan_subscribes(&mut self, start_ns: u64) {
        for (local, client) in self.clients.iter_mut().enumerate() {
            client.wants_subscriptions = !self.common.subscribes_later[client.group];
            if !client.wants_subscriptions {
                // Nothing is for it until then.
                self.verifier.end_session(local);
            }
        }
        let plan = &self.common.plan;
        self.pacing = (0..)
            .zip(&self.clients)
            .filter(|(_, client)| client.state == State::Up && client.wants_subscriptions)
            .filter(|(_, client)| {
                !plan.groups[client.group].clients[client.rank].subscriptions.is_empty()
            })
            .map(|(local, _)| (start_ns, local))
            .collect();
    }

    pub(super) fn subscribe(&mut self, net: &mut Net<Self>, local: usize) {
        let common = std::sync::Arc::clone(&self.common);
        let client = &mut self.clients[local];
        let Some(conn) = client.conn.filter(|_| client.state == State::Up) else { return };
        let subscriptions = &common.plan.groups[client.group].clients[client.rank].subscriptions;
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
                client.subscribes.push((packet_id, index * FILTERS_PER_PACKET_MAX, part.len()));
                subscribe.encode(client.version, net.out(conn).as_vec_mut())
            });
            match sent {
                Some(Ok(())) => missing += 1,
                Some(Err(error)) => {
                    return self.fail(net, local, Failure::Protocol(error.to_string()));
                }
                None => {
                    let why = "more than 65535 SUBSCRIBEs of one client at a time".into();
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
        let common = std::sync::Arc::clone(&self.common);
        let client = &mut self.clients[local];
        let at = client.subscribes.iter().position(|(id, ..)| *id == suback.packet_id);
        let (Some(at), State::Subscribing { since_ns, missing }) = (at, client.state) else {
            return Err(Failure::Protocol("a SUBACK without SUBSCRIBE".into()));
        };
        let (packet_id, first, count) = client.subscribes.swap_remove(at);
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
            client.subscribes = Vec::new();
            client.is_subscribed = true;
            State::Up
        } else {
            State::Subscribing { since_ns, missing: missing - 1 }
        };
        let is_complete = client.state == State::Up;
        let index = client.index;
        let subscriptions = &common.plan.groups[client.group].clients[client.rank].subscriptions;
        for (subscription, reason) in subscriptions[first..].iter().zip(&suback.reasons) {
            match QoS::from_u8(reason.value()) {
                Some(granted) => {
                    self.totals.subscribed += 1;
                    if granted < subscription.qos {
                        self.verifier.set_granted(local, &subscription.filter, granted);
                    }
                }
                None => {
                    // What this filter should have brought will be missing, but through no
                    // breach of a promise.
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
