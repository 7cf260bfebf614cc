//! What clients accept from brokers.

use std::collections::HashMap;

use super::{Client, ClientIndex, Group, Plan, PlanError, Receiver, SharedGroup, Stream};

impl Plan {
    /// Packets up to this size are accepted by every client whose group sets no limit: 1 MiB.
    pub const PACKET_BYTES_ACCEPTED: u32 = 1 << 20;
    /// Bytes that a broker may add to a published packet: its properties, and a longer topic on the
    /// other side of a bridge.
    const ADDED_BYTES_MAX: u32 = 128 * 1024;
    /// Largest MQTT packet: its first byte, the remaining length, and what that announces.
    const PACKET_BYTES_MAX: u32 = 5 + 268_435_455;
    /// Budget for incomplete packets where the system does not report its memory: 1 GiB.
    pub const RECEIVE_BYTES_MAX: u64 = 1 << 30;

    /// A budget for [`Plan::receive_bytes_max`] that suits this machine: a quarter of the memory
    /// that this process may use.
    pub fn receive_bytes_of_machine() -> u64 {
        tacho_net::memory_bytes().map_or(Self::RECEIVE_BYTES_MAX, |bytes| bytes / 4)
    }

    /// The largest packet, in bytes, that clients of each group accept: as the group says, else
    /// [`Plan::PACKET_BYTES_ACCEPTED`] or what the largest message of the plan needs.
    pub fn packet_bytes_accepted(&self) -> Vec<u32> {
        let largest = self.largest_packet_bytes().saturating_add(Self::ADDED_BYTES_MAX);
        let usual = largest.clamp(Self::PACKET_BYTES_ACCEPTED, Self::PACKET_BYTES_MAX);
        self.groups.iter().map(|group| group.packet_size_max.unwrap_or(usual)).collect()
    }

    /// The largest PUBLISH of the plan, in bytes. Wills are always smaller than what is accepted.
    fn largest_packet_bytes(&self) -> u32 {
        let streams = self.clients().flat_map(|(group, client)| {
            client.streams.iter().map(move |stream| packet_bytes(group, client, stream))
        });
        streams.max().unwrap_or_default()
    }

    /// Refuses groups whose limit is below a message that they are to receive.
    pub(super) fn check_packet_sizes(&self) -> Result<(), PlanError> {
        if self.groups.iter().all(|group| group.packet_size_max.is_none()) {
            return Ok(());
        }
        let sizes: Vec<u32> = self
            .clients()
            .flat_map(|(group, client)| {
                client.streams.iter().map(move |stream| packet_bytes(group, client, stream))
            })
            .collect();
        let mut due = HashMap::<Receiver, u32>::new();
        for route in &self.routes {
            let bytes = due.entry(route.receiver).or_default();
            *bytes = (*bytes).max(sizes[route.stream.index()]);
        }
        let shared: HashMap<SharedGroup, u32> = self.shared_groups().into_iter().zip(0..).collect();
        for (index, (group, client)) in ClientIndex::all().zip(self.clients()) {
            let groups = client.subscriptions.iter().filter_map(|subscription| {
                let number = shared.get(&SharedGroup::parse(&subscription.filter)?)?;
                Some(Receiver::Shared(*number))
            });
            let receivers = groups.chain([Receiver::Client(index)]);
            let needed = receivers.filter_map(|receiver| due.get(&receiver)).max();
            if let (Some(limit), Some(&needed)) = (group.packet_size_max, needed)
                && limit < needed
            {
                let group = group.name.clone();
                return Err(PlanError::PacketSize { group, limit, needed });
            }
        }
        Ok(())
    }
}

/// Size of the largest PUBLISH of a stream, without properties.
fn packet_bytes(group: &Group, client: &Client, stream: &Stream) -> u32 {
    let payload = group.publish[stream.block].payload.bytes_max(&client.id, &stream.topic);
    // The fixed header, the length of the topic, the packet identifier, no properties.
    let bytes = payload + stream.topic.len() + 5 + 2 + 2 + 1;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use tacho_codec::QoS;

    use crate::payload::Payload;
    use crate::plan::Plan;
    use crate::plan::tests::{plan_of, publisher, subscriber};

    fn plan(bytes: u32, filter: &str) -> Plan {
        let qos = QoS::AtMostOnce;
        let mut plan = plan_of(vec![publisher("t", qos), subscriber(filter, qos)]);
        plan.groups[0].publish[0].payload = Payload::Zeros { bytes };
        plan.groups[1].packet_size_max = Some(5_000_000);
        plan
    }

    #[test]
    fn the_largest_message_or_one_mebibyte_is_accepted() {
        assert_eq!(plan(128, "t").packet_bytes_accepted(), [1 << 20, 5_000_000]);
        let accepted = plan(3_000_000, "t").packet_bytes_accepted();
        assert!(accepted[0] > 3_000_000 && accepted[0] < 3_200_000, "{accepted:?}");
        let largest = plan(Plan::PAYLOAD_BYTES_MAX, "t").packet_bytes_accepted();
        assert_eq!(largest[0], Plan::PACKET_BYTES_MAX);
    }

    #[test]
    fn limits_below_the_messages_that_a_group_is_due_are_refused() {
        for filter in ["t", "$share/group/+"] {
            assert_eq!(plan(4_999_900, filter).check(), Ok(()));
            let error = plan(5_000_000, filter).check().expect_err("too small").to_string();
            assert!(error.contains("maximum packet size of 5000000 bytes"), "{error}");
        }
        assert_eq!(plan(5_000_000, "other").check(), Ok(()));
    }
}
