//! Whether a setting is enough for a scenario: from what the scenario needs, and from what the
//! kernel has counted since the machine started.

use std::collections::BTreeMap;

use crate::files::Files;
use tacho_scenario::Needs;
use tacho_scenario::format::thousands;

/// Connections that arrive while a busy broker does not get to accept: a tenth of a second's.
const UNACCEPTED_S: f64 = 0.1;
/// The round trip for which one connection's buffers must do.
const ROUND_TRIP_S: f64 = 0.1;
/// A connection that has ended is remembered for so long.
const TIME_WAIT_S: u64 = 60;

/// What is thought of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sufficiency {
    /// Enough, with the reason.
    Enough(String),
    /// Not enough, with the reason in both languages and the least value that is.
    Limits { why: String, why_zh: String, wanted: String },
}

use Sufficiency::{Enough, Limits};

/// What is known of a system.
pub(super) struct System<'a> {
    pub(super) facts: Facts<'a>,
    /// Broker and generator are both here.
    pub(super) one_machine: bool,
}

/// Where facts come from.
pub(super) enum Facts<'a> {
    /// This machine's files.
    Here {
        /// Below its root.
        files: Files<'a>,
        /// The hard limit of open files; none without one.
        descriptors_hard: Option<u64>,
    },
    /// The broker's machine, whose agent tells settings by name, and no counters.
    Told(&'a BTreeMap<String, String>),
}

impl System<'_> {
    /// A file of this machine.
    fn text(&self, path: &str) -> Option<String> {
        match &self.facts {
            Facts::Here { files, .. } => files.text(path),
            Facts::Told(_) => None,
        }
    }

    /// A setting of the kernel, as `sysctl` names it.
    pub(super) fn sysctl(&self, name: &str) -> Option<String> {
        match &self.facts {
            Facts::Here { files, .. } => files.sysctl(name),
            Facts::Told(settings) => settings.get(name).cloned(),
        }
    }

    /// Is only the broker there, on another machine?
    const fn is_brokers(&self) -> bool {
        matches!(self.facts, Facts::Told(_))
    }

    /// A counter of the TCP extensions since the machine started.
    fn tcp_counter(&self, name: &str) -> u64 {
        let text = self.text("proc/net/netstat").unwrap_or_default();
        let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
        let mut both = names.split_whitespace().zip(values.split_whitespace());
        both.find_map(|(known, value)| (known == name).then(|| value.parse().ok())?).unwrap_or(0)
    }

    /// Packets that came faster than a core took them, since the machine started.
    fn packets_dropped(&self) -> u64 {
        let text = self.text("proc/net/softnet_stat").unwrap_or_default();
        let dropped = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
        text.lines().filter_map(dropped).sum()
    }

    fn ends(&self) -> u64 {
        if self.one_machine { 2 } else { 1 }
    }
}

/// Enough if `has` reaches `needs`, of what is named in both languages.
fn at_least(has: u64, needs: u64, (of, of_zh): (&str, &str)) -> Sufficiency {
    let why = format!("needs {} {of}", thousands(needs));
    if has >= needs {
        return Enough(why);
    }
    let why_zh = format!("需要 {} {of_zh}", thousands(needs));
    Limits { why, why_zh, wanted: needs.to_string() }
}

/// A value that is no number is beyond any.
fn number(value: &str) -> u64 {
    value.parse().unwrap_or(u64::MAX)
}

/// The last of three values.
fn ceiling(value: &str) -> u64 {
    value.split_whitespace().next_back().map_or(u64::MAX, number)
}

pub(super) fn descriptors(_: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    // Several processes with different limits have all of them.
    let least = value.split(", ").map(number).min().unwrap_or(u64::MAX);
    at_least(least, needs.descriptors, ("open files of one process", "个文件描述符（单个进程）"))
}

pub(super) fn files(system: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    let open = system.sysctl("fs.file-nr");
    let open = open.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let wanted = open + needs.descriptors * system.ends();
    at_least(number(value), wanted, ("open files of the system", "个打开的文件（整个系统）"))
}

pub(super) fn ports(system: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    if system.is_brokers() {
        return Enough("clients take ports; a broker needs none beside its listeners'".to_owned());
    }
    let mut bounds = value.split_whitespace().map(number);
    let (Some(first), Some(last)) = (bounds.next(), bounds.next()) else {
        return Enough("its two numbers cannot be read".to_owned());
    };
    let ports = (last + 1).saturating_sub(first);
    match at_least(ports, needs.clients, ("ports of one address", "个端口（单个地址）")) {
        // The generator takes 127.0.0.2 and so on, too.
        Limits { why, .. } if system.one_machine => {
            Enough(format!("{why}; on loopback there are further addresses"))
        }
        Limits { why, why_zh, .. } => Limits { why, why_zh, wanted: "1024 65535".to_owned() },
        enough => enough,
    }
}

pub(super) fn listen_queue(system: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    let overflows = system.tcp_counter("ListenOverflows");
    if overflows > 0 {
        let times = thousands(overflows);
        return Limits {
            why: format!("a listener overflowed {times} times since the start"),
            why_zh: format!("开机以来监听队列溢出 {times} 次"),
            wanted: (2 * number(value).max(2048)).to_string(),
        };
    }
    let of = ("connections waiting to be accepted", "个等待接受的连接");
    at_least(number(value), arriving(needs), of)
}

pub(super) fn syn_queue(system: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    let dropped = system.tcp_counter("TCPReqQFullDrop");
    if dropped > 0 {
        let dropped = thousands(dropped);
        return Limits {
            why: format!("{dropped} connection requests were dropped since the start"),
            why_zh: format!("开机以来丢弃了 {dropped} 个连接请求"),
            wanted: (2 * number(value).max(2048)).to_string(),
        };
    }
    at_least(number(value), arriving(needs), ("connections half open", "个半开连接"))
}

fn arriving(needs: &Needs) -> u64 {
    (needs.connects_per_s * UNACCEPTED_S).ceil().min(needs.clients as f64) as u64
}

pub(super) fn packet_queue(system: &System<'_>, value: &str, _: &Needs) -> Sufficiency {
    if system.is_brokers() {
        return Enough("its agent does not tell whether packets were dropped there".to_owned());
    }
    match system.packets_dropped() {
        0 => Enough("no packet was dropped there since the machine started".to_owned()),
        dropped => Limits {
            why: format!("{} packets were dropped there since the start", thousands(dropped)),
            why_zh: format!("开机以来在此丢弃了 {} 个数据包", thousands(dropped)),
            wanted: (4 * number(value).max(1000)).to_string(),
        },
    }
}

pub(super) fn socket_ceiling(_: &System<'_>, _: &str, _: &Needs) -> Sufficiency {
    Enough("TCP sizes its buffers by tcp_rmem and tcp_wmem".to_owned())
}

pub(super) fn tcp_buffer(_: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    let bytes = (needs.connection_bytes_per_s * ROUND_TRIP_S).ceil() as u64;
    let bytes = bytes.max(needs.payload_bytes_max);
    let of = ("bytes under way on one connection", "字节的在途数据（单个连接）");
    match at_least(ceiling(value), bytes, of) {
        Limits { why, why_zh, wanted } => {
            let mut all: Vec<&str> = value.split_whitespace().collect();
            all.pop();
            all.push(&wanted);
            Limits { why, why_zh, wanted: all.join(" ") }
        }
        enough => enough,
    }
}

pub(super) fn time_wait(system: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    let overflows = system.tcp_counter("TCPTimeWaitOverflow");
    if overflows > 0 {
        let times = thousands(overflows);
        return Limits {
            why: format!("it was exceeded {times} times since the start"),
            why_zh: format!("开机以来超出 {times} 次"),
            wanted: (2 * number(value)).to_string(),
        };
    }
    let of = ("connections that ended within a minute", "个一分钟内结束的连接");
    at_least(number(value), needs.clients, of)
}

pub(super) fn maps(system: &System<'_>, value: &str, _: &Needs) -> Sufficiency {
    if system.is_brokers() {
        return Enough("its agent does not tell how many the broker has".to_owned());
    }
    let maps = system.text("proc/self/maps");
    let maps = maps.map_or(0, |text| text.lines().count() as u64);
    let of = (
        "memory maps of one process, a broker on a JVM more",
        "个内存映射（单个进程；JVM 上更多）",
    );
    at_least(number(value), 2 * maps, of)
}

pub(super) fn tracked(system: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    let now = system.sysctl("net.netfilter.nf_conntrack_count");
    let now = now.and_then(|count| count.parse().ok()).unwrap_or(0);
    at_least(number(value), now + needs.clients, ("tracked connections", "个被跟踪的连接"))
}

pub(super) fn tracked_buckets(_: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    let of = ("buckets, to keep their lists short", "个哈希桶，以保持链表较短");
    at_least(number(value), needs.clients / 8, of)
}

pub(super) fn tracked_idle(_: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    let keep_alive_s = u64::from(needs.keep_alive_s_max);
    let of = ("s between two packets of an idle client", "秒，即空闲客户端两个数据包之间的时间");
    at_least(number(value), keep_alive_s, of)
}

pub(super) fn tracked_ends(system: &System<'_>, value: &str, needs: &Needs) -> Sufficiency {
    let max = system.sysctl("net.netfilter.nf_conntrack_max");
    let max = max.map_or(u64::MAX, |max| number(&max));
    let ended = (needs.connects_per_s * number(value).min(2 * TIME_WAIT_S) as f64) as u64;
    let tracked = ended.min(needs.clients) + needs.clients;
    if tracked <= max {
        return Enough("connections that have ended fit beside the others".to_owned());
    }
    let (ended, max) = (thousands(ended.min(needs.clients)), thousands(max));
    Limits {
        why: format!(
            "{ended} connections that have ended are tracked beside the others, {max} are possible"
        ),
        why_zh: format!("除其他连接外还要跟踪 {ended} 个已结束的连接，上限为 {max}"),
        wanted: "15".to_owned(),
    }
}
