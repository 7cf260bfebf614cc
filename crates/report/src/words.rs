//! The results of a run, in sentences.

use super::capacity;
use super::ladder::{is_invalid, short_rate};
use super::lang::Lang;
use tacho_record::{Position, Recommendation, RunKind, RunRecord, Step, Verdict};
use tacho_scenario::format::{latency, percent, rate, thousands};

/// The result in a sentence or two, for a reader of these alone.
pub(super) fn verdict(lang: Lang, record: &RunRecord) -> String {
    let is_single = record.kind == RunKind::Run;
    let killed = record.steps.iter().map(|step| step.kills).sum();
    let mut sentences = vec![match record.verdict {
        // A broker that is killed does not carry what is offered meanwhile.
        Verdict::Ok if is_single && killed > 0 => lang.survived(killed),
        verdict => lang.meaning(verdict, is_single).to_owned(),
    }];
    match record.kind {
        RunKind::Run => sentences.extend(record.steps.last().map(|step| single(lang, step))),
        RunKind::Ladder | RunKind::Suite | RunKind::Comparison => {
            let invalid = record.steps.iter().filter(|step| is_invalid(step)).count();
            let (steps, series) = (record.steps.len(), record.series.len());
            sentences.push(lang.steps_were_measured(steps, series, invalid));
            if let [only] = record.recommendations.as_slice() {
                sentences.push(recommendation(lang, only));
            }
        }
        RunKind::Capacity => {
            let sentence = record.capacity.as_ref().map(|found| capacity::sentence(lang, found));
            sentences.extend(sentence);
        }
    }
    sentences.join(lang.between_sentences())
}

fn single(lang: Lang, step: &Step) -> String {
    let lost = match step.lost {
        0 if step.expected > 0 => lang.nothing_was_lost().to_owned(),
        0 => String::new(),
        lost => lang.were_lost(&thousands(lost), &thousands(step.expected)),
    };
    let fast = match (step.latency_us.p99, step.latency_us.mean) {
        (Some(p99), _) => lang.arrived_within(&latency(p99 as f64)),
        (None, Some(mean)) => lang.mean_was(&latency(mean)),
        _ => String::new(),
    };
    let cpu = match (step.cpu_percent, step.whose_cpu.as_deref()) {
        (Some(cpu), Some(whose)) => lang.cpu_was(whose, &percent(cpu)),
        _ => String::new(),
    };
    let (rate_in, rate_out) = (rate(step.achieved_in_per_s), rate(step.achieved_out_per_s));
    lang.carried((&rate_in, &rate_out, step.window_s), [&lost, &fast, &cpu])
}

/// A recommended workload as a sentence.
pub(super) fn recommendation(lang: Lang, one: &Recommendation) -> String {
    match (one.position, one.tps) {
        (Position::Within, Some(tps)) => {
            let interval = one.low.zip(one.high);
            let interval = interval.map(|(low, high)| (short_rate(low), short_rate(high)));
            lang.recommended((&rate(tps), &one.objective, &one.whose_cpu), interval)
        }
        (Position::AboveLadder, _) => lang.above_ladder(&one.objective, one.low.map(short_rate)),
        (Position::BelowLadder, _) => lang.below_ladder(&one.objective),
        _ => lang.too_few_steps(&one.objective),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_broker_is_reported_to_have_kept_acknowledged_messages_only() {
        let mut record = RunRecord { steps: vec![Step::default()], ..RunRecord::default() };
        (record.kind, record.verdict) = (RunKind::Run, Verdict::Ok);
        let all = "carried the whole offered load";
        assert!(verdict(Lang::En, &record).contains(all));
        for (kills, times) in [(1, "once"), (7, "7 times")] {
            record.steps[0].kills = kills;
            let said = verdict(Lang::En, &record);
            assert!(!said.contains(all), "{said}");
            assert!(said.contains(&format!("was killed {times}")), "{said}");
            assert!(said.contains("every acknowledged message"), "{said}");
            assert!(verdict(Lang::Zh, &record).contains(&format!("{kills} 次")));
        }
        record.verdict = Verdict::QosViolation;
        assert!(verdict(Lang::En, &record).contains("broke the QoS contract"));
    }
}
