//! Clients that do not read do not delay others, and are reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::slowest;
use tacho_codec::{QoS, Version};
use tacho_testkit::{Client, TestBroker, wait_until};

const MESSAGES: u32 = 3_000;

fn subscriber(broker: &TestBroker, name: &str, qos: QoS) -> Client {
    let mut client = broker.connected(name, Version::V5);
    client.subscribe("news", qos);
    client
}

#[test]
fn one_subscriber_that_never_reads_delays_no_other_and_is_reported() {
    for shards in [1, 3] {
        let broker = TestBroker::with_metrics(&format!(
            "shards = {shards}\n[limits]\noutput_bytes_max = 100000\nsession_queue_len_max = 50\n\
             inflight_max = 20000"
        ));
        let deaf = subscriber(&broker, "deaf", QoS::AtMostOnce);
        let deaf_qos1 = subscriber(&broker, "deaf-qos1", QoS::AtLeastOnce);
        let progress: [Arc<AtomicU32>; 6] = Default::default();
        let readers: Vec<_> = (0..progress.len())
            .map(|i| {
                let mut client = subscriber(&broker, &format!("reader-{i}"), QoS::AtLeastOnce);
                let progress = Arc::clone(&progress[i]);
                std::thread::spawn(move || {
                    for number in 0..MESSAGES {
                        assert_eq!(client.receive_and_ack().payload[..4], number.to_be_bytes());
                        progress.store(number + 1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let mut publisher = broker.connected("publisher", Version::V5);
        for number in 0..MESSAGES {
            let mut payload = vec![0; 5_000];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            // Acknowledged each: the publisher is never held back.
            publisher.publish("news", &payload, QoS::AtLeastOnce, false);
            // Subscribers that read are never further behind than their own small queue allows.
            wait_until("readers follow", || {
                progress.iter().all(|read| read.load(Ordering::Relaxed) + 10 > number)
            });
        }
        for reader in readers {
            reader.join().expect("a reader got everything in order");
        }
        assert!(broker.counter("dropped_output_full_total") > 0);
        assert!(broker.counter("dropped_queue_full_total") > 0);
        let slow = slowest(&broker, 2);
        let mut names: Vec<&str> = slow.iter().map(|c| c["client_id"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["deaf", "deaf-qos1"]);
        for client in &slow {
            assert!(client["output_bytes"].as_u64() > Some(0), "{client}");
            assert!(client["dropped"].as_u64() > Some(0), "{client}");
            let is_qos1 = client["client_id"] == "deaf-qos1";
            assert_eq!(client["queue_len"].as_u64() > Some(0), is_qos1);
            assert_eq!(client["queue_bytes"].as_u64() > Some(0), is_qos1);
        }
        wait_until("the time is told", || {
            slowest(&broker, 2).iter().all(|client| client["blocked_ms"].as_u64() > Some(0))
        });
        drop((deaf, deaf_qos1));
        wait_until("the client that left is removed", || {
            slowest(&broker, 9).iter().all(|c| !c["client_id"].as_str().unwrap().contains("deaf"))
        });
    }
}
