//! What waits for another broker that cannot be reached, as the broker dies again and again: every
//! message that was acknowledged, once.

use tacho_broker::RawConfig;
use tacho_codec::{AckKind, QoS, ReasonCode};
use tacho_net::sim::Faults;

use crate::station::{Client, Death, Seen, Station};

const SEEDS: u64 = 30;
const TOPICS: u16 = 5;
/// Nobody is there, and nobody asks again while a test runs.
const BRIDGE: &str = "[[bridges]]\nname = 'b'\naddress = 'mqtt://127.0.0.1:1'\nconnections = 4\n\
                      retry_first_s = 86400\nretry_longest_s = 86400\n\
                      [[bridges.egress]]\nfilter = 't/#'\n";

/// The publisher releases what the broker has received.
fn receive(publisher: &mut Client, unreceived: &mut Vec<u16>) {
    for seen in publisher.all() {
        if let Seen::Ack(AckKind::PubRec, id, reason) = seen {
            assert_eq!(reason, ReasonCode::SUCCESS);
            unreceived.retain(|known| *known != id);
            publisher.acknowledge(AckKind::PubRel, id);
        }
    }
}

fn run(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let shards = rng.usize(1..=3);
    let narrow = rng.bool();
    let faults = Faults {
        mail_delay_percent: rng.u8(..60),
        event_delay_percent: rng.u8(..40),
        ..Faults::default()
    };
    let mut station = Station::with_faults(seed, shards, faults, |raw| {
        raw.bridges = toml::from_str::<RawConfig>(BRIDGE).unwrap().bridges;
        if narrow {
            // Fan-outs go on in later turns.
            raw.limits.deliveries_per_turn_max = 1;
        }
    });
    let mut publisher = station.lasting("publisher");
    let mut unreceived: Vec<u16> = Vec::new();
    let mut next = 0;
    let topic = |id: u16| format!("t/{}", id % TOPICS);
    for _ in 0..rng.u32(2..5) {
        for _ in 0..rng.u32(1..20) {
            next += 1;
            publisher.publish(&topic(next), &next.to_string(), QoS::ExactlyOnce, next);
            unreceived.push(next);
            for _ in 0..rng.u32(..6) {
                match rng.u8(..4) {
                    0 => drop(station.cluster.commit()),
                    1 => receive(&mut publisher, &mut unreceived),
                    _ => drop(station.cluster.loops().step()),
                }
            }
        }
        receive(&mut publisher, &mut unreceived);
        station.restart(if rng.bool() { Death::Killed } else { Death::PowerCut });
        publisher = station.resumed("publisher");
        for id in &unreceived {
            publisher.publish_with(&topic(*id), &id.to_string(), QoS::ExactlyOnce, *id, |mut p| {
                p.dup = true;
                p
            });
        }
        station.commit();
        receive(&mut publisher, &mut unreceived);
        station.commit();
        assert!(unreceived.is_empty(), "seed {seed}: {unreceived:?} are not acknowledged");
        let held: usize = (0..shards).map(|shard| station.cluster.held(shard).queue_len).sum();
        assert_eq!(held, usize::from(next), "seed {seed}: {shards} shards");
    }
}

#[test]
fn what_waits_for_another_broker_is_there_once_wherever_the_broker_dies() {
    for seed in 0..SEEDS {
        assert!(std::panic::catch_unwind(|| run(seed)).is_ok(), "failing seed: {seed}");
    }
}
