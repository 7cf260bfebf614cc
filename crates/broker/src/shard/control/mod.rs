//! What a shard tells the control plane: its loop's figures after each turn, and answers to its
//! questions, each bounded so that clients do not notice; and what it does for operators.

mod clients;

#[cfg(feature = "sim")]
mod inspect;
mod topics;

use crate::query::{Query, Reply};
use crate::shard::{Net, Shard};

#[cfg(feature = "sim")]
pub use inspect::{Held, OverLimit, Totals};

impl Shard {
    /// Tells what the loop has counted. A few plain stores per turn.
    #[inline]
    pub(super) fn note_turn(&mut self, net: &Net) {
        let (stats, counters) = (&self.stats, net.counters());
        if counters.turns > 1 {
            stats.turn_ns.observe(net.last_turn_ns());
        }
        stats.turns_total.set(counters.turns);
        stats.slow_turns_total.set(counters.slow_turns);
        stats.turn_ns_max.set(counters.turn_ns_max);
        stats.turn_cpu_ns_max.set(counters.turn_cpu_ns_max);
        stats.turn_units_max.set(counters.turn_units_max);
        stats.sleeps_total.set(counters.sleeps);
        stats.busy_ns_total.set(counters.busy_ns);
        stats.reads_total.set(counters.reads);
        stats.writes_total.set(counters.writes);
        stats.write_batches_total.set(counters.write_batches);
        stats.wakes_total.set(counters.wakes);
        stats.bytes_in_total.set(counters.read_bytes);
        stats.bytes_out_total.set(counters.written_bytes);
    }

    /// Answers the control plane.
    #[cold]
    pub(super) fn asked(&mut self, net: &mut Net, query: Query) {
        match query {
            Query::Pulse(reply) => answer(reply, ()),
            Query::Clients(scan, reply) => answer(reply, self.clients(net, &scan)),
            Query::Client(id, reply) => answer(reply, self.client(net, &id)),
            Query::SubscriptionsOf(id, from, reply) => {
                answer(reply, self.subscriptions_of(net, &id, from));
            }
            Query::Subscribers(scan, reply) => answer(reply, self.subscribers(net, &scan)),
            Query::Explain(asked, reply) => answer(reply, self.explain_access(&asked)),
            Query::FiltersOf(topic, reply) => {
                answer(reply, self.routing.matching_filters(&topic));
            }
            Query::Members(group, limit, reply) => {
                answer(reply, self.members(net, &group, limit));
            }
            Query::Retained(scan, reply) => answer(reply, self.retained_rows(net, scan)),
            Query::RetainedMessage(topic, reply) => {
                answer(reply, self.retained_message(net, &topic));
            }
            Query::DeleteRetained(topic, reply) => {
                answer(reply, self.delete_retained(net, &topic));
            }
            Query::Publish(publication, reply) => {
                answer(reply, self.publish_for_operator(net, &publication));
            }
            Query::Kick(id, session, reply) => answer(reply, self.kick(net, &id, session)),
            Query::SetBridges(bridges, reply) => {
                self.bridges_changed(net, bridges);
                answer(reply, ());
            }
            Query::BridgeMode(place, reply) => {
                self.bridge_mode_changed(net, place);
                answer(reply, ());
            }
            Query::Trace(set, reply) => {
                self.set_traces(set);
                answer(reply, ());
            }
            Query::CountTopics(topics, reply) => {
                self.count_topics(topics);
                answer(reply, ());
            }
            Query::CountPublishes(wanted, reply) => {
                self.count_publishes(wanted);
                answer(reply, ());
            }
            Query::Publishers(scan, reply) => answer(reply, self.publishers(net, &scan)),
            Query::SlowHistory(reply) => answer(reply, self.slow_history(net)),
            Query::BeginDrain(server_reference, reply) => {
                self.begin_draining(server_reference);
                answer(reply, ());
            }
            Query::SendAway(count, reply) => answer(reply, self.send_away(net, count)),
            Query::EndDrain(reply) => {
                self.end_draining();
                answer(reply, ());
            }
            Query::Listen(index, socket, reply) => {
                let listens = self.is_stopping() || net.listen(index, socket).is_ok();
                answer(reply, listens);
            }
            Query::CloseListener(index, reply) => {
                net.close_listener(index);
                answer(reply, ());
            }
        }
    }
}

/// The requester may have given up meanwhile, which is harmless.
fn answer<T>(reply: Reply<T>, value: T) {
    let _ = reply.send(value);
}
