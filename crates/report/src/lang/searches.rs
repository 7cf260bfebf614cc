//! How capacity searches went, and how recommended workloads are found.

use tacho_record::{Capacity, Estimator, Purpose, Recommendation, SearchEnd, WhoseCpu};

use super::Lang;

impl Lang {
    /// What a trial is for.
    pub(crate) const fn trial_purpose(self, purpose: Purpose) -> &'static str {
        match (self, purpose) {
            (Self::En, purpose) => purpose.name(),
            (Self::Zh, Purpose::Bracket) => "确定范围",
            (Self::Zh, Purpose::Bisect) => "二分",
            (Self::Zh, Purpose::Verify) => "验证",
            (Self::Zh, Purpose::Confirm) => "确认",
            (Self::Zh, Purpose::Profile) => "延迟记录",
        }
    }

    /// Why a search has ended.
    pub(crate) const fn search_end(self, end: SearchEnd) -> &'static str {
        match (self, end) {
            (Self::En, SearchEnd::CutShort) => "the search was cut short",
            (Self::En, SearchEnd::Found) => "the bounds are as near as asked",
            (Self::En, SearchEnd::Ceiling) => "the highest value to try passes",
            (Self::En, SearchEnd::NothingPasses) => "nothing passes, down to the lowest value",
            (Self::En, SearchEnd::Disturbed) => "the machine was disturbed in too many trials",
            (Self::En, SearchEnd::GaveUp) => "outcomes contradict each other, the search gave up",
            (Self::Zh, SearchEnd::CutShort) => "搜索被提前结束",
            (Self::Zh, SearchEnd::Found) => "上下界已达到要求的精度",
            (Self::Zh, SearchEnd::Ceiling) => "允许尝试的最大值也通过了",
            (Self::Zh, SearchEnd::NothingPasses) => "直到最小值都没有通过",
            (Self::Zh, SearchEnd::Disturbed) => "机器在过多的试验中受到干扰",
            (Self::Zh, SearchEnd::GaveUp) => "试验结果相互矛盾，搜索已放弃",
        }
    }

    /// Why a search has ended; the sentence of an old record as it is.
    pub(crate) fn ending(self, capacity: &Capacity) -> String {
        let end = capacity.end.map(|end| self.search_end(end).to_owned());
        end.unwrap_or_else(|| capacity.ending.clone())
    }

    /// What a CPU figure is computed from.
    pub(crate) const fn whose_cpu_explained(self, whose: WhoseCpu) -> &'static str {
        match (self, whose) {
            (Self::En, WhoseCpu::Host) => "1 - idle - steal of the broker's host",
            (Self::En, WhoseCpu::BrokerCores) => "1 - idle - steal of the broker's cores",
            (Self::En, WhoseCpu::BrokerProcess) => {
                "the broker's processes, in percent of the cores they may use"
            }
            (Self::Zh, WhoseCpu::Host) => "Broker 主机的 1 - 空闲 - 被占用",
            (Self::Zh, WhoseCpu::BrokerCores) => "Broker 所用核的 1 - 空闲 - 被占用",
            (Self::Zh, WhoseCpu::BrokerProcess) => "Broker 进程，以其可用核的百分比计",
        }
    }

    /// How a recommended workload is estimated.
    pub(crate) fn estimator(self, estimator: &Estimator) -> String {
        let Estimator::Interpolation { whose_cpu } = estimator;
        let cpu = self.whose_cpu_explained(*whose_cpu);
        match self {
            Self::En => format!(
                "linear interpolation of mean CPU ({cpu}) over messages in + out per second \
                 between the neighbouring steps, falling CPU levelled; interval: 95 %, block \
                 bootstrap over seconds"
            ),
            Self::Zh => format!(
                "在相邻步骤之间，按流入 + 流出消息/秒对平均 CPU（{cpu}）做线性插值，下降的 CPU \
                 取平；置信区间：95 %，以秒为块的自助法"
            ),
        }
    }

    /// How a recommended workload was found; the sentence of an old record as it is.
    pub(crate) fn found_by(self, one: &Recommendation) -> String {
        let words = one.estimator.as_ref().map(|estimator| self.estimator(estimator));
        words.unwrap_or_else(|| one.method.clone())
    }
}
