//! `report.html`: one file, no scripts, nothing loaded from anywhere.

use std::fmt::Write as _;

use super::ReportData;
use super::charts::charts;
use super::tables::{LATENCY_HEADS, latencies, lost, tables};
use crate::format::{self, latency_or, percent_or, rate, thousands};
use crate::record::{RunRecord, Step, Verdict};

/// Runs of lost messages that are shown.
const LOST_SHOWN: usize = 50;

/// Makes any text safe inside elements and quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// The whole page.
pub fn html(data: &ReportData<'_>) -> String {
    let record = data.record;
    let mut out = String::with_capacity(64 * 1024);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
        escape(&record.name),
        include_str!("style.css")
    );
    head(&mut out, record);
    if let Some(step) = record.steps.last() {
        tiles(&mut out, step);
    }
    for note in &record.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
    }
    out.push_str("<h2>Over time and by percentile</h2>\n");
    for chart in charts(data) {
        out.push_str(&chart.render());
    }
    for (index, step) in record.steps.iter().enumerate() {
        match record.steps.len() {
            1 => out.push_str("<h2>Figures of the measured window</h2>\n"),
            _ => {
                let _ = writeln!(out, "<h2>Figures of step {}</h2>", index + 1);
            }
        }
        figures(&mut out, step);
    }
    run_tables(&mut out, data);
    let _ = write!(
        out,
        "<footer>Written by tacho {}. The same figures, for programs, are in summary.json, \
         timeseries.csv and latency.hlog beside this file.</footer>\n</body>\n</html>\n",
        escape(&record.tool_version)
    );
    out
}

fn head(out: &mut String, record: &RunRecord) {
    let verdict = match record.verdict {
        Verdict::Ok => "ok",
        Verdict::GeneratorBound => "invalid: generator-bound",
        Verdict::NetworkBound => "invalid: network-bound",
        Verdict::NotSustained => "not sustained",
        Verdict::NotSteady => "not steady",
        Verdict::QosViolation => "QoS contract broken",
        Verdict::ThresholdFailed => "threshold failed",
        Verdict::Aborted => "aborted",
    };
    let class = if record.verdict == Verdict::Ok { "verdict ok" } else { "verdict" };
    let _ = writeln!(
        out,
        "<header><h1>{}</h1><span class=\"{class}\">{verdict}</span>\
         <p class=\"meta\">{}</p><p class=\"meta\">{} · {} · MQTT {} · {} clients · {:.0} s</p></header>",
        escape(&record.scenario),
        escape(&record.description),
        escape(&record.started_at),
        escape(&record.target.broker),
        escape(&record.target.version),
        thousands(record.clients),
        record.elapsed_s,
    );
    if !record.reasons.is_empty() {
        out.push_str("<ul class=\"reasons\">");
        for reason in &record.reasons {
            let _ = write!(out, "<li>{}</li>", escape(reason));
        }
        out.push_str("</ul>\n");
    }
}

fn tiles(out: &mut String, step: &Step) {
    let us = |value: Option<u64>| latency_or(value.map(|value| value as f64));
    let rss = step.broker_rss_bytes.map_or_else(|| "not observed".to_owned(), format::bytes);
    let tiles = [
        (rate(step.tps), "messages per second, in + out"),
        (us(step.latency_us.p50), "median latency, end to end"),
        (us(step.latency_us.p99), "99th percentile"),
        (thousands(step.lost), "messages lost"),
        (percent_or(step.broker_cpu_percent), "broker CPU, one core = 100 %"),
        (rss, "broker memory (RSS)"),
    ];
    out.push_str("<div class=\"tiles\">");
    for (value, name) in tiles {
        let _ = write!(
            out,
            "<div class=\"tile\"><b>{}</b><span>{}</span></div>",
            escape(&value),
            escape(name)
        );
    }
    out.push_str("</div>\n");
}

fn figures(out: &mut String, step: &Step) {
    out.push_str("<h3>Latency</h3>\n<div class=\"scroll\"><table><thead><tr><th></th>");
    for name in LATENCY_HEADS {
        let _ = write!(out, "<th>{name}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for (name, cells) in latencies(step) {
        let _ = write!(out, "<tr><th>{name}</th>");
        for cell in cells {
            match cell {
                Some(value) => {
                    let _ = write!(out, "<td>{}</td>", escape(&value));
                }
                None => out.push_str("<td class=\"none\">too few samples</td>"),
            }
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>\n<div class=\"columns\">\n");
    for table in tables(step) {
        let _ = write!(out, "<section><h3>{}</h3><table><tbody>", escape(table.title));
        for row in table.rows {
            let class = if row.failed { " class=\"failed\"" } else { "" };
            let _ = write!(
                out,
                "<tr><th>{}</th><td{class}>{}</td></tr>",
                escape(&row.name),
                escape(&row.value)
            );
        }
        out.push_str("</tbody></table></section>\n");
    }
    out.push_str("</div>\n");
    let (mut lines, more) = lost(step, LOST_SHOWN);
    if more > 0 {
        lines.push(("and".to_owned(), format!("{more} more, see summary.json")));
    }
    if !lines.is_empty() {
        pairs(out, "Lost messages by sequence number", &lines);
    }
}

/// A table of names and texts.
fn pairs(out: &mut String, title: &str, pairs: &[(String, String)]) {
    let _ = write!(out, "<section><h3>{}</h3><table class=\"text\"><tbody>", escape(title));
    for (name, value) in pairs {
        let _ = write!(out, "<tr><th>{}</th><td>{}</td></tr>", escape(name), escape(value));
    }
    out.push_str("</tbody></table></section>\n");
}

fn run_tables(out: &mut String, data: &ReportData<'_>) {
    let record = data.record;
    if !record.thresholds.is_empty() {
        let rows: Vec<_> = record
            .thresholds
            .iter()
            .map(|result| {
                let held = if result.passed { "holds" } else { "does not hold" };
                (result.condition.clone(), format!("{held}: {}", result.shown()))
            })
            .collect();
        pairs(out, "Thresholds", &rows);
    }
    if !record.first_failures.is_empty() {
        let rows: Vec<_> = (1..)
            .zip(&record.first_failures)
            .map(|(number, sentence): (u64, _)| (number.to_string(), sentence.clone()))
            .collect();
        pairs(out, "First failures of clients", &rows);
    }
    let mut run: Vec<(String, String)> =
        record.vars.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    run.push(("seed".to_owned(), record.seed.to_string()));
    if let Some(command) = &record.target.command {
        run.push(("broker command".to_owned(), command.clone()));
    }
    let p50 = |stats: &crate::record::LatencyStats| latency_or(stats.p50.map(|us| us as f64));
    run.push(("median time to CONNACK".to_owned(), p50(&record.connect_us)));
    if record.handshake_us.count > 0 {
        let handshake = p50(&record.handshake_us);
        run.push(("median time of TLS and WebSocket handshakes".to_owned(), handshake));
    }
    run.push(("median time to SUBACK".to_owned(), p50(&record.suback_us)));
    out.push_str(
        "<details open><summary>Scenario and environment</summary><div class=\"columns\">",
    );
    pairs(out, "Scenario", &run);
    pairs(out, "Environment", &data.environment.entries());
    out.push_str("</div></details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_everything_that_could_end_a_text() {
        assert_eq!(escape("<a b='\"&'>"), "&lt;a b=&#39;&quot;&amp;&#39;&gt;");
    }
}
