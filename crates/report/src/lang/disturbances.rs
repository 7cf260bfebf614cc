//! What disturbed a window, in words.

use tacho_record::{Disturbance, Handling};

use super::Lang;

impl Lang {
    /// The kinds of a disturbance, each with its seconds and its worst.
    pub(crate) fn disturbance_kinds(self, found: &Disturbance) -> String {
        let all = found.seconds;
        let kinds = [(found.steal, 0), (found.others, 1), (found.waiting, 2)];
        let told = kinds.into_iter().filter(|(kind, _)| kind.percent_max > 0.0).map(|(kind, which)| {
            let (seconds, worst) = (kind.seconds, kind.percent_max);
            match (self, which) {
                (Self::En, 0) => format!("steal in {seconds} of {all} s, up to {worst:.1} %"),
                (Self::En, 1) => format!(
                    "other programs on the broker's cores in {seconds} of {all} s, up to \
                     {worst:.1} %"
                ),
                (Self::En, _) => format!(
                    "the generator waited for its core in {seconds} of {all} s, up to {worst:.1} %"
                ),
                (Self::Zh, 0) => {
                    format!("{all} 秒中有 {seconds} 秒被虚拟化层占用，最多 {worst:.1} %")
                }
                (Self::Zh, 1) => format!(
                    "{all} 秒中有 {seconds} 秒 Broker 所用核被其他程序占用，最多 {worst:.1} %"
                ),
                (Self::Zh, _) => format!(
                    "{all} 秒中有 {seconds} 秒负载生成器在等待其核，最多 {worst:.1} %"
                ),
            }
        });
        told.collect::<Vec<_>>().join(self.semicolon())
    }

    const fn semicolon(self) -> &'static str {
        match self {
            Self::En => "; ",
            Self::Zh => "；",
        }
    }

    /// What became of the disturbed seconds.
    pub(crate) const fn handling(self, handling: Handling) -> &'static str {
        match (self, handling) {
            (Self::En, Handling::LeftOut) => {
                "Latency and CPU are those of the other seconds; losses count in all."
            }
            (Self::En, Handling::WithinTolerance) => {
                "The figures stand: what that can have changed is within the tolerance."
            }
            (Self::En, Handling::Invalid) => {
                "Repeat the run on a quieter machine, or allow more with --tolerate."
            }
            (Self::Zh, Handling::LeftOut) => "延迟与 CPU 取自其余各秒；丢失仍按全部时间统计。",
            (Self::Zh, Handling::WithinTolerance) => "数据有效：可能造成的偏差在容许范围内。",
            (Self::Zh, Handling::Invalid) => {
                "请在更空闲的机器上重新运行，或用 --tolerate 放宽限制。"
            }
        }
    }

    /// The program that used most of the broker's cores.
    pub(crate) fn by_program(self, program: Option<&str>) -> String {
        match (self, program) {
            (_, None) => String::new(),
            (Self::En, Some(program)) => format!(" (most by {program})"),
            (Self::Zh, Some(program)) => format!("（主要是 {program}）"),
        }
    }
}
