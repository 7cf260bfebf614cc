//! Texts of comparison pages.

use super::{Lang, catalogue};
use tacho_record::{Comparison, ComparisonSide, ConditionOutcome, Judgement, SideLabel};

catalogue! {
    differences: "Differences", "差异";
    change: "change", "变化";
    noise_floor: "floor", "噪声下限";
    about_differences:
        "Medians of the repeats, with the least and the greatest below. The dot is the change, the line its 95 % confidence interval, the grey band the noise floor: what the first side differs by from itself (A/A). Better or worse is said only when the line leaves zero out and the dot the band.",
        "表中为各次重复的中位数，其下为最小值与最大值。圆点为变化，横线为其 95 % 置信区间，灰色带为噪声下限：第一方与自身相比（A/A）的差异。仅当横线不含零且圆点超出灰色带时，才判为更好或更差。";
    medians_over_the_steps: "Medians over the steps", "各步骤的中位数";
    step_axis: "step", "步骤";
    repeat_by_repeat: "Repeat by repeat", "逐次重复";
    repeats_that_count: "repeats that count", "计入结果的重复";
    differs_in_the_environment: "What differs in the environment", "环境的差异";
    environments_are_the_same:
        "Nothing that is recorded: machine, kernel settings, versions, pinning.",
        "所记录的内容（机器、内核参数、版本、绑核）没有差异。";
    differs_in_the_scenario: "What differs in the scenario", "场景的差异";
    repeats_section: "Repeats", "各次重复";
    side: "side", "对比方";
    repeat_column: "repeat", "第几次";
    started: "started", "开始时间";
    command_before: "command before", "事先执行的命令";
    in_place_of_another: " (in place of another)", "（替代）";
    hatched_repeats:
        "Hatched repeats do not count: they say nothing about the broker.",
        "带斜纹的重复不计入结果：它们不能说明 Broker 的能力。";
    how_differences_are_told: "How differences are distinguished from noise", "如何区分差异与噪声";
    the_first_side_once_more: "the first side once more", "再次运行第一方";
    once_more: "A/A (the first side once more)", "A/A（再次运行第一方）";
}

impl Lang {
    /// The judgement of a difference.
    pub(crate) const fn judgement(self, judgement: Judgement) -> &'static str {
        match (self, judgement) {
            (Self::En, judgement) => judgement.words(),
            (Self::Zh, Judgement::Better) => "更好",
            (Self::Zh, Judgement::Worse) => "更差",
            (Self::Zh, Judgement::Mixed) => "部分指标更好，部分更差",
            (Self::Zh, Judgement::NoChange) => "没有变化",
            (Self::Zh, Judgement::Unclear) => "无法判断",
        }
    }

    /// The outcome of a condition.
    pub(crate) const fn came_to(self, outcome: ConditionOutcome) -> &'static str {
        match (self, outcome) {
            (Self::En, outcome) => outcome.words(),
            (Self::Zh, ConditionOutcome::Holds) => "满足",
            (Self::Zh, ConditionOutcome::Failed) => "不满足",
            (Self::Zh, ConditionOutcome::Undecided) => "无法判断",
        }
    }

    /// The result in a sentence.
    pub(crate) fn compared(self, comparison: &Comparison) -> String {
        let Some((first, others)) = comparison.sides.split_first() else { return String::new() };
        let others: Vec<&str> = others.iter().map(|side| side.name.as_str()).collect();
        let (others, first) = (others.join(", "), &first.name);
        let listed = |wanted: Judgement| {
            let mut names: Vec<String> = Vec::new();
            for row in comparison.points.iter().flat_map(|point| &point.figures) {
                let name = self.figure_of(row);
                let is_one = row.changes.iter().any(|change| change.verdict == wanted);
                if is_one && !names.contains(&name) {
                    names.push(name);
                }
            }
            names.join(self.between_reasons())
        };
        let (better, worse) = (listed(Judgement::Better), listed(Judgement::Worse));
        let against = match self {
            Self::En => format!("{others} against {first}: "),
            Self::Zh => format!("{others} 与 {first} 相比："),
        };
        let found = match (self, comparison.verdict) {
            (Self::En, Judgement::Better) => format!("better in {better}."),
            (Self::En, Judgement::Worse) => format!("worse in {worse}."),
            (Self::En, Judgement::Mixed) => format!("better in {better}. Worse in {worse}."),
            (Self::En, Judgement::NoChange) => {
                "no difference distinguishable from noise.".to_owned()
            }
            (Self::En, Judgement::Unclear) => {
                "too few repeats that count to tell a difference from noise.".to_owned()
            }
            (Self::Zh, Judgement::Better) => format!("{better}更好。"),
            (Self::Zh, Judgement::Worse) => format!("{worse}更差。"),
            (Self::Zh, Judgement::Mixed) => format!("{better}更好；{worse}更差。"),
            (Self::Zh, Judgement::NoChange) => "没有可与噪声区分的差异。".to_owned(),
            (Self::Zh, Judgement::Unclear) => {
                "计入结果的重复太少，无法将差异与噪声区分。".to_owned()
            }
        };
        format!("{against}{found}")
    }

    /// What a side is.
    pub fn side_label(self, what: &SideLabel) -> String {
        let (arguments, own) = match (self, what) {
            (_, SideLabel::Text(text)) => return text.clone(),
            (Self::En, SideLabel::OwnBroker { arguments }) => (arguments, "Tacho's own broker"),
            (Self::Zh, SideLabel::OwnBroker { arguments }) => (arguments, "Tacho 自带的 Broker"),
        };
        match (self, arguments.as_str()) {
            (_, "") => own.to_owned(),
            (Self::En, arguments) => format!("{own}, {arguments}"),
            (Self::Zh, arguments) => format!("{own}，{arguments}"),
        }
    }

    /// What a side of a comparison is; the label of an old record as it is.
    pub(crate) fn side_of(self, side: &ComparisonSide) -> String {
        side.what.as_ref().map_or_else(|| side.label.clone(), |what| self.side_label(what))
    }

    /// The separator between a name and its description.
    pub(crate) const fn colon(self) -> &'static str {
        match self {
            Self::En => ": ",
            Self::Zh => "：",
        }
    }

    /// The curve of all messages of a side.
    pub(crate) fn all_messages_of(self, side: &str) -> String {
        match self {
            Self::En => format!("{side}: all messages of its repeats"),
            Self::Zh => format!("{side}：各次重复的全部消息"),
        }
    }

    /// The curve of the slowest repeat of a side.
    pub(crate) fn slowest_repeat_of(self, side: &str) -> String {
        match self {
            Self::En => format!("{side}: slowest repeat"),
            Self::Zh => format!("{side}：最慢的一次重复"),
        }
    }

    /// Behind the name of a side: the command before each of its repeats.
    pub(crate) fn after_command(self, command: &str) -> String {
        match self {
            Self::En => format!(", after '{command}'"),
            Self::Zh => format!("，事先执行“{command}”"),
        }
    }

    /// A command that ran before a repeat; `said` is its output.
    pub(crate) fn command_ran(
        self,
        (command, code, seconds): (&str, Option<i32>, f64),
        said: &str,
    ) -> String {
        let code = code.map_or_else(|| "?".to_owned(), |code| code.to_string());
        let said = if said.is_empty() { String::new() } else { format!("{}{said}", self.colon()) };
        match self {
            Self::En => format!("{command} (exit code {code}, {seconds:.1} s){said}"),
            Self::Zh => format!("{command}（退出码 {code}，{seconds:.1} 秒）{said}"),
        }
    }

    /// One change in a sentence, for readers without the picture.
    pub(crate) fn change_was(
        self,
        (figure, change, verdict): (&str, &str, Judgement),
        interval: &str,
        floor: &str,
    ) -> String {
        let verdict = self.judgement(verdict);
        match self {
            Self::En => format!("{figure}: {change} ({interval}), floor {floor}: {verdict}"),
            Self::Zh => format!("{figure}：{change}（{interval}），噪声下限 {floor}：{verdict}"),
        }
    }

    /// How differences are distinguished from noise.
    pub(crate) fn method(self, comparison: &Comparison) -> String {
        let method = &comparison.method;
        let (draws, seed) = (method.draws, method.seed);
        let confidence = method.confidence * 100.0;
        let least = method.floor_percent_min;
        let further = comparison.aa_counting();
        let figures = comparison.points.first().map_or(0, |point| point.figures.len());
        match self {
            Self::En => {
                let turns = match comparison.interleaved {
                    true => {
                        "Repeats were made in turns (first, second, second, first, and so on), so \
                         that what drifts meets all sides. "
                    }
                    false => "",
                };
                let made = match further as u64 >= method.repeats_min {
                    true => format!("the first side against its {further} A/A repeats"),
                    false => "every other repeat of the first side against those between, as of \
                              groups as large as the sides"
                        .to_owned(),
                };
                format!(
                    "{turns}A side is the median of its repeats; percentiles of repeats are never \
                     averaged. The interval comes from {draws} draws of the repeats of both sides \
                     anew (percentile bootstrap, {confidence:.0} %, seed {seed}). The floor is \
                     what the first side differs by from itself (A/A), the greatest of four: what \
                     {confidence:.0} % of {draws} A/A comparisons stay below, whose two groups, as \
                     large as the sides, are drawn from all repeats of the first side; an A/A \
                     comparison that was made ({made}); {least:.0} %; and the resolution of the \
                     figure. With {figures} figures one may differ by chance: a change that \
                     matters shows again when the comparison is repeated."
                )
            }
            Self::Zh => {
                let turns = match comparison.interleaved {
                    true => "各方轮流重复（一、二、二、一，依此类推），使漂移均等地影响各方。",
                    false => "",
                };
                let made = match further as u64 >= method.repeats_min {
                    true => format!("第一方与其 {further} 次 A/A 重复相比"),
                    false => "第一方的奇数次与偶数次重复相比，折算为与各方同样多的重复".to_owned(),
                };
                format!(
                    "{turns}每一方取其各次重复的中位数；各次重复的百分位从不取平均。置信区间来自对双方\
                     重复的 {draws} 次重新抽样（百分位自助法，{confidence:.0} %，随机种子 {seed}）。\
                     噪声下限是第一方与自身相比（A/A）的差异，取以下四者中最大的：{draws} 次 A/A 抽样\
                     对比中 {confidence:.0} % 都低于的值，其两组与各方同样大，均抽自第一方的全部重复；\
                     一次实际进行的 A/A 对比（{made}）；{least:.0} %；以及该指标的分辨率。共有 \
                     {figures} 个指标，其中一个可能偶然出现差异：真正的变化在再次对比时会重现。"
                )
            }
        }
    }
}
