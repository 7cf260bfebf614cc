//! The frame of every page: its style and script, and the list of the files beside it.

use std::fmt::Write as _;

use super::elements::escape;
use super::lang::Lang;
use super::page::Page;

const STYLE: &str = include_str!("../../../web/dist/style.css");
const SCRIPT: &str = include_str!("../../../web/dist/report.js");
/// The library that draws the charts of all pages, as a script that comes before theirs.
pub const UPLOT: &str = include_str!("../../../web/dist/uplot.js");

/// A label, in the language of the page.
type Label = fn(Lang) -> &'static str;

/// Files of a run directory, with their purpose.
const KNOWN_FILES: [(&str, Label); 20] = [
    ("comparison.json", Lang::comparison_json),
    ("summary.json", Lang::summary_json),
    ("timeseries.csv", Lang::timeseries_csv),
    ("brokers.csv", Lang::brokers_csv),
    ("groups.csv", Lang::groups_csv),
    ("groups.hlog", Lang::groups_hlog),
    ("resources.csv", Lang::resources_csv),
    ("steps.csv", Lang::steps_csv),
    ("latency.hlog", Lang::latency_hlog),
    ("e2e.hgrm", Lang::e2e_hgrm),
    ("service.hgrm", Lang::service_hgrm),
    ("ack.hgrm", Lang::ack_hgrm),
    ("send_delay.hgrm", Lang::send_delay_hgrm),
    ("results.jtl", Lang::results_jtl),
    ("results-aggregated.jtl", Lang::results_aggregated_jtl),
    ("junit.xml", Lang::junit_xml),
    ("summary.md", Lang::summary_md),
    ("scenario.toml", Lang::scenario_toml),
    ("environment.json", Lang::environment_json),
    ("broker.log", Lang::broker_log),
];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_there_are_linked() {
        let page = format!("<ul>{}</ul>", place_of_files(Lang::En));
        let page = with_files(&page, &["summary.json".to_owned(), "notes.txt".to_owned()]);
        assert!(page.contains("href=\"summary.json\""), "{page}");
        assert!(!page.contains("notes.txt") && !page.contains("broker.log"), "{page}");
    }
}
