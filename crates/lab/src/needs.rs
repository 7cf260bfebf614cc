//! What a scenario needs of the machine that generates its load.

use tacho_load::{PlanError, QoS};

use crate::calibration::Calibration;
use crate::plan::{PlanOptions, plan};
use crate::scenario::{DESCRIPTORS_RESERVED, Limits, Scenario, Shortage};

/// Messages per second, sent and received, that one core of the generator is expected to sustain
/// at QoS 1 and 2: bench/runs/2026-11-21-generator carried it without loss. Another machine has
/// another figure, so what follows from it is an estimate.
pub const MESSAGES_PER_CORE: u64 = 150_000;

/// The same at QoS 0, which has no acknowledgements.
pub const MESSAGES_PER_CORE_QOS0: u64 = 300_000;

/// What the generator can do per core, where it was measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs<'a> {
    /// The calibration of this machine; without it the figures above are taken.
    pub calibration: Option<&'a Calibration>,
}

impl Costs<'_> {
    /// Messages per second that one core is expected to sustain.
    fn per_core(&self, qos: QoS, payload_bytes: u64) -> f64 {
        let (number, default) = match qos {
            QoS::AtMostOnce => (0, MESSAGES_PER_CORE_QOS0),
            QoS::AtLeastOnce => (1, MESSAGES_PER_CORE),
            QoS::ExactlyOnce => (2, MESSAGES_PER_CORE),
        };
        let measured = self.calibration.and_then(|one| one.planned_per_core(number, payload_bytes));
        measured.unwrap_or(default as f64)
    }
}

/// Memory of a client that does nothing, at either end of its connection.
const BYTES_PER_CLIENT: u64 = 4096;

/// What a scenario needs, and what it offers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// Clients, each with a connection of its own.
    pub clients: u64,
    /// Open files of the generator's process. Exact.
    pub descriptors: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Pairs of a stream and someone who must receive all of it.
    pub routes: u64,
    /// Messages to the brokers per second.
    pub in_per_s: f64,
    /// Messages from the brokers per second.
    pub out_per_s: f64,
    /// Some publishers send as fast as the broker lets them: the rates are not known.
    pub closed: bool,
    /// Cores of the generator. An estimate, see [`MESSAGES_PER_CORE`].
    pub generator_cores: f64,
    /// The brokers must be bridged to each other.
    pub bridged: bool,
    /// Connections opened in the busiest second; what is opened at once counts as one second's.
    pub connects_per_s: f64,
    /// The largest message.
    pub payload_bytes_max: u64,
    /// Payload that one stream of messages takes per second, at most.
    pub connection_bytes_per_s: f64,
    /// The longest keep-alive, in seconds.
    pub keep_alive_s_max: u16,
}

impl Needs {
    /// Spells the scenario out and counts.
    ///
    /// # Errors
    /// What [`plan`] says when the scenario cannot run as a whole.
    pub fn of(scenario: &Scenario) -> Result<Self, PlanError> {
        Self::estimate(scenario, Costs::default())
    }

    /// As [`Needs::of`], with what is known about the machine.
    ///
    /// # Errors
    /// What [`plan`] says when the scenario cannot run as a whole.
    pub fn estimate(scenario: &Scenario, costs: Costs<'_>) -> Result<Self, PlanError> {
        let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let targets = scenario.targets_in_use().into_iter();
        let plan = plan(
            scenario,
            &PlanOptions {
                targets: targets.map(|(name, _)| tacho_load::Target::tcp(nowhere, name)).collect(),
                threads: 1,
                cpus: Vec::new(),
                run_id: 0,
            },
        )?;
        let clients = plan.client_count() as u64;
        let mut needs = Self {
            clients,
            descriptors: clients + DESCRIPTORS_RESERVED,
            subscriptions: plan.clients().map(|(_, c)| c.subscriptions.len() as u64).sum(),
            routes: plan.routes.len() as u64,
            bridged: !scenario.bridges.is_empty(),
            connects_per_s: plan.groups.iter().map(connects_per_s).sum(),
            keep_alive_s_max: plan.groups.iter().map(|group| group.keep_alive_s).max().unwrap_or(0),
            ..Self::default()
        };
        let mut payload_bytes = Vec::new();
        for (group, client) in plan.clients() {
            payload_bytes.extend(client.streams.iter().map(|stream| {
                let payload = &group.publish[stream.block].payload;
                payload.bytes_max(&client.id, &stream.topic) as u64
            }));
        }
        needs.payload_bytes_max = payload_bytes.iter().copied().max().unwrap_or(0);
        let mut receivers = vec![0_u64; plan.streams().count()];
        for route in &plan.routes {
            receivers[route.stream as usize] += 1;
        }
        for (((_, _, block), receivers), bytes) in plan.streams().zip(receivers).zip(payload_bytes)
        {
            let Some(rate) = block.pace.per_second() else {
                needs.closed = true;
                continue;
            };
            let out = rate * receivers as f64;
            let bytes_per_s = rate * bytes as f64;
            needs.connection_bytes_per_s = needs.connection_bytes_per_s.max(bytes_per_s);
            needs.in_per_s += rate;
            needs.out_per_s += out;
            needs.generator_cores += (rate + out) / costs.per_core(block.qos, bytes);
        }
        Ok(needs)
    }

    /// What `limits` lack for this. With the broker on the same machine the generator has half of
    /// its cores, and memory is needed at both ends.
    ///
    /// Descriptors are exact. Ports are exact for a broker elsewhere; on loopback there are more
    /// addresses when one has too few. Memory is the least that clients take. Cores are an
    /// estimate.
    pub fn shortage(&self, limits: &Limits, one_machine: bool) -> Option<Shortage> {
        let (needed, available) = (self.descriptors, limits.descriptors_max);
        if needed > available {
            return Some(Shortage::Descriptors { needed, available });
        }
        let (needed, available) = (self.clients, limits.ports_per_address);
        if needed > available && !one_machine {
            return Some(Shortage::Ports { needed, available });
        }
        let ends = if one_machine { 2 } else { 1 };
        let (needed, available) = (self.clients * BYTES_PER_CLIENT * ends, limits.memory_bytes);
        if needed > available {
            return Some(Shortage::Memory { needed, available });
        }
        let available = (limits.cores / ends).max(1);
        if self.generator_cores > available as f64 {
            let messages_per_s = self.in_per_s + self.out_per_s;
            return Some(Shortage::Cores {
                needed: self.generator_cores.ceil() as u64,
                available,
                messages_per_s,
                per_core: (messages_per_s / self.generator_cores).round() as u64,
            });
        }
        None
    }
}

/// Connections that a group opens in a second.
fn connects_per_s(group: &tacho_load::Group) -> f64 {
    let all = group.clients.len() as f64;
    group.connects_per_s.map_or(all, |rate| rate.min(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::RateCell;
    use crate::scenario::Adjustment;

    fn needs(name: &str, vars: &[(&str, &str)]) -> Needs {
        let vars: Vec<_> = vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let scenario = Scenario::load(name, &vars, &Adjustment::NONE, Limits::NONE);
        Needs::of(&scenario.expect("a scenario")).expect("counts")
    }

    #[test]
    fn built_in_scenarios_are_counted() {
        let symmetric = needs("symmetric", &[]);
        assert_eq!((symmetric.clients, symmetric.descriptors), (2000, 2064));
        assert_eq!((symmetric.routes, symmetric.subscriptions), (1000, 1000));
        let rates = |needs: &Needs| (needs.in_per_s.round(), needs.out_per_s.round());
        assert_eq!(rates(&symmetric), (10_000.0, 10_000.0));
        // A topic per machine: a shared subscription takes each message once, ...
        assert_eq!(rates(&needs("fan-in", &[])), (10_000.0, 10_000.0));
        // ... plain ones take it all.
        assert_eq!(rates(&needs("fan-out", &[])), (50.0, 10_000.0));
        let bridge = needs("bridge", &[]);
        assert!(bridge.bridged && !symmetric.bridged);
        assert_eq!((rates(&bridge), bridge.routes), ((5000.0, 5000.0), 1000));
        let connect = needs("connect", &[]);
        assert_eq!((connect.clients, connect.generator_cores), (10_000, 0.0));
    }

    #[test]
    fn a_calibration_decides_how_many_cores_are_needed() {
        let scenario = Scenario::load("symmetric", &[], &Adjustment::NONE, Limits::NONE);
        let scenario = scenario.expect("a scenario");
        let rate =
            |per_core| RateCell { qos: 1, payload_bytes: 128, per_core, ..RateCell::default() };
        let calibration = Calibration { rates: vec![rate(12_500.0)], ..Calibration::default() };
        let costs = Costs { calibration: Some(&calibration) };
        let needs = Needs::estimate(&scenario, costs).expect("counts");
        // 20,000 messages per second, of which a core can be planned with 10,000.
        assert!((needs.generator_cores - 2.0).abs() < 0.01, "{}", needs.generator_cores);
        // What was not measured is estimated as ever.
        let calibration = Calibration::default();
        let costs = Costs { calibration: Some(&calibration) };
        let needs = Needs::estimate(&scenario, costs).expect("counts");
        assert_eq!(needs, Needs::of(&scenario).expect("counts"));
    }

    #[test]
    fn what_is_missing_is_told() {
        let limits = Limits {
            descriptors_max: 20_000,
            ports_per_address: 1500,
            memory_bytes: 1 << 30,
            cores: 2,
        };
        let symmetric = needs("symmetric", &[]);
        assert_eq!(symmetric.shortage(&limits, true), None);
        let ports = Shortage::Ports { needed: 2000, available: 1500 };
        assert_eq!(symmetric.shortage(&limits, false), Some(ports));
        let memory = Limits { memory_bytes: 1 << 20, ..limits };
        assert!(matches!(symmetric.shortage(&memory, true), Some(Shortage::Memory { .. })));
        let few = Limits { descriptors_max: 100, ..limits };
        let descriptors = Shortage::Descriptors { needed: 2064, available: 100 };
        assert_eq!(symmetric.shortage(&few, true), Some(descriptors));
        let fast = needs("symmetric", &[("target_throughput", "200k"), ("qos", "0")]);
        let sentence = fast.shortage(&limits, true).expect("too fast").to_string();
        assert_eq!(
            sentence,
            "needs about 2 generator cores (400000 messages/s, estimated at 300000 per core), \
             1 here"
        );
    }
}
