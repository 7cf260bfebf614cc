//! Elements of pages, as text that is safe to show.

use std::fmt::Write as _;

use super::grouped::{self, Group};
use super::lang::Lang;
use tacho_record::{Given, RunRecord, Severity};

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

/// What the user calls the run and says about it.
pub(super) fn given(lang: Lang, out: &mut String, given: &Given) {
    for (label, text) in given_texts(lang, given) {
        let _ = writeln!(out, "<p class=\"note\"><b>{label}</b> {}</p>", escape(text));
    }
}

/// The same as labels and texts.
pub(super) fn given_texts(lang: Lang, given: &Given) -> impl Iterator<Item = (&'static str, &str)> {
    let texts = [
        (lang.name_of_the_run(), given.name.as_str()),
        (lang.note_on_the_run(), given.note.as_str()),
    ];
    texts.into_iter().filter(|(_, text)| !text.is_empty())
}

/// The same as lines of a terminal, which show no control characters.
pub(super) fn given_lines(lang: Lang, out: &mut String, given: &Given) {
    for (label, text) in given_texts(lang, given) {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let _ = writeln!(out, "{}: {text}", label.to_lowercase());
    }
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

/// A line; where it stands for several sentences, these are folded below it.
pub(super) fn folded(group: &Group) -> String {
    let line = escape(&group.line);
    if group.details.is_empty() {
        return line;
    }
    let details = group.details.iter().map(|one| format!("<li>{}</li>", escape(one)));
    let details: String = details.collect();
    format!("<details class=\"folded\"><summary>{line}</summary><ul>{details}</ul></details>")
}

/// Findings, one line per kind, the most severe first, and notes.
pub(super) fn remarks(lang: Lang, out: &mut String, record: &RunRecord) {
    let findings = grouped::findings(lang, record, Severity::Info);
    if !findings.is_empty() {
        out.push_str("<ul class=\"findings\">");
        for finding in findings {
            let (class, severity) = match finding.severity.unwrap_or(Severity::Info) {
                Severity::Info => ("info", lang.info()),
                Severity::Warning => ("warning", lang.warning()),
                Severity::Error => ("error", lang.error()),
            };
            let _ =
                write!(out, "<li class=\"{class}\"><b>{severity}</b> {}</li>", folded(&finding));
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
