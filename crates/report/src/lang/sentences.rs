//! Sentences with figures in them, and words that follow from types.

use super::Lang;
use tacho_record::{PhaseKind, PhaseName, Series, Verdict, WhoseCpu};
use tacho_scenario::format;

impl Lang {
    /// The meaning of a verdict, as a self-contained sentence.
    pub const fn meaning(self, verdict: Verdict, is_single: bool) -> &'static str {
        let (english, chinese) = match verdict {
            Verdict::Ok if is_single => {
                ("The broker carried the whole offered load.", "Broker 承载了全部施加的负载。")
            }
            Verdict::Ok => ("The measurement is complete.", "测量已完成。"),
            Verdict::GeneratorBound => (
                "The load generator, or the machine under it, may have been the bottleneck: these \
                 figures say nothing about the broker.",
                "瓶颈可能是负载生成器或其所在的机器：这些数据不能说明 Broker 的能力。",
            ),
            Verdict::Disturbed => (
                "The hypervisor or other programs disturbed the measurement: these figures say \
                 nothing about the broker. Repeat the run on a quieter machine.",
                "虚拟化层或其他程序干扰了测量：这些数据不能说明 Broker 的能力。请在更空闲的机器上重新运行。",
            ),
            Verdict::NetworkBound => (
                "The network was the bottleneck: these figures say nothing about the broker.",
                "瓶颈是网络：这些数据不能说明 Broker 的能力。",
            ),
            Verdict::NotSustained => {
                ("The broker carried less than the offered load.", "Broker 未能承载施加的负载。")
            }
            Verdict::NotSteady => (
                "The figures still changed during the measured phase: they describe a transient.",
                "测量期间数据仍在变化：它们只反映过渡过程。",
            ),
            Verdict::QosViolation => (
                "The broker broke the QoS contract: messages were lost, duplicated, reordered or \
                 damaged.",
                "Broker 违反了 QoS 约定：消息丢失、重复、乱序或损坏。",
            ),
            Verdict::LoginViolation => (
                "The broker decided logins wrongly: it accepted wrong credentials, or refused right ones.",
                "Broker 的登录判定有误：接受了错误的凭据，或拒绝了正确的凭据。",
            ),
            Verdict::ThresholdFailed => ("A threshold does not hold.", "有阈值未满足。"),
            Verdict::Unclear => (
                "The comparison is unclear: too few repeats count to tell a difference from noise.",
                "无法得出比较结论：计入结果的重复太少，无法区分差异与噪声。",
            ),
            Verdict::Aborted => (
                "The run did not finish; the figures below cover the time until it stopped.",
                "运行未能完成；以下是中止前测得的数据。",
            ),
        };
        match self {
            Self::En => english,
            Self::Zh => chinese,
        }
    }

    /// The verdict of a run that killed the broker and found no violation.
    pub(crate) fn survived(self, kills: u64) -> String {
        match self {
            Self::En => {
                let times = match kills {
                    1 => "once".to_owned(),
                    kills => format!("{kills} times"),
                };
                format!(
                    "The broker was killed {times} and kept its guarantees: every acknowledged \
                     message arrived; unacknowledged messages may have been lost."
                )
            }
            Self::Zh => format!(
                "Broker 被终止 {kills} 次，并兑现了承诺：已确认的消息全部送达，未确认的消息可能丢失。"
            ),
        }
    }

    /// The sentence about the last window: rates, seconds, losses, latency, CPU.
    pub(crate) fn carried(
        self,
        (rate_in, rate_out, seconds): (&str, &str, f64),
        [lost, fast, cpu]: [&str; 3],
    ) -> String {
        match self {
            Self::En => format!(
                "{rate_in} messages per second went in and {rate_out} came out over {seconds:.0} \
                 seconds{lost}{fast}.{cpu}"
            ),
            Self::Zh => format!(
                "在 {seconds:.0} 秒内，每秒流入 {rate_in} 条、流出 {rate_out} 条消息\
                 {lost}{fast}。{cpu}"
            ),
        }
    }

    /// Part of [`Lang::carried`].
    pub(crate) const fn nothing_was_lost(self) -> &'static str {
        match self {
            Self::En => ", nothing was lost",
            Self::Zh => "，没有丢失",
        }
    }

    /// Part of [`Lang::carried`].
    pub(crate) fn were_lost(self, lost: &str, expected: &str) -> String {
        match self {
            Self::En => format!(", {lost} of {expected} deliveries were lost"),
            Self::Zh => format!("，应投递 {expected} 条，丢失 {lost} 条"),
        }
    }

    /// Part of [`Lang::carried`]; `share` of the deliveries due arrived, where that is not all.
    pub(crate) fn arrived_within(self, p99: &str, share: Option<&str>) -> String {
        match (self, share) {
            (Self::En, None) => format!(", and 99 % of the messages arrived within {p99}"),
            (Self::En, Some(share)) => {
                format!(
                    ", and of the {share} of deliveries due that arrived, 99 % took at most {p99}"
                )
            }
            (Self::Zh, None) => format!("，99 % 的消息在 {p99} 内送达"),
            (Self::Zh, Some(share)) => {
                format!("，应投递的消息只送达 {share}，其中 99 % 在 {p99} 内送达")
            }
        }
    }

    /// Part of [`Lang::carried`]; `share` as in [`Lang::arrived_within`].
    pub(crate) fn mean_was(self, mean: &str, share: Option<&str>) -> String {
        match (self, share) {
            (Self::En, None) => format!(", and the mean latency was {mean}"),
            (Self::En, Some(share)) => format!(
                ", and the mean latency of the {share} of deliveries due that arrived was {mean}"
            ),
            (Self::Zh, None) => format!("，平均延迟为 {mean}"),
            (Self::Zh, Some(share)) => {
                format!("，应投递的消息只送达 {share}，其平均延迟为 {mean}")
            }
        }
    }

    /// Part of [`Lang::carried`].
    pub(crate) fn cpu_was(self, whose: &str, cpu: &str) -> String {
        match self {
            Self::En => format!(" CPU ({whose}): {cpu}."),
            Self::Zh => format!("CPU（{}）：{cpu}。", self.whose(whose)),
        }
    }

    /// The name of a series as a heading: those of a search have names of ours.
    pub(crate) fn series_heading(self, series: &Series) -> String {
        match (series.name.as_str(), series.label.as_str()) {
            ("trials", "trials") => self.trials().to_owned(),
            ("profile", "latency at parts of the capacity") => {
                self.latency_at_parts_of_the_capacity().to_owned()
            }
            (_, label) => label.to_owned(),
        }
    }

    /// How many steps were measured, in how many series, and how many do not count.
    pub(crate) fn steps_were_measured(self, steps: usize, series: usize, invalid: usize) -> String {
        match self {
            Self::En => {
                let of = if series > 1 { format!(" in {series} series") } else { String::new() };
                let but = match invalid {
                    0 => String::new(),
                    1 => "; one of them does not count".to_owned(),
                    count => format!("; {count} of them do not count"),
                };
                format!("{steps} steps were measured{of}{but}.")
            }
            Self::Zh => {
                let of =
                    if series > 1 { format!("（{series} 个系列）") } else { String::new() };
                let but = if invalid > 0 {
                    format!("，其中 {invalid} 个不计入结果")
                } else {
                    String::new()
                };
                format!("共测量 {steps} 个步骤{of}{but}。")
            }
        }
    }

    /// The description of a scenario, in Chinese where the scenario has one.
    pub(crate) fn description<'d>(self, english: &'d str, chinese: &'d str) -> &'d str {
        match self {
            Self::Zh if !chinese.is_empty() => chinese,
            Self::En | Self::Zh => english,
        }
    }

    /// Between sentences.
    pub(crate) const fn between_sentences(self) -> &'static str {
        match self {
            Self::En => " ",
            Self::Zh => "",
        }
    }

    /// Between reasons in one cell.
    pub(crate) const fn between_reasons(self) -> &'static str {
        match self {
            Self::En => "; ",
            Self::Zh => "；",
        }
    }

    /// A percentage that may be unknown.
    pub(crate) fn percent_or(self, value: Option<f64>) -> String {
        value.map_or_else(|| self.not_observed().to_owned(), format::percent)
    }

    /// A latency in microseconds that may be unknown.
    pub(crate) fn latency_or(self, us: Option<f64>) -> String {
        us.map_or_else(|| self.too_few().to_owned(), format::latency)
    }

    /// A recommended workload; `interval` is from, to.
    pub(crate) fn recommended(
        self,
        (tps, objective, whose): (&str, &str, &str),
        interval: Option<(String, String)>,
    ) -> String {
        match self {
            Self::En => {
                let interval = interval.map_or_else(String::new, |(low, high)| {
                    format!(" (95 % interval {low} to {high})")
                });
                format!(
                    "Recommended workload: {tps} messages in + out per second at {objective} \
                     ({whose}){interval}."
                )
            }
            Self::Zh => {
                let interval = interval.map_or_else(String::new, |(low, high)| {
                    format!("，95 % 置信区间 {low} 至 {high}")
                });
                format!(
                    "推荐负载：在 {objective}（{}）时为 {tps} 消息/秒（流入 + 流出）{interval}。",
                    self.whose(whose)
                )
            }
        }
    }

    /// The objective lies above the ladder, perhaps above a known load.
    pub(crate) fn above_ladder(self, objective: &str, low: Option<String>) -> String {
        match self {
            Self::En => {
                let low = low.map_or_else(String::new, |low| format!(" {low} TPS,"));
                format!(
                    "{objective} was not reached: the recommended workload lies above{low} the \
                     measured steps."
                )
            }
            Self::Zh => {
                let low = low.map_or_else(String::new, |low| format!("（{low} TPS）"));
                format!("未达到 {objective}：推荐负载高于已测步骤{low}。")
            }
        }
    }

    /// The objective lies below the ladder.
    pub(crate) fn below_ladder(self, objective: &str) -> String {
        match self {
            Self::En => format!("{objective} is exceeded by the first step already."),
            Self::Zh => format!("第一个步骤就已超过 {objective}。"),
        }
    }

    /// The objective cannot be found.
    pub(crate) fn too_few_steps(self, objective: &str) -> String {
        match self {
            Self::En => format!("Too few steps count to tell the load at {objective}."),
            Self::Zh => format!("有效步骤太少，无法得出 {objective} 时的负载。"),
        }
    }

    /// The result of a capacity search that found a load.
    pub(crate) fn highest_load(
        self,
        (variable, objectives, pass): (&str, &str, &str),
        tps: Option<String>,
        bound: &str,
        (confirmed, confirm): (u32, u32),
    ) -> String {
        match self {
            Self::En => {
                let tps = tps.map_or_else(String::new, |tps| {
                    format!(" ({tps} messages in + out per second)")
                });
                format!(
                    "The highest {variable} that met {objectives} is {pass}{tps}; {bound}. \
                     Confirmed {confirmed} of {confirm} times."
                )
            }
            Self::Zh => {
                let tps =
                    tps.map_or_else(String::new, |tps| format!("（流入 + 流出 {tps} 消息/秒）"));
                format!(
                    "满足 {objectives} 的最高{variable}为 {pass}{tps}；{bound}。\
                     {confirm} 次确认中通过 {confirmed} 次。"
                )
            }
        }
    }

    /// The result of a capacity search that found none.
    pub(crate) fn no_load_met(self, objectives: &str, bound: &str) -> String {
        match self {
            Self::En => format!("No load met {objectives}; {bound}."),
            Self::Zh => format!("没有负载能满足 {objectives}；{bound}。"),
        }
    }

    /// The upper bound of a capacity: a fail, or a trial that the generator limited.
    pub(crate) fn bound(self, fail: Option<String>, limited: Option<String>) -> String {
        match (self, fail, limited) {
            (Self::En, Some(fail), _) => format!("it failed at {fail}"),
            (Self::Zh, Some(fail), _) => format!("在 {fail} 时未通过"),
            (Self::En, None, Some(at)) => {
                format!("at {at} the generator was the bottleneck, so the broker may carry more")
            }
            (Self::Zh, None, Some(at)) => {
                format!("在 {at} 时负载生成器成为瓶颈，Broker 可能承载更多")
            }
            (Self::En, None, None) => "no load was found at which it failed".to_owned(),
            (Self::Zh, None, None) => "未找到使其失败的负载".to_owned(),
        }
    }

    /// The name of a variable as people say it.
    pub(crate) fn variable(self, name: &str) -> String {
        let known = match self {
            Self::En => None,
            Self::Zh => match name {
                "target_throughput" => Some("目标吞吐量"),
                "payload_size" => Some("载荷大小"),
                "publishers" => Some("发布者数"),
                "subscribers" => Some("订阅者数"),
                "connections" => Some("连接数"),
                "step" => Some("步骤"),
                _ => None,
            },
        };
        known.map_or_else(|| name.replace('_', " "), str::to_owned)
    }

    /// A variable with its unit, as the title of an axis.
    pub(crate) fn variable_in(self, name: &str, unit: &str) -> String {
        match (self, unit) {
            (_, "") => name.to_owned(),
            (Self::En, unit) => format!("{name} ({unit})"),
            (Self::Zh, "bytes") => format!("{name}（字节）"),
            (Self::Zh, unit) => format!("{name}（{unit}）"),
        }
    }

    /// Whose CPU a figure is; `name` is that of [`WhoseCpu`].
    pub(crate) fn whose(self, name: &str) -> String {
        let whose = WhoseCpu::parse(name).filter(|_| self == Self::Zh);
        whose.map_or_else(
            || name.to_owned(),
            |whose| {
                let chinese = match whose {
                    WhoseCpu::Host => "主机",
                    WhoseCpu::BrokerCores => "Broker 所用核",
                    WhoseCpu::BrokerProcess => "Broker 进程",
                };
                chinese.to_owned()
            },
        )
    }

    /// A phase.
    pub(crate) fn phase(self, name: &PhaseName) -> String {
        let word = match (self, name) {
            (Self::En, name) => name.as_str(),
            (Self::Zh, PhaseName::Other(word)) => word,
            (Self::Zh, PhaseName::Known(kind)) => match kind {
                PhaseKind::Connect => "连接",
                PhaseKind::Subscribe => "订阅",
                PhaseKind::Probe => "就绪探测",
                PhaseKind::Offline => "离线",
                PhaseKind::WarmUp => "预热",
                PhaseKind::Measure => "测量",
                PhaseKind::Resume => "恢复会话",
                PhaseKind::Drain => "排空",
                PhaseKind::Disconnect => "断开",
            },
        };
        word.to_owned()
    }

    /// `1 h 2 min`, `25 s`.
    pub(crate) fn duration(self, seconds: f64) -> String {
        let whole = seconds.round().max(0.0) as u64;
        let (minutes, hours) = (whole / 60, whole / 3600);
        match (self, whole) {
            (Self::En, 0..120) => format!("{whole} s"),
            (Self::Zh, 0..120) => format!("{whole} 秒"),
            (Self::En, 120..7200) => format!("{minutes} min {} s", whole % 60),
            (Self::Zh, 120..7200) => format!("{minutes} 分 {} 秒", whole % 60),
            (Self::En, _) => format!("{hours} h {} min", minutes % 60),
            (Self::Zh, _) => format!("{hours} 小时 {} 分", minutes % 60),
        }
    }
}

/// Short forms with figures: a method for each, with its text in all languages.
macro_rules! forms {
    ($($name:ident($($argument:ident),+): $english:literal, $chinese:literal;)*) => {
        impl Lang {
            $(
                pub(in crate) fn $name(
                    self,
                    $($argument: impl std::fmt::Display),+
                ) -> String {
                    match self {
                        Self::En => format!($english),
                        Self::Zh => format!($chinese),
                    }
                }
            )*
        }
    };
}

forms! {
    show_published(what): "Show published results: {what}", "显示已公布的结果：{what}";
    count_of_clients(count): "{count} clients", "{count} 个客户端";
    written_by(version):
        "Written by tacho {version}. This file holds everything that it shows and loads nothing.",
        "由 tacho {version} 生成。本文件自含全部内容，不加载任何外部资源。";
    figures_of_window(number): "Figures of window {number}", "第 {number} 个窗口的数据";
    percentiles_of_window(number):
        "Latency by percentile, window {number}", "各百分位的延迟，第 {number} 个窗口";
    more_in_summary(count): "{count} more, see summary.json", "{count} 处，见 summary.json";
    host_of_target(of): "Host of the broker{of}", "Broker 所在主机{of}";
    sessions_of(name): "sessions of {name}", "{name} 的会话";
    some_of(some, all): "{some} of {all}", "{some}，共 {all}";
    named(name): " ({name})", "（{name}）";
    per_hour(change): "{change} per hour", "每小时 {change}";
    check_of_agent(check, agent): "{check} (agent {agent})", "{check}（代理 {agent}）";
    lost_after(seconds, why): "after {seconds} s: {why}", "{seconds} 秒后：{why}";
    clock_error_at_most(error): "clock error at most {error}", "时钟误差不超过 {error}";
    monitor_trouble(errors, dropped, last):
        "; {errors} errors, {dropped} rows dropped{last}",
        "；{errors} 次错误，丢弃 {dropped} 行{last}";
    monitor_rows(rows, clock, trouble): "{rows} rows; {clock}{trouble}", "{rows} 行；{clock}{trouble}";
    highest_passed(variable): "highest {variable} that passed", "通过的最高{variable}";
    tps_at(objective, label): "TPS at {objective}: {label}", "{objective} 时的 TPS：{label}";
    near(tps, cpu): "{tps} TPS at {cpu}", "{tps} TPS，CPU {cpu}";
    range(low, high): "{low} to {high}", "{low} 至 {high}";
    source(name, hardware, load):
        "{name}: {hardware}. Load: {load}.", "{name}：{hardware}。负载：{load}。";
    host(host, target, source): "Host {host}{target}{source}", "主机 {host}{target}{source}";
    broker_called(name): "Broker {name}", "Broker {name} 的各项指标";
    host_of_broker(name): ", broker {name}", "，Broker {name}";
    told_by(source): " (by {source})", "（来源：{source}）";
    interface_received(name): "{name} received", "{name} 接收";
    interface_transmitted(name): "{name} transmitted", "{name} 发送";
    disk_read(name): "{name} read", "{name} 读取";
    disk_written(name): "{name} written", "{name} 写入";
    invalid(name): "{name}, invalid", "{name}，无效";
    latency_of(title): "Latency: {title}", "延迟：{title}";
    cpu_of(title): "CPU: {title}", "CPU：{title}";
    mean_of_steps(whose):
        "Mean over each step; whose CPU: {whose}.", "每个步骤的平均值；CPU 统计对象：{whose}。";
    logarithmic(title): "{title} (logarithmic)", "{title}（对数）";
    thinned(kept, stretch):
        "Drawn with the {kept} of every {stretch} points; the CSV beside this page has all.",
        "图中每 {stretch} 个点取{kept}；全部数据见本页旁边的 CSV。";
    in_steps_worst(kind, count, all, figure, label):
        "{kind} in {count} of {all} steps, worst {figure} ({label})",
        "{kind}：{all} 个步骤中有 {count} 个，最严重为 {figure}（{label}）";
    in_steps_first(kind, count, all, label):
        "{kind} in {count} of {all} steps, first {label}",
        "{kind}：{all} 个步骤中有 {count} 个，首先是 {label}";
    in_steps_such_as(count, all, sentence):
        "in {count} of {all} steps, such as: {sentence}",
        "{all} 个步骤中有 {count} 个，例如：{sentence}";
    not_carried(way): "load not carried, {way}", "未能承载负载（{way}）";
    threshold_of(condition): "threshold {condition}", "阈值 {condition}";
    of_those_that_arrived(label, share):
        "{label}, of the {share} of deliveries due that arrived",
        "{label}（只计送达的 {share}）";
    msg_per_s(rate): "{rate} msg/s", "{rate} 消息/秒";
    seconds(count): "{count} s", "{count} 秒";
    lost_among(count, first, last): "{count} of {first} to {last}", "{first} 至 {last} 中的 {count} 条";
    sent_from_to(publisher, receiver): "from {publisher} to {receiver}", "从 {publisher} 到 {receiver}";
    read_in_text(name): "{name}, text", "{name}，取自正文";
    shortest_to_longest(least, most): "{least} to {most}", "{least} 至 {most}";
    held_beside(ours, name, theirs):
        "Held: {ours} a step; {name}: {theirs}.", "时长：每步骤 {ours}；{name}：{theirs}。";
    read_from_curve(name): "{name}, curve", "{name}，取自曲线";
    sessions_are_kept(level, qos0): "{level}; {qos0}", "{level}；{qos0}";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        assert_eq!(Lang::En.duration(25.4), "25 s");
        assert_eq!(Lang::En.duration(300.0), "5 min 0 s");
        assert_eq!(Lang::En.duration(7261.0), "2 h 1 min");
        assert_eq!(Lang::Zh.duration(7261.0), "2 小时 1 分");
    }

    #[test]
    fn unknown_subjects_stay() {
        assert_eq!(Lang::Zh.whose("broker cores"), "Broker 所用核");
        assert_eq!(Lang::Zh.whose("unknown"), "unknown");
        assert_eq!(Lang::Zh.variable("my_variable"), "my variable");
        assert_eq!(Lang::En.whose("host"), "host");
    }
}
