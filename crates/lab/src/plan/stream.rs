//! When streams publish, and what.

use std::sync::Arc;

use tacho_load as load;

use super::qos;
use tacho_scenario::{Group, Model, Payload, PhasePolicy, Publish, Rate, TimeSpan};

/// What the streams of one kind have in common.
pub(super) fn block(publish: &Publish, group: &Group, machines: u32) -> load::PublishBlock {
    load::PublishBlock {
        qos: qos(publish.qos),
        retain: publish.retain,
        payload: payload(&publish.payload),
        pace: pace(&publish.model, group, machines),
    }
}

fn payload(payload: &Payload) -> load::Payload {
    // Invariant: the same texts and rows were tried when the scenario was checked.
    let template = match payload {
        Payload::Random { size } => return load::Payload::Random { bytes: *size },
        Payload::Zeros { size } => return load::Payload::Zeros { bytes: *size },
        Payload::Jmeter { size, timestamp } => {
            return load::Payload::Jmeter { bytes: *size, timestamp: *timestamp };
        }
        Payload::Text { text } => load::Template::parse(text),
        Payload::File { file } => Ok(load::Template::literal(file.bytes.to_vec())),
        Payload::Csv { csv, text: Some(text) } => {
            load::Template::with_rows(text, &csv.columns, csv.rows.to_vec())
        }
        Payload::Csv { csv, text: None } => {
            load::Template::from_rows(csv.rows.iter().map(|row| row.join(",")).collect())
        }
    };
    load::Payload::Text(Arc::new(template.unwrap_or_else(|_| load::Template::literal([]))))
}

fn pace(model: &Model, group: &Group, machines: u32) -> load::Pace {
    let clients = group.clients;
    match model {
        Model::Closed { window } => load::Pace::Closed { window: *window },
        Model::Open { rate, phase, catch_up } => load::Pace::Open {
            rate: exact(*rate, clients),
            phase: phase_policy(*phase),
            catch_up: behind(*catch_up),
        },
        Model::Poisson { rate, catch_up } => {
            load::Pace::Poisson { rate: exact(*rate, clients), catch_up: behind(*catch_up) }
        }
        Model::Bursts { rate, burst, phase, catch_up } => {
            let load::Rate { messages, per_ns } = exact(*rate, clients);
            let period_ns = u128::from(per_ns) * u128::from(*burst) / u128::from(messages);
            load::Pace::Bursts {
                messages: *burst,
                period_ns: u64::try_from(period_ns).unwrap_or(u64::MAX).max(1),
                phase: phase_policy(*phase),
                catch_up: behind(*catch_up),
            }
        }
        Model::Trace { trace: of, catch_up } => load::Pace::Trace {
            // Invariant: the same trace was tried when the scenario was checked.
            trace: Arc::new(of.spelled_out(clients).unwrap_or_else(|_| nothing())),
            catch_up: behind(*catch_up),
        },
        Model::Jmeter { rate, wait } => {
            let machines = machines.max(1);
            load::Pace::Jmeter {
                per_minute: rate.total(clients) * 60.0 / f64::from(machines),
                threads: clients.div_ceil(machines).max(1),
                ramp_ns: group.connect.ramp.map_or(0, TimeSpan::as_ns),
                wait: *wait,
            }
        }
    }
}

fn phase_policy(phase: PhasePolicy) -> load::PhasePolicy {
    match phase {
        PhasePolicy::Uniform => load::PhasePolicy::Uniform,
        PhasePolicy::Random => load::PhasePolicy::Random,
        PhasePolicy::Aligned => load::PhasePolicy::Aligned,
    }
}

fn behind(catch_up: bool) -> load::CatchUp {
    match catch_up {
        true => load::CatchUp::CatchUp,
        false => load::CatchUp::Skip,
    }
}

/// The rate of one stream as a fraction: exact for whole numbers, to a thousandth of a message
/// per second for others.
fn exact(rate: Rate, clients: u32) -> load::Rate {
    let (per_second, shared_by) = match rate {
        Rate::Total(total) => (total.0, u64::from(clients)),
        Rate::PerClient(each) => (each.0, 1),
    };
    match per_second.fract() == 0.0 {
        true => load::Rate::per_second_shared(per_second as u64, shared_by),
        false => load::Rate {
            messages: ((per_second * 1e3).round() as u64).max(1),
            per_ns: shared_by * 1_000_000_000_000,
        },
    }
}

fn nothing() -> load::Trace {
    load::Trace { arrivals: load::Arrivals::Offsets(vec![0]), repeat_ns: None, shared_by: 1 }
}

#[cfg(test)]
mod tests {
    use tacho_scenario::PerSecond;

    use super::*;

    #[test]
    fn rates_stay_exact() {
        let rate = exact(Rate::Total(PerSecond(10_000.0)), 3000);
        assert_eq!((rate.messages, rate.per_ns), (10_000, 3_000_000_000_000));
        let rate = exact(Rate::PerClient(PerSecond(0.5)), 3000);
        assert!((rate.per_second() - 0.5).abs() < 1e-9);
        assert_eq!(exact(Rate::PerClient(PerSecond(1e-9)), 1).messages, 1);
    }
}
