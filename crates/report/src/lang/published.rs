//! Published reports: what their figures were measured on.

use tacho_scenario::published::{Publication, Source};

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
}
