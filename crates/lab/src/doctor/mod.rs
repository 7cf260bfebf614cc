//! What the system's settings allow, for a scenario at hand: `tacho doctor`.
//!
//! The settings are those that the EMQX guide and the BifroMQ report name. What limits is worked
//! out from the scenario, or read from counters that the kernel keeps of having run into a limit.
//! Of the broker's host the agent there tells the settings.

mod fragment;
mod judge;
mod listeners;
mod settings;

use std::path::Path;

use serde::Serialize;

use crate::files::Files;
use judge::{Facts, Sufficiency, System};
use settings::{SETTINGS, Setting, SettingSource};
use tacho_monitor::HostDescription;
use tacho_scenario::Needs;

pub use fragment::sysctl_fragment;
pub use listeners::ListenerSockets;

/// One setting on this system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Name of the broker's host, where it is that one's; absent for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// As users write it.
    pub name: &'static str,
    /// Its value; absent where the system has no such setting.
    pub current: Option<String>,
    /// What the EMQX guide ran with.
    pub guide: Option<&'static str>,
    /// What the BifroMQ report advises.
    pub bifromq: Option<&'static str>,
    /// Whether the scenario runs into it.
    pub limits: bool,
    /// Why, or why not.
    pub why: String,
    /// The same in Chinese, where it limits.
    #[serde(skip)]
    pub why_zh: String,
    /// What sets it as the scenario needs it.
    pub command: Option<String>,
    /// The value for that, where `sysctl` sets it.
    #[serde(skip)]
    pub sysctl: Option<String>,
}

/// Looks at what caps what these listeners ask of the kernel.
pub fn examine_listeners(sockets: &[ListenerSockets]) -> Vec<Row> {
    listeners::examine(&Files(Path::new("/")), sockets)
}

/// Looks at every setting. On `one_machine` broker and generator share the system.
pub fn examine(needs: &Needs, one_machine: bool) -> Vec<Row> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let facts = Facts::Here { files: Files(Path::new("/")), descriptors_hard: limit.maximum };
    examine_system(&System { facts, one_machine }, needs)
}

/// The same settings on the broker's host, as its agent describes it.
pub fn examine_broker_host(needs: &Needs, host: &HostDescription) -> Vec<Row> {
    let system = System { facts: Facts::Told(&host.settings), one_machine: false };
    let mut rows = examine_system(&system, needs);
    rows.iter_mut().for_each(|row| row.host = Some(host.host.clone()));
    rows
}

fn examine_system(system: &System<'_>, needs: &Needs) -> Vec<Row> {
    SETTINGS.iter().map(|setting| row(system, setting, needs)).collect()
}

fn row(system: &System<'_>, setting: &Setting, needs: &Needs) -> Row {
    let current = setting.value(system);
    let judgement = match &current {
        Some(value) => (setting.judge)(system, value, needs),
        None => Sufficiency::Enough(why_absent(system, setting).to_owned()),
    };
    let (limits, why, why_zh, wanted) = match judgement {
        Sufficiency::Enough(why) => (false, why, String::new(), None),
        Sufficiency::Limits { why, why_zh, wanted } => (true, why, why_zh, Some(wanted)),
    };
    let Setting { name, source, guide, bifromq, .. } = *setting;
    let command = wanted.as_deref().map(|wanted| command(setting, wanted));
    let sysctl = wanted.filter(|_| matches!(source, SettingSource::Sysctl));
    Row { host: None, name, current, guide, bifromq, limits, why, why_zh, command, sysctl }
}

/// Why a setting has no value.
const fn why_absent(system: &System<'_>, setting: &Setting) -> &'static str {
    match (&system.facts, &setting.source) {
        (Facts::Told(_), SettingSource::OpenFiles) => {
            "its agent does not know the broker's process: add ?port=1883 to its address"
        }
        _ => "this system does not have it",
    }
}

/// What a person with the rights types.
fn command(setting: &Setting, wanted: &str) -> String {
    match setting.source {
        SettingSource::Sysctl => format!("sysctl -w {}='{wanted}'", setting.name),
        SettingSource::Module(path) => format!("echo {wanted} > /{path}"),
        SettingSource::OpenFiles => {
            format!("ulimit -n {wanted}   (lasting: /etc/security/limits.conf, LimitNOFILE=)")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine with these files, and with broker and generator on it.
    fn examined(files: &[(&str, &str)], needs: &Needs) -> Vec<Row> {
        examined_as(true, files, needs)
    }

    fn examined_as(one_machine: bool, files: &[(&str, &str)], needs: &Needs) -> Vec<Row> {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("has one")).expect("is made");
            fs::write(path, text).expect("is written");
        }
        let facts = Facts::Here { files: Files(root.path()), descriptors_hard: Some(20_000) };
        let system = System { facts, one_machine };
        examine_system(&system, needs)
    }

    fn find<'a>(rows: &'a [Row], name: &str) -> &'a Row {
        rows.iter().find(|row| row.name == name).expect("is there")
    }

    fn needs() -> Needs {
        Needs {
            clients: 30_000,
            descriptors: 30_064,
            connects_per_s: 20_000.0,
            connection_bytes_per_s: 1e6,
            payload_bytes_max: 128,
            keep_alive_s_max: 300,
            ..Needs::default()
        }
    }

    #[test]
    fn settings_below_the_scenarios_need_limit_it() {
        let rows = examined(
            &[
                ("proc/sys/fs/nr_open", "1048576\n"),
                ("proc/sys/fs/file-max", "50000\n"),
                ("proc/sys/fs/file-nr", "1000 0 50000\n"),
                ("proc/sys/net/core/somaxconn", "1024\n"),
                ("proc/sys/net/ipv4/tcp_max_syn_backlog", "4096\n"),
                ("proc/sys/net/ipv4/tcp_rmem", "4096\t87380\t65536\n"),
                ("proc/sys/net/netfilter/nf_conntrack_max", "20000\n"),
                ("proc/sys/net/netfilter/nf_conntrack_count", "5\n"),
                ("proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "60\n"),
            ],
            &needs(),
        );
        for (name, why, command) in [
            ("nofile", "30,064 open files", "ulimit -n 30064"),
            ("fs.file-max", "61,128 open files", "sysctl -w fs.file-max='61128'"),
            ("net.core.somaxconn", "2,000 connections", "='2000'"),
            ("net.ipv4.tcp_rmem", "100,000 bytes", "='4096 87380 100000'"),
            ("net.netfilter.nf_conntrack_max", "30,005", "='30005'"),
            ("net.netfilter.nf_conntrack_tcp_timeout_established", "300 s between", "='300'"),
        ] {
            let row = find(&rows, name);
            assert!(row.limits && row.why.contains(why), "{row:?}");
            let figure = why.split(' ').next().unwrap_or_default();
            assert!(row.why_zh.contains(figure), "the same in Chinese: {row:?}");
            assert!(row.command.as_ref().is_some_and(|text| text.contains(command)), "{row:?}");
        }
        for name in ["fs.nr_open", "net.ipv4.tcp_max_syn_backlog", "vm.max_map_count"] {
            assert!(!find(&rows, name).limits, "{name}");
        }
        assert_eq!(find(&rows, "vm.max_map_count").current, None);
    }

    #[test]
    fn ports_limit_clients_of_a_broker_elsewhere_only() {
        let name = "net.ipv4.ip_local_port_range";
        let files = [("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n")];
        let rows = examined_as(false, &files, &needs());
        let row = find(&rows, name);
        assert!(row.limits && row.why.contains("30,000 ports"), "{row:?}");
        assert!(row.command.as_ref().is_some_and(|text| text.contains("='1024 65535'")), "{row:?}");
        let rows = examined_as(true, &files, &needs());
        let row = find(&rows, name);
        assert!(!row.limits && row.why.contains("further addresses"), "{row:?}");
    }

    #[test]
    fn limits_that_were_hit_show_in_the_counters() {
        let names = "TcpExt: SyncookiesSent ListenOverflows TCPTimeWaitOverflow TCPReqQFullDrop";
        let rows = examined(
            &[
                ("proc/net/netstat", &format!("{names}\nTcpExt: 0 7 3 2\n")),
                ("proc/net/softnet_stat", "00001000 0000000a 0\n00000001 00000001 0\n"),
                ("proc/sys/net/core/somaxconn", "65535\n"),
                ("proc/sys/net/core/netdev_max_backlog", "1000\n"),
                ("proc/sys/net/ipv4/tcp_max_syn_backlog", "65535\n"),
                ("proc/sys/net/ipv4/tcp_max_tw_buckets", "5000\n"),
            ],
            &Needs::default(),
        );
        for (name, count) in [
            ("net.core.somaxconn", "7 times"),
            ("net.core.netdev_max_backlog", "11 packets"),
            ("net.ipv4.tcp_max_syn_backlog", "2 connection requests"),
            ("net.ipv4.tcp_max_tw_buckets", "3 times"),
        ] {
            let row = find(&rows, name);
            assert!(row.limits && row.why.contains(count), "{row:?}");
        }
    }

    #[test]
    fn a_brokers_host_is_judged_by_what_its_agent_tells() {
        let settings = [
            ("nofile", "1024"),
            ("fs.file-max", "31000"),
            ("net.core.somaxconn", "4096"),
            ("net.core.netdev_max_backlog", "1000"),
            ("net.ipv4.ip_local_port_range", "32768 60999"),
            ("net.ipv4.tcp_rmem", "4096 87380 65536"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let host = HostDescription {
            host: "broker-1".to_owned(),
            settings: settings.into(),
            ..HostDescription::default()
        };
        let rows = examine_broker_host(&needs(), &host);
        assert!(rows.iter().all(|row| row.host.as_deref() == Some("broker-1")));
        for name in ["nofile", "net.ipv4.tcp_rmem"] {
            assert!(find(&rows, name).limits, "{name}");
        }
        // Only the broker opens files there, and clients elsewhere take ports.
        for name in ["fs.file-max", "net.core.somaxconn", "net.ipv4.ip_local_port_range"] {
            assert!(!find(&rows, name).limits, "{name}");
        }
        // What is not told is not claimed.
        assert!(find(&rows, "net.core.netdev_max_backlog").why.contains("does not tell"));
        assert_eq!(find(&rows, "vm.max_map_count").current, None);
    }

    #[test]
    fn the_least_limit_of_open_files_counts_and_an_unknown_one_is_called_so() {
        let told = |name: &str, value: &str| {
            let settings = [(name.to_owned(), value.to_owned())].into();
            let host = HostDescription { settings, ..HostDescription::default() };
            find(&examine_broker_host(&needs(), &host), "nofile").clone()
        };
        assert!(told("nofile", "1024, 1048576").limits);
        assert!(!told("nofile", "1048576, 524288").limits);
        let unknown = told("nofile (not the broker's)", "1024");
        assert!(!unknown.limits && unknown.why.contains("agent"), "{unknown:?}");
    }

    #[test]
    fn what_listeners_ask_for_is_compared_with_what_the_kernel_gives() {
        let root = tempfile::tempdir().expect("a directory");
        let core = root.path().join("proc/sys/net/core");
        fs::create_dir_all(&core).expect("is made");
        for (name, value) in [("somaxconn", "4096"), ("wmem_max", "212992")] {
            fs::write(core.join(name), format!("{value}\n")).expect("is written");
        }
        let of = |name: &str, backlog, send_buffer_bytes| ListenerSockets {
            name: name.to_owned(),
            backlog,
            send_buffer_bytes,
            receive_buffer_bytes: Some(65_536),
        };
        let listeners = [of("a:1", Some(100), Some(65_536)), of("b:2", Some(8_192), None)];
        let rows = listeners::examine(&Files(root.path()), &listeners);
        let queue = find(&rows, "net.core.somaxconn");
        let why = "the listener b:2 asks for a backlog of 8,192, and gets 4,096";
        assert_eq!((queue.limits, &*queue.why), (true, why));
        assert!(queue.why_zh.contains("8,192"), "{queue:?}");
        assert!(!find(&rows, "net.core.wmem_max").limits);
        assert!(find(&rows, "net.core.rmem_max").why.contains("does not have it"));
        assert!(listeners::examine(&Files(root.path()), &[of("c", None, None)]).len() == 1);
    }

    #[test]
    fn a_fragment_lifts_limits_and_keeps_the_values_before() {
        let rows = examined(
            &[
                ("proc/sys/fs/file-max", "50000\n"),
                ("proc/sys/fs/file-nr", "1000 0 50000\n"),
                ("proc/sys/net/core/somaxconn", "1024\n"),
                ("proc/sys/net/ipv4/tcp_rmem", "4096\t87380\t65536\n"),
            ],
            &needs(),
        );
        let mut rows = rows;
        let larger =
            Row { sysctl: Some("9000".to_owned()), ..find(&rows, "net.core.somaxconn").clone() };
        rows.push(larger);
        rows.push(Row { host: Some("there".to_owned()), ..find(&rows, "fs.file-max").clone() });
        let text = sysctl_fragment(&rows, "a\nb = 1").expect("something limits");
        assert!(text.starts_with("# By tacho doctor, for a b = 1.\n"), "{text}");
        assert!(text.contains("\n# was: net.core.somaxconn = 1024\nnet.core.somaxconn = 9000\n"));
        let buffers = "# was: net.ipv4.tcp_rmem = 4096 87380 65536\nnet.ipv4.tcp_rmem = 4096 ";
        assert!(text.contains(buffers), "{text}");
        assert!(text.contains("\n# Not a setting of this file: ulimit -n 30064"), "{text}");
        assert_eq!(text.matches("\nfs.file-max = ").count(), 1);
        let settings = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(settings.count(), 3, "{text}");
        assert_eq!(sysctl_fragment(&[], "x"), None);
    }

    #[test]
    fn every_setting_is_there_once() {
        let mut names: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SETTINGS.len());
    }
}
