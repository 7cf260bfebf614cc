//! The page that lists past runs: a table that needs no script.

use std::fmt::Write as _;
use std::path::Path;

use axum::response::Html;
use tacho_record::{Given, RunKind, Verdict};
use tacho_report::escape;
use tacho_scenario::format::{latency, rate};

use crate::past::{PastRun, Summary};

/// The file that a run's name leads to.
const REPORT: &str = "report.html";

/// The figures of a run.
const NUMBERS: [&str; 3] = ["Messages/s", "p99", "CPU"];

/// The page.
pub(crate) fn html(folder: &Path, runs: &[PastRun]) -> Html<String> {
    let mut out = String::with_capacity(8192 + runs.len() * 1024);
    out.push_str(include_str!("list_head.html"));
    let count = match runs.len() {
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    };
    let _ = writeln!(
        out,
        "<header><h1>Runs</h1><p class=\"facts\">{count} in {}</p></header>",
        escape(&folder.display().to_string())
    );
    if runs.iter().any(|run| run.running.is_some()) {
        out.push_str("<meta http-equiv=\"refresh\" content=\"10\">\n");
    }
    if runs.is_empty() {
        out.push_str(
            "<p class=\"note\">There is no run yet: 'tacho run symmetric' makes one.</p>\n",
        );
    } else {
        out.push_str(
            "<div class=\"scroll\"><table class=\"runs\"><thead><tr><th>Started (UTC)</th>\
             <th>Run</th><th>Kind</th><th>Verdict</th>",
        );
        for name in NUMBERS {
            let _ = write!(out, "<th class=\"number\">{name}</th>");
        }
        out.push_str("<th>Files</th></tr></thead><tbody>\n");
        for run in runs {
            row(&mut out, run);
        }
        out.push_str("</tbody></table></div>\n");
        out.push_str(
            "<p class=\"note\">Of several steps the figures are those of the one with most messages \
             per second, in + out. p99 is the latency end to end; CPU is what objectives are \
             about: the broker's host, or its cores on a shared machine.</p>\n",
        );
    }
    out.push_str("</body>\n</html>\n");
    Html(out)
}

fn row(out: &mut String, run: &PastRun) {
    let directory = in_url(&run.directory);
    let link = |file: &str, text: &str| {
        format!("<a href=\"/runs/{directory}/{}\">{}</a>", in_url(file), escape(text))
    };
    let (report, others) = match run.files.split_first() {
        Some((&REPORT, others)) => (true, others),
        _ => (false, &run.files[..]),
    };
    let name = if report { link(REPORT, &run.directory) } else { escape(&run.directory) };
    let files: Vec<String> = others.iter().map(|file| link(file, file)).collect();
    let files = files.join(" ");
    match (&run.summary, &run.running) {
        (Some(summary), _) => {
            let cells = cells(summary);
            let _ = write!(out, "<tr><td class=\"time\">{}</td><th>{name}", cells.started);
            // A directory that was not renamed contains the scenario's name already.
            if !run.directory.contains(&summary.scenario) {
                let _ = write!(out, "<small>{}</small>", escape(&summary.scenario));
            }
            let Given { name, note } = &summary.given;
            for text in [name, note].into_iter().filter(|text| !text.is_empty()) {
                let _ = write!(out, "<small class=\"given\">{}</small>", escape(text));
            }
            let class = if summary.verdict == Verdict::Ok { "chip ok" } else { "chip" };
            let verdict = summary.verdict.name().replace('_', " ");
            let _ = write!(
                out,
                "</th><td>{}</td><td><span class=\"{class}\">{verdict}</span></td>",
                cells.kind
            );
            for (name, value) in NUMBERS.into_iter().zip(cells.numbers) {
                let _ = write!(out, "<td class=\"number\" data-name=\"{name}\">{value}</td>");
            }
            let _ = writeln!(out, "<td class=\"files\">{files}</td></tr>");
        }
        (None, Some(running)) => {
            let started = started(&running.started_at);
            let (kind, scenario) = (escape(&running.kind), escape(&running.scenario));
            let _ = write!(out, "<tr><td class=\"time\">{started}</td><th>{name}");
            if !run.directory.contains(&running.scenario) {
                let _ = write!(out, "<small>{scenario}</small>");
            }
            let page = match &running.page {
                Some(page) => format!("<a href=\"{}\">live page</a>", escape(page)),
                None => "no live page (--ui)".to_owned(),
            };
            let _ = writeln!(
                out,
                "</th><td>{kind}</td><td><span class=\"chip going\">running</span></td>\
                 <td colspan=\"3\">{page}</td><td class=\"files\">{files}</td></tr>"
            );
        }
        (None, None) => {
            let error =
                run.error.as_ref().map_or_else(String::new, |error| escape(&error.to_string()));
            let _ = writeln!(
                out,
                "<tr class=\"broken\"><td></td><th>{name}</th><td colspan=\"5\">{error}</td>\
                 <td class=\"files\">{files}</td></tr>"
            );
        }
    }
}

struct Cells {
    started: String,
    kind: String,
    /// As [`NUMBERS`] names them.
    numbers: [String; 3],
}

fn cells(summary: &Summary) -> Cells {
    let kind = summary.kind.name();
    let kind = match (summary.kind, summary.steps) {
        (RunKind::Run, _) => kind.to_owned(),
        (_, 1) => format!("{kind}, 1 step"),
        (_, steps) => format!("{kind}, {steps} steps"),
    };
    Cells {
        started: started(&summary.started_at),
        kind,
        numbers: [
            summary.tps.map_or_else(String::new, rate),
            summary.e2e_p99_us.map_or_else(String::new, |us| latency(us as f64)),
            summary.cpu_percent.map_or_else(String::new, |cpu| format!("{cpu:.0} %")),
        ],
    }
}

/// Date and time, of RFC 3339 the first 19 characters.
fn started(at: &str) -> String {
    let started: String = at.chars().take(19).collect();
    escape(&started.replace('T', " "))
}

/// A part of a path as it stands in an address.
fn in_url(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::past::Unreadable;
    use crate::running::Running;

    #[test]
    fn hostile_names_are_only_text() {
        let summary = Summary {
            scenario: "<script>alert(1)</script>".to_owned(),
            started_at: "<i>".to_owned(),
            given: Given { name: "<em>".to_owned(), note: "<s>a note".to_owned() },
            verdict: Verdict::NotSteady,
            ..Summary::default()
        };
        let runs = [
            PastRun {
                directory: "a\"><b>%/é".to_owned(),
                summary: Some(summary),
                files: vec![REPORT],
                ..PastRun::default()
            },
            PastRun {
                error: Some(Unreadable::Damaged { error: "<u>".to_owned() }),
                ..PastRun::default()
            },
            PastRun {
                running: Some(Running {
                    kind: "<u>".to_owned(),
                    scenario: "<b>".to_owned(),
                    started_at: "<i>".to_owned(),
                    page: Some("http://a/\"<u>".to_owned()),
                    ..Running::default()
                }),
                ..PastRun::default()
            },
        ];
        let Html(page) = html(Path::new("<dir>"), &runs);
        for hostile in ["<em>", "<s>", "<script>alert", "<b>", "<i>", "<u>", "<dir>"] {
            assert!(!page.contains(hostile), "{hostile}");
        }
        assert!(page.contains("/runs/a%22%3E%3Cb%3E%25%2F%C3%A9/report.html"), "{page}");
        assert!(page.contains("not steady") && page.contains("a note"));
    }
}
