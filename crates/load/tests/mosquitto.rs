//! Runs against Debian's mosquitto. Skipped where it is not installed, unless
//! `TACHO_REQUIRE_PEERS=1` makes it mandatory.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tacho_codec::{QoS, Version};
use tacho_load::{End, Offline, Pace};
use tacho_testkit::load::{Scene, run};
use tacho_testkit::wait_until;

/// A mosquitto process; ends when dropped.
struct Mosquitto {
    addr: SocketAddr,
    process: Child,
    config: std::path::PathBuf,
}

impl Mosquitto {
    /// `None` where it is not installed.
    fn start(name: &str) -> Option<Self> {
        let paths = ["/usr/sbin/mosquitto", "/usr/bin/mosquitto", "/usr/local/sbin/mosquitto"];
        let Some(program) = paths.into_iter().find(|path| Path::new(path).exists()) else {
            let required = std::env::var("TACHO_REQUIRE_PEERS").is_ok_and(|value| value == "1");
            assert!(!required, "mosquitto is not installed, and TACHO_REQUIRE_PEERS=1 is set");
            println!("skipped: mosquitto is not installed");
            return None;
        };
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = free.local_addr().expect("an address");
        drop(free);
        let config = std::env::temp_dir().join(format!("{name}-{}.conf", addr.port()));
        let text = format!(
            "listener {} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n\
             max_inflight_messages 0\nmax_queued_messages 0\n",
            addr.port()
        );
        std::fs::write(&config, text).expect("a writable temporary directory");
        let process = Command::new(program)
            .arg("-c")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mosquitto starts");
        wait_until("mosquitto listens", || TcpStream::connect(addr).is_ok());
        Some(Self { addr, process, config })
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        // The process may have exited by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.config);
    }
}

#[test]
fn mosquitto_delivers_everything_at_all_levels() {
    let Some(broker) = Mosquitto::start("load-levels") else { return };
    for (qos, version) in [
        (QoS::AtMostOnce, Version::V31),
        (QoS::AtLeastOnce, Version::V311),
        (QoS::ExactlyOnce, Version::V5),
    ] {
        let scene = Scene { version, ..Scene::pairs(20, qos) };
        let outcome = run(scene.plan(broker.addr));
        assert_eq!(outcome.summary.end, End::Completed, "{outcome:?}");
        let totals = outcome.only();
        assert_eq!((totals.delivery.sent, totals.delivery.lost), (2_000, 0));
        assert_eq!(totals.violations.total(), 0, "{totals:?}");
    }
}

#[test]
fn mosquitto_shares_and_fans_out() {
    let Some(broker) = Mosquitto::start("load-shares") else { return };
    let mut scene = Scene { threads: 2, ..Scene::pairs(4, QoS::AtLeastOnce) };
    scene.filters = vec!["t/+".into(), "#".into()];
    scene.filters.extend((0..3).map(|_| "$share/workers/t/#".to_owned()));
    let outcome = run(scene.plan(broker.addr));
    let totals = outcome.only();
    assert_eq!((totals.delivery.expected, totals.delivery.received), (1_200, 1_200));
    assert_eq!(totals.violations.total(), 0, "{totals:?}");
}

#[test]
fn mosquitto_in_closed_mode() {
    let Some(broker) = Mosquitto::start("load-closed") else { return };
    for qos in [QoS::AtMostOnce, QoS::ExactlyOnce] {
        let pace = Pace::Closed { window: 16 };
        let scene = Scene { pace, measure_ms: 300, ..Scene::pairs(5, qos) };
        let outcome = run(scene.plan(broker.addr));
        let totals = outcome.only();
        assert!(totals.delivery.sent > 5 * 16, "more than one window");
        assert_eq!((totals.delivery.lost, totals.violations.total()), (0, 0), "{totals:?}");
        assert!(totals.drained);
    }
}

#[test]
fn mosquitto_keeps_the_sessions_of_absent_clients() {
    let Some(broker) = Mosquitto::start("load-sessions") else { return };
    for (qos, version, clean) in
        [(QoS::AtLeastOnce, Version::V311, true), (QoS::ExactlyOnce, Version::V5, false)]
    {
        let scene = Scene { version, ..Scene::pairs(5, qos) };
        let mut plan = scene.plan(broker.addr);
        let (after_ns, for_ns) = (200_000_000, 400_000_000);
        plan.groups[1].session_expiry_s = 60;
        plan.groups[1].offline = Some(Offline { after_ns, for_ns, clean, queues_qos0: false });
        let outcome = run(plan);
        let totals = outcome.only();
        assert_eq!((totals.delivery.sent, totals.delivery.lost), (500, 0), "{version:?}");
        assert_eq!((totals.counters.reconnects, totals.violations.total()), (5, 0));
        assert_eq!(outcome.failures, []);
        assert!(totals.e2e.max() >= 300_000);
    }
}
