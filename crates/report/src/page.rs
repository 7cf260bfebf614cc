//! Pieces of the page that single runs and ladders share.

use std::fmt::Write as _;

use super::axis::Unit;
use super::chart::{Band, Chart, Spread};
use super::chart_data::Data;
use super::elements::escape;
use super::lang::Lang;
use super::svg::{classes, svg};

/// The page as it grows, and the data for its script.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) lang: Lang,
    pub(super) out: String,
    data: Data,
    contents: Vec<(String, String)>,
    /// Events for charts over time.
    pub(super) marks: Vec<Band>,
}

impl Page {
    /// An empty page.
    pub(super) fn new(lang: Lang) -> Self {
        Self {
            lang,
            out: String::new(),
            data: Data::default(),
            contents: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// A part with a heading, which the contents list.
    pub(super) fn section(&mut self, id: &str, title: &str) {
        let _ = writeln!(self.out, "<h2 id=\"{id}\">{}</h2>", escape(title));
        self.contents.push((id.to_owned(), title.to_owned()));
    }

    /// A sentence under a heading.
    pub(super) fn note(&mut self, text: &str) {
        let _ = writeln!(self.out, "<p class=\"note\">{}</p>", escape(text));
    }

    /// Charts; those that are not wide stand in pairs.
    pub(super) fn charts(&mut self, charts: Vec<Chart>) {
        if charts.is_empty() {
            return;
        }
        self.out.push_str("<div class=\"charts\">\n");
        for chart in charts {
            self.chart(chart, "");
        }
        self.out.push_str("</div>\n");
    }

    /// A chart; `published` tells about figures of others in it.
    pub(super) fn chart(&mut self, chart: Chart, published: &str) {
        let lang = self.lang;
        let mut chart = chart.thinned(lang);
        if chart.x.title == lang.time_since_the_start_of_the_run_s() {
            chart.bands.extend(self.marks.iter().cloned());
        }
        let number = self.data.add(&chart);
        let out = &mut self.out;
        let wide = if chart.wide { " class=\"wide\"" } else { "" };
        let title = escape(&chart.title);
        let _ =
            write!(out, "<figure{wide} data-chart=\"{number}\"><figcaption>{title}</figcaption>");
        if !chart.note.is_empty() {
            let _ = write!(out, "<p class=\"chart-note\">{}</p>", escape(&chart.note));
        }
        if chart.is_empty() {
            let empty = lang.nothing_was_recorded();
            let _ = writeln!(out, "<p class=\"empty\">{empty}</p></figure>");
            return;
        }
        let with_published = chart.has_published();
        if with_published {
            let _ = write!(
                out,
                "<label class=\"toggle\"><input type=\"checkbox\"> {}</label>",
                escape(&lang.show_published(published))
            );
        }
        legend(lang, out, &chart);
        out.push_str("<div class=\"plot\">");
        let _ = write!(out, "<div class=\"still\">{}</div>", svg(&chart, false));
        if with_published {
            let _ = write!(out, "<div class=\"still compared\">{}</div>", svg(&chart, true));
        }
        out.push_str("</div>");
        spread(lang, out, &chart.table, chart.y.unit);
        out.push_str("</figure>\n");
    }

    /// The contents, the data and everything written so far.
    pub(super) fn parts(self) -> (String, String, String) {
        let mut contents = format!("<nav aria-label=\"{}\"><ul>", self.lang.contents());
        for (id, title) in &self.contents {
            let _ = write!(contents, "<li><a href=\"#{id}\">{}</a></li>", escape(title));
        }
        contents.push_str("</ul></nav>\n");
        (contents, self.out, self.data.json())
    }
}

fn legend(lang: Lang, out: &mut String, chart: &Chart) {
    out.push_str("<ul class=\"legend\">");
    for line in &chart.lines {
        let marker = match line.marker {
            super::chart::Marker::None => "",
            super::chart::Marker::Triangle => " triangle",
            super::chart::Marker::Hollow => " hollow",
            super::chart::Marker::Cross => " cross",
            super::chart::Marker::Dot => " dot",
        };
        let area = if chart.stacked { " area" } else { "" };
        let note = if line.is_empty() { lang.too_few_samples() } else { "" };
        let _ = write!(
            out,
            "<li class=\"{}{marker}{area}\">{}{note}</li>",
            classes(line),
            escape(&line.name)
        );
    }
    out.push_str("</ul>");
}

fn spread(lang: Lang, out: &mut String, table: &[Spread], unit: Unit) {
    if table.is_empty() {
        return;
    }
    out.push_str("<table class=\"spread\"><thead><tr>");
    for head in [lang.measured_window(), lang.least_value(), lang.max(), lang.mean()] {
        let _ = write!(out, "<th scope=\"col\">{head}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for row in table {
        let _ = write!(
            out,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&row.name),
            escape(&unit.show(row.min)),
            escape(&unit.show(row.max)),
            escape(&unit.show(row.mean))
        );
    }
    out.push_str("</tbody></table>");
}
