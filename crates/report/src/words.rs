//! The results of a run, in sentences.

use super::capacity;
use super::ladder::{is_invalid, short_rate};
use super::lang::Lang;
use tacho_record::{
    Position, Recommendation, RunKind, RunRecord, SUSTAINED_PERCENT, Step, Verdict,
};
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
        RunKind::Repeats | RunKind::Ladder | RunKind::Suite | RunKind::Comparison => {
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
    let share = arrived(step);
    let share = share.as_deref();
    let fast = match (step.latency_us.p99, step.latency_us.mean) {
        (Some(p99), _) => lang.arrived_within(&latency(p99 as f64), share),
        (None, Some(mean)) => lang.mean_was(&latency(mean), share),
        _ => String::new(),
    };
    let cpu = match (step.cpu_percent, step.whose_cpu.as_deref()) {
        (Some(cpu), Some(whose)) => lang.cpu_was(whose, &percent(cpu)),
        _ => String::new(),
    };
    let (rate_in, rate_out) = (rate(step.achieved_in_per_s), rate(step.achieved_out_per_s));
    lang.carried((&rate_in, &rate_out, step.window_s), [&lost, &fast, &cpu])
}

/// The share of the deliveries due that latencies are about, where not all arrived. It is rounded
/// towards the middle, so that a part is never shown as all or nothing.
pub(super) fn arrived(step: &Step) -> Option<String> {
    let share = step.arrived_percent().filter(|share| *share < 100.0)?;
    Some(match share {
        ..0.1 => format!("{:.4} %", (share * 1e4).ceil() / 1e4),
        99.9.. => format!("{:.4} %", (share * 1e4).floor() / 1e4),
        share => percent(share),
    })
}

/// As [`arrived`], where so much is missing that a latency reads as better than it is.
pub(super) fn arrived_much_less(step: &Step) -> Option<String> {
    arrived(step).filter(|_| step.arrived_percent().is_some_and(|share| share < SUSTAINED_PERCENT))
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
    use tacho_record::LatencyStats;

    #[test]
    fn latency_is_said_of_the_share_that_arrived() {
        let said = |expected, received| {
            let step = Step {
                window_s: 10.0,
                offered_out_per_s: 1000.0,
                expected,
                received,
                lost: expected - received,
                latency_us: LatencyStats { p99: Some(73_500), ..LatencyStats::default() },
                ..Step::default()
            };
            let record = RunRecord { steps: vec![step], ..RunRecord::default() };
            Lang::ALL.map(|lang| verdict(lang, &record))
        };
        let [all, _] = said(10_000, 10_000);
        assert!(all.contains("99 % of the messages arrived within 73.5 ms"), "{all}");
        for (expected, received, share) in [
            (10_000, 100, "1.0 %"),
            (10_000, 9999, "99.9900 %"),
            (10_000, 1, "0.0100 %"),
            // Of what was due, a half was never sent.
            (5000, 5000, "50.0 %"),
        ] {
            let [english, chinese] = said(expected, received);
            let part = format!("of the {share} of deliveries due that arrived, 99 % took at most");
            assert!(english.contains(&part), "{english}");
            assert!(!english.contains("of the messages arrived"), "{english}");
            assert!(chinese.contains(&format!("只送达 {share}")), "{chinese}");
        }
    }

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
