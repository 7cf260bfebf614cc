//! What a scenario needs of the machine that generates its load, counted from its plan.

use tacho_load::{PlanError, QoS};
use tacho_scenario::{MESSAGES_PER_CORE, MESSAGES_PER_CORE_QOS0, Needs, Scenario};

use crate::calibration::Calibration;
use crate::plan::{PlanOptions, plan};

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

/// Spells the scenario out and counts what it needs.
///
/// # Errors
/// What [`plan`] says when the scenario cannot run as a whole.
pub fn needs(scenario: &Scenario) -> Result<Needs, PlanError> {
    estimate(scenario, Costs::default())
}

/// As [`needs`], with what is known about the machine.
///
/// # Errors
/// What [`plan`] says when the scenario cannot run as a whole.
pub fn estimate(scenario: &Scenario, costs: Costs<'_>) -> Result<Needs, PlanError> {
    let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let targets = scenario.targets_in_use().into_iter();
    let plan = plan(
        scenario,
        &PlanOptions {
            targets: targets.map(|(name, _)| tacho_load::Target::tcp(nowhere, name)).collect(),
            threads: 1,
            cpus: Vec::new(),
            own_cores: false,
            run_id: 0,
        },
    )?;
    let mut needs = Needs {
        subscriptions: plan.clients().map(|(_, c)| c.subscriptions.len() as u64).sum(),
        routes: plan.routes.len() as u64,
        bridged: !scenario.bridges.is_empty(),
        connects_per_s: plan.groups.iter().map(connects_per_s).sum(),
        keep_alive_s_max: plan.groups.iter().map(|group| group.keep_alive_s).max().unwrap_or(0),
        ..of_clients(plan.client_count() as u64, scenario)
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
        receivers[route.stream.index()] += 1;
    }
    for (((_, _, block), receivers), bytes) in plan.streams().zip(receivers).zip(payload_bytes) {
        let Some(rate) = block.pace.per_second() else {
            needs.closed = true;
            continue;
        };
        let out = rate * receivers as f64;
        let bytes_per_s = rate * bytes as f64;
        needs.connection_bytes_per_s = needs.connection_bytes_per_s.max(bytes_per_s);
        needs.in_per_s += rate;
        needs.out_per_s += out;
        needs.in_bytes_per_s += bytes_per_s;
        needs.out_bytes_per_s += bytes_per_s * receivers as f64;
        needs.generator_cores += (rate + out) / costs.per_core(block.qos, bytes);
    }
    Ok(needs)
}

/// What the clients of a scenario need on their own; nothing is spelled out for it.
pub(crate) fn client_needs(scenario: &Scenario) -> Needs {
    of_clients(scenario.clients(), scenario)
}

fn of_clients(clients: u64, scenario: &Scenario) -> Needs {
    Needs::of_clients(clients, scenario.load.source_addresses.iter().count() as u64)
}

/// Connections that a group opens in a second.
fn connects_per_s(group: &tacho_load::Group) -> f64 {
    if let Some(login) = group.login {
        return login.per_s;
    }
    let all = group.clients.len() as f64;
    group.connects_per_s.map_or(all, |rate| rate.min(all))
}

#[cfg(test)]
mod tests {
    use tacho_scenario::{Adjustment, Limits, Shortage};

    use super::*;
    use crate::calibration::RateCell;

    fn needs_of(name: &str, vars: &[(&str, &str)]) -> Needs {
        let vars: Vec<_> = vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let scenario = Scenario::load(name, &vars, &Adjustment::NONE, Limits::NONE);
        needs(&scenario.expect("a scenario")).expect("counts")
    }

    #[test]
    fn built_in_scenarios_are_counted() {
        let symmetric = needs_of("symmetric", &[]);
        assert_eq!((symmetric.clients, symmetric.descriptors), (2000, 2064));
        assert_eq!((symmetric.routes, symmetric.subscriptions), (1000, 1000));
        let rates = |needs: &Needs| (needs.in_per_s.round(), needs.out_per_s.round());
        assert_eq!(rates(&symmetric), (10_000.0, 10_000.0));
        // A topic per machine: a shared subscription takes each message once, ...
        assert_eq!(rates(&needs_of("fan-in", &[])), (10_000.0, 10_000.0));
        // ... plain ones take it all.
        assert_eq!(rates(&needs_of("fan-out", &[])), (50.0, 10_000.0));
        let bridge = needs_of("bridge", &[]);
        assert!(bridge.bridged && !symmetric.bridged);
        assert_eq!((rates(&bridge), bridge.routes), ((5000.0, 5000.0), 1000));
        // Each publisher's only message counts as one per second, not as one per instant.
        assert_eq!(rates(&needs_of("retained-flood", &[])), (2200.0, 20_200.0));
        let connect = needs_of("connect", &[]);
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
        let needs = estimate(&scenario, costs).expect("counts");
        // 20,000 messages per second, of which a core can be planned with 10,000.
        assert!((needs.generator_cores - 2.0).abs() < 0.01, "{}", needs.generator_cores);
        // What was not measured is estimated as ever.
        let calibration = Calibration::default();
        let costs = Costs { calibration: Some(&calibration) };
        let needs = estimate(&scenario, costs).expect("counts");
        assert_eq!(needs, super::needs(&scenario).expect("counts"));
    }

    #[test]
    fn missing_resources_are_named() {
        let limits = Limits {
            descriptors_max: 20_000,
            ports_per_address: 1500,
            memory_bytes: 1 << 30,
            cores: 2,
        };
        let symmetric = needs_of("symmetric", &[]);
        assert_eq!(symmetric.shortages(&limits, true, 1), []);
        let ports = Shortage::Ports { needed: 2000, available: 1500 };
        assert_eq!(symmetric.shortages(&limits, false, 1), [ports]);
        let all = Limits { memory_bytes: 1 << 20, descriptors_max: 100, ..limits };
        let (needed, available) = (2000 * 4096, 1 << 20);
        let missing = [
            Shortage::Descriptors { needed: 2064, available: 100 },
            Shortage::Ports { needed: 2000, available: 1500 },
            Shortage::Memory { needed, available },
        ];
        assert_eq!(symmetric.shortages(&all, false, 1), missing, "all at once");
        let fast = needs_of("symmetric", &[("target_throughput", "200k"), ("qos", "0")]);
        let shortages = fast.shortages(&limits, true, 1);
        assert_eq!(
            shortages[0].to_string(),
            "needs about 2 generator cores for 200,000 messages/s in and 200,000 out, at 300,000 \
             per core; 1 here"
        );
    }
}
