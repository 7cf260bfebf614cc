//! Rejects plans that cannot run, with a message that says what to change.

use std::collections::{HashMap, HashSet};

use tacho_codec::QoS;

use super::expect::broker_of;
use super::{Action, Client, Group, Pace, Phase, Plan, Receiver, SharedGroup};
use crate::payload::Payload;

/// Why a plan cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No thread to run on.
    #[error("a plan needs at least one generator thread")]
    NoThreads,
    /// No broker address.
    #[error("group {group} has no target address")]
    NoTargets {
        /// Group name.
        group: String,
    },
    /// A client's own certificate cannot be used.
    #[error("{0}")]
    Certificate(String),
    /// No client at all.
    #[error("a plan needs at least one client")]
    NoClients,
    /// More clients or streams than a 31-bit number can identify.
    #[error("{count} {what} exceed the limit of 2147483647")]
    TooMany {
        /// `clients` or `streams`.
        what: &'static str,
        /// Their number.
        count: usize,
    },
    /// The payload cannot hold the header.
    #[error(
        "group {group}: a payload of {bytes} bytes is too small, the header that verification needs takes {bytes_min}"
    )]
    PayloadTooSmall {
        /// Group name.
        group: String,
        /// Size asked for.
        bytes: u32,
        /// Size of the header.
        bytes_min: u32,
    },
    /// The payload does not fit into an MQTT packet.
    #[error("group {group}: a payload of {bytes} bytes does not fit into an MQTT packet (256 MiB)")]
    PayloadTooLarge {
        /// Group name.
        group: String,
        /// Size of the largest message.
        bytes: u64,
    },
    /// JMeter's pacing without a rate or without threads.
    #[error("group {group}: JMeter's pacing needs a positive rate and at least one thread")]
    JmeterPace {
        /// Group name.
        group: String,
    },
    /// An invalid trace.
    #[error("group {group}: the trace of arrivals is invalid: {why}")]
    Trace {
        /// Group name.
        group: String,
        /// The reason.
        why: &'static str,
    },
    /// Clients are to return to sessions that end with their connections.
    #[error(
        "group {group}: its clients go offline and return, but their sessions end before that; set a session expiry of more than the {away_s} s they stay away"
    )]
    OfflineWithoutSession {
        /// Group name.
        group: String,
        /// How long they stay away, in seconds.
        away_s: u64,
    },
    /// Clients are to receive messages that are larger than what they accept.
    #[error(
        "group {group}: a maximum packet size of {limit} bytes is too small, the messages it is to receive need {needed}"
    )]
    PacketSize {
        /// Group name.
        group: String,
        /// The limit.
        limit: u32,
        /// Size of the largest packet.
        needed: u32,
    },
    /// A rate or a factor of zero.
    #[error("{what} must not be zero")]
    Zero {
        /// What is zero.
        what: &'static str,
    },
    /// A rate of connects or disconnects that is not a positive number.
    #[error("group {group}: the {what} rate must be a positive number, not {rate}")]
    ConnectRate {
        /// Group name.
        group: String,
        /// `connect` or `disconnect`.
        what: &'static str,
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
    /// Closed mode at QoS 0 counts deliveries, and there is no receiver.
    #[error(
        "topic {topic}: closed mode at QoS 0 counts deliveries, but no subscription matches it"
    )]
    ClosedWithoutReceiver {
        /// Topic of the stream.
        topic: String,
    },
    /// Two brokers have a group of this name, and figures could not tell them apart.
    #[error("the shared subscription {filter:?} is used at two brokers; give each its own name")]
    SharedAtTwoBrokers {
        /// As sent.
        filter: String,
    },
    /// An invalid action.
    #[error("action {number} of the plan: {why}")]
    Action {
        /// Its number, from 1.
        number: usize,
        /// The reason.
        why: &'static str,
    },
    /// Logins that make no sense.
    #[error("group {group}: {why}")]
    Login {
        /// Group name.
        group: String,
        /// The reason.
        why: &'static str,
    },
    /// A text of CONNECT that MQTT does not allow.
    #[error("group {group}: a {what} cannot be sent: {why}")]
    Text {
        /// Group name.
        group: String,
        /// `client id` or `user name`.
        what: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A topic name or filter that MQTT does not allow.
    #[error("{what} {name:?}: {why}")]
    Topic {
        /// `topic` or `filter`.
        what: &'static str,
        /// As given.
        name: String,
        /// The reason.
        why: String,
    },
}

impl Plan {
    /// Largest payload: MQTT's remaining length minus topic and properties.
    pub const PAYLOAD_BYTES_MAX: u32 = 268_435_455 - 65_535 - 64;

    /// Checks that the plan can run.
    ///
    /// # Errors
    /// The first problem found.
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
        self.check_actions()?;
        self.check_routes()?;
        self.check_packet_sizes()
    }

    fn check_groups(&self) -> Result<(), PlanError> {
        let mut ids = HashSet::new();
        for group in &self.groups {
            if self.targets.is_empty() && group.targets.is_empty() {
                return Err(PlanError::NoTargets { group: group.name.clone() });
            }
            for (what, rate) in
                [("connect", group.connects_per_s), ("disconnect", group.disconnects_per_s)]
            {
                if let Some(rate) = rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
                    let (group, rate) = (group.name.clone(), rate.to_string());
                    return Err(PlanError::ConnectRate { group, what, rate });
                }
            }
            if group.inflight_max == 0 {
                return Err(PlanError::Zero { what: "inflight_max" });
            }
            check_life(group)?;
            check_login(group).map_err(|why| {
                let group = group.name.clone();
                PlanError::Login { group, why }
            })?;
            if group.absent && self.has_absences() {
                check_absence(group, self.load_ns())?;
            }
            for block in &group.publish {
                check_payload(&group.name, &block.payload)?;
                check_pace(&group.name, &block.pace)?;
            }
            for client in &group.clients {
                if !client.id.is_empty() && !ids.insert(client.id.as_str()) {
                    return Err(PlanError::SameClientId { id: client.id.clone() });
                }
                check_client(group, client)?;
            }
        }
        Ok(())
    }

    fn has_absences(&self) -> bool {
        self.phases.contains(&Phase::Offline)
    }

    /// Total length of all load phases.
    fn load_ns(&self) -> u64 {
        let lengths = self.phases.iter().map(|phase| match phase {
            Phase::WarmUp { duration_ns, .. } | Phase::Measure { duration_ns, .. } => *duration_ns,
            _ => 0,
        });
        lengths.fold(0, u64::saturating_add)
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

    fn check_actions(&self) -> Result<(), PlanError> {
        if self.actions.len() > Action::MAX {
            let why = "the limit is 10000 actions";
            return Err(PlanError::Action { number: self.actions.len(), why });
        }
        for (action, number) in self.actions.iter().zip(1..) {
            let why = match self.groups.get(action.group) {
                None => "its group does not exist",
                Some(group) if group.login.is_some() => "its clients log in by a schedule",
                Some(group) if action.clients as usize > group.clients.len() => {
                    "it affects more clients than its group has"
                }
                Some(_) => continue,
            };
            return Err(PlanError::Action { number, why });
        }
        Ok(())
    }

    fn check_routes(&self) -> Result<(), PlanError> {
        let (clients, shared) = (self.client_count() as u32, self.shared_groups().len() as u32);
        let mut received = vec![false; self.streams().count()];
        let mut seen = HashSet::new();
        for (index, route) in self.routes.iter().enumerate() {
            let known = match route.receiver {
                Receiver::Client(client) => client.number() < clients,
                Receiver::Shared(group) => group < shared,
            };
            let Some(stream) = received.get_mut(route.stream.index()) else {
                return Err(PlanError::BadRoute { index });
            };
            if !known || !seen.insert((route.stream, route.receiver)) {
                return Err(PlanError::BadRoute { index });
            }
            *stream = true;
        }
        for ((_, stream, block), received) in self.streams().zip(received) {
            check_topic("topic", &stream.topic)?;
            if matches!(block.pace, Pace::Closed { .. })
                && block.qos == QoS::AtMostOnce
                && !received
            {
                return Err(PlanError::ClosedWithoutReceiver { topic: stream.topic.clone() });
            }
        }
        let mut brokers = HashMap::new();
        for (group, client) in self.clients() {
            for subscription in &client.subscriptions {
                let Some(shared) = SharedGroup::parse(&subscription.filter) else { continue };
                let broker = broker_of(group);
                if *brokers.entry(shared).or_insert(broker) != broker {
                    let filter = subscription.filter.clone();
                    return Err(PlanError::SharedAtTwoBrokers { filter });
                }
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

fn check_client(group: &Group, client: &Client) -> Result<(), PlanError> {
    let username = client.username.as_deref().unwrap_or_default();
    for (what, text) in [("client id", client.id.as_str()), ("user name", username)] {
        check_text(text).map_err(|why| PlanError::Text { group: group.name.clone(), what, why })?;
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
        let payload = &group.publish[stream.block].payload;
        let bytes = payload.bytes_max(&client.id, &stream.topic);
        if bytes > Plan::PAYLOAD_BYTES_MAX as usize {
            let (group, bytes) = (group.name.clone(), bytes as u64);
            return Err(PlanError::PayloadTooLarge { group, bytes });
        }
    }
    match client.will_topic.as_ref().filter(|_| group.will.is_some()) {
        Some(topic) => check_topic("will topic", topic),
        None => Ok(()),
    }
}

/// Checks that a text may be sent in a packet (MQTT 5.0 section 1.5.4).
///
/// # Errors
/// What is wrong with it.
pub fn check_text(text: &str) -> Result<(), &'static str> {
    if text.len() > usize::from(u16::MAX) {
        Err("it has more than 65,535 bytes")
    } else if text.contains('\0') {
        Err("it contains the null character (U+0000)")
    } else if !tacho_codec::is_valid_text(text) {
        Err("it contains a control character or a non-character")
    } else {
        Ok(())
    }
}

fn check_payload(group: &str, payload: &Payload) -> Result<(), PlanError> {
    let (bytes, bytes_min) = match payload {
        Payload::Random { bytes } | Payload::Zeros { bytes } => (*bytes, Plan::PAYLOAD_BYTES_MIN),
        Payload::Jmeter { bytes, .. } => (*bytes, Plan::TEXT_BYTES_MIN),
        // The template itself adds the header.
        Payload::Text(_) => return Ok(()),
    };
    let group = group.to_owned();
    if bytes < bytes_min {
        return Err(PlanError::PayloadTooSmall { group, bytes, bytes_min });
    }
    if bytes > Plan::PAYLOAD_BYTES_MAX {
        return Err(PlanError::PayloadTooLarge { group, bytes: bytes.into() });
    }
    Ok(())
}

fn check_pace(group: &str, pace: &Pace) -> Result<(), PlanError> {
    let what = match pace {
        Pace::Open { rate, .. } | Pace::Poisson { rate, .. }
            if rate.messages == 0 || rate.per_ns == 0 =>
        {
            "the publish rate"
        }
        Pace::Bursts { messages: 0, .. } => "the size of a burst",
        Pace::Bursts { period_ns: 0, .. } => "the time between bursts",
        Pace::Closed { window: 0 } => "the window of closed mode",
        Pace::Trace { trace, .. } => {
            return trace.check().map_err(|why| PlanError::Trace { group: group.to_owned(), why });
        }
        Pace::Jmeter { per_minute, threads, .. }
            if !(per_minute.is_finite() && *per_minute > 0.0) || *threads == 0 =>
        {
            return Err(PlanError::JmeterPace { group: group.to_owned() });
        }
        _ => return Ok(()),
    };
    Err(PlanError::Zero { what })
}

fn check_life(group: &Group) -> Result<(), PlanError> {
    if let Some(will) = &group.will
        && will.payload.len() > usize::from(u16::MAX)
    {
        let bytes = will.payload.len() as u64;
        return Err(PlanError::PayloadTooLarge { group: group.name.clone(), bytes });
    }
    if let Some(reconnect) = &group.reconnect
        && reconnect.attempts_max == 0
    {
        return Err(PlanError::Zero { what: "the number of attempts to reconnect" });
    }
    group.offline.as_ref().map_or(Ok(()), |offline| check_absence(group, offline.for_ns))
}

fn check_login(group: &Group) -> Result<(), &'static str> {
    if group.authentication.needs_v5() && !group.version.is_v5() {
        return Err("authentication by AUTH needs MQTT 5");
    }
    let Some(login) = &group.login else { return Ok(()) };
    login.check()?;
    let has_traffic =
        |client: &Client| !client.streams.is_empty() || !client.subscriptions.is_empty();
    let lives = group.offline.is_some() || group.absent || group.reconnect.is_some();
    if lives || group.clients.iter().any(has_traffic) {
        return Err("its clients log in by a schedule: they neither publish nor subscribe, and \
                    have no 'offline', 'absent' or 'reconnect'");
    }
    Ok(())
}

/// Checks that sessions outlast the absence of their clients.
fn check_absence(group: &Group, away_ns: u64) -> Result<(), PlanError> {
    let away_s = away_ns.div_ceil(1_000_000_000);
    if !group.is_persistent() || group.version.is_v5() && u64::from(group.session_expiry_s) < away_s
    {
        let group = group.name.clone();
        return Err(PlanError::OfflineWithoutSession { group, away_s });
    }
    Ok(())
}

fn check_topic(what: &'static str, topic: &str) -> Result<(), PlanError> {
    tacho_codec::check_topic_name(topic).map_err(|why| PlanError::Topic {
        what,
        name: topic.to_owned(),
        why: why.to_string(),
    })
}
