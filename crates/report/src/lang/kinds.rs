//! Kinds of findings and reasons in a few words, and the figures that compare them.

use tacho_record::{Cause, Disturbance, Observation};
use tacho_scenario::format;

use super::{Lang, statements};

statements! {
    /// The kind of a finding, in a few words.
    observed(_lang, Observation);
    Observation::NetworkBusy { .. } => [] "network at its capacity", "网络达到其能力";
    Observation::NetworkLimitReached { .. } => [] "stated limit of the network", "达到所述的网络上限";
    Observation::PacketLimitReached { .. } => [] "stated limit of packets", "达到所述的数据包上限";
    Observation::NetworkNarrow { .. } => [] "narrow link on the path", "途中有较窄的链路";
    Observation::NetworkDrops { .. } => [] "packets dropped", "丢弃数据包";
    Observation::Retransmits { .. } => [] "TCP retransmissions", "TCP 重传";
    Observation::ListenOverflow { .. } => [] "listen queue overflow", "监听队列溢出";
    Observation::RoundTrip { .. } => []
        "latency mostly of the network", "延迟大部分来自网络";
    Observation::DelayedAcknowledgements { .. } => []
        "latencies at 40 ms (delayed acknowledgements)", "延迟集中在 40 毫秒（延迟确认）";
    Observation::RetransmissionTimeouts { .. } => []
        "latencies at 200 ms (retransmission timeouts)", "延迟集中在 200 毫秒（重传超时）";
    Observation::ColdStart { .. } => [] "cold start", "冷启动";
    Observation::ConnectionRetries { .. } => [] "connections retried by TCP", "TCP 重试建立连接";
    Observation::ClockError { .. } => [] "uncertain clock", "时钟不确定";
    Observation::Steal { .. } => [] "steal", "虚拟化层占用（steal）";
    Observation::OtherPrograms { .. } => [] "other programs", "其他程序";
    Observation::ForeignLoad { .. } => [] "foreign load on the broker's cores", "Broker 所用核上的其他负载";
    Observation::UnfairGroups { .. } => [] "uneven shared subscriptions", "共享订阅分配不均";
    Observation::MonitorGap { .. } => [] "gaps of monitors", "监控缺失";
    Observation::MonitorErrors { .. } => [] "errors of monitors", "监控错误";
    Observation::MonitorDropped { .. } => [] "rows of monitors dropped", "监控数据被丢弃";
    Observation::OutputLost { .. } => [] "losses of outputs", "输出丢失数据";
    Observation::Disturbed { .. } => [] "disturbed machine", "机器受到干扰";
    Observation::Repeated { .. } => [] "measured again", "重新测量";
    Observation::LadderStopped { .. } => [] "end of a ladder", "阶梯结束";
    Observation::PacketTooLarge { .. } => [] "packets larger than accepted", "数据包超过可接受大小";
    Observation::ReceiveBudget { .. } => []
        "incomplete packets beyond the budget", "未完整的数据包超出预算";
    Observation::LoginsMisjudged { .. } => [] "logins decided wrongly", "登录判定有误";
    Observation::LoginsBanned { .. } => [] "banned generator", "负载生成器被封禁";
    Observation::CpuNotObserved => [] "CPU of the broker not observed", "未观测 Broker 的 CPU";
}

impl Lang {
    /// The figure that makes one finding of a kind worse than another, with its words.
    pub(crate) fn figure_observed(self, observation: &Observation) -> Option<(f64, String)> {
        let percent = |value: f64| Some((value, format::percent(value)));
        let latency = |us: f64| Some((us, format::latency(us)));
        let rate = |value: f64| Some((value, format!("{}/s", format::rate(value))));
        match observation {
            Observation::NetworkBusy { percent: value, .. }
            | Observation::NetworkLimitReached { percent: value, .. }
            | Observation::PacketLimitReached { percent: value, .. }
            | Observation::DelayedAcknowledgements { percent: value, .. }
            | Observation::RetransmissionTimeouts { percent: value }
            | Observation::Steal { percent: value }
            | Observation::OtherPrograms { percent: value }
            | Observation::ForeignLoad { busy_percent: value, .. } => percent(*value),
            Observation::Disturbed { disturbance, .. } => percent(disturbance.affected_percent),
            Observation::NetworkNarrow { retransmits_per_s: value, .. }
            | Observation::NetworkDrops { packets_per_s: value, .. }
            | Observation::Retransmits { segments_per_s: value, .. } => rate(*value),
            Observation::RoundTrip { round_trip_us: us, .. }
            | Observation::ColdStart { first_us: us, .. }
            | Observation::ConnectionRetries { took_us: us } => latency(*us as f64),
            Observation::ClockError { error_us, .. } => latency(*error_us),
            Observation::UnfairGroups { gini, .. } => Some((*gini, format!("Gini {gini:.2}"))),
            Observation::MonitorGap { covered_s, window_s, .. } => {
                let missing = window_s - covered_s;
                Some((missing, format!("{missing:.0} s")))
            }
            Observation::MonitorErrors { errors: count, .. }
            | Observation::MonitorDropped { rows: count, .. }
            | Observation::OutputLost { lost: count, .. } => {
                Some((*count as f64, format::thousands(*count)))
            }
            Observation::PacketTooLarge { announced_bytes: bytes, .. }
            | Observation::ReceiveBudget { announced_bytes: bytes, .. } => {
                Some((*bytes as f64, format::bytes(*bytes)))
            }
            Observation::LoginsMisjudged { accepted, refused, .. } => {
                let count = accepted + refused;
                Some((count as f64, format::thousands(count)))
            }
            Observation::LoginsBanned { count } => Some((*count as f64, format::thousands(*count))),
            Observation::ListenOverflow { .. }
            | Observation::Repeated { .. }
            | Observation::LadderStopped { .. }
            | Observation::CpuNotObserved => None,
        }
    }

    /// The kinds of a disturbance, each with its worst second.
    pub(crate) fn kinds_of_disturbance(
        self,
        found: &Disturbance,
    ) -> impl Iterator<Item = (&'static str, (f64, String))> {
        let kinds = [
            (self.steal(), found.steal),
            (self.others_on_the_brokers_cores(), found.others),
            (self.generator_waited(), found.waiting),
        ];
        let seen = kinds.into_iter().filter(|(_, kind)| kind.seconds > 0);
        seen.map(|(name, kind)| (name, (kind.percent_max, format::percent(kind.percent_max))))
    }

    /// The kind of a reason that steps have in common, with the figure that compares them; `None`
    /// where the sentence is told as it is.
    pub(crate) fn kind_of_cause(self, cause: &Cause) -> Option<(String, Option<(f64, String)>)> {
        let counted = |count: u64| Some((count as f64, format::thousands(count)));
        Some(match cause {
            Cause::GeneratorCheck { check, value, .. } => {
                let figure = super::causes::of_check(*check, *value);
                (self.check_name(*check).to_owned(), Some((*value, figure)))
            }
            Cause::NotCarried { direction, achieved_per_s, offered_per_s } => {
                let percent = achieved_per_s * 100.0 / offered_per_s;
                let kind = self.not_carried(self.direction(*direction));
                (kind, Some((-percent, format::percent(percent))))
            }
            Cause::QosBroken { lost, duplicated, out_of_order, damaged } => {
                let all = lost + duplicated + out_of_order + damaged;
                (self.qos_contract_broken().to_owned(), counted(all))
            }
            Cause::AcknowledgedLost { deliveries } => {
                (self.deliveries_acknowledged_but_lost().to_owned(), counted(*deliveries))
            }
            Cause::LoginsUndecided { decided, due, .. } => {
                (self.logins_without_decision().to_owned(), counted(due.saturating_sub(*decided)))
            }
            Cause::RateChanged { .. } => (self.rate_changed().to_owned(), None),
            Cause::LatencyChanged { last_us, .. } => {
                let us = *last_us as f64;
                (self.latency_changed().to_owned(), Some((us, format::latency(us))))
            }
            Cause::ClientsFailed { count, .. } => {
                (self.clients_failed().to_owned(), counted(*count))
            }
            Cause::ThresholdFailed { condition, .. } => (self.threshold_of(condition), None),
            Cause::Observed { observation } => {
                (self.observed(observation), self.figure_observed(observation))
            }
            _ => return None,
        })
    }
}
