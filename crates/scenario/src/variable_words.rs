//! What the variables of the scenarios that come with the program are for, in Chinese: by their
//! words in English, which stand in the files. The words of other files are those of their authors.

/// Help in English and Chinese.
const HELP: &[(&str, &str)] = &[
    ("0s turns it off", "0s 表示关闭"),
    ("all clients connect within this time", "所有客户端在此时间内完成连接"),
    (
        "all clients connect, and come back, within this time",
        "所有客户端在此时间内完成连接，也在此时间内全部返回",
    ),
    ("before a client counts as failed", "超过此次数后，客户端计为失败"),
    (
        "before the first attempt; each further pause is twice as long",
        "首次重连前的等待时间；之后每次加倍",
    ),
    ("broker to kill: node1 or node2", "要强制终止的 Broker：node1 或 node2"),
    ("bytes", "字节数"),
    ("bytes, at least 24", "字节数，不小于 24"),
    ("clients", "客户端数"),
    ("clients that ask", "发出请求的客户端数"),
    ("clients that come and go", "不断离开又返回的客户端数"),
    ("clients that publish", "发布消息的客户端数"),
    ("clients that publish, over all machines", "发布消息的客户端数，所有机器合计"),
    ("clients that publish, per broker", "每个 Broker 上发布消息的客户端数"),
    ("clients that subscribe", "订阅消息的客户端数"),
    ("clients that subscribe, over all machines", "订阅消息的客户端数，所有机器合计"),
    ("clients that subscribe, per broker", "每个 Broker 上订阅消息的客户端数"),
    (
        "clients with four wildcard filters each that match nothing",
        "各有四个不匹配任何消息的通配符过滤器的客户端数",
    ),
    (
        "clients with three overlapping filters that match everything",
        "各有三个相互重叠、匹配全部消息的过滤器的客户端数",
    ),
    ("connections opened per second", "每秒新建的连接数"),
    ("consumers that read all the time", "一直读取的消费者数"),
    ("consumers that stop reading", "停止读取的消费者数"),
    ("counted", "计入结果"),
    (
        "each with a topic of its own, and a subscriber to exactly that",
        "各有专属主题，并各有一个只订阅该主题的订阅者",
    ),
    ("from one storm to the next", "两次风暴之间的时间"),
    ("from one wave to the next", "两次接管之间的时间"),
    ("from the start of the measured phase", "从测量开始算起"),
    (
        "from the start of the measured phase until the filters are subscribed",
        "从测量开始到订阅这些过滤器的时间",
    ),
    ("from the start of the measured phase until they do", "从测量开始到它们订阅的时间"),
    ("how long each stays away", "每个客户端离开的时间"),
    ("how often the broker is killed and restarted", "Broker 被强制终止并重启的次数"),
    (
        "length of a wave: clients / over is the rate",
        "一次接管持续的时间；速率为客户端数除以此时间",
    ),
    ("logins before the measured phase, which are not counted", "测量开始前的登录，不计入结果"),
    ("logins per second, of all users", "所有用户每秒的登录次数"),
    ("logins without CONNACK after this have failed", "超过此时间未收到 CONNACK 的登录计为失败"),
    ("long enough to publish all retained messages", "须足够发布全部保留消息"),
    ("longest pause between two attempts", "两次重连之间的最长等待时间"),
    (
        "longest wait for logins that were due in the measured phase",
        "等待测量期内应完成的登录的最长时间",
    ),
    ("longest wait for outstanding messages", "等待未到消息的最长时间"),
    (
        "longest wait for outstanding messages once all subscribers are back",
        "所有订阅者返回后等待未到消息的最长时间",
    ),
    ("messages of a publisher that may be unacknowledged", "每个发布者允许的未确认消息数"),
    ("messages per second for each client", "每个客户端每秒的消息数"),
    ("messages per second of each device", "每台设备每秒的消息数"),
    ("messages per second of each of them", "其中每个客户端每秒的消息数"),
    ("messages per second of each pair", "每对客户端每秒的消息数"),
    ("messages per second of each publisher", "每个发布者每秒的消息数"),
    (
        "messages per second of each publisher; every consumer gets all of them",
        "每个发布者每秒的消息数；每个消费者都会收到全部消息",
    ),
    ("number of storms", "风暴次数"),
    ("number of takeovers of each client", "每个客户端被接管的次数"),
    ("of MQTT: 3.1, 3.1.1 or 5", "MQTT 版本：3.1、3.1.1 或 5"),
    ("of each bridge", "每个桥接的连接数"),
    (
        "of each bridge, between brokers that the run starts",
        "每个桥接的连接数，用于测试所启动的 Broker 之间",
    ),
    (
        "of each publisher, all of them due while its subscriber is away",
        "每个发布者的消息数，均在其订阅者离线期间发出",
    ),
    ("of publications and deliveries: 0, 1 or 2", "发布与投递的 QoS：0、1 或 2"),
    (
        "of the logins present a wrong password; needs passwords",
        "使用错误密码的登录所占比例；需要密码",
    ),
    (
        "of the logins present the name of no user; needs user names",
        "使用不存在的用户名的登录所占比例；需要用户名",
    ),
    ("of the publications: 0, 1 or 2", "发布的 QoS：0、1 或 2"),
    (
        "of the publications: 1 or 2; QoS 0 has no delivery guarantee",
        "发布的 QoS：1 或 2；QoS 0 不保证送达",
    ),
    ("of the requests and their answers", "请求与响应的 QoS"),
    ("of the wills", "遗嘱消息的 QoS"),
    (
        "of them leave each second: clients x share come and go per second",
        "每秒离开的客户端所占比例：每秒有（客户端数 × 比例）个离开并返回",
    ),
    ("pairs at QoS 2", "使用 QoS 2 的客户端对数"),
    ("per second of each of them while it is there", "每个在线客户端每秒的消息数"),
    ("publishers that keep running, each with a subscriber", "持续发布的发布者数，各有一个订阅者"),
    (
        "publishers that stay connected, each with a subscriber",
        "保持连接的发布者数，各有一个订阅者",
    ),
    ("publishers that stay, each with a subscriber", "一直在线的发布者数，各有一个订阅者"),
    ("publishers, each with a subscriber", "发布者数，各有一个订阅者"),
    ("publishes per second, in each direction", "每个方向每秒发布的消息数"),
    ("publishes per second, over all publishers", "所有发布者每秒发布的消息数"),
    ("requests per second of each requester", "每个请求方每秒的请求数"),
    ("sent and received, but not counted", "收发消息，但不计入结果"),
    ("states per second of each device", "每台设备每秒的状态消息数"),
    ("subscribers, each with a publisher of its own", "订阅者数，各有一个专属发布者"),
    (
        "that are disconnected; each has a subscription of its own",
        "将断线的客户端数，各有自己的订阅",
    ),
    ("that are taken over; each has a publisher", "将被接管的客户端数，各有一个发布者"),
    ("that ask for all of them", "请求全部保留消息的订阅者数"),
    (
        "that log in by turns; each has at most one connection",
        "轮流登录的用户数，每个用户最多一个连接",
    ),
    ("that must get all wills", "须收到全部遗嘱消息的观察者数"),
    ("that share the requests", "共同分担请求的响应方数"),
    ("that share the telemetry", "共同分担遥测消息的服务数"),
    ("that watch all state", "接收全部状态消息的看板数"),
    ("time for which a user stays connected", "用户保持连接的时间"),
    ("time for which all of them stay", "所有连接保持的时间"),
    ("time for which sessions outlive their connections", "连接断开后会话保留的时间"),
    ("time without reading", "停止读取的时间"),
    ("until they come back", "返回之前的时间"),
    ("with DISCONNECT; false breaks connections", "发送 DISCONNECT 后断开；false 表示直接断开连接"),
    ("with a retained message each", "各有一条保留消息的主题数"),
    ("with a will each", "各带一条遗嘱的客户端数"),
    ("with telemetry and state", "发送遥测与状态消息的设备数"),
    ("virtual load machines, each with a topic of its own", "虚拟压测机数，各有专属主题"),
];

/// Units in English and Chinese; others are symbols.
const UNITS: &[(&str, &str)] = &[
    ("bytes", "字节"),
    ("clients", "个客户端"),
    ("connections/s", "个连接/秒"),
    ("logins/s", "次登录/秒"),
    ("msg/s", "条/秒"),
    ("msg/s in", "条/秒"),
    ("requests/s", "次请求/秒"),
];

/// Help in Chinese, where the words are those of a built-in scenario.
pub(super) fn help_in_chinese(help: &str) -> Option<&'static str> {
    found(HELP, help)
}

/// A unit in Chinese.
pub(super) fn unit_in_chinese(unit: &str) -> Option<&'static str> {
    found(UNITS, unit)
}

fn found(words: &[(&str, &'static str)], english: &str) -> Option<&'static str> {
    words.iter().find(|(known, _)| *known == english).map(|(_, chinese)| *chinese)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{BUILTIN, ScenarioVariable};

    fn is_chinese(text: &str) -> bool {
        text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
    }

    #[test]
    fn every_variable_of_every_scenario_has_help_and_unit_in_both_languages() {
        for builtin in &BUILTIN {
            for variable in ScenarioVariable::of(&builtin.source()) {
                let name = format!("{}: {}", builtin.name, variable.name);
                assert!(!variable.help.is_empty() && !is_chinese(&variable.help), "{name}");
                assert!(variable.help_zh.is_some_and(is_chinese), "{name}: {}", variable.help);
                assert_eq!(variable.unit.is_some(), variable.unit_zh.is_some(), "{name}");
            }
        }
    }

    #[test]
    fn no_words_are_left_over() {
        let all = BUILTIN.iter().flat_map(|builtin| ScenarioVariable::of(&builtin.source()));
        let used: BTreeSet<String> = all.map(|variable| variable.help).collect();
        let known: BTreeSet<String> =
            HELP.iter().map(|(english, _)| (*english).to_owned()).collect();
        assert_eq!(known.len(), HELP.len(), "one is there twice");
        assert_eq!(known.difference(&used).collect::<Vec<_>>(), Vec::<&String>::new());
    }
}
