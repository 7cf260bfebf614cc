//! Refuses plans that cannot run, with a sentence that says what to change.

use std::collections::HashSet;

use tacho_codec::QoS;

use super::{Pace, Phase, Plan, Receiver};

/// Why a plan cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No thread to run on.
    #[error("a plan needs at least one generator thread")]
    NoThreads,
    /// Nowhere to connect to.
    #[error("group {group} has no target address")]
    NoTargets {
        /// Group name.
        group: String,
    },
    /// No client at all.
    #[error("a plan needs at least one client")]
    NoClients,
    /// More clients or streams than a 31-bit number can name.
    #[error("{what}: {count} are more than 2147483647")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// The payload cannot hold the header.
    #[error(
        "group {group}: a payload of {bytes} bytes is too small, the header that verification needs takes {}",
        Plan::PAYLOAD_BYTES_MIN
    )]
    PayloadTooSmall {
        /// Group name.
        group: String,
        /// Size asked for.
        bytes: u32,
    },
    /// The payload does not fit into an MQTT packet.
    #[error("group {group}: a payload of {bytes} bytes does not fit into an MQTT packet (256 MiB)")]
    PayloadTooLarge {
        /// Group name.
        group: String,
        /// Size asked for.
        bytes: u32,
    },
    /// A rate or a factor of zero.
    #[error("{what} must not be zero")]
    Zero {
        /// What is zero.
        what: &'static str,
    },
    /// A connect rate that is not a positive number.
    #[error("group {group}: the connect rate must be a positive number, not {rate}")]
    ConnectRate {
        /// Group name.
        group: String,
        /// As given.
        rate: String,
    },
    /// A stream names a publish block that its group does not have.
    #[error("client {client} names publish block {block}, its group {group} has {blocks}")]
    NoSuchBlock {
        /// Client identifier.
        client: String,
        /// Group name.
        group: String,
        /// Block named.
        block: usize,
        /// Blocks there are.
        blocks: usize,
    },
    /// A route names something that the plan does not have, or is there twice.
    #[error("route {index} names a stream or receiver that the plan does not have, or repeats one")]
    BadRoute {
        /// Position in `routes`.
        index: usize,
    },
    /// Two clients with the same identifier would disconnect each other.
    #[error("two clients have the identifier {id}")]
    SameClientId {
        /// The identifier.
        id: String,
    },
    /// Closed mode at QoS 0 counts by deliveries, and nobody receives.
    #[error(
        "topic {topic}: closed mode at QoS 0 counts by deliveries, but no subscription matches it"
    )]
    ClosedWithoutReceiver {
        /// Topic of the stream.
        topic: String,
    },
    /// A topic name or filter that MQTT does not allow.
    #[error("{what} {name:?}: {why}")]
    Topic {
        /// `topic` or `filter`.
        what: &'static str,
        /// As given.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Plan {
    /// Largest payload: what MQTT's remaining length leaves beside topic and properties.
    pub const PAYLOAD_BYTES_MAX: u32 = 268_435_455 - 65_535 - 64;

    /// Checks that the plan can run.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.threads == 0 {
            return Err(PlanError::NoThreads);
        }
        if self.client_count() == 0 {
            return Err(PlanError::NoClients);
        }
        self.check_groups()?;
        for (what, count) in [
            ("clients", self.client_count()),
            ("streams", self.groups.iter().flat_map(|g| &g.clients).map(|c| c.streams.len()).sum()),
        ] {
            if count > i32::MAX as usize {
                return Err(PlanError::TooMany { what, count });
            }
        }
        self.check_phases()?;
        self.check_routes()
    }

    fn check_groups(&self) -> Result<(), PlanError> {
        let mut ids = HashSet::new();
        for group in &self.groups {
            if self.targets.is_empty() && group.targets.is_empty() {
                return Err(PlanError::NoTargets { group: group.name.clone() });
            }
            if let Some(rate) = group.connects_per_s
                && !(rate.is_finite() && rate > 0.0)
            {
                let rate = rate.to_string();
                return Err(PlanError::ConnectRate { group: group.name.clone(), rate });
            }
            if group.inflight_max == 0 {
                return Err(PlanError::Zero { what: "inflight_max" });
            }
            for block in &group.publish {
                let (group, bytes) = (group.name.clone(), block.payload_bytes);
                if bytes < Self::PAYLOAD_BYTES_MIN {
                    return Err(PlanError::PayloadTooSmall { group, bytes });
                }
                if bytes > Self::PAYLOAD_BYTES_MAX {
                    return Err(PlanError::PayloadTooLarge { group, bytes });
                }
                match block.pace {
                    Pace::Open { rate, .. } if rate.messages == 0 || rate.per_ns == 0 => {
                        return Err(PlanError::Zero { what: "the publish rate" });
                    }
                    Pace::Closed { window: 0 } => {
                        return Err(PlanError::Zero { what: "the window of closed mode" });
                    }
                    _ => {}
                }
            }
            for client in &group.clients {
                if !client.id.is_empty() && !ids.insert(client.id.as_str()) {
                    return Err(PlanError::SameClientId { id: client.id.clone() });
                }
                for stream in &client.streams {
                    if stream.block >= group.publish.len() {
                        return Err(PlanError::NoSuchBlock {
                            client: client.id.clone(),
                            group: group.name.clone(),
                            block: stream.block,
                            blocks: group.publish.len(),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    fn check_phases(&self) -> Result<(), PlanError> {
        for phase in &self.phases {
            if let Phase::WarmUp { scale, .. } | Phase::Measure { scale, .. } = phase
                && (scale.num == 0 || scale.den == 0)
            {
                return Err(PlanError::Zero { what: "the scale of a phase" });
            }
            if let Phase::Measure { duration_ns: 0, .. } = phase {
                return Err(PlanError::Zero { what: "the length of the measured window" });
            }
        }
        Ok(())
    }

    fn check_routes(&self) -> Result<(), PlanError> {
        let (clients, shared) = (self.client_count() as u32, self.shared_groups().len() as u32);
        let mut received = vec![false; self.streams().count()];
        let mut seen = HashSet::new();
        for (index, route) in self.routes.iter().enumerate() {
            let known = match route.receiver {
                Receiver::Client(client) => client < clients,
                Receiver::Shared(group) => group < shared,
            };
            let Some(stream) = received.get_mut(route.stream as usize) else {
                return Err(PlanError::BadRoute { index });
            };
            if !known || !seen.insert((route.stream, route.receiver)) {
                return Err(PlanError::BadRoute { index });
            }
            *stream = true;
        }
        for ((_, stream, block), received) in self.streams().zip(received) {
            tacho_topic::check_topic_name(&stream.topic).map_err(|why| PlanError::Topic {
                what: "topic",
                name: stream.topic.clone(),
                why: why.to_string(),
            })?;
            if matches!(block.pace, Pace::Closed { .. })
                && block.qos == QoS::AtMostOnce
                && !received
            {
                return Err(PlanError::ClosedWithoutReceiver { topic: stream.topic.clone() });
            }
        }
        for subscription in self.clients().flat_map(|(_, client)| &client.subscriptions) {
            tacho_topic::Filter::parse(&subscription.filter).map_err(|why| PlanError::Topic {
                what: "filter",
                name: subscription.filter.clone(),
                why: why.to_string(),
            })?;
        }
        Ok(())
    }
}
