//! The figures that scenarios are for.

use tacho_record::{Headline, HeadlineName, HeadlineUnit};
use tacho_scenario::format;

use super::{Lang, statements};

statements! {
    /// The name of a headline.
    headline_name(lang, HeadlineName);
    HeadlineName::TimeTo99PercentConnected => []
        "until 99 % are connected again", "99 % 恢复连接所需时间";
    HeadlineName::TimeTo99PercentServed => []
        "until 99 % have their subscriptions", "99 % 恢复订阅所需时间";
    HeadlineName::FailedAttempts => [] "attempts to connect that failed", "失败的连接尝试";
    HeadlineName::RestartServing => []
        "until a broker that was killed serves again", "被终止的 Broker 恢复服务所需时间";
    HeadlineName::BridgeBacklog => []
        "messages that waited in bridges at the worst", "桥接中等待的最大消息数";
    HeadlineName::BridgeDrained => []
        "from the kill until no more waited in bridges than before",
        "从终止到桥接积压恢复到之前水平所需时间";
    HeadlineName::TakeoverServed99 => []
        "until 99 % of second connections are served", "99 % 的新连接获得服务所需时间";
    HeadlineName::TakeoverEnded => []
        "first connections that the broker ended", "被 Broker 结束的原连接";
    HeadlineName::TakeoverTold => []
        "first connections that were told why", "被告知原因的原连接";
    HeadlineName::ConnectsPerSecond => []
        "clients that leave and come back", "离开并返回的客户端";
    HeadlineName::SteadyP99 => []
        "latency p99 of unaffected clients", "未受影响者的延迟 p99";
    HeadlineName::LastRetained => []
        "until the last retained message is there", "最后一条保留消息到达所需时间";
    HeadlineName::RetainedComplete => [] "retained messages that came", "收到的保留消息";
    HeadlineName::LastWill => []
        "until the last will is there", "最后一条遗嘱到达所需时间";
    HeadlineName::WillsComplete => [] "wills that came", "收到的遗嘱";
    HeadlineName::CalmP99During => []
        "latency p99 of the others during pauses", "暂停期间其他客户端的延迟 p99";
    HeadlineName::CalmP99Before => []
        "latency p99 of the others before", "暂停之前其他客户端的延迟 p99";
    HeadlineName::CalmP99After => []
        "latency p99 of the others after", "暂停之后其他客户端的延迟 p99";
    HeadlineName::CpuPerMessageAfter => []
        "broker CPU per message, with", "之后每条消息的 Broker CPU";
    HeadlineName::CpuPerMessageBefore => []
        "broker CPU per message, without", "之前每条消息的 Broker CPU";
    HeadlineName::RoundTripP50 => []
        "median time from request to answer", "请求到应答的中位时间";
    HeadlineName::RoundTripP99 => []
        "99th percentile of the time from request to answer", "请求到应答时间的第 99 百分位";
    HeadlineName::Answered => [] "requests answered", "获得应答的请求";
    HeadlineName::LoginsPerSecond => [] "logins decided", "已判定的登录";
    HeadlineName::LoginP50 => []
        "median time to the acceptance of a login", "登录被接受所需的中位时间";
    HeadlineName::LoginP99 => []
        "99th percentile of the time to an acceptance", "登录被接受所需时间的第 99 百分位";
    HeadlineName::RefusalP99 => []
        "99th percentile of the time to a refusal", "登录被拒绝所需时间的第 99 百分位";
    HeadlineName::LoginsRight => [] "logins decided as they must be", "判定正确的登录";
    HeadlineName::MemoryDrift => [] "drift of the broker's memory", "Broker 内存的变化趋势";
    HeadlineName::LatencyDriftP50 => [] "drift of the median latency", "延迟中位数的变化趋势";
    HeadlineName::LatencyDriftP99 => [] "drift of the latency p99", "延迟 p99 的变化趋势";
    HeadlineName::SlowestGroupP50 => []
        "median latency of the slowest group", "最慢组的延迟中位数";
    HeadlineName::Delivered => [] "deliveries that came", "到达的投递";
}

impl Lang {
    /// The label of a headline; one of another version as the record has it.
    pub fn headline(self, headline: &Headline) -> String {
        match HeadlineName::parse(&headline.name) {
            None => headline.label.clone(),
            // Records of version 1 have the group in the label only.
            Some(HeadlineName::SlowestGroupP50) if headline.group.is_empty() => {
                headline.label.clone()
            }
            Some(name) if headline.group.is_empty() => self.headline_name(&name),
            Some(name) => format!("{}{}", self.headline_name(&name), self.named(&headline.group)),
        }
    }

    /// The value of a headline with its unit.
    pub fn headline_value(self, headline: &Headline) -> String {
        let Some(value) = headline.value else {
            return self.never_or_too_few().to_owned();
        };
        let sign = if value < 0.0 { "-" } else { "+" };
        match &headline.unit {
            HeadlineUnit::Microseconds => format::latency(value),
            HeadlineUnit::Milliseconds => format::latency(value * 1e3),
            HeadlineUnit::Percent => format::percent(value),
            HeadlineUnit::PerSecond => format!("{}/s", format::rate(value)),
            HeadlineUnit::Count => format::thousands(value.max(0.0).round() as u64),
            HeadlineUnit::BytesPerHour => {
                let bytes = format::bytes(value.abs().round() as u64);
                self.per_hour(format!("{sign}{bytes}"))
            }
            HeadlineUnit::MicrosecondsPerHour => {
                self.per_hour(format!("{sign}{}", format::latency(value.abs())))
            }
            HeadlineUnit::Other(unit) => format!("{value:.2} {unit}"),
        }
    }
}
