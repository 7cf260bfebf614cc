//! Tries out bridges: everything that a broker would do with them, once.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tacho_broker::{BridgeConfig, BridgeWire, bridge_addresses, bridge_connect};
use tacho_codec::{
    ConnAck, Disconnect, Packet, PacketId, Publish, QoS, ReasonCode, RetainHandling, Subscribe,
    SubscribeFilter, SubscribeOptions, UserProperties, Version,
};

use super::{TestArguments, config, no_such_bridge};
use crate::exit::{self, Failure};

/// How long the exchange of packets may take after CONNACK.
const PATIENCE: Duration = Duration::from_secs(10);

/// The command.
pub(super) fn test(arguments: &TestArguments) -> Result<u8, Failure> {
    let config = config(&arguments.config)?;
    if let Some(topic) = &arguments.topic
        && !tacho_codec::is_valid_topic_name(topic)
    {
        let sentence = format!("'{topic}' is not a topic that can be published to");
        return Err(Failure::new(exit::UNEXPECTED, sentence));
    }
    let names = || config.bridges.iter().map(|bridge| bridge.name.as_str());
    if let Some(name) = &arguments.name
        && !names().any(|known| known == name)
    {
        return Err(no_such_bridge(name, names()));
    }
    if config.bridges.is_empty() {
        let sentence = format!("{} has no bridges", arguments.config.display());
        return Err(Failure::new(exit::INVALID_CONFIG, sentence));
    }
    // What would not even start the broker needs no other one to be found out.
    config.check_bridges().map_err(|error| Failure::new(exit::INVALID_CONFIG, error))?;
    let wanted =
        |bridge: &&BridgeConfig| arguments.name.as_ref().is_none_or(|name| bridge.name == *name);
    let mut worst = exit::OK;
    for bridge in config.bridges.iter().filter(wanted) {
        println!("bridge {} to {}, MQTT {}", bridge.name, bridge.remote, bridge.version);
        let code = match Trial::new(bridge, arguments.topic.as_deref()).run() {
            Ok(true) => exit::OK,
            Ok(false) => exit::THRESHOLD,
            Err(sentence) => {
                println!("  FAILED   {sentence}");
                exit::TARGET_UNREACHABLE
            }
        };
        worst = worst.max(code);
        for warning in bridge.warnings() {
            println!("  note     {warning}");
        }
    }
    Ok(worst)
}

/// One bridge that is tried out.
struct Trial<'a> {
    bridge: &'a BridgeConfig,
    topic: String,
    /// Whether everything was allowed so far.
    allowed: bool,
}

/// The relevant contents of a CONNACK.
struct Granted {
    maximum_qos: QoS,
    reason: ReasonCode,
}

impl<'a> Trial<'a> {
    fn new(bridge: &'a BridgeConfig, topic: Option<&str>) -> Self {
        let client_id = format!("{}-test", bridge.client_id);
        let plain = |c: char| if "+#\0".contains(c) { '-' } else { c };
        let own =
            || format!("tacho-bridge-test/{}", client_id.chars().map(plain).collect::<String>());
        let topic = topic.map_or_else(own, str::to_owned);
        Self { bridge, topic, allowed: true }
    }

    /// Whether everything is allowed.
    ///
    /// # Errors
    /// A sentence when there is no connection, or none any more.
    fn run(mut self) -> Result<bool, String> {
        let addresses = self.addresses()?;
        let (mut wire, granted) = self.connect_to_one(&addresses)?;
        let broken = |error: std::io::Error| error.to_string();
        self.subscribe(&mut wire).map_err(broken)?;
        self.publish(&mut wire, &granted).map_err(broken)?;
        let mut bytes = Vec::new();
        if Disconnect::new(ReasonCode::SUCCESS).encode(self.bridge.version, &mut bytes).is_ok() {
            // Whether it hears that is of no interest.
            let _ = wire.send(&bytes);
        }
        Ok(self.allowed)
    }

    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let addresses = bridge_addresses(&self.bridge.remote)?;
        let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        println!("  ok       address {}", shown.join(", "));
        Ok(addresses)
    }

    /// The first address that answers counts.
    fn connect_to_one(&self, addresses: &[SocketAddr]) -> Result<(BridgeWire, Granted), String> {
        let mut last = String::new();
        for address in addresses {
            let (wire, granted) = match self.connect(*address, false) {
                Ok(connected) => connected,
                Err(sentence) => {
                    last = sentence;
                    continue;
                }
            };
            if granted.reason.is_error() {
                return Err(format!("CONNECT is refused: {}", granted.reason));
            }
            if self.bridge.bridge_flag {
                self.try_flag(*address);
            }
            return Ok((wire, granted));
        }
        Err(last)
    }

    /// A broker that knows bridges does not echo their messages: such a connection can try
    /// nothing else. It has an identifier of its own.
    fn try_flag(&self, address: SocketAddr) {
        let taken = self.connect(address, true).is_ok_and(|(_, told)| !told.reason.is_error());
        match taken {
            true => println!("  ok       it knows bridges"),
            false => println!(
                "  note     it does not recognise bridges, and sends their own messages back"
            ),
        }
    }

    fn connect(&self, address: SocketAddr, flag: bool) -> Result<(BridgeWire, Granted), String> {
        let bridge = self.bridge;
        let patience = Duration::from_secs(u64::from(bridge.connect_timeout_s));
        let began = Instant::now();
        let mut wire = BridgeWire::connect(address, bridge.version, patience + PATIENCE)
            .map_err(|error| format!("cannot connect to {address}: {error}"))?;
        println!("  ok       TCP connection to {address} in {}", shown(began));
        if let Some(tls) = bridge.open_tls().map_err(|error| error.to_string())? {
            let began = Instant::now();
            wire.secure(&tls).map_err(|error| format!("TLS with {address}: {error}"))?;
            let verified = bridge.remote.tls.as_ref().is_some_and(|tls| !tls.insecure);
            let trust = if verified { "certificate verified" } else { "certificate NOT verified" };
            println!("  ok       TLS in {}, {trust}", shown(began));
        }
        let began = Instant::now();
        let broken = |error: std::io::Error| format!("CONNECT: {error}");
        wire.send(&bridge_connect(bridge, flag)?).map_err(broken)?;
        let granted = wire
            .wait_for(|packet| match packet {
                Packet::ConnAck(answer) => Some(granted(answer, bridge.version, began)),
                _ => None,
            })
            .map_err(broken)?;
        Ok((wire, granted))
    }

    /// Subscribes to the filters of the ingress rules and to the topic of the message.
    fn subscribe(&mut self, wire: &mut BridgeWire) -> std::io::Result<()> {
        let bridge = self.bridge;
        let own = (self.topic.clone(), QoS::ExactlyOnce);
        let mut asked: Vec<(String, QoS)> = Vec::new();
        for rule in &bridge.ingress {
            match rule.filter.is_shared() {
                // Messages that it received would be lost for the other links.
                true => println!("  skipped  ingress {}: a shared subscription", rule.filter),
                false => asked.push((rule.filter.to_string(), rule.subscription_qos())),
            }
        }
        asked.push(own);
        let options = |qos| SubscribeOptions {
            retain_handling: match bridge.version.is_v5() {
                true => RetainHandling::Never,
                false => RetainHandling::Always,
            },
            ..SubscribeOptions::new(qos)
        };
        let filters = asked
            .iter()
            .map(|(filter, qos)| SubscribeFilter { filter, options: options(*qos) })
            .collect();
        let packet_id = PacketId::FIRST;
        let user_properties = UserProperties::default();
        let subscribe = Subscribe { packet_id, subscription_id: None, user_properties, filters };
        let mut bytes = Vec::new();
        subscribe.encode(bridge.version, &mut bytes).map_err(std::io::Error::other)?;
        wire.send(&bytes)?;
        let reasons = wire.wait_for(|packet| match packet {
            Packet::SubAck(answer) => Some(answer.reasons.clone()),
            _ => None,
        })?;
        for (at, (filter, qos)) in asked.iter().enumerate() {
            let what = if at + 1 == asked.len() { "test topic" } else { "ingress" };
            let reason = reasons.get(at).copied().unwrap_or(ReasonCode::UNSPECIFIED_ERROR);
            match reason.is_error() {
                true => {
                    self.allowed = false;
                    println!("  REFUSED  subscription to {what} {filter}: {reason}");
                }
                false if u8::from(reason) < *qos as u8 => {
                    let level = u8::from(reason);
                    println!("  ok       subscription to {what} {filter}, QoS {level} at most");
                }
                false => println!("  ok       subscription to {what} {filter}"),
            }
        }
        Ok(())
    }

    /// Sends a message to the test topic and waits for it.
    fn publish(&mut self, wire: &mut BridgeWire, granted: &Granted) -> std::io::Result<()> {
        let qos = granted.maximum_qos.min(QoS::AtLeastOnce);
        // Concurrent trials of the same bridge send different payloads.
        let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let payload = format!("bridge {} {nanos}", self.bridge.name);
        let publish = Publish {
            qos,
            topic: &self.topic,
            packet_id: (qos > QoS::AtMostOnce).then_some(PacketId::FIRST),
            payload: payload.as_bytes(),
            ..Publish::default()
        };
        let mut bytes = Vec::new();
        publish.encode(self.bridge.version, &mut bytes).map_err(std::io::Error::other)?;
        let began = Instant::now();
        wire.send(&bytes)?;
        let (mut acknowledged, mut came) = (qos == QoS::AtMostOnce, false);
        let mut reason = ReasonCode::SUCCESS;
        let outcome = wire.wait_for(|packet| {
            match packet {
                Packet::PubAck(answer) => {
                    acknowledged = true;
                    reason = answer.reason;
                }
                Packet::Publish(message) => came |= message.payload == payload.as_bytes(),
                _ => {}
            }
            (acknowledged && (came || reason.is_error())).then_some(())
        });
        match (outcome, acknowledged) {
            (_, true) if reason.is_error() => {
                self.allowed = false;
                println!("  REFUSED  message to {}: {reason}", self.topic);
            }
            (Ok(()), _) => {
                println!("  ok       message to {} came back in {}", self.topic, shown(began));
            }
            (Err(error), true) if error.kind() == std::io::ErrorKind::TimedOut => {
                self.allowed = false;
                println!(
                    "  REFUSED  message to {}: it was acknowledged and did not come back",
                    self.topic
                );
            }
            (Err(error), _) => return Err(error),
        }
        Ok(())
    }
}

/// Prints the limits that the other broker grants.
fn granted(answer: &ConnAck<'_>, version: Version, began: Instant) -> Granted {
    let reason = answer.reason;
    let properties = &answer.properties;
    let maximum_qos = properties.maximum_qos.unwrap_or(QoS::ExactlyOnce);
    if !reason.is_error() {
        println!("  ok       CONNACK in {}", shown(began));
        if version.is_v5() {
            let or = |value: Option<u64>, absent: &str| {
                value.map_or_else(|| absent.to_owned(), |value| value.to_string())
            };
            let unless =
                |available: Option<bool>| if available == Some(false) { "no" } else { "yes" };
            for (what, value) in [
                ("receive maximum", or(properties.receive_maximum.map(u64::from), "65535")),
                ("maximum QoS", (maximum_qos as u8).to_string()),
                ("maximum packet size", or(properties.packet_size_max.map(u64::from), "any")),
                ("topic alias maximum", or(properties.topic_alias_maximum.map(u64::from), "0")),
                ("retained messages", unless(properties.retain_available).to_owned()),
                ("wildcards", unless(properties.wildcard_subscription_available).to_owned()),
                ("shared", unless(properties.shared_subscription_available).to_owned()),
                ("keep alive", or(properties.server_keep_alive_s.map(u64::from), "as asked")),
            ] {
                println!("             {what}: {value}");
            }
        }
    } else if let Some(words) = properties.reason_string {
        println!("  note     it says: {words}");
    }
    Granted { maximum_qos, reason }
}

/// The time since then.
fn shown(began: Instant) -> String {
    format!("{:.1} ms", began.elapsed().as_secs_f64() * 1e3)
}
