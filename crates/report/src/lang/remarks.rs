//! Notes of a run: conditions that limit comparisons of its figures.

use tacho_record::{NoOwnCore, Property, Remark};
use tacho_scenario::format::thousands;

use super::{Lang, statements};

statements! {
    /// A note of a run.
    remark(lang, Remark);
    Remark::OneMachine => []
        "One-machine run: generator and broker share this machine, and on loopback the sender's core runs the receiver's TCP. Do not compare with runs over a network.",
        "单机运行：负载生成器与 Broker 共用这台机器，且在回环接口上由发送方的核执行接收方的 TCP 处理。请勿与跨网络的运行相比较。";
    Remark::ClosedModel => []
        "Closed model: publishers wait for the broker, so latency is not that of a fixed load.",
        "闭环模型：发布者会等待 Broker，因此延迟并非固定负载下的延迟。";
    Remark::CertificateNotVerified { broker } => []
        "The certificate of {broker} was not verified (insecure): the identity of the measured broker is unknown.",
        "未验证 {broker} 的证书（insecure）：无法确认所测对象的身份。";
    Remark::BrokerNotObserved => []
        "CPU and memory of the broker process were not observed.", "未观测 Broker 进程的 CPU 与内存。";
    Remark::RoundTripsMissing { why } => []
        "Round trips to a broker were not measured throughout: {why}.",
        "到 Broker 的往返时间并未全程测量：{why}。";
    Remark::BrokerKilled => []
        "The run killed the broker: messages due while it was down were never sent, and rates and latencies do not describe a broker without a crash.",
        "运行期间 Broker 被强制终止：其离线期间应发送的消息从未发送，速率与延迟也不代表正常运行的 Broker。";
    Remark::Eventful => []
        "Timed actions affected clients, brokers or the machine during the measured phase: the groups without actions decide whether the load was carried.",
        "测量期间客户端、Broker 或机器发生了计划中的事件：是否承载了负载由未受影响的组判断。";
    Remark::Interrupted { count, first } => []
        "Clients lost a connection, or failed to connect, and retried {count} times; the first: {first}.",
        "客户端断开或未能建立连接后重试共 {count} 次，第一次：{first}。";
    Remark::GeneratorNeverSlept { threads } => []
        "The generator's threads ({threads}) never slept (--timing spin): each kept a core fully busy, in part by spinning, which does not count as the generator's work.",
        "{threads} 个负载生成器线程从不睡眠（--timing spin）：每个线程都占满一个核，其中一部分是自旋等待，不计为负载生成器的工作。";
    Remark::GeneratorSpun { threads, budget_percent } => []
        "The generator's threads ({threads}) spun while they waited, each for at most {budget_percent} % of a core of its own. Spinning keeps sends on time and spares the broker the cost of waking the generator; it does not count as the generator's work.",
        "{threads} 个负载生成器线程在等待时自旋，每个线程最多占用自有核的 {budget_percent} %。自旋使消息准时发出，并免去 Broker 唤醒负载生成器的开销；它不计为负载生成器的工作。";
    Remark::GeneratorSlept { why: None } => []
        "The generator's threads slept between messages (--timing sleep): latencies include their wake-ups, and on one machine the broker's CPU does too.",
        "负载生成器线程在消息之间睡眠（--timing sleep）：延迟包含其唤醒时间；单机运行时，Broker 的 CPU 也包含唤醒开销。";
    Remark::GeneratorSlept { why: Some(why) } => [why = lang.no_own_core(*why);]
        "The generator's threads slept between messages, since {why}: latencies include their wake-ups, and on one machine the broker's CPU does too.",
        "负载生成器线程在消息之间睡眠，因为{why}：延迟包含其唤醒时间；单机运行时，Broker 的 CPU 也包含唤醒开销。";
    Remark::GeneratorBatched => []
        "The generator's threads served messages in batches (--timing batch): latencies include up to half a millisecond of waiting for the next batch.",
        "负载生成器线程按批处理消息（--timing batch）：延迟包含最多半毫秒的批次等待时间。";
    Remark::GeneratorRested => []
        "A generator thread was so busy that it served messages in batches of 50 us or more, which adds to latencies: give it more cores (--threads, --generator-cores) or less load.",
        "某个负载生成器线程的工作占用其核过多，因此按 50 微秒或更长的批次处理消息，延迟随之增加；增加核（--threads、--generator-cores）或降低负载可以避免。";
    Remark::Agents { count, clock_error_us: 0 } => []
        "Agents made the load ({count}), on one machine: they share its clock, and latencies between them are exact.",
        "负载由同一台机器上的 {count} 个代理产生：它们共用一个时钟，彼此之间的延迟是精确的。";
    Remark::Agents { count, clock_error_us } => []
        "Agents made the load ({count}) on several machines: latencies between two of them may be off by {clock_error_us} us in either direction, as their clocks are known no better; figures below that say nothing.",
        "负载由多台机器上的 {count} 个代理产生：由于时钟精度所限，两个代理之间的延迟可能有 ±{clock_error_us} 微秒的误差，低于该值的数据没有意义。";
    Remark::TakenUp { at_s } => [at_s = format!("{at_s:.0}");]
        "Another controller took the run up {at_s} s after its start, its own being gone. Counts and latencies are those of the whole run; what hosts and agents used before is not known.",
        "原控制器已消失，另一个控制器在运行开始 {at_s} 秒后接管了本次运行。计数与延迟属于整个运行；此前主机与代理的资源使用情况未知。";
    Remark::SamplesThinned { one_in, of } => [of = thousands(*of);]
        "results.jtl is bounded: it has a row for one in {one_in} samples, evenly over time and latencies, of {of} in all. JMeter's counts and rates from it are too low by that factor; all other figures of the run are of all samples.",
        "results.jtl 有行数上限：全部 {of} 个样本中每 {one_in} 个保留一行，在时间和延迟上均匀分布。JMeter 由此得到的数量和速率要乘以该倍数；本次运行的其余数据均基于全部样本。";
    Remark::RepeatsDoNotCount { out, of, side, cause: None } => []
        "{out} of {of} repeats of {side} do not count", "{side} 的 {of} 次重复中有 {out} 次不计入结果";
    Remark::RepeatsDoNotCount { out, of, side, cause: Some(cause) } => [cause = lang.cause(cause);]
        "{out} of {of} repeats of {side} do not count: {cause}",
        "{side} 的 {of} 次重复中有 {out} 次不计入结果：{cause}";
    Remark::MadeUp { count } => []
        "{count} additional repeats replaced repeats that do not count.",
        "为替代不计入结果的重复，另外进行了 {count} 次。";
    Remark::NoRepeatCounts => []
        "A side has no repeat that counts: no comparison is possible.",
        "有一方没有计入结果的重复：无从比较。";
    Remark::FewRepeats { fewest, least } => []
        "There are {fewest} repeats per side that count; a confidence interval needs at least {least}. The differences are shown, but cannot be distinguished from noise.",
        "每一方只有 {fewest} 次计入结果的重复，置信区间至少需要 {least} 次。下面列出差异，但都无法与噪声区分。";
    Remark::ApartFromItself { side, figures } =>
        [figures = lang.figures_listed(figures);]
        "A/A: the additional repeats of {side} differ from its others in {figures}; one in twenty figures may differ by chance, more show that the machine was not steady.",
        "A/A：{side} 的附加重复与其余重复在以下指标上可以区分：{figures}。二十个指标中可能偶然出现一个，更多则说明机器不稳定。";
    Remark::NotInTurns => []
        "The runs did not alternate: the differences include any other change between them.",
        "这些运行并非轮流进行：其间的其他变化也包含在差异之中。";
    Remark::ScenariosDiffer { names, more } =>
        [names = lang.listed(names); more = lang.and_more(*more);]
        "The scenarios differ in {names}{more}.", "场景在以下方面不同：{names}{more}。";
    Remark::EnvironmentsDiffer { names, more } =>
        [names = lang.listed(names); more = lang.and_more(*more);]
        "The environments differ in {names}{more}.", "环境在以下方面不同：{names}{more}。";
    Remark::Message(message) => [] "{message}", "{message}";
}

impl Lang {
    /// Why generator threads have no cores of their own, and what to do about it.
    fn no_own_core(self, why: NoOwnCore) -> &'static str {
        let (english, chinese) = match why {
            NoOwnCore::NotPinned => (
                "they are not pinned to cores (--generator-cores)",
                "它们未绑定到核（--generator-cores）",
            ),
            NoOwnCore::FewerCoresThanThreads => (
                "there are more of them than generator cores (--threads, --generator-cores)",
                "线程数多于负载生成器的核数（--threads、--generator-cores）",
            ),
            NoOwnCore::BrokerUnknown => (
                "the cores of a broker on this machine are not known (--broker-pid)",
                "本机上某个 Broker 所用的核未知（--broker-pid）",
            ),
            NoOwnCore::SharedWithBroker => (
                "a broker may run on their cores (--generator-cores, --broker-cores)",
                "某个 Broker 可能运行在它们的核上（--generator-cores、--broker-cores）",
            ),
            NoOwnCore::SharedHardware => (
                "a broker may run on the other hardware thread of their cores (--generator-cores)",
                "某个 Broker 可能运行在同一物理核的另一个硬件线程上（--generator-cores）",
            ),
            NoOwnCore::CpuQuota => (
                "the control group limits CPU time to less than the cores in use",
                "控制组限制的 CPU 时间少于所用的核",
            ),
        };
        match self {
            Self::En => english,
            Self::Zh => chinese,
        }
    }

    /// Figures by their names, one after the other.
    fn figures_listed(self, names: &[String]) -> String {
        let names: Vec<String> = names.iter().map(|name| self.figure_named(name)).collect();
        names.join(self.between_reasons())
    }

    /// Properties, one after the other.
    fn listed(self, properties: &[Property]) -> String {
        let names: Vec<String> = properties.iter().map(|one| self.property(one)).collect();
        names.join(", ")
    }

    /// How many are not named.
    fn and_more(self, more: u64) -> String {
        match (self, more) {
            (_, 0) => String::new(),
            (Self::En, more) => format!(" and {more} more"),
            (Self::Zh, more) => format!("，以及另外 {more} 项"),
        }
    }

    /// The notes of a record; the `sentences` of an old one as they are.
    pub(crate) fn notes(self, sentences: &[String], remarks: &[Remark]) -> Vec<String> {
        match remarks {
            [] => sentences.to_vec(),
            remarks => remarks.iter().map(|remark| self.remark(remark)).collect(),
        }
    }
}
