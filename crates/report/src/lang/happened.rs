//! What happened while a run was measured, and the figures that scenarios are for: sentences as
//! [`told`](super::told) has them.

pub(super) const SENTENCES: &[(&str, &str)] = &[
    // Figures on top.
    ("until a broker that was killed serves again", "被终止的 Broker 恢复服务所需时间"),
    ("messages that waited in bridges at the worst", "桥接中等待的最大消息数"),
    (
        "from the kill until no more waited in bridges than before",
        "从终止到桥接积压恢复到之前水平所需时间",
    ),
    ("until 99 % are connected again", "99 % 恢复连接所需时间"),
    ("until 99 % have their subscriptions", "99 % 恢复订阅所需时间"),
    ("attempts to connect that failed", "失败的连接尝试"),
    ("until 99 % of second connections are served", "99 % 的新连接获得服务所需时间"),
    ("first connections that the broker ended", "被 Broker 结束的原连接"),
    ("first connections that were told why", "被告知原因的原连接"),
    ("clients that leave and come back", "离开并返回的客户端"),
    ("latency p99 of unaffected clients", "未受影响者的延迟 p99"),
    ("until the last retained message is there", "最后一条保留消息到达所需时间"),
    ("retained messages that came", "收到的保留消息"),
    ("until the last will is there", "最后一条遗嘱到达所需时间"),
    ("wills that came", "收到的遗嘱"),
    ("latency p99 of the others during pauses", "暂停期间其他客户端的延迟 p99"),
    ("latency p99 of the others before", "暂停之前"),
    ("latency p99 of the others after", "暂停之后"),
    ("broker CPU per message, with", "之后每条消息的 Broker CPU"),
    ("broker CPU per message, without", "之前每条消息的 Broker CPU"),
    ("median time from request to answer", "请求到应答的中位时间"),
    ("99th percentile of the time from request to answer", "请求到应答时间的 p99"),
    ("requests answered", "获得应答的请求"),
    ("drift of the broker's memory", "Broker 内存的变化趋势"),
    ("drift of the median latency", "延迟中位数的变化趋势"),
    ("drift of the latency p99", "延迟 p99 的变化趋势"),
    ("median latency of the slowest group ({})", "最慢组（{0}）的延迟中位数"),
    ("deliveries that came", "到达的投递"),
    ("never, or too little to tell", "从未达到，或样本太少"),
    ("{} per hour", "每小时 {0}"),
];
