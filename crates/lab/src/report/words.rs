//! What a run says, in sentences.

use super::capacity;
use super::ladder::{is_invalid, short_rate};
use crate::format::{latency, percent, rate, thousands};
use crate::record::{Position, Recommendation, RunKind, RunRecord, Step, Verdict};

/// The result in a sentence or two, for somebody who reads nothing else.
pub(super) fn verdict(record: &RunRecord) -> String {
    let meaning = match record.verdict {
        Verdict::Ok => match record.kind {
            RunKind::Run => "The broker carried everything that it was offered.",
            _ => "The measurement came to its end.",
        },
        Verdict::GeneratorBound => {
            "The load generator, or the machine under it, may have been the bottleneck: these \
             figures say nothing about the broker."
        }
        Verdict::NetworkBound => {
            "The network was the bottleneck: these figures say nothing about the broker."
        }
        Verdict::NotSustained => "The broker carried less than it was offered.",
        Verdict::NotSteady => {
            "The figures still changed while they were measured: they describe a transient."
        }
        Verdict::QosViolation => {
            "The broker broke the QoS contract: messages were lost, duplicated, reordered or \
             damaged."
        }
        Verdict::ThresholdFailed => "A threshold does not hold.",
        Verdict::Aborted => {
            "The run did not come to its end; what was measured until then is below."
        }
    };
    let mut sentences = vec![meaning.to_owned()];
    match record.kind {
        RunKind::Run => sentences.extend(record.steps.last().map(single)),
        RunKind::Ladder | RunKind::Suite | RunKind::Comparison => {
            let (steps, invalid) =
                (record.steps.len(), record.steps.iter().filter(|step| is_invalid(step)).count());
            let series = record.series.len();
            let of = if series > 1 { format!(" in {series} series") } else { String::new() };
            let but = match invalid {
                0 => String::new(),
                1 => "; one of them does not count".to_owned(),
                count => format!("; {count} of them do not count"),
            };
            sentences.push(format!("{steps} steps were measured{of}{but}."));
            if let [only] = record.recommendations.as_slice() {
                sentences.push(recommendation(only));
            }
        }
        RunKind::Capacity => {
            sentences.extend(record.capacity.as_ref().map(capacity::sentence));
        }
    }
    sentences.join(" ")
}

fn single(step: &Step) -> String {
    let lost = match step.lost {
        0 if step.expected > 0 => ", nothing was lost".to_owned(),
        0 => String::new(),
        lost => {
            format!(", {} of {} deliveries were lost", thousands(lost), thousands(step.expected))
        }
    };
    let fast = match (step.latency_us.p99, step.latency_us.mean) {
        (Some(p99), _) => {
            format!(", and 99 % of the messages arrived within {}", latency(p99 as f64))
        }
        (None, Some(mean)) => format!(", and the mean latency was {}", latency(mean)),
        _ => String::new(),
    };
    let cpu = match (step.cpu_percent, step.whose_cpu.as_deref()) {
        (Some(cpu), Some(whose)) => {
            format!(" CPU ({whose}): {}.", percent(cpu))
        }
        _ => String::new(),
    };
    format!(
        "{} messages per second went in and {} came out over {:.0} seconds{lost}{fast}.{cpu}",
        rate(step.achieved_in_per_s),
        rate(step.achieved_out_per_s),
        step.window_s
    )
}

/// A recommended workload as a sentence.
pub(super) fn recommendation(one: &Recommendation) -> String {
    let interval = match (one.low, one.high) {
        (Some(low), Some(high)) => {
            format!(" (95 % interval {} to {})", short_rate(low), short_rate(high))
        }
        _ => String::new(),
    };
    match (one.position, one.tps) {
        (Position::Within, Some(tps)) => format!(
            "Recommended workload: {} messages in + out per second at {} ({}){interval}.",
            rate(tps),
            one.objective,
            one.whose_cpu
        ),
        (Position::AboveLadder, _) => format!(
            "{} was not reached: the recommended workload lies above{} the measured steps.",
            one.objective,
            one.low.map_or_else(String::new, |low| format!(" {} TPS,", short_rate(low)))
        ),
        (Position::BelowLadder, _) => {
            format!("{} is exceeded by the first step already.", one.objective)
        }
        _ => format!("Too few steps count to tell the load at {}.", one.objective),
    }
}
