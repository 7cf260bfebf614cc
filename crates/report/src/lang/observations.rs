//! Findings and their remedies in words.

use tacho_record::{Finding, Observation};
use tacho_scenario::format;

use super::{Lang, statements};

statements! {
    /// A finding.
    observation(lang, Observation);
    Observation::NetworkBusy { interface, host, bytes_per_s, direction, percent } => [
        interface = interface.as_deref().unwrap_or("an interface");
        rate = format::bytes(*bytes_per_s as u64); way = lang.direction(*direction);
    ]
        "The network was the bottleneck: {interface} of {host} carried {rate}/s {way}, {percent:.0} % of its capacity; use a faster network, smaller payloads or less load.",
        "瓶颈是网络：{host} 的 {interface} {way}方向传输 {rate}/秒，达到其能力的 {percent:.0} %；请使用更快的网络、更小的载荷或更低的负载。";
    Observation::NetworkLimitReached { interface, host, bytes_per_s, direction, percent } => [
        interface = interface.as_deref().unwrap_or("an interface");
        rate = format::bytes(*bytes_per_s as u64); way = lang.direction(*direction);
    ]
        "The network was the bottleneck: {interface} of {host} carried {rate}/s {way}, {percent:.0} % of what --network-limit states; use a faster network, smaller payloads or less load.",
        "瓶颈是网络：{host} 的 {interface} {way}方向传输 {rate}/秒，达到 --network-limit 所述上限的 {percent:.0} %；请使用更快的网络、更小的载荷或更低的负载。";
    Observation::PacketLimitReached { interface, host, packets_per_s, direction, percent } => [
        interface = interface.as_deref().unwrap_or("an interface");
        rate = format::rate(*packets_per_s); way = lang.direction(*direction);
    ]
        "The network was the bottleneck: {interface} of {host} carried {rate} packets/s {way}, {percent:.0} % of what --network-limit states; use a network that carries more packets, or fewer and larger messages.",
        "瓶颈是网络：{host} 的 {interface} {way}方向每秒传输 {rate} 个数据包，达到 --network-limit 所述上限的 {percent:.0} %；请使用能承载更多数据包的网络，或发送更少、更大的消息。";
    Observation::NetworkNarrow { interface, host, bytes_per_s, retransmits_per_s } => [
        interface = interface.as_deref().unwrap_or("an interface");
        rate = format::bytes(*bytes_per_s as u64);
    ]
        "The network was the bottleneck: {interface} of {host} sent {rate}/s throughout, while TCP retransmitted {retransmits_per_s:.0} segments per second and the load was not carried; a link on the path is narrower than the interface, such as a shaped link.",
        "瓶颈是网络：{host} 的 {interface} 一直以 {rate}/秒发送，同时 TCP 每秒重传 {retransmits_per_s:.0} 个报文段，负载未能承载；途中有比网卡更窄的环节，例如限速的链路。";
    Observation::NetworkDrops { interface, host, packets_per_s } => [
        interface = interface.as_deref().unwrap_or("An interface");
    ]
        "{interface} of {host} dropped {packets_per_s:.0} packets per second: its queues overflow; check its ring size and the CPU that serves its interrupts.",
        "{host} 的 {interface} 每秒丢弃 {packets_per_s:.0} 个数据包：队列溢出；请检查环形缓冲区大小以及处理其中断的 CPU。";
    Observation::Retransmits { host, segments_per_s, one_machine: false } => []
        "TCP on {host} retransmitted {segments_per_s:.0} segments per second: the network loses packets, and latency has a tail from 200 ms on; check the network before the broker.",
        "{host} 上的 TCP 每秒重传 {segments_per_s:.0} 个报文段：途中有丢包，延迟从 200 毫秒起出现长尾；在归咎于 Broker 之前请先检查网络。";
    Observation::Retransmits { host, segments_per_s, one_machine: true } => []
        "TCP on {host} retransmitted {segments_per_s:.0} segments per second: on loopback the receiving process did not get the CPU, or socket buffers overflowed; check steal time and the load of the cores.",
        "{host} 上的 TCP 每秒重传 {segments_per_s:.0} 个报文段：在回环接口上，这意味着套接字的读取方未能及时运行，或其缓冲区溢出；请查看被虚拟化占用的时间与各核负载。";
    Observation::ListenOverflow { host } => []
        "The listen queue of {host} overflowed: connections are retried after a second or more; raise net.core.somaxconn and the broker's backlog, or connect more slowly.",
        "{host} 的监听队列溢出：连接要等一秒以上才会重试；请增大 net.core.somaxconn 与 Broker 的 backlog，或放慢建立连接的速度。";
    Observation::RoundTrip { round_trip_us, latency_us } => [
        round_trip = format::latency(*round_trip_us as f64);
        latency = format::latency(*latency_us as f64);
    ]
        "The round trip to the broker's host takes {round_trip} of the median latency of {latency}: the network causes most of the latency, not the broker.",
        "到 Broker 主机的往返时间为 {round_trip}，而延迟中位数为 {latency}：大部分来自网络而不是 Broker。";
    Observation::DelayedAcknowledgements { percent, is_mosquitto: false } => []
        "{percent:.1} % of the latencies lie at 40 ms, as when a delayed acknowledgement meets Nagle's algorithm: set TCP_NODELAY in the broker.",
        "有 {percent:.1} % 的延迟集中在 40 毫秒，这是延迟确认遇上 Nagle 算法的特征：请在 Broker 中设置 TCP_NODELAY。";
    Observation::DelayedAcknowledgements { percent, is_mosquitto: true } => []
        "{percent:.1} % of the latencies lie at 40 ms, as when a delayed acknowledgement meets Nagle's algorithm: set TCP_NODELAY ('set_tcp_nodelay true' in mosquitto.conf).",
        "有 {percent:.1} % 的延迟集中在 40 毫秒，这是延迟确认遇上 Nagle 算法的特征：请设置 TCP_NODELAY（mosquitto.conf 中的 'set_tcp_nodelay true'）。";
    Observation::RetransmissionTimeouts { percent } => []
        "{percent:.1} % of the latencies lie at 200 ms, TCP's shortest retransmission timeout: the network loses packets; check drops and retransmits on both hosts.",
        "有 {percent:.1} % 的延迟集中在 200 毫秒，即 TCP 最短的重传超时：途中有丢包；请查看两端主机的丢包与重传。";
    Observation::ColdStart { first_us, others_us } => [
        first = format::latency(*first_us as f64); others = format::latency(*others_us as f64);
    ]
        "The first second of the window has a p99 of {first}, the others of about {others}: a cold start; give the broker a longer --warmup.",
        "窗口第一秒的 p99 为 {first}，其余约为 {others}：属于冷启动；请加长 --warmup。";
    Observation::ConnectionRetries { took_us } => [took = format::latency(*took_us as f64);]
        "Some connections took {took}, typical of a lost SYN that is retransmitted after 1, 3 or 7 s: the broker's listen queue is too short for this many connections at once; raise its backlog and net.core.somaxconn, or connect more slowly.",
        "有些连接用了 {took}，这是 SYN 丢失后在 1、3 或 7 秒重发的特征：Broker 的监听队列容不下同时到来的这么多连接；请增大 backlog 与 net.core.somaxconn，或放慢建立连接的速度。";
    Observation::ClockError { source, error_us } => [error = format::latency(*error_us);]
        "The clock of {source} is known only to within {error}: its figures may be assigned to the wrong seconds; do not infer causes from their order.",
        "{source} 的时钟误差只能确定到 {error}：其数据可能对应到错误的秒；不要根据先后次序推断因果。";
    Observation::Steal { percent } => []
        "The hypervisor took {percent:.1} % of the CPU time (steal): other virtual machines disturbed the run; repeat it (--repeat), or use a dedicated machine.",
        "虚拟化层占用了 {percent:.1} % 的时间：机器受到干扰；请重复运行（--repeat 多次），或换到独占的机器上。";
    Observation::OtherPrograms { percent } => []
        "Other programs used {percent:.0} % of a core during the measured window: repeat the run on an idle machine.",
        "测量窗口内其他程序占用了单核的 {percent:.0} %：请在空闲的机器上重新运行。";
    Observation::ForeignLoad { busy_percent, broker_percent } => []
        "The broker's cores were {busy_percent:.0} % busy, of which the broker itself used {broker_percent:.0} %: the kernel or other programs used the rest; a recommended workload derived from this CPU is too low.",
        "Broker 所用的核忙碌率为 {busy_percent:.0} %，其中 Broker 自身占 {broker_percent:.0} %：其余属于内核或其他程序；由此得出的推荐负载偏低。";
    Observation::UnfairGroups { unfair, groups, filter, received_min, received_max, gini } => []
        "{unfair} of {groups} shared subscriptions are served unevenly: in {filter} the members got {received_min} to {received_max} messages (Gini {gini:.2}); check the broker's strategy for shared subscriptions.",
        "{groups} 个共享订阅中有 {unfair} 个分配不均：在 {filter} 中，各成员收到 {received_min} 至 {received_max} 条消息（基尼系数 {gini:.2}）；请检查 Broker 的共享订阅策略。";
    Observation::MonitorGap { monitor, covered_s, window_s } => []
        "Monitor {monitor} covered {covered_s:.0} of the {window_s:.0} measured seconds; figures of its host refer to that part only.",
        "监控 {monitor} 只覆盖了 {window_s:.0} 秒测量时间中的 {covered_s:.0} 秒；其主机数据仅代表这一部分。";
    Observation::MonitorErrors { monitor, errors: 1, last } => []
        "Monitor {monitor} had an error: {last}", "监控 {monitor} 出现错误：{last}";
    Observation::MonitorErrors { monitor, errors, last } => []
        "Monitor {monitor} had {errors} errors, the last: {last}",
        "监控 {monitor} 出现 {errors} 次错误，最后一次：{last}";
    Observation::MonitorDropped { monitor, rows } => []
        "Monitor {monitor} sent {rows} rows too fast; they were dropped.", "监控 {monitor} 有 {rows} 行来得太快而被丢弃。";
    Observation::OutputLost { output, lost, of, last } => [
        lost = format::thousands(*lost); of = format::thousands(*of);
    ]
        "The output {output} did not get {lost} of {of} records, the last error: {last}. The run directory has all figures: 'tacho report --out' sends them again.",
        "输出 {output} 未收到 {of} 条记录中的 {lost} 条，最后的错误：{last}。运行目录保存了全部数据：'tacho report --out' 可以重新发送。";
    Observation::Disturbed { disturbance, program } => [
        kinds = lang.disturbance_kinds(disturbance);
        handling = lang.handling(disturbance.handling);
        by = lang.by_program(program.as_deref());
    ]
        "The machine was disturbed: {kinds}{by}. {handling}",
        "机器受到干扰：{kinds}{by}。{handling}";
    Observation::Repeated { label, verdict } => [verdict = verdict.name();]
        "{label} was {verdict} and was measured again.",
        "{label} 为 {verdict}，已重新测量。";
    Observation::LadderStopped { label, condition } => []
        "The ladder ended at {label}: its stop condition {condition} holds.",
        "阶梯按要求止于 {label}，此处满足 {condition}。";
    Observation::PacketTooLarge { clients, client, packet, announced_bytes, limit_bytes } => []
        "The broker sent packets that are larger than clients accept, and {clients} clients were closed: the first, {client}, got {packet} of {announced_bytes} bytes and accepts {limit_bytes}; if the broker is right, raise connect.maximum_packet_size.",
        "Broker 发来的数据包超过客户端可接受的大小，{clients} 个客户端因此被关闭：第一个 {client} 收到 {announced_bytes} 字节的 {packet}，而上限为 {limit_bytes} 字节；若 Broker 的行为正确，请增大 connect.maximum_packet_size。";
    Observation::ReceiveBudget { clients, client, packet, announced_bytes, budget_bytes } => []
        "Incomplete packets from the broker exceeded the budget of {budget_bytes} bytes of a generator thread, and {clients} clients were closed: the first, {client}, had a part of {packet} of {announced_bytes} bytes; use fewer clients, smaller messages, or a machine with more memory.",
        "Broker 发来的未完整数据包超出负载生成器线程 {budget_bytes} 字节的预算，{clients} 个客户端因此被关闭：第一个 {client} 只收到 {announced_bytes} 字节的 {packet} 的一部分；请减少客户端、减小消息，或使用内存更大的机器。";
    Observation::LoginsMisjudged { accepted, refused, first } => []
        "The broker decided logins wrongly: it accepted {accepted} with wrong credentials and refused {refused} with right ones, the first: {first}; check that the users of the run are those of the broker, and that the broker verifies them.",
        "Broker 的登录判定有误：接受了 {accepted} 次错误凭据，拒绝了 {refused} 次正确凭据，第一次：{first}；请检查运行所用的用户是否与 Broker 一致，以及 Broker 是否进行验证。";
    Observation::LoginsBanned { count } => []
        "The broker has banned the generator and refused {count} right logins for that, perhaps after the wrong logins of this run: raise or turn off its limit of failed logins (Tacho: login_failures_max), or use fewer wrong ones.",
        "Broker 封禁了负载生成器，因此拒绝了 {count} 次正确登录，原因可能是本次运行中的错误登录：请放宽或关闭其登录失败限制（Tacho：login_failures_max），或减少错误登录。";
    Observation::CpuNotObserved => []
        "The broker's CPU is not observed, so the objective cpu<=75% was skipped: name its process with --broker-pid, or watch its host with --monitor.",
        "未观测 Broker 的 CPU，因此略去目标 cpu<=75%：请用 --broker-pid 指定其进程，或用 --monitor 监控其主机。";
}

impl Lang {
    /// A finding; a sentence of an old record as it is.
    pub fn finding(self, finding: &Finding) -> String {
        let Some(observation) = &finding.observation else { return finding.sentence.clone() };
        match finding.place.as_str() {
            "" => self.observation(observation),
            place => format!("{place}{}{}", self.colon(), self.observation(observation)),
        }
    }
}
