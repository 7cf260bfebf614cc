//! The broker dies at any moment: what was acknowledged is there, QoS 2 exactly once.

use std::collections::HashSet;

use tacho_broker::SharedStrategy;
use tacho_codec::{AckKind, QoS, ReasonCode};
use tacho_net::sim::Faults;

use crate::durable_broker::{Client, Death, DurableBroker, Seen};

const QOS2: QoS = QoS::ExactlyOnce;
const SEEDS: u64 = 60;
const NAMES: [&str; 3] = ["subscriber-a", "subscriber-b", "subscriber-c"];
const MEMBERS: [&str; 2] = ["member-a", "member-b"];

/// What a subscriber has got.
#[derive(Default)]
struct Got {
    payloads: Vec<String>,
    /// Identifiers that were not released: their messages are known.
    unreleased: HashSet<u16>,
}

impl Got {
    /// Takes in what came, and answers it as a client of QoS 2 does, or dawdles.
    fn take(&mut self, client: &mut Client, rng: &mut fastrand::Rng) {
        for seen in client.all() {
            match seen {
                Seen::Message { payload, id, .. } => {
                    if self.unreleased.insert(id) {
                        self.payloads.push(payload);
                    }
                    if rng.u8(..100) < 90 {
                        client.acknowledge(AckKind::PubRec, id);
                    }
                }
                Seen::Ack(AckKind::PubRel, id, _) => {
                    self.unreleased.remove(&id);
                    client.acknowledge(AckKind::PubComp, id);
                }
                _ => {}
            }
        }
    }
}

fn some_steps(broker: &mut DurableBroker, rng: &mut fastrand::Rng) {
    for _ in 0..rng.u32(..6) {
        match rng.u8(..4) {
            0 => {
                broker.cluster.commit();
            }
            1 => broker.settle(),
            _ => {
                broker.cluster.loops().step();
            }
        }
    }
}

fn run(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let shards = rng.usize(1..=3);
    let narrow = rng.bool();
    let strategy = SharedStrategy::ALL[rng.usize(..SharedStrategy::ALL.len())];
    let faults = Faults {
        mail_delay_percent: rng.u8(..60),
        event_delay_percent: rng.u8(..40),
        ..Faults::default()
    };
    let mut broker = DurableBroker::with_faults(seed, shards, faults, |raw| {
        if narrow {
            // Fan-outs go on in later turns.
            raw.limits.deliveries_per_turn_max = 1;
        }
        raw.shared_subscription_strategy = Some(strategy);
    });
    for (names, filter) in [(&NAMES[..], "t"), (&MEMBERS[..], "$share/g/t")] {
        for name in names {
            let mut client = broker.lasting(name);
            broker.subscribe(&mut client, filter, QOS2);
            client.peer.reset();
        }
    }
    let mut publisher = broker.lasting("publisher");
    let mut got: Vec<Got> = NAMES.iter().chain(&MEMBERS).map(|_| Got::default()).collect();
    // Messages whose PUBREC has not come, by identifier, in their order.
    let mut unreceived: Vec<(u16, String)> = Vec::new();
    let mut next = 0;
    for _ in 0..rng.u32(2..5) {
        let mut clients: Vec<Client> =
            NAMES.iter().chain(&MEMBERS).map(|name| broker.resumed(name)).collect();
        for _ in 0..rng.u32(1..30) {
            match rng.u8(..13) / 4 {
                0 if next < 60 => {
                    next += 1;
                    publisher.publish("t", &next.to_string(), QOS2, next);
                    unreceived.push((next, next.to_string()));
                }
                1 => {
                    let which = rng.usize(..clients.len());
                    got[which].take(&mut clients[which], &mut rng);
                }
                2 => receive(&mut publisher, &mut unreceived),
                _ => {
                    // A member goes, and what it had not got goes to the other one.
                    let member = NAMES.len() + rng.usize(..MEMBERS.len());
                    got[member].take(&mut clients[member], &mut rng);
                    clients[member].peer.reset();
                    some_steps(&mut broker, &mut rng);
                    clients[member] = broker.resuming(MEMBERS[member - NAMES.len()]);
                }
            }
            some_steps(&mut broker, &mut rng);
        }
        // What arrived before the end counts as received.
        for (got, client) in got.iter_mut().zip(&mut clients) {
            got.take(client, &mut rng);
        }
        receive(&mut publisher, &mut unreceived);
        let death = if rng.bool() { Death::Killed } else { Death::PowerCut };
        broker.restart(death);
        publisher = broker.resumed("publisher");
        for (id, payload) in &unreceived {
            publisher.publish_with("t", payload, QOS2, *id, |mut publish| {
                publish.dup = true;
                publish
            });
        }
        broker.commit();
        receive(&mut publisher, &mut unreceived);
        assert!(unreceived.is_empty(), "seed {seed}: {unreceived:?} are not acknowledged");
    }
    // What was not answered is repeated on new connections.
    for _ in 0..20 {
        let mut clients: Vec<Client> =
            NAMES.iter().chain(&MEMBERS).map(|name| broker.resumed(name)).collect();
        for _ in 0..10 {
            broker.commit();
            for (got, client) in got.iter_mut().zip(&mut clients) {
                got.take(client, &mut rng);
            }
        }
    }
    let expected: Vec<String> = (1..=next).map(|n| n.to_string()).collect();
    for (name, got) in NAMES.iter().zip(&got) {
        assert_eq!(got.payloads, expected, "seed {seed}: {name}, {shards} shards");
    }
    let mut shared: Vec<u16> =
        got[NAMES.len()..].iter().flat_map(|g| &g.payloads).map(|n| n.parse().unwrap()).collect();
    shared.sort_unstable();
    assert_eq!(shared, (1..=next).collect::<Vec<_>>(), "seed {seed}: group, {shards} shards");
}

/// The publisher releases what the broker has received.
fn receive(publisher: &mut Client, unreceived: &mut Vec<(u16, String)>) {
    for seen in publisher.all() {
        if let Seen::Ack(AckKind::PubRec, id, reason) = seen {
            assert!(!reason.is_error(), "{reason:?}");
            assert_ne!(reason, ReasonCode::PACKET_IDENTIFIER_NOT_FOUND);
            unreceived.retain(|(known, _)| *known != id);
            publisher.acknowledge(AckKind::PubRel, id);
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn qos_2_is_exactly_once_wherever_the_broker_dies() {
    if let Some(seed) = variable("TACHO_SIM_SEED") {
        return run(seed);
    }
    for seed in 0..variable("TACHO_SIM_SEEDS").unwrap_or(SEEDS) {
        let ended = std::panic::catch_unwind(|| run(seed));
        let again = format!("TACHO_SIM_SEED={seed} cargo test -p tacho-broker --test kept crash");
        assert!(ended.is_ok(), "failing seed: {again}");
    }
}
