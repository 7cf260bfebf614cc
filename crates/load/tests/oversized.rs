//! Brokers that send more than a client accepts.

use tacho_codec::{QoS, Version};
use tacho_load::{Engine, Event, Failure, OversizedPacket, Plan};
use tacho_testkit::load::{Outcome, Scene, collect, run};
use tacho_testkit::memory::{resident_bytes, resident_bytes_max};
use tacho_testkit::{Flood, FloodingBroker, PATIENCE};

/// What a flooding broker sends to each client.
const FLOOD_BYTES: usize = 32 << 20;
/// The largest MQTT packet.
const LARGEST: u32 = 268_435_460;
const MIB: u32 = 1 << 20;

fn flooded(
    flood: Flood,
    pairs: usize,
    change: impl FnOnce(&mut Plan),
) -> (Outcome, FloodingBroker) {
    let broker = FloodingBroker::start(flood);
    let mut plan = Scene::pairs(pairs, QoS::AtLeastOnce).plan(broker.address);
    change(&mut plan);
    (run(plan), broker)
}

#[test]
fn packets_above_the_limit_close_their_clients_and_take_no_memory() {
    let before = resident_bytes();
    for (flood, name) in
        [(Flood::ConnAck(FLOOD_BYTES), "CONNACK"), (Flood::Publish(FLOOD_BYTES), "PUBLISH")]
    {
        let (outcome, broker) = flooded(flood, 8, |_| {});
        let packet = OversizedPacket { name, bytes: LARGEST };
        let why = Failure::PacketTooLarge { packet, limit_bytes: MIB };
        assert_eq!(outcome.failures.len(), 16);
        assert!(outcome.failures.iter().all(|(_, failure)| *failure == why), "{outcome:?}");
        assert_eq!(broker.packet_sizes(), [None; 16], "nothing was announced");
    }
    // Without a limit, 16 clients keep 512 MiB.
    let grown = resident_bytes_max().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes");
}

#[test]
fn incomplete_packets_of_all_clients_share_a_budget() {
    let broker = FloodingBroker::start(Flood::Part(900_000, 600_000));
    // Subscribers alone: they wait for a SUBACK that never comes, so the run does not end before
    // the parts have arrived.
    let mut plan =
        Scene { publishers: 0, ..Scene::pairs(8, QoS::AtLeastOnce) }.plan(broker.address);
    plan.receive_bytes_max = 2_000_000;
    let engine = Engine::start(plan).expect("the plan is good");
    let packet = OversizedPacket { name: "PUBLISH", bytes: 900_005 };
    let why = Failure::ReceiveBudget { packet, budget_bytes: 2_000_000 };
    // Three keep 600,000 bytes each; any further one does not fit.
    let mut beyond = 0;
    while beyond < 5 {
        match engine.next_event(2 * PATIENCE).expect("events until the end") {
            Event::Failed { why: failure, .. } => {
                assert_eq!(failure, why);
                beyond += 1;
            }
            Event::Finished(summary) => panic!("{beyond} failed: {summary:?}"),
            _ => {}
        }
    }
    engine.abort();
    assert_eq!(collect(&engine).failures, [], "the parts of three fit");
}

#[test]
fn a_limit_of_the_plan_is_announced_and_kept() {
    let size = 5 * MIB;
    for (version, announced) in [(Version::V5, Some(size)), (Version::V311, None)] {
        let (outcome, broker) = flooded(Flood::Part(size, 0), 1, |plan| {
            for group in &mut plan.groups {
                group.version = version;
                group.packet_size_max = Some(size);
            }
        });
        assert_eq!(broker.packet_sizes(), [announced; 2]);
        let packet = OversizedPacket { name: "PUBLISH", bytes: size + 5 };
        let why = Failure::PacketTooLarge { packet, limit_bytes: size };
        assert!(outcome.failures.iter().all(|(_, failure)| *failure == why), "{outcome:?}");
    }
}
