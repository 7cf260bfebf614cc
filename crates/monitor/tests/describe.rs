//! Descriptions of hosts: from made-up files, and through agents of both ages.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use tacho_monitor::{
    AgentServer, HostDescription, MonitorSpec, ProcRoot, Token, Watch, describe_host,
};
use tacho_testkit::wait_until;

const TOKEN: &str = "0123456789abcdef";

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

/// A machine with two cores and its data on an NVMe disk.
fn machine(root: &Path) -> ProcRoot {
    write(root, "proc/sys/kernel/hostname", "broker-1\n");
    write(root, "proc/sys/kernel/osrelease", "6.1.0\n");
    write(root, "proc/sys/net/core/somaxconn", "4096\n");
    write(root, "proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
    write(root, "proc/cpuinfo", "model name\t: Fast CPU\nflags\t\t: fpu hypervisor\n");
    write(root, "proc/meminfo", "MemTotal:        8388608 kB\nMemFree: 1 kB\n");
    write(
        root,
        "proc/self/mountinfo",
        "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n\
         30 22 259:0 / /var/lib\\040data rw,noatime shared:7 - xfs /dev/nvme0n1 rw\n\
         31 22 0:5 / /var/lib rw - tmpfs tmpfs rw\n",
    );
    let limits = |hard: &str| {
        format!("Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  {hard}  files\n")
    };
    write(root, "proc/self/limits", &limits("20000"));
    write(root, "proc/7/limits", &limits("1048576"));
    write(root, "sys/module/nf_conntrack/parameters/hashsize", "262144\n");
    write(root, "sys/devices/system/cpu/online", "0-1\n");
    write(root, "sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    write(root, "sys/class/dmi/id/product_name", "m5.large\n");
    write(root, "sys/class/dmi/id/product_version", "Not Specified\n");
    write(root, "sys/dev/block/259:0/size", "2048\n");
    write(root, "sys/dev/block/259:0/device/model", "Amazon EBS \n");
    write(root, "sys/dev/block/259:0/queue/rotational", "0\n");
    write(root, "etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian 13\"\n");
    ProcRoot::new(root.join("proc")).with_sys(root.join("sys")).with_etc(root.join("etc"))
}

#[test]
fn a_machine_is_described_from_what_its_system_tells() {
    let root = tempfile::tempdir().expect("a folder");
    let proc = machine(root.path());
    let host = describe_host(&proc, Some(Path::new("/var/lib data/broker")), &[7]);
    assert_eq!((host.host.as_str(), host.cores), ("broker-1", Some(2)));
    assert_eq!(host.distribution.as_deref(), Some("Debian 13"));
    assert_eq!(host.kernel.as_deref(), Some("6.1.0"));
    assert_eq!(host.cpu_model.as_deref(), Some("Fast CPU"));
    assert_eq!(host.memory_bytes, Some(8 << 30));
    assert_eq!(host.instance.as_deref(), Some("Amazon EC2 m5.large"));
    assert_eq!(host.virtualised, Some(true));
    assert_eq!(host.settings.len(), 4, "{:?}", host.settings);
    // That of the broker's process, not that of this one.
    assert_eq!(host.settings["nofile"], "1048576");
    assert_eq!(host.settings["nf_conntrack hashsize"], "262144");
    assert_eq!(host.settings["net.ipv4.tcp_rmem"], "4096 131072 6291456");
    let disk = host.data_disk.expect("a disk");
    assert_eq!((disk.file_system.as_str(), disk.device.as_str()), ("xfs", "/dev/nvme0n1"));
    assert_eq!((disk.mount_point.as_str(), disk.size_bytes), ("/var/lib data", Some(1 << 20)));
    assert_eq!((disk.model.as_deref(), disk.rotational), (Some("Amazon EBS"), Some(false)));
}

#[test]
fn what_the_system_does_not_tell_is_absent() {
    let root = tempfile::tempdir().expect("a folder");
    let proc = ProcRoot::new(root.path()).with_sys(root.path()).with_etc(root.path());
    assert_eq!(describe_host(&proc, Some(Path::new("/data")), &[]), HostDescription::default());
    let proc = machine(root.path());
    // The broker's process is gone: what is known is the limit of another one.
    let host = describe_host(&proc, None, &[8]);
    assert_eq!((host.data_disk, host.settings.get("nofile")), (None, None));
    assert_eq!(host.settings["nofile (not the broker's)"], "20000");
    let disk = describe_host(&proc, Some(Path::new("/srv")), &[]).data_disk.expect("a disk");
    assert_eq!((disk.file_system.as_str(), disk.model), ("ext4", None));
}

fn agent(root: &Path) -> AgentServer {
    let token = Token::new(TOKEN).expect("a token");
    let address = "127.0.0.1:0".parse().expect("an address");
    AgentServer::start(address, token, true, machine(root), Vec::new()).expect("listens")
}

fn watch(address: &str) -> Watch {
    watch_with(address, "interval=100ms&data-dir=/var/lib data/broker")
}

fn watch_with(address: &str, options: &str) -> Watch {
    let text = format!("agent://{address}?token={TOKEN}&{options}");
    Watch::start(&[MonitorSpec::parse(&text).expect("a source")]).expect("the agent accepts it")
}

#[test]
fn an_agent_describes_its_host() {
    let root = tempfile::tempdir().expect("a folder");
    let agent = agent(root.path());
    let watch = watch(&agent.address().to_string());
    wait_until("the description arrives", || watch.reports()[0].description.is_some());
    let host = watch.stop().remove(0).description.expect("a description");
    assert_eq!(host.instance.as_deref(), Some("Amazon EC2 m5.large"));
    assert_eq!(host.data_disk.map(|disk| disk.file_system).as_deref(), Some("xfs"));
    // The agent's own limit is not taken for that of a broker that it does not know.
    assert_eq!(host.settings.get("nofile"), None);
    assert_eq!(host.settings["nofile (not the broker's)"], "20000");
}

#[test]
fn an_agent_tells_the_limit_of_the_process_that_it_watches() {
    let root = tempfile::tempdir().expect("a folder");
    let agent = agent(root.path());
    write(root.path(), "proc/7/stat", "7 (broker) S 1 7 7 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 0 0\n");
    let watch = watch_with(&agent.address().to_string(), "interval=100ms&pid=7");
    wait_until("the description arrives", || watch.reports()[0].description.is_some());
    let host = watch.stop().remove(0).description.expect("a description");
    assert_eq!(host.settings["nofile"], "1048576");
    assert_eq!(host.settings.get("nofile (not the broker's)"), None);
}

/// Passes lines between a client and `agent`, each way through a function.
fn relay(
    agent: &AgentServer,
    to_agent: impl Fn(String) -> String + Send + 'static,
    to_client: impl Fn(String) -> String + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let agent = agent.address();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().expect("a client");
        let server = TcpStream::connect(agent).expect("connects");
        let (mut out, back) = (client.try_clone().expect("a copy"), server.try_clone());
        let back = back.expect("a copy");
        std::thread::spawn(move || {
            for line in BufReader::new(back).lines().map_while(Result::ok) {
                if out.write_all(to_client(line + "\n").as_bytes()).is_err() {
                    return;
                }
            }
        });
        let mut server = server;
        for line in BufReader::new(client).lines().map_while(Result::ok) {
            if server.write_all(to_agent(line + "\n").as_bytes()).is_err() {
                return;
            }
        }
    });
    address
}

/// What a client sends that does not know of descriptions.
fn as_old_client(line: String) -> String {
    let old = line.replace(",\"describe\":1", "");
    assert!(!line.contains("interval_ms") || old != line, "{line}");
    old
}

#[test]
fn agents_and_clients_without_descriptions_still_work() {
    let root = tempfile::tempdir().expect("a folder");
    let agent = agent(root.path());
    // For the client an agent that does not know them, for the agent such a client.
    let address = relay(&agent, as_old_client, |line| {
        assert!(!line.contains("\"description\""), "{line}");
        line
    });
    let mut watch = watch(&address);
    write(root.path(), "proc/stat", "cpu 1 2 3 4 5 6 7 8 0 0\n");
    let mut rows = 0;
    wait_until("the agent answers", || {
        rows += watch.rows().len();
        rows > 0 || watch.reports()[0].errors > 0
    });
    let report = watch.stop().remove(0);
    assert_eq!(report.description, None);
    assert_eq!(agent.counts().admitted, 1);
    assert!(report.last_error.is_none_or(|error| !error.contains("broke")), "connection is kept");
}

#[test]
fn the_first_description_of_a_connection_is_kept() {
    let root = tempfile::tempdir().expect("a folder");
    let agent = agent(root.path());
    let address = relay(&agent, as_old_client, |line| match line.contains("\"pong\":") {
        // With every answer another one, too long to be kept whole.
        true => {
            let text = "x".repeat(50_000);
            format!("{{\"description\":{{\"host\":\"{text}\",\"new\":1}}}}\n{line}")
        }
        false => line,
    });
    let watch = watch(&address);
    wait_until("the description arrives", || watch.reports()[0].description.is_some());
    let host = watch.stop().remove(0).description.expect("a description");
    assert!(host.host.starts_with("xxx") && host.host.len() < 1000, "{}", host.host.len());
}
