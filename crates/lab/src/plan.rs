//! From a scenario to a plan: every client, topic and rate spelled out for the load generator.

use tacho_load as load;
use tacho_load::{QoS, RetainHandling, Version};

mod stream;

use tacho_scenario::{
    ActionKind, ClientPlace, DeclaredLoss, Group, Login, Offline, PerSecond, ProtocolVersion,
    Reconnect, Scenario, Scheduled, TimeSpan, Timing, TokenPlace, Will,
};

/// Time between round trips: rare enough to cost nothing, often enough for a figure per second.
const RTT_EVERY_NS: u64 = 100_000_000;

/// How a plan differs from its scenario: what the machine and the command line decide.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Resolved addresses of all brokers, with how to reach them. Those with the name of one of
    /// the scenario's named targets serve the groups that choose it, all others the rest.
    pub targets: Vec<load::Target>,
    /// Generator threads.
    pub threads: usize,
    /// Cores to pin them to; empty pins nothing.
    pub cpus: Vec<usize>,
    /// Each thread has a core of its own, and may spin on it.
    pub own_cores: bool,
    /// Identity of the run in every payload.
    pub run_id: u32,
}

/// Spells a scenario out.
///
/// # Errors
/// A sentence, when clients would share an identifier, a topic or filter is not valid, or
/// something else that only the whole shows.
pub fn plan(scenario: &Scenario, options: &PlanOptions) -> Result<load::Plan, load::PlanError> {
    let named = |target: &load::Target| scenario.targets.contains_key(&target.name);
    let default: Vec<load::Target> =
        options.targets.iter().filter(|target| !named(target)).cloned().collect();
    let mut plan = load::Plan {
        run_id: options.run_id,
        seed: scenario.seed,
        threads: options.threads,
        cpus: options.cpus.clone(),
        timing: match scenario.load.timing {
            Timing::Auto if options.own_cores => load::Timing::SleepAndSpin,
            Timing::Auto | Timing::Sleep => load::Timing::Sleep,
            Timing::Spin => load::Timing::Spin,
            Timing::Batch => load::Timing::Batch,
        },
        targets: default,
        groups: scenario
            .groups
            .iter()
            .filter(|(_, group)| group.clients > 0)
            .map(|(name, group)| load_group(name, group, scenario, options))
            .collect::<Result<_, _>>()?,
        rtt_every_ns: Some(RTT_EVERY_NS),
        receive_bytes_max: load::Plan::receive_bytes_of_machine(),
        bridges: bridges(scenario),
        ..load::Plan::default()
    };
    let unreachable = |group: &Group| {
        let named = group.target.as_deref();
        named.is_some_and(|name| options.targets.iter().all(|target| target.name != name))
    };
    if let Some((name, _)) =
        scenario.groups.iter().find(|(_, group)| group.clients > 0 && unreachable(group))
    {
        return Err(load::PlanError::NoTargets { group: name.clone() });
    }
    plan.actions = actions(scenario, &plan);
    plan.sources = match &scenario.load.source_addresses {
        none if none.is_empty() => plan.loopback_sources(),
        addresses => addresses.iter().collect(),
    };
    plan.routes = plan.derive_routes();
    plan.phases = phases(scenario, !plan.routes.is_empty());
    plan.check()?;
    Ok(plan)
}

fn bridges(scenario: &Scenario) -> Vec<load::Bridge> {
    let bridges = scenario.bridges.iter().map(|bridge| load::Bridge {
        from: bridge.from.clone(),
        to: bridge.to.clone(),
        filter: bridge.filter.clone(),
        strip: bridge.strip.clone(),
        prefix: bridge.prefix.clone(),
    });
    bridges.collect()
}

/// What happens to clients; the rest of a scenario's actions is not the load's.
fn actions(scenario: &Scenario, plan: &load::Plan) -> Vec<load::Action> {
    let client_action = |scheduled: Scheduled<'_>| {
        let (name, _) = scheduled.action.group_and_share()?;
        let group = plan.groups.iter().position(|group| group.name == name)?;
        let kind = match scheduled.action.kind {
            ActionKind::Disconnect { cleanly, .. } => {
                load::ActionKind::Disconnect { clean: cleanly }
            }
            ActionKind::Pause { length, .. } => load::ActionKind::Pause { for_ns: length.as_ns() },
            ActionKind::Takeover { .. } => load::ActionKind::TakeOver,
            ActionKind::Subscribe { .. } => load::ActionKind::Subscribe,
            ActionKind::Kill { .. } | ActionKind::Run(_) => return None,
        };
        let clients = plan.groups[group].clients.len() as u32;
        Some(load::Action {
            after_ns: TimeSpan(scheduled.after).as_ns(),
            over_ns: scheduled.action.over.as_ns(),
            group,
            clients: scheduled.action.affected_clients(clients),
            turn: scheduled.turn,
            kind,
        })
    };
    scenario.schedule().into_iter().filter_map(client_action).collect()
}

fn load_group(
    name: &str,
    group: &Group,
    scenario: &Scenario,
    options: &PlanOptions,
) -> Result<load::Group, load::PlanError> {
    let own = |target: &&load::Target| group.target.as_deref() == Some(target.name.as_str());
    let uses_tls = options.targets.iter().any(|target| target.transport.uses_tls());
    let certificate = |place: ClientPlace| match uses_tls {
        true => scenario.certificate(group, place).map_err(load::PlanError::Certificate),
        false => Ok(None),
    };
    let client = |place: ClientPlace| -> Result<load::Client, load::PlanError> {
        let identity = certificate(place)?;
        Ok(load::Client { identity, ..load_client(group, place) })
    };
    Ok(load::Group {
        name: name.to_owned(),
        targets: options.targets.iter().filter(own).cloned().collect(),
        version: match scenario.version_of(group) {
            ProtocolVersion::V31 => Version::V31,
            ProtocolVersion::V311 => Version::V311,
            ProtocolVersion::V5 => Version::V5,
        },
        clean_start: group.connect.clean_start,
        session_expiry_s: seconds(group.connect.session_expiry),
        authentication: authentication(group),
        keep_alive_s: u16::try_from(seconds(group.connect.keep_alive)).unwrap_or(u16::MAX),
        connects_per_s: per_second(group.connect.rate, group.connect.ramp, group.clients),
        disconnects_per_s: per_second(group.disconnect.rate, group.disconnect.ramp, group.clients),
        inflight_max: group.inflight,
        waiting_max: group.waiting,
        will: group.will.as_ref().map(will),
        offline: group.offline.map(life),
        absent: group.absent,
        answers: group.answers,
        packet_size_max: group.connect.maximum_packet_size,
        reconnect: group.reconnect.map(reconnect),
        expect_losses: group
            .losses
            .map(|DeclaredLoss::OfflineQueueFull| load::DeclaredLoss::OfflineQueueFull),
        login: group.login.map(login),
        publish: group
            .publish
            .iter()
            .map(|publish| stream::block(publish, group, scenario.machines))
            .collect(),
        clients: (0..u64::from(group.clients))
            .map(|number| client(ClientPlace::new(number, scenario.machines)))
            .collect::<Result<_, _>>()?,
    })
}

/// One client, but for its certificate.
fn load_client(group: &Group, place: ClientPlace) -> load::Client {
    load::Client {
        id: group.client_id(place),
        identity: None,
        username: group.username(place),
        password: group.password(place).map(String::into_bytes),
        claims: group.token_claims(place),
        will_topic: group.will.as_ref().map(|will| will.topic.expand_at(place)),
        streams: group
            .publish
            .iter()
            .enumerate()
            .map(|(block, publish)| load::Stream {
                topic: publish.topic.expand_at(place),
                block,
                response_topic: publish.response_topic.as_ref().map(|to| to.expand_at(place)),
            })
            .collect(),
        subscriptions: group
            .subscribe
            .iter()
            .map(|subscribe| load::Subscription {
                filter: subscribe.filter.expand_at(place),
                qos: qos(subscribe.qos),
                no_local: subscribe.no_local,
                retain_handling: retain_handling(subscribe.retain_handling),
            })
            .collect(),
    }
}

/// Whole seconds, rounded up: a session that is to last half a second must not last none.
fn seconds(span: TimeSpan) -> u32 {
    u32::try_from(span.0.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u32::MAX)
}

/// How many of a group's clients come or go per second.
fn per_second(rate: Option<PerSecond>, ramp: Option<TimeSpan>, clients: u32) -> Option<f64> {
    match (rate, ramp) {
        (Some(rate), _) => Some(rate.0),
        (None, Some(ramp)) if !ramp.0.is_zero() => Some(f64::from(clients) / ramp.0.as_secs_f64()),
        _ => None,
    }
}

fn life(offline: Offline) -> load::Offline {
    load::Offline {
        after_ns: offline.after.as_ns(),
        for_ns: offline.length.as_ns(),
        clean: offline.clean,
        queues_qos0: offline.queues_qos0,
    }
}

fn authentication(group: &Group) -> load::Authentication {
    let connect = &group.connect;
    match (&connect.token, connect.scram) {
        (Some(token), _) => load::Authentication::Token(load::TokenLogin {
            signer: token.key.signer(),
            lifetime_s: u32::try_from(token.lifetime.0.as_secs()).unwrap_or(u32::MAX),
            place: match token.place {
                TokenPlace::Password => load::TokenPlace::Password,
                TokenPlace::Username => load::TokenPlace::Username,
                TokenPlace::Auth => load::TokenPlace::Auth,
            },
        }),
        (None, Some(hash)) => load::Authentication::Scram(hash),
        (None, None) => load::Authentication::Password,
    }
}

fn login(login: Login) -> load::Login {
    load::Login {
        per_s: login.rate.0,
        stay_ns: login.stay.as_ns(),
        wrong_share: login.wrong_share,
        unknown_share: login.unknown_share,
    }
}

fn reconnect(reconnect: Reconnect) -> load::Reconnect {
    load::Reconnect {
        attempts_max: reconnect.attempts,
        first_ns: reconnect.first.as_ns(),
        longest_ns: reconnect.longest.as_ns(),
    }
}

fn will(will: &Will) -> load::Will {
    load::Will {
        qos: qos(will.qos),
        retain: will.retain,
        payload: will.payload.clone().into_bytes(),
        delay_s: seconds(will.delay),
    }
}

/// Invariant: scenarios hold 0, 1 or 2 only.
fn qos(value: u8) -> QoS {
    match value {
        0 => QoS::AtMostOnce,
        1 => QoS::AtLeastOnce,
        _ => QoS::ExactlyOnce,
    }
}

/// Invariant: scenarios hold 0, 1 or 2 only.
fn retain_handling(value: u8) -> RetainHandling {
    match value {
        0 => RetainHandling::Always,
        1 => RetainHandling::IfNew,
        _ => RetainHandling::Never,
    }
}

fn phases(scenario: &Scenario, anyone_receives: bool) -> Vec<load::Phase> {
    let lengths = &scenario.phases;
    let timeout_ns = lengths.connect_timeout.as_ns();
    let scale = load::Scale::ONE;
    let mut phases =
        vec![load::Phase::Connect { timeout_ns }, load::Phase::Subscribe { timeout_ns }];
    if lengths.ready_probe && anyone_receives {
        phases.push(load::Phase::Probe { timeout_ns });
    }
    let away = scenario.groups.values().any(|group| group.clients > 0 && group.absent);
    if away {
        phases.push(load::Phase::Offline);
    }
    if !lengths.warmup.0.is_zero() {
        phases.push(load::Phase::WarmUp { duration_ns: lengths.warmup.as_ns(), scale });
    }
    phases.push(load::Phase::Measure { duration_ns: lengths.measure.as_ns(), scale });
    if away {
        phases.push(load::Phase::Resume { timeout_ns });
    }
    phases.push(load::Phase::Drain { timeout_ns: lengths.drain.as_ns() });
    phases.push(load::Phase::Disconnect);
    phases
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use tacho_scenario::{Builtin, Limits};

    fn options() -> PlanOptions {
        PlanOptions {
            targets: vec![SocketAddr::from(([127, 0, 0, 1], 1883)).into()],
            threads: 1,
            cpus: vec![],
            own_cores: false,
            run_id: 7,
        }
    }

    fn symmetric(vars: &[(&str, &str)]) -> Scenario {
        let vars: Vec<_> = vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let source = Builtin::find("symmetric").expect("is built in").source();
        Scenario::parse(&source, &vars, Limits::NONE).expect("parses")
    }

    #[test]
    fn symmetric_spelled_out() {
        let plan = plan(&symmetric(&[]), &options()).expect("a plan");
        assert_eq!(plan.client_count(), 2000);
        assert_eq!(plan.routes.len(), 1000);
        assert!((plan.offered_in_per_s() - 10_000.0).abs() < 1e-6);
        assert!((plan.offered_out_per_s() - 10_000.0).abs() < 1e-6);
        assert_eq!(plan.groups[0].connects_per_s, Some(500.0));
        assert_eq!(plan.groups[0].clients[3].streams[0].topic, "test/m1/3");
        assert_eq!(plan.groups[1].clients[3].subscriptions[0].filter, "test/m1/3");
        assert_eq!(plan.routes[0].qos, QoS::AtLeastOnce);
        assert_eq!(plan.phases.len(), 7);
        assert!(plan.sources.is_empty());
    }

    #[test]
    fn groups_connect_to_the_brokers_that_they_name() {
        let text = "name = 'x'\n[targets.node1]\n[targets.node2]\n\
            [[bridges]]\nfrom = 'node1'\nto = 'node2'\nfilter = 'bridge/#'\nprefix = 'remote/'\n\
            [groups.a]\nclients = 2\ntarget = 'node1'\n\
            [[groups.a.publish]]\ntopic = 'bridge/{{i}}'\nrate = { per_client = 10 }\n\
            [groups.b]\nclients = 2\ntarget = 'node2'\n\
            [[groups.b.subscribe]]\nfilter = 'remote/bridge/{{i}}'\n\
            [groups.c]\nclients = 1\n[[groups.c.subscribe]]\nfilter = '#'\n";
        let source = tacho_scenario::SourceText::new("x", text);
        let scenario = Scenario::parse(&source, &[], Limits::NONE).expect("parses");
        let target = |port: u16, name: &str| {
            load::Target::tcp(SocketAddr::from(([127, 0, 0, 1], port)), name)
        };
        let mut options = options();
        options.targets = vec![target(1, ""), target(2, "node1"), target(3, "node2")];
        let plan = super::plan(&scenario, &options).expect("a plan");
        let ports = |targets: &[load::Target]| -> Vec<u16> {
            targets.iter().map(|target| target.addr.port()).collect()
        };
        assert_eq!(ports(&plan.targets), [1]);
        let groups: Vec<_> = plan.groups.iter().map(|group| ports(&group.targets)).collect();
        assert_eq!(groups, [vec![2], vec![3], vec![]]);
        assert_eq!(plan.routes.len(), 2);
        assert!((plan.offered_out_per_s() - 20.0).abs() < 1e-9);
        options.targets.truncate(2);
        let error = super::plan(&scenario, &options).expect_err("no node2").to_string();
        assert_eq!(error, "group b has no target address");
    }

    #[test]
    fn a_warm_up_of_zero_is_left_out() {
        let plan = plan(&symmetric(&[("warmup", "0s")]), &options()).expect("a plan");
        assert!(!plan.phases.iter().any(|phase| matches!(phase, load::Phase::WarmUp { .. })));
    }

    #[test]
    fn clients_that_are_absent_leave_before_the_load_and_come_back_behind_it() {
        let source = Builtin::find("persistent").expect("is built in").source();
        let scenario = Scenario::parse(&source, &[], Limits::NONE).expect("parses");
        let plan = plan(&scenario, &options()).expect("a plan");
        assert!(matches!(
            plan.phases[..],
            [
                load::Phase::Connect { .. },
                load::Phase::Subscribe { .. },
                load::Phase::Probe { .. },
                load::Phase::Offline,
                load::Phase::Measure { duration_ns: 10_000_000_000, .. },
                load::Phase::Resume { .. },
                load::Phase::Drain { .. },
                load::Phase::Disconnect,
            ]
        ));
        // Nothing is due to them while they are away.
        assert_eq!((plan.offered_in_per_s(), plan.offered_out_per_s()), (1000.0, 0.0));
    }

    #[test]
    fn source_addresses_of_the_scenario_are_used() {
        let mut scenario = symmetric(&[]);
        let addresses = tacho_scenario::SourceAddresses::parse("127.0.0.4-127.0.0.5,127.0.0.9");
        scenario.load.source_addresses = addresses.expect("parses");
        let plan = plan(&scenario, &options()).expect("a plan");
        let sources: Vec<String> = plan.sources.iter().map(ToString::to_string).collect();
        assert_eq!(sources, ["127.0.0.4", "127.0.0.5", "127.0.0.9"]);
    }

    #[test]
    fn many_clients_on_loopback_get_more_source_addresses() {
        let many = [("publishers", "30000"), ("subscribers", "20000")];
        let plan = plan(&symmetric(&many), &options()).expect("a plan");
        // As many as this machine's port range asks for.
        assert_eq!(plan.sources, plan.loopback_sources());
        assert!(plan.sources.len() != 1);
    }
}
