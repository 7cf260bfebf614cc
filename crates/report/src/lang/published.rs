//! Published reports: what their figures were measured on, and for how long.

use tacho_scenario::format;
use tacho_scenario::published::{BIFROMQ, Publication, Source};
use tacho_scenario::suite::Misprint;

use super::Lang;

impl Lang {
    /// A published report with its hardware and its load.
    pub(crate) fn published(self, source: &Source) -> String {
        let (hardware, load) = match (self, source.publication) {
            (Self::En, _) => (source.hardware, source.load),
            (Self::Zh, Publication::EmqxGuide) => (
                "EMQX 5.1.6，单节点，4 vCPU Xeon Platinum 8378A 3.0 GHz，8 GiB，CentOS 7.9，\
                 默认配置",
                "XMeter，经网络的 10 台压测机（fan-in 为 20 台），每步骤 5 分钟",
            ),
            (Self::Zh, Publication::BifromqReport) => {
                ("BifroMQ 单机版，32 核，128 GB，JVM 堆 40 GB", "另一台 32 核的机器")
            }
        };
        self.source(source.name, hardware, load)
    }

    /// How long something was held.
    pub(crate) fn span(self, seconds: f64) -> String {
        let span = format::span(seconds);
        match self {
            Self::En => span,
            Self::Zh => span.replace(" min", " 分钟").replace(" s", " 秒"),
        }
    }

    /// How long the rows of a published report were held.
    pub fn held_by(self, source: &Source) -> String {
        let held = source.hold.map(|hold| self.span(hold.0.as_secs_f64()));
        held.unwrap_or_else(|| self.not_stated().to_owned())
    }

    /// A row of the BifroMQ report under the name that it prints.
    pub fn misprint(self, misprint: &Misprint) -> String {
        let Misprint { printed, meant } = misprint;
        let row = misprint.row();
        let each = row.map_or(0.0, |row| row.per_publisher_per_s);
        let all = format::rate(row.map_or(0.0, |row| row.in_per_s));
        match self {
            Self::En => format!(
                "{} prints {meant} as {printed}; its columns say {each} messages/s of each \
                 publisher and {all} in all",
                BIFROMQ.name
            ),
            Self::Zh => format!(
                "{} 将 {meant} 误印为 {printed}；其表格各列为每个发布者每秒 {each} 条、总计每秒 \
                 {all} 条消息",
                BIFROMQ.name
            ),
        }
    }
}
