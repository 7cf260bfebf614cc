//! Why points of a campaign are not run, in words.

use tacho_record::{CoreRates, Obstacle};
use tacho_scenario::Shortage;

use super::{Lang, statements};

statements! {
    /// Why a point is not run.
    obstacle(lang, Obstacle);
    Obstacle::Lacks { shortage, rates: None } => [text = lang.shortage(shortage);]
        "{text}", "{text}";
    Obstacle::Lacks { shortage, rates: Some(rates) } =>
        [text = lang.shortage(shortage); rates = lang.core_rates(rates);]
        "{text} (rates per core: {rates})", "{text}（每核速率：{rates}）";
    Obstacle::BrokerGone => []
        "the broker stopped before this row", "Broker 在此行之前已停止";
    Obstacle::Message(message) => [] "{message}", "{message}";
}

impl Lang {
    /// What this machine lacks. English is that of error messages.
    fn shortage(self, shortage: &Shortage) -> String {
        if self == Self::En {
            return shortage.to_string();
        }
        match shortage {
            Shortage::Descriptors { needed, available } => format!(
                "需要 {needed} 个文件描述符，本系统每个进程最多允许 {available} 个（“ulimit -Hn”）"
            ),
            Shortage::Ports { needed, available } => format!(
                "需要 {needed} 个本地端口，本系统每个源地址有 {available} 个\
                 （net.ipv4.ip_local_port_range）"
            ),
            Shortage::Memory { needed, available } => {
                format!("需要 {} MiB 内存，可用 {} MiB", needed >> 20, available >> 20)
            }
            Shortage::Cores { needed, available, messages_per_s, per_core } => format!(
                "负载生成器约需要 {needed} 个核（每秒 {messages_per_s:.0} 条消息，按每核 {per_core} \
                 条估算），这里有 {available} 个"
            ),
            Shortage::Bridge { arguments } => {
                format!("需要相互桥接的 Broker：{}", arguments.join(" "))
            }
        }
    }

    /// The origin of rates per core.
    pub fn core_rates(self, rates: &CoreRates) -> String {
        match (self, rates) {
            (Self::En, CoreRates::Calibrated { measured_at }) => {
                format!("calibrated here on {measured_at}")
            }
            (Self::Zh, CoreRates::Calibrated { measured_at }) => {
                format!("在本机校准于 {measured_at}")
            }
            (Self::En, CoreRates::Typical) => {
                "those of a typical machine; 'tacho calibrate' measures this one".to_owned()
            }
            (Self::Zh, CoreRates::Typical) => {
                "取自典型机器；“tacho calibrate” 可测量本机".to_owned()
            }
        }
    }

    /// Why a point was skipped; the `sentence` of an old record as it is.
    pub(crate) fn skip_reason(self, sentence: &str, obstacle: Option<&Obstacle>) -> String {
        obstacle.map_or_else(|| sentence.to_owned(), |obstacle| self.obstacle(obstacle))
    }
}
