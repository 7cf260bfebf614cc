//! When the messages of a trace are due, as the load generator takes it.

use tacho_load as load;

use crate::data::Table;
use crate::quantity::{PerSecond, TimeSpan};
use crate::stream::{Arrivals, Trace};

impl Trace {
    /// A trace spelled out for a group of `clients`.
    ///
    /// # Errors
    /// A sentence, when it cannot be played.
    pub fn spelled_out(&self, clients: u32) -> Result<load::Trace, String> {
        let time = |span: TimeSpan| (span.0.as_nanos() as f64 / self.speed).round() as u64;
        let rate = |rate: PerSecond| rate.0 * self.speed;
        let arrivals = match &self.arrivals {
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
            repeat_ns: self.repeat.map(time),
            shared_by: if self.each { 1 } else { clients.max(1) },
        };
        trace.check().map_err(|why| format!("this trace cannot be played: {why}"))?;
        Ok(trace)
    }
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
                .ok_or_else(|| format!("'{name}' has no value for '{column}' in line {line}"))?;
            read(cell).map_err(|why| format!("'{name}', line {line}: {why}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_trace_is_shorter_and_denser() {
        let trace = |arrivals| Trace {
            arrivals,
            repeat: Some(TimeSpan::from_secs(4)),
            each: false,
            speed: 2.0,
        };
        let at = |seconds| TimeSpan::from_secs(seconds);
        let offsets = trace(Arrivals::At(vec![at(0), at(2)])).spelled_out(3).expect("plays");
        assert_eq!(offsets.arrivals, load::Arrivals::Offsets(vec![0, 1_000_000_000]));
        assert_eq!((offsets.repeat_ns, offsets.shared_by), (Some(2_000_000_000), 3));
        let none = trace(Arrivals::At(vec![at(2), at(0)])).spelled_out(3).expect_err("goes back");
        assert_eq!(none, "this trace cannot be played: its times must ascend");
    }
}
