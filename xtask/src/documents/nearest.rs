//! The guide's own tables: exact figures at the step that is nearest to 75 % CPU, and for payloads
//! at each size, with the same of our brokers.

use std::fmt::Write as _;

use super::curve::{self, Curve, RECOMMENDED_AT};
use super::record::{Results, Row, Worth};
use super::sheet;
use tacho_scenario::format;
use tacho_scenario::published::{self, GUIDE, GuidePoint};

/// What a record does not hold.
const NOT_RECORDED: &str = "not recorded";

/// The table of the test whose series in the record is `series`, and `key` among the published
/// ones; empty where the guide has no exact figures.
pub(super) fn table(results: &Results, series: &str, key: &str) -> String {
    let exact: Vec<&GuidePoint> =
        published::guide_series(key).filter(|point| point.from_table()).collect();
    if exact.is_empty() {
        return String::new();
    }
    let with_payload = series == "payload";
    let at = match with_payload {
        true => "At the payloads of the guide's table".to_owned(),
        false => format!("At the step nearest to {RECOMMENDED_AT} % CPU, as in the guide's table"),
    };
    let payload = if with_payload { "| payload " } else { "" };
    let mut out = format!(
        "\n{at}; {}:\n\n{payload}| | TPS | CPU % | memory % | mean ms | p99 ms |\n{}\n",
        sheet::held(results, &GUIDE),
        "|---".repeat(if with_payload { 7 } else { 6 }) + "|"
    );
    for point in exact {
        let payload = match with_payload {
            true => format!("| {} B ", point.payload_bytes),
            false => String::new(),
        };
        let _ =
            writeln!(out, "{payload}| {} ({} cores) {}", GUIDE.name, GUIDE.cores, theirs(point));
        for broker in &results.brokers {
            let curve = Curve::of(results, &broker.key, series);
            let row = match with_payload {
                true => results.row(&broker.key, series, &format!("{}B", point.payload_bytes)),
                false => nearest(&curve),
            };
            let absent = match row {
                None if curve.rows.is_empty() => results.absence(&broker.key, series),
                None if with_payload => "not run",
                _ => "nothing that counts",
            };
            let name = format!("{} (1 core)", broker.name);
            let (name, cells) = match row.filter(|row| row.step.is_some()) {
                Some(row) => (sheet::linked(results, row, &name), ours(row)),
                None => (name, format!("| {absent} | – | – | – | – |")),
            };
            let _ = writeln!(out, "{payload}| {name} {cells}");
        }
    }
    out
}

/// The step that counts whose CPU is nearest to that of recommended workloads.
fn nearest<'a>(curve: &Curve<'a>) -> Option<&'a Row> {
    let off = |row: &Row| row.cpu_percent().map(|cpu| (cpu - RECOMMENDED_AT).abs());
    let counting = curve.rows.iter().copied().filter(|row| row.worth() == Worth::Counts);
    let with_cpu = counting.filter_map(|row| Some((off(row)?, row)));
    with_cpu.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, row)| row)
}

fn theirs(point: &GuidePoint) -> String {
    let or_dash =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| value.to_string());
    format!(
        "| {} | {} | {} | {} | {} |",
        format::rate(point.tps),
        or_dash(point.cpu_percent),
        or_dash(point.memory_percent),
        or_dash(point.mean_ms),
        or_dash(point.p99_ms)
    )
}

fn ours(row: &Row) -> String {
    let percent = |value: Option<f64>| {
        value.map_or_else(|| NOT_RECORDED.to_owned(), |value| format!("{value:.2}"))
    };
    let memory = row.step.as_ref().and_then(|step| step.host_memory_percent);
    let cells = [
        curve::tps(row).map_or_else(|| NOT_RECORDED.to_owned(), format::rate),
        percent(row.cpu_percent()),
        percent(memory),
        sheet::ms(curve::mean(row)),
        sheet::ms(curve::p99(row)),
    ];
    let cells = cells.map(|cell| match cell.as_str() {
        NOT_RECORDED => cell,
        _ => sheet::worth(row, &cell),
    });
    format!("| {} |", cells.join(" | "))
}
