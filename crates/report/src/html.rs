//! `report.html`: one file that loads nothing from anywhere. Everything is there without scripts;
//! the script in it makes charts answer to the pointer.

use std::fmt::Write as _;

use super::data::ReportData;
use super::document::document;
use super::elements::{banner, escape, folded, given};
use super::grouped;
use super::lang::Lang;
use super::page::Page;
use super::steps_table::verdict_words;
use super::{many, single, words};
use tacho_record::{RunKind, RunRecord, Verdict};
use tacho_scenario::format::{capitalised, thousands};

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

fn header(lang: Lang, out: &mut String, record: &RunRecord) {
    let kind = match record.kind {
        RunKind::Run => lang.load_test(),
        RunKind::Repeats => lang.repeated_load_test(),
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
    let description = lang.description(&record.description, &record.description_zh);
    banner(out, kind, (&record.scenario, description), &facts);
    given(lang, out, &record.given);
    let class = if record.verdict == Verdict::Ok { "verdict ok" } else { "verdict" };
    let _ = write!(
        out,
        "<section class=\"{class}\"><b>{}</b><p>{}</p>",
        capitalised(verdict_words(lang, record.verdict)),
        escape(&words::verdict(lang, record))
    );
    let reasons = grouped::reasons(lang, record);
    if !reasons.is_empty() {
        out.push_str("<ul>");
        for reason in reasons {
            let _ = write!(out, "<li>{}</li>", folded(&reason));
        }
        out.push_str("</ul>");
    }
    out.push_str("</section>\n");
}
