//! More clients than one address has local ports, in a network namespace with a narrow range.
//! Skipped where namespaces are not permitted.

use std::process::Command;

use tacho_codec::QoS;
use tacho_load::{ConnectCause, Failure, Phase};
use tacho_testkit::load::{Behaviour, FaultyBroker, Scene, run};

/// 100 ports.
const RANGE: &str = "40000 40099";
/// Runs a shell command in a new namespace with that range; `args` are `$0` and following.
const SCRIPT: &str =
    "ip link set lo up && echo \"$RANGE\" > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";

fn in_namespace(command: &str, args: &[&str]) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["-rn", "sh", "-c", SCRIPT, "sh", command]).args(args).env("RANGE", RANGE);
    unshare
}

#[test]
fn more_source_addresses_where_ports_run_out() {
    if !in_namespace("true", &[]).output().is_ok_and(|output| output.status.success()) {
        println!("skipped: no network namespace (unshare -rn, ip) can be made here");
        return;
    }
    let program = std::env::current_exe().expect("a test knows its program");
    let output = in_namespace(
        &program.to_string_lossy(),
        &["--ignored", "--exact", "in_a_namespace_with_100_ports", "--nocapture"],
    )
    .output()
    .expect("unshare starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run by the other test, in a namespace"]
fn in_a_namespace_with_100_ports() {
    assert_eq!(tacho_load::local_port_range(), (40_000, 40_099));
    let broker = FaultyBroker::start(Behaviour::default());
    let scene = Scene { measure_ms: 100, ..Scene::pairs(120, QoS::AtMostOnce) };
    let mut plan = scene.plan(broker.addr);
    plan.phases.retain(|phase| !matches!(phase, Phase::WarmUp { .. }));
    let mut few = plan.clone();
    // Clients that are not connected receive nothing.
    few.phases.retain(|phase| !matches!(phase, Phase::Drain { .. }));
    let alone = run(few);
    // The broker's own port may be one of the hundred.
    assert!((99..=100).contains(&alone.summary.connected), "{}", alone.summary.connected);
    let Some((_, Failure::Connect(why))) = alone.failures.first() else {
        panic!("{:?}", alone.failures)
    };
    assert_eq!(why.cause, ConnectCause::PortsExhausted);
    assert!(why.message.contains("local ports are exhausted (40000 to 40099)"), "{why}");
    assert_eq!(plan.loopback_sources().len(), 3);
    // The ports of the first address are still in use by connections that have just ended.
    plan.sources = (2..=4).map(|last| std::net::IpAddr::from([127, 0, 0, last])).collect();
    let several = run(plan);
    assert_eq!(several.failures, []);
    assert_eq!((several.summary.connected, several.only().delivery.lost), (240, 0));
}
