//! The dashboards for InfluxQL, against an InfluxDB that a run writes to by our names and by those
//! of collectd, and a broker by the names of its metrics.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use libtest_mimic::Failed;
use serde_json::Value;

use super::board::{Asked, Board, is_absent_here, list};
use crate::broker::Broker;
use crate::influxdb::InfluxDb;
use crate::process::wait_until;
use crate::sending::run;
use crate::{Verdict, pushing};

/// Figures of a broker that are there only when something is wrong.
const IN_TROUBLE: [&str; 2] = ["\"refused_connects\"", "\"disconnects_by_broker\""];

pub(super) fn all_have_series() -> Verdict {
    let folder = tempfile::tempdir()?;
    let influx = InfluxDb::start(folder.path(), "tacho", "")?;
    influx.command("CREATE DATABASE collectd")?;
    let start_ms = now_ms() - 2_000;
    let own = format!("influxdb=http://127.0.0.1:{}/tacho", influx.port);
    let other = format!("influxdb=http://127.0.0.1:{}/collectd?schema=collectd", influx.port);
    let broker = Broker::tacho_with(&["--out", &own])?;
    pushing::load(&broker)?;
    let sent = run(folder.path(), &[&own, &other])?;
    sent.all_arrived()?;
    let points: String = sent.objects.iter().map(Value::to_string).collect();
    wait_until("the broker does not tell that clients went", || {
        let gone = influx.number("tacho", "SELECT sum(disconnects_by_clients) FROM tacho");
        gone.is_ok_and(|gone| gone >= 10.0)
    })?;
    let is_ok = sent.record["steps"][0]["verdict"] == "ok";
    let mut complaints = Vec::new();
    for board in Board::all_of("influxdb")? {
        let is_of_collectd = board.name.contains("collectd");
        let database = if is_of_collectd { "collectd" } else { "tacho" };
        let service = Service { influx: &influx, database, window_ms: start_ms..now_ms() };
        // A busy machine may keep a window from counting.
        let may_be_empty = |asked: &Asked<'_>| {
            is_absent_here(asked.query, &points)
                || IN_TROUBLE.iter().any(|figure| asked.query.contains(figure))
                || asked.query.contains("\"ok\" = 1") && !is_ok
                || is_of_collectd && absent_by_collectd(asked.query, &points)
        };
        complaints.extend(service.complaints(&board, may_be_empty)?);
    }
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(complaints.join("\n").into()),
    }
}

/// Whether a query by collectd's names is about what this machine does not have.
fn absent_by_collectd(query: &str, points: &str) -> bool {
    let disks = ["\"disk_read\"", "\"disk_write\"", "\"disk_io_time\""];
    disks.iter().any(|name| query.contains(name)) && !points.contains("\"disk_reads_per_s\"")
        || query.contains("\"df_value\"") && !points.contains("\"filesystem_used_bytes\"")
}

pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// A database, and the time that counts.
pub(super) struct Service<'i> {
    pub(super) influx: &'i InfluxDb,
    pub(super) database: &'i str,
    pub(super) window_ms: Range<u64>,
}

impl Service<'_> {
    /// The queries of a dashboard that have no series but should.
    pub(super) fn complaints(
        &self,
        board: &Board,
        may_be_empty: impl Fn(&Asked<'_>) -> bool,
    ) -> Result<Vec<String>, Failed> {
        for (name, query, _) in board.variables() {
            if self.with_numbers(query)? == 0 && !["step", "name"].contains(&name) {
                return Err(format!("{}: ${name} has no value: {query}", board.name).into());
            }
        }
        for query in board.annotations("query") {
            if self.with_numbers(query)? == 0 {
                return Err(format!("{}: no annotations by {query}", board.name).into());
            }
        }
        let mut complaints = Vec::new();
        for asked in board.queries("query")? {
            if self.with_numbers(asked.query)? == 0 && !may_be_empty(&asked) {
                complaints.push(format!("{}: no series for {}", asked.place, asked.query));
            }
        }
        Ok(complaints)
    }

    /// How many series a query has in which something stands behind the time.
    pub(super) fn with_numbers(&self, query: &str) -> Result<usize, Failed> {
        let series = self.influx.series(self.database, &self.filled(query))?;
        let has_value = |row: &Value| list(row).iter().skip(1).any(|cell| !cell.is_null());
        Ok(series.iter().filter(|one| list(&one["values"]).iter().any(has_value)).count())
    }

    /// The query as Grafana would fill it, with all values of its variables.
    fn filled(&self, query: &str) -> String {
        let Range { start, end } = self.window_ms;
        let time = format!("time >= {start}ms AND time <= {end}ms");
        let mut filled = query.replace("$timeFilter", &time);
        for interval in ["$__interval", "$interval"] {
            filled = filled.replace(&format!("time({interval})"), "time(1s)");
        }
        // What is left stands for a variable, of which all values are meant.
        while let Some((before, rest)) = filled.split_once("/^$") {
            let after = rest.split_once("$/").map_or("", |(_, after)| after);
            filled = format!("{before}/^.*$/{after}");
        }
        filled
    }
}
