//! Elements of pages, as text that is safe to show.

use std::fmt::Write as _;

use super::lang::Lang;
use tacho_record::{RunRecord, Severity, Step};

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

/// Findings, the most severe first, and notes.
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
}
