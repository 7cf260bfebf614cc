//! Tables of many columns.

use std::fmt::Write as _;

use super::elements::escape;

/// One cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    link: String,
    failed: bool,
    prose: bool,
}

/// A table with a head.
#[derive(Debug)]
pub(super) struct Grid {
    heads: Vec<String>,
    rows: Vec<(RowKind, Vec<Cell>)>,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowKind {
    /// Figures of our own.
    Plain,
    /// Figures that do not count.
    Invalid,
    /// The name of the rows below.
    Heading,
    /// Published figures.
    Published,
}

impl RowKind {
    /// Its class in the style sheet.
    const fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Invalid => "invalid",
            Self::Heading => "heading",
            Self::Published => "published",
        }
    }
}

impl Cell {
    /// Plain text.
    pub(super) fn text(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// A sentence: may be broken into lines.
    pub(super) fn prose(text: String) -> Self {
        Self { text, prose: true, ..Self::default() }
    }

    /// A dash where there is nothing.
    pub(super) fn or_dash(text: Option<String>) -> Self {
        Self::text(text.unwrap_or_else(|| "–".to_owned()))
    }

    /// Text that leads to another page, unless that is empty.
    pub(super) fn link(text: &str, to: &str) -> Self {
        Self { text: text.to_owned(), link: to.to_owned(), ..Self::default() }
    }

    /// Marked when something is wrong with it.
    pub(super) fn failed(self, failed: bool) -> Self {
        Self { failed, ..self }
    }

    fn render(&self, out: &mut String, element: &str) {
        let class = match (self.failed, self.prose) {
            (true, _) => " class=\"failed\"",
            (false, true) => " class=\"prose\"",
            (false, false) => "",
        };
        // Names of scenarios are long words: they break after an underscore.
        let text = escape(&self.text).replace('_', "_<wbr>");
        let _ = match self.link.is_empty() {
            true => write!(out, "<{element}{class}>{text}</{element}>"),
            false => write!(
                out,
                "<{element}{class}><a href=\"{}\">{text}</a></{element}>",
                escape(&self.link)
            ),
        };
    }
}

impl Grid {
    /// An empty table.
    pub(super) fn new(heads: &[&str]) -> Self {
        Self { heads: heads.iter().map(|&head| head.to_owned()).collect(), rows: Vec::new() }
    }

    /// A row across all columns that names those below.
    pub(super) fn heading(&mut self, text: &str) {
        self.rows.push((RowKind::Heading, vec![Cell::text(text.to_owned())]));
    }

    /// A row; hatched when its figures do not count.
    pub(super) fn row(&mut self, invalid: bool, cells: Vec<Cell>) {
        let kind = if invalid { RowKind::Invalid } else { RowKind::Plain };
        self.rows.push((kind, cells));
    }

    /// A row of published figures.
    pub(super) fn published(&mut self, cells: Vec<Cell>) {
        self.rows.push((RowKind::Published, cells));
    }

    /// No rows of our own.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.iter().all(|(kind, _)| matches!(kind, RowKind::Heading | RowKind::Published))
    }

    /// True when it contains published figures.
    pub(super) fn has_published(&self) -> bool {
        self.rows.iter().any(|(kind, _)| *kind == RowKind::Published)
    }

    /// As HTML that scrolls by itself where it is broader than the page.
    pub(super) fn render(&self, out: &mut String) {
        out.push_str("<div class=\"scroll\"><table class=\"grid\"><thead><tr>");
        for (index, head) in self.heads.iter().enumerate() {
            let mut cells = self.rows.iter().filter_map(|(_, cells)| cells.get(index));
            let class = if cells.any(|cell| cell.prose) { " class=\"prose\"" } else { "" };
            let _ = write!(out, "<th{class} scope=\"col\">{}</th>", escape(head));
        }
        out.push_str("</tr></thead><tbody>");
        for (kind, cells) in &self.rows {
            match kind.class() {
                "" => out.push_str("<tr>"),
                class => {
                    let _ = write!(out, "<tr class=\"{class}\">");
                }
            }
            if *kind == RowKind::Heading {
                let text = cells.first().map_or("", |cell| cell.text.as_str());
                let (span, text) = (self.heads.len(), escape(text));
                let _ = write!(out, "<th colspan=\"{span}\" scope=\"rowgroup\">{text}</th>");
            } else {
                for (index, cell) in cells.iter().enumerate() {
                    cell.render(out, if index == 0 { "th" } else { "td" });
                }
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_may_break_after_an_underscore() {
        let mut grid = Grid::new(&["scenario"]);
        grid.row(false, vec![Cell::link("false_share_5k", "a_b.html")]);
        let mut html = String::new();
        grid.render(&mut html);
        assert!(html.contains("<a href=\"a_b.html\">false_<wbr>share_<wbr>5k</a>"), "{html}");
    }

    #[test]
    fn the_head_of_sentences_stands_above_their_beginning() {
        let mut grid = Grid::new(&["trial", "value", "why"]);
        let cells = ["1", "2"].map(|text| Cell::text(text.to_owned()));
        grid.row(false, cells.into_iter().chain([Cell::prose("a reason".to_owned())]).collect());
        let mut html = String::new();
        grid.render(&mut html);
        let heads = "<th scope=\"col\">value</th><th class=\"prose\" scope=\"col\">why</th>";
        assert!(html.contains(heads), "{html}");
    }
}
