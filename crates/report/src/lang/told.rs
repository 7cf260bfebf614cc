//! What a record tells in English, in the language of the report: reasons, findings, notes, checks,
//! names of what belongs to the machine.
//!
//! Records hold sentences, for programs and terminals. Each kind of sentence has a pattern here,
//! with `{}` where its figures stand, and the same sentence with their numbers: `{0}` is the first.
//! A sentence without a pattern is shown as it is.

use super::Lang;

impl Lang {
    /// `text` of a record in this language.
    pub(crate) fn told(self, text: &str) -> String {
        match self {
            Self::En => text.to_owned(),
            Self::Zh => {
                translated(text).or_else(|| of_step(text)).unwrap_or_else(|| text.to_owned())
            }
        }
    }
}

/// A sentence behind the label of a step, as ladders and suites have them.
fn of_step(text: &str) -> Option<String> {
    let (label, sentence) = text.split_once(": ")?;
    Some(format!("{label}：{}", translated(sentence)?))
}

/// All sentences that are known.
fn all() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    SENTENCES.iter().chain(super::happened::SENTENCES).chain(super::compared::SENTENCES)
}

fn translated(text: &str) -> Option<String> {
    all().find_map(|(english, chinese)| {
        let figures = figures(english, text)?;
        let mut out = String::new();
        let mut rest = *chinese;
        while let Some((before, behind)) = rest.split_once('{') {
            let (number, after) = behind.split_once('}')?;
            out.push_str(before);
            let figure = figures.get(number.parse::<usize>().ok()?)?;
            // Checks and directions have names, too. A figure is shorter than its sentence.
            let inner = if figure.len() < text.len() { translated(figure) } else { None };
            out.push_str(inner.as_deref().unwrap_or(figure));
            rest = after;
        }
        Some(out + rest)
    })
}

/// What stands at the places of a pattern, if the text has its form.
fn figures<'t>(pattern: &str, text: &'t str) -> Option<Vec<&'t str>> {
    let mut pieces = pattern.split("{}");
    let mut rest = text.strip_prefix(pieces.next()?)?;
    let mut found = Vec::new();
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty().then_some(found);
    }
    while let Some(piece) = pieces.next() {
        let at = match pieces.peek() {
            // The last figure reaches as far as the end lets it.
            None => rest.len().checked_sub(piece.len()).filter(|_| rest.ends_with(piece))?,
            Some(_) => rest.find(piece)?,
        };
        found.push(rest.get(..at)?);
        rest = rest.get(at + piece.len()..)?;
    }
    Some(found)
}

/// The more special comes before the more general.
const SENTENCES: &[(&str, &str)] = &[
    // Reasons of verdicts.
    (
        "the QoS contract was broken: {} lost, {} duplicated, {} out of order, {} damaged",
        "违反了 QoS 约定：丢失 {0}，重复 {1}，乱序 {2}，损坏 {3}",
    ),
    (
        "{} deliveries never came of messages that the broker had acknowledged",
        "Broker 已确认的消息中，有 {0} 次投递从未到达",
    ),
    (
        "{} deliveries of acknowledged messages had not come when the drain ended",
        "排空结束时，已确认的消息仍有 {0} 次投递未到达",
    ),
    (
        "the generator may be the bottleneck: {} is {}, it must stay below {}",
        "负载生成器可能是瓶颈：{0}为 {1}，必须低于 {2}",
    ),
    (
        "the offered load was not carried: {} of {} messages per second {} ({})",
        "未能承载施加的负载：{2}方向每秒 {1} 条消息中只完成 {0} 条（{3}）",
    ),
    (
        "the rate still changed: {} messages per second out in the first third of the window, {} in the last",
        "速率仍在变化：窗口前三分之一每秒流出 {0} 条消息，后三分之一为 {1} 条",
    ),
    (
        "the latency still changed: median {} in the first third of the window, {} in the last",
        "延迟仍在变化：窗口前三分之一的中位数为 {0}，后三分之一为 {1}",
    ),
    ("the threshold {} does not hold: {}", "阈值 {0} 未满足：{1}"),
    ("{} failures of clients, the first: {}", "客户端失败 {0} 次，第一次：{1}"),
    ("the run was stopped before its end", "运行被提前停止"),
    ("it was stopped before its end", "被提前停止"),
    ("the run ended before anything was measured", "运行在测得任何数据之前就结束了"),
    (
        "nothing was measured: this machine can run none of the points",
        "没有测得数据：这台机器无法运行其中任何一个测点",
    ),
    ("nothing was measured", "没有测得数据"),
    ("no client could connect: {}", "没有客户端能够连接：{0}"),
    ("all clients lost their connection: {}", "所有客户端都断开了连接：{0}"),
    ("a generator thread failed: {}", "负载生成器的一个线程失败：{0}"),
    (
        "{} of {} deliveries of the readiness probe did not arrive within {} ms, the first from {}",
        "就绪探测的 {1} 次投递中有 {0} 次未在 {2} 毫秒内到达，第一个来自 {3}",
    ),
    ("this machine ends the search: more {}", "搜索止于这台机器的能力：再多{0}"),
    (
        "the generator ends the search, not the broker: give it more cores, or another machine",
        "终止搜索的是负载生成器而不是 Broker：请给它更多的核，或换到另一台机器",
    ),
    ("the generator was the bottleneck at every load", "在每个负载下瓶颈都是负载生成器"),
    ("bracket", "确定范围"),
    ("bisect", "二分"),
    ("verify", "验证"),
    ("confirm", "确认"),
    ("no load meets the objectives", "没有负载能满足目标"),
    (
        "{} trials contradict each other: the machine or the broker is not steady",
        "{0} 次试验相互矛盾：机器或 Broker 不稳定",
    ),
    // How a search ended.
    ("the search was cut short", "搜索被提前结束"),
    ("the bounds are as near as asked", "上下界已达到要求的精度"),
    ("the highest value to try passes", "允许尝试的最大值也通过了"),
    ("nothing passes, down to the lowest value", "直到最小值都没有通过"),
    ("outcomes contradict each other, the search gave up", "试验结果相互矛盾，搜索已放弃"),
    // Checks of the generator.
    ("the busiest generator thread", "最忙的负载生成器线程"),
    ("the send delay p99", "发送延迟 p99"),
    ("the time stolen by the hypervisor", "被虚拟化层占用的时间"),
    ("too few samples, or not observable", "样本太少，或无法观测"),
    ("in", "流入"),
    ("out", "流出"),
    // How a recommendation was found.
    (
        "linear interpolation of mean CPU ({}) over messages in + out per second between the neighbouring steps, falling CPU levelled; interval: 95 %, block bootstrap over seconds",
        "在相邻步骤之间，按流入 + 流出消息/秒对平均 CPU（{0}）做线性插值，下降的 CPU 取平；置信区间：95 %，以秒为块的自助法",
    ),
    ("1 - idle of the broker's host", "Broker 主机的 1 - 空闲"),
    ("1 - idle - steal of the broker's cores", "Broker 所用核的 1 - 空闲 - 被占用"),
    ("the broker process, in percent of the cores it may use", "Broker 进程，以其可用核的百分比计"),
    // Findings about latencies.
    (
        "{} of the latencies lie at 40 ms, as when a delayed acknowledgement meets Nagle's algorithm: set TCP_NODELAY in the broker (set_tcp_nodelay in mosquitto).",
        "有 {0} 的延迟集中在 40 毫秒，这是延迟确认遇上 Nagle 算法的特征：请在 Broker 中设置 TCP_NODELAY（mosquitto 为 set_tcp_nodelay）。",
    ),
    (
        "{} of the latencies lie at 200 ms, TCP's shortest retransmission timeout: packets are lost on the way; look at drops and retransmits of both hosts.",
        "有 {0} 的延迟集中在 200 毫秒，即 TCP 最短的重传超时：途中有丢包；请查看两端主机的丢包与重传。",
    ),
    (
        "The first second of the window has a p99 of {}, the others of about {}: a cold start; give the broker a longer --warmup.",
        "窗口第一秒的 p99 为 {0}，其余约为 {1}：属于冷启动；请加长 --warmup。",
    ),
    (
        "Some connections took {}, as when a SYN is lost and repeated after 1, 3 or 7 s: the listen queue of the broker is too short for so many at once; raise its backlog and net.core.somaxconn, or connect more slowly.",
        "有些连接用了 {0}，这是 SYN 丢失后在 1、3 或 7 秒重发的特征：Broker 的监听队列容不下同时到来的这么多连接；请增大 backlog 与 net.core.somaxconn，或放慢建立连接的速度。",
    ),
    (
        "The clock of {} is known to {} only: its figures may stand beside the wrong seconds; do not read causes from their order.",
        "{0} 的时钟误差只能确定到 {1}：其数据可能对应到错误的秒；不要根据先后次序推断因果。",
    ),
    // Findings about machines.
    (
        "The hypervisor took {} of the time away: the machine was noisy; repeat the run, several times (--repeat), or on a machine of its own.",
        "虚拟化层占用了 {0} 的时间：机器受到干扰；请重复运行（--repeat 多次），或换到独占的机器上。",
    ),
    (
        "Other programs used {} of a core during the measured window: repeat the run on an idle machine.",
        "测量窗口内其他程序占用了单核的 {0}：请在空闲的机器上重新运行。",
    ),
    (
        "The broker's cores were {} busy, of which the broker itself took {}: the rest is the kernel's or other programs'; a recommended workload from it is too low.",
        "Broker 所用的核忙碌率为 {0}，其中 Broker 自身占 {1}：其余属于内核或其他程序；由此得出的推荐负载偏低。",
    ),
    (
        "{} of {} shared subscriptions are served unevenly: in {} the members got {} to {} messages (Gini {}); look at the broker's strategy for shared subscriptions.",
        "{1} 个共享订阅中有 {0} 个分配不均：在 {2} 中，各成员收到 {3} 至 {4} 条消息（基尼系数 {5}）；请检查 Broker 的共享订阅策略。",
    ),
    (
        "The monitor {} told about {} of the {} measured seconds; figures of its host are of that part only.",
        "监控 {0} 只覆盖了 {2} 秒测量时间中的 {1} 秒；其主机数据仅代表这一部分。",
    ),
    ("The monitor {} had an error: {}", "监控 {0} 出现错误：{1}"),
    ("The monitor {} had {} errors, the last: {}", "监控 {0} 出现 {1} 次错误，最后一次：{2}"),
    // Findings about networks.
    (
        "The network was the bottleneck: {} of {} carried {}/s {}, {} of what it can; use a faster network, smaller payloads or less load.",
        "瓶颈是网络：{1} 的 {0} {3}方向传输 {2}/秒，达到其能力的 {4}；请使用更快的网络、更小的载荷或更低的负载。",
    ),
    (
        "The network was the bottleneck: {} of {} sent {}/s all the time, while TCP repeated {} segments per second and the load was not carried; something on the way is narrower than the interface, such as a shaped link.",
        "瓶颈是网络：{1} 的 {0} 一直以 {2}/秒发送，同时 TCP 每秒重传 {3} 个报文段，负载未能承载；途中有比网卡更窄的环节，例如限速的链路。",
    ),
    (
        "{} of {} dropped {} packets per second: its queues overflow; look at its ring size and at the CPU that serves its interrupts.",
        "{1} 的 {0} 每秒丢弃 {2} 个数据包：队列溢出；请检查环形缓冲区大小以及处理其中断的 CPU。",
    ),
    ("TCP on {} repeated {} segments per second: {}.", "{0} 上的 TCP 每秒重传 {1} 个报文段：{2}。"),
    (
        "packets are lost on the way, and latency has a tail from 200 ms on; check the network before blaming the broker",
        "途中有丢包，延迟从 200 毫秒起出现长尾；在归咎于 Broker 之前请先检查网络",
    ),
    (
        "on loopback that means sockets whose reader was kept from running, or whose buffers overflowed; look at steal and at the cores' load",
        "在回环接口上，这意味着套接字的读取方未能及时运行，或其缓冲区溢出；请查看被虚拟化占用的时间与各核负载",
    ),
    (
        "The listen queue of {} overflowed: connections wait a second and more to be tried again; raise net.core.somaxconn and the broker's backlog, or connect more slowly.",
        "{0} 的监听队列溢出：连接要等一秒以上才会重试；请增大 net.core.somaxconn 与 Broker 的 backlog，或放慢建立连接的速度。",
    ),
    (
        "The round trip to the broker's host takes {} of the median latency of {}: most of it is the network's, not the broker's.",
        "到 Broker 主机的往返时间为 {0}，而延迟中位数为 {1}：大部分来自网络而不是 Broker。",
    ),
    // Notes.
    (
        "One-machine run: generator and broker share this machine, and on loopback the sender's core runs the receiver's TCP. Do not compare with runs over a network.",
        "单机运行：负载生成器与 Broker 共用这台机器，且在回环接口上由发送方的核执行接收方的 TCP 处理。请勿与跨网络的运行相比较。",
    ),
    (
        "Closed model: publishers wait for the broker, so latency is not that of a fixed load.",
        "闭环模型：发布者会等待 Broker，因此延迟并非固定负载下的延迟。",
    ),
    (
        "The certificate of {} was not verified (insecure): nobody knows who was measured.",
        "未验证 {0} 的证书（insecure）：无法确认所测对象的身份。",
    ),
    (
        "CPU and memory of the broker process were not observed.",
        "未观测 Broker 进程的 CPU 与内存。",
    ),
    (
        "Round trips to a broker were not measured all the time: {}.",
        "到 Broker 的往返时间并未全程测量：{0}。",
    ),
    (
        "The broker was killed during the run: what was due while it was away was never sent, and rates and latencies are not those of a broker that lives.",
        "运行期间 Broker 被强制终止：其离线期间应发送的消息从未发送，速率与延迟也不代表正常运行的 Broker。",
    ),
    (
        "{} times a client lost its connection, or did not get one, and tried again; the first: {}.",
        "客户端断开或未能建立连接后重试共 {0} 次，第一次：{1}。",
    ),
    // The machine.
    ("platform", "平台"),
    ("distribution", "发行版"),
    ("kernel", "内核"),
    ("cores online", "在线核"),
    ("hardware threads share cores", "硬件线程共享核"),
    ("virtual machine", "虚拟机"),
    ("frequency governor", "频率调节策略"),
    ("turbo", "睿频"),
    ("clock source", "时钟源"),
    ("NUMA nodes", "NUMA 节点"),
    ("memory", "内存"),
    ("open files, soft limit", "打开文件数软限制"),
    ("open files, hard limit", "打开文件数硬限制"),
    ("broker cores", "Broker 所用核"),
    ("generator cores", "负载生成器所用核"),
    ("generator threads", "负载生成器线程"),
    ("generator timing", "负载生成器计时方式"),
    ("scenario hash", "场景散列值"),
    ("control group", "控制组"),
    ("cores, by control group", "核数（控制组限制）"),
    ("memory, by control group", "内存（控制组限制）"),
    ("interface {}", "网络接口 {0}"),
    ("unknown", "未知"),
    ("yes", "是"),
    ("no", "否"),
    ("unlimited", "无限制"),
    ("not pinned", "未绑定"),
    // Published figures.
    (
        "EMQX 5.1.6, one node, 4 vCPU Xeon Platinum 8378A 3.0 GHz, 8 GiB, CentOS 7.9, default configuration",
        "EMQX 5.1.6，单节点，4 vCPU Xeon Platinum 8378A 3.0 GHz，8 GiB，CentOS 7.9，默认配置",
    ),
    (
        "XMeter on 10 load machines (fan-in: 20) over a network, 5 minutes a step",
        "XMeter，经网络的 10 台压测机（fan-in 为 20 台），每步骤 5 分钟",
    ),
    (
        "BifroMQ standalone, 32 cores, 128 GB, JVM heap 40 GB",
        "BifroMQ 单机版，32 核，128 GB，JVM 堆 40 GB",
    ),
    ("a second machine with 32 cores", "另一台 32 核的机器"),
    // Scenarios that come with the program.
    (
        "Publishers at each of two bridged brokers send to subscribers at the other.",
        "两个桥接的 Broker 上的发布者各自向对方的订阅者发送消息。",
    ),
    (
        "Clients connect at a steady rate and stay; nobody sends a message.",
        "客户端以恒定速率连接并保持在线，不发送消息。",
    ),
    (
        "Each machine's publishers send to a shared subscription of a few subscribers.",
        "每台压测机的发布者向由少数订阅者组成的共享订阅发送消息。",
    ),
    (
        "Each machine's publishers send to all of its many subscribers.",
        "每台压测机的发布者向其大量订阅者广播消息。",
    ),
    (
        "Publishers publish while the subscribers are away from their sessions; then they come back and drain.",
        "订阅者离线期间发布者持续发布，随后订阅者回到各自的会话取走消息。",
    ),
    (
        "Clients connect, subscribe, publish a little and leave, all the time, beside others that stay.",
        "客户端不断地连接、订阅、少量发布再离开，另有一些客户端一直在线。",
    ),
    (
        "Telemetry, retained state, commands, billing and large messages at once.",
        "遥测、保留状态、命令、计费与大消息同时进行。",
    ),
    (
        "All clients lose their connections at once and come back, beside others that stay.",
        "全部客户端同时断开并重新连接，另有一些客户端一直在线。",
    ),
    ("New subscribers ask for many retained messages at once.", "新的订阅者同时请求大量保留消息。"),
    (
        "Some consumers stop reading for a while: are the others served as before?",
        "一部分消费者暂停读取：其他消费者是否不受影响？",
    ),
    (
        "A moderate load for a long time: how memory and latency change per hour.",
        "长时间的中等负载：内存与延迟每小时的变化。",
    ),
    (
        "Clients connect a second time with the same identifier while their first connection is up.",
        "客户端在首个连接仍然存在时用相同的客户端标识再次连接。",
    ),
    (
        "Many overlapping + and # filters come to lie in the way of all messages: the cost of matching.",
        "大量重叠的 + 与 # 过滤器匹配全部消息：匹配的开销。",
    ),
    (
        "Many clients with wills break off at once; everybody who watches must hear of all of them.",
        "大量带遗嘱的客户端同时异常断开，所有关注者都必须收到全部遗嘱。",
    ),
    (
        "Requests with response topic and correlation data, and their answers: the round trip.",
        "带响应主题与关联数据的请求及其应答：往返时间。",
    ),
    (
        "Each publisher sends to one subscriber through a topic of their own.",
        "每个发布者通过专属主题向一个订阅者发送消息。",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_lab::verdict::{gates, judge_step};
    use tacho_record::{Gate, SeriesRow, Step, ViolationCounts};

    #[test]
    fn figures_are_found_and_placed() {
        assert_eq!(figures("a {} b {}", "a 1 b 2 c"), Some(vec!["1", "2 c"]));
        assert_eq!(figures("a {}.", "a b.c."), Some(vec!["b.c"]));
        assert_eq!(figures("a", "ab"), None);
        assert_eq!(figures("{} b", "a c"), None);
        assert_eq!(figures("", ""), Some(Vec::new()));
    }

    #[test]
    fn patterns_and_translations_have_the_same_figures() {
        for (english, chinese) in all() {
            let places = english.matches("{}").count();
            for place in 0..places {
                assert!(chinese.contains(&format!("{{{place}}}")), "{english}");
            }
            assert_eq!(chinese.matches('{').count(), places, "{english}");
        }
    }

    /// Sentences as the judge writes them today are known here.
    #[test]
    fn reasons_of_verdicts_are_translated() {
        let bound = Gate {
            name: "the busiest generator thread".to_owned(),
            unit: "percent".to_owned(),
            value: 90.0,
            limit: 80.0,
            passed: false,
        };
        let mut step = Step {
            violations: ViolationCounts { lost: 3, ..ViolationCounts::default() },
            acknowledged_lost: 2,
            acknowledged_pending: 1,
            offered_in_per_s: 100.0,
            achieved_in_per_s: 50.0,
            host_steal_percent: Some(1.0),
            ..Step::default()
        };
        step.send_delay_us.p99 = Some(2000);
        step.gates = gates(&step, false, 1);
        step.gates.push(bound);
        let mut rows: Vec<SeriesRow> =
            vec![SeriesRow { received_per_s: 10.0, ..SeriesRow::default() }; 6];
        rows[5].received_per_s = 100.0;
        rows[4].received_per_s = 100.0;
        let (_, reasons) = judge_step(&step, &rows.iter().collect::<Vec<_>>());
        assert_eq!(reasons.len(), 8, "{reasons:?}");
        for reason in reasons {
            let chinese = Lang::Zh.told(&reason);
            let words = chinese.split(|c: char| !c.is_ascii_alphabetic());
            let english: Vec<_> = words.filter(|word| word.len() > 3).collect();
            assert!(english.is_empty() || english == ["Broker"], "{reason}: {chinese}");
            assert_eq!(Lang::En.told(&reason), reason);
        }
    }
}
