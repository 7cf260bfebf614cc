//! Why points of a campaign are not run, in words.

use tacho_record::{CoreRates, Obstacle, Remedy};
use tacho_scenario::Shortage;
use tacho_scenario::format::{rate, thousands};

use super::{Lang, statements};

statements! {
    /// Why a point is not run.
    obstacle(lang, Obstacle);
    Obstacle::Lacks { shortages, rates, remedy } => [
        lacks = lang.shortages(shortages);
        basis = lang.basis_of_cores(rates.as_ref());
        fitting = lang.remedy(remedy.as_ref());
        anyway = lang.anyway(rates.is_some());
    ]
        "{lacks}{basis}{fitting}{anyway}", "{lacks}{basis}{fitting}{anyway}";
    Obstacle::BrokerGone => []
        "the broker stopped before this row", "Broker 在此行之前已停止";
    Obstacle::Message(message) => [] "{message}", "{message}";
}

impl Lang {
    /// All that this machine lacks.
    fn shortages(self, shortages: &[Shortage]) -> String {
        let each: Vec<String> = shortages.iter().map(|one| self.shortage(one)).collect();
        each.join(if self == Self::En { "; " } else { "；" })
    }

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
            Shortage::Cores { needed, available, in_per_s, out_per_s, per_core } => {
                let (inward, outward) = (rate(*in_per_s), rate(*out_per_s));
                let per_core = thousands(*per_core);
                format!(
                    "负载生成器约需要 {needed} 个核（每秒流入 {inward} 条、流出 {outward} 条消息，\
                     每核 {per_core} 条），这里有 {available} 个"
                )
            }
            Shortage::Bridge { arguments } => {
                format!("需要相互桥接的 Broker：{}", arguments.join(" "))
            }
        }
    }

    fn basis_of_cores(self, rates: Option<&CoreRates>) -> String {
        let Some(rates) = rates else { return String::new() };
        let rates = self.core_rates(rates);
        match self {
            Self::En => format!(" (rate per core: {rates})"),
            Self::Zh => format!("（每核速率：{rates}）"),
        }
    }

    /// The arguments with which it fits.
    fn remedy(self, remedy: Option<&Remedy>) -> String {
        let Some(Remedy { scale_clients, scale }) = remedy else { return String::new() };
        let clients = scale_clients.map(|factor| format!("--scale-clients {factor}"));
        let rates = scale.map(|factor| format!("--scale {factor}"));
        let arguments: Vec<String> = clients.into_iter().chain(rates).collect();
        match self {
            Self::En => format!("; the largest that fits: {}", arguments.join(" ")),
            Self::Zh => format!("；可行的最大值：{}", arguments.join(" ")),
        }
    }

    /// The argument that runs a load beyond the generator.
    fn anyway(self, lacks_cores: bool) -> &'static str {
        match (lacks_cores, self) {
            (false, _) => "",
            (true, Self::En) => "; --beyond-calibration runs it all the same",
            (true, Self::Zh) => "；--beyond-calibration 仍然运行",
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
                "estimated; 'tacho calibrate' measures this machine".to_owned()
            }
            (Self::Zh, CoreRates::Typical) => "估计值；“tacho calibrate” 可测量本机".to_owned(),
        }
    }

    /// Why a point was skipped; the `sentence` of an old record as it is.
    pub(crate) fn skip_reason(self, sentence: &str, obstacle: Option<&Obstacle>) -> String {
        obstacle.map_or_else(|| sentence.to_owned(), |obstacle| self.obstacle(obstacle))
    }
}
