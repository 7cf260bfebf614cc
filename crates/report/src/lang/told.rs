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
    ("bracket", "确定范围"),
    ("bisect", "二分"),
    ("verify", "验证"),
    ("confirm", "确认"),
    // How a search ended.
    ("the search was cut short", "搜索被提前结束"),
    ("the bounds are as near as asked", "上下界已达到要求的精度"),
    ("the highest value to try passes", "允许尝试的最大值也通过了"),
    ("nothing passes, down to the lowest value", "直到最小值都没有通过"),
    ("outcomes contradict each other, the search gave up", "试验结果相互矛盾，搜索已放弃"),
    // How a recommendation was found.
    (
        "linear interpolation of mean CPU ({}) over messages in + out per second between the neighbouring steps, falling CPU levelled; interval: 95 %, block bootstrap over seconds",
        "在相邻步骤之间，按流入 + 流出消息/秒对平均 CPU（{0}）做线性插值，下降的 CPU 取平；置信区间：95 %，以秒为块的自助法",
    ),
    ("1 - idle of the broker's host", "Broker 主机的 1 - 空闲"),
    ("1 - idle - steal of the broker's cores", "Broker 所用核的 1 - 空闲 - 被占用"),
    ("the broker process, in percent of the cores it may use", "Broker 进程，以其可用核的百分比计"),
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
        "Clients connect at a steady rate and stay; no messages are sent.",
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
        "Many clients with wills break off at once; every observer must receive all wills.",
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
}
