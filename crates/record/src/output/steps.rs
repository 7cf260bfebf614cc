//! `steps.csv`: a line per measured window.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::latency::LatencyStats;
use crate::logins::StepLogins;
use crate::run::RunRecord;
use crate::step::Step;

/// Columns before those of the latencies and variables.
const FIRST: [&str; 42] = [
    "step",
    "label",
    "series",
    "x",
    "scenario",
    "verdict",
    "window_s",
    "offered_in_per_s",
    "offered_out_per_s",
    "achieved_in_per_s",
    "achieved_out_per_s",
    "tps",
    "cpu_percent",
    "whose_cpu",
    "memory_percent",
    "broker_cpu_percent",
    "broker_cpu_us_per_message",
    "broker_cores_busy_percent",
    "broker_rss_bytes",
    "host_cpu_percent",
    "generator_cpu_percent",
    "sent",
    "expected",
    "received",
    "lost",
    "duplicates",
    "out_of_order",
    "unexpected",
    "corrupted",
    "overrun",
    "dropped",
    "violations",
    "acknowledged_lost",
    "sessions_lost",
    "kills",
    "generator_spin_percent",
    "logins_offered_per_s",
    "logins_decided_per_s",
    "logins_accepted",
    "logins_refused",
    "logins_undecided",
    "logins_misjudged",
];

/// Latencies with a column for each statistic.
const LATENCIES: [&str; 7] = ["e2e", "service", "send_delay", "ack", "rtt", "connect", "login"];
const STATISTICS: [&str; 8] = ["count", "mean", "p50", "p90", "p95", "p99", "p999", "max"];

/// Writes the steps of a record: a head line, a dot as decimal point, nothing between the commas
/// for an absent figure. Behind the latencies each variable that a step has gets a column
/// `var_NAME`, and the last column is the step's directory.
///
/// # Errors
/// When the output cannot be written.
pub fn write_steps(out: impl Write, record: &RunRecord) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(out);
    let own = |step: &Step| step.vars.keys().cloned().collect::<Vec<_>>();
    let variables: BTreeSet<String> =
        record.steps.iter().flat_map(own).chain(record.vars.keys().cloned()).collect();
    let mut head: Vec<String> = FIRST.map(str::to_owned).to_vec();
    for latency in LATENCIES {
        head.extend(STATISTICS.map(|statistic| match statistic {
            "count" => format!("{latency}_count"),
            statistic => format!("{latency}_{statistic}_us"),
        }));
    }
    head.extend(variables.iter().map(|name| format!("var_{name}")));
    head.push("directory".to_owned());
    out.write_record(&head)?;
    for (index, step) in record.steps.iter().enumerate() {
        let mut cells = first(index, step, record).to_vec();
        let login = step.login_latency().cloned().unwrap_or_default();
        let latencies = [
            &step.latency_us,
            &step.service_us,
            &step.send_delay_us,
            &step.ack_us,
            &step.rtt_us,
            &step.connect_us,
            &login,
        ];
        cells.extend(latencies.into_iter().flat_map(latency));
        cells.extend(variables.iter().map(|name| {
            let value = step.vars.get(name).or_else(|| record.vars.get(name));
            value.map_or_else(String::new, ToString::to_string)
        }));
        cells.push(step.directory.clone());
        out.write_record(&cells)?;
    }
    out.flush()
}

fn first(index: usize, step: &Step, record: &RunRecord) -> [String; FIRST.len()] {
    let percent = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let logins = step.logins.as_deref();
    let rate =
        |of: fn(&StepLogins) -> f64| logins.map_or_else(String::new, |one| of(one).to_string());
    let count =
        |of: fn(&StepLogins) -> u64| logins.map_or_else(String::new, |one| of(one).to_string());
    let scenario = if step.scenario.is_empty() { &record.scenario } else { &step.scenario };
    [
        (index + 1).to_string(),
        step.label.clone(),
        step.series.clone(),
        percent(step.x),
        scenario.clone(),
        step.verdict.name().to_owned(),
        step.window_s.to_string(),
        step.offered_in_per_s.to_string(),
        step.offered_out_per_s.to_string(),
        step.achieved_in_per_s.to_string(),
        step.achieved_out_per_s.to_string(),
        step.tps.to_string(),
        percent(step.cpu_percent),
        step.whose_cpu.clone().unwrap_or_default(),
        percent(step.memory_percent()),
        percent(step.broker_cpu_percent),
        percent(step.broker_cpu_us_per_message),
        percent(step.broker_cores_busy_percent),
        step.broker_rss_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
        percent(step.host_cpu_percent),
        step.generator_cpu_percent.to_string(),
        step.sent.to_string(),
        step.expected.to_string(),
        step.received.to_string(),
        step.lost.to_string(),
        step.duplicates.to_string(),
        step.out_of_order.to_string(),
        step.unexpected.to_string(),
        step.corrupted.to_string(),
        step.overrun.to_string(),
        step.dropped.to_string(),
        step.violations.total().to_string(),
        step.acknowledged_lost.to_string(),
        step.sessions_lost.to_string(),
        step.kills.to_string(),
        step.generator_spin_percent.to_string(),
        rate(|logins| logins.offered_per_s),
        rate(|logins| logins.decided_per_s),
        count(StepLogins::accepted),
        count(StepLogins::refused),
        count(|logins| logins.due().saturating_sub(logins.decided())),
        count(|logins| logins.misjudged),
    ]
}

fn latency(stats: &LatencyStats) -> [String; STATISTICS.len()] {
    let whole = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    [
        stats.count.to_string(),
        stats.mean.map_or_else(String::new, |mean| mean.to_string()),
        whole(stats.p50),
        whole(stats.p90),
        whole(stats.p95),
        whole(stats.p99),
        whole(stats.p999),
        whole(stats.max),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::logins::{LoginKind, LoginsOfKind};
    use tacho_scenario::VarValue;

    #[test]
    fn a_line_per_step_with_its_variables() {
        let vars = |qos: i64| BTreeMap::from([("qos".to_owned(), VarValue::Integer(qos))]);
        let step = |label: &str, qos: i64| Step {
            label: label.to_owned(),
            vars: vars(qos),
            tps: 20_000.5,
            latency_us: LatencyStats { count: 9, mean: Some(1.5), ..LatencyStats::default() },
            directory: format!("steps/{label}"),
            ..Step::default()
        };
        let record = RunRecord {
            scenario: "symmetric".to_owned(),
            steps: vec![step("a, b", 0), step("c", 2)],
            ..RunRecord::default()
        };
        let mut bytes = Vec::new();
        write_steps(&mut bytes, &record).expect("writes");
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let lines: Vec<BTreeMap<String, String>> =
            reader.deserialize().collect::<Result<_, _>>().expect("lines with a head");
        assert_eq!(lines.len(), 2);
        let second = |name: &str| lines[1][name].as_str();
        assert_eq!((second("step"), lines[0]["label"].as_str()), ("2", "a, b"));
        assert_eq!((second("scenario"), second("verdict")), ("symmetric", "ok"));
        assert_eq!((second("tps"), second("var_qos")), ("20000.5", "2"));
        assert_eq!((second("e2e_count"), second("e2e_mean_us")), ("9", "1.5"));
        assert_eq!((second("e2e_p99_us"), second("directory")), ("", "steps/c"));
        assert_eq!((second("logins_decided_per_s"), second("login_count")), ("", "0"));
    }

    #[test]
    fn logins_have_columns() {
        let of = |kind, accepted, refused| LoginsOfKind {
            due: accepted + refused + 1,
            accepted,
            refused,
            accepted_us: LatencyStats {
                count: accepted,
                p99: Some(900),
                ..LatencyStats::default()
            },
            ..LoginsOfKind::new(kind)
        };
        let logins = StepLogins {
            decided_per_s: 11.5,
            kinds: vec![of(LoginKind::Right, 90, 2), of(LoginKind::WrongPassword, 1, 20)],
            misjudged: 3,
            ..StepLogins::default()
        };
        let step = Step { logins: Some(Box::new(logins)), ..Step::default() };
        let record = RunRecord { steps: vec![step], ..RunRecord::default() };
        let mut bytes = Vec::new();
        write_steps(&mut bytes, &record).expect("writes");
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let line: BTreeMap<String, String> =
            reader.deserialize().next().expect("a line").expect("with a head");
        for (name, value) in [
            ("logins_decided_per_s", "11.5"),
            ("logins_accepted", "91"),
            ("logins_refused", "22"),
            ("logins_undecided", "2"),
            ("logins_misjudged", "3"),
            ("login_count", "90"),
            ("login_p99_us", "900"),
        ] {
            assert_eq!(line[name], value, "{name}");
        }
    }
}
