//! Causes of verdicts, in words.

use tacho_record::{Cause, Check, CheckName, Direction};
use tacho_scenario::format;
use tacho_scenario::threshold::Threshold;

use super::{Lang, statements};

statements! {
    /// The reason of a verdict.
    cause(lang, Cause);
    Cause::QosBroken { lost, duplicated, out_of_order, damaged } => []
        "the QoS contract was broken (deliveries, warm-up included): {lost} lost, {duplicated} duplicated, {out_of_order} out of order, {damaged} damaged",
        "违反了 QoS 约定（投递次数，含预热）：丢失 {lost}，重复 {duplicated}，乱序 {out_of_order}，损坏 {damaged}";
    Cause::AcknowledgedLost { deliveries } => []
        "{deliveries} deliveries of messages that the broker had acknowledged never came (warm-up included)",
        "Broker 已确认的消息中，有 {deliveries} 次投递从未到达（含预热）";
    Cause::AcknowledgedPending { deliveries } => []
        "{deliveries} deliveries of acknowledged messages had not come when the drain ended",
        "排空结束时，已确认的消息仍有 {deliveries} 次投递未到达";
    Cause::Disturbed { disturbance } => [kinds = lang.disturbance_kinds(disturbance);]
        "the machine was disturbed: {kinds}",
        "机器受到干扰：{kinds}";
    Cause::GeneratorCheck { check, value, limit, agent: Some(agent) } => [
        name = lang.check_name(*check);
        value = of_check(*check, *value);
        limit = of_check(*check, *limit);
    ]
        "agent {agent} may be the bottleneck: {name} is {value}, it must stay below {limit}",
        "代理 {agent} 可能是瓶颈：{name}为 {value}，必须低于 {limit}";
    Cause::GeneratorCheck { check, value, limit, agent: None } => [
        name = lang.check_name(*check);
        value = of_check(*check, *value);
        limit = of_check(*check, *limit);
    ]
        "the generator may be the bottleneck: {name} is {value}, it must stay below {limit}",
        "负载生成器可能是瓶颈：{name}为 {value}，必须低于 {limit}";
    Cause::NotCarried { direction, achieved_per_s, offered_per_s } => [
        way = lang.direction(*direction); percent = achieved_per_s * 100.0 / offered_per_s;
    ]
        "the offered load was not carried: {achieved_per_s:.0} of {offered_per_s:.0} messages per second {way} ({percent:.2} %)",
        "未能承载施加的负载：{way}方向每秒 {offered_per_s:.0} 条消息中只完成 {achieved_per_s:.0} 条（{percent:.2} %）";
    Cause::LoginsUndecided { decided, due, first: None } => []
        "{decided} of {due} logins that were due had a decision in time",
        "{due} 次应登录中只有 {decided} 次按时得到判定";
    Cause::LoginsUndecided { decided, due, first: Some(first) } => []
        "{decided} of {due} logins that were due had a decision in time; the first without one: {first}",
        "{due} 次应登录中只有 {decided} 次按时得到判定；第一次未判定：{first}";
    Cause::BystanderSent { group, sent, offered } => []
        "group {group}, which no action affected, sent {sent} of {offered} messages",
        "未受影响的 {group} 组应发送 {offered} 条消息，只发送了 {sent} 条";
    Cause::BystanderReceived { group, received, expected } => []
        "group {group}, which no action affected, received {received} of {expected} messages",
        "未受影响的 {group} 组应收到 {expected} 条消息，只收到了 {received} 条";
    Cause::RetainedMissing { count } => []
        "{count} retained messages that were due to new subscribers did not come",
        "新订阅者应收到的保留消息中有 {count} 条未到达";
    Cause::WillsMissing { count } => []
        "{count} wills that were due did not come", "应到达的遗嘱中有 {count} 条未到达";
    Cause::NotTakenOver { count } => []
        "{count} first connections were still up after a second one with the same client id",
        "同一客户端标识再次连接后，仍有 {count} 个原连接未被结束";
    Cause::RateChanged { first_per_s, last_per_s } => []
        "the rate still changed: {first_per_s:.0} messages per second out in the first third of the window, {last_per_s:.0} in the last",
        "速率仍在变化：窗口前三分之一每秒流出 {first_per_s:.0} 条消息，后三分之一为 {last_per_s:.0} 条";
    Cause::LatencyChanged { first_us, last_us } => [
        first = format::latency(*first_us as f64); last = format::latency(*last_us as f64);
    ]
        "the latency still changed: median {first} in the first third of the window, {last} in the last",
        "延迟仍在变化：窗口前三分之一的中位数为 {first}，后三分之一为 {last}";
    Cause::ThresholdFailed { condition, value } => [value = lang.measured(condition, *value);]
        "the threshold {condition} does not hold: {value}", "阈值 {condition} 未满足：{value}";
    Cause::ObjectiveMissed { objective, value: None } => [metric = metric_of(objective);]
        "{metric} could not be measured", "{metric} 无法测得";
    Cause::ObjectiveMissed { objective, value } => [value = lang.measured(objective, *value);]
        "{objective} does not hold: {value}", "{objective} 未满足：{value}";
    Cause::QosBreaches { count } => [] "{count} breaches of the QoS contract", "违反 QoS 约定 {count} 次";
    Cause::ClientsFailed { count, first } => []
        "{count} failures of clients, the first: {first}", "客户端失败 {count} 次，第一次：{first}";
    Cause::Observed { observation } => [text = lang.observation(observation);] "{text}", "{text}";
    Cause::RunStopped => [] "the run was stopped early", "运行被提前停止";
    Cause::OutputFailed { output, why } => []
        "the output {output} failed, which ends the run (on-failure=end): {why}",
        "输出 {output} 失败，按 on-failure=end 结束运行：{why}";
    Cause::CampaignStopped => [] "it was stopped early", "被提前停止";
    Cause::EndedBeforeMeasuring => []
        "the run ended before anything was measured", "运行在测得任何数据之前就结束了";
    Cause::NothingMeasured => [] "nothing was measured", "没有测得数据";
    Cause::NoPointRuns => []
        "nothing was measured: this machine can run none of the points",
        "没有测得数据：这台机器无法运行其中任何一个测点";
    Cause::Unreachable { why } => [] "no client could connect: {why}", "没有客户端能够连接：{why}";
    Cause::AllLost { why } => []
        "all clients lost their connection: {why}", "所有客户端都断开了连接：{why}";
    Cause::ProbeFailed { missing, expected, waited_ms, first_topic } => []
        "{missing} of {expected} deliveries of the readiness probe did not arrive within {waited_ms} ms, the first from {first_topic}",
        "就绪探测的 {expected} 次投递中有 {missing} 次未在 {waited_ms} 毫秒内到达，第一个来自 {first_topic}";
    Cause::ThreadFailed { why } => []
        "a generator thread failed: {why}", "负载生成器的一个线程失败：{why}";
    Cause::AgentLost { agent, threads, of, why } => []
        "{agent}, which ran {threads} of {of} generator threads, was lost: {why}",
        "运行 {of} 个负载生成器线程中 {threads} 个的 {agent} 已失联：{why}";
    Cause::LoadMissing { agent, at_s, percent, why } => []
        "the run is degraded: agent {agent} was lost after {at_s:.1} s, and with it {percent:.1} % of the clients: {why}",
        "本次运行已降级：代理 {agent} 在 {at_s:.1} 秒后失联，{percent:.1} % 的客户端随之缺失：{why}";
    Cause::MachineEndsSearch { needs } => [needs = lang.obstacle(needs);]
        "this machine limited the search: a higher load {needs}", "搜索止于这台机器的能力：更高的负载{needs}";
    Cause::NotRun { obstacle } => [text = lang.obstacle(obstacle);] "{text}", "{text}";
    Cause::SearchDisturbed { trials, disturbed } => []
        "The capacity cannot be told on this machine: {disturbed} of {trials} trials were disturbed by the hypervisor or other programs.",
        "无法在这台机器上得出容量：{trials} 次试验中有 {disturbed} 次受到虚拟化层或其他程序的干扰。";
    Cause::GeneratorEndsSearch => []
        "the generator limited the search, not the broker: give it more cores, or another machine",
        "终止搜索的是负载生成器而不是 Broker：请给它更多的核，或换到另一台机器";
    Cause::GeneratorBoundEverywhere => []
        "the generator was the bottleneck at every load", "在每个负载下瓶颈都是负载生成器";
    Cause::NoLoadPasses => [] "no load meets the objectives", "没有负载能满足目标";
    Cause::Contradictions { trials } => []
        "{trials} trials contradict each other: the machine or the broker is not steady",
        "{trials} 次试验相互矛盾：机器或 Broker 不稳定";
    Cause::InStep { label, cause } => [text = lang.cause(cause);] "{label}: {text}", "{label}：{text}";
    Cause::ConditionFailed { requirement, because } => [
        requirement = lang.requirement(requirement);
        colon = lang.colon();
        because = because.iter().map(|cause| lang.condition_cause(cause)).collect::<Vec<_>>();
        because = because.join(lang.between_reasons());
    ]
        "{requirement}{colon}{because}", "{requirement}{colon}{because}";
    Cause::ConditionUndecided { requirement, because } => [
        requirement = lang.requirement(requirement);
        colon = lang.colon();
        because = because.iter().map(|cause| lang.condition_cause(cause)).collect::<Vec<_>>();
        because = because.join(lang.between_reasons());
    ]
        "{requirement}{colon}cannot be decided ({because})",
        "{requirement}{colon}无法判断（{because}）";
    Cause::TooFewRepeats { least } => []
        "fewer than {least} repeats of a side count: differences cannot be told from noise; raise --repeats or --make-up",
        "某一方计入结果的重复少于 {least} 次：无法区分差异与噪声；请增大 --repeats 或 --make-up";
    Cause::Message(message) => [] "{message}", "{message}";
}

impl Lang {
    /// The reasons of a verdict; the `sentences` of an old record as they are.
    pub fn reasons(self, sentences: &[String], causes: &[Cause]) -> Vec<String> {
        match causes {
            [] => sentences.to_vec(),
            causes => causes.iter().map(|cause| self.cause(cause)).collect(),
        }
    }

    /// A check of the generator.
    pub(crate) const fn check_name(self, check: Check) -> &'static str {
        match (self, check) {
            (Self::En, check) => check.name(),
            (Self::Zh, Check::ThreadBusy) => "最忙的负载生成器线程",
            (Self::Zh, Check::SendDelay) => "发送延迟 p99",
            (Self::Zh, Check::LateSamples) => "CPU 采样未覆盖的测量时段占比",
            (Self::Zh, Check::Steal) => "被虚拟化层占用的时间",
        }
    }

    /// A check by its name in the record.
    pub(crate) fn check_named(self, name: &CheckName) -> &str {
        match name {
            CheckName::Known(check) => self.check_name(*check),
            CheckName::Other(name) => name,
        }
    }

    /// Which way messages go.
    pub(crate) const fn direction(self, direction: Direction) -> &'static str {
        match (self, direction) {
            (Self::En, Direction::In) => "in",
            (Self::En, Direction::Out) => "out",
            (Self::Zh, Direction::In) => "流入",
            (Self::Zh, Direction::Out) => "流出",
        }
    }

    /// The value that a threshold was compared with.
    pub(crate) fn measured(self, condition: &str, value: Option<f64>) -> String {
        match (value, Threshold::parse(condition)) {
            (Some(value), Ok(threshold)) => threshold.metric.show(value),
            (Some(value), Err(_)) => value.to_string(),
            (None, _) => self.too_few_or_not_observable().to_owned(),
        }
    }

    /// In place of a figure.
    const fn too_few_or_not_observable(self) -> &'static str {
        match self {
            Self::En => "too few samples, or not observable",
            Self::Zh => "样本太少，或无法观测",
        }
    }
}

/// A figure of a check, with its unit.
pub(crate) fn of_check(check: Check, value: f64) -> String {
    match check {
        Check::ThreadBusy | Check::LateSamples | Check::Steal => format::percent(value),
        Check::SendDelay => format::latency(value),
    }
}

/// The figure of an objective.
fn metric_of(objective: &str) -> String {
    Threshold::parse(objective)
        .map_or_else(|_| objective.to_owned(), |threshold| threshold.metric.to_string())
}
