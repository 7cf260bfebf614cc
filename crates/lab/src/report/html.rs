//! `report.html`: one file that loads nothing from anywhere. Everything is there without scripts;
//! the script in it makes charts answer to the pointer.

use std::fmt::Write as _;

use super::ReportData;
use super::page::Page;
use super::{many, single, words};
use crate::format::{capitalised, thousands};
use crate::record::{RunKind, RunRecord, Severity, Step, Verdict};

/// Where the list of files goes once they are all there.
const FILES: &str = "<!-- files -->";

const STYLE: &str = include_str!("../../../../web/dist/style.css");
const SCRIPT: &str = include_str!("../../../../web/dist/report.js");

/// Files that a run directory may have, with what they are for.
const KNOWN_FILES: [(&str, &str); 16] = [
    ("comparison.json", "the comparison: every figure of this page, for programs"),
    ("summary.json", "the run record: every figure of this page, for programs"),
    ("timeseries.csv", "a row per second"),
    ("resources.csv", "watched hosts and processes, a row per figure and second"),
    ("steps.csv", "a row per step"),
    ("latency.hlog", "latency histograms of each second, HdrHistogram's interval log"),
    ("e2e.hgrm", "percentiles of the end-to-end latency, for HdrHistogram's plotter"),
    ("service.hgrm", "percentiles of the service time"),
    ("ack.hgrm", "percentiles of the time to the last acknowledgement"),
    ("send_delay.hgrm", "percentiles of the generator's lateness"),
    ("results.jtl", "samples as JMeter writes them"),
    ("junit.xml", "thresholds and verdicts, for CI"),
    ("summary.md", "the result as Markdown"),
    ("scenario.toml", "the scenario as it ran: run it again with `tacho run scenario.toml`"),
    ("environment.json", "the machine and its settings"),
    ("broker.log", "what the broker said"),
];

/// Makes any text safe inside elements and quoted attributes.
pub fn escape(text: &str) -> String {
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
    let mut head = String::new();
    header(&mut head, record);
    let mut page = Page::default();
    match record.kind {
        RunKind::Run => single::body(&mut page, &mut head, data),
        _ => many::body(&mut page, &mut head, data),
    }
    let title = format!("{} – {}", record.name, verdict_words(record.verdict));
    document(&title, &head, page, &record.tool_version)
}

/// A whole page: `head` stands above the contents, then comes what `page` holds.
pub(super) fn document(title: &str, head: &str, page: Page, tool_version: &str) -> String {
    let (contents, body, json) = page.parts();
    let mut out = String::with_capacity(body.len() + json.len() + SCRIPT.len() + 64 * 1024);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        escape(title),
    );
    let _ = write!(
        out,
        "{head}{contents}<main>\n{body}</main>\n<footer>Written by tacho {}. This file holds \
         everything that it shows and loads nothing.</footer>\n\
         <script type=\"application/json\" id=\"chart-data\">{json}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escape(tool_version)
    );
    out
}

/// The page with links to the files that lie beside it.
pub(crate) fn with_files(page: &str, present: &[String]) -> String {
    let mut list = String::new();
    for (name, what) in KNOWN_FILES.iter().filter(|(name, _)| present.iter().any(|p| p == name)) {
        let _ = write!(list, "<li><a href=\"{name}\">{name}</a> {}</li>", escape(what));
    }
    page.replacen(FILES, &list, 1)
}

/// The place for the list of files.
pub(super) fn files(page: &mut Page) {
    page.section("files", "Files");
    let _ = writeln!(page.out, "<ul class=\"files\">{FILES}</ul>");
}

/// A verdict in words.
pub(super) use super::steps_table::verdict_words;

fn header(out: &mut String, record: &RunRecord) {
    let kind = match record.kind {
        RunKind::Run => "Load test",
        RunKind::Ladder => "Load test in steps",
        RunKind::Capacity => "Capacity search",
        RunKind::Suite => "Test suite",
        RunKind::Comparison => "Comparison",
    };
    let brokers = match record.targets.len() {
        0 | 1 => record.target.broker.clone(),
        _ => {
            let name = |target: &crate::record::TargetRecord| match target.name.is_empty() {
                true => target.broker.clone(),
                false => format!("{} {}", target.name, target.broker),
            };
            record.targets.iter().map(name).collect::<Vec<_>>().join(", ")
        }
    };
    let mut facts = vec![record.name.clone(), record.started_at.clone(), brokers];
    if !record.target.version.is_empty() {
        facts.push(format!("MQTT {}", record.target.version));
    }
    if record.clients > 0 {
        facts.push(format!("{} clients", thousands(record.clients)));
    }
    facts.push(duration(record.elapsed_s));
    let facts: Vec<String> = facts
        .iter()
        .filter(|fact| !fact.is_empty())
        .map(|fact| format!("<span>{}</span>", escape(fact)))
        .collect();
    let _ = writeln!(
        out,
        "<header><p class=\"kind\">{kind}</p><h1>{}</h1><p class=\"description\">{}</p>\
         <p class=\"facts\">{}</p></header>",
        escape(&record.scenario),
        escape(&record.description),
        facts.join(" ")
    );
    let class = if record.verdict == Verdict::Ok { "verdict ok" } else { "verdict" };
    let _ = write!(
        out,
        "<section class=\"{class}\"><b>{}</b><p>{}</p>",
        capitalised(verdict_words(record.verdict)),
        escape(&words::verdict(record))
    );
    if !record.reasons.is_empty() {
        out.push_str("<ul>");
        for reason in &record.reasons {
            let _ = write!(out, "<li>{}</li>", escape(reason));
        }
        out.push_str("</ul>");
    }
    out.push_str("</section>\n");
}

/// Key figures.
pub(super) fn tiles(out: &mut String, tiles: &[(String, String)]) {
    out.push_str("<div class=\"tiles\">");
    for (value, name) in tiles {
        let _ = write!(
            out,
            "<div class=\"tile\"><b>{}</b><span>{}</span></div>",
            escape(value),
            escape(name)
        );
    }
    out.push_str("</div>\n");
}

/// Findings, the gravest first, and what a reader must know.
pub(super) fn remarks(out: &mut String, record: &RunRecord) {
    let mut findings: Vec<_> = record.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    if !findings.is_empty() {
        out.push_str("<ul class=\"findings\">");
        for finding in findings {
            let severity = match finding.severity {
                Severity::Info => "info",
                Severity::Warning => "warning",
                Severity::Error => "error",
            };
            let step = finding.step.and_then(|index| record.steps.get(index));
            // Sentences about the steps of a ladder say themselves which one they are about.
            let is_unnamed = |step: &&Step| {
                !step.label.is_empty() && !finding.sentence.contains(step.label.as_str())
            };
            let step = step.filter(is_unnamed);
            let place = step.map_or_else(String::new, |step| format!("{}: ", step.label));
            let _ = write!(
                out,
                "<li class=\"{severity}\"><b>{severity}</b> {}{}</li>",
                escape(&place),
                escape(&finding.sentence)
            );
        }
        out.push_str("</ul>\n");
    }
    for note in &record.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
    }
}

/// A table of names and texts.
pub(super) fn pairs(out: &mut String, title: &str, pairs: &[(String, String)]) {
    let _ = write!(out, "<section><h3>{}</h3><table class=\"text\"><tbody>", escape(title));
    for (name, value) in pairs {
        let _ = write!(out, "<tr><th>{}</th><td>{}</td></tr>", escape(name), escape(value));
    }
    out.push_str("</tbody></table></section>\n");
}

/// `1 h 2 min`, `25 s`.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..120 => format!("{whole} s"),
        120..7200 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_everything_that_could_end_a_text() {
        assert_eq!(escape("<a b='\"&'>"), "&lt;a b=&#39;&quot;&amp;&#39;&gt;");
    }

    #[test]
    fn only_files_that_are_there_are_linked() {
        let page = format!("<ul>{FILES}</ul>");
        let page = with_files(&page, &["summary.json".to_owned(), "notes.txt".to_owned()]);
        assert!(page.contains("href=\"summary.json\""), "{page}");
        assert!(!page.contains("notes.txt") && !page.contains("broker.log"), "{page}");
    }

    #[test]
    fn lengths_of_time() {
        assert_eq!(duration(25.4), "25 s");
        assert_eq!(duration(300.0), "5 min 0 s");
        assert_eq!(duration(7261.0), "2 h 1 min");
    }
}
