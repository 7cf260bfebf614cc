//! Names of the figures of comparisons.

use tacho_record::{FigureName, FigureRow};

use super::{Lang, statements};

statements! {
    /// A figure of a comparison.
    figure_name(lang, FigureName);
    FigureName::Tps => [] "messages in + out", "流入 + 流出消息";
    FigureName::E2eP50 => [] "latency, median", "延迟中位数";
    FigureName::E2eP99 => [] "latency, 99th percentile", "延迟的第 99 百分位";
    FigureName::E2eP999 => [] "latency, 99.9th percentile", "延迟的第 99.9 百分位";
    FigureName::E2eMax => [] "latency, greatest", "最大延迟";
    FigureName::AckP99 => []
        "time to acknowledgement, 99th percentile", "确认时间的第 99 百分位";
    FigureName::BrokerCpuPerMessage => []
        "broker CPU per message in or out", "每条消息（流入或流出）的 Broker CPU";
    FigureName::Cpu => [] "CPU of the broker's host or cores", "Broker 主机或所用核的 CPU";
    FigureName::BrokerRss => [] "memory of the broker (RSS)", "Broker 内存（RSS）";
    FigureName::ConnectRate => [] "connections per second", "每秒建立的连接";
    FigureName::TimeToConnected => [] "time until all are connected", "全部连接完成的时间";
    FigureName::TimeToReconnected => []
        "time until 99 % are connected again", "99 % 重新连接的时间";
    FigureName::ConnectP50 => [] "time to CONNACK, median", "收到 CONNACK 的中位时间";
    FigureName::ConnectP99 => []
        "time to CONNACK, 99th percentile", "收到 CONNACK 时间的第 99 百分位";
    FigureName::Loss => [] "deliveries lost, of those due", "丢失的投递占应投递的比例";
    FigureName::AcknowledgedLost => [] "deliveries acknowledged, but lost", "已确认却丢失的投递";
}

impl Lang {
    /// A figure by its name in the record; one of another version by that name.
    pub(crate) fn figure_named(self, name: &str) -> String {
        let known = FigureName::parse(name);
        known.map_or_else(|| name.to_owned(), |figure| self.figure_name(&figure))
    }

    /// The figure of a row; one of another version by its label.
    pub(crate) fn figure_of(self, row: &FigureRow) -> String {
        let known = FigureName::parse(&row.name);
        known.map_or_else(|| row.label.clone(), |figure| self.figure_name(&figure))
    }
}
