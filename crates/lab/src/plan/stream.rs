//! When streams publish, and what.

use std::sync::Arc;

use tacho_load as load;

use super::qos;
use crate::scenario::{
    Arrivals, Group, Model, Payload, PerSecond, PhasePolicy, Publish, Rate, Table, TimeSpan, Trace,
};

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
            load::Template::of_rows(csv.rows.iter().map(|row| row.join(",")).collect())
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
            trace: Arc::new(trace(of, clients).unwrap_or_else(|_| nothing())),
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

/// A trace spelled out for a group of `clients`.
///
/// # Errors
/// A sentence, when it cannot be played.
pub(crate) fn trace(trace: &Trace, clients: u32) -> Result<load::Trace, String> {
    let time = |span: TimeSpan| (span.0.as_nanos() as f64 / trace.speed).round() as u64;
    let rate = |rate: PerSecond| rate.0 * trace.speed;
    let arrivals = match &trace.arrivals {
        Arrivals::At(at) => load::Arrivals::Offsets(at.iter().map(|at| time(*at)).collect()),
        Arrivals::Rates(rates) => load::Arrivals::Rates(
            rates
                .iter()
                .map(|from| load::RateFrom {
                    from_ns: time(from.from),
                    per_second: rate(from.rate),
                })
                .collect(),
        ),
        Arrivals::File(table) => {
            let at = cells(table, "at", TimeSpan::parse)?;
            match table.column("rate") {
                None => load::Arrivals::Offsets(at.into_iter().map(time).collect()),
                Some(_) => {
                    let rates = cells(table, "rate", PerSecond::parse)?.into_iter();
                    let pairs = at.into_iter().zip(rates);
                    load::Arrivals::Rates(
                        pairs
                            .map(|(from, per_second)| load::RateFrom {
                                from_ns: time(from),
                                per_second: rate(per_second),
                            })
                            .collect(),
                    )
                }
            }
        }
    };
    let trace = load::Trace {
        arrivals,
        repeat_ns: trace.repeat.map(time),
        shared_by: if trace.each { 1 } else { clients.max(1) },
    };
    trace.check().map_err(|why| format!("this trace cannot be played: {why}"))?;
    Ok(trace)
}

/// A column of a table, read.
fn cells<T>(
    table: &Table,
    column: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let name = table.path.display();
    (0..table.rows.len() as u64)
        .map(|row| {
            // The line of names is the first one.
            let line = row + 2;
            let cell = table
                .cell(row, column)
                .ok_or_else(|| format!("'{name}' has nothing under '{column}' in line {line}"))?;
            read(cell).map_err(|why| format!("'{name}', line {line}: {why}"))
        })
        .collect()
}

fn nothing() -> load::Trace {
    load::Trace { arrivals: load::Arrivals::Offsets(vec![0]), repeat_ns: None, shared_by: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_stay_exact() {
        let rate = exact(Rate::Total(PerSecond(10_000.0)), 3000);
        assert_eq!((rate.messages, rate.per_ns), (10_000, 3_000_000_000_000));
        let rate = exact(Rate::PerClient(PerSecond(0.5)), 3000);
        assert!((rate.per_second() - 0.5).abs() < 1e-9);
        assert_eq!(exact(Rate::PerClient(PerSecond(1e-9)), 1).messages, 1);
    }

    #[test]
    fn a_faster_trace_is_shorter_and_denser() {
        let of = |arrivals| Trace {
            arrivals,
            repeat: Some(TimeSpan::from_secs(4)),
            each: false,
            speed: 2.0,
        };
        let at = |seconds| TimeSpan::from_secs(seconds);
        let offsets = trace(&of(Arrivals::At(vec![at(0), at(2)])), 3).expect("plays");
        assert_eq!(offsets.arrivals, load::Arrivals::Offsets(vec![0, 1_000_000_000]));
        assert_eq!((offsets.repeat_ns, offsets.shared_by), (Some(2_000_000_000), 3));
        let none = trace(&of(Arrivals::At(vec![at(2), at(0)])), 3).expect_err("goes back");
        assert_eq!(none, "this trace cannot be played: its times must ascend");
    }
}
