//! `report.html`: one file that loads nothing from anywhere. Everything is there without scripts;
//! the script in it makes charts answer to the pointer.

use std::fmt::Write as _;

use super::data::ReportData;
use super::lang::Lang;
use super::page::Page;
use super::{many, single, words};
use tacho_record::{RunKind, RunRecord, Severity, Step, Verdict};
use tacho_scenario::format::{capitalised, thousands};

const STYLE: &str = include_str!("../../../web/dist/style.css");
const SCRIPT: &str = include_str!("../../../web/dist/report.js");
/// The library that draws the charts of all pages, as a script that comes before theirs.
pub const UPLOT: &str = include_str!("../../../web/dist/uplot.js");

/// A label, in the language of the page.
type Label = fn(Lang) -> &'static str;

/// Files that a run directory may have, with what they are for.
const KNOWN_FILES: [(&str, Label); 17] = [
    ("comparison.json", Lang::comparison_json),
    ("summary.json", Lang::summary_json),
    ("timeseries.csv", Lang::timeseries_csv),
    ("brokers.csv", Lang::brokers_csv),
    ("resources.csv", Lang::resources_csv),
    ("steps.csv", Lang::steps_csv),
    ("latency.hlog", Lang::latency_hlog),
    ("e2e.hgrm", Lang::e2e_hgrm),
    ("service.hgrm", Lang::service_hgrm),
    ("ack.hgrm", Lang::ack_hgrm),
    ("send_delay.hgrm", Lang::send_delay_hgrm),
    ("results.jtl", Lang::results_jtl),
    ("junit.xml", Lang::junit_xml),
    ("summary.md", Lang::summary_md),
    ("scenario.toml", Lang::scenario_toml),
    ("environment.json", Lang::environment_json),
    ("broker.log", Lang::broker_log),
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
    let lang = data.lang;
    let mut head = String::new();
    header(lang, &mut head, record);
    let mut page = Page::new(lang);
    match record.kind {
        RunKind::Run => single::body(&mut page, &mut head, data),
        _ => many::body(&mut page, &mut head, data),
    }
    let title = format!("{} – {}", record.name, verdict_words(lang, record.verdict));
    document(&title, &head, page, &record.tool_version)
}

/// A whole page: `head` stands above the contents, then comes what `page` holds.
pub(super) fn document(title: &str, head: &str, page: Page, tool_version: &str) -> String {
    let lang = page.lang;
    let (contents, body, json) = page.parts();
    let mut out =
        String::with_capacity(body.len() + json.len() + UPLOT.len() + SCRIPT.len() + 64 * 1024);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        lang.code(),
        escape(title),
    );
    let _ = write!(
        out,
        "{head}{contents}<main>\n{body}</main>\n<footer>{}</footer>\n\
         <script type=\"application/json\" id=\"chart-data\">{json}</script>\n\
         <script>\n{UPLOT}{SCRIPT}</script>\n</body>\n</html>\n",
        escape(&lang.written_by(tool_version))
    );
    out
}

/// Where the list of files goes once they are all there.
fn place_of_files(lang: Lang) -> String {
    format!("<!-- files {} -->", lang.code())
}

/// The page with links to the files that lie beside it.
pub fn with_files(page: &str, present: &[String]) -> String {
    for lang in Lang::ALL {
        let place = place_of_files(lang);
        if !page.contains(&place) {
            continue;
        }
        let mut list = String::new();
        let there = |name: &str| present.iter().any(|present| present == name);
        for (name, what) in KNOWN_FILES.iter().filter(|(name, _)| there(name)) {
            let what = escape(what(lang));
            let _ = write!(list, "<li><a href=\"{name}\">{name}</a> {what}</li>");
        }
        return page.replacen(&place, &list, 1);
    }
    page.to_owned()
}

/// The place for the list of files.
pub(super) fn files(page: &mut Page) {
    let lang = page.lang;
    page.section("files", lang.files());
    let _ = writeln!(page.out, "<ul class=\"files\">{}</ul>", place_of_files(lang));
}

/// A verdict in words.
pub(super) use super::steps_table::verdict_words;

fn header(lang: Lang, out: &mut String, record: &RunRecord) {
    let kind = match record.kind {
        RunKind::Run => lang.load_test(),
        RunKind::Ladder => lang.load_test_in_steps(),
        RunKind::Capacity => lang.capacity_search(),
        RunKind::Suite => lang.test_suite(),
        RunKind::Comparison => lang.comparison(),
    };
    let brokers = match record.targets.len() {
        0 | 1 => record.target.broker.clone(),
        _ => {
            let name = |target: &tacho_record::TargetRecord| match target.name.is_empty() {
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
        facts.push(lang.count_of_clients(thousands(record.clients)));
    }
    facts.push(lang.duration(record.elapsed_s));
    banner(out, kind, (&record.scenario, &lang.told(&record.description)), &facts);
    let class = if record.verdict == Verdict::Ok { "verdict ok" } else { "verdict" };
    let _ = write!(
        out,
        "<section class=\"{class}\"><b>{}</b><p>{}</p>",
        capitalised(verdict_words(lang, record.verdict)),
        escape(&words::verdict(lang, record))
    );
    if !record.reasons.is_empty() {
        out.push_str("<ul>");
        for reason in lang.reasons(&record.reasons, &record.causes) {
            let _ = write!(out, "<li>{}</li>", escape(&reason));
        }
        out.push_str("</ul>");
    }
    out.push_str("</section>\n");
}

/// The top of a page: what kind it is, its scenario, and facts, of which some may be empty.
pub(super) fn banner(
    out: &mut String,
    kind: &str,
    (scenario, description): (&str, &str),
    facts: &[String],
) {
    let facts = facts.iter().filter(|fact| !fact.is_empty());
    let facts: Vec<String> = facts.map(|fact| format!("<span>{}</span>", escape(fact))).collect();
    let _ = writeln!(
        out,
        "<header><p class=\"kind\">{kind}</p><h1>{}</h1><p class=\"description\">{}</p>\
         <p class=\"facts\">{}</p></header>",
        escape(scenario),
        escape(description),
        facts.join(" ")
    );
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
pub(super) fn remarks(lang: Lang, out: &mut String, record: &RunRecord) {
    let mut findings: Vec<_> = record.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    if !findings.is_empty() {
        out.push_str("<ul class=\"findings\">");
        for finding in findings {
            let (class, severity) = match finding.severity {
                Severity::Info => ("info", lang.info()),
                Severity::Warning => ("warning", lang.warning()),
                Severity::Error => ("error", lang.error()),
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
                "<li class=\"{class}\"><b>{severity}</b> {}{}</li>",
                escape(&place),
                escape(&lang.finding(finding))
            );
        }
        out.push_str("</ul>\n");
    }
    for note in lang.notes(&record.notes, &record.remarks) {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(&note));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_everything_that_could_end_a_text() {
        assert_eq!(escape("<a b='\"&'>"), "&lt;a b=&#39;&quot;&amp;&#39;&gt;");
    }

    #[test]
    fn only_files_that_are_there_are_linked() {
        let page = format!("<ul>{}</ul>", place_of_files(Lang::En));
        let page = with_files(&page, &["summary.json".to_owned(), "notes.txt".to_owned()]);
        assert!(page.contains("href=\"summary.json\""), "{page}");
        assert!(!page.contains("notes.txt") && !page.contains("broker.log"), "{page}");
    }
}
